"""The text set made from the docstrings of the standard library."""

import subprocess
import sys
import sysconfig
from collections import Counter
from pathlib import Path

import pytest

from onion.data import read_rows
from tests.examples.in_process import EXAMPLES, load

SCRIPT = EXAMPLES / "stdlib_topics.py"
topics = load("stdlib_topics")
Example = topics.Example


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    out = tmp_path_factory.mktemp("topics")
    return out, topics.build(out, Path(sysconfig.get_path("stdlib")))


def rows(folder, name):
    return [(row["label"], row["text_a"]) for row in read_rows(folder / f"{name}.tsv", ["label", "text_a"])]


def test_the_set_is_large_and_every_chapter_is_in_both_splits(built):
    out, counts = built
    train, dev = rows(out, "train"), rows(out, "dev")
    assert 5000 < len(train) < 15000
    assert 0.12 < len(dev) / (len(train) + len(dev)) < 0.18
    assert Counter(label for label, _ in train) == counts["train"]
    assert Counter(label for label, _ in dev) == counts["dev"]
    assert set(counts["train"]) == set(counts["dev"]) == set(topics.CHAPTERS)
    assert min(counts["train"].values()) > 150


def test_no_text_stands_twice(built):
    texts = [text for name in ("train", "dev") for _, text in rows(built[0], name)]
    assert len(texts) == len(set(texts))
    assert all(len(text.split()) >= 4 and text == " ".join(text.split()) and ">>>" not in text for text in texts)


def test_the_command_line_prints_counts_and_does_not_depend_on_the_hash_seed(built, tmp_path):
    command = [sys.executable, str(SCRIPT), "--output", str(tmp_path)]
    printed = subprocess.run(command, env={"PYTHONHASHSEED": "7"}, check=True, capture_output=True, text=True).stdout
    assert printed.splitlines()[0].split() == ["label", "train", "dev"]
    assert printed.splitlines()[-1].split() == ["all", *(str(built[1][name].total()) for name in ("train", "dev"))]
    for name in ("train.tsv", "dev.tsv"):
        assert (tmp_path / name).read_bytes() == (built[0] / name).read_bytes()


def test_a_docstring_belongs_to_its_module_level_object():
    source = b'''"""The module."""
def outer():
    """A function."""
    def inner():
        """Inside."""
class Class:
    """A class."""
    async def method(self):
        """A method."""
try:
    def fallback():
        """Under a try."""
except ImportError:
    class Other:
        """Under an except."""
'''
    assert list(topics.docstrings(source, "mod")) == [
        ("mod", "The module."),
        ("mod.outer", "A function."),
        ("mod.outer", "Inside."),
        ("mod.Class", "A class."),
        ("mod.Class", "A method."),
        ("mod.fallback", "Under a try."),
        ("mod.Other", "Under an except."),
    ]


@pytest.mark.parametrize(
    ("docstring", "expected"),
    [
        ("Return the whole\n    answer.  Then leave it alone.", ["Return the whole answer.", "Then leave it alone."]),
        ("Too short here.\n\nThis one is long enough.", ["This one is long enough."]),
        ("Here is an example:\n>>> f(one word and another)\nThe output of this call.", ["Here is an example:"]),
        (
            "Prose before the example.\n\n  >>> f()\n  Output of the call.\n\nProse after the example.",
            ["Prose before the example.", "Prose after the example."],
        ),
        ("f(a, *, b=None, **kwargs) -> tuple[int, ...]", []),
        ("Works with e.g. small files too.", ["Works with e.g. small files too."]),
    ],
)
def test_sentences(docstring, expected):
    assert list(topics.sentences(docstring)) == expected


def test_only_the_table_s_modules_are_read_and_no_tests(tmp_path):
    for name in ("json/__init__.py", "json/test/a.py", "re.py", "unheard_of.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'"""Every word of {path.name.strip("_")} counts."""\nimport nothing_of_that_name\n')
    assert list(topics.read_library(tmp_path)) == [
        Example("text", "Every word of re.py counts.", "re"),
        Example("internet_data", "Every word of init__.py counts.", "json"),
    ]


def test_splitting_keeps_objects_together_and_texts_apart(monkeypatch):
    monkeypatch.setattr(topics, "_in_dev", lambda origin: origin.startswith("dev"))
    examples = [
        Example("a", "in both sets", "dev.f"),
        Example("a", "in dev alone", "dev.f"),
        Example("a", "in both sets", "train.g"),
        Example("a", "under two labels", "train.g"),
        Example("b", "under two labels", "dev.h"),
        Example("a", "in train alone", "train.g"),
        Example("a", "in train alone", "train.h"),
    ]
    train, dev = topics.split(examples)
    assert [example.text for example in train] == ["in both sets", "in train alone"]
    assert [example.text for example in dev] == ["in dev alone"]
