"""Rings and a clock that the tests of several folders put into their runners."""

from onion import Observer, RunnerItem
from onion.testing import PlannedError


class Clock:
    """A time in seconds, which the batches of its rings move on."""

    def __init__(self, now=1000.0):
        self.now = now

    def __call__(self):
        return self.now

    def ring(self, seconds):
        """Return an item whose batches take so long."""
        return Observer(on_batch_begin=lambda state: setattr(self, "now", self.now + seconds))


class Forgive(RunnerItem):
    """Let no PlannedError out of one hook; call a function of the state instead."""

    def __init__(self, hook="on_batch", call=lambda state: None):
        self.call = call
        setattr(self, hook, self.forgive)

    def forgive(self, state):
        try:
            yield
        except PlannedError:
            self.call(state)


class Within(RunnerItem):
    """Run another runner after the batches of some steps; default: of every step."""

    passive = True

    def __init__(self, runner, *steps, with_parent=True):
        self.runner, self.steps, self.with_parent = runner, steps, with_parent

    def on_batch(self, state):
        yield
        if state.step in self.steps or not self.steps:
            self.runner.run(passes=1, parent=state if self.with_parent else None)


class Retry(RunnerItem):
    """Run the inside of a batch again after a planned error."""

    def on_batch(self, state):
        try:
            yield
            return
        except PlannedError:
            pass
        yield


class Watch(Observer):
    """Keep in ``seen`` what a function of the state returns, by default on the way into each batch."""

    def __init__(self, look, at="on_batch_begin"):
        self.seen = []
        super().__init__(**{at: lambda state: self.seen.append(look(state))})


def at(step, call):
    """Return an item that calls a function after the batch of a step."""
    return Observer(on_batch_end=lambda state: state.step == step and call())
