"""``python -m benchmarks.inference``: raw texts in, numbers out, beside transformers, ONNX Runtime and others.

models.py    the two models, as folders that all sides read
side.py      a process with one engine
engines/     one a file: what a user of that engine would write
work.py      batches and clocks that all of them share
figures.py   what is told of the rounds
"""
