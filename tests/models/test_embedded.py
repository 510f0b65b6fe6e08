"""A model that comes with onion: found by its name, and built into wheels."""

import hashlib
import json
import shutil
import subprocess
import sys
import tarfile
import zipfile

import pytest

from benchmarks.pretraining.study import shipped
from benchmarks.pretraining.study.__main__ import KEPT
from onion.cli import main
from onion.errors import WeightsError
from onion.models import hub
from onion.models.families import read_config
from onion.models.weights import read_weights
from tests.paths import ROOT

NAME = "wiki-zh"
FILES = {"README.md", "config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"}
SHIPPED = hub.EMBEDDED / NAME
"""Of this checkout, whatever a test does."""


@pytest.fixture
def embedded(tmp_path, monkeypatch):
    """A folder for the models that come with onion; there is none."""
    monkeypatch.setattr(hub, "EMBEDDED", tmp_path / "embedded")
    monkeypatch.setenv("ONION_HOME", str(tmp_path / "home"))
    return tmp_path / "embedded"


@pytest.fixture
def there(embedded):
    """The folder of a model, with files of the right names."""
    for name in FILES:
        path = embedded / NAME / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return embedded / NAME


def test_it_is_found_by_its_name(there, capsys):
    assert hub.resolve("wiki-zh") == hub.fetch("Wiki-ZH") == there
    assert main(["weights", "get", "wiki-zh"]) == 0
    assert capsys.readouterr().out == f"{there}\n"
    assert main(["weights", "ls"]) == 0
    (row,) = [line.split(maxsplit=2) for line in capsys.readouterr().out.splitlines() if line.startswith("wiki-zh ")]
    assert row == ["wiki-zh", "yes", "comes with onion"]


def test_an_installation_without_it_says_so(embedded):
    assert {row.name: row.here for row in hub.known_models()}["wiki-zh"] is False
    with pytest.raises(WeightsError, match="is missing; install onion again"):
        hub.fetch("wiki-zh")


@pytest.mark.slow
def test_wheel_and_source_distribution_hold_it(there, tmp_path):
    room = tmp_path / "room"
    room.mkdir()
    for name in ("setup.cfg", "pyproject.toml", "MANIFEST.in", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, room)
    for name in ("onion", "models", "tasks"):
        ignored = shutil.ignore_patterns("__pycache__", "embedded")
        shutil.copytree(ROOT / name, room / name, symlinks=True, ignore=ignored)
    shutil.copytree(there, room / "models" / "embedded" / NAME)
    code = "from setuptools import build_meta as b; b.build_sdist('dist'); b.build_wheel('dist')"
    (room / "dist").mkdir()
    subprocess.run([sys.executable, "-c", code], cwd=room, check=True, capture_output=True)
    (wheel,), (sdist,) = room.glob("dist/*.whl"), room.glob("dist/*.tar.gz")
    with zipfile.ZipFile(wheel) as archive:
        assert {f"onion/models/embedded/{NAME}/{name}" for name in FILES} <= set(archive.namelist())
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
        assert {f"models/embedded/{NAME}/{name}" for name in FILES} <= names


def test_what_is_shipped_is_whole_and_small_and_what_the_study_made():
    assert {path.name for path in SHIPPED.iterdir()} == FILES
    assert shipped.size_of(SHIPPED) < shipped.MAX_BYTES
    assert read_weights(SHIPPED).check(read_config(SHIPPED)) == ()
    made = {json.loads(path.read_text())["report"]["sha256"] for path in KEPT.glob(f"shipped.{NAME}.*.json")}
    assert hashlib.sha256((SHIPPED / "model.safetensors").read_bytes()).hexdigest() in made


def test_the_page_of_the_study_has_the_figures_of_its_card():
    figures = (SHIPPED / "README.md").read_text("utf-8").partition("## Figures\n\n")[2].partition("\n\nWith weights")[0]
    assert figures
    assert figures in (ROOT / "docs" / "pretraining_study.md").read_text("utf-8")
