"""README.md, CONTRIBUTING.md, the pages under docs/ and `make help`: what they say is true.

Python is in blocks that begin with ```python. The blocks of a page run one after the other, in one namespace, in a
folder with what the page takes for granted. What cannot run by itself begins with ```python fragment.
"""

import ast
import builtins
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import onion
import onion.online
from onion import DataProvider, GradientMachine, ParameterUpdater, Runner, RunnerItem, Saver
from onion.tasks.registry import TASKS
from onion.testing import Batches, assert_resumes_exactly, toy_examples, toy_network
from tests.paths import ROOT
from tests.tasks.helpers import films, tiny_encoder, write_tsv
from tests.tasks.tagged import tagged

FIRST = [ROOT / "README.md", ROOT / "README_cn.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"]
PAGES = {path.relative_to(ROOT).as_posix(): path for path in [*FIRST, *sorted((ROOT / "docs").rglob("*.md"))]}
TEXTS = {name: path.read_text(encoding="utf-8") for name, path in PAGES.items()}
ITEMS = TEXTS["docs/items.md"]
FENCED = re.compile(r"^```(.*)\n([\s\S]*?)^```$", re.MULTILINE)


def blocks(page, kind="python"):
    """Return the fenced blocks of a page whose first line says so."""
    return [text for told, text in FENCED.findall(TEXTS[page]) if told.strip() == kind]


def indented(page):
    """Return the blocks of a page that are set off by four spaces."""
    parts = re.findall(r"(?:^\n|\A)((?:    .*\n|\n)+)", FENCED.sub("", TEXTS[page]), re.MULTILINE)
    return [textwrap.dedent(part).strip("\n") for part in parts if part.strip()]


WITH_BLOCKS = [page for page in PAGES if blocks(page)]
FRAGMENTS = [(page, text) for page in PAGES for text in blocks(page, "python fragment")]


@pytest.fixture(autouse=True)
def own_tasks():
    """What a page registers is known to its own test only."""
    before = dict(TASKS)
    yield
    TASKS.clear()
    TASKS.update(before)


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with the data and the encoder that docs/tasks.md and docs/migrating.md name."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ONION_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("tests.tasks.helpers.POSITIONS", 128)  # as many tokens as a text may have by default
    tiny_encoder(tmp_path / "minilm")
    for name, seed in (("train.tsv", 1), ("dev.tsv", 2)):
        write_tsv(tmp_path / name, tagged(24, seed))
    reviews = "".join(f"{text},{label}\n" for text, label in films(40, seed=1))
    (tmp_path / "reviews.csv").write_text(f"text,label\n{reviews}")
    return tmp_path


def run(page, number=None):
    """Run the blocks of a page, or as many as are asked for, in their order; return the names that they leave."""
    names = {}
    for block in blocks(page)[:number]:
        exec(compile(block, page, "exec"), names)
    return names


def test_there_are_blocks_to_run():
    assert {"README.md", "docs/items.md", "docs/online.md", "docs/tasks.md"} <= set(WITH_BLOCKS)
    assert FRAGMENTS


@pytest.mark.parametrize("page", WITH_BLOCKS)
def test_the_blocks_of_a_page_run_in_their_order(page, place):
    run(page)


def test_the_controlled_run_does_what_the_page_says(place, capsys):
    names, outputs = run("docs/items.md"), capsys.readouterr().out
    assert not names["running"].is_alive()
    assert names["updater"].log_values()["learning_rate"] == pytest.approx(0.01)
    assert names["runner"]["mailbox"] is names["mailbox"]
    assert "shape=[8, 1]" in outputs


def test_the_samples_of_the_page_are_in_the_spool_of_its_onion(place):
    names = run("docs/online.md")
    assert names["runner"].items[3].name == "stream_provider"
    with onion.online.SpoolWriter("samples.db", producer="clicks") as writer:
        assert writer.cursor == "2"


def test_the_training_of_the_page_can_be_predicted_from(place):
    run("docs/tasks.md")
    from onion.tasks.finetune.predictor import Predictor

    assert Predictor.load("run").task.name == "token-classification"


@pytest.mark.parametrize(("page", "text"), FRAGMENTS, ids=[page for page, _ in FRAGMENTS])
def test_a_fragment_is_python_and_names_what_there_is(page, text):
    """Or what it imports or defines itself."""
    nodes = list(ast.walk(ast.parse(text)))
    own = {node.name for node in nodes if isinstance(node, ast.alias | ast.ClassDef)}
    known = {*dir(builtins), *onion.__all__, *onion.online.__all__, *own}
    named = {node.id for node in nodes if isinstance(node, ast.Name)}
    assert {name for name in named if name[0].isupper()} <= known


@pytest.mark.parametrize("page", PAGES)
def test_python_of_a_page_is_fenced_links_lead_somewhere_and_make_targets_exist(page):
    """A picture of an onion is not Python, and neither is a command."""
    for block in indented(page):
        with pytest.raises(SyntaxError):
            ast.parse(block)
    kinds = {told.strip() for told, _ in FENCED.findall(TEXTS[page])}
    assert kinds <= {"python", "python fragment", "dockerfile", "nginx", "sh", "yaml", "json"}
    links = re.findall(r"\]\((?!https?:)([^)#]*)(?:#([^)]+))?\)", FENCED.sub("", TEXTS[page]))
    targets = [((PAGES[page].parent / path) if path else PAGES[page], anchor) for path, anchor in links]
    assert [str(path) for path, _ in targets if not path.exists()] == []
    assert [anchor for path, anchor in targets if anchor and anchor not in anchors(path)] == []
    assert set(re.findall(r"[`\n]make ([a-z][a-z0-9-]*)", TEXTS[page])) <= set(TARGETS)


def anchors(page):
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", FENCED.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_their_imports_stand_as_isort_and_ruff_leave_them(tmp_path):
    """In a project of a user's, to which onion and Paddle are two packages among others."""
    for page in WITH_BLOCKS:
        for number, block in enumerate(blocks(page)):
            (tmp_path / f"{Path(page).stem}_{number}.py").write_text(block, encoding="utf-8")
    ruff = [sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", "--config", "line-length=120"]
    done = subprocess.run([*ruff, "--select", "I", "."], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", sorted(onion.ITEMS))
def test_every_item_is_told_of(name):
    assert re.search(rf"`[^`]*\b{name}\b", ITEMS), f"docs/items.md does not tell of {name}"


def test_every_schedule_and_strategy_is_told_of():
    from onion import schedules
    from onion.multitask import strategies

    named = [name for name, what in vars(schedules).items() if getattr(what, "__module__", "") == schedules.__name__]
    named = [name for name in named if name.islower() and not name.startswith("_")]
    strategies = [name for name in strategies.__all__ if name not in ("TaskInfo", "Strategy", "Fixed")]
    assert [name for name in [*named, *strategies] if f"`{name}`" not in ITEMS] == []


LOSS = re.compile(r"^pass (\d): loss (\S+)$", re.MULTILINE)


def test_the_quick_start_prints_what_is_shown(capsys):
    run("README.md", 1)
    printed, shown = capsys.readouterr().out, f"{indented('README.md')[0]}\n"
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

    assert Runner(Batches(2), run("README.md", 2)["RetryOnMemoryError"](), Tight()).run(passes=1).step == 2
    assert calls == [0, 0, 0, 1, 1, 1]


def test_the_item_with_state_counts_and_resumes_exactly(tmp_path):
    from paddle.optimizer import SGD

    counter = run("README.md", 3)["Examples"]

    def make(folder):
        network = toy_network()
        updater = ParameterUpdater(SGD(0.01, parameters=network.parameters()))
        return Runner(Saver(folder), counter(), DataProvider(toy_examples(12), 5), updater, GradientMachine(network))

    runner = make(tmp_path / "counted")
    runner.run(passes=2)
    assert runner["examples"].seen == 24
    assert_resumes_exactly(make, tmp_path / "proof", passes=2)


GUARDED = TEXTS["docs/guards.md"].partition("## Not prevented")[0]
GUARDS = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", GUARDED)
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
TARGETS = re.search(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)[1].split()


def test_every_guard_names_a_test():
    rows = re.findall(r"^\| (?!what would|---)(.*) \|$", GUARDED, re.MULTILINE)
    assert len(rows) >= 10
    assert [row for row in rows if "`tests/" not in row and "the same test" not in row] == []


@pytest.mark.parametrize(("path", "name"), GUARDS, ids=[name for _, name in GUARDS])
def test_the_test_of_a_guard_exists(path, name):
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    assert name in [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
def test_every_target_of_the_makefile_has_its_line_of_help():
    command = ["make", "MAKEFLAGS=", "--no-print-directory", "help"]  # whatever the flags of a make around the tests
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert sorted(re.findall(r"^make (\S+) +\S", listed, re.MULTILINE)) == sorted(TARGETS)
    assert set(re.findall(r"^([a-z][a-z0-9-]*):", MAKEFILE, re.MULTILINE)) == set(TARGETS)
