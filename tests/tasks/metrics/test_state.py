"""Every metric that counts or collects can be saved in mid-pass, and forgets all when it is reset."""

import json

import pytest

from onion.items.evaluator import SavedMetric
from tests.tasks.metrics.of_tasks import METRICS


@pytest.mark.parametrize("name", METRICS)
def test_a_metric_that_was_saved_in_mid_pass_ends_alike(name):
    make, (first, second), nothing = METRICS[name]
    whole, cut, resumed = make(), make(), make()
    assert isinstance(whole, SavedMetric)
    assert whole.result() == nothing
    for metric in (whole, cut):
        metric.update(*first)
    saved = json.dumps(cut.state_dict(), default=lambda array: array.tolist())
    resumed.load_state_dict(json.loads(saved))
    assert resumed.result() == cut.result() != nothing
    for metric in (whole, resumed):
        metric.update(*second)
    assert resumed.result() == whole.result() != cut.result()
    assert all(type(value) is float for value in whole.result().values())
    whole.reset()
    assert whole.result() == nothing
