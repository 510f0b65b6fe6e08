"""Which task the next batch is of: strategies for a TaskSampler.

A strategy gives every task a weight; the sampler draws in proportion to the weights. One that always knows which task
is next gives that one alone a weight. To write your own, subclass Strategy and override ``weights``.

    strategy.py   Strategy, and what it is told
    shares.py     MixRatio, Uniform, Temperature, BySize, Weights: a share of the batches for every task
    turns.py      RoundRobin, ByStep: a task at its turn
    by_cost.py    ByCost: what costs much of late comes more often
    choice.py     the lot that is drawn by the weights
    rehearsal.py  whether a strategy would ever finish every target
"""

from onion.sampling.by_cost import ByCost
from onion.sampling.shares import BySize, MixRatio, Temperature, Uniform, Weights
from onion.sampling.strategy import Facts, Fixed, Strategy
from onion.sampling.turns import ByStep, RoundRobin

__all__ = [
    "ByCost",
    "BySize",
    "ByStep",
    "Facts",
    "Fixed",
    "MixRatio",
    "RoundRobin",
    "Strategy",
    "Temperature",
    "Uniform",
    "Weights",
]
