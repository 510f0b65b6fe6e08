"""A model that comes with onion: made from a pretrained encoder, found by its name, and built into wheels."""

import json
import shutil
import subprocess
import sys
import tarfile
import zipfile

import numpy as np
import pytest
import safetensors.numpy

from onion.cli import main
from onion.errors import DataError, WeightsError
from onion.models import hub
from onion.models.auto import load_encoder
from onion.models.encoder import Encoder
from onion.models.families import read_config
from onion.models.pretraining_heads import EncoderForPretraining
from onion.models.weights import read_weights
from scripts.embedded_model import __main__ as script
from scripts.embedded_model.comparison import Difference
from tests.paths import ROOT
from tests.tasks.helpers import snapshot
from tests.tasks.pretraining.conftest import config_file, corpora  # noqa: F401

FIGURES = {
    "documents": 3071,
    "training": {"tokens": "14 million"},
    "held_out": {"loss of masked words": "4.2 nats"},
    "fine_tuned": [{"data": "LCQMC", "figure": "accuracy", "model": [70.1, 70.3], "random": [60.0, 61.0]}],
}
FILES = {"README.md", "config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"}


@pytest.fixture(scope="module")
def encoder(tmp_path_factory, corpora, config_file):  # noqa: F811
    """The folder that ``onion pretrain`` leaves, with random weights."""
    from onion.tasks.pretraining.corpus.opening import open_corpus

    folder = tmp_path_factory.mktemp("run") / "encoder"
    open_corpus(corpora / "train").tokenizer.save_pretrained(folder)
    EncoderForPretraining(Encoder(read_config(_named(config_file)))).save_pretrained(folder, "huggingface")
    return folder


def _named(config):
    folder = config.parent / "config"
    folder.mkdir(exist_ok=True)
    shutil.copy(config, folder / "config.json")
    return folder


@pytest.fixture
def figures(tmp_path):
    path = tmp_path / "figures.json"
    path.write_text(json.dumps(FIGURES))
    return path


@pytest.fixture
def target(tmp_path, monkeypatch):
    """Where the model will be; nothing is there."""
    monkeypatch.setattr(hub, "EMBEDDED", tmp_path / "embedded")
    monkeypatch.setenv("ONION_HOME", str(tmp_path / "home"))
    return tmp_path / "embedded" / "wiki-zh"


@pytest.fixture
def made(encoder, figures, corpora, target):  # noqa: F811
    script.make(encoder, figures, corpora / "valid", target)
    return target


def test_the_weights_have_16_bits_and_are_read_as_float32(encoder, made):
    assert {path.name for path in made.iterdir()} == FILES
    stored = safetensors.numpy.load_file(made / "model.safetensors")
    assert {array.dtype for array in stored.values()} == {np.dtype(np.float16)}
    whole, half = read_weights(encoder), read_weights(made)
    assert {array.dtype for array in half.arrays.values()} == {np.dtype(np.float32)}
    for name, array in {**whole.arrays, **whole.heads}.items():
        assert np.array_equal({**half.arrays, **half.heads}[name], array.astype(np.float16).astype(np.float32))
    assert half.settings == whole.settings
    assert {each.numpy().dtype for each in load_encoder(made).parameters()} == {np.dtype(np.float32)}


def test_the_same_encoder_and_figures_give_the_same_bytes(encoder, figures, corpora, made):  # noqa: F811
    before = snapshot(made)
    assert script.main([str(encoder), "--figures", str(figures), "--held-out", str(corpora / "valid"),
                        "--output", str(made)]) == 0  # fmt: skip
    assert snapshot(made) == before
    assert {path.name for path in made.parent.iterdir()} == {"wiki-zh"}


def test_the_card_has_licence_source_and_figures(made):
    card = (made / "README.md").read_text(encoding="utf-8")
    assert "license: cc-by-sa-4.0" in card
    assert "Chinese Wikipedia" in card
    assert "| LCQMC, accuracy | 70.2 ± 0.1 | 60.5 ± 0.7 | 2 |" in card
    assert "| tokens | 14 million |" in card


@pytest.mark.parametrize(
    "changed", [{"documents": None, "more": 1}, {"fine_tuned": [{"data": "LCQMC"}]}, {"held_out": 3}]
)
def test_wrong_figures_are_refused_and_nothing_is_written(encoder, figures, corpora, target, changed):  # noqa: F811
    figures.write_text(json.dumps({**FIGURES, **changed}))
    with pytest.raises(DataError, match="documents, training, held_out, fine_tuned"):
        script.make(encoder, figures, corpora / "valid", target)
    assert not target.exists()


def test_what_float16_does_not_hold_is_refused(encoder, figures, corpora, target, tmp_path):  # noqa: F811
    large = shutil.copytree(encoder, tmp_path / "large")
    arrays = safetensors.numpy.load_file(large / "model.safetensors")
    next(iter(arrays.values())).flat[0] = 1e5
    safetensors.numpy.save_file(arrays, large / "model.safetensors")
    with pytest.raises(WeightsError, match="float16 does not hold"):
        script.make(large, figures, corpora / "valid", target)
    assert not target.exists()


@pytest.mark.parametrize("difference", [Difference(0.03, (4.0, 4.0)), Difference(0.01, (4.0, 4.02))])
def test_a_model_that_16_bits_change_is_refused(made, difference):
    script.check(made, Difference(0.01, (4.0, 4.005)))
    with pytest.raises(WeightsError, match="16 bits change"):
        script.check(made, difference)


def test_a_large_model_is_refused(made, monkeypatch):
    monkeypatch.setattr(script, "MAX_BYTES", 1000)
    with pytest.raises(WeightsError, match="less than 1,000"):
        script.check(made, Difference(0.0, (4.0, 4.0)))


def test_it_is_found_by_its_name(made, capsys):
    assert hub.resolve("wiki-zh") == hub.fetch("Wiki-ZH") == made
    assert main(["weights", "get", "wiki-zh"]) == 0
    assert capsys.readouterr().out == f"{made}\n"
    assert main(["weights", "ls"]) == 0
    (row,) = [line.split(maxsplit=2) for line in capsys.readouterr().out.splitlines() if line.startswith("wiki-zh ")]
    assert row == ["wiki-zh", "yes", "comes with onion"]


def test_an_installation_without_it_says_so(target):
    assert {row.name: row.here for row in hub.known_models()}["wiki-zh"] is False
    with pytest.raises(WeightsError, match="is missing; install onion again"):
        hub.fetch("wiki-zh")


@pytest.mark.slow
def test_wheel_and_source_distribution_hold_it(made, tmp_path):
    room = tmp_path / "room"
    room.mkdir()
    for name in ("setup.cfg", "pyproject.toml", "MANIFEST.in", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, room)
    for name in ("onion", "models", "tasks"):
        ignored = shutil.ignore_patterns("__pycache__", "embedded")
        shutil.copytree(ROOT / name, room / name, symlinks=True, ignore=ignored)
    shutil.copytree(made, room / "models" / "embedded" / "wiki-zh")
    code = "from setuptools import build_meta as b; b.build_sdist('dist'); b.build_wheel('dist')"
    (room / "dist").mkdir()
    subprocess.run([sys.executable, "-c", code], cwd=room, check=True, capture_output=True)
    (wheel,), (sdist,) = room.glob("dist/*.whl"), room.glob("dist/*.tar.gz")
    with zipfile.ZipFile(wheel) as archive:
        assert {f"onion/models/embedded/wiki-zh/{name}" for name in FILES} <= set(archive.namelist())
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
        assert {f"models/embedded/wiki-zh/{name}" for name in FILES} <= names


SHIPPED = hub.EMBEDDED / script.NAME


@pytest.mark.skipif(not SHIPPED.is_dir(), reason="this checkout has no weights of wiki-zh")
def test_what_is_shipped_is_whole_and_small_and_its_figures_stand_in_the_docs():
    assert {path.name for path in SHIPPED.iterdir()} == FILES
    assert sum(path.stat().st_size for path in SHIPPED.iterdir()) < script.MAX_BYTES
    weights = read_weights(SHIPPED)
    assert weights.check(read_config(SHIPPED)) == ()
    figures = (SHIPPED / "README.md").read_text("utf-8").partition("## Figures\n\n")[2].partition("\n\nWith weights")[0]
    assert figures
    assert figures in (ROOT / "docs" / "encoders.md").read_text("utf-8")
