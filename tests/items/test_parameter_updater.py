"""ParameterUpdater: steps the optimizer and the schedule; its state survives into a process with other Paddle names."""

import re
from copy import deepcopy

import numpy as np
import paddle
import pytest

from onion import (
    CheckpointError,
    CompositionError,
    DataProvider,
    Freeze,
    GradientMachine,
    Observer,
    OnionError,
    ParameterUpdater,
    Runner,
    RunnerItem,
    Saver,
    StopGradient,
    schedules,
)
from onion.checkpointing.checkpoint import Checkpoint, folder_of, read, write
from onion.tasks.finetune.clipping import ClipGradByGlobalNorm
from onion.testing import Batches, toy_examples, toy_network
from tests.abilities import known
from tests.items.learning import OPTIMIZERS, Wrapped, examples, learning, plain
from tests.items.learning import updater as sgd
from tests.toys import bits

lr = paddle.optimizer.lr
ADAM = OPTIMIZERS["adam"]
SCHEDULES = {
    "linear warm-up, polynomial decay": lambda: lr.LinearWarmup(lr.PolynomialDecay(0.1, 20), 3, 0.0, 0.1),
    "linear warm-up, lambda decay": lambda: lr.LinearWarmup(lr.LambdaDecay(0.1, lambda n: 0.9**n), 3, 0.0, 0.1),
    "lambda decay": lambda: lr.LambdaDecay(0.1, lambda n: 0.9**n),
    "multiplicative decay": lambda: lr.MultiplicativeDecay(0.1, lambda n: 0.95),
    "cosine annealing": lambda: lr.CosineAnnealingDecay(0.1, 7),
    "step decay": lambda: lr.StepDecay(0.1, 3),
    "one cycle": lambda: lr.OneCycleLR(0.1, 20),
    "noam": lambda: lr.NoamDecay(64, 5),
}


def training(optimizer_of, seed=0, network=None, source=None):
    """Return a runner of a new network (or a given one) and a new optimizer, whose names differ from all before."""
    network = network or toy_network(seed=seed)
    mover = ParameterUpdater(optimizer_of(network.parameters()))
    return Runner(source or examples(24, 8), mover, GradientMachine(network))


def values(runner):
    return bits(runner[GradientMachine].network)


def state_of(runner):
    return plain(runner[ParameterUpdater].state_dict())


def passed_on(runner, folder):
    """Return the states of updater and machine as they come back from the disk."""
    items = {item.name: item.state_dict() for item in (runner[ParameterUpdater], runner[GradientMachine])}
    return read(write(folder, Checkpoint(1, {}, items))).items


def load(runner, items):
    for name, saved in items.items():
        runner[name].load_state_dict(saved)


def check_going_on_in_new_objects(optimizer_of, folder):
    uncut = training(optimizer_of)
    uncut.run(steps=4)
    items = passed_on(uncut, folder)
    uncut.run(steps=4)

    resumed = training(optimizer_of, seed=1)
    assert {p.name for p in uncut[GradientMachine].network.parameters()}.isdisjoint(
        p.name for p in resumed[GradientMachine].network.parameters()
    )
    load(resumed, items)
    assert state_of(resumed).keys() == items["parameter_updater"].keys()
    resumed.run(steps=4)

    assert (values(resumed), state_of(resumed)) == (values(uncut), state_of(uncut))
    return items["parameter_updater"]


@pytest.mark.parametrize("name", known(OPTIMIZERS))
def test_every_optimizer_goes_on_to_the_bit_in_new_objects(name, tmp_path):
    saved = check_going_on_in_new_objects(OPTIMIZERS[name], tmp_path)
    assert not [key for key in saved if re.search(r"_\d+\.[wb]_\d+|_\d+$", key)], "a name that Paddle counts up"
    assert all(key.startswith(("gradient_machine.linear.weight/", "gradient_machine.linear.bias/")) for key in saved)
    assert (name == "sgd") == (not saved)


@pytest.mark.parametrize("name", SCHEDULES)
def test_every_schedule_goes_on_to_the_bit_in_new_objects(name, tmp_path):
    def optimizer_of(parameters):
        return paddle.optimizer.AdamW(SCHEDULES[name](), parameters=parameters)

    assert "LR_Scheduler" in check_going_on_in_new_objects(optimizer_of, tmp_path)


def test_a_schedule_is_stepped_once_a_batch_after_the_update():
    rates = []
    mover, machine = learning(toy_network(), rate=lr.StepDecay(1.0, step_size=2, gamma=0.5))
    watch = Observer(
        on_batch_begin=lambda state: rates.append(mover.log_values()["learning_rate"]),
        on_batch_end=lambda state: rates.append(float(mover.optimizer.get_lr())),
    )
    Runner(examples(24, 8), watch, mover, machine).run(passes=1)
    assert rates == [1.0, 1.0, 1.0, 0.5, 0.5, 0.5]


def test_gradients_are_cleared_after_the_update():
    runner = training(OPTIMIZERS["sgd"])
    runner.run(steps=1)
    gradients = [parameter.grad for parameter in runner[GradientMachine].network.parameters()]
    assert all(gradient is None or not gradient.any() for gradient in gradients)


class OwnMachine(RunnerItem):
    computes_gradients = True


# -- where it may stand ----------------------------------------------------------------------------------------------


def test_an_updater_with_no_machine_inside_is_refused_with_the_drawing_and_the_remedy():
    mover, machine = learning(toy_network())
    with pytest.raises(CompositionError) as caught:
        Runner(DataProvider(toy_examples()), machine, mover)
    said = str(caught.value)
    assert "parameter_updater has no gradient machine inside it; add a GradientMachine further in" in said
    assert "╭ data_provider" in said
    assert said.index("gradient_machine  ") < said.index("parameter_updater  ")


def test_a_machine_in_a_nested_runner_further_in_counts_and_one_in_a_runner_further_out_does_not():
    mover, machine = learning(toy_network())
    Runner(DataProvider(toy_examples()), mover, Runner(machine))
    with pytest.raises(CompositionError, match="no gradient machine"):
        Runner(DataProvider(toy_examples()), Runner(machine), mover)


def test_a_machine_of_ones_own_counts_by_its_class_attribute():
    network = toy_network()
    mover = ParameterUpdater(OPTIMIZERS["momentum"](network.parameters()))
    Runner(Batches(1), mover, OwnMachine())
    network.loss(network({"x": paddle.ones([1, 8])}), {"y": paddle.ones([1, 1])}).backward()
    mover.optimizer.step()
    assert sorted(mover.state_dict()) == ["parameter-0/velocity", "parameter-1/velocity"]


def test_an_optimizer_without_parameters_is_refused():
    said = r"optimizer of parameter_updater has no parameters; give it network\.para"
    with pytest.raises(CompositionError, match=said):
        Runner(Batches(1), sgd(), GradientMachine(toy_network()))


@pytest.mark.parametrize("other_of", [lambda network: toy_network(), deepcopy], ids=["another", "a copy"])
def test_an_optimizer_of_another_network_is_refused(other_of):
    network = toy_network()
    machine, other = GradientMachine(network), other_of(network)
    with pytest.raises(CompositionError, match=r"^parameter_updater updates no parameter of gradient_machine \(ToyNet"):
        Runner(Batches(1), sgd(other), machine)
    said = r"updates no parameter of gradient_machine \(ToyNetwork\), gradient_machine-2"
    with pytest.raises(CompositionError, match=said):
        Runner(Batches(1), sgd(network, other), sgd(toy_network()), machine, GradientMachine(other))


@pytest.mark.parametrize("nested", [False, True])
def test_swapped_optimizers_of_two_networks_are_refused_though_their_costs_reach_either(nested):
    one, other = toy_network(), toy_network()
    parts = [
        (sgd(mover), GradientMachine(network, loss=lambda outputs, batch: one.loss(outputs, batch)))
        for mover, network in ((other, one), (one, other))
    ]
    items = [Runner(*part) for part in parts] if nested else parts[0]
    said = r"no updater around gradient_machine \(ToyNetwork\) updates its parameters: "
    with pytest.raises(CompositionError, match=said):
        Runner(Batches(1), *items)


@pytest.mark.parametrize("loss", [None, lambda outputs, batch: outputs.mean()])
def test_a_second_network_that_nobody_moves_is_refused_unless_it_is_frozen(loss):
    one, other = toy_network(), toy_network()

    def onion(*rings):
        return Runner(Batches(1), *rings, sgd(one), GradientMachine(one), GradientMachine(other, loss=loss))

    for rings in ([], [Freeze(other, "*", until=3)], [StopGradient(other, "*bias")]):
        with pytest.raises(CompositionError, match=r"no updater around gradient_machine-2 \(ToyNetwork\) updates"):
            onion(*rings)
    onion(StopGradient(other))
    onion(Freeze(other, "*"))
    onion(sgd(other))
    for parameter in other.parameters():
        parameter.stop_gradient = True
    onion()


def test_parameters_of_a_loss_function_have_an_updater_of_their_own():
    network, scale = toy_network(), toy_network()
    machine = GradientMachine(network, loss=lambda outputs, batch: scale.loss(outputs * scale.linear.bias, batch))
    Runner(Batches(1), sgd(network), Runner(sgd(scale), machine))


def test_one_network_may_have_two_updaters():
    network = toy_network()
    movers = [ParameterUpdater(OPTIMIZERS["sgd"]([each])) for each in network.parameters()]
    Runner(Batches(1), *movers, GradientMachine(network))


# -- one updater in several onions -------------------------------------------------------------------------------------


def two_networks(folder, *rings):
    networks = toy_network(seed=0), toy_network(seed=1)
    batches = [{name: np.stack([each[name]]) for name in ("x", "y")} for each in toy_examples(4)]
    mover = sgd(*networks, optimizer="Adam")
    return Runner(Saver(folder), *rings, Batches(batches), mover, *map(GradientMachine, networks))


def paths(runner):
    return {key.rpartition("/")[0] for key in runner[ParameterUpdater].state_dict()}


@pytest.mark.parametrize("kept", ["gradient_machine", "gradient_machine-2"])
@pytest.mark.parametrize("when", [0, 2, 4, 6])
def test_an_onion_made_of_the_running_one_changes_no_path_in_its_checkpoints(kept, when, tmp_path):
    dropped = {"gradient_machine": "gradient_machine-2", "gradient_machine-2": "gradient_machine"}[kept]
    derived = []

    def derive(state):
        if state.step == when:
            derived.append(state.runner.without(dropped))

    runner = two_networks(tmp_path, Observer(on_batch_begin=derive))
    if when == 0:
        derived.append(runner.without(dropped))
    runner.run(passes=1)
    runner.run(passes=2)  # loads what the first has saved
    assert len(derived) == 1 + (when == 0)
    resumed = two_networks(tmp_path)
    assert resumed.run(passes=3).step == 12
    assert paths(resumed) == {f"gradient_machine{n}.linear.{kind}" for n in ("", "-2") for kind in ("weight", "bias")}


def test_in_a_run_within_a_run_the_inner_onion_names_the_parameters():
    class Own(GradientMachine):
        pass

    runner = two_networks("unused").without(Saver)
    named = runner.replace("gradient_machine", Own(runner["gradient_machine"].network))
    seen = []

    def look(state):
        seen.append(paths(state.runner))
        if state.parent is None:
            named.run(passes=1, parent=state)
            seen.append(paths(state.runner))

    watched = runner.insert_after(Batches, Observer(on_batch_end=look))
    named = named.insert_after(Batches, Observer(on_batch_end=look))
    watched.run(steps=1)
    assert all("gradient_machine.linear.bias" in each for each in (seen[0], seen[-1]))
    assert len(seen) == 6
    assert all("own.linear.bias" in each for each in seen[1:-1])


# -- awkward states --------------------------------------------------------------------------------------------------


class Free(Wrapped):
    """A network whose temperature is a parameter that it does not own."""

    def __init__(self, seed):
        super().__init__(seed)
        object.__setattr__(self, "outside", paddle.create_parameter([1], "float32"))

    def forward(self, batch):
        return super().forward(batch) * (1 + self.outside)


def test_a_parameter_outside_any_network_is_saved_by_its_place(tmp_path):
    def onion(seed):
        network = Free(seed)
        parameters = [*network.parameters(), network.outside]
        assert len(parameters) == 3
        return training(lambda _: ADAM(parameters), network=network)

    one, other = onion(0), onion(1)
    one.run(steps=2)
    items = passed_on(one, tmp_path)
    assert "parameter-2/moment1" in items["parameter_updater"]
    load(other, items)
    assert state_of(other) == state_of(one)


def test_a_second_optimizer_on_the_same_network_is_restored_though_paddle_counts_its_names_on(tmp_path):
    network = toy_network()
    training(ADAM, network=network).run(steps=2)
    second = training(ADAM, network=network)
    second.run(steps=2)
    resumed = training(ADAM, seed=1)
    load(resumed, passed_on(second, tmp_path))
    second.run(steps=2)
    resumed.run(steps=2)
    assert values(resumed) == values(second)


class TwoHeads(paddle.nn.Layer):
    def __init__(self, seed):
        super().__init__()
        self.heads = paddle.nn.LayerList([toy_network(seed=seed), toy_network(seed=seed + 1)])

    def forward(self, batch):
        return self.heads[batch["head"]](batch)

    def loss(self, outputs, batch):
        return self.heads[0].loss(outputs, batch)


@pytest.mark.parametrize("heads", ["001100", "001000", "001001", "010101", "110010"])
@pytest.mark.parametrize("cut", range(1, 6))
def test_a_head_that_gets_no_gradient_for_a_while_keeps_its_state(heads, cut, tmp_path):
    random = np.random.default_rng(0)
    xs = [random.normal(size=(4, 8)).astype("float32") for _ in heads]
    batches = [{"x": x, "y": np.ones((4, 1), "float32"), "head": int(h)} for x, h in zip(xs, heads, strict=True)]

    def onion(seed, part):
        return training(ADAM, network=TwoHeads(seed), source=Batches(part))

    uncut = onion(0, batches)
    before, between, after = onion(0, batches[:cut]), onion(2, batches[cut : cut + 1]), onion(4, batches[cut + 1 :])
    uncut.run(passes=1)
    before.run(passes=1)
    load(between, passed_on(before, tmp_path / "a"))
    between.run(passes=1)
    load(after, passed_on(between, tmp_path / "b"))
    after.run(passes=int(cut < 5))
    assert (values(after), state_of(after)) == (values(uncut), state_of(uncut))


def test_a_run_can_be_put_back_within_one_process(tmp_path):
    runner = training(ADAM)
    runner.run(steps=2)
    items = passed_on(runner, tmp_path)
    runner.run(steps=3)
    first = values(runner)
    load(runner, items)
    runner.run(steps=3)
    assert values(runner) == first


def with_schedule(parameters):
    return paddle.optimizer.Adam(lr.StepDecay(0.1, 3), parameters=parameters)


EXTRA, MOMENT = "gradient_machine.extra/moment1", "gradient_machine.linear.weight/moment1"


@pytest.mark.parametrize(
    ("saved_by", "loaded_into", "change", "said"),
    [
        (
            OPTIMIZERS["momentum"],
            ADAM,
            {},
            "the saved state of parameter_updater is of another optimizer than Adam.*"
            "gradient_machine.linear.bias/beta1_pow_acc",
        ),
        (ADAM, ADAM, {EXTRA: np.zeros(1, "float32")}, f"unknown parameter: {EXTRA}"),
        (ADAM, ADAM, {MOMENT: np.zeros((3, 1), "float32")}, MOMENT),
        (with_schedule, ADAM, {}, "the checkpoint has a learning rate schedule, but the optimizer has none"),
        (ADAM, with_schedule, {}, "the optimizer has a learning rate schedule, but the checkpoint has none"),
    ],
    ids=["optimizer", "unknown parameter", "shape", "a schedule there", "a schedule here"],
)
def test_the_state_of_something_else_is_refused_and_nothing_is_changed(saved_by, loaded_into, change, said, tmp_path):
    trained, runner = training(saved_by), training(loaded_into, seed=1)
    trained.run(steps=2)
    saved, before = passed_on(trained, tmp_path)["parameter_updater"], values(runner)
    with pytest.raises(CheckpointError, match=said):
        runner[ParameterUpdater].load_state_dict({**saved, **change})
    assert values(runner) == before


def test_before_the_first_step_there_is_only_the_schedule(tmp_path):
    runner = training(with_schedule)
    assert list(runner[ParameterUpdater].state_dict()) == ["LR_Scheduler"]
    other = training(with_schedule)
    load(other, passed_on(runner, tmp_path))
    assert folder_of(tmp_path, 1).is_dir()
    runner.run(steps=2)
    other.run(steps=2)
    assert values(other) == values(runner)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (
            lambda p: paddle.incubate.LookAhead(paddle.optimizer.Adam(0.1, parameters=p), alpha=0.5, k=2),
            r"cannot save LookAhead: it wraps another optimizer \(Adam\), whose",
        ),
        (lambda p: paddle.optimizer.LBFGS(0.1, parameters=p), "LBFGS.step requires a closure.*; use another optimizer"),
    ],
    ids=["an optimizer that wraps another", "an optimizer with a closure"],
)
def test_what_it_cannot_step_or_save_is_refused(make, said):
    with pytest.raises(CompositionError, match=said):
        ParameterUpdater(make(toy_network().parameters()))


# -- another learning rate ---------------------------------------------------------------------------------------------


def test_of_a_schedule_the_peak_is_set_and_the_shape_stays():
    updater = sgd(toy_network(), rate=schedules.linear_warmup_and_decay(1.0, total_steps=10, warmup_ratio=0.0))
    rates = []
    for _ in range(3):
        updater.optimizer._learning_rate.step()
        rates.append(updater.log_values()["learning_rate"])
        updater.set_learning_rate(0.5)
    assert rates == pytest.approx([0.9, 0.4, 0.35])


def test_it_is_saved_once_it_was_set():
    updater, other = sgd(toy_network(), rate=0.1), sgd(toy_network(), rate=0.3)
    assert "learning_rate" not in updater.state_dict()
    updater.set_learning_rate(0.02)
    other.load_state_dict(updater.state_dict())
    assert other.log_values() == {"learning_rate": pytest.approx(0.02)}
    assert other.state_dict()["learning_rate"] == 0.02


def test_a_schedule_that_has_a_rate_of_its_own_is_not_set():
    updater = sgd(toy_network(), rate=lr.CosineAnnealingDecay(0.1, T_max=10))
    with pytest.raises(OnionError, match="CosineAnnealingDecay sets the learning rate by itself; use a schedule of"):
        updater.set_learning_rate(0.2)
    assert updater.log_values() == {"learning_rate": pytest.approx(0.1)}


@pytest.mark.parametrize("rate", [1, 0.02, np.float32(0.5), np.float64(0.5), np.int64(2)])
def test_any_real_number_is_a_learning_rate(rate):
    updater = sgd(toy_network())
    updater.set_learning_rate(rate)
    assert updater.log_values() == {"learning_rate": pytest.approx(float(rate))}
    assert type(updater.state_dict()["learning_rate"]) is float


@pytest.mark.parametrize("rate", [0, -0.1, float("nan"), float("inf"), "0.1", None, True, 1j])
def test_what_is_no_learning_rate_is_refused(rate):
    updater = sgd(toy_network(), rate=0.1)
    with pytest.raises(OnionError, match="must be a positive number"):
        updater.set_learning_rate(rate)
    assert updater.log_values() == {"learning_rate": pytest.approx(0.1)}


def test_the_norm_of_the_gradients_is_a_figure_and_is_the_same_in_a_resumed_run(tmp_path):
    def onion():
        network = toy_network()
        clip = ClipGradByGlobalNorm(1e-3)
        return Runner(Saver(tmp_path), examples(8), *learning(network, optimizer="AdamW", grad_clip=clip))

    runner = onion()
    runner.run(steps=2)
    norm = runner[ParameterUpdater].log_values()["gradient_norm"]
    assert norm > 1e-3
    resumed = onion()
    resumed.run(steps=2)  # nothing is left to do, so it is of the checkpoint
    assert resumed[ParameterUpdater].log_values()["gradient_norm"] == norm


def test_a_clip_that_keeps_no_norm_shows_none():
    runner = Runner(examples(8), *learning(toy_network(), grad_clip=paddle.nn.ClipGradByGlobalNorm(1.0)))
    runner.run(steps=1)
    assert set(runner[ParameterUpdater].log_values()) == {"learning_rate"}
    assert "gradient_norm" not in runner[ParameterUpdater].state_dict()
