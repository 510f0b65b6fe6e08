"""The one door of online learning: its names, and who may go through it."""

import re
from pathlib import Path

import pytest

import onion
from onion import online

ROOT = Path(onion.__file__).parents[1]


@pytest.mark.parametrize("name", online.__all__)
def test_each_name_is_there(name):
    assert getattr(online, name).__name__ == name


def test_no_other_name_is_there():
    with pytest.raises(AttributeError, match="no attribute 'Pipe'"):
        online.Pipe  # noqa: B018


def test_engine_items_models_and_tasks_never_import_it():
    door, imports = Path(online.__file__).parent, re.compile(rf"^\s*(from|import) {re.escape(online.__name__)}\b", re.M)
    files = [file for folder in ("onion", "models", "tasks") for file in (ROOT / folder).rglob("*.py")]
    found = {
        file.relative_to(ROOT).parts[1]
        for file in files
        if imports.search(file.read_text()) and door not in file.parents
    }
    assert found == {"cli"}
