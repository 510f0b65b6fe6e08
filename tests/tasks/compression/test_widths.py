"""Several widths in one update, against gradients added up by hand; narrowed tests; resumption; what is refused."""

import numpy as np
import paddle
import pytest

from onion import (
    DataProvider,
    Evaluator,
    Forward,
    GradientMachine,
    MixedPrecision,
    NanGuard,
    Observer,
    OutputsToBatch,
    ParameterUpdater,
    Runner,
    RunnerItem,
    Saver,
    SplitOnMemoryError,
)
from onion.device import to_arrays
from onion.errors import CompositionError
from onion.inference import inference_runner
from onion.models.hidden_states import WithHiddenStates
from onion.models.narrowing import narrow
from onion.tasks.compression.depths import Depths
from onion.tasks.compression.widths import Widths
from onion.tasks.networks.distillation import Distillation, EveryHiddenState, SoftTargets
from onion.testing import Batches, assert_resumes_exactly
from tests.models.helpers import arrays_of, assert_equal_bits, close
from tests.tasks.compression.helpers import DROPPING, batches, classifier, outputs

WIDTHS = [0.5, 1.0, 0.25]


class Seen(RunnerItem):
    """Note the network's size whenever the inside runs."""

    def __init__(self, network):
        self.network, self.sizes = network, []

    def on_batch(self, state):
        config = self.network.encoder.config
        self.sizes.append(
            (config.num_attention_heads, config.num_hidden_layers, len(self.network.encoder.encoder.layers))
        )


class Gradients(RunnerItem):
    """Keep the gradients of a network as they are on the way out."""

    def __init__(self, network):
        self.network = network

    def on_batch(self, state):
        yield
        self.found = {path: each.grad.numpy() for path, each in self.network.named_parameters()}


def narrowed(width):
    network = classifier()
    network.encoder = narrow(network.encoder, width)
    return network


def test_the_inside_runs_once_a_width_the_widest_first():
    network = classifier()
    seen = Seen(network)
    Runner(Batches(batches()[:2]), Widths(WIDTHS, network), seen, Forward(network)).run(passes=1)
    assert [heads for heads, *_ in seen.sizes] == [4, 2, 1] * 2
    assert network.encoder.config == classifier().encoder.config


def test_the_gradients_of_all_widths_are_added_up():
    network, batch = classifier(), batches()[0]
    gradients = Gradients(network)
    Runner(Batches([batch]), gradients, Widths(WIDTHS, network), GradientMachine(network)).run(passes=1)
    wanted = {path: np.zeros(each.shape, np.float32) for path, each in network.named_parameters()}
    for width in WIDTHS:
        alone = narrowed(width)
        alone.loss(alone(batch), batch).backward()
        for path, parameter in alone.named_parameters():
            wanted[path][tuple(slice(size) for size in parameter.shape)] += parameter.grad.numpy()
    for path, found in gradients.found.items():
        close(found, wanted[path])


def test_the_losses_of_all_widths_and_depths_are_added_up():
    network, batch = classifier(), batches()[0]
    losses = []
    watch = Observer(on_batch_end=lambda state: losses.append(float(state.loss)))
    sizes = Widths([1.0, 0.5], network), Depths([4, 2], network)
    Runner(Batches([batch]), watch, *sizes, Forward(network, network.loss)).run(passes=1)
    wanted = 0.0
    for size in ([1.0, 4], [1.0, 2], [0.5, 4], [0.5, 2]):
        alone = Widths(size[:1], network), Depths(size[1:], network)
        Runner(Batches([batch]), watch, *alone, Forward(network, network.loss)).run(passes=1)
        wanted += losses.pop()
    assert losses == pytest.approx([wanted], rel=1e-6)


@pytest.mark.parametrize("spoilt", [4, 2, 1], ids=["widest", "middle", "narrowest"])
def test_a_width_whose_loss_is_not_finite_is_seen(spoilt):
    network = classifier()
    before = arrays_of(network)

    def loss(outputs, batch):
        bad = network.encoder.config.num_attention_heads == spoilt
        return network.loss(outputs, batch) * (np.nan if bad else 1.0)

    optimizer = paddle.optimizer.SGD(0.1, parameters=network.parameters())
    rings = ParameterUpdater(optimizer), NanGuard("skip"), Widths(WIDTHS, network)
    runner = Runner(Batches(batches()[:1]), *rings, GradientMachine(network, loss))
    runner.run(passes=1)
    assert_equal_bits(arrays_of(network), before)
    assert runner[NanGuard].log_values() == {"not_finite": 1}


def test_gradient_checkpointing_goes_along():
    network, seen = classifier(), []
    watch = Observer(on_batch_begin=lambda state: seen.append(network.encoder.gradient_checkpointing))
    runner = Runner(Batches(batches()[:1]), Widths([1.0, 0.5], network), watch, Forward(network))
    network.encoder.gradient_checkpointing = True
    runner.run(passes=1)
    network.encoder.gradient_checkpointing = False
    runner.run(passes=1)
    assert seen == [True, True, False, False]


def test_what_is_beyond_the_widest_does_not_move():
    network = classifier()
    before = arrays_of(network)
    optimizer = paddle.optimizer.SGD(0.1, parameters=network.parameters())
    Runner(Batches(batches()), ParameterUpdater(optimizer), Widths([0.5], network), GradientMachine(network)).run(
        passes=1
    )
    bias = "encoder.encoder.layers.0.linear1.bias"
    half = len(before[bias]) // 2
    now = arrays_of(network)
    assert (now[bias][:half] != before[bias][:half]).all()
    np.testing.assert_array_equal(now[bias][half:], before[bias][half:])


def test_a_test_at_a_width_measures_the_narrowed_network():
    network = classifier()

    class Logits:
        def reset(self):
            self.found = []

        def update(self, outputs, batch):
            self.found.append(outputs.numpy())

        def result(self):
            return {"sum": float(np.concatenate(self.found).sum())}

    metric = Logits()
    Runner(Batches(batches()[:1]), Evaluator(metric), Widths([0.5], network), Forward(network)).run(passes=1)
    close(metric.found[0], outputs(narrowed(0.5)))


def test_what_predicts_has_the_width_of_an_item_with_one_only():
    network, batch = classifier(), batches()[0]
    network.eval()

    def predicted(*items):
        seen = []
        watch = Observer(on_batch_end=lambda state: seen.append(state.outputs.numpy()))
        Runner(Batches([batch]), watch, inference_runner(Runner(*items, Forward(network)))).run(passes=1)
        return seen[0]

    close(predicted(Widths([0.5], network)), outputs(narrowed(0.5)))
    close(predicted(Widths([0.5, 0.25], network)), outputs(network))
    close(predicted(Depths([2], network)), predicted(Widths([1.0], network), Depths([2], network)))
    assert np.abs(predicted(Depths([2], network)) - outputs(network)).max() > 1e-3


def dynabert(depths=(4, 2)):
    """Several widths and depths, taught by the network of each width."""
    teacher, student = classifier(DROPPING), classifier(DROPPING)
    loss = Distillation(student, teacher, SoftTargets(1.0), EveryHiddenState(weight=0.1), labels=0)
    optimizer = paddle.optimizer.AdamW(0.01, parameters=student.parameters())
    return Runner(
        Batches(batches()),
        ParameterUpdater(optimizer),
        Widths([1.0, 0.5], teacher, student),
        Forward(WithHiddenStates(teacher)),
        OutputsToBatch("teacher"),
        Depths(depths, student),
        Seen(student),
        GradientMachine(WithHiddenStates(student), loss),
    )


def test_widths_and_depths_nest():
    runner = dynabert()
    runner.run(passes=1)
    assert runner[Seen].sizes[:4] == [(4, 4, 4), (4, 2, 2), (2, 4, 4), (2, 2, 2)]


def test_an_error_inside_leaves_the_networks_whole():
    runner = dynabert()
    before = runner[Seen].network.encoder

    class Wrong(RunnerItem):
        def on_batch(self, state):
            raise RuntimeError("wrong")

    with pytest.raises(RuntimeError, match="wrong"):
        runner.insert_before(GradientMachine, Wrong()).run(passes=1)
    assert runner[Seen].network.encoder is before
    assert before.config.num_hidden_layers == len(before.encoder.layers) == 4


def test_the_narrow_part_learns_what_the_whole_knows():
    teacher, student = classifier(), classifier()
    loss = Distillation(student, teacher, SoftTargets(1.0), EveryHiddenState(weight=0.1), labels=0)
    optimizer = paddle.optimizer.AdamW(0.001, parameters=student.parameters())
    runner = Runner(
        Batches(batches()),
        Forward(WithHiddenStates(teacher)),
        OutputsToBatch("teacher"),
        ParameterUpdater(optimizer),
        Widths([1.0, 0.5], student),
        GradientMachine(WithHiddenStates(student), loss),
    )

    def distances():
        wanted = outputs(teacher)
        whole = student.encoder
        found = [outputs(student)]
        student.encoder = narrow(whole, 0.5)
        found.append(outputs(student))
        student.encoder = whole
        return [float(np.abs(each - wanted).mean()) for each in found]

    at_first, before = distances()
    runner.run(passes=15)
    whole, narrowed = distances()
    assert at_first < 1e-6
    assert narrowed < before / 2
    assert whole < before / 2


@pytest.mark.parametrize("pieces", [(Widths, [0.5, 1.0]), (Depths, [4, 1])])
def test_a_run_resumes_exactly(pieces, tmp_path):
    kind, sizes = pieces

    def make(folder):
        network = classifier(DROPPING)
        optimizer = paddle.optimizer.AdamW(0.01, parameters=network.parameters())
        return Runner(
            Saver(folder, every=2),
            DataProvider(batches(), 1, collate=lambda rows: rows[0]),
            ParameterUpdater(optimizer),
            kind(sizes, network),
            GradientMachine(network),
        )

    assert_resumes_exactly(make, tmp_path, passes=2, cuts=[3])


def test_depths_leave_the_layers_that_are_evenly_spaced():
    network = classifier()
    layers = list(network.encoder.encoder.layers)
    kept = []

    class Layers(RunnerItem):
        def on_batch(self, state):
            kept.append([layers.index(layer) + 1 for layer in network.encoder.encoder.layers])

    Runner(Batches(batches()[:1]), Depths([1, 3, 4, 2], network), Layers(), Forward(network)).run(passes=1)
    assert kept == [[1, 2, 3, 4], [1, 2, 4], [1, 3], [1]]
    assert_equal_bits(arrays_of(network), arrays_of(classifier()))


def test_a_try_that_failed_leaves_no_gradients_behind():
    class Short(RunnerItem):
        """Lack of memory, behind the first backward pass of a narrow encoder."""

        tries = 0

        def on_batch(self, state):
            yield
            self.tries += 1
            if self.tries == 2:
                raise MemoryError("Out of memory")

    def gradients_of(*more):
        network = classifier()
        gradients = Gradients(network)
        rings = Widths([1.0, 0.5], network), *more, GradientMachine(network)
        optimizer = paddle.optimizer.SGD(0.0, parameters=network.parameters())
        updater = ParameterUpdater(optimizer), SplitOnMemoryError(network), gradients
        Runner(Batches(arrays()[:1]), *updater, *rings).run(passes=1)
        return gradients.found

    plain, again = gradients_of(), gradients_of(Short())
    for path, wanted in plain.items():
        close(again[path], wanted)


def arrays():
    return [{name: to_arrays(value) for name, value in batch.items()} for batch in batches()]


@pytest.mark.parametrize("make", [lambda network: MixedPrecision("float16"), lambda network: NanGuard()])
def test_items_that_use_gradients_go_outside(make):
    network = classifier()
    rings = Widths([1.0, 0.5], network), make(network), GradientMachine(network)
    optimizer = paddle.optimizer.SGD(0.1, parameters=network.parameters())
    with pytest.raises(CompositionError, match="adds up the gradients of all widths on its way out; move it further"):
        Runner(Batches(batches()), ParameterUpdater(optimizer), *rings)


def test_an_updater_goes_outside():
    network = classifier()
    updater = ParameterUpdater(paddle.optimizer.SGD(0.1, parameters=network.parameters()))
    with pytest.raises(CompositionError, match="parameter_updater is inside widths"):
        Runner(Batches(batches()), Widths([0.5], network), updater, GradientMachine(network))


def test_depths_go_inside_widths():
    network = classifier()
    with pytest.raises(CompositionError, match="widths is inside depths; move it further out"):
        Runner(Batches(batches()), Depths([4, 2], network), Widths([1.0, 0.5], network), Forward(network))


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda network: Widths([], network), "Widths needs a list of different numbers"),
        (lambda network: Widths([0.5, 0.5], network), "Widths needs a list of different numbers"),
        (lambda network: Widths([0.5]), "and a network, got .* and 0 networks"),
        (lambda network: Widths([0.5, "1"], network), "Widths needs a list of different numbers"),
        (lambda network: Widths([True], network), "Widths needs a list of different numbers"),
        (lambda network: Widths(0.5, network), "Widths needs a list of different numbers"),
        (lambda network: Depths(2, network), "Depths needs a list of different numbers"),
        (lambda network: Widths([1.5], network), "above 0 and at most 1"),
        (lambda network: Depths([], network), "Depths needs a list of different numbers"),
        (lambda network: Depths([0.5], network), "Depths needs a list of different numbers"),
        (lambda network: Depths([5], network), "5 layers of 4"),
        (lambda network: Depths([0], network), "0 layers of 4"),
    ],
)
def test_sizes_that_are_none(make, told):
    with pytest.raises(CompositionError, match=told):
        make(classifier())
