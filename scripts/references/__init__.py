"""Small random models and what the reference implementations make of them; runs where those are installed.

architectures.py       the models: sizes, weights, batches, by seed
names.py               our parameter names -> those of Hugging Face and of static ERNIE
folders.py             a model's folder: its layouts and outputs
by_transformers.py     transformers computes, saves and loads them
by_paddlenlp.py        PaddleNLP does
by_sentences.py        sentence-transformers' vectors of texts
texts.py               what the references make of texts: MiniLM's vectors, and ids
requirements-*.txt     the versions

Nothing here imports onion: what it knows of names and layouts is written down here a second time.
"""
