"""Where items stand to each other: each wrong place is refused when the onion is built, and each right one is not."""

import pytest

from onion import (
    CompositionError,
    DataProvider,
    EarlyStopping,
    Evaluator,
    Every,
    ForTask,
    Forward,
    Freeze,
    GradientMachine,
    Logger,
    Mailbox,
    MixedPrecision,
    MovingAverage,
    Observer,
    OutputsToBatch,
    ParameterUpdater,
    Repeat,
    Runner,
    RunnerItem,
    Saver,
    SkipIf,
    TaskData,
    TaskSampler,
    Tester,
    Unfreeze,
)
from onion.engine.placement import Around, Behind, NotInside
from onion.online import ProgressiveValidation, ReplayBuffer
from onion.testing import Batches, toy_examples, toy_network
from tests.items.learning import Mse

# onion comes first, so that it can choose the math library that Paddle loads
# isort: split
import paddle


class Parts:
    """Items over one network."""

    def __init__(self, folder):
        self.network, self.folder = toy_network(), folder
        self.data = DataProvider(toy_examples(8), 4)
        self.updater = ParameterUpdater(paddle.optimizer.SGD(0.1, parameters=self.network.parameters()))
        self.machine = GradientMachine(self.network)
        self.learning = [self.updater, self.machine]
        self.test = Tester(Runner(self.data, Forward(self.network)))
        self.log = Logger(folder / "log")


NEVER = SkipIf(lambda state: False)

WRONG = {
    "the data innermost": (
        lambda at: [*at.learning, at.data],
        "gradient_machine is outside data_provider, which provides the data; move it further in",
    ),
    "the data inside a test's network": (lambda at: [Forward(at.network), at.data], "forward is outside data_prov"),
    "the data inside what skips": (lambda at: [NEVER, at.data, *at.learning], "skip_if is outside data_provider"),
    "the data inside a mailbox": (lambda at: [Mailbox(), at.data], "mailbox is outside data_provider"),
    "the data nested, further in": (
        lambda at: [Runner(*at.learning), Runner(at.data)],
        "gradient_machine is outside data_provider",
    ),
    "a stop inside the test": (
        lambda at: [at.test, EarlyStopping("tester.loss"), at.data, *at.learning],
        r"early_stopping is inside tester, which reports tester\.loss after it, so it would stop a step late",
    ),
    "a stop inside the progressive test": (
        lambda at: [at.data, ProgressiveValidation(at.network), EarlyStopping("progressive.accuracy"), *at.learning],
        "early_stopping is inside progressive, which reports",
    ),
    "a log inside the test": (
        lambda at: [at.test, at.log, at.data, *at.learning],
        "logger is inside tester, which reports its metrics after it",
    ),
    "a log inside an evaluator": (
        lambda at: [Evaluator(Mse()), at.log, at.data, *at.learning],
        "logger is inside evaluator",
    ),
    "a test inside the updater": (
        lambda at: [at.data, at.updater, at.test, at.machine],
        "tester is inside parameter_updater, which moves the weights after it",
    ),
    "a test inside the average": (
        lambda at: [at.data, MovingAverage(at.network), at.test, *at.learning],
        "tester is inside moving_average, which moves the weights after it",
    ),
    "a test inside what repeats": (
        lambda at: [Repeat(2), at.test, at.data, *at.learning],
        "tester is inside repeat, which runs its inside more than once",
    ),
    "a saver inside what repeats": (
        lambda at: [Repeat(2), Saver(at.folder), at.data, *at.learning],
        "saver is inside repeat",
    ),
    "a progressive test of mixed batches": (
        lambda at: [at.data, ReplayBuffer(9), ProgressiveValidation(at.network), *at.learning],
        "progressive is inside replay_buffer, which mixes old samples into the batch",
    ),
    "a skip inside the network": (
        lambda at: [at.data, *at.learning, NEVER],
        r"skip_if keeps batches from the networks inside it, and has none inside it; move it further out \(before grad",
    ),
    "a repeat inside the network": (lambda at: [at.data, *at.learning, Repeat(2)], "repeat runs the networks inside"),
    "a repeat in a runner of its own": (lambda at: [at.data, Runner(Repeat(2)), *at.learning], "repeat runs the net"),
    "old samples inside the network": (
        lambda at: [at.data, *at.learning, ReplayBuffer(9)],
        "replay_buffer mixes old samples into the batches",
    ),
    "a field inside the network": (
        lambda at: [at.data, *at.learning, OutputsToBatch("a")],
        "outputs_to_batch puts a field into",
    ),
    "a freeze inside the network": (
        lambda at: [at.data, *at.learning, Freeze(at.network, "*", until=3)],
        "freeze acts on its way in, on the networks inside it",
    ),
    "an unfreeze inside the network": (
        lambda at: [at.data, *at.learning, Unfreeze(at.network, "*", at=3)],
        "unfreeze acts on its way in",
    ),
    "precision inside a test's network": (
        lambda at: [at.data, Forward(at.network), MixedPrecision()],
        "mixed_precision sets the arithmetic of the networks inside it",
    ),
    "an item for a task of nobody, outside the sampler": (
        lambda at: [ForTask("b", Observer()), TaskSampler({"a": TaskData(at.data)}), *at.learning],
        "for_task is for the task 'b', which task_sampler does not have",
    ),
}


@pytest.mark.parametrize("place", WRONG)
def test_a_wrong_place_is_refused(place, tmp_path):
    compose, says = WRONG[place]
    with pytest.raises(CompositionError, match=f"^{says}"):
        Runner(*compose(Parts(tmp_path)))


RIGHT = {
    "the data alone": lambda at: [Observer(), at.data],
    "a part of an onion": lambda at: [NEVER, Repeat(2), Mailbox()],
    "the data in a runner of its own": lambda at: [Runner(at.data), *at.learning],
    "a stop for another test": lambda at: [
        at.test, EarlyStopping("dev.cost"), Tester(Runner(at.data, Forward(at.network)), name="dev"), at.data,
        *at.learning
    ],
    "held by every": lambda at: [at.data, Every(2, NEVER), Every(3, Repeat(2)), *at.learning],
    "between two networks": lambda at: [at.data, Forward(at.network), OutputsToBatch("a"), Repeat(2), *at.learning],
    "a test between two nested runners": lambda at: [at.data, Runner(*at.learning), at.test],
}  # fmt: skip


@pytest.mark.parametrize("place", RIGHT)
def test_a_right_place_is_not(place, tmp_path):
    Runner(*RIGHT[place](Parts(tmp_path)))


def test_items_of_ones_own_have_abilities_and_rules_like_any_other():
    class Mixing(RunnerItem):
        mixes = True

    class Careful(RunnerItem):
        place_rules = (Behind("mixes", "mixes"), NotInside("mixes", "mixes"), Around(("mixes",), "wants one"))

    with pytest.raises(CompositionError, match=r"^careful is outside mixing, which mixes; move it further in"):
        Runner(Careful(), Mixing())
    with pytest.raises(CompositionError, match=r"^careful is inside mixing, which mixes; move it further out"):
        Runner(Mixing(), Careful())
    with pytest.raises(CompositionError, match=r"^careful wants one, and has none inside it"):
        Runner(Runner(Mixing()), Careful())
    Runner(Careful())


@pytest.mark.parametrize("late", [False, True])
def test_a_stop_that_sees_its_figure_late_says_so(late, caplog):
    """What reports it is an item that declares no names of its figures."""
    items = [EarlyStopping("loss", 9), Observer(on_batch_end=lambda state: state.report({"loss": state.step}))]
    Runner(*(reversed(items) if late else items), Batches(4)).run(passes=1)
    said = "early_stopping: loss was reported at step 1 and seen at step 2; put early_stopping"
    assert [message[: len(said)] for message in caplog.messages] == [said] * late
