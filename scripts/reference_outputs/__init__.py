"""Small random models and what the reference implementations make of them; runs where those are installed.

architectures.py                      the models by seed, parameter names, a model's folder, a run
by_transformers.py, by_paddlenlp.py   compute, save and load the models by one of them
texts.py                              what the references make of texts
requirements-*.txt                    the versions

Nothing here imports onion: names and layouts are written down a second time.
"""
