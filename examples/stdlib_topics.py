"""A text set made from Python itself: which chapter of the library reference is a sentence about?

The texts are the sentences of the docstrings in Python's own standard library. The label of a sentence is the chapter
of the "Python Library Reference" that its module belongs to. Nothing is downloaded and no module is imported: the
source files are parsed. So the set can be made on any machine, in a few seconds.

    python examples/stdlib_topics.py --output build/topics

writes ``train.tsv`` and ``dev.tsv`` with the columns ``label`` and ``text_a``. Their texts differ a little from one
version of Python to the next, as the library does.

All sentences of one function or class are in the same split, and no text is in both: a model cannot do well on
``dev.tsv`` by having seen the same words.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import inspect
import re
import sysconfig
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

# Chapter -> its modules, after https://docs.python.org/3/library/index.html: the twelve chapters with the most text.
# Graphical interfaces, packaging and program frameworks are left out, since many systems install them separately.
# A package includes all its modules. A name with an underscore is the pure Python version of a module in C, or a
# private part of a public module. A module that this version of Python does not have is passed over.
CHAPTERS = {
    "text": "string re sre_compile sre_parse difflib textwrap stringprep rlcompleter",
    "data_types": (
        "datetime _pydatetime zoneinfo calendar collections _collections_abc heapq bisect weakref _weakrefset types"
        " copy pprint reprlib enum graphlib"
    ),
    "numbers": "numbers decimal _pydecimal fractions random statistics",
    "files": "pathlib posixpath ntpath genericpath fileinput filecmp tempfile glob fnmatch linecache shutil",
    "system": "os io _pyio argparse optparse getopt logging getpass curses platform ctypes _strptime",
    "concurrency": "threading _threading_local multiprocessing concurrent subprocess sched queue",
    "networking": "asyncio socket ssl selectors signal asyncore asynchat",
    "internet_data": "email json mailbox mimetypes base64 quopri",
    "markup": "html xml _markupbase",
    "internet": (
        "webbrowser wsgiref urllib http ftplib poplib imaplib smtplib uuid socketserver xmlrpc ipaddress"
        " cgi cgitb nntplib telnetlib"
    ),
    "development": "typing pydoc doctest unittest",
    "runtime": "sysconfig warnings dataclasses contextlib abc traceback __future__ inspect site code codeop",
}

TEST_FOLDERS = {"test", "tests", "idle_test"}
DEV_PERCENT = 20
"""Of the objects. It is about 15 percent of the texts, since repeated ones stay in the training set."""
SHORTEST = 4
"""Words in the shortest sentence that is kept."""


class Example(NamedTuple):
    """One sentence, its chapter, and the module-level object it documents (``module.object``)."""

    label: str
    text: str
    origin: str


def read_library(library: Path) -> Iterator[Example]:
    """Every sentence of every docstring of the chapters above.

    Args:
        library: The folder of the standard library.
    """
    for label, modules in CHAPTERS.items():
        for module in modules.split():
            for path in _files(library, module):
                name = ".".join(path.relative_to(library).with_suffix("").parts).removesuffix(".__init__")
                for origin, docstring in docstrings(path.read_bytes(), name):
                    for sentence in sentences(docstring):
                        yield Example(label, sentence, origin)


def _files(library: Path, module: str) -> list[Path]:
    folder, file = library / module, library / f"{module}.py"
    if folder.is_dir():
        inside = sorted(folder.rglob("*.py"))
        return [path for path in inside if not TEST_FOLDERS.intersection(path.relative_to(library).parts)]
    return [file] if file.is_file() else []


def docstrings(source: bytes, module: str) -> Iterator[tuple[str, str]]:
    """The docstrings of a source file, each with the module-level object it belongs to.

    The docstring of a method belongs to its class, that of the module to the module.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the library's own deprecated escapes are not our business
        tree = ast.parse(source)
    if text := ast.get_docstring(tree):
        yield module, text
    for node in _definitions(tree):
        for inner in ast.walk(node):
            if isinstance(inner, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and (
                text := ast.get_docstring(inner)
            ):
                yield f"{module}.{node.name}", text


def _definitions(tree: ast.AST) -> Iterator[ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]:
    """Classes and functions of the module's own level, also those under an ``if`` or ``try``."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
        elif isinstance(node, ast.If | ast.Try | ast.ExceptHandler | ast.With):
            yield from _definitions(node)


def sentences(docstring: str) -> Iterator[str]:
    """The sentences of a docstring in one line each, without doctests, very short ones and code."""
    for paragraph in re.split(r"\n\s*\n", inspect.cleandoc(docstring)):
        # the output of a doctest follows up to the blank line
        prose, *_ = re.split(r"^\s*>>>", paragraph, maxsplit=1, flags=re.MULTILINE)
        for sentence in re.split(r"(?<=[.!?:])\s+(?=[A-Z])", " ".join(prose.split())):
            if len(sentence.split()) >= SHORTEST and not _is_code(sentence):
                yield sentence


def _is_code(text: str) -> bool:
    """Prose is letters and spaces; a signature, table or program has a tenth or more of something else."""
    plain = sum(char.isalpha() or char in " .,'-" for char in text)
    return plain < 0.9 * len(text)


def split(examples: Iterable[Example]) -> tuple[list[Example], list[Example]]:
    """Training and development set: about 85 and 15 percent, cut between module-level objects.

    A text with two labels is dropped, and so are repetitions of a text within and between the sets.
    """
    labels = defaultdict(set)
    unique: dict[str, Example] = {}
    for example in examples:
        labels[example.text].add(example.label)
        kept = unique.setdefault(example.text, example)
        if _in_dev(kept.origin) and not _in_dev(example.origin):
            unique[example.text] = example  # a text of both sets stays in the training set
    clear = [example for example in unique.values() if len(labels[example.text]) == 1]
    train = [example for example in clear if not _in_dev(example.origin)]
    return train, [example for example in clear if _in_dev(example.origin)]


def _in_dev(origin: str) -> bool:
    return _digest(origin) % 100 < DEV_PERCENT


def _digest(text: str) -> int:
    """A number that depends on the text only; `hash` differs from process to process."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def build(out: Path, library: Path) -> dict[str, Counter[str]]:
    """Write ``train.tsv`` and ``dev.tsv``.

    Args:
        out: The folder to write to; made where it does not exist.
        library: The folder of the standard library.

    Returns:
        For each split the number of examples by label.
    """
    train, dev = split(read_library(library))
    out.mkdir(parents=True, exist_ok=True)
    counts = {}
    for name, examples in (("train", train), ("dev", dev)):
        rows = "".join(f"{example.label}\t{example.text}\n" for example in examples)
        (out / f"{name}.tsv").write_bytes(f"label\ttext_a\n{rows}".encode())
        counts[name] = Counter(example.label for example in examples)
    return counts


def main(arguments: list[str] | None = None) -> None:
    """Build the set and print how many examples each label has."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--output", type=Path, required=True, help="folder to write train.tsv and dev.tsv to")
    options = parser.parse_args(arguments)
    counts = build(options.output, Path(sysconfig.get_path("stdlib")))
    train, dev = counts["train"], counts["dev"]
    print(f"{'label':<15}{'train':>7}{'dev':>7}")
    for label in CHAPTERS:
        print(f"{label:<15}{train[label]:>7}{dev[label]:>7}")
    print(f"{'all':<15}{train.total():>7}{dev.total():>7}")


if __name__ == "__main__":
    main()
