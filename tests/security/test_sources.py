"""What the sources themselves may not do, and that the table of loaders has every module that reads."""

import ast
import pickle
import pickletools
import re

import pytest

from onion.models.tokenization.ernie_tiny_dictionary import WordDictionary
from tests.paths import ROOT
from tests.security.loaders import LOADERS, READERS

TOPS = ("onion", "models", "tasks")
SOURCES = {path.relative_to(ROOT).as_posix(): path for top in TOPS for path in (ROOT / top).rglob("*.py")}
READING = re.compile(
    r"(.*\.)?(open|read_bytes|read_text|loads|fromfile|memmap|open_memmap|read_array|from_file|safe_open|ZipFile|GzipFile|"
    r"genops|safe_load|LoadFromSerializedProto|load_arrays|urlopen)"
)
FORBIDDEN = re.compile(
    r"(eval|exec|compile|__import__|os\.system|os\.popen|(pickle|marshal|shelve|dill)\.loads?|pickle\.Unpickler|"
    r"(np|numpy|paddle|joblib|torch)\.(load|save)|yaml\.(load|full_load|unsafe_load)(_all)?|.*\.extractall|.*\.extract)"
)


def calls(path):
    return [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]


def test_every_module_that_reads_is_in_the_table():
    found = {
        name for name, path in SOURCES.items() if any(READING.fullmatch(ast.unparse(call.func)) for call in calls(path))
    }
    assert found == set(READERS)
    named = {loader for loaders in READERS.values() if not isinstance(loaders, str) for loader in loaders}
    assert named == set(LOADERS)


@pytest.mark.parametrize("name", SOURCES)
def test_nothing_that_could_run_a_file_is_called(name):
    for call in calls(SOURCES[name]):
        assert not FORBIDDEN.fullmatch(ast.unparse(call.func)), f"{name}:{call.lineno}"
        for given in call.keywords:
            told = f"{given.arg}={ast.unparse(given.value)}"
            assert told not in ("allow_pickle=True", "shell=True"), f"{name}:{call.lineno}"


def test_the_one_pickle_that_is_written_holds_words_and_numbers_only():
    """ERNIE tiny's dictionary, whose format is PaddleNLP's: nothing in it is a name that a reader would look up."""
    writing = [name for name, path in SOURCES.items() if any("pickle.dump" in ast.unparse(c.func) for c in calls(path))]
    assert writing == ["models/tokenization/ernie_tiny_dictionary.py"]
    data = WordDictionary(["film", "中国"]).to_bytes()
    assert {opcode.name for opcode, _, _ in pickletools.genops(data)} <= {
        "PROTO", "EMPTY_DICT", "BINPUT", "MARK", "BINUNICODE", "BININT1", "SETITEMS", "STOP",
    }  # fmt: skip
    assert pickle.loads(data) == {"film": 0, "中国": 1}
