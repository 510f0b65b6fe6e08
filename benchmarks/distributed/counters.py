"""What ranks send each other: bytes and seconds of each call of Paddle's collectives and of the control channel."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import wraps
from time import perf_counter
from typing import Any

from onion.device import paddle
from onion.distributed.channel import Channel

COLLECTIVES, CONTROL = "collectives", "control"
SENDING = ("all_reduce", "broadcast", "send")
RECEIVING = ("recv",)
"""Those that Python calls; the reducer within ``paddle.DataParallel`` calls its own from C++."""


class Counters:
    """Counts from when it is made.

    Attributes:
        calls: kind -> (bytes, seconds) of each call, in order. The bytes are those that this rank gives: the tensor
            that is summed or sent, the message. The seconds include the wait for the others.
    """

    def __init__(self) -> None:
        self.calls: dict[str, list[tuple[int, float]]] = {COLLECTIVES: [], CONTROL: []}
        for name in SENDING:
            self._time(paddle().distributed, name, COLLECTIVES, lambda tensor: tensor.size * tensor.element_size())
        for name in RECEIVING:
            self._time(paddle().distributed, name, COLLECTIVES, lambda tensor: 0)
        self._time(Channel, "exchange", CONTROL, lambda channel, message: len(json.dumps(message)))

    def places(self) -> dict[str, int]:
        """Return how many calls there were of each kind."""
        return {kind: len(calls) for kind, calls in self.calls.items()}

    def _time(self, owner: Any, name: str, kind: str, size: Callable[..., int]) -> None:
        function = getattr(owner, name)

        @wraps(function)
        def timed(*given: Any, **named: Any) -> Any:
            begun = perf_counter()
            found = function(*given, **named)
            seconds = perf_counter() - begun
            self.calls[kind].append((size(*given[: 1 + (kind == CONTROL)]), seconds))
            return found

        setattr(owner, name, timed)
