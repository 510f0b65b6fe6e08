"""Saver: a run that was cut or killed goes on to the same bits; which checkpoints are kept; what is refused."""

import functools
import json
import math
import random

import numpy as np
import paddle
import pytest

from onion import (
    CheckpointError,
    CompositionError,
    DataProvider,
    EarlyStopping,
    Evaluator,
    Forward,
    GradientMachine,
    Logger,
    Mailbox,
    Observer,
    Runner,
    RunnerItem,
    Saver,
    Tester,
)
from onion.checkpointing import checkpoint
from onion.checkpointing.run_state import best_checkpoint
from onion.testing import Batches, Failing, PlannedError, toy_examples, toy_network
from tests.abilities import needs_draws_again
from tests.items import learning
from tests.items.learning import Mse, examples
from tests.toys import Dropped, bits

# -- onions to be cut --------------------------------------------------------------------------------------------------


class Noise(RunnerItem):
    """Draw from all three generators on the way into passes and batches, and disturb the batch with what comes."""

    def on_pass(self, state):
        self.scale = random.random() + np.random.random() + float(paddle.rand([]))
        yield
        if not state.pass_cut:
            state.report({"pass_noise": random.random()})

    def on_batch(self, state):
        noise = np.random.normal(size=state.batch["x"].shape).astype("float32") * np.float32(random.random())
        state.batch = {**state.batch, "x": state.batch["x"] + noise}


def dice():
    """Return a test that throws dice."""
    return Observer(on_pass_end=lambda state: state.report({"dice": random.random() + np.random.random()}))


def adamw(network):
    schedule = paddle.optimizer.lr.LinearWarmup(paddle.optimizer.lr.PolynomialDecay(0.1, 20), 4, 0.0, 0.1)
    clip = paddle.nn.ClipGradByGlobalNorm(1.0)
    return learning.learning(network, optimizer="AdamW", rate=schedule, grad_clip=clip)


def sgd(network):
    return learning.learning(network)


PASSES, STEPS = 2, 12  # of 22 examples in batches of 4: five full ones and one of two


def trained(network, learns=adamw, **data):
    return [examples(22, **data), *learns(network)]


def saved(folder, log, **settings):
    return [Saver(folder, **settings), Logger(folder / "metrics.jsonl", log)]


def measuring(network, *items):
    return Runner(examples(6), Evaluator(Mse()), *items, Forward(network))


def plain(folder, *extra):
    return Runner(Saver(folder, every=3), *extra, *trained(toy_network(), sgd))


def dropout(folder, *extra):
    return Runner(*saved(folder, 2, every=5), *extra, *trained(Dropped(), shuffle=True))


def everything(folder, *extra):
    network = Dropped()
    return Runner(
        *saved(folder, 2, every=4, monitor="tester.mse", mode="min", keep_last=1),
        EarlyStopping("tester.mse", patience=3, mode="min"),
        *extra,
        Tester(measuring(network, dice()), every=3),
        Tester(measuring(network, dice()), name="end"),
        Noise(),
        *trained(network, shuffle=True, prefetch=2),
    )


def streamed(folder, *extra):
    network, data = toy_network(), DataProvider(lambda: iter(toy_examples(22)), 4, prefetch=0)
    return Runner(*saved(folder, 1, every=3), *extra, Tester(measuring(network, dice())), data, *adamw(network))


KINDS = [plain, dropout, everything, streamed]


def seed(number):
    random.seed(number)
    np.random.seed(number)
    paddle.seed(number)


def begun(kind, folder, *extra):
    """Build an onion as a script would that seeds everything at its top."""
    seed(5)
    return kind(folder, *extra)


def begun_otherwise(kind, folder):
    """Build the same onion from other seeds and other weights, so that everything has to come from the checkpoint."""
    runner = begun(kind, folder)
    seed(99)
    for machine in runner.all(GradientMachine):
        for parameter in machine.network.parameters():
            parameter.set_value(paddle.rand(parameter.shape))
    return runner


def plain_state(item):
    """Return what an item saves, without how long it took."""
    state = learning.plain(item.state_dict())
    return {key: value for key, value in state.items() if key not in ("seconds", "offset")}


def timeless(folder):
    """Return the rows of the log, if there is one, without how long they took."""
    path = folder / "metrics.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return [{key: value for key, value in row.items() if key != "seconds"} for row in rows]


def outcome(runner, state, folder):
    """Return all that has to be the same, to the bit; the last checkpoint tells of the generators."""
    saver = runner[Saver]
    return {
        "items": {item.name: plain_state(item) for item in runner.walk() if item is not saver},
        "best": saver.state_dict(),
        "counters": (state.pass_id, state.batch_id, state.step),
        "metrics": (state.metrics, state.reported),
        "log": timeless(folder),
        "checkpoint": checkpoint.newest(folder).run,
    }


@functools.cache
def uncut(kind, place):
    folder = place / "uncut"
    runner = begun(kind, folder)
    return outcome(runner, runner.run(passes=PASSES), folder)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return functools.cache(lambda kind: tmp_path_factory.mktemp(kind.__name__))


@pytest.fixture
def expected(kind, place):
    return uncut(kind, place(kind))


def check_same(runner, folder, expected, state=None):
    """Run to the end, if that was not done; all comes out as expected."""
    there = outcome(runner, state or runner.run(passes=PASSES), folder)
    for name, value in expected.items():
        assert there[name] == value, name


@needs_draws_again
@pytest.mark.parametrize("kind", KINDS)
def test_a_run_cut_after_every_single_step_ends_with_the_same_bits(kind, expected, tmp_path):
    begun(kind, tmp_path).run(passes=PASSES, steps=1)
    for step in range(2, STEPS + 1):
        runner = begun_otherwise(kind, tmp_path)
        state = runner.run(passes=PASSES, steps=step)
    if kind is streamed:  # only one more batch would tell that its last batch was the last
        runner, state = begun_otherwise(kind, tmp_path), None
    check_same(runner, tmp_path, expected, state)


KILLS = [
    *(("on_pass", "out", step) for step in (0, 6)),
    *(pytest.param("on_batch", way, n, marks=pytest.mark.slow) for way in ("in", "out") for n in range(STEPS)),
]


@needs_draws_again
@pytest.mark.parametrize(("hook", "way", "step"), KILLS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_run_killed_by_an_error_goes_on_from_its_checkpoint_to_the_same_bits(
    kind, hook, way, step, expected, tmp_path
):
    with pytest.raises(PlannedError):
        begun(kind, tmp_path, Failing(hook, way, step)).run(passes=PASSES)
    # Without a checkpoint the script begins again, with its own seeds.
    resumed = begun_otherwise(kind, tmp_path) if checkpoint.steps_in(tmp_path) else begun(kind, tmp_path)
    check_same(resumed, tmp_path, expected)


@pytest.mark.parametrize("kind", KINDS)
def test_a_finished_run_that_is_started_again_does_nothing(kind, tmp_path):
    def files():
        return {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}

    begun(kind, tmp_path).run(passes=PASSES)
    before = files()
    state = begun_otherwise(kind, tmp_path).run(passes=PASSES)
    assert files() == before
    assert state.step == checkpoint.newest(tmp_path).step


@pytest.mark.parametrize(
    ("before", "again", "complete"),
    [
        ({"passes": 2}, {"passes": 2}, True),
        ({"passes": 2}, {"steps": 3}, True),
        ({"passes": 1}, {"passes": 2}, False),
        ({"steps": 3}, {"passes": 9, "steps": 3}, True),
        ({"steps": 3}, {"passes": 9, "steps": 4}, False),
    ],
)
def test_a_run_that_has_all_that_is_asked_for_says_so(before, again, complete, tmp_path, caplog):
    numbers(tmp_path, 4).run(**before)
    with caplog.at_level("INFO", "onion"):
        numbers(tmp_path, 4).run(**again)
    (told,) = [message for message in caplog.messages if message.startswith("resumed from step")]
    assert told.endswith("; it has all that is asked for, so nothing is trained") == complete


def run_again(runner, folder):
    seed(99)
    return runner, None


def run_by_hand(runner, folder):
    with begun_otherwise(dropout, folder) as resumed:
        resumed.run_pass()
        return resumed, resumed.run_pass()


@needs_draws_again
@pytest.mark.parametrize(
    ("kind", "limits", "goes_on"),
    [
        (everything, {"passes": 1}, lambda runner, folder: (begun_otherwise(everything, folder), None)),
        (dropout, {"passes": PASSES, "steps": 4}, run_again),
        (dropout, {"passes": PASSES, "steps": 4}, run_by_hand),
    ],
    ids=["more passes", "the same runner", "with runner"],
)
def test_it_goes_on_however_the_run_is_started_again(kind, limits, goes_on, expected, tmp_path):
    runner = begun(kind, tmp_path)
    runner.run(**limits)
    resumed, state = goes_on(runner, tmp_path)
    check_same(resumed, tmp_path, expected, state)


# -- which checkpoints are written and kept --------------------------------------------------------------------------


def metric(values):
    """Return an item that reports planned values of ``value``, one a batch, and None for no report."""

    def report(state):
        if (value := values[state.step - 1]) is not None:
            state.report({"value": value})

    return Observer(on_batch_end=report)


def numbers(folder, count, *items, **settings):
    return Runner(Saver(folder, **settings), *items, Batches(count))


def steps(folder):
    return checkpoint.steps_in(folder)


def counters(folder):
    return tuple(checkpoint.newest(folder).run["counters"].values())


def test_the_folder_of_a_checkpoint_looks_as_documented(tmp_path):
    begun(everything, tmp_path / "deep" / "out").run(steps=4)
    folder = tmp_path / "deep" / "out"
    assert sorted(path.name for path in folder.iterdir()) == ["metrics.jsonl", "step-00000003", "step-00000004"]
    path = folder / "step-00000004"
    assert sorted(each.name for each in path.iterdir()) == [
        "gradient_machine.safetensors",
        "manifest.json",
        "parameter_updater.safetensors",
        "state.json",
    ]
    state = json.loads((path / "state.json").read_text())
    assert state["run"]["counters"] == {"pass_id": 0, "batch_id": 4, "step": 4}
    assert state["run"]["metrics"].keys() == {"tester.mse", "tester.dice"}
    assert state["run"]["reported"] == {"tester.mse": 3, "tester.dice": 3}
    assert state["run"]["generators"].keys() == {"python", "numpy", "paddle"}
    assert list(state["items"]) == [
        "saver",
        "logger",
        "early_stopping",
        "data_provider",
        "parameter_updater",
        "gradient_machine",
    ]
    assert state["items"]["data_provider"] == {"batch": 4, "examples": 16}
    assert json.loads((path / "manifest.json").read_text()).keys() == {"format", "step", "files"}


@pytest.mark.parametrize(
    ("settings", "moment", "values", "passes", "seen", "kept"),
    [
        ({"every": 2}, "on_batch_begin", [None] * 5, 1, [[], [], [2], [2], [2, 4]], [2, 4, 5]),
        ({}, "on_pass_begin", [None] * 9, 3, [[], [3], [3, 6]], [3, 6, 9]),
        ({"every": 100, "monitor": "value"}, "on_batch_begin", [1, 1, 0, 2], 1, [[], [1], [1], [1]], [1, 4]),
    ],
    ids=["every nth step and the end", "every pass", "better values"],
)
def test_what_is_asked_for_is_saved_and_no_more(settings, moment, values, passes, seen, kept, tmp_path):
    there = []
    watch = Observer(**{moment: lambda state: there.append(steps(tmp_path))})
    numbers(tmp_path, len(values) // passes, watch, metric(values), keep_last=9, **settings).run(passes=passes)
    assert there == seen
    assert steps(tmp_path) == kept
    assert counters(tmp_path) == (passes, 0, len(values))


@pytest.mark.parametrize(
    ("stop_at", "limits", "counted"), [(None, {"steps": 3}, (0, 3, 3)), (2, {"passes": 1}, (1, 0, 2))]
)
def test_a_cut_pass_is_saved_as_cut_and_one_that_an_item_ended_as_over(stop_at, limits, counted, tmp_path):
    stop = Observer(on_batch_end=lambda state: state.step == stop_at and state.stop_pass("enough"))
    numbers(tmp_path, 5, stop).run(**limits)
    assert counters(tmp_path) == counted


def test_after_the_last_batch_of_a_pass_what_happens_on_its_way_out_is_saved_too(tmp_path):
    report = Observer(on_pass_end=lambda state: state.report({"at_the_end": state.step}))
    seen = []
    watch = Observer(on_pass_begin=lambda state: seen.append(checkpoint.newest(tmp_path)))
    Runner(Saver(tmp_path, every=2), watch, report, Batches(4)).run(passes=2)
    assert seen[1].run["metrics"] == {"at_the_end": 4}
    assert seen[1].run["counters"] == {"pass_id": 1, "batch_id": 0, "step": 4}


NAN = math.nan


@pytest.mark.parametrize(
    ("values", "settings", "kept", "best"),
    [
        ([None] * 7, {"every": 1}, [7], 7),
        ([None] * 7, {"every": 1, "keep_last": 2}, [6, 7], 7),
        ([None] * 7, {"every": 1, "keep_last": 3}, [5, 6, 7], 7),
        ([5, 1, 9, 2, 9, None, 3], {"monitor": "value"}, [3, 7], 3),
        ([5, 1, 9, 2, 9, None, 3], {"monitor": "value", "mode": "min"}, [2, 7], 2),
        ([NAN, 1.0, NAN, 0.5], {"monitor": "value"}, [2, 4], 2),
        ([NAN] * 4, {"monitor": "value", "every": 1}, [4], 4),
        ([None] * 3, {"monitor": "value"}, [3], 3),
    ],
)
def test_the_newest_and_the_best_are_kept(values, settings, kept, best, tmp_path):
    settings = {"every": 100, "keep_last": 1, **settings}
    numbers(tmp_path, len(values), metric(values), **settings).run(passes=1)
    assert steps(tmp_path) == kept
    assert best_checkpoint(tmp_path).step == best
    assert checkpoint.newest(tmp_path).step == len(values)


def test_a_best_that_nothing_reports_is_told_once_where_others_are(tmp_path, caplog):
    numbers(tmp_path, 3, metric([1, 2, 3] * 2), every=100, keep_last=1, monitor="valeu").run(passes=2)
    assert caplog.messages == ["saver: nothing has reported 'valeu'; there is value"]


def test_the_best_at_the_end_of_a_pass_is_saved(tmp_path):
    values = iter([1.0, 5.0, 2.0])
    report = Observer(on_pass_end=lambda state: state.report({"value": next(values)}))
    numbers(tmp_path, 2, report, every=100, keep_last=1, monitor="value").run(passes=3)
    assert steps(tmp_path) == [4, 6]
    assert best_checkpoint(tmp_path).run["counters"] == {"pass_id": 2, "batch_id": 0, "step": 4}


def test_the_best_so_far_stays_the_best_after_a_resumption(tmp_path):
    for limits, kept in (({"steps": 3}, [1, 3]), ({"steps": 5}, [1, 5]), ({"passes": 1}, [6, 7])):
        saver, data = Saver(tmp_path, every=100, keep_last=1, monitor="value"), DataProvider(range(7), 1, prefetch=0)
        Runner(saver, metric([5, 1, 2, 3, 4, 6, 1]), data).run(**limits)
        assert steps(tmp_path) == kept


def test_no_checkpoint_of_a_folder_that_has_none_says_to_train_first(tmp_path):
    with pytest.raises(CheckpointError, match="holds no checkpoint; train first"):
        best_checkpoint(tmp_path)


def test_a_run_of_no_step_is_saved_once_and_not_kept_for_ever(tmp_path):
    numbers(tmp_path, 5, every=1, keep_last=1).run(steps=0)
    assert steps(tmp_path) == [0]
    numbers(tmp_path, 5, every=1, keep_last=1).run(steps=3)
    assert steps(tmp_path) == [3]


# -- saved by a letter -------------------------------------------------------------------------------------------------


def lettered(folder, rate=None, *letters, every=5, at=4):
    """Return an onion that posts letters in a batch: one that sets the rate, and one for each of the given kinds."""
    updater, machine = learning.learning(toy_network(), optimizer="Adam")
    saver, mailbox = Saver(folder, every=every, keep_last=9), Mailbox()
    kinds = {"save": saver.save, "stop": lambda state: state.stop("enough")}

    def post(state):
        if state.step == at:
            given = [] if rate is None else [lambda state: updater.set_learning_rate(rate)]
            answers.extend(map(mailbox.post, [*given, *(kinds[letter] for letter in letters)]))

    answers = []
    return Runner(saver, examples(64, 8), mailbox, Observer(on_batch_begin=post), updater, machine), answers


def kept_rate(folder):
    return checkpoint.newest(folder).items["parameter_updater"].get("learning_rate")


def check_goes_on(folder):
    """A run that goes on comes to what one comes to whose rate was set then."""
    resumed, uncut = lettered(folder)[0], lettered(folder / "uncut", 0.001)[0]
    for each in (resumed, uncut):
        each.run(passes=1)
    assert network_bits(resumed) == network_bits(uncut)


def test_a_letter_that_saves_replaces_the_checkpoint_of_the_same_step(tmp_path):
    runner, answers = lettered(tmp_path, 0.001, "save")
    with pytest.raises(PlannedError):
        runner.insert_after(DataProvider, Failing("on_batch", step=7)).run(passes=1)
    assert answers[-1].result(0) is True
    assert steps(tmp_path) == [5]
    assert kept_rate(tmp_path) == 0.001
    check_goes_on(tmp_path)


def network_bits(runner):
    return bits(runner[GradientMachine].network)


def test_a_rate_that_was_set_after_the_newest_checkpoint_is_saved_at_the_end(tmp_path):
    runner, _ = lettered(tmp_path, 0.001, "stop")
    assert runner.run(passes=1).step == 5
    assert kept_rate(tmp_path) == 0.001
    assert counters(tmp_path) == (0, 5, 5)
    check_goes_on(tmp_path)


def test_what_is_asked_for_before_a_pass_and_stopped_there_is_saved_at_the_end(tmp_path):
    runner, _ = lettered(tmp_path, every="pass")
    bias = runner[GradientMachine].network.linear.bias

    def post(state):
        if state.pass_id == 1:
            for letter in (lambda _: bias.set_value(paddle.full([1], 7.0)), runner[Saver].save, lambda s: s.stop("")):
                runner[Mailbox].post(letter)

    assert runner.insert_after(DataProvider, Observer(on_pass_begin=post)).run(passes=2).step == 8
    assert steps(tmp_path) == [8]
    assert checkpoint.newest(tmp_path).items["gradient_machine"]["linear.bias"].tolist() == [7.0]


def written(folder):
    """Return what tells one folder of a checkpoint from another that takes its place."""
    return checkpoint.folder_of(folder, 4).stat().st_ino


def test_the_end_is_not_written_twice_for_nothing(tmp_path):
    seen = []
    runner, _ = lettered(tmp_path, 0.001, every=2, at=1)
    runner.insert_after(DataProvider, Observer(on_pass_end=lambda state: seen.append(written(tmp_path)))).run(steps=4)
    lettered(tmp_path)[0].run(steps=4)
    assert kept_rate(tmp_path) == 0.001
    assert seen == [written(tmp_path)]


@pytest.mark.parametrize(("letters", "there"), [(["save"], [1]), (["save", "stop"], [0])])
def test_a_save_that_is_asked_for_before_the_first_batch_waits_for_it_or_for_the_end(letters, there, tmp_path):
    runner, seen = lettered(tmp_path, every=100)[0], []
    asked = runner[Mailbox].post(runner[Saver].save)
    if "stop" in letters:
        runner[Mailbox].post(lambda state: state.stop("enough"))
    watch = Observer(
        on_batch_begin=lambda state: state.step == 1 and seen.append(steps(tmp_path)),
        on_pass_end=lambda state: seen.append(steps(tmp_path)),
    )
    runner.insert_after(DataProvider, watch).run(passes=1)
    assert asked.result(0) is False
    assert seen[0] == ([] if "stop" in letters else there)
    assert there[0] in steps(tmp_path)


# -- damage ----------------------------------------------------------------------------------------------------------


def damage(folder, step):
    (checkpoint.folder_of(folder, step) / "state.json").write_text("{")


@pytest.mark.parametrize("kind", [plain])
@pytest.mark.parametrize("keep", [1, 2])
def test_a_damaged_newest_checkpoint_is_passed_over_and_never_pushes_out_a_whole_one(
    keep, kind, expected, tmp_path, caplog
):
    begun(plain, tmp_path).run(passes=PASSES, steps=8)
    assert steps(tmp_path) == [6, 8]
    damage(tmp_path, 8)

    def onion(*extra):
        runner = begun_otherwise(plain, tmp_path)
        return runner.replace(Saver, Saver(tmp_path, every=1, keep_last=keep)).insert_after(Saver, *extra)

    with pytest.raises(PlannedError):
        onion(Failing("on_batch", "in", 7)).run(passes=PASSES)
    assert "skipped a checkpoint" in caplog.text
    assert steps(tmp_path) == [6, 7, 8][3 - keep - 1 :]
    assert checkpoint.newest(tmp_path).step == 7

    check_same(onion(), tmp_path, {"items": expected["items"]})
    assert steps(tmp_path) == [11, 12][-keep:]


def test_if_no_checkpoint_is_whole_the_run_does_not_begin(tmp_path):
    numbers(tmp_path, 2).run(passes=1)
    damage(tmp_path, 2)
    begun_batches = []
    with pytest.raises(CheckpointError, match=r"none of the 1 checkpoints in .* is valid"):
        numbers(tmp_path, 2, Observer(on_batch_begin=begun_batches.append)).run(passes=1)
    assert begun_batches == []
    assert steps(tmp_path) == [2]


# -- refusals --------------------------------------------------------------------------------------------------------


def test_a_used_folder_is_refused_if_the_run_is_not_to_be_resumed(tmp_path):
    numbers(tmp_path, 2, resume=False).run(passes=1)
    with pytest.raises(CheckpointError, match=r"holds another run \(step 2\); choose an empty folder"):
        numbers(tmp_path, 2, resume=False).run(passes=2)
    assert steps(tmp_path) == [2]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (
            lambda folder: begun_otherwise(plain, folder).insert_after(Saver, EarlyStopping("a")),
            r"holds another run \(there is no early_stopping \(EarlyStopping\) there\)"
            "; choose an empty folder, or resume it",
        ),
        (
            lambda folder: Runner(Saver(folder), *trained(toy_network(inputs=4), sgd)),
            r"linear\.weight is float32 \[8, 1\], the network's is float32 \[4, 1\]",
        ),
    ],
    ids=["another item", "another shape"],
)
def test_the_checkpoint_of_another_onion_is_refused_before_anything_is_changed(make, said, tmp_path):
    begun(plain, tmp_path).run(steps=2)
    runner = make(tmp_path)
    before = network_bits(runner)
    with pytest.raises(CheckpointError, match=said):
        runner.run(steps=3)
    assert network_bits(runner) == before
    assert steps(tmp_path) == [2]


def test_a_saver_inside_something_it_has_to_save_is_refused_with_the_drawing(tmp_path):
    data, updater, machine = trained(toy_network())
    with pytest.raises(CompositionError) as caught:
        Runner(data, Logger(tmp_path / "log"), Saver(tmp_path / "out"), updater, machine)
    said = str(caught.value)
    assert "saver is inside data_provider, logger, which it has to save; move it further out." in said
    assert "╭ data_provider" in said
    assert "╭ saver" in said


def test_a_saver_may_be_inside_items_without_state_but_not_in_a_runner_beside_stateful_ones(tmp_path):
    Runner(Observer(), Failing("on_batch"), Saver(tmp_path), Runner(*trained(toy_network())))
    with pytest.raises(CompositionError, match="saver is inside"):
        Runner(Runner(Saver(tmp_path)), *trained(toy_network()), EarlyStopping("a"))


def test_a_name_that_cannot_be_a_files_is_refused(tmp_path):
    data, updater, machine = trained(toy_network())
    machine.name = "nets/one"
    with pytest.raises(CompositionError, match="'nets/one' cannot be a file name, which saver needs; remove the slash"):
        Runner(Saver(tmp_path), data, updater, machine)


def test_keeping_none_is_refused(tmp_path):
    with pytest.raises(CompositionError, match="keep_last must be >= 1, got 0"):
        Saver(tmp_path, keep_last=0)
