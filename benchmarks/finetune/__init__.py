"""From a raw file to updated weights, beside transformers' and PaddleNLP's Trainer.

__main__.py    the three trainings, figures and goals: python -m benchmarks.finetune
work.py        what the sides share, and a process with one engine
*_engine.py    what a user of that engine would write: ``LIBRARIES``; ``losses(job)`` trains a few batches in the order
               of the file and without dropout, and returns the loss of each; ``train(job)`` trains as a user would,
               and returns at least ``seconds`` and ``steps``
"""
