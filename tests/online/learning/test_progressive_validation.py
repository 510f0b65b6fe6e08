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
    GradientMachine,
    HookError,
    Observer,
    ParameterUpdater,
    Repeat,
    Runner,
    Saver,
)
from onion.online.learning.delayed_labels import DelayedLabels
from onion.online.learning.progressive_validation import ProgressiveValidation, in_numpy, right
from onion.online.stream.stream_provider import StreamProvider
from onion.testing import Batches, PlannedError, assert_resumes_exactly, toy_examples, toy_network
from tests.abilities import needs_draws_again
from tests.onions.learning_online import LEARNING_ONLINE
from tests.online.lines import Line
from tests.toys import Dropped, bits


def error(outputs, batch):
    return ((outputs - batch["y"]) ** 2)[:, 0]


def sgd(network, rate=0.05):
    return ParameterUpdater(paddle.optimizer.SGD(rate, parameters=network.parameters()))


def learning(network):
    return [sgd(network), GradientMachine(network)]


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
    """A batch whose outputs are measured as these numbers."""
    return {"x": np.array(values, "float32").reshape(-1, 1), "y": np.zeros([len(values), 1], "float32")}


def own(outputs, batch):
    return outputs[:, 0]


def measured(batches, **options):
    """The metrics after each batch, of outputs that are given."""
    network, seen = Given(), []
    test = ProgressiveValidation(network, {"own": own}, **{"every": 1, **options})
    look = Observer(on_batch_end=lambda state: seen.append(dict(state.metrics)))
    state = Runner(look, Batches(batches), test, *learning(network)).run(passes=1)
    return state, seen


# -- predicted, then trained -------------------------------------------------------------------------------------------


def test_a_batch_is_measured_before_the_network_has_learned_it():
    network, told, wanted = toy_network(), [], []
    test = ProgressiveValidation(network, {"error": error}, every=1)

    def before(state):
        outputs = network({"x": paddle.to_tensor(state.batch["x"])}).numpy()
        wanted.append(float(error(outputs, state.batch).mean()))

    by_hand = Observer(on_batch_begin=before)
    look = Observer(on_batch_end=lambda state: told.append(test.latest["error"].mean()))
    Runner(DataProvider(toy_examples(32), 8), look, by_hand, test, *learning(network)).run(passes=1)
    assert told == pytest.approx(wanted, rel=1e-6)
    assert told[-1] < told[0]


def test_the_test_changes_no_bit_of_the_training_and_draws_no_random_number():
    """Though the network has dropout, which is off in a test."""
    ends = []
    for tested in (False, True):
        paddle.seed(4)
        network = Dropped()
        test = [ProgressiveValidation(network, {"error": error})] if tested else []
        Runner(DataProvider(toy_examples(32), 8), *test, *learning(network)).run(passes=2)
        ends.append((bits(network), paddle.get_rng_state()[0].__getstate__()))
    assert ends[0] == ends[1]


def test_it_runs_in_evaluation_mode_without_gradients_and_puts_every_layers_mode_back():
    network, seen = Dropped(), []
    forward = network.forward

    def watched(batch):
        outputs = forward(batch)
        seen.append((network.training, network.dropout.training, network.inner.training, outputs.stop_gradient))
        return outputs

    network.forward = watched
    machine = GradientMachine(network)
    frozen = Observer(on_batch_begin=lambda state: network.inner.eval())
    test = ProgressiveValidation(network, {"error": error})
    Runner(DataProvider(toy_examples(8), 8), frozen, test, sgd(network), machine).run(passes=1)
    assert seen == [(False, False, False, True), (True, True, False, False)]


def test_modes_are_put_back_after_an_error_in_the_test():
    network = toy_network()

    def broken(outputs, batch):
        raise PlannedError

    with pytest.raises(PlannedError):
        Runner(DataProvider(toy_examples(8), 8), ProgressiveValidation(network, {"m": broken}), *learning(network)).run(
            passes=1
        )
    assert network.training


def test_the_default_measure_is_accuracy():
    outputs = np.array([[0.1, 0.9], [3, 2], [0, 1]], "float32")
    batch = {"x": outputs, "labels": np.array([1, 1, 1])}
    network = Given()
    state = Runner(Batches([batch]), ProgressiveValidation(network, every=1), *learning(network)).run(passes=1)
    assert state.metrics == pytest.approx({"progressive.accuracy": 2 / 3, "progressive.overall_accuracy": 2 / 3})
    assert right(outputs, batch).tolist() == [True, False, True]


# -- windows and reports -----------------------------------------------------------------------------------------------


def test_the_window_is_of_samples_and_the_overall_mean_of_all():
    _, seen = measured([scores(1, 2), scores(3), scores(4, 6)], window=3)
    assert [each["progressive.own"] for each in seen] == [1.5, 2, (3 + 4 + 6) / 3]
    assert [each["progressive.overall_own"] for each in seen] == [1.5, 2, 16 / 5]


def test_a_batch_larger_than_the_window_counts_by_its_last_samples():
    state, _ = measured([scores(9, 9, 1, 3)], window=2)
    assert state.metrics == {"progressive.own": 2, "progressive.overall_own": 5.5}


@pytest.mark.parametrize(("every", "reported"), [(2, [None, 2, 2, 4, 4]), ("pass", [None] * 5)])
def test_it_reports_every_so_often(every, reported):
    network, steps = Given(), []
    look = Observer(on_batch_end=lambda state: steps.append(state.reported.get("progressive.own")))
    test = ProgressiveValidation(network, {"own": own}, every=every)
    state = Runner(look, Batches([scores(1)] * 5), test, *learning(network)).run(passes=1)
    assert steps == reported
    assert state.reported["progressive.own"] == (5 if every == "pass" else 4)


def test_without_a_sample_nothing_is_reported():
    network = Given()
    state = Runner(Batches([]), ProgressiveValidation(network, {"own": own}, every="pass"), *learning(network)).run(
        passes=1
    )
    assert state.metrics == {}


def test_latest_is_of_the_batch_under_way_and_not_of_the_one_before():
    network, seen = Given(), []
    test = ProgressiveValidation(network, {"own": own})
    inside = Observer(
        on_batch_begin=lambda state: seen.append({name: each.tolist() for name, each in test.latest.items()})
    )
    Runner(Batches([scores(1, 2), scores(5)]), test, inside, *learning(network)).run(passes=1)
    assert seen == [{"own": [1, 2]}, {"own": [5]}]


def test_what_was_measured_of_the_batch_under_way_is_there_for_others():
    network, seen = Given(), []
    test = ProgressiveValidation(network, {"own": own})
    look = Observer(on_batch_end=lambda state: seen.append(test.of("own")(state).tolist()))
    Runner(Batches([scores(1, 2), scores(5)]), look, test, *learning(network)).run(passes=1)
    assert seen == [[1, 2], [5]]
    with pytest.raises(CompositionError, match="progressive has no measure 'accuracy'; it has own"):
        test.of("accuracy")


def test_several_measures_side_by_side():
    network = Given()
    measures = {"own": own, "twice": lambda outputs, batch: 2 * outputs[:, 0]}
    test = ProgressiveValidation(network, measures, every=1)
    state = Runner(Batches([scores(1, 3)]), test, *learning(network)).run(passes=1)
    assert state.metrics["progressive.own"] == 2
    assert state.metrics["progressive.overall_twice"] == 4


def test_early_stop_and_saver_see_what_it_reports(tmp_path):
    network = Given()
    test = ProgressiveValidation(network, {"own": own}, window=1, every=1)
    batches = Batches([scores(each) for each in (1, 5, 4, 3, 2, 1, 9)])
    saver = Saver(tmp_path, every=100, monitor="progressive.own", keep_last=1)
    stop = EarlyStopping("progressive.own", patience=3)
    state = Runner(saver, stop, batches, test, *learning(network)).run(passes=1)
    assert state.step == 5
    assert saver.state_dict()["best_step"] == 2


def test_outputs_may_be_a_dict_or_a_tuple_and_16_bits_wide():
    tensor = paddle.to_tensor([[1.5]])
    found = in_numpy({"a": (tensor, tensor.astype("bfloat16")), "b": "text"})
    assert found["b"] == "text"
    assert [each.tolist() for each in found["a"]] == [[[1.5]], [[1.5]]]
    assert found["a"][1].dtype == np.float32


def test_a_second_run_begins_anew():
    network = Given()
    test = ProgressiveValidation(network, {"own": own}, every=1)
    runner = Runner(Batches([scores(1), scores(3)]), test, *learning(network))
    first = runner.run(passes=1).metrics
    saved = test.state_dict()
    assert runner.run(passes=1).metrics == first == {"progressive.own": 2, "progressive.overall_own": 2}
    assert test.state_dict()["samples"] == saved["samples"] == 2


@pytest.mark.parametrize("window", [0, -1, 1.5, True, "many"])
def test_a_window_of_no_samples_is_refused(window):
    with pytest.raises(CompositionError, match=r"window must be an integer >= 1, got"):
        ProgressiveValidation(Given(), window=window)


def test_no_measure_is_refused():
    with pytest.raises(CompositionError, match="nothing would be measured"):
        ProgressiveValidation(Given(), {})


def test_a_measure_that_gives_one_number_is_refused():
    network = Given()
    test = ProgressiveValidation(network, {"own": lambda outputs, batch: outputs.mean()})
    with pytest.raises(HookError, match=r"progressive: the measure 'own' gave an array of shape \[\]; .*each sample"):
        Runner(Batches([scores(1)]), test, *learning(network)).run(passes=1)


@needs_draws_again
def test_a_resumed_run_goes_on_in_the_middle_of_the_window(tmp_path):
    kind = LEARNING_ONLINE["progressive test"]
    assert_resumes_exactly(kind.make, tmp_path, passes=kind.passes, cuts=[2, 4, 5])


# -- labels that come later --------------------------------------------------------------------------------------------


def sample(key, value, label=None):
    given = {"id": key, "x": np.array([value], "float32")}
    return given if label is None else {**given, "y": np.array([label], "float32")}


def label(key, value):
    return {"id": key, "y": np.array([value], "float32")}


class Moving(Given):
    """A network that adds to its input how often it was moved."""

    def forward(self, batch):
        return batch["x"] + self.weight

    def loss(self, outputs, batch):
        return -self.weight.sum()


def difference(outputs, batch):
    return outputs[:, 0] - batch["y"][:, 0]


def late(*batches, network=None, outer=(), **options):
    """What a run of such batches comes to: the item, the state, the batches that were trained on."""
    network, trained = network or Moving(), []
    network.weight.set_value(paddle.zeros([1]))
    test = DelayedLabels(network, {"difference": difference}, **{"label": "y", "every": 1, **options})
    inside = Observer(on_batch_begin=lambda state: trained.append(state.batch))
    updater = ParameterUpdater(paddle.optimizer.SGD(1.0, parameters=network.parameters()))
    machine = GradientMachine(network)
    state = Runner(Batches(list(batches)), *outer, test, inside, updater, machine).run(passes=1)
    return test, state, trained


def values(batches):
    return [(batch["x"][:, 0].tolist(), batch["y"][:, 0].tolist()) for batch in batches]


def test_a_sample_is_trained_on_when_its_label_comes_and_measured_by_the_prediction_of_then():
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


def test_all_forms_stand_side_by_side_in_one_batch_and_keep_their_order():
    _, state, trained = late([sample(1, 1), sample(2, 2, 2), label(1, 1), sample(3, 3), sample(4, 4, 4), label(3, 3)])
    assert values(trained) == [([2, 1, 4, 3], [2, 1, 4, 3])]
    assert trained[0].keys() == {"x", "y"}
    assert state.step == 1


def test_a_batch_without_a_label_makes_no_step_and_moves_nothing():
    network = Moving()
    test, state, trained = late([sample("a", 1)], [sample("b", 2)], network=network)
    assert (state.step, trained, network.weight.item()) == (0, [], 0)
    assert test.log_values()["pending"] == 2
    assert test.latest == {}
    assert state.metrics == {}


def test_a_label_that_finds_no_sample_is_counted():
    test, state, _ = late([label("a", 1)], [sample("a", 1)], [label("b", 2), sample(None, 5, 5)])
    assert test.log_values() == {"pending": 1, "dropped": 0, "unmatched": 2}
    assert state.step == 1


def test_a_label_counts_once():
    test, state, _ = late([sample("a", 1), label("a", 1), label("a", 1)])
    assert (state.step, test.log_values()["unmatched"]) == (1, 1)


def test_the_oldest_sample_goes_when_there_is_no_room():
    test, _, trained = late([sample(n, n) for n in range(5)], [label(n, n) for n in range(5)], pending=2)
    assert values(trained) == [([3, 4], [3, 4])]
    assert test.log_values() == {"pending": 0, "dropped": 3, "unmatched": 3}


def test_of_two_samples_with_one_id_the_later_one_is_kept_and_as_the_newest():
    test, _, trained = late(
        [sample("a", 1), sample("b", 2), sample("a", 3), sample("c", 4)], [label("a", 3)], pending=2
    )
    assert values(trained) == [([3], [3])]
    assert test.log_values() == {"pending": 1, "dropped": 1, "unmatched": 0}


def test_a_sample_that_no_label_can_find_is_dropped():
    test, _, _ = late([{"x": np.zeros([1], "float32")}])
    assert test.log_values() == {"pending": 0, "dropped": 1, "unmatched": 0}


def test_texts_and_whole_numbers_are_different_ids():
    _, _, trained = late([sample("1", 1), sample(1, 2)], [label(1, 2)])
    assert values(trained) == [([2], [2])]


def test_a_batch_that_is_run_again_is_joined_once():
    test, state, trained = late([sample("a", 1), label("a", 1)], outer=[Repeat(2)])
    assert len(trained) == 2
    assert trained[0] is trained[1]
    assert state.step == 1
    assert test.log_values()["unmatched"] == 0


def test_the_samples_are_collated_as_the_user_wants_with_labels_and_without():
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


def test_from_a_stream_with_labels_that_come_later():
    line = Line([{"id": n, "x": [float(n)]} for n in range(4)] + [{"id": n, "y": [float(n - 1)]} for n in range(4)])
    network = Given()
    test = DelayedLabels(network, {"difference": difference}, label="y", every=1)
    provider = StreamProvider(line, batch_size=2, max_wait=0, pass_every=8, collate=list)
    state = Runner(provider, test, sgd(network), GradientMachine(network)).run(passes=1)
    assert (state.step, state.metrics["progressive.overall_difference"]) == (2, 1)


@pytest.mark.parametrize("batch", [{"x": 1}, [1, 2], (sample("a", 1),)])
def test_a_batch_that_is_no_list_of_dicts_is_refused(batch):
    with pytest.raises(HookError, match=r"no list of dicts; .*collate=list"):
        late(batch)


@pytest.mark.parametrize("key", [1.5, True, ["a"]])
def test_an_id_that_is_neither_text_nor_whole_number_is_refused(key):
    with pytest.raises(DataError, match=r"the id .* is neither a text nor a whole number"):
        late([sample(key, 1)])


@pytest.mark.parametrize("pending", [0, 2.5, True])
def test_room_for_no_samples_is_refused(pending):
    with pytest.raises(CompositionError, match="pending must be an integer"):
        DelayedLabels(Moving(), pending=pending)


@needs_draws_again
def test_a_resumed_run_still_knows_who_waits_and_what_was_predicted(tmp_path):
    kind = LEARNING_ONLINE["delayed labels"]
    assert_resumes_exactly(kind.make, tmp_path, passes=kind.passes, cuts=[3, 4, 7])


def test_it_does_not_touch_a_test_onion_of_the_same_network():
    """An Evaluator beside it sees the very outputs that it measures."""
    network, sums = toy_network(), []

    class Sum:
        def reset(self): ...

        def update(self, outputs, batch):
            sums.append(float(error(in_numpy(outputs), batch).mean()))

        def result(self):
            return {}

    examples = toy_examples(8)
    Runner(DataProvider(examples, 8), Evaluator(Sum()), Forward(network)).run(passes=1)
    test = ProgressiveValidation(network, {"error": error})
    Runner(DataProvider(examples, 8), test, *learning(network)).run(passes=1)
    assert test.latest["error"].mean() == pytest.approx(sums[0])
