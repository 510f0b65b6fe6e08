"""StreamProvider: batches of what arrives, each sample once."""

import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import numpy as np
import paddle
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onion import (
    Accumulate,
    CompositionError,
    DataError,
    DataProvider,
    HookError,
    Mailbox,
    Observer,
    ParameterUpdater,
    Runner,
    Saver,
    Signals,
    Tester,
)
from onion.online import Spool
from onion.online.journal.journal import Journal
from onion.online.stream.stream_provider import StreamProvider
from onion.testing import Batches, PlannedError, toy_network
from tests.online.toys import Line, learning, rows_in
from tests.patience import PATIENCE


class Seen(Observer):
    """Collects the batches that were finished."""

    def __init__(self):
        self.batches = []
        super().__init__(on_batch_end=lambda state: self.batches.append(state.batch))


def streamed(line, *outer, passes=None, steps=None, **settings):
    """Run over a stream, by default for a pass; return the batches, and the provider."""
    seen, provider = Seen(), StreamProvider(line, **{"batch_size": 4, **settings})
    Runner(*outer, provider, seen).run(passes=passes or (None if steps else 1), steps=steps)
    return seen.batches, provider


def ids(count, start=0):
    return [{"id": number} for number in range(start, start + count)]


def flat(batches):
    return [int(number) for batch in batches for number in batch["id"]]


def sizes(batches):
    return [len(batch["id"]) for batch in batches]


# -- batches and passes ------------------------------------------------------------------------------------------------


def test_batches_are_full_and_a_pass_has_a_number_of_samples():
    ends = []
    watch = Observer(on_pass_end=lambda state: ends.append(state.step))
    batches, _ = streamed(Line(ids(25)), watch, pass_every=10, passes=2)
    assert sizes(batches) == [4, 4, 2, 4, 4, 2]
    assert flat(batches) == list(range(20))
    assert ends == [3, 6]


def test_a_batch_that_gets_no_more_samples_in_time_is_given_as_it_is():
    def come(line):
        if len(line.samples) < 6:
            line.samples += ids(1, len(line.samples))

    assert sizes(streamed(Line(ids(5), come), pass_every=6, max_wait=0)[0]) == [4, 1, 1]


def test_a_batch_waits_for_more_samples_up_to_a_time():
    late = []

    def come(line):
        late.append(1)
        if len(late) == 3:
            line.samples += ids(2, 2)

    line = Line(ids(2), come)
    assert sizes(streamed(line, pass_every=4, max_wait=PATIENCE)[0]) == [4]
    assert all(timeout <= 0.1 for _, timeout in line.reads)


@pytest.mark.parametrize(
    ("pass_every", "until"), [(timedelta(microseconds=1), {"passes": 3}), (timedelta(hours=1), {"steps": 3})]
)
def test_a_pass_by_time_ends_between_two_batches_and_has_at_least_one(pass_every, until):
    assert sizes(streamed(Line(ids(12)), pass_every=pass_every, **until)[0]) == [4, 4, 4]


def test_the_last_batch_of_a_pass_is_known_to_be_the_last():
    lengths = []
    watch = Observer(on_batch_end=lambda state: lengths.append(state.batches.__length_hint__()))
    Runner(StreamProvider(Line(ids(10)), 4, pass_every=10), watch).run(passes=1)
    assert lengths == [NotImplemented, NotImplemented, 0]


def test_accumulate_takes_its_group_and_less_at_the_end_of_a_pass():
    updater, machine = learning(toy_network())
    samples = [{"x": [0.5] * 8, "y": [1.0]} for _ in range(20)]
    provider = StreamProvider(Line(samples), 2, pass_every=10, prepare=as_arrays)
    assert Runner(provider, updater, Accumulate(2), machine).run(passes=2).step == 6


def as_arrays(sample):
    return {name: np.asarray(value, "float32") for name, value in sample.items()}


# -- samples that cannot be used ---------------------------------------------------------------------------------------


def refuse_odd(sample):
    if sample["id"] % 2:
        raise ValueError(f"{sample['id']} is odd")
    return sample


def test_a_sample_that_cannot_be_prepared_is_rejected_with_the_reason(tmp_path):
    batches, provider = streamed(Line(ids(9)), Saver(tmp_path), batch_size=2, pass_every=4, prepare=refuse_odd)
    assert flat(batches) == [0, 2, 4, 6]
    assert rows_in(tmp_path / "rejected.jsonl") == [
        {"position": str(number + 1), "reason": f"ValueError: {number} is odd", "sample": {"id": number}}
        for number in (1, 3, 5)
    ]
    assert provider.log_values()["rejected"] == 3


@pytest.mark.parametrize("place", range(4))
def test_a_sample_that_does_not_collate_is_rejected_even_as_the_first(tmp_path, place):
    samples = [*ids(place), {"id": 99, "more": 1}, *ids(9, place)]
    batches, provider = streamed(Line(samples), pass_every=8, rejected=tmp_path / "rejected.jsonl")
    assert flat(batches) == list(range(8))
    assert provider.rejected_count == 1


def test_an_error_of_collate_ends_the_run_if_the_examples_collate_two_by_two():
    def collate(examples):
        if len(examples) == 4:
            raise PlannedError("a fault in collate")
        return examples

    with pytest.raises(PlannedError, match="a fault in collate") as raised:
        streamed(Line(ids(8)), pass_every=8, collate=collate)
    assert "stream_provider, batch 0 of the run, after the beginning" in raised.value.__notes__[0]


def test_many_bad_samples_are_skipped_without_being_kept(tmp_path):
    line = Line([*({"id": 1} for _ in range(100)), *ids(2, 2), *ids(2, 4)])
    batches, provider = streamed(line, Saver(tmp_path), batch_size=2, pass_every=2, prepare=refuse_odd)
    assert flat(batches) == [2, 4]
    assert provider.rejected_count == len(rows_in(tmp_path / "rejected.jsonl")) == 101


def test_what_was_rejected_after_the_checkpoint_is_recorded_once(tmp_path):
    def run(fail=lambda state: None):
        watch = Observer(on_batch_begin=fail)
        settings = {"batch_size": 2, "pass_every": 100, "prepare": refuse_odd}
        return streamed(Line(ids(40)), Saver(tmp_path, every=2), watch, steps=10, **settings)[1]

    def at_7(state):
        if state.next_step == 7:
            raise PlannedError

    with pytest.raises(PlannedError):
        run(at_7)
    with (tmp_path / "rejected.jsonl").open("a") as file:
        file.write("after the checkpoint\n")
    assert run().rejected_count == 19
    assert [row["sample"]["id"] for row in rows_in(tmp_path / "rejected.jsonl")] == list(range(1, 38, 2))


def test_a_batch_of_odd_samples_is_compared_with_the_one_before_also_after_resuming(tmp_path):
    def run(steps):
        samples = [*ids(4), {"id": 8, "more": 1}, {"id": 9, "more": 1}, *ids(4, 4)]
        batches, provider = streamed(Line(samples), Saver(tmp_path), batch_size=2, pass_every=100, steps=steps)
        return flat(batches), provider.rejected_count

    assert run(2) == ([0, 1, 2, 3], 0)
    assert run(4) == ([4, 5, 6, 7], 2)


def test_in_a_first_batch_without_a_majority_the_first_sample_decides():
    samples = [{"id": 0}, {"id": 1, "more": 1}, {"id": 2, "more": 1}, {"id": 3}, {"id": 4}, {"id": 5}]
    batches, provider = streamed(Line(samples), pass_every=4)
    assert flat(batches) == [0, 3, 4, 5]
    assert provider.rejected_count == 2


# -- each sample once --------------------------------------------------------------------------------------------------


class Counts(paddle.nn.Layer):
    """A parameter per sample, to which SGD adds 1 for each time that it was trained on."""

    def __init__(self):
        super().__init__()
        self.table = paddle.nn.Embedding(40, 1)
        self.table.weight.set_value(paddle.zeros([40, 1]))

    def forward(self, batch):
        return self.table(batch["id"])

    def loss(self, outputs, batch):
        return -outputs.sum()


def counting(line, folder, pass_every=12, **settings):
    """Return a function that returns the counts, and the runner."""
    network = Counts()
    provider = StreamProvider(line, 4, pass_every=pass_every)
    runner = Runner(Saver(folder, **settings), Journal(), provider, *learning(network, 1.0))
    return lambda: network.table.weight.numpy()[:, 0].tolist(), runner


@pytest.mark.parametrize("fails_at", range(1, 11))
def test_a_run_that_fails_anywhere_and_resumes_has_every_sample_once(tmp_path, fails_at):
    def fail(state):
        if state.next_step == fails_at:
            raise PlannedError

    line = Line(ids(40))
    _, runner = counting(line, tmp_path, every=3)
    with pytest.raises(PlannedError):
        runner.insert_before(ParameterUpdater, Observer(on_batch_end=fail)).run(steps=10)
    counts, runner = counting(line, tmp_path, every=3)
    runner.run(steps=10)
    assert line.waiting() == 0
    assert counts() == [1.0] * 40


def run_and_note_commits(line, folder, steps, **settings):
    """Run; return the positions that were committed."""
    commits = []
    line.commit = lambda position: commits.append(int(position))
    counting(line, folder, every=2, pass_every=1000, **settings)[1].run(steps=steps)
    return commits


def test_what_no_checkpoint_needs_any_more_is_committed(tmp_path):
    commits = run_and_note_commits(Line(ids(40)), tmp_path, 8, keep_last=2)
    assert commits == [8, 8, 16, 24]  # after steps 2, 4, 6, 8; two checkpoints are kept


def test_a_resumed_run_commits_nothing_before_it_knows_all_positions(tmp_path):
    line = Line(ids(40))
    run_and_note_commits(line, tmp_path, 4, keep_last=2)
    commits = run_and_note_commits(line, tmp_path, 10, keep_last=2)
    assert commits == [16, 24, 32]  # not after the start, when the position of step 2 is not known


def test_a_background_saver_commits_too(tmp_path):
    assert run_and_note_commits(Line(ids(40)), tmp_path, 8, keep_last=1, async_save=True)[-1] == 32


def test_sizes_of_batches_and_passes_may_change_when_a_run_resumes(tmp_path):
    line = Line(ids(40))
    counting(line, tmp_path, pass_every=12)[1].run(steps=5)
    counts, runner = counting(line, tmp_path, pass_every=10)
    runner[StreamProvider].batch_size = 5
    runner.run(steps=8)
    assert counts() == [1.0] * 32 + [0.0] * 8  # 12 + 8, then 2, 5 and 5


def test_the_best_checkpoint_keeps_no_samples_back(tmp_path):
    line = Line(ids(40))
    _, runner = counting(line, tmp_path, every=2, keep_last=1, monitor="x", pass_every=1000)
    once = Observer(on_batch_end=lambda state: state.report({"x": 1.0}) if state.step == 1 else None)
    runner.insert_before(ParameterUpdater, once).run(steps=8)
    assert line.committed == "32"


def test_without_a_saver_a_pass_is_committed_at_its_end():
    line = Line(ids(40))
    streamed(line, pass_every=10, passes=2)
    assert line.committed == "20"


def test_a_source_that_lost_its_samples_is_an_error(tmp_path):
    line = Line(ids(40))
    counting(line, tmp_path)[1].run(steps=3)
    line.samples = line.samples[:4]
    with pytest.raises(DataError, match="stream_provider, batch 3 of the run, after 12: the line is shorter"):
        counting(line, tmp_path)[1].run(steps=5)


def test_an_error_of_the_data_saves_what_the_last_batch_left(tmp_path):
    def come(line):
        raise DataError("gone")

    with pytest.raises(DataError, match="gone"):
        counting(Line(ids(8), come), tmp_path, every=100)[1].run(steps=5)
    assert (tmp_path / "step-00000002").exists()


# -- waiting -----------------------------------------------------------------------------------------------------------


def test_a_signal_ends_a_run_that_waits(tmp_path):
    def come(line):
        os.kill(os.getpid(), signal.SIGTERM)

    signals = Signals(leave=False)
    _, runner = counting(Line(ids(8), come), tmp_path)
    state = Runner(signals, *runner.items).run()
    assert (state.step, signals.received) == (2, signal.SIGTERM)
    assert (tmp_path / "step-00000002").exists()


def test_a_mailbox_is_served_while_nothing_comes():
    mailbox = Mailbox()
    idle = threading.Event()
    provider = StreamProvider(Line(ids(8), lambda line: idle.set()), 4, pass_every=100)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(Runner(provider, mailbox, Seen()).run)
        assert idle.wait(PATIENCE)
        assert mailbox.post(lambda state: state.step).result(PATIENCE) == 2
        mailbox.post(lambda state: state.stop("enough"))
        assert running.result(PATIENCE).stopped == "enough"


def test_the_source_is_released_at_the_end_also_after_an_error():
    def fail(state):
        raise PlannedError

    line = Line(ids(8))
    streamed(line, pass_every=8)
    assert line.closed == 1
    with pytest.raises(PlannedError):
        Runner(StreamProvider(line, 4, pass_every=8), Observer(on_batch_begin=fail)).run(passes=1)
    assert line.closed == 2


# -- composing ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"source": "samples.db"}, r"source must be a Source, such as Spool\(path\), got 'samples.db'"),
        ({"batch_size": 0}, "batch_size must be .*, got 0"),
        ({"batch_size": True}, "batch_size must be .*, got True"),
        ({"max_wait": -1}, "max_wait must be .*, got -1"),
        ({"max_wait": float("nan")}, "max_wait must be .*, got nan"),
        ({"pass_every": 0}, "pass_every must be .*, got 0"),
        ({"pass_every": 1.5}, "pass_every must be .*, got 1.5"),
        ({"pass_every": timedelta(0)}, "pass_every must be .*, got "),
    ],
)
def test_wrong_settings_are_refused(settings, words):
    with pytest.raises(CompositionError, match=words):
        StreamProvider(**{"source": Line(), "pass_every": 8, **settings})


def test_two_items_that_provide_data_are_refused():
    with pytest.raises(CompositionError, match="provides data too"):
        Runner(StreamProvider(Line(), pass_every=8), DataProvider([1]), Seen())


def test_a_journal_inside_is_refused(tmp_path):
    with pytest.raises(CompositionError, match="journal is inside stream_provider"):
        Runner(StreamProvider(Line(), pass_every=8), Journal(tmp_path / "x.jsonl"), Seen())


def test_an_inner_run_does_not_read_the_stream():
    provider = StreamProvider(Line(ids(40)), 4, pass_every=8)
    with pytest.raises(HookError, match="a sample is delivered once"):
        Runner(Tester(Runner(provider, Seen()), every=1), provider, Seen()).run(passes=1)


def test_a_test_with_data_of_its_own_runs_within():
    inner = Seen()
    streamed(Line(ids(40)), Tester(Runner(Batches(3), inner), every=2), pass_every=16)
    assert len(inner.batches) == 6


# -- any way that samples come -----------------------------------------------------------------------------------------


@given(
    lots=st.lists(st.integers(0, 7), min_size=1, max_size=8),
    batch_size=st.integers(1, 5),
    pass_every=st.integers(1, 9),
)
def test_however_they_come_all_samples_are_given_once_and_in_order(lots, batch_size, pass_every):
    waiting = list(lots)

    def come(line):
        line.samples += ids(waiting.pop(0) if waiting else 1, len(line.samples))

    passes = sum(lots) // pass_every + 1
    batches, _ = streamed(Line((), come), batch_size=batch_size, pass_every=pass_every, max_wait=0, passes=passes)
    assert flat(batches) == list(range(passes * pass_every))
    assert max(sizes(batches)) <= batch_size


# -- another spool -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("older", [False, True])
def test_a_resumed_run_refuses_another_spool_before_it_learns_or_saves_anything(tmp_path, older):
    """It would have continued at sample 8 of a file whose first 8 it has never seen."""

    def run():
        with Spool(tmp_path / "samples.db").writer() as writer:
            writer.write(ids(8))
        return flat(streamed(Spool(path), Saver(tmp_path / "run", every=1), pass_every=8, steps=step)[0])

    path, step = tmp_path / "samples.db", 1
    assert run() == list(range(4))
    copy, step = path.read_bytes(), 4
    assert run() == [4, 5, 6, 7, *range(8)]
    if older:
        path.write_bytes(copy)
    else:
        path.unlink()
    step = 6
    checkpoints = sorted((tmp_path / "run").iterdir())
    for why in ("restore that file", "sample 16 is another one" if older else "its id is"):  # with 8, and 16 samples
        with pytest.raises(DataError, match=why):
            run()
    assert sorted((tmp_path / "run").iterdir()) == checkpoints
