"""ProgressiveValidation: each batch is predicted before it is trained on; DelayedLabels."""

import numpy as np
import paddle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onion import (
    CompositionError,
    DataError,
    DataProvider,
    EarlyStopping,
    Evaluator,
    Forward,
    HookError,
    Observer,
    Repeat,
    Runner,
    Saver,
)
from onion.online.learning.progressive_validation import DelayedLabels, ProgressiveValidation, in_numpy, right
from onion.online.stream.stream_provider import StreamProvider
from onion.testing import Batches, PlannedError, assert_resumes_exactly, toy_examples, toy_network
from tests.abilities import needs_draws_again
from tests.onions.learning_online import LEARNING_ONLINE
from tests.online.toys import Each, Line, learning
from tests.toys import Dropped, bits


def error(outputs, batch):
    return ((outputs - batch["y"]) ** 2)[:, 0]


class Given(paddle.nn.Layer):
    """A network whose outputs are a field of the batch."""

    def __init__(self):
        super().__init__()
        self.weight = self.create_parameter([1])

    def forward(self, batch):
        return batch["x"] + 0 * self.weight

    def loss(self, outputs, batch):
        return outputs.mean()


def scores(*values):
    """Return a batch whose outputs are measured as these numbers."""
    return {"x": np.array(values, "float32").reshape(-1, 1), "y": np.zeros([len(values), 1], "float32")}


def own(outputs, batch):
    return outputs[:, 0]


def measured(batches, look, measures=None, outer=(), **options):
    """Run over batches whose outputs are given; call ``look(state, test)`` at the end of each."""
    network = Given()
    test = ProgressiveValidation(network, measures or {"own": own}, **{"every": 1, **options})
    watch = Observer(on_batch_end=lambda state: look(state, test))
    return Runner(*outer, watch, Batches(batches), test, *learning(network)).run(passes=1)


def ignore(state, test): ...


# -- predicted, then trained -------------------------------------------------------------------------------------------


def test_a_batch_is_measured_before_the_network_has_learned_it():
    network, found, expected = toy_network(), [], []
    test = ProgressiveValidation(network, {"error": error}, every=1)

    def before(state):
        outputs = network({"x": paddle.to_tensor(state.batch["x"])}).numpy()
        expected.append(float(error(outputs, state.batch).mean()))

    look = Observer(on_batch_begin=before, on_batch_end=lambda state: found.append(test.latest["error"].mean()))
    Runner(DataProvider(toy_examples(32), 8), look, test, *learning(network)).run(passes=1)
    assert found == pytest.approx(expected, rel=1e-6)
    assert found[-1] < found[0]


def test_it_changes_no_bit_of_the_training_and_draws_no_random_number():
    """Although the network has dropout, which is off in a test."""
    ends = []
    for tested in (False, True):
        paddle.seed(4)
        network = Dropped()
        test = [ProgressiveValidation(network, {"error": error})] if tested else []
        Runner(DataProvider(toy_examples(32), 8), *test, *learning(network)).run(passes=2)
        ends.append((bits(network), paddle.get_rng_state()[0].__getstate__()))
    assert ends[0] == ends[1]


def test_it_runs_in_evaluation_mode_without_gradients_and_restores_every_layers_mode():
    network, seen = Dropped(), []
    forward = network.forward

    def watched(batch):
        outputs = forward(batch)
        seen.append((network.training, network.dropout.training, network.inner.training, outputs.stop_gradient))
        return outputs

    network.forward = watched
    frozen = Observer(on_batch_begin=lambda state: network.inner.eval())
    test = ProgressiveValidation(network, {"error": error})
    Runner(DataProvider(toy_examples(8), 8), frozen, test, *learning(network)).run(passes=1)
    assert seen == [(False, False, False, True), (True, True, False, False)]


def test_modes_are_restored_after_an_error_in_the_test():
    network = toy_network()

    def broken(outputs, batch):
        raise PlannedError

    test = ProgressiveValidation(network, {"m": broken})
    with pytest.raises(PlannedError):
        Runner(DataProvider(toy_examples(8), 8), test, *learning(network)).run(passes=1)
    assert network.training


def test_the_default_measure_is_accuracy():
    outputs = np.array([[0.1, 0.9], [3, 2], [0, 1]], "float32")
    batch = {"x": outputs, "labels": np.array([1, 1, 1])}
    state = measured([batch], ignore, {"accuracy": right})
    assert ProgressiveValidation(Given()).measures == {"accuracy": right}
    assert state.metrics == pytest.approx({"progressive.accuracy": 2 / 3, "progressive.overall_accuracy": 2 / 3})
    assert right(outputs, batch).tolist() == [True, False, True]


# -- windows and reports -----------------------------------------------------------------------------------------------


def test_the_window_is_of_samples_and_the_overall_mean_of_all():
    seen = []
    measured([scores(1, 2), scores(3), scores(4, 6)], lambda state, test: seen.append(dict(state.metrics)), window=3)
    assert [each["progressive.own"] for each in seen] == [1.5, 2, (3 + 4 + 6) / 3]
    assert [each["progressive.overall_own"] for each in seen] == [1.5, 2, 16 / 5]


def test_a_batch_larger_than_the_window_counts_by_its_last_samples():
    metrics = measured([scores(9, 9, 1, 3)], ignore, window=2).metrics
    assert metrics == {"progressive.own": 2, "progressive.overall_own": 5.5}


@pytest.mark.parametrize(("every", "reported"), [(2, [None, 2, 2, 4, 4]), ("pass", [None] * 5)])
def test_it_reports_periodically(every, reported):
    steps = []
    state = measured(
        [scores(1)] * 5, lambda state, test: steps.append(state.reported.get("progressive.own")), every=every
    )
    assert steps == reported
    assert state.reported["progressive.own"] == (5 if every == "pass" else 4)


def test_without_a_sample_nothing_is_reported():
    assert measured([], ignore, every="pass").metrics == {}


def test_values_of_the_current_batch_are_available_inside_and_outside():
    network, inside, outside = Given(), [], []
    test = ProgressiveValidation(network, {"own": own})
    look = Observer(on_batch_begin=lambda state: inside.append(test.latest["own"].tolist()))
    watch = Observer(on_batch_end=lambda state: outside.append(test.of("own")(state).tolist()))
    Runner(Batches([scores(1, 2), scores(5)]), watch, test, look, *learning(network)).run(passes=1)
    assert inside == outside == [[1, 2], [5]]
    with pytest.raises(CompositionError, match="progressive has no measure 'accuracy'; it has own"):
        test.of("accuracy")


def test_several_measures_are_reported_together():
    measures = {"own": own, "twice": lambda outputs, batch: 2 * outputs[:, 0]}
    metrics = measured([scores(1, 3)], ignore, measures).metrics
    assert (metrics["progressive.own"], metrics["progressive.overall_twice"]) == (2, 4)


def test_early_stopping_and_saver_see_what_it_reports(tmp_path):
    saver = Saver(tmp_path, every=100, monitor="progressive.own", keep_last=1)
    stop = EarlyStopping("progressive.own", patience=3)
    batches = [scores(each) for each in (1, 5, 4, 3, 2, 1, 9)]
    assert measured(batches, ignore, outer=(saver, stop), window=1).step == 5
    assert saver.state_dict()["best_step"] == 2


def test_outputs_may_be_a_dict_or_a_tuple_and_16_bits_wide():
    tensor = paddle.to_tensor([[1.5]])
    found = in_numpy({"a": (tensor, tensor.astype("bfloat16")), "b": "text"})
    assert found["b"] == "text"
    assert [each.tolist() for each in found["a"]] == [[[1.5]], [[1.5]]]
    assert found["a"][1].dtype == np.float32


def test_a_second_run_starts_again():
    network = Given()
    test = ProgressiveValidation(network, {"own": own}, every=1)
    runner = Runner(Batches([scores(1), scores(3)]), test, *learning(network))
    first = runner.run(passes=1).metrics
    assert runner.run(passes=1).metrics == first == {"progressive.own": 2, "progressive.overall_own": 2}
    assert test.state_dict()["samples"] == 2


@pytest.mark.parametrize(
    ("kind", "settings", "message"),
    [
        *(
            (ProgressiveValidation, {"window": n}, "window must be an integer >= 1, got")
            for n in (0, -1, 1.5, True, "n")
        ),
        (ProgressiveValidation, {"measures": {}}, "nothing would be measured"),
        *((DelayedLabels, {"pending": n}, "pending must be an integer") for n in (0, 2.5, True)),
    ],
)
def test_wrong_settings_are_refused(kind, settings, message):
    with pytest.raises(CompositionError, match=message):
        kind(Given(), **settings)


def test_a_measure_that_returns_one_number_is_refused():
    with pytest.raises(
        HookError, match=r"progressive: the measure 'own' returned an array of shape \[\]; .*each sample"
    ):
        measured([scores(1)], ignore, {"own": lambda outputs, batch: outputs.mean()})


@needs_draws_again
def test_a_resumed_run_continues_in_the_middle_of_the_window(tmp_path):
    kind = LEARNING_ONLINE["progressive test"]
    assert_resumes_exactly(kind.make, tmp_path, passes=kind.passes, cuts=[2, 4, 5])


# -- labels that arrive later ------------------------------------------------------------------------------------------


def sample(key, value, label=None):
    given = {"id": key, "x": np.array([value], "float32")}
    return given if label is None else {**given, "y": np.array([label], "float32")}


def label(key, value):
    return {"id": key, "y": np.array([value], "float32")}


class Moving(Given):
    """A network that adds to its input how often it was updated."""

    def forward(self, batch):
        return batch["x"] + self.weight

    def loss(self, outputs, batch):
        return -self.weight.sum()


def difference(outputs, batch):
    return outputs[:, 0] - batch["y"][:, 0]


def late(*batches, network=None, outer=(), **options):
    """Run over such batches; return the item, the state, and the batches that were trained on."""
    network, trained = network or Moving(), []
    network.weight.set_value(paddle.zeros([1]))
    test = DelayedLabels(network, {"difference": difference}, **{"label": "y", "every": 1, **options})
    inside = Observer(on_batch_begin=lambda state: trained.append(state.batch))
    state = Runner(Batches(list(batches)), *outer, test, inside, *learning(network, 1.0)).run(passes=1)
    return test, state, trained


def values(batches):
    return [(batch["x"][:, 0].tolist(), batch["y"][:, 0].tolist()) for batch in batches]


def test_a_sample_is_trained_on_when_its_label_comes_and_measured_by_its_old_prediction():
    test, state, trained = late(
        [sample("a", 10)],  # predicted with the weight 0
        [sample("b", 20, 20)],  # one step: the weight is 1
        [sample("c", 30)],  # predicted with the weight 1
        [label("a", 10), label("c", 30)],
        window=2,
    )
    assert values(trained) == [([20], [20]), ([10, 30], [10, 30])]
    assert state.step == 2
    assert state.metrics == {"progressive.difference": 0.5, "progressive.overall_difference": pytest.approx(1 / 3)}
    assert test.log_values() == {"pending": 0, "dropped": 0, "unmatched": 0}


def test_all_forms_may_be_mixed_in_one_batch_and_keep_their_order():
    _, state, trained = late([sample(1, 1), sample(2, 2, 2), label(1, 1), sample(3, 3), sample(4, 4, 4), label(3, 3)])
    assert values(trained) == [([2, 1, 4, 3], [2, 1, 4, 3])]
    assert trained[0].keys() == {"x", "y"}
    assert state.step == 1


def test_a_batch_without_a_label_is_no_step_and_updates_nothing():
    network = Moving()
    test, state, trained = late([sample("a", 1)], [sample("b", 2)], network=network)
    assert (state.step, trained, network.weight.item()) == (0, [], 0)
    assert test.log_values()["pending"] == 2
    assert test.latest == {}
    assert state.metrics == {}


@pytest.mark.parametrize(
    ("batches", "options", "expected", "pending", "dropped", "unmatched"),
    [
        pytest.param(
            [[label("a", 1)], [sample("a", 1)], [label("b", 2), sample(None, 5, 5)]],
            *({}, [([5], [5])], 1, 0, 2),
            id="labels without samples",
        ),
        pytest.param([[sample("a", 1), label("a", 1), label("a", 1)]], {}, [([1], [1])], 0, 0, 1, id="a label twice"),
        pytest.param(
            [[sample(n, n) for n in range(5)], [label(n, n) for n in range(5)]],
            *({"pending": 2}, [([3, 4], [3, 4])], 0, 3, 3),
            id="the oldest samples are dropped",
        ),
        pytest.param(
            [[sample("a", 1), sample("b", 2), sample("a", 3), sample("c", 4)], [label("a", 3)]],
            *({"pending": 2}, [([3], [3])], 1, 1, 0),
            id="of two samples with one id the later one is kept, as the newest",
        ),
        pytest.param([[{"x": np.zeros([1], "float32")}]], {}, [], 0, 1, 0, id="a sample without an id"),
        pytest.param([[sample("1", 1), sample(1, 2)], [label(1, 2)]], {}, [([2], [2])], 1, 0, 0, id="'1' is not 1"),
    ],
)
def test_labels_find_their_samples(batches, options, expected, pending, dropped, unmatched):
    test, state, trained = late(*batches, **options)
    assert values(trained) == expected
    assert state.step == len(expected)
    assert test.log_values() == {"pending": pending, "dropped": dropped, "unmatched": unmatched}


def test_a_batch_that_is_run_again_is_joined_once():
    test, state, trained = late([sample("a", 1), label("a", 1)], outer=[Repeat(2)])
    assert len(trained) == 2
    assert trained[0] is trained[1]
    assert (state.step, test.log_values()["unmatched"]) == (1, 0)


def test_samples_are_collated_by_the_users_function_with_labels_and_without():
    seen = []

    def collate(samples):
        seen.append([sorted(each) for each in samples])
        return {name: np.stack([each[name] for each in samples]) for name in samples[0]}

    late([sample("a", 1), sample("b", 2, 2)], [label("a", 1)], collate=collate)
    assert seen == [[["x"], ["x"]], [["x", "y"]], [["x", "y"]]]


@settings(max_examples=25)
@given(st.lists(st.tuples(st.integers(0, 9), st.booleans(), st.booleans()), max_size=25), st.integers(1, 4))
def test_every_label_meets_the_latest_sample_of_its_id(events, size):
    samples, model, wanted = [], {}, []
    for number, (key, has_input, has_label) in enumerate(events):
        if not (has_input or has_label):
            continue
        item = sample(key, number) if has_input else {"id": key}
        samples.append({**item, "y": np.array([number], "float32")} if has_label else item)
        if has_input and has_label:
            wanted.append((number, number))
        elif has_input:
            model[key] = number
        elif key in model:
            wanted.append((model.pop(key), number))
    batches = [samples[begin : begin + size] for begin in range(0, len(samples), size)]
    _, _, trained = late(*batches)
    assert [pair for x, y in values(trained) for pair in zip(x, y, strict=True)] == wanted


def test_labels_that_come_later_in_a_stream():
    line = Line([{"id": n, "x": [float(n)]} for n in range(4)] + [{"id": n, "y": [float(n - 1)]} for n in range(4)])
    network = Given()
    test = DelayedLabels(network, {"difference": difference}, label="y", every=1)
    provider = StreamProvider(line, batch_size=2, max_wait=0, pass_every=8, collate=list)
    state = Runner(provider, test, *learning(network)).run(passes=1)
    assert (state.step, state.metrics["progressive.overall_difference"]) == (2, 1)


@pytest.mark.parametrize(
    ("batch", "error", "message"),
    [
        *(
            (batch, HookError, r"not a list of dicts; .*collate=list")
            for batch in ({"x": 1}, [1, 2], (sample("a", 1),))
        ),
        *(([sample(key, 1)], DataError, "the id .* is neither a text nor an integer") for key in (1.5, True, ["a"])),
    ],
)
def test_wrong_batches_are_refused(batch, error, message):
    with pytest.raises(error, match=message):
        late(batch)


@needs_draws_again
def test_a_resumed_run_still_has_the_pending_samples_and_their_predictions(tmp_path):
    kind = LEARNING_ONLINE["delayed labels"]
    assert_resumes_exactly(kind.make, tmp_path, passes=kind.passes, cuts=[3, 4, 7])


def test_an_evaluator_of_the_same_network_sees_the_outputs_that_it_measures():
    network, sums, examples = toy_network(), [], toy_examples(8)
    metric = Each(lambda outputs, batch: sums.append(float(error(in_numpy(outputs), batch).mean())))
    Runner(DataProvider(examples, 8), Evaluator(metric), Forward(network)).run(passes=1)
    test = ProgressiveValidation(network, {"error": error})
    Runner(DataProvider(examples, 8), test, *learning(network)).run(passes=1)
    assert test.latest["error"].mean() == pytest.approx(sums[0])
