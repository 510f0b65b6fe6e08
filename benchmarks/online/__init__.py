"""What ``python -m benchmarks.online`` does: learn from streams that change, with and without each item.

streams.py      the streams: samples in an order, what changes in them and where
training.py     one run over a stream: a variant and a seed are a piece of work; its result is a file
picture.py      accuracy over time as SVG
page.py         docs/online_learning.md
__main__.py     go through what is missing, one piece at a time

What it has in common with other measurements stands in benchmarks/common.
"""
