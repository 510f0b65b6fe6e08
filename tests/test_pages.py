"""What the READMEs, tutorials and Chinese pages show: outputs, commands, the same snippets in both languages.

tests/test_docs.py runs the Python of all pages; tests/test_site.py looks at the site.
"""

import re
import shlex
import textwrap

import pytest

from onion.cli.arguments import parser
from tests.paths import ROOT

DOCS = ROOT / "docs"
PAGES = [*ROOT.glob("README*.md"), ROOT / "CONTRIBUTING.md", *DOCS.rglob("*.md")]
TEXTS = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in sorted(PAGES)}
LOSS = re.compile(r"^pass (\d): loss (\S+)$", re.MULTILINE)

CHINESE = {"README_cn.md": "README.md"} | {page: page.replace("/zh/", "/") for page in TEXTS if "/zh/" in page}
"""Page in Chinese -> the English one."""


def blocks(page, kind="python"):
    """Return the fenced blocks of a page that are of a kind."""
    return re.findall(rf"^```{kind}\n([\s\S]*?)^```$", TEXTS[page], re.MULTILINE)


def run(snippets):
    names = {}
    for snippet in snippets:
        exec(compile(snippet, "a page", "exec"), names)
    return names


# -- outputs -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", ["README.md", "README_cn.md", "docs/quickstart.md", "docs/zh/quickstart.md"])
def test_the_quick_start_prints_what_is_shown(page, capsys):
    quick_start = blocks(page)[0]
    run([quick_start])
    printed = capsys.readouterr().out
    shown = textwrap.dedent(re.search(r"\n\n((?:    .*\n)+)", TEXTS[page].partition(quick_start)[2])[1])
    assert LOSS.sub("", printed) == LOSS.sub("", shown)
    losses = [[float(loss) for _, loss in LOSS.findall(text)] for text in (printed, shown)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-3)


@pytest.mark.parametrize(
    ("page", "printed"),
    [
        ("docs/quickstart.md", "32\n"),  # 8 batches a pass, 4 passes, of which the second program runs 2
        ("docs/tutorials/item.md", "\n24\n['outer.on_pass:in', 'outer.on_batch:in', 'outer.on_batch:error', "),
    ],
)
def test_a_page_prints_what_its_comments_say(page, printed, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run(blocks(page))
    assert printed in capsys.readouterr().out


def test_the_first_screen_of_the_readme_has_what_a_visitor_looks_for():
    lines = TEXTS["README.md"].splitlines()
    assert len(lines) <= 150
    first = "\n".join(lines[:60])
    assert [
        what for what in ("pip install", "runner.run(passes=3)", "pass 2: loss", "Lightning") if what not in first
    ] == []


def test_the_item_of_the_readme_is_that_of_the_tutorial():
    assert blocks("README.md")[2] in blocks("docs/tutorials/item.md")


def test_the_readme_and_its_page_list_the_same_examples():
    of_the_readme = TEXTS["README.md"].split("\n## Examples\n")[1].split("\n## ")[0]
    of_the_page = TEXTS["docs/examples.md"].partition("| --- | --- |")[2].partition("\n\n")[0]
    listed = [set(re.findall(r"`(\w+\.py)`", text)) for text in (of_the_readme, of_the_page)]
    assert listed[0] == listed[1]


# -- commands ----------------------------------------------------------------------------------------------------------

COMMANDS = [
    (page, command.strip())
    for page in TEXTS
    for line in "".join(blocks(page, "sh")).splitlines()
    for command in line.split("|")
    if command.strip().startswith("onion ")
]


@pytest.mark.parametrize(("page", "command"), COMMANDS, ids=[f"{page}-{command[:24]}" for page, command in COMMANDS])
def test_a_command_of_a_page_can_be_parsed(page, command):
    """What is left out, `...`, stands for required arguments at most."""
    words = shlex.split(command, comments=True)[1:]
    if "..." in words:
        words = [word for word in words if word != "..."] + ["--output", "run"]
    if words != ["--version"]:
        assert parser().parse_args(words).command


# -- languages ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("page", "english"), CHINESE.items())
@pytest.mark.parametrize("kind", ["python", "python fragment", "sh", "yaml"])
def test_a_chinese_page_has_snippets_of_the_english_one(page, english, kind):
    """In its order, and not necessarily all of them."""
    left = iter(blocks(english, kind))
    assert [block for block in blocks(page, kind) if block not in left] == []
