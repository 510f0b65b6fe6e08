"""A model that answers each text with itself, and can be made to wait or to fail."""

from __future__ import annotations

import threading

from onion.errors import DataError
from onion.serving.servable import OTHER, Prepared, Servable
from tests.patience import PATIENCE


class Echo(Servable):
    """Answers a text in capitals; ``open`` lets batches through."""

    kind, task, max_length = OTHER, "echo", 64

    def __init__(self, alone=False, is_open=True):
        self.alone = alone
        self.batches = []
        self.open = threading.Event()
        self.begun = threading.Semaphore(0)
        if is_open:
            self.open.set()

    def prepare(self, given):
        if not isinstance(given, str):
            raise DataError("this model reads texts")
        return Prepared(given, [{"ids": [0] * len(given)}], len(given), len(given), cut=len(given) > self.max_length)

    def prepare_line(self, line):
        return self.prepare(line)

    def answer(self, prepared):
        self.batches.append([each.row for each in prepared])
        self.begun.release()
        assert self.open.wait(PATIENCE)
        if any(each.row == "fail" for each in prepared):
            raise RuntimeError("this text fails")
        return [each.row.upper() for each in prepared]
