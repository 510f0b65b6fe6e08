"""From a raw file to updated weights, beside transformers' and PaddleNLP's Trainer.

Each *_engine.py is what a user of that engine would write: ``LIBRARIES``; ``losses(job)`` trains a few batches in the
order of the file and without dropout, and returns the loss of each; ``train(job)`` trains as a user would, and returns
at least ``seconds`` and ``steps``.
"""
