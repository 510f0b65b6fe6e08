"""A source that a test holds in its hand."""

from onion.errors import DataError
from onion.online.sources.source import Sample


class Line:
    """Samples in a list; a read waits for nothing. ``come`` is called by every read that finds nothing."""

    def __init__(self, samples=(), come=None):
        self.samples, self.come = list(samples), come
        self.position, self.committed, self.closed, self.dry, self.reads = "", "", 0, 0, []

    def read(self, n, timeout):
        self.reads.append((n, timeout))
        begin = int(self.position or 0)
        if begin > len(self.samples):
            raise DataError("the line is shorter than this")
        if begin == len(self.samples) and self.come is not None:
            self.come(self)
        self.dry = self.dry + 1 if begin == len(self.samples) else 0
        if self.dry > 100_000:
            raise AssertionError("nothing comes any more, and somebody waits for it")
        chosen = self.samples[begin : begin + n]
        self.position = str(begin + len(chosen))
        return [Sample(data, str(begin + place)) for place, data in enumerate(chosen, 1)]

    def commit(self, position):
        self.committed = position

    def waiting(self):
        return len(self.samples) - int(self.position or 0)

    def close(self):
        self.closed += 1
