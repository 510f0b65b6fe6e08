"""Onion beside the reference implementations: ``make parity``.

__main__.py       the table
encoders.py       small random encoders both ways, and MiniLM's real weights
fine_tuning.py    the losses of a short fine-tuning
ids.py            tokenizers
environments.py   an environment for each reference; scripts/reference_outputs is what runs there
common.py         rows, real texts, running a reference
"""
