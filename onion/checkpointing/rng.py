"""The random generators of the process - Python's, numpy's, Paddle's - as plain data, and back.

On the CPU of Paddle 2.6 the place in the sequence cannot be read, only the seed: a run resumed there draws other
numbers than one that was not stopped. Paddle 3 and the GPU have no such limit.

Paddle has a generator for each GPU that a process sees. Where a launcher has started a process for each GPU, only that
of its own one counts, and the state of the first process is good for all.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from zlib import crc32

import numpy as np

from onion.host import launch


def capture() -> dict[str, Any]:
    """Return the states of all generators as JSON values. Paddle's are left out while Paddle is not loaded."""
    version, numbers, gauss = random.getstate()
    kind, keys, *rest = np.random.get_state(legacy=True)
    states: dict[str, Any] = {
        "python": [version, list(numbers), gauss],
        "numpy": [kind, np.asarray(keys).tolist(), *rest],
    }
    if "paddle" in sys.modules:
        paddle = sys.modules["paddle"]
        kept = paddle.get_rng_state() if launch.world_size() == 1 else [paddle.get_rng_state()[_own_device()]]
        states["paddle"] = [_plain(state.__getstate__()) for state in kept]
    return states


def restore(states: Mapping[str, Any]) -> None:
    """Put generators back to captured states: all that were captured, or those of some names."""
    if "paddle" in states:  # first: importing Paddle may import rich, which draws from Python's generator
        from onion.device import paddle

        now = paddle().get_rng_state()
        found = [_generator(type(now[0]), plain) for plain in states["paddle"]]
        if launch.world_size() > 1:
            found = [found[0] if device == _own_device() else state for device, state in enumerate(now)]
        paddle().set_rng_state(found)
    if "python" in states:
        version, numbers, gauss = states["python"]
        random.setstate((version, tuple(numbers), gauss))
    if "numpy" in states:
        kind, keys, *rest = states["numpy"]
        np.random.set_state((kind, np.asarray(keys, dtype=np.uint32), *rest))


@contextmanager
def seeded(seed: int, name: str) -> Iterator[None]:
    """Seed all generators by a number and a name for the body; afterwards they are what they were before.

    So the first weights of a network depend on neither what was built before nor on what is built after it:

        with seeded(1, "capital"):
            heads["capital"] = TokenClassifier(encoder, 2)

    Args:
        seed: from 0.
        name: of what is built; each name has numbers of its own.
    """
    from onion.device import paddle

    framework = paddle()
    before = capture()
    number = int(np.random.SeedSequence([seed, crc32(name.encode())]).generate_state(1)[0])
    try:
        random.seed(number)
        np.random.seed(number)
        framework.seed(number)
        yield
    finally:
        restore(before)


def undo_draws(before: Mapping[str, Any]) -> list[str]:
    """Put back what was drawn from since all was captured; return the names of those generators."""
    now = capture()
    drawn = [name for name, state in before.items() if now[name] != state]
    restore({name: before[name] for name in drawn})
    return drawn


def _own_device() -> int:
    """Return the number of the device that this process computes on; 0 for the CPU."""
    return int(sys.modules["paddle"].device.get_device().partition(":")[2] or 0)


def _generator(kind: Any, plain: list[Any]) -> Any:
    # A state that Paddle handed out ignores __setstate__; a fresh object takes it.
    state = kind.__new__(kind)
    state.__setstate__(tuple(plain))
    return state


def _plain(state: tuple[Any, ...]) -> list[Any]:
    """Turn (device, seed, offset, engine) into JSON values. Paddle 2.6 gives no engine: see the module's limits."""
    device, seed, offset, *engine = state
    return [device, seed, offset, *map(list, engine)]
