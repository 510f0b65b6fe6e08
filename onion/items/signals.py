"""A polite end: the first signal finishes the batch, the second leaves at once."""

from __future__ import annotations

import signal
import threading
from types import FrameType

from onion.item import RunnerItem, Way
from onion.state import State

HANDLED = (signal.SIGINT, signal.SIGTERM)


class Signals(RunnerItem):
    """Answer Ctrl-C and SIGTERM with ``state.stop``: the batch is finished, the rings leave, a Saver outside saves.

    A second one raises KeyboardInterrupt at once. Afterwards the handlers are those of before. Python delivers signals
    to its main thread only, so in another thread this item does nothing; a signal that is ignored stays so.

    After the run ``received`` is the number of the first signal, or None.
    """

    def __init__(self) -> None:
        self.received: int | None = None

    def initialize(self, state: State) -> Way:
        """Install the handlers around the run."""
        self.received = None
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def handle(number: int, frame: FrameType | None) -> None:
            if self.received is not None:
                raise KeyboardInterrupt
            self.received = number
            state.stop(f"received {signal.Signals(number).name}")

        heeded = [number for number in HANDLED if signal.getsignal(number) is not signal.SIG_IGN]  # nohup, for one
        before = {number: signal.signal(number, handle) for number in heeded}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
