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
from tests.onions.parts import SquaredError
from tests.toys import bits

DATA = toy_examples(12)


class Scale(RunnerItem):
    """A ring of the user's that the network needs in training and in prediction."""

    def on_batch(self, state):
        state.batch = {**state.batch, "x": state.batch["x"] * 2}


def training(network, folder):
    updater = ParameterUpdater(paddle.optimizer.Adam(0.05, parameters=network.parameters()))
    test = Runner(DataProvider(DATA, 4), Scale(), Evaluator(SquaredError()), Forward(network))
    return Runner(
        Progress(),
        Signals(),
        Saver(folder),
        Logger(folder / "log.jsonl"),
        EarlyStopping("tester.error", 9),
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
        Evaluator(SquaredError()),
        SplitOnMemoryError(network),
        GradientMachine(network),
    )


def outputs(onion, network=None):
    found = []
    take = Observer(on_batch_end=lambda state: found.append(state.outputs.numpy().tobytes()))
    Runner(DataProvider(DATA, 5), take, onion).run(passes=1)
    return found


def updater_of(network):
    return ParameterUpdater(paddle.optimizer.SGD(0.1, parameters=network.parameters()))


def kinds(onion):
    return [type(item) for item in onion]


def test_what_makes_outputs_stays_and_what_watches_or_learns_goes(tmp_path):
    runner = training(toy_network(), tmp_path)
    drawing, names = str(runner), [item.name for item in runner]
    onion = inference_runner(runner)
    assert kinds(onion) == [Scale, Forward]
    assert onion[Scale] is runner[Scale]
    assert onion[Forward].network is runner[GradientMachine].network
    assert (str(runner), [item.name for item in runner]) == (drawing, names)


def test_it_predicts_with_what_was_learned_and_leaves_no_trace(tmp_path):
    network = toy_network()
    runner = training(network, tmp_path)
    onion = inference_runner(runner)
    before = outputs(onion)
    runner.run(passes=2)
    after, learned = outputs(onion), bits(network)
    assert after != before
    stacked = [
        paddle.stack([paddle.to_tensor(each["x"]) for each in DATA[place : place + 5]]) for place in range(0, 12, 5)
    ]
    assert after == [network({"x": x * 2}).numpy().tobytes() for x in stacked]
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


def test_a_test_runner_an_inference_runner_and_a_machine_alone_serve_too():
    network = toy_network()
    onion = inference_runner(Runner(DataProvider(DATA, 4), Evaluator(SquaredError()), Scale(), Forward(network)))
    assert kinds(onion) == kinds(inference_runner(onion)) == [Scale, Forward]
    assert outputs(inference_runner(onion)) == outputs(onion)
    assert kinds(inference_runner(Runner(GradientMachine(network)))) == [Forward]


def test_nested_runners_lose_their_updater():
    network = toy_network()
    inner = Runner(updater_of(network), Scale(), GradientMachine(network), name="inner")
    assert [item.name for item in inference_runner(Runner(Batches([]), inner))] == ["inner", "scale", "forward"]


def test_what_is_outside_a_task_sampler_or_the_last_item_with_data_is_left_out():
    network = toy_network()
    tasks = TaskSampler({"a": TaskData(DataProvider(DATA))})
    runner = Runner(Observer(initialize=print), tasks, updater_of(network), GradientMachine(network))
    assert kinds(inference_runner(runner)) == [Forward]
    runner = Runner(Batches([]), Scale(), Runner(Batches([]), name="again"), GradientMachine(network))
    assert kinds(inference_runner(runner)) == [Forward]


def test_two_networks_are_refused_until_one_is_left():
    one, other = toy_network(), toy_network()
    critic = Runner(updater_of(one), GradientMachine(one), name="critic")
    runner = Runner(DataProvider(DATA), critic, Every(3, Runner(updater_of(other), GradientMachine(other))))
    with pytest.raises(CompositionError, match="but here are several networks; remove items") as caught:
        inference_runner(runner)
    assert "critic" in str(caught.value)
    assert inference_runner(runner.without("critic"))[Forward].network is other


def test_every_standard_item_says_whether_it_predicts():
    """Whoever adds an item has to think of it; it is written down here."""
    import onion

    stays = {"UseAverage", "Every", "ForTask", "Forward", "MixedPrecision", "Observer", "Signals"}
    brings, machines = {"DataProvider", "TaskSampler"}, {"GradientMachine"}
    items = {name: getattr(onion, name) for name in onion.ITEMS}
    items = {name: item for name, item in items.items() if isinstance(item, type) and issubclass(item, RunnerItem)}
    assert {name for name, item in items.items() if item.keep_for_inference} == stays | brings | machines
    assert {name for name, item in items.items() if getattr(item, "provides_data", False)} == brings


def test_every_batch_is_predicted_once_whatever_was_skipped_or_rare_in_training():
    network = toy_network()
    machine = Runner(updater_of(network), GradientMachine(network), name="machine")
    onion = inference_runner(Runner(DataProvider(DATA), SkipIf(lambda state: state.next_step % 2), Every(3, machine)))
    assert [item.name for item in onion] == ["machine", "forward"]
    assert outputs(onion) == outputs(Runner(Forward(network)))


def test_a_student_is_predicted_with_once_its_teacher_is_left_out():
    teacher, student = toy_network(seed=1), toy_network(seed=2)
    lesson = Forward(teacher), OutputsToBatch("teacher")
    runner = Runner(DataProvider(DATA), *lesson, updater_of(student), GradientMachine(student))
    with pytest.raises(CompositionError, match="several networks"):
        inference_runner(runner)
    onion = inference_runner(runner.without(Forward))
    assert kinds(onion) == [Forward]
    assert onion[Forward].network is student


def test_the_state_class_stays_and_a_runner_without_a_network_is_refused():
    class Mine(State):
        pass

    onion = inference_runner(Runner(Batches([]), GradientMachine(toy_network()), state=Mine))
    assert isinstance(onion.run(passes=0), Mine)

    class Machine(RunnerItem):
        computes_gradients = True

    with pytest.raises(CompositionError, match="but here is none"):
        inference_runner(Runner(Batches(1), Observer(initialize=print)))
    with pytest.raises(CompositionError, match="machine has no attribute 'network'"):
        inference_runner(Runner(Machine()))
