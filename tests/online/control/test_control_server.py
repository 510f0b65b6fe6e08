"""ControlServer: commands take effect between two batches, in order, each once, and none is lost in a crash."""

import json
import random
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

import numpy as np
import pytest

from onion import CompositionError, DataProvider, Mailbox, Observer, OnionError, ParameterUpdater, Runner
from onion.checkpointing import rng
from onion.online.control.control_server import ControlServer
from onion.online.control.run_api import Refused
from onion.online.journal.journal import Journal
from onion.online.learning.publish import Publish
from onion.online.learning.switch import Switch
from onion.online.stream.stream_provider import StreamProvider
from onion.testing import PlannedError
from tests.abilities import needs_draws_again
from tests.online.control.steered import samples, steered, weights
from tests.online.lines import Line
from tests.patience import PATIENCE


class Script:
    """Ask for things at the end of given steps, from the thread of the run: they take effect at the next border."""

    def __init__(self, plan, dies_at=None):
        self.plan, self.dies_at, self.answers, self.control = plan, dies_at, [], None

    def __call__(self, state):
        for command, arguments in self.plan.get(state.next_step, ()):
            key = f"{state.next_step}-{command}"
            self.answers.append(self.control.ask(command, arguments, key))
        if state.next_step == self.dies_at:
            raise PlannedError


def run(source, folder, plan=None, dies_at=None, steps=20, **settings):
    """Return the runner, and the answers."""
    script = Script(plan or {}, dies_at)
    runner = steered(source, folder, at=script, **settings)
    script.control = runner[ControlServer]
    if dies_at is None:
        runner.run(steps=steps)
    else:
        with pytest.raises(PlannedError):
            runner.run(steps=steps)
    return runner, script.answers


def rows(folder):
    return [json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines()]


def commands_in(folder):
    return [(row["batch"], row["command"]) for row in rows(folder) if "number" in row]


RATE = "parameter_updater.learning_rate"


# -- one by one --------------------------------------------------------------------------------------------------------


def test_a_setting_is_changed_between_two_batches_and_the_answer_tells_the_step(tmp_path):
    rates = []
    runner, answers = run(Line(samples(80)), tmp_path, {4: [("set", {"learning_rate": 0.5})]}, steps=6)
    rates.append(runner[ParameterUpdater].rate)
    [answer] = [future.result(PATIENCE) for future in answers]
    assert (answer.number, answer.command, answer.step, answer.error) == (1, "set", 4, None)
    assert answer.result == {RATE: 0.5}
    assert rates == [0.5]
    assert (
        rows(tmp_path)[0].items() >= {"batch": 4, "step": 4, "number": 1, "arguments": {"learning_rate": 0.5}}.items()
    )


def test_a_ring_is_turned_on_and_off_by_its_own_name_or_the_switch_s(tmp_path):
    plan = {2: [("enable", {"ring": "double"})], 4: [("disable", {"ring": "switch"})]}
    runner, answers = run(Line(samples(80)), tmp_path, plan, steps=6)
    assert [future.result(PATIENCE).step for future in answers] == [2, 4]
    assert runner[Switch].on is False
    other, _ = run(Line(samples(80)), tmp_path / "other", {2: [("enable", {"ring": "double"})]}, steps=6)
    plain, _ = run(Line(samples(80)), tmp_path / "plain", steps=6)
    assert len({str(weights(each)) for each in (runner, other, plain)}) == 3


def test_a_save_is_there_when_it_is_answered(tmp_path):
    there = []

    def plan_and_look(state):
        if state.next_step == 5:
            there.append((tmp_path / "step-00000004").exists())

    script = Script({4: [("save", {})]})
    runner = steered(Line(samples(80)), tmp_path, at=lambda state: (script(state), plan_and_look(state)), every=1000)
    script.control = runner[ControlServer]
    runner.run(steps=6)
    assert there == [True]
    assert script.answers[0].result(PATIENCE).result == {"saved": True}


def test_a_save_after_the_last_batch_of_a_pass_says_that_it_comes_with_its_end(tmp_path):
    _runner, answers = run(Line(samples(80)), tmp_path, {5: [("save", {})]}, every=1000, steps=7)
    assert answers[0].result(PATIENCE).result["saved"] is False
    assert (tmp_path / "step-00000005").exists()


def test_a_test_tells_its_metrics(tmp_path):
    runner = steered(Line(samples(80)), tmp_path)
    script = Script({2: [("test", {})]})
    tested = []
    inner = runner["tester"].runner
    runner["tester"].runner = inner.insert_before(
        "batches", Observer(on_pass_end=lambda state: tested.append(state.report({"figure": 0.25})))
    )
    script.control = runner[ControlServer]
    runner.insert_before("gradient_machine", Observer(on_batch_end=script)).run(steps=4)
    assert len(tested) == 1
    assert script.answers[0].result(PATIENCE).result == {"tester.figure": 0.25}


def test_a_stop_ends_the_run_with_its_reason(tmp_path):
    _runner, answers = run(Line(samples(80)), tmp_path, {3: [("stop", {"why": "seen enough"})]})
    assert answers[0].result(PATIENCE).step == 3
    assert (tmp_path / "step-00000003").exists()


def test_commands_come_in_order_each_once(tmp_path):
    plan = {3: [("set", {RATE: rate}) for rate in (0.1, 0.2, 0.3)]}
    script = Script({})
    runner = steered(Line(samples(80)), tmp_path, at=script)
    script.control = runner[ControlServer]
    asked = []

    def ask(state):
        if state.next_step == 3:
            asked.extend(runner[ControlServer].ask("set", {RATE: rate}) for rate in (0.1, 0.2, 0.3))

    runner.insert_before("gradient_machine", Observer(on_batch_end=ask)).run(steps=5)
    assert [future.result(PATIENCE).number for future in asked] == [1, 2, 3]
    assert runner[ParameterUpdater].rate == 0.3
    assert plan


def test_a_key_brings_the_first_one_s_answer(tmp_path):
    answers = []

    def ask(state):
        if state.next_step in (2, 4):
            answers.append(runner[ControlServer].ask("set", {RATE: 0.2}, "the key"))

    runner = steered(Line(samples(80)), tmp_path, at=ask)
    runner.run(steps=6)
    assert answers[0] is answers[1]
    assert answers[0].result(PATIENCE).step == 2
    assert runner[ParameterUpdater].rate == 0.2
    assert commands_in(tmp_path) == [(2, "set")]


def test_a_key_is_known_in_the_next_run_too(tmp_path):
    run(Line(samples(80)), tmp_path, {2: [("set", {RATE: 0.2})]}, steps=4)
    answers = []

    def ask(state):
        if state.next_step == 6:
            again[ParameterUpdater].set_learning_rate(0.7)
            answers.append(again[ControlServer].ask("set", {RATE: 0.2}, "2-set"))

    again = steered(Line(samples(80)), tmp_path, at=ask)
    again.run(steps=8)
    assert answers[0].result(PATIENCE).step == 2
    assert again[ParameterUpdater].rate == 0.7  # it was not carried out again


def test_a_command_that_fails_is_told_and_the_run_goes_on(tmp_path, caplog):
    runner = steered(Line(samples(80)), tmp_path)

    def breaks(state):
        raise PlannedError("no disk")

    runner["tester"].act = breaks
    script = Script({2: [("test", {})]})
    script.control = runner[ControlServer]
    state = runner.insert_before("gradient_machine", Observer(on_batch_end=script)).run(steps=4)
    assert state.step == 4
    assert script.answers[0].result(PATIENCE).error == "PlannedError: no disk"
    assert "the command test failed" in caplog.text


# -- pause -------------------------------------------------------------------------------------------------------------


def test_a_paused_run_stands_until_it_is_resumed_or_told_to_make_steps(tmp_path):
    runner = steered(Line(samples(200)), tmp_path, pass_every=1000)
    control = runner[ControlServer]
    begun = threading.Event()
    onion = runner.insert_before("gradient_machine", Observer(on_batch_end=lambda state: begun.set()))
    with in_thread(onion, 40) as running:
        assert begun.wait(PATIENCE)
        at = control.ask("pause", {}).result(PATIENCE).step
        assert control.ask("save", {}).result(PATIENCE).step == at
        assert control.status()["state"] == "paused"
        assert control.ask("step", {"n": 3}).result(PATIENCE).step == at
        assert control.ask("set", {RATE: 0.01}).result(PATIENCE).step <= at + 3
        after = wait_for_steps(control, at + 3)
        assert control.ask("save", {}).result(PATIENCE).step == after == at + 3
        control.ask("resume", {}).result(PATIENCE)
        assert running.result(PATIENCE).step == 40


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


def wait_for_steps(control, step):
    """A command of a run that makes steps comes in between; ask until it stands where it is to stand."""
    while control.ask("set", {RATE: 0.01}).result(PATIENCE).step < step:
        pass
    return step


def test_a_run_that_was_killed_while_it_was_paused_is_paused_again(tmp_path):
    runner = steered(Line(samples(80)), tmp_path)
    runner[ControlServer]._pause.on = False
    script = Script({3: [("pause", {}), ("save", {}), ("stop", {})]})
    script.control = runner[ControlServer]
    runner.insert_before("gradient_machine", Observer(on_batch_end=script)).run()
    again = steered(Line(samples(80)), tmp_path)
    with in_thread(again, 8) as running:
        answer = asked(again[ControlServer], "resume")
        assert answer.step == 3
        assert running.result(PATIENCE).step == 8


def asked(control, command, **arguments):
    """Ask as soon as there is a run."""
    while True:
        try:
            return control.ask(command, arguments).result(PATIENCE)
        except Refused:
            continue


# -- what is refused ---------------------------------------------------------------------------------------------------


def test_what_cannot_be_done_is_not_recorded(tmp_path):
    refused = []

    def ask(state):
        try:
            runner[ControlServer].ask("dance", {})
        except Refused as error:
            refused.append(error)

    runner = steered(Line(samples(8)), tmp_path, at=ask)
    runner.run(steps=1)
    assert "'dance' is no command" in str(refused[0])
    assert commands_in(tmp_path) == []


def test_what_was_not_carried_out_when_the_run_ended_is_refused(tmp_path):
    _runner, answers = run(Line(samples(80)), tmp_path, {4: [("set", {RATE: 0.5})]}, steps=4)
    with pytest.raises(Refused, match="was not carried out"):
        answers[0].result(PATIENCE)
    assert commands_in(tmp_path) == []


def test_a_control_without_a_record_or_outside_the_data_is_refused(tmp_path):
    with pytest.raises(CompositionError, match="put a Journal"):
        Runner(DataProvider([1]), ControlServer(port=None), Observer(on_batch_end=print))
    with pytest.raises(CompositionError, match="put a Journal"):
        Runner(DataProvider([1]), ControlServer(port=None), Journal(tmp_path / "x"))
    with pytest.raises(CompositionError, match="control_server is outside data_provider"):
        Runner(Journal(tmp_path / "x"), ControlServer(port=None), DataProvider([1]))


# -- events ------------------------------------------------------------------------------------------------------------


def test_events_tell_commands_and_the_end(tmp_path):
    runner = steered(Line(samples(80)), tmp_path)
    queue = runner[ControlServer].subscribe()
    script = Script({2: [("set", {RATE: 0.5})]})
    script.control = runner[ControlServer]
    runner.insert_before("gradient_machine", Observer(on_batch_end=script)).run(steps=4)
    told = list(iter(queue.get, None))
    [command] = [event for kind, event in told if kind == "command"]
    assert command.items() >= {"number": 1, "command": "set", "step": 2, "arguments": {RATE: 0.5}}.items()
    assert told[-1][0] == "status"
    assert told[-1][1]["state"] == "ended"


def test_a_status_is_json_and_tells_settings_and_rings(tmp_path):
    seen = []
    runner = steered(Line(samples(80)), tmp_path, at=lambda state: seen.append(runner[ControlServer].status()))
    runner.run(steps=3)
    status = json.loads(json.dumps(seen[-1]))
    assert status["settings"] == {RATE: {"value": pytest.approx(0.05), "low": 1e-12, "high": 10.0}}
    assert status["rings"] == {"double": False}
    assert status["step"] == 3
    assert runner[ControlServer].onion()["drawing"] == str(runner)


# -- crashes and replays -----------------------------------------------------------------------------------------------


PLAN = {
    2: [("set", {RATE: 0.2})],
    4: [("enable", {"ring": "double"}), ("save", {})],
    5: [("set", {RATE: 0.02})],
    7: [("pause", {}), ("resume", {})],
    8: [("disable", {"ring": "double"}), ("test", {})],
    11: [("enable", {"ring": "double"})],
}


def slowly(seed, count):
    """A line to which samples come in lots, as chance has it: batches have other sizes each time."""
    every, chance = samples(count), random.Random(seed)

    def come(line):
        there = len(line.samples)
        line.samples += every[there : there + chance.randint(0, 5)]

    return Line((), come)


@needs_draws_again
@pytest.mark.parametrize("dies_at", range(2, 13))
def test_a_steered_run_that_crashes_does_again_what_it_was_told(tmp_path, dies_at):
    line = slowly(dies_at, 200)
    run(line, tmp_path, PLAN, dies_at)
    before = rows(tmp_path)
    rest = {step: plan for step, plan in PLAN.items() if step >= dies_at}
    line.come = slowly(100 + dies_at, 200).come  # what comes now comes otherwise
    runner, _ = run(line, tmp_path, rest, steps=16)
    after = rows(tmp_path)
    assert after[: len(before)] == before
    told = [command for _, command in commands_in(tmp_path)]
    assert told == [command for plan in PLAN.values() for command, _ in plan]
    assert replayed(line, tmp_path, 16) == weights(runner)


def replayed(line, folder, steps):
    """The journal alone, in another folder, with all samples there from the beginning."""
    other = folder / "again"
    other.mkdir()
    (other / "journal.jsonl").write_bytes((folder / "journal.jsonl").read_bytes())
    runner = steered(Line(line.samples), other)
    runner.run(steps=steps)
    return weights(runner)


def test_another_course_gives_other_weights(tmp_path):
    """So that the tests above can fail."""
    line = slowly(1, 200)
    runner, _ = run(line, tmp_path, PLAN, steps=16)
    plain = steered(Line(samples(200)), tmp_path / "plain")
    plain.run(steps=16)
    assert weights(plain) != weights(runner)


def test_a_pass_by_time_is_replayed(tmp_path):
    from datetime import timedelta

    line = slowly(5, 200)
    runner, _ = run(line, tmp_path, PLAN, steps=16, pass_every=timedelta(microseconds=300))
    ends = [row["batch"] for row in rows(tmp_path) if "pass_end" in row]
    assert ends
    other = tmp_path / "again"
    other.mkdir()
    (other / "journal.jsonl").write_bytes((tmp_path / "journal.jsonl").read_bytes())
    again = steered(Line(line.samples), other, pass_every=timedelta(hours=9))
    state = again.run(steps=16)
    assert weights(again) == weights(runner)
    assert state.pass_id in (len(ends), len(ends) - 1)


def test_a_row_that_a_kill_has_cut_is_cut_off(tmp_path):
    run(Line(samples(80)), tmp_path, PLAN, steps=6)
    whole = (tmp_path / "journal.jsonl").read_bytes()
    (tmp_path / "journal.jsonl").write_bytes(whole + b'{"batch": 6, "num')
    run(Line(samples(80)), tmp_path, steps=8)
    assert (tmp_path / "journal.jsonl").read_bytes() == whole


def test_a_record_that_is_shorter_than_the_checkpoint_knows_is_refused(tmp_path):
    run(Line(samples(80)), tmp_path, PLAN, steps=6)
    (tmp_path / "journal.jsonl").write_bytes(b"")
    with pytest.raises(Exception, match="put the file back"):
        run(Line(samples(80)), tmp_path, steps=8)


def test_a_record_of_another_run_is_found_out(tmp_path):
    run(Line(samples(80)), tmp_path, steps=6)
    with (tmp_path / "journal.jsonl").open("a") as file:
        file.write('{"batch": 2, "samples": 3}\n')
    with pytest.raises(Exception, match="the journal of another run"):
        run(Line(samples(80)), tmp_path, steps=8)


@pytest.mark.parametrize("line", ["[]", "nonsense", '{"step": 1}'])
def test_a_line_that_is_no_row_is_said_with_its_number(tmp_path, line):
    (tmp_path / "journal.jsonl").write_text(f'{{"batch": 0, "samples": 3}}\n{line}\n')
    with pytest.raises(Exception, match=r"journal.jsonl, line 2: this is no row"):
        run(Line(samples(80)), tmp_path, steps=8)


def test_stream_without_a_control_follows_its_own_record(tmp_path):
    line = slowly(9, 200)
    runner = steered(line, tmp_path, every=4).without("control_server")
    runner.run(steps=9)
    assert any("samples" in row for row in rows(tmp_path))
    assert isinstance(runner[StreamProvider].log_values()["examples"], int)


# -- found by an audit -------------------------------------------------------------------------------------------------


def test_the_steps_of_a_step_are_counted_over_a_resumption(tmp_path):
    """The checkpoint is taken at the border itself, where a resumed run looks once more."""
    run(Line(samples(200)), tmp_path, {2: [("step", {"n": 4})], 4: [("stop", {})]}, pass_every=1000)
    again = steered(Line(samples(200)), tmp_path, pass_every=1000)
    with in_thread(again, 20) as running:
        assert wait_until_paused(again[ControlServer]) == 6
        again[ControlServer].ask("resume", {})
        assert running.result(PATIENCE).step == 20


def wait_until_paused(control):
    """Ask until the run says that it is; a command that it carries out then tells the step."""
    while control.status()["state"] != "paused":
        pass
    return asked(control, "set", **{RATE: 0.01}).step


def test_figures_of_numpy_do_no_harm(tmp_path):
    runner = steered(Line(samples(80)), tmp_path)
    runner["tester"].act = lambda state: state.report({"tester.f1": np.float32(0.5)})
    script = Script({2: [("test", {})]})
    script.control = runner[ControlServer]
    state = runner.insert_before("gradient_machine", Observer(on_batch_end=script)).run(steps=4)
    assert state.step == 4
    assert script.answers[0].result(PATIENCE).result == {"tester.f1": 0.5}


def test_half_a_character_does_no_harm(tmp_path):
    run(Line(samples(80)), tmp_path, {3: [("stop", {"why": "\ud800"})]})
    assert commands_in(tmp_path) == [(3, "stop")]


def test_a_service_that_cannot_start_leaves_the_item_as_it_was(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        runner = steered(Line(samples(80)), tmp_path)
        runner[ControlServer].port = taken.getsockname()[1]
        with pytest.raises(OnionError, match="in use"):
            runner.run(steps=2)
    assert runner[ControlServer].url is None
    runner[ControlServer].port = 0
    urls = []
    watch = Observer(on_batch_end=lambda state: urls.append(runner[ControlServer].url))
    runner.insert_before("gradient_machine", watch).run(steps=2)
    assert urls[0].startswith("http://127.0.0.1:")
    assert runner[ControlServer].url is None


def test_who_subscribes_after_the_end_hears_the_end(tmp_path):
    runner, _ = run(Line(samples(80)), tmp_path, steps=2)
    assert runner[ControlServer].subscribe().get(timeout=PATIENCE) is None


@pytest.mark.parametrize("inside", [True, False])
def test_a_mailbox_and_a_control_are_both_heard_while_nothing_comes(tmp_path, inside):
    idle, mailbox = threading.Event(), Mailbox()
    runner = steered(Line(samples(8), lambda line: idle.set()), tmp_path)
    put = runner.insert_after if inside else runner.insert_before
    onion = put("control_server", mailbox)
    with in_thread(onion, 100) as running:
        assert idle.wait(PATIENCE)
        assert mailbox.post(lambda state: state.step).result(PATIENCE) == 2
        assert onion[ControlServer].ask("stop", {}).result(PATIENCE).step == 2
        assert running.result(PATIENCE).step == 2


def test_a_run_that_follows_and_has_to_wait_does_not_spin(tmp_path):
    (tmp_path / "journal.jsonl").write_text('{"batch": 0, "samples": 3}\n')
    timeouts = []

    def come(line):
        timeouts.append(line.reads[-1][1])
        if len(timeouts) == 5:
            line.samples += samples(3)[2:]

    runner = steered(Line(samples(2), come), tmp_path)
    runner.run(steps=1)
    assert timeouts == [0.1] * 5


# -- predictions that have to wait for the loop ------------------------------------------------------------------------


def predicted(folder, asks=True, pauses=False):
    """Run with a Publish whose predictions draw random numbers; another thread asks for one, when there are no data."""

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
            assert asked.wait(PATIENCE)

    def tell(work):
        future = submit(work)
        asked.set()
        return future

    asked, answers = threading.Event(), []
    runner = steered(Line(samples(8), come), folder)
    publish = Publish(runner["gradient_machine"].network, noisy, lambda outputs: outputs.tolist(), every=1)
    runner = runner.insert_before(Switch, publish)
    control, submit = runner[ControlServer], publish._boundary.submit
    publish._boundary.submit = tell
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
