"""Learning from streams that change, with and without each item: docs/online_learning.md.

streams.py    the streams: samples in an order, what changes in them and where
training.py   one run over a stream: a variant and a seed
picture.py    accuracy over time as SVG
__main__.py   what is missing is run, and the page: python -m benchmarks.online
"""
