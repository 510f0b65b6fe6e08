"""Saver where things go wrong: disks, data, other onions and runs; saving in the background."""

import errno
import os
import random
import shutil
import tempfile
import threading
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import paddle
import pytest

from onion import (
    CheckpointError,
    CompositionError,
    DataProvider,
    Logger,
    Mailbox,
    Observer,
    ParameterUpdater,
    Runner,
    RunnerItem,
    Saver,
    Tester,
)
from onion.checkpointing import checkpoint
from onion.checkpointing.atomic_files import Files, through
from onion.checkpointing.lock import LOCK
from onion.checkpointing.run_state import best_checkpoint
from onion.testing import Batches, Failing, PlannedError, toy_examples
from tests.abilities import needs_draws_again
from tests.items.disks import Watched
from tests.items.learning import learning
from tests.rings import Within, at
from tests.toys import Dropped

EXAMPLES = toy_examples(22)
STEPS = 12


def onion(folder, *extra, every=2, data=EXAMPLES, batch_size=4, seed=3, length=None, rate=0.05, **settings):
    """Two passes of six batches."""
    paddle.seed(7)
    return Runner(
        Saver(folder, every=every, **settings),
        Logger(folder / "metrics.jsonl", 1),
        *extra,
        DataProvider(data, batch_size, shuffle=True, seed=seed, lengths=length),
        *learning(Dropped(), optimizer="Adam", rate=rate),
    )


def numbers(folder, *items, outside=(), **settings):
    """A run of six batches without a network."""
    return Runner(*outside, Saver(folder, **settings), DataProvider(list(range(6)), 1, prefetch=0), *items)


def outcome(folder):
    """The newest checkpoint without what is time."""
    newest = checkpoint.newest(folder)
    arrays = {
        (name, key): value.tobytes() if isinstance(value, np.ndarray) else value
        for name, saved in newest.items.items()
        for key, value in saved.items()
        if key not in ("seconds", "offset")
    }
    return newest.step, newest.run, arrays


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def check_goes_on(folder, whole, **settings):
    onion(folder, **settings).run(passes=2)
    assert outcome(folder) == whole


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    onion(folder).run(passes=2)
    return outcome(folder)


# -- in the background ------------------------------------------------------------------------------------------------


@needs_draws_again
@pytest.mark.parametrize("cut", [1, 2, 5, 6, 7, 11])
def test_in_the_background_the_same_bits_are_saved(cut, whole, tmp_path):
    onion(tmp_path, async_save=True).run(passes=2, steps=cut)
    assert checkpoint.newest(tmp_path).step == cut
    check_goes_on(tmp_path, whole, async_save=True)
    assert len(names(tmp_path)) == 3


class Held(Files):
    """A disk whose first sync of a file lasts until it is let go."""

    def __init__(self):
        self.begun, self.go, self.renamed = threading.Event(), threading.Event(), []

    def sync(self, handle):
        if threading.current_thread() is not threading.main_thread():
            self.begun.set()
            self.go.wait()
        super().sync(handle)

    def rename(self, source, target):
        self.renamed.append(target.name)
        super().rename(source, target)

    def interrupt(self):
        """Interrupt the run while the disk is at work."""
        self.begun.wait()
        raise KeyboardInterrupt


def test_the_loop_goes_on_while_a_slow_disk_is_at_work_and_waits_at_the_next_checkpoint(whole, tmp_path):
    disk, seen = Held(), []

    def look():
        disk.begun.wait()
        seen.append(list(disk.renamed))
        disk.go.set()

    with through(disk):
        onion(tmp_path, at(3, look), async_save=True).run(passes=2)  # step 2 is being written, step 3 is over
    assert seen == [[]]
    assert [name for name in disk.renamed if name.endswith("2")] == ["step-00000002", "step-00000012"]
    assert outcome(tmp_path) == whole


class Full(Files):
    """A disk that has no space left for so many writes."""

    def __init__(self, times=10**9):
        self.times = times

    def write(self, file, content):
        if threading.current_thread() is not threading.main_thread() or ".partial" in str(getattr(file, "name", "")):
            self.times -= 1
            if self.times >= 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        super().write(file, content)


def test_an_error_in_the_background_surfaces_at_a_batch_and_the_older_checkpoints_stay(tmp_path):
    onion(tmp_path, async_save=True).run(passes=2, steps=4)
    with through(Full()), pytest.raises(CheckpointError, match=r"cannot write the checkpoint .*: No space left"):
        onion(tmp_path, async_save=True).run(passes=2)
    assert names(tmp_path) == ["metrics.jsonl", "step-00000002", "step-00000004"]


@pytest.mark.parametrize("of_the_data", [False, True])
def test_an_error_of_the_run_is_not_hidden_by_one_of_the_disk(of_the_data, tmp_path, caplog):
    if of_the_data:
        runner, error = onion(tmp_path, data=Torn(19), every=100), pytest.raises(OSError, match="the tape is torn")
    else:
        runner, error = onion(tmp_path, Failing("on_batch", step=2), async_save=True), pytest.raises(PlannedError)
    with through(Full()), error:
        runner.run(passes=2)
    assert any("No space left" in message for message in caplog.messages)


@needs_draws_again
def test_the_error_of_a_run_leaves_the_pending_checkpoint_whole(whole, tmp_path):
    with pytest.raises(PlannedError):
        onion(tmp_path, Failing("on_batch", step=4), async_save=True).run(passes=2)
    assert checkpoint.newest(tmp_path).step == 4
    check_goes_on(tmp_path, whole)


def test_a_letter_that_saves_waits_until_the_checkpoint_is_there(tmp_path):
    mailbox, saver = Mailbox(), Saver(tmp_path, every=100, async_save=True)

    def save(state):
        assert saver.save(state)
        return checkpoint.newest(tmp_path).step

    told = []
    Runner(saver, at(3, lambda: told.append(mailbox.post(save))), Batches(6), mailbox).run(passes=1)
    assert told[0].result() == 3


# -- disks that refuse ------------------------------------------------------------------------------------------------


class Broken(Watched):
    """A disk on which the n-th change fails."""

    def __init__(self, nth, number):
        self.left, self.number = nth, number

    def change(self):
        self.left -= 1
        if self.left == 0:
            raise OSError(self.number, os.strerror(self.number))


@contextmanager
def suppress_told(told):
    """Expect no error, or one of ours that tells this."""
    try:
        yield
    except CheckpointError as error:
        if told not in str(error):
            raise


@needs_draws_again
@pytest.mark.slow
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("background", [False, True])
def test_whichever_change_fails_the_run_ends_clearly_and_goes_on_to_the_same_bits(number, background, whole, tmp_path):
    with through(counting := Broken(0, 0)):
        onion(tmp_path / "counted").run(passes=2)
    drawn = random.Random(5).sample(range(1, 1 - counting.left), 12)
    for nth in sorted(drawn):
        folder = tmp_path / str(nth)
        # Where it was only an old checkpoint that could not be removed, the run goes on.
        with suppress_told(os.strerror(number)), through(Broken(nth, number)):
            onion(folder, async_save=background).run(passes=2)
        for step in checkpoint.steps_in(folder):
            checkpoint.read(checkpoint.folder_of(folder, step))
        check_goes_on(folder, whole, async_save=background)
        assert not [name for name in names(folder) if "partial" in name or name == ".lock"], nth


def test_on_error_warn_continues_without_a_checkpoint_and_tries_again(whole, tmp_path, caplog):
    with through(Full(1)):
        onion(tmp_path, on_error="warn", keep_last=10).run(passes=2)
    assert "step-00000002" not in names(tmp_path)
    assert "step-00000004" in names(tmp_path)
    assert outcome(tmp_path) == whole
    assert [message for message in caplog.messages if "The run continues without it" in message]


@pytest.mark.parametrize("background", [False, True])
def test_the_end_of_a_run_has_to_be_saved_on_error_warn_too(background, tmp_path):
    with through(Full()), pytest.raises(CheckpointError, match="No space left"):
        onion(tmp_path, on_error="warn", async_save=background).run(passes=2)


@needs_draws_again
@pytest.mark.parametrize("background", [False, True])
def test_a_last_checkpoint_that_failed_is_tried_again_at_the_end(background, whole, tmp_path):
    with through(Full(1)):
        onion(tmp_path, every="pass", on_error="warn", async_save=background).run(passes=1)
    assert checkpoint.steps_in(tmp_path) == [6]
    check_goes_on(tmp_path, whole)


def test_the_best_checkpoint_that_is_lost_is_replaced_by_the_newest_and_that_is_said(tmp_path, caplog):
    metric = Observer(on_batch_end=lambda state: state.report({"value": -abs(state.step - 3)}))
    Runner(Saver(tmp_path, every=2, monitor="value", keep_last=1), Batches(6), metric).run(passes=1)
    assert best_checkpoint(tmp_path).step == 3
    (checkpoint.folder_of(tmp_path, 3) / "state.json").unlink()
    assert best_checkpoint(tmp_path).step == 6
    assert "took step 6 as the best checkpoint, since that is lost" in caplog.messages[0]


def test_a_folder_without_permission_is_found_out_before_the_first_batch():
    begun = []
    with tempfile.TemporaryDirectory() as name:
        out = Path(name, "out")
        out.parent.chmod(0o755)  # pytest's own folder is for its owner only
        out.mkdir(mode=0o555)
        root = os.geteuid() == 0
        if root:  # for whom every folder is open
            os.seteuid(65534)
        try:
            with pytest.raises(CheckpointError, match=r"cannot write .*/out/\.lock: Permission denied"):
                Runner(Saver(out), Batches(3), Observer(on_batch_begin=begun.append)).run(passes=1)
        finally:
            if root:
                os.seteuid(0)
    assert begun == []


# -- data that fail ---------------------------------------------------------------------------------------------------


class Torn(list):
    """The examples, of which one cannot be read as long as it is torn."""

    def __init__(self, at):
        super().__init__(EXAMPLES)
        self.at = at

    def __getitem__(self, place):
        if place == self.at:
            raise OSError("the tape is torn")
        return super().__getitem__(place)


@needs_draws_again
@pytest.mark.parametrize(("at", "batch"), [(15, 1), (16, 3), (19, 5)])  # by the seed
@pytest.mark.parametrize("background", [False, True])
def test_where_the_data_fail_the_run_stops_with_a_checkpoint_of_the_last_batch(at, batch, background, whole, tmp_path):
    data = Torn(at)
    with pytest.raises(OSError, match="the tape is torn"):
        onion(tmp_path, data=data, every=100, async_save=background).run(passes=2)
    assert checkpoint.steps_in(tmp_path) == [batch]
    data.at = None
    check_goes_on(tmp_path, whole, data=data)


def torn(state):
    """Wrap the batches; the fourth is an error."""

    def give(batches):
        for place, batch in enumerate(batches):
            if place == 3:
                raise PlannedError
            yield batch

    state.batches = give(state.batches)


ERRORS = {
    "on the way into a batch": lambda out: numbers(out, Failing("on_batch", "in", 3), every=100),
    "on the way out of a batch": lambda out: numbers(out, Failing("on_batch", "out", 3), every=100),
    "on the way out of a pass": lambda out: numbers(out, Failing("on_pass", "out"), every=100),
    "outside the saver": lambda out: numbers(out, outside=[Failing("on_batch", "out", 1)], every=100),
    # The data have counted the batch, and it was not learned.
    "outside, on the way in": lambda out: numbers(out, outside=[Failing("on_batch", "in", 2)], every=100),
    "of what wraps the batches": lambda out: numbers(out, Observer(on_pass_begin=torn), every=100),
}


@pytest.mark.parametrize("make", ERRORS.values(), ids=ERRORS)
def test_an_error_of_anything_but_the_data_saves_nothing(make, tmp_path):
    with pytest.raises(PlannedError):
        make(tmp_path).run(passes=1)
    assert checkpoint.steps_in(tmp_path) == []


@needs_draws_again
def test_where_the_error_of_a_pass_was_caught_no_wrong_place_is_saved(whole, tmp_path):
    with pytest.raises(PlannedError), onion(tmp_path, Failing("on_batch", step=3)) as runner:
        runner.run_pass()
    with onion(tmp_path, Failing("on_batch", step=3)) as runner, suppress(PlannedError):
        runner.run_pass()
    assert checkpoint.steps_in(tmp_path) == [2]
    check_goes_on(tmp_path, whole)


# -- other onions, other data, other runs -----------------------------------------------------------------------------


class Extra(RunnerItem):
    """An item that is no observer."""


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"seed": 4}, "data_provider: seed 3 there, 4 here"),
        ({"batch_size": 2}, "data_provider: batch_size 4 there, 2 here"),
        ({"data": EXAMPLES[:20]}, "data_provider: data '22 examples' there, '20 examples' here"),
        ({"length": lambda each: 1}, "data_provider: by_length by default there, True here"),
        ({"rate": 0.5}, "parameter_updater: rate 0.05 there, 0.5 here"),
    ],
)
def test_a_run_of_other_things_is_refused_with_the_differences_or_goes_on_knowingly(change, told, tmp_path, caplog):
    onion(tmp_path).run(passes=2, steps=4)
    with pytest.raises(CheckpointError) as caught:
        onion(tmp_path, **change).run(passes=2)
    assert told in str(caught.value)
    assert "resume='force'" in str(caught.value)
    state = onion(tmp_path, resume="force", **change).run(passes=2)
    assert f"resumed from step 4 anyway: {told}" in caplog.messages
    new_data = "rate" not in change
    assert ("the data differ, so pass 0 starts over" in caplog.messages) == new_data
    batches = {2: 11}.get(change.get("batch_size"), 5 if "data" in change else 6)
    assert state.step == (4 + 2 * batches if new_data else STEPS)
    onion(tmp_path, **change).run(passes=3)  # the new one is the run now


@needs_draws_again
def test_another_item_is_a_difference_and_one_that_only_watches_is_none(whole, tmp_path):
    onion(tmp_path).run(passes=2, steps=4)
    with pytest.raises(CheckpointError, match=r"there is no extra \(Extra\) there"):
        onion(tmp_path, Extra()).run(passes=2)
    onion(tmp_path, at(100, print)).run(passes=2)
    assert outcome(tmp_path) == whole


def test_a_data_file_is_known_by_what_is_in_it(tmp_path):
    def run(path, **settings):
        Runner(Saver(tmp_path / "out", **settings), DataProvider(path, 2)).run(passes=1, steps=2)

    path = tmp_path / "a.tsv"
    path.write_text("a\n1\n2\n3\n4\n5\n6\n")
    run(path)
    moved = path.rename(tmp_path / "b.tsv")
    run(moved)
    moved.write_text("a\n1\n2\n3\n4\n5\n7\n")
    with pytest.raises(CheckpointError, match="data_provider: data 'sha256 "):
        run(moved)
    run(moved, resume="force")


def test_a_run_inside_that_shares_the_saver_is_not_saved(whole, tmp_path):
    runner = onion(tmp_path)
    inner = Runner(runner[Saver], Batches(3))
    runner.insert_after(Logger, Within(inner, 1, 3)).run(passes=2)
    assert outcome(tmp_path) == whole


def test_another_saver_of_the_same_run_takes_another_folder(tmp_path):
    inner = Runner(Saver(tmp_path), Batches(3))
    with pytest.raises(CheckpointError, match="is in use by another Saver of this run"):
        Runner(Saver(tmp_path), Batches(3), Within(inner)).run(passes=1)


def test_a_tester_outside_the_saver_is_refused(tmp_path):
    with pytest.raises(CompositionError, match="tester is outside saver, which would save before it"):
        Runner(Tester(Runner(Batches(1))), Saver(tmp_path), Batches(1))


@needs_draws_again
def test_a_new_onion_waits_for_what_an_interrupted_run_is_still_writing(whole, tmp_path, monkeypatch, caplog):
    """As when the cell of a notebook is stopped and run again: nothing is swept where a thread is writing."""
    disk, join = Held(), threading.Thread.join

    def joined(thread, *limit):  # the thread writes on once somebody waits for it
        disk.go.set()
        join(thread, *limit)

    monkeypatch.setattr(threading.Thread, "join", joined)
    with through(disk):
        with pytest.raises(KeyboardInterrupt):
            onion(tmp_path, at(3, disk.interrupt), async_save=True).run(passes=2)
        with caplog.at_level("INFO", "onion"):
            onion(tmp_path, async_save=True).run(passes=2)
    assert f"resumed from step 2 in {tmp_path}" in caplog.messages
    assert outcome(tmp_path) == whole
    assert len(names(tmp_path)) == 3


@needs_draws_again
def test_gradients_of_a_batch_that_was_interrupted_are_not_added_to_those_of_the_next_run(whole, tmp_path):
    interrupts = [KeyboardInterrupt]

    def interrupt():  # once, between backward and the update
        if interrupts:
            raise interrupts.pop()

    runner = onion(tmp_path).insert_after(ParameterUpdater, at(3, interrupt))
    with pytest.raises(KeyboardInterrupt):
        runner.run(passes=2)
    runner.run(passes=2)
    assert outcome(tmp_path) == whole


def test_a_folder_that_is_deleted_under_its_run_is_made_again_and_kept_from_others(tmp_path, caplog):
    out, there = tmp_path / "out", []
    delete, look = at(3, lambda: shutil.rmtree(out)), at(5, lambda: there.append(names(out)))
    Runner(Saver(out, every=2), delete, look, Batches(6)).run(passes=1)
    assert there == [[LOCK, "step-00000004"]]
    assert names(out) == ["step-00000004", "step-00000006"]
    assert caplog.messages == [f"{out / LOCK} was removed while the run was at work there, and is made again"]


def test_what_an_interrupted_run_left_under_way_is_waited_for(tmp_path, caplog):
    disk, saver = Held(), Saver(tmp_path, every=2, async_save=True)
    with through(disk):
        with pytest.raises(KeyboardInterrupt):
            Runner(saver, at(3, disk.interrupt), Batches(6)).run(passes=1)
        disk.go.set()
        Runner(saver, Batches(6)).run(passes=1)
    assert [name for name in disk.renamed if name.endswith("2")] == ["step-00000002"]
    assert [message for message in caplog.messages if "cannot" in message] == []


def test_the_same_runner_goes_on_though_its_items_changed_what_they_were_given(tmp_path):
    class Annealed(RunnerItem):
        def __init__(self, temperature=1.0):
            self.temperature = temperature

        def on_batch(self, state):
            yield
            self.temperature *= 0.9

    runner = Runner(Saver(tmp_path), DataProvider(list(range(8)), 1), Annealed(2.0))
    runner.run(passes=1, steps=3)
    assert runner.run(passes=1).step == 8


def test_a_key_that_is_no_text_is_refused(tmp_path):
    counting = type("Counting", (RunnerItem,), {"state_dict": lambda self: {1: 2}})()
    said = "the state of counting has the key 1, which would be restored as a string"
    with pytest.raises(CheckpointError, match=said):
        Runner(Saver(tmp_path), Batches(1), counting).run(passes=1)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        *(({"resume": resume}, "must be True, False or 'force'") for resume in ("always", None, 2)),
        *(({"on_error": on_error}, "on_error must be 'raise' or 'warn', got") for on_error in ("ignore", None, True)),
    ],
    ids=str,
)
def test_settings_that_are_none_are_refused(settings, said, tmp_path):
    with pytest.raises(CompositionError, match=said):
        Saver(tmp_path, **settings)
