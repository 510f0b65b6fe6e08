"""StreamProvider: batches of what arrives, each sample once."""

import json
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
    GradientMachine,
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
from tests.online.lines import Line
from tests.patience import PATIENCE


class Seen(Observer):
    """Note the batches that were finished."""

    def __init__(self):
        self.batches = []
        super().__init__(on_batch_end=lambda state: self.batches.append(state.batch))


def ids(count, start=0):
    return [{"id": number} for number in range(start, start + count)]


def flat(batches):
    return [int(number) for batch in batches for number in batch["id"]]


def sizes(batches):
    return [len(batch["id"]) for batch in batches]


# -- batches and passes ------------------------------------------------------------------------------------------------


def test_batches_are_full_and_a_pass_has_so_many_samples():
    seen = Seen()
    ends = []
    watch = Observer(on_pass_end=lambda state: ends.append(state.step))
    Runner(watch, StreamProvider(Line(ids(25)), 4, pass_every=10), seen).run(passes=2)
    assert sizes(seen.batches) == [4, 4, 2, 4, 4, 2]
    assert flat(seen.batches) == list(range(20))
    assert ends == [3, 6]


def test_a_batch_that_gets_no_more_in_time_is_given_as_it_is():
    def come(line):
        if len(line.samples) < 6:
            line.samples += ids(1, len(line.samples))

    seen = Seen()
    Runner(StreamProvider(Line(ids(5), come), 4, pass_every=6, max_wait=0), seen).run(passes=1)
    assert sizes(seen.batches) == [4, 1, 1]


def test_a_batch_waits_for_more_as_long_as_it_may():
    late = []

    def come(line):
        late.append(1)
        if len(late) == 3:
            line.samples += ids(2, 2)

    seen = Seen()
    line = Line(ids(2), come)
    Runner(StreamProvider(line, 4, pass_every=4, max_wait=PATIENCE), seen).run(passes=1)
    assert sizes(seen.batches) == [4]
    assert all(timeout <= 0.1 for _, timeout in line.reads)


def test_a_pass_by_time_has_a_batch_at_least_and_ends_between_two():
    seen = Seen()
    provider = StreamProvider(Line(ids(12)), 4, pass_every=timedelta(microseconds=1))
    state = Runner(provider, seen).run(passes=3)
    assert sizes(seen.batches) == [4, 4, 4]
    assert state.pass_id == 3


def test_a_pass_by_time_that_is_long_goes_on():
    seen = Seen()
    Runner(StreamProvider(Line(ids(12)), 4, pass_every=timedelta(hours=1)), seen).run(steps=3)
    assert sizes(seen.batches) == [4, 4, 4]


def test_the_last_batch_of_a_pass_is_known_to_be_the_last():
    lengths = []
    watch = Observer(on_batch_end=lambda state: lengths.append(state.batches.__length_hint__()))
    Runner(StreamProvider(Line(ids(10)), 4, pass_every=10), watch).run(passes=1)
    assert lengths == [NotImplemented, NotImplemented, 0]


def test_accumulate_takes_its_group_and_less_at_the_end_of_a_pass():
    network = toy_network()
    optimizer = paddle.optimizer.SGD(0.01, parameters=network.parameters())
    samples = [{"x": [0.5] * 8, "y": [1.0]} for _ in range(20)]
    machine = GradientMachine(network)
    provider = StreamProvider(Line(samples), 2, pass_every=10, prepare=as_arrays)
    state = Runner(provider, ParameterUpdater(optimizer), Accumulate(2), machine).run(passes=2)
    assert state.step == 6


def as_arrays(sample):
    return {name: np.asarray(value, "float32") for name, value in sample.items()}


# -- samples that cannot be used ---------------------------------------------------------------------------------------


def refuse_odd(sample):
    if sample["id"] % 2:
        raise ValueError(f"{sample['id']} is odd")
    return sample


def test_a_sample_that_cannot_be_prepared_is_rejected_with_the_reason(tmp_path):
    seen = Seen()
    provider = StreamProvider(Line(ids(9)), 2, pass_every=4, prepare=refuse_odd)
    Runner(Saver(tmp_path), provider, seen).run(passes=1)
    assert flat(seen.batches) == [0, 2, 4, 6]
    rows = [json.loads(line) for line in (tmp_path / "rejected.jsonl").read_text().splitlines()]
    assert rows == [
        {"position": str(number + 1), "reason": f"ValueError: {number} is odd", "sample": {"id": number}}
        for number in (1, 3, 5)
    ]
    assert provider.log_values()["rejected"] == 3


def test_one_that_does_not_go_with_the_others_is_rejected_also_as_the_first(tmp_path):
    odd = {"id": 99, "more": 1}
    for place in range(4):
        samples = [*ids(place), odd, *ids(9, place)]
        seen = Seen()
        provider = StreamProvider(Line(samples), 4, pass_every=8, rejected=tmp_path / f"{place}.jsonl")
        Runner(provider, seen).run(passes=1)
        assert flat(seen.batches) == list(range(8))
        assert provider.rejected_count == 1


def test_where_collate_fails_for_examples_that_go_together_the_run_ends_with_its_error():
    def collate(examples):
        if len(examples) == 4:
            raise PlannedError("a fault in collate")
        return examples

    with pytest.raises(PlannedError, match="a fault in collate") as raised:
        Runner(StreamProvider(Line(ids(8)), 4, pass_every=8, collate=collate), Seen()).run(passes=1)
    assert "stream_provider, batch 0 of the run, behind the beginning" in raised.value.__notes__[0]


def test_a_flood_of_bad_samples_is_passed_by_without_being_kept(tmp_path):
    bad = [{"id": 1} for _ in range(100)]
    seen = Seen()
    provider = StreamProvider(Line([*bad, *ids(2, 2), *ids(2, 4)]), 2, pass_every=2, prepare=refuse_odd)
    Runner(Saver(tmp_path), provider, seen).run(passes=1)
    assert flat(seen.batches) == [2, 4]
    assert provider.rejected_count == 101
    assert len((tmp_path / "rejected.jsonl").read_text().splitlines()) == 101


def test_what_was_rejected_after_the_checkpoint_is_not_told_twice(tmp_path):
    def run(steps, fail=None):
        provider = StreamProvider(Line(ids(40)), 2, pass_every=100, prepare=refuse_odd)
        watch = Observer(on_batch_begin=lambda state: fail(state) if fail else None)
        Runner(Saver(tmp_path, every=2), provider, watch).run(steps=steps)
        return provider

    def at_7(state):
        if state.next_step == 7:
            raise PlannedError

    with pytest.raises(PlannedError):
        run(10, at_7)
    with (tmp_path / "rejected.jsonl").open("a") as file:
        file.write("after the checkpoint\n")
    provider = run(10)
    rows = [json.loads(line) for line in (tmp_path / "rejected.jsonl").read_text().splitlines()]
    assert [row["sample"]["id"] for row in rows] == list(range(1, 38, 2))
    assert provider.rejected_count == 19


def test_a_batch_of_odd_ones_alone_is_held_against_the_one_before_also_after_a_resumption(tmp_path):
    def run(steps):
        samples = [*ids(4), {"id": 8, "more": 1}, {"id": 9, "more": 1}, *ids(4, 4)]
        seen = Seen()
        provider = StreamProvider(Line(samples), 2, pass_every=100)
        Runner(Saver(tmp_path), provider, seen).run(steps=steps)
        return flat(seen.batches), provider.rejected_count

    assert run(2) == ([0, 1, 2, 3], 0)
    assert run(4) == ([4, 5, 6, 7], 2)


def test_in_a_first_batch_without_a_majority_the_first_one_decides():
    samples = [{"id": 0}, {"id": 1, "more": 1}, {"id": 2, "more": 1}, {"id": 3}, {"id": 4}, {"id": 5}]
    seen = Seen()
    provider = StreamProvider(Line(samples), 4, pass_every=4)
    Runner(provider, seen).run(passes=1)
    assert flat(seen.batches) == [0, 3, 4, 5]
    assert provider.rejected_count == 2


# -- each sample once --------------------------------------------------------------------------------------------------


def counting(line, folder, **settings):
    """A network of one parameter a sample, to which SGD adds 1 for each time that it was trained on."""
    paddle.seed(0)
    counts = paddle.nn.Embedding(40, 1)
    counts.weight.set_value(paddle.zeros([40, 1]))
    machine = GradientMachine(counts_of(counts), loss=lambda outputs, batch: -outputs.sum())
    optimizer = paddle.optimizer.SGD(1.0, parameters=counts.parameters())
    provider = StreamProvider(line, 4, pass_every=settings.pop("pass_every", 12))
    return counts, Runner(Saver(folder, **settings), Journal(), provider, ParameterUpdater(optimizer), machine)


class counts_of(paddle.nn.Layer):  # noqa: N801
    def __init__(self, table):
        super().__init__()
        self.table = table

    def forward(self, batch):
        return self.table(batch["id"])


@pytest.mark.parametrize("fails_at", range(1, 11))
def test_a_run_that_fails_anywhere_and_goes_on_has_every_sample_once(tmp_path, fails_at):
    class Fails(Observer):
        def __init__(self):
            super().__init__(on_batch_end=self.at)

        def at(self, state):
            if state.next_step == fails_at:
                raise PlannedError

    line = Line(ids(40))
    _, runner = counting(line, tmp_path, every=3)
    with pytest.raises(PlannedError):
        runner.insert_before(ParameterUpdater, Fails()).run(steps=10)
    counts, runner = counting(line, tmp_path, every=3)
    runner.run(steps=10)
    assert line.waiting() == 0
    assert counts.weight.numpy()[:, 0].tolist() == [1.0] * 40


def test_the_source_is_told_what_no_checkpoint_asks_for_again(tmp_path):
    told = []
    line = Line(ids(40))
    line.commit = lambda position: told.append(int(position))
    _, runner = counting(line, tmp_path, every=2, keep_last=2, pass_every=1000)
    runner.run(steps=8)
    assert told == [8, 8, 16, 24]  # after steps 2, 4, 6, 8; two checkpoints are kept


def test_a_resumed_run_commits_nothing_before_it_knows_all_places(tmp_path):
    line = Line(ids(40))
    _, runner = counting(line, tmp_path, every=2, keep_last=2, pass_every=1000)
    runner.run(steps=4)
    told = []
    line.commit = lambda position: told.append(int(position))
    _, runner = counting(line, tmp_path, every=2, keep_last=2, pass_every=1000)
    runner.run(steps=10)
    assert told == [16, 24, 32]  # not after the start, where the place of step 2 is not known


def test_a_background_saver_tells_too(tmp_path):
    line = Line(ids(40))
    _, runner = counting(line, tmp_path, every=2, keep_last=1, async_save=True, pass_every=1000)
    runner.run(steps=8)
    assert line.committed == "32"


def test_sizes_of_batches_and_passes_may_change_when_a_run_goes_on(tmp_path):
    line = Line(ids(40))
    counting(line, tmp_path, pass_every=12)[1].run(steps=5)
    counts, runner = counting(line, tmp_path, pass_every=10)
    runner[StreamProvider].batch_size = 5
    runner.run(steps=8)
    trained = counts.weight.numpy()[:, 0]
    assert trained.tolist() == [1.0] * 32 + [0.0] * 8  # 12 + 8, then 2, 5 and 5


def test_the_best_checkpoint_keeps_no_samples_back(tmp_path):
    line = Line(ids(40))
    _, runner = counting(line, tmp_path, every=2, keep_last=1, monitor="x", pass_every=1000)
    once = Observer(on_batch_end=lambda state: state.report({"x": 1.0}) if state.step == 1 else None)
    runner.insert_before(ParameterUpdater, once).run(steps=8)
    assert line.committed == "32"


def test_without_a_saver_a_pass_is_committed_at_its_end():
    line = Line(ids(40))
    Runner(StreamProvider(line, 4, pass_every=10), Seen()).run(passes=2)
    assert line.committed == "20"


def test_a_source_that_lost_its_samples_is_said(tmp_path):
    line = Line(ids(40))
    counting(line, tmp_path)[1].run(steps=3)
    line.samples = line.samples[:4]
    with pytest.raises(DataError, match="stream_provider, batch 3 of the run, behind 12: the line is shorter"):
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


def test_a_mailbox_is_heard_while_nothing_comes():
    mailbox = Mailbox()
    idle = threading.Event()
    provider = StreamProvider(Line(ids(8), lambda line: idle.set()), 4, pass_every=100)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(Runner(provider, mailbox, Seen()).run)
        assert idle.wait(PATIENCE)
        assert mailbox.post(lambda state: state.step).result(PATIENCE) == 2
        mailbox.post(lambda state: state.stop("enough"))
        assert running.result(PATIENCE).stopped == "enough"


def test_the_source_is_let_go_of_at_the_end_also_after_an_error():
    line = Line(ids(8))
    Runner(StreamProvider(line, 4, pass_every=8), Seen()).run(passes=1)
    assert line.closed == 1
    with pytest.raises(PlannedError):
        Runner(StreamProvider(line, 4, pass_every=8), Observer(on_batch_begin=fails)).run(passes=1)
    assert line.closed == 2


def fails(state):
    raise PlannedError


# -- composing ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"source": "samples.db"}, r"reads a Source, such as Spool\(path\), and not 'samples.db'"),
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


def test_two_items_that_bring_data_are_refused():
    with pytest.raises(CompositionError, match="provides data too"):
        Runner(StreamProvider(Line(), pass_every=8), DataProvider([1]), Seen())


def test_a_record_inside_is_refused(tmp_path):
    with pytest.raises(CompositionError, match="journal is inside stream_provider"):
        Runner(StreamProvider(Line(), pass_every=8), Journal(tmp_path / "x.jsonl"), Seen())


def test_a_run_inside_does_not_read_the_stream():
    provider = StreamProvider(Line(ids(40)), 4, pass_every=8)
    with pytest.raises(HookError, match="a sample is delivered once"):
        Runner(Tester(Runner(provider, Seen()), every=1), provider, Seen()).run(passes=1)


def test_a_test_with_data_of_its_own_runs_within():
    inner = Seen()
    tester = Tester(Runner(Batches(3), inner), every=2)
    Runner(tester, StreamProvider(Line(ids(40)), 4, pass_every=16), Seen()).run(passes=1)
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
        if waiting:
            line.samples += ids(waiting.pop(0), len(line.samples))
        else:
            line.samples += ids(1, len(line.samples))

    seen = Seen()
    provider = StreamProvider(Line((), come), batch_size, pass_every=pass_every, max_wait=0)
    passes = sum(lots) // pass_every + 1
    Runner(provider, seen).run(passes=passes)
    assert flat(seen.batches) == list(range(passes * pass_every))
    assert max(sizes(seen.batches)) <= batch_size


# -- another spool -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("older", [False, True])
def test_a_run_that_goes_on_refuses_another_spool_before_it_learns_or_saves_anything(tmp_path, older):
    """It would have gone on at sample 8 of a file whose first 8 it has never seen."""

    def run():
        with Spool(tmp_path / "samples.db").writer() as writer:
            writer.write(ids(8))
        seen = Seen()
        Runner(Saver(tmp_path / "run", every=1), StreamProvider(Spool(path), 4, pass_every=8), seen).run(steps=step)
        return flat(seen.batches)

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
    for why in ("put that one back", "sample 16 is another one" if older else "its id is"):  # with 8, and 16 samples
        with pytest.raises(DataError, match=why):
            run()
    assert sorted((tmp_path / "run").iterdir()) == checkpoints
