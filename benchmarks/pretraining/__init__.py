"""Pretraining: its speed beside transformers' and PaddleNLP's (a section of results.md), and what it is good for.

``python -m benchmarks.pretraining`` is the former: each *_engine.py is what a user of that engine would write, with
``LIBRARIES``; ``costs(job)``, which trains a few given batches without dropout and returns the cost of each; and
``train(job)``, which masks and trains the rows as a user would, and returns ``seconds`` and ``last_cost``.
"""
