"""An item whose metrics are planned."""

from onion import RunnerItem


class Reporting(RunnerItem):
    """Report planned values of a metric, one a batch; None is no report."""

    def __init__(self, metric, values):
        self.metric, self.values = metric, values

    def on_batch(self, state):
        yield
        if (value := self.values[state.step - 1]) is not None:
            state.report({self.metric: value})
