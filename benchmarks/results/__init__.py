"""What ``make results`` does: fine-tune on real data with onion and with Hugging Face, and put both in one table.

rows.py            which data sets, encoders and settings
pieces.py          a row, a side and a seed are a piece of work; its result is a file
__main__.py        go through what is missing, one process at a time
processes.py       run a side in its own process and environment
by_onion.py        our side, through the door that everybody has
hugging_face/      the other side: transformers' Trainer on torch; imports nothing of onion
encoders.py        the encoders that both sides begin with
table.py           docs/results.md

What it has in common with other measurements stands in benchmarks/common.
"""
