"""inference_runner: the onion that predicts, made of the one that trains."""

import paddle
import pytest

from onion import (
    Accumulate,
    CompositionError,
    DataProvider,
    EarlyStopping,
    Evaluator,
    Every,
    Forward,
    Freeze,
    GradientMachine,
    Logger,
    Mailbox,
    MovingAverage,
    NanGuard,
    Observer,
    OutputsToBatch,
    ParameterUpdater,
    Progress,
    Repeat,
    Runner,
    RunnerItem,
    Saver,
    Signals,
    SkipIf,
    Slot,
    SplitOnMemoryError,
    State,
    TaskData,
    TaskSampler,
    Tester,
    TimeLimit,
)
from onion.inference import inference_runner
from onion.testing import Batches, toy_examples, toy_network

DATA = toy_examples(12)


class Count:
    def reset(self):
        self.seen = 0

    def update(self, outputs, batch):
        self.seen += 1

    def result(self):
        return {"seen": self.seen}


class Scale(RunnerItem):
    """A ring of the user's that the network needs in training and in prediction."""

    def on_batch(self, state):
        state.batch = {**state.batch, "x": state.batch["x"] * 2}


def training(network, folder):
    updater = ParameterUpdater(paddle.optimizer.Adam(0.05, parameters=network.parameters()))
    test = Runner(DataProvider(DATA, 4), Scale(), Evaluator(Count()), Forward(network))
    return Runner(
        Progress(),
        Signals(),
        Saver(folder),
        Logger(folder / "log.jsonl"),
        EarlyStopping("tester.seen", 9),
        TimeLimit(1000),
        Tester(test, every=2),
        Slot(Observer(on_batch_end=lambda state: float(state.loss))),
        DataProvider(DATA, 4, shuffle=True),
        Mailbox(),
        Freeze(network, "linear.bias"),
        Repeat(2),
        MovingAverage(network),
        updater,
        NanGuard(),
        Accumulate(2),
        Scale(),
        Evaluator(Count()),
        SplitOnMemoryError(network),
        GradientMachine(network),
    )


def outputs(onion, network=None):
    found = []
    take = Observer(on_batch_end=lambda state: found.append(state.outputs.numpy().tobytes()))
    Runner(DataProvider(DATA, 5), take, onion).run(passes=1)
    return found


def bits(network):
    return [each.numpy().tobytes() for each in network.parameters()]


def test_what_makes_outputs_stays_and_what_watches_or_learns_goes(tmp_path):
    runner = training(toy_network(), tmp_path)
    onion = inference_runner(runner)
    assert [type(item) for item in onion] == [Scale, Forward]
    assert onion[Scale] is runner[Scale]
    assert onion[Forward].network is runner[GradientMachine].network


def test_it_predicts_with_what_was_learned_and_leaves_no_trace(tmp_path):
    network, runner = toy_network(), None
    runner = training(network, tmp_path)
    onion = inference_runner(runner)
    before = outputs(onion)
    runner.run(passes=2)
    after, learned = outputs(onion), bits(network)
    assert after != before
    by_hand = []
    for place in range(0, 12, 5):
        x = paddle.stack([paddle.to_tensor(each["x"]) for each in DATA[place : place + 5]])
        by_hand.append(network({"x": x * 2}).numpy().tobytes())
    assert after == by_hand
    assert bits(network) == learned


def test_predicting_between_passes_does_not_change_the_training(tmp_path):
    networks = [toy_network(), toy_network()]
    runners = [training(network, tmp_path / str(place)) for place, network in enumerate(networks)]
    runners[0].run(passes=2)
    with runners[1]:
        for _ in range(2):
            runners[1].run_pass()
            outputs(inference_runner(runners[1]))
    assert bits(networks[0]) == bits(networks[1])


def test_the_training_onion_stays_as_it_is(tmp_path):
    runner = training(toy_network(), tmp_path)
    drawing, checked = str(runner), [item.name for item in runner]
    inference_runner(runner)
    assert str(runner) == drawing
    assert [item.name for item in runner] == checked


def test_a_test_onion_and_an_inference_onion_serve_too():
    network = toy_network()
    test = Runner(DataProvider(DATA, 4), Evaluator(Count()), Scale(), Forward(network))
    onion = inference_runner(test)
    assert [type(item) for item in onion] == [Scale, Forward]
    assert [type(item) for item in inference_runner(onion)] == [Scale, Forward]
    assert outputs(inference_runner(onion)) == outputs(onion)


def test_a_machine_alone_is_enough():
    network = toy_network()
    assert [type(item) for item in inference_runner(Runner(GradientMachine(network)))] == [Forward]


def test_nested_runners_lose_their_updater():
    network = toy_network()
    updater = ParameterUpdater(paddle.optimizer.SGD(0.1, parameters=network.parameters()))
    onion = inference_runner(Runner(Batches([]), Runner(updater, Scale(), GradientMachine(network), name="inner")))
    assert [item.name for item in onion] == ["inner", "scale", "forward"]


def test_what_stands_outside_a_task_sampler_goes_with_it():
    network = toy_network()
    updater = ParameterUpdater(paddle.optimizer.SGD(0.1, parameters=network.parameters()))
    tasks = TaskSampler({"a": TaskData(DataProvider(DATA))})
    runner = Runner(Observer(initialize=print), tasks, updater, GradientMachine(network))
    assert [type(item) for item in inference_runner(runner)] == [Forward]


def gan(*rings):
    networks = [toy_network(), toy_network()]
    halves = [
        Runner(ParameterUpdater(paddle.optimizer.SGD(0.1, parameters=each.parameters())), GradientMachine(each))
        for each in networks
    ]
    return Runner(DataProvider(DATA), Runner(*halves[0].items, name="critic"), Every(3, halves[1])), networks


def test_two_networks_are_refused_until_one_is_left():
    runner, networks = gan()
    with pytest.raises(CompositionError, match="but here are several networks; remove items") as caught:
        inference_runner(runner)
    assert "critic" in str(caught.value)
    onion = inference_runner(runner.without("critic"))
    assert onion[Forward].network is networks[1]


def test_no_network_is_refused():
    with pytest.raises(CompositionError, match="but here is none"):
        inference_runner(Runner(Batches(1), Observer(initialize=print)))


def test_of_what_brings_data_twice_the_inside_of_the_last_counts():
    network = toy_network()
    runner = Runner(Batches([]), Scale(), Runner(Batches([]), name="again"), GradientMachine(network))
    assert [type(item) for item in inference_runner(runner)] == [Forward]


def test_every_standard_item_says_whether_it_predicts():
    """Whoever adds an item has to think of it; it is written down here."""
    import onion

    stays = {"UseAverage", "Every", "ForTask", "Forward", "MixedPrecision", "Observer", "Signals"}
    brings = {"DataProvider", "TaskSampler"}
    machines = {"GradientMachine"}
    items = {name for name in onion.ITEMS if isinstance(getattr(onion, name), type)}
    items = {name for name in items if issubclass(getattr(onion, name), RunnerItem)}
    assert {name for name in items if getattr(onion, name).keep_for_inference} == stays | brings | machines
    assert {name for name in items if getattr(getattr(onion, name), "provides_data", False)} == brings


def test_every_batch_is_predicted_once_whatever_was_skipped_or_rare_in_training():
    network = toy_network()
    updater = ParameterUpdater(paddle.optimizer.SGD(0.1, parameters=network.parameters()))
    machine = Runner(updater, GradientMachine(network), name="machine")
    runner = Runner(DataProvider(DATA), SkipIf(lambda state: state.next_step % 2), Every(3, machine))
    onion = inference_runner(runner)
    assert [item.name for item in onion] == ["machine", "forward"]
    assert outputs(onion) == outputs(Runner(Forward(network)))


def test_a_student_is_predicted_with_once_its_teacher_is_left_out():
    teacher, student = toy_network(seed=1), toy_network(seed=2)
    updater = ParameterUpdater(paddle.optimizer.SGD(0.1, parameters=student.parameters()))
    runner = Runner(DataProvider(DATA), Forward(teacher), OutputsToBatch("teacher"), updater, GradientMachine(student))
    with pytest.raises(CompositionError, match="several networks"):
        inference_runner(runner)
    onion = inference_runner(runner.without(Forward))
    assert [type(item) for item in onion] == [Forward]
    assert onion[Forward].network is student


def test_the_state_class_stays():
    class Mine(State):
        pass

    network = toy_network()
    onion = inference_runner(Runner(Batches([]), GradientMachine(network), state=Mine))
    assert isinstance(onion.run(passes=0), Mine)


def test_a_machine_of_ones_own_has_to_tell_its_network():
    class Machine(RunnerItem):
        computes_gradients = True

    with pytest.raises(CompositionError, match="machine has no attribute 'network'"):
        inference_runner(Runner(Machine()))
