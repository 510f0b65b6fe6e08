"""A run that learns while it is attacked: what scripts/abuse.py and scripts/hostile.py are made of.

trainer.py      the process that learns, disturbed or not
target.py       the service as an attacker sees it: one request, one answer
requests.py     requests that no service should heed
crowds.py       connections that only take places: half requests, slow senders, ten thousand at once
siege.py        attacks side by side, and whether the training went on
verdict.py      whether anything came of it
undisturbed.py  the same training once more, for that
remains.py      what attacks leave behind
"""
