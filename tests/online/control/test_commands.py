"""CommandQueue: commands are checked, and wait in order until they are taken or refused."""

from concurrent.futures import Future

import pytest

from onion.http.refused import Refused
from onion.online.control import commands as module
from onion.online.control.commands import CommandQueue, settle
from onion.online.control.run_api import Answer
from onion.online.journal.journal import Journal
from tests.online.control.steered import samples, steered
from tests.online.toys import Line, refusal
from tests.patience import PATIENCE


@pytest.fixture
def queue(tmp_path):
    """The queue of a run that has just begun."""
    runner = steered(Line(samples(8)), tmp_path)
    begun = CommandQueue()
    begun.begin(runner, runner[Journal])
    return begun


def test_commands_are_taken_in_order(queue):
    asked = [queue.ask("step", {"n": n}) for n in (3, 1, 2)]
    assert queue.count() == 3
    assert queue.peek(PATIENCE) is queue.peek()
    assert queue.count() == 3
    taken = [queue.take() for _ in asked]
    assert [queued.arguments for queued in taken] == [{"n": 3}, {"n": 1}, {"n": 2}]
    assert [queued.answer for queued in taken] == asked
    assert (queue.count(), queue.take()) == (0, None)


def test_a_repeated_key_returns_the_first_answer(queue):
    first = queue.ask("step", {"n": 2}, "k")
    assert queue.ask("step", {"n": 2}, "k") is first
    assert queue.ask("step", {"n": 2}, "another") is not first
    assert queue.count() == 2


@pytest.mark.parametrize(("command", "arguments"), [("stop", {}), ("step", {"n": 3})])
def test_a_key_of_another_command_is_refused(queue, command, arguments):
    queue.ask("step", {"n": 2}, "k")
    words = "another command had this key; use a new key for each command."
    assert refusal(queue.ask, command, arguments, "k") == (409, words)
    assert queue.count() == 1


@pytest.mark.parametrize(
    ("command", "arguments", "words", "status"),
    [
        ("dance", {}, "unknown command 'dance'", 404),
        ("pause", {"for": 3}, "unknown argument 'for'", 400),
        *(("step", {"n": n}, "must be an integer between 1 and", 400) for n in (0, True, 10**30)),
        ("stop", {"why": "x" * 2000}, "at most 1000 characters", 400),
        ("set", {}, "no setting was given", 404),
        ("set", {"learning_rate": 100}, "from 1e-12 to 10", 400),
        ("set", {"learning_rate": float("nan")}, "must be a number from 1e-12 to 10, got nan", 400),
        ("set", {"learning_rate": "0.1"}, "must be a number from 1e-12 to 10, got '0.1'", 400),
        ("set", {"momentum": 0.1}, "'momentum' is no setting; there are parameter_updater.learning_rate", 400),
        ("enable", {"ring": "saver"}, "'saver' is no item with a Switch; there are double", 404),
    ],
)
def test_invalid_commands_are_refused(queue, command, arguments, words, status):
    found, reason = refusal(queue.ask, command, arguments, "k")
    assert words in reason
    assert (found, queue.count()) == (status, 0)
    queue.ask("save", {}, "k")  # the key is still free
    assert queue.take().command == "save"


def test_a_full_queue_refuses_commands_until_some_are_taken(queue, monkeypatch):
    monkeypatch.setattr(module, "MAX_QUEUED", 2)
    for _ in range(2):
        queue.ask("save", {})
    assert refusal(queue.ask, "save", {}) == (503, "2 commands are queued already; try again.")
    queue.take()
    queue.ask("save", {})
    assert queue.count() == 2


def test_without_a_run_every_command_is_refused(queue):
    assert refusal(CommandQueue().ask, "pause", {}) == (409, "there is no run.")
    asked = [queue.ask("save", {}) for _ in range(2)]
    queue.end()
    for answer in asked:
        assert refusal(answer.result, PATIENCE) == (409, "the run has ended; the command was not carried out.")
    assert refusal(queue.ask, "save", {}) == (409, "there is no run.")
    assert queue.count() == 0


def test_the_first_outcome_of_a_command_counts():
    answer, future = Answer(1, "save", 5), Future()
    settle(future, answer)
    settle(future, Refused("too late"))
    settle(None, answer)  # of a command that a run repeats, for which no caller waits
    assert future.result(PATIENCE) is answer
    refused = Future()
    settle(refused, Refused("no"))
    settle(refused, answer)
    assert str(refused.exception(PATIENCE)) == "no"
