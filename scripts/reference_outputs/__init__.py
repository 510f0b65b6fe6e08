"""Small random models and what the reference implementations make of them; runs where those are installed.

architectures.py                      the models by seed, parameter names, a model's folder
by_transformers.py, by_paddlenlp.py   one of them computes, saves and loads the models
texts.py                              what the references make of texts
requirements-*.txt                    the versions

Nothing here imports onion: what it knows of names and layouts is written down here a second time.
"""
