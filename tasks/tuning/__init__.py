"""Choosing settings: trainings that are compared with each other, each an ordinary run in a folder of its own.

tune.py             tune: a search with Optuna, the job of ``onion tune``
space.py            the values that a search chooses from
study.py            the study: what Optuna proposes, and what becomes of it
results.py          the files with the results of a search
cross_validation.py cross_validate: a training for each fold, the job of ``onion cross-validate``
rate_search.py      find_learning_rate: the range test, the job of ``onion lr-find``
series.py           what they share: the folder of a series of trainings, and a training in it
curve.py            a curve as SVG
"""
