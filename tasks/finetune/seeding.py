"""The random generators that a training draws from."""

from __future__ import annotations

import random

import numpy as np
import paddle


def seed_everything(seed: int) -> None:
    """Seed Python's, numpy's and Paddle's random generators."""
    random.seed(seed)
    np.random.seed(seed)
    paddle.seed(seed)
