"""What the README says of its snippets is true; that its Python runs is shown by tests/test_docs.py."""

import re
import textwrap

import pytest

from onion import DataProvider, GradientMachine, ParameterUpdater, Runner, RunnerItem, Saver
from onion.testing import Batches, assert_resumes_exactly, toy_examples, toy_network
from tests.paths import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
QUICK_START, RETRY, COUNTER, *_ = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
LOSS = re.compile(r"^pass (\d): loss (\S+)$", re.MULTILINE)


def names_of(*blocks):
    names = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)
    return names


def test_the_quick_start_prints_what_is_shown(capsys):
    names_of(QUICK_START)
    printed = capsys.readouterr().out
    shown = textwrap.dedent(re.search(r"\n\n((?:    .*\n)+)", README.partition(QUICK_START)[2])[1])
    assert LOSS.sub("", printed) == LOSS.sub("", shown)
    losses = [[float(loss) for _, loss in LOSS.findall(text)] for text in (printed, shown)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-3)


def test_the_retrying_item_retries_and_counts_the_batch_once():
    calls = []

    class Tight(RunnerItem):
        def on_batch(self, state):
            calls.append(state.batch)
            if len(calls) % 3:
                raise MemoryError

    assert Runner(Batches(2), names_of(RETRY)["RetryOnMemoryError"](), Tight()).run(passes=1).step == 2
    assert calls == [0, 0, 0, 1, 1, 1]


def test_the_item_with_state_counts_and_resumes_exactly(tmp_path):
    from paddle.optimizer import SGD

    counter = names_of(RETRY, COUNTER)["Examples"]

    def make(folder):
        network = toy_network()
        updater = ParameterUpdater(SGD(0.01, parameters=network.parameters()))
        return Runner(
            Saver(folder), counter(), DataProvider(toy_examples(12), batch_size=5), updater, GradientMachine(network)
        )

    runner = make(tmp_path / "counted")
    runner.run(passes=2)
    assert runner["examples"].seen == 24
    assert_resumes_exactly(make, tmp_path / "proof", passes=2)
