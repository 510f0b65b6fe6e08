"""Random numbers that depend on the place in the run, and not on the process that draws them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from onion.device import paddle


def generators() -> tuple[Any, ...]:
    """Return the states of all random generators (as objects; ``onion.checkpointing.rng`` has them as plain data)."""
    return paddle().get_rng_state(), random.getstate(), np.random.get_state()


def put_back_generators(states: tuple[Any, ...]) -> None:
    """Put all random generators to states that ``generators`` returned."""
    framework, python, numpy = states
    paddle().set_rng_state(framework)
    random.setstate(python)
    np.random.set_state(numpy)


def seed_generators(seed: int, place: Sequence[int]) -> None:
    """Seed all random generators from a seed and a place, such as (pass, batch, piece)."""
    words = np.random.SeedSequence(seed, spawn_key=tuple(place)).generate_state(3)
    random.seed(int(words[0]))
    np.random.seed(int(words[1]))
    paddle().seed(int(words[2]))
