"""The parts of ``make parity`` that run where onion is installed.

environments.py    an environment for each reference
jobs.py            run a reference there
table.py           rows, verdicts
encoders.py        small random encoders, both ways
differences.py     how far a network is from what a reference computed
minilm.py          real weights
ids.py             tokenizers
lines.py           real texts
"""
