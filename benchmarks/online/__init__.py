"""Learning from streams that change, with and without each item: docs/online_learning.md.

streams.py    the streams: their samples, and what changes in them
training.py   one run over a stream: a variant and a seed
picture.py    accuracy over time as SVG
__main__.py   makes missing runs, and the page: python -m benchmarks.online
"""
