"""Which task the next batch is of: strategies for a TaskSampler.

A strategy gives every task a weight; the sampler draws in proportion to the weights. One that always knows which task
is next gives that one alone a weight. To write your own, subclass Strategy and override ``weights``.

    strategy.py          Strategy, and what it is told
    proportions.py       MixRatio, Uniform, Temperature, BySize, Weights: a share of the batches for every task
    turns.py             RoundRobin, ByStep: a task at its turn
    by_loss.py           ByLoss: more batches for tasks whose loss falls slowly
    weighted_choice.py   the random choice by weights
    termination.py       whether a strategy would ever finish every target
"""

from onion.multitask.strategies.by_loss import ByLoss
from onion.multitask.strategies.proportions import BySize, MixRatio, Temperature, Uniform, Weights
from onion.multitask.strategies.strategy import Fixed, Strategy, TaskInfo
from onion.multitask.strategies.turns import ByStep, RoundRobin

__all__ = [
    "ByLoss",
    "BySize",
    "ByStep",
    "Fixed",
    "MixRatio",
    "RoundRobin",
    "Strategy",
    "TaskInfo",
    "Temperature",
    "Uniform",
    "Weights",
]
