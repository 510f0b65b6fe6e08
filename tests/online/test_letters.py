"""Letters: what is asked of a run is looked at, and waits in order until it is taken or refused."""

from concurrent.futures import Future

import pytest

from onion.online import letters as module
from onion.online.desk import Answer, Refused
from onion.online.letters import Letters, settle
from onion.online.record import Record
from tests.online.lines import Line
from tests.online.steered import samples, steered
from tests.patience import PATIENCE


@pytest.fixture
def letters(tmp_path):
    """Of a run that has just begun."""
    runner = steered(Line(samples(8)), tmp_path)
    begun = Letters()
    begun.begin(runner, runner[Record])
    return begun


def test_they_are_taken_in_the_order_in_which_they_came(letters):
    asked = [letters.ask("step", {"n": n}) for n in (3, 1, 2)]
    assert letters.count() == 3
    taken = [letters.take(PATIENCE) for _ in asked]
    assert [letter.arguments for letter in taken] == [{"n": 3}, {"n": 1}, {"n": 2}]
    assert [letter.answer for letter in taken] == asked
    assert (letters.count(), letters.take()) == (0, None)


def test_a_key_that_was_there_brings_the_first_one_s_answer(letters):
    first = letters.ask("step", {"n": 2}, "k")
    assert letters.ask("step", {"n": 2}, "k") is first
    assert letters.ask("step", {"n": 2}, "another") is not first
    assert letters.count() == 2


@pytest.mark.parametrize(("command", "arguments"), [("stop", {}), ("step", {"n": 3})])
def test_a_key_of_another_command_is_refused(letters, command, arguments):
    letters.ask("step", {"n": 2}, "k")
    with pytest.raises(Refused, match="this key was another command's") as refused:
        letters.ask(command, arguments, "k")
    assert (refused.value.status, letters.count()) == (409, 1)


@pytest.mark.parametrize(
    ("command", "arguments", "words", "status"),
    [
        ("dance", {}, "no command", 404),
        ("pause", {"for": 3}, "'for' is no argument", 400),
        ("step", {"n": 0}, "no number of batches", 400),
        ("step", {"n": True}, "no number of batches", 400),
        ("step", {"n": 10**30}, "no number of batches", 400),
        ("stop", {"why": "x" * 2000}, "1000 characters", 400),
        ("set", {}, "no setting was given", 404),
        ("set", {"learning_rate": 100}, "from 1e-12 to 10", 400),
        ("set", {"learning_rate": float("nan")}, "is no number", 400),
        ("set", {"learning_rate": "0.1"}, "is no number", 400),
        ("set", {"momentum": 0.1}, "'momentum' is no setting; there are parameter_updater.learning_rate", 400),
        ("enable", {"ring": "saver"}, "'saver' is no ring with a Switch; there are double", 404),
    ],
)
def test_what_cannot_be_done_is_refused(letters, command, arguments, words, status):
    with pytest.raises(Refused) as refused:
        letters.ask(command, arguments, "k")
    assert words in str(refused.value)
    assert (refused.value.status, letters.count()) == (status, 0)
    letters.ask("save", {}, "k")  # the key is free still
    assert letters.take().command == "save"


def test_more_than_may_wait_are_refused_until_some_are_taken(letters, monkeypatch):
    monkeypatch.setattr(module, "WAITING", 2)
    for _ in range(2):
        letters.ask("save", {})
    with pytest.raises(Refused, match="2 commands wait already") as refused:
        letters.ask("save", {})
    assert refused.value.status == 503
    letters.take()
    letters.ask("save", {})
    assert letters.count() == 2


def test_without_a_run_everything_is_refused():
    with pytest.raises(Refused, match="no run is under way") as refused:
        Letters().ask("pause", {})
    assert refused.value.status == 409


def test_at_the_end_of_a_run_those_that_wait_are_refused_and_no_more_come(letters):
    asked = [letters.ask("save", {}) for _ in range(2)]
    letters.end()
    for answer in asked:
        with pytest.raises(Refused, match="was not carried out"):
            answer.result(PATIENCE)
    with pytest.raises(Refused, match="no run is under way"):
        letters.ask("save", {})
    assert letters.count() == 0


def test_who_waits_has_the_first_outcome():
    answer, future = Answer(1, "save", 5), Future()
    settle(future, answer)
    settle(future, Refused("too late"))
    settle(None, answer)  # of a command that nobody waits for, which a run does again
    assert future.result(PATIENCE) is answer
    refused = Future()
    settle(refused, Refused("no"))
    settle(refused, answer)
    assert str(refused.exception(PATIENCE)) == "no"
