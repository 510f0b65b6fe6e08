"""Hostile clients of the HTTP service of a run that learns.

__main__.py   both attacks: all at once (siege), one request at a time (requests)
requests.py   the service as an attacker sees it, and requests that no service should heed
siege.py      attacks side by side, connections that only take places, and whether the training went on
trainer.py    the process that learns, attacked or not
outcome.py    what came of it: wrong answers, changed bits, files left behind
"""
