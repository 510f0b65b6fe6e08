"""ControlServer: commands take effect between two batches, in order, each once, and none is lost in a crash."""

import json
import random
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import timedelta

import numpy as np
import pytest

from onion import CompositionError, DataProvider, Mailbox, Observer, OnionError, ParameterUpdater, Runner
from onion.checkpointing import rng
from onion.http.refused import Refused
from onion.online.control.control_server import ControlServer
from onion.online.journal.journal import Journal
from onion.online.learning.publish import Publish
from onion.online.learning.switch import Switch
from onion.online.stream.stream_provider import StreamProvider
from onion.testing import PlannedError
from tests.abilities import needs_draws_again
from tests.online.control.steered import PLAN, RATE, run, samples, slowly, steered, weights
from tests.online.toys import Line, rows_in, submissions
from tests.patience import PATIENCE


def commands_in(folder):
    return [(row["batch"], row["command"]) for row in rows_in(folder / "journal.jsonl") if "number" in row]


# -- single commands ---------------------------------------------------------------------------------------------------


def test_a_setting_is_changed_between_two_batches_and_the_answer_has_the_step(tmp_path):
    runner, [answer] = run(tmp_path, {4: [("set", {"learning_rate": 0.5})]}, steps=6)
    answer = answer.result(PATIENCE)
    assert (answer.number, answer.command, answer.step, answer.result, answer.error) == (1, "set", 4, {RATE: 0.5}, None)
    assert runner[ParameterUpdater].rate == 0.5
    row = {"batch": 4, "step": 4, "number": 1, "arguments": {"learning_rate": 0.5}}
    assert rows_in(tmp_path / "journal.jsonl")[0].items() >= row.items()


def test_a_switch_is_turned_by_the_name_of_its_item_or_its_own(tmp_path):
    on, off = {2: [("enable", {"ring": "double"})]}, {4: [("disable", {"ring": "switch"})]}
    runner, answers = run(tmp_path / "both", {**on, **off}, steps=6)
    assert [future.result(PATIENCE).step for future in answers] == [2, 4]
    assert runner[Switch].on is False
    others = [run(tmp_path / name, plan, steps=6)[0] for name, plan in (("on", on), ("plain", {}))]
    assert len({str(weights(each)) for each in (runner, *others)}) == 3


def test_a_checkpoint_exists_when_its_save_is_answered(tmp_path):
    there = []

    def look(state):
        there.append((tmp_path / "step-00000004").exists())

    _, [answer] = run(tmp_path, {4: [("save", {})]}, every=1000, steps=6, look=look)
    assert there[4] is True  # at the end of step 5
    assert answer.result(PATIENCE).result == {"saved": True}


def test_a_save_after_the_last_batch_of_a_pass_is_made_at_its_end(tmp_path):
    _, [answer] = run(tmp_path, {5: [("save", {})]}, every=1000, steps=7)
    assert answer.result(PATIENCE).result["saved"] is False
    assert (tmp_path / "step-00000005").exists()


def test_a_test_is_answered_with_its_metrics(tmp_path):
    tested = []

    def change(runner):
        report = Observer(on_pass_end=lambda state: tested.append(state.report({"figure": 0.25})))
        runner["tester"].runner = runner["tester"].runner.insert_before("batches", report)

    _, [answer] = run(tmp_path, {2: [("test", {})]}, steps=4, change=change)
    assert len(tested) == 1
    assert answer.result(PATIENCE).result == {"tester.figure": 0.25}


def test_metrics_may_be_numpy_scalars(tmp_path):
    def change(runner):
        runner["tester"].act = lambda state: state.report({"tester.f1": np.float32(0.5)})

    _, [answer] = run(tmp_path, {2: [("test", {})]}, steps=4, change=change)
    assert answer.result(PATIENCE).result == {"tester.f1": 0.5}


def test_a_command_that_fails_is_answered_with_its_error_and_the_run_continues(tmp_path, caplog):
    def breaks(state):
        raise PlannedError("no disk")

    _, [answer] = run(
        tmp_path, {2: [("test", {})]}, steps=4, change=lambda runner: setattr(runner["tester"], "act", breaks)
    )
    assert answer.result(PATIENCE).error == "PlannedError: no disk"
    assert (tmp_path / "step-00000004").exists()
    assert "the command test failed" in caplog.text


@pytest.mark.parametrize("why", ["seen enough", "half a character: \ud800"])
def test_a_stop_ends_the_run(tmp_path, why):
    _, [answer] = run(tmp_path, {3: [("stop", {"why": why})]})
    assert answer.result(PATIENCE).step == 3
    assert (tmp_path / "step-00000003").exists()
    assert commands_in(tmp_path) == [(3, "stop")]


def test_commands_take_effect_in_order(tmp_path):
    plan = {3: [("set", {RATE: rate}, None) for rate in (0.1, 0.2, 0.3)]}
    runner, answers = run(tmp_path, plan, steps=5)
    assert [future.result(PATIENCE).number for future in answers] == [1, 2, 3]
    assert runner[ParameterUpdater].rate == 0.3


def test_a_repeated_key_returns_the_first_answer_also_in_the_next_run(tmp_path):
    command = ("set", {RATE: 0.2}, "the key")
    _, [first, second] = run(tmp_path, {2: [command], 4: [command]}, steps=6)
    assert first is second

    def look(state):
        if state.next_step == 7:
            state.runner[ParameterUpdater].set_learning_rate(0.7)

    runner, [third] = run(tmp_path, {8: [command]}, steps=10, look=look)
    assert first.result(PATIENCE).step == third.result(PATIENCE).step == 2
    assert runner[ParameterUpdater].rate == 0.7  # the command was not carried out again
    assert commands_in(tmp_path) == [(2, "set")]


# -- pause -------------------------------------------------------------------------------------------------------------


@contextmanager
def in_thread(runner, steps):
    """Run in a thread; a test that fails does not wait for a run that is paused."""
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(runner.run, steps=steps)
        try:
            yield running
        except BaseException:
            with suppress(Refused):
                runner[ControlServer].ask("stop", {})
            raise


def asked(control, command, **arguments):
    """Return the answer to a command, which is asked as soon as there is a run."""
    while True:
        with suppress(Refused):
            return control.ask(command, arguments).result(PATIENCE)


def test_a_paused_run_waits_until_it_is_resumed_or_asked_for_steps(tmp_path):
    begun, asked_to_pause = threading.Event(), threading.Event()

    def hold(state):
        begun.set()
        assert asked_to_pause.wait(PATIENCE)

    runner = steered(Line(samples(200)), tmp_path, at=hold, pass_every=1000)
    control = runner[ControlServer]
    with in_thread(runner, 40) as running:
        assert begun.wait(PATIENCE)
        pausing = control.ask("pause", {})
        asked_to_pause.set()
        at = pausing.result(PATIENCE).step
        assert control.ask("save", {}).result(PATIENCE).step == at
        assert control.status()["state"] == "paused"
        assert control.ask("step", {"n": 3}).result(PATIENCE).step == at
        while (step := control.ask("set", {RATE: 0.01}).result(PATIENCE).step) < at + 3:
            pass  # commands are carried out between the steps too
        assert control.ask("save", {}).result(PATIENCE).step == step == at + 3
        control.ask("resume", {}).result(PATIENCE)
        assert running.result(PATIENCE).step == 40


def test_a_run_that_ended_while_it_was_paused_is_paused_again(tmp_path):
    run(tmp_path, {3: [("pause", {}), ("save", {}), ("stop", {})]})
    again = steered(Line(samples(80)), tmp_path)
    with in_thread(again, 8) as running:
        assert asked(again[ControlServer], "resume").step == 3
        assert running.result(PATIENCE).step == 8


def test_the_steps_of_a_step_are_counted_across_a_resumption(tmp_path):
    """The checkpoint is taken at the batch boundary itself, where a resumed run looks once more."""
    run(tmp_path, {2: [("step", {"n": 4})], 4: [("stop", {})]}, source=Line(samples(200)), pass_every=1000)
    again = steered(Line(samples(200)), tmp_path, pass_every=1000)
    control = again[ControlServer]
    with in_thread(again, 20) as running:
        while control.status()["state"] != "paused":
            pass
        assert asked(control, "set", **{RATE: 0.01}).step == 6
        control.ask("resume", {})
        assert running.result(PATIENCE).step == 20


# -- what is refused ---------------------------------------------------------------------------------------------------


def test_a_command_that_was_not_carried_out_when_the_run_ended_is_refused(tmp_path):
    _, [answer] = run(tmp_path, {4: [("set", {RATE: 0.5})]}, steps=4)
    with pytest.raises(Refused, match="was not carried out"):
        answer.result(PATIENCE)
    assert commands_in(tmp_path) == []


@pytest.mark.parametrize(
    ("order", "message"),
    [
        (("data", "control"), "put a Journal"),
        (("data", "control", "journal"), "put a Journal"),
        (
            ("journal", "control", "data"),
            "control_server is outside data_provider, which provides the data; move it inside",
        ),
    ],
)
def test_a_control_server_without_a_journal_or_outside_of_the_data_is_refused(tmp_path, order, message):
    items = {"data": DataProvider([1]), "control": ControlServer(port=None), "journal": Journal(tmp_path / "x")}
    with pytest.raises(CompositionError, match=message):
        Runner(*(items[name] for name in order), Observer(on_batch_end=print))


def test_a_service_that_cannot_start_leaves_the_item_as_it_was(tmp_path):
    runner = steered(Line(samples(80)), tmp_path)
    control = runner[ControlServer]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        control.port = taken.getsockname()[1]
        with pytest.raises(OnionError, match="in use"):
            runner.run(steps=2)
    assert control.url is None
    control.port, urls = 0, []
    runner.insert_before("gradient_machine", Observer(on_batch_end=lambda state: urls.append(control.url))).run(steps=2)
    assert urls[0].startswith("http://127.0.0.1:")
    assert control.url is None


# -- status and events -------------------------------------------------------------------------------------------------


def test_events_have_commands_and_the_end(tmp_path):
    queues = []
    run(
        tmp_path,
        {2: [("set", {RATE: 0.5})]},
        steps=4,
        change=lambda runner: queues.append(runner[ControlServer].subscribe()),
    )
    events = list(iter(queues[0].get, None))
    [command] = [event for kind, event in events if kind == "command"]
    assert command.items() >= {"number": 1, "command": "set", "step": 2, "arguments": {RATE: 0.5}}.items()
    assert (events[-1][0], events[-1][1]["state"]) == ("status", "ended")


def test_a_later_subscriber_gets_the_end(tmp_path):
    runner, _ = run(tmp_path, steps=2)
    assert runner[ControlServer].subscribe().get(timeout=PATIENCE) is None


def test_a_status_is_json_with_settings_and_switches(tmp_path):
    seen = []
    runner, _ = run(tmp_path, steps=3, look=lambda state: seen.append(state.runner[ControlServer].status()))
    status = json.loads(json.dumps(seen[-1]))
    assert status["settings"] == {RATE: {"value": pytest.approx(0.05), "low": 1e-12, "high": 10.0}}
    assert status["rings"] == {"double": False}
    assert status["step"] == 3
    assert runner[ControlServer].onion()["drawing"] == str(runner)


# -- crashes and replays -----------------------------------------------------------------------------------------------


def follow(line, folder, steps=16, **settings):
    """Follow only the journal, in another folder, with all samples present from the beginning."""
    other = folder / "again"
    other.mkdir()
    (other / "journal.jsonl").write_bytes((folder / "journal.jsonl").read_bytes())
    runner = steered(Line(line.samples), other, **settings)
    return runner, runner.run(steps=steps)


@needs_draws_again
@pytest.mark.parametrize("dies_at", range(2, 13))
def test_a_run_that_crashes_repeats_its_commands(tmp_path, dies_at):
    line = slowly(dies_at, 200)
    run(tmp_path, PLAN, source=line, dies_at=dies_at)
    before = rows_in(tmp_path / "journal.jsonl")
    rest = {step: plan for step, plan in PLAN.items() if step >= dies_at}
    line.come = slowly(100 + dies_at, 200).come  # from now on other portions arrive
    runner, _ = run(tmp_path, rest, source=line, steps=16)
    assert rows_in(tmp_path / "journal.jsonl")[: len(before)] == before
    commands = [command for _, command in commands_in(tmp_path)]
    assert commands == [command for plan in PLAN.values() for command, _ in plan]
    assert weights(follow(line, tmp_path)[0]) == weights(runner)


def test_other_commands_give_other_weights(tmp_path):
    """So that the test above can fail."""
    runner, _ = run(tmp_path, PLAN, source=slowly(1, 200), steps=16)
    plain, _ = run(tmp_path / "plain", source=Line(samples(200)), steps=16)
    assert weights(plain) != weights(runner)


def test_a_pass_by_time_is_replayed(tmp_path):
    line = slowly(5, 200)
    runner, _ = run(tmp_path, PLAN, source=line, steps=16, pass_every=timedelta(microseconds=300))
    ends = [row["batch"] for row in rows_in(tmp_path / "journal.jsonl") if "pass_end" in row]
    assert ends
    again, state = follow(line, tmp_path, pass_every=timedelta(hours=9))
    assert weights(again) == weights(runner)
    assert state.pass_id in (len(ends), len(ends) - 1)


def test_an_incomplete_row_of_a_crash_is_removed(tmp_path):
    run(tmp_path, PLAN, steps=6)
    whole = (tmp_path / "journal.jsonl").read_bytes()
    (tmp_path / "journal.jsonl").write_bytes(whole + b'{"batch": 6, "num')
    run(tmp_path, steps=8)
    assert (tmp_path / "journal.jsonl").read_bytes() == whole


@pytest.mark.parametrize(
    ("mode", "text", "message"),
    [("w", "", "restore the file"), ("a", '{"batch": 2, "samples": 3}\n', "the journal of another run")],
    ids=["shorter than at the checkpoint", "of another run"],
)
def test_a_wrong_journal_is_an_error(tmp_path, mode, text, message):
    run(tmp_path, PLAN if mode == "w" else None, steps=6)
    with (tmp_path / "journal.jsonl").open(mode) as file:
        file.write(text)
    with pytest.raises(Exception, match=message):
        run(tmp_path, steps=8)


def test_a_stream_without_a_control_server_follows_its_own_journal(tmp_path):
    runner = steered(slowly(9, 200), tmp_path, every=4).without("control_server")
    runner.run(steps=9)
    assert any("samples" in row for row in rows_in(tmp_path / "journal.jsonl"))
    assert isinstance(runner[StreamProvider].log_values()["examples"], int)


def test_a_run_that_follows_and_has_to_wait_does_not_spin(tmp_path):
    (tmp_path / "journal.jsonl").write_text('{"batch": 0, "samples": 3}\n')
    timeouts = []

    def come(line):
        timeouts.append(line.reads[-1][1])
        if len(timeouts) == 5:
            line.samples += samples(3)[2:]

    run(tmp_path, source=Line(samples(2), come), steps=1)
    assert timeouts == [0.1] * 5


@pytest.mark.parametrize("inside", [True, False])
def test_a_mailbox_and_a_control_server_are_both_served_while_nothing_comes(tmp_path, inside):
    idle, mailbox = threading.Event(), Mailbox()
    runner = steered(Line(samples(8), lambda line: idle.set()), tmp_path)
    runner = (runner.insert_after if inside else runner.insert_before)("control_server", mailbox)
    with in_thread(runner, 100) as running:
        assert idle.wait(PATIENCE)
        assert mailbox.post(lambda state: state.step).result(PATIENCE) == 2
        assert runner[ControlServer].ask("stop", {}).result(PATIENCE).step == 2
        assert running.result(PATIENCE).step == 2


# -- predictions that have to wait for the loop ------------------------------------------------------------------------


def predicted(folder, asks=True, pauses=False):
    """Run with a Publish whose predictions draw random numbers; another thread asks for one while there are no data."""

    def noisy(inputs):
        return {"x": np.asarray(inputs, "float32") + np.float32(random.random() + np.random.random())}

    def ask():
        step = control.predict([[1.0] * 4])["step"]
        control.ask("resume", {}).result(PATIENCE)
        return step

    def come(line):
        if not asks or (answers and answers[0].done()):
            line.samples = samples(40)
        elif not answers:
            if pauses:
                control.ask("pause", {})
            answers.append(pool.submit(ask))
            assert submitted.wait(PATIENCE)

    runner, answers = steered(Line(samples(8), come), folder), []
    publish = Publish(runner["gradient_machine"].network, noisy, lambda outputs: outputs.tolist(), every=1)
    runner = runner.insert_before(Switch, publish)
    control, submitted = runner[ControlServer], submissions(publish._boundary)
    random.seed(5)
    np.random.seed(5)
    with ThreadPoolExecutor(1) as pool:
        runner.run(steps=10)
    return weights(runner), rng.capture(), [answer.result(0) for answer in answers]


@needs_draws_again
@pytest.mark.parametrize("pauses", [False, True])
def test_predictions_that_draw_are_made_while_the_run_waits_and_change_nothing(tmp_path, pauses):
    *alone, none = predicted(tmp_path / "alone", asks=False)
    *asked, steps = predicted(tmp_path / "asked", pauses=pauses)
    assert (none, steps) == ([], [2])
    assert asked == alone
