"""``python -m benchmarks.finetune``: from a raw file to updated weights, beside transformers' and PaddleNLP's Trainer.

parts.py     the three trainings: files and models, the same for all sides
side.py      a process with one engine
engines/     one a file: what a user of that engine would write
work.py      what all of them share: the clock, the rows of a file
products.py  what the matrix products of a training step take by themselves
figures.py   what is told of the rounds
"""
