"""What the READMEs and the quick start say of their snippets is true; tests/test_docs.py runs all snippets."""

import re
import textwrap

import pytest

from onion import DataProvider, GradientMachine, ParameterUpdater, Runner, RunnerItem, Saver
from onion.testing import Batches, assert_resumes_exactly, toy_examples, toy_network
from tests.paths import ROOT

LOSS = re.compile(r"^pass (\d): loss (\S+)$", re.MULTILINE)


def text(page):
    return (ROOT / page).read_text(encoding="utf-8")


def snippets(page):
    return re.findall(r"```python\n(.*?)```", text(page), re.DOTALL)


def names_of(*blocks):
    names = {}
    for block in blocks:
        exec(compile(block, "a page", "exec"), names)
    return names


@pytest.mark.parametrize("page", ["README.md", "README_cn.md", "docs/quickstart.md", "docs/zh/quickstart.md"])
def test_the_quick_start_prints_what_is_shown(page, capsys):
    quick_start = snippets(page)[0]
    names_of(quick_start)
    printed = capsys.readouterr().out
    shown = textwrap.dedent(re.search(r"\n\n((?:    .*\n)+)", text(page).partition(quick_start)[2])[1])
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

    retry = names_of(snippets("README.md")[1])["RetryOnMemoryError"]
    assert Runner(Batches(2), retry(), Tight()).run(passes=1).step == 2
    assert calls == [0, 0, 0, 1, 1, 1]


def test_the_item_with_state_counts_and_resumes_exactly(tmp_path):
    from paddle.optimizer import SGD

    counter = names_of(*snippets("docs/tutorials/item.md")[:2])["Examples"]

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


def test_a_first_screen_of_the_readme_has_all_that_a_visitor_looks_for():
    lines = text("README.md").splitlines()
    assert len(lines) <= 150
    first = "\n".join(lines[:60])
    assert all(what in first for what in ("pip install", "runner.run(passes=3)", "pass 2: loss", "Lightning"))


@pytest.mark.parametrize(
    ("page", "printed"),
    [
        ("docs/quickstart.md", "32\n"),  # 8 batches a pass, 4 passes, of which the second program runs 2
        ("docs/tutorials/item.md", "\n24\n['outer.on_pass:in', 'outer.on_batch:in', 'outer.on_batch:error', "),
    ],
)
def test_a_page_prints_what_its_comments_say(page, printed, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names_of(*snippets(page))
    assert printed in capsys.readouterr().out
