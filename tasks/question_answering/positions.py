"""Positions of answers that stand for something else."""

NOWHERE = 0
"""The position of [CLS]: the target in windows without the answer."""
UNKNOWN = -1
"""No target: the correct answer is unknown."""
