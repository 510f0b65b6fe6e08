"""Small random encoders: a reference's folders run by us, and ours by a reference."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from comparison import jobs
from comparison.differences import differences
from comparison.table import Row, worst
from onion.models.encoder import Encoder
from onion.models.pretraining_heads import EncoderForPretraining

SEED = "20260"
EXPECTED = "expected.npz"
REFERENCES = {"transformers": "huggingface", "paddlenlp": "paddlenlp"}  # and the layout that each reads
ENCODER_ONLY = "-encoder"


def compare(folder: Path) -> Iterator[Row]:
    """All architectures against all references, in ``folder``."""
    for reference, layout in REFERENCES.items():
        theirs, ours = folder / reference, folder / f"{reference}-reads"
        jobs.run(reference, "encoders", reference, theirs, SEED)
        for model in sorted(theirs.iterdir()):
            yield _read(model)
            _save(model / _some_layout(model), ours / model.name, layout)
        jobs.run(reference, "read-back", reference, ours, SEED)
        for model in sorted(ours.iterdir()):
            yield _read_back(model, theirs / model.name, layout)


def _read(model: Path) -> Row:
    """Our outputs of a reference's folders, against the reference's."""
    common, found, against = dict(np.load(model / EXPECTED)), [], ""
    layouts = sorted(path.name for path in model.iterdir() if path.is_dir())
    for layout in layouts:
        own = model / layout / EXPECTED
        expected = dict(np.load(own)) if own.is_file() else common
        found.append(differences(_loaded(model / layout), expected))
        against = str(expected["maker"])
    outputs, gradients = (worst(column) for column in zip(*found, strict=True))
    return Row(model.name, against, ", ".join(layouts), outputs, gradients)


def _save(source: Path, target: Path, layout: str) -> None:
    """Save a model with its heads, and its encoder alone, as we write them for a reference."""
    _loaded(source).save_pretrained(target / layout, layout=layout)
    Encoder.from_pretrained(source).save_pretrained(target / f"{layout}{ENCODER_ONLY}", layout=layout)


def _read_back(saved: Path, source: Path, layout: str) -> Row:
    """A reference's outputs of what we saved, against ours of the original."""
    network = _loaded(source / _some_layout(source))
    expected = dict(np.load(saved / layout / EXPECTED))
    outputs, gradients = differences(network, expected)
    # The gradients go through heads that the reference has made anew, at random; the outputs do not.
    alone, _ = differences(network.encoder, dict(np.load(saved / f"{layout}{ENCODER_ONLY}" / EXPECTED)))
    layouts = f"{layout}, with heads and without"
    return Row(f"{saved.name}, saved by us", str(expected["maker"]), layouts, worst([outputs, alone]), gradients)


def _loaded(folder: Path) -> EncoderForPretraining:
    network = EncoderForPretraining.from_pretrained(folder)
    network.eval()
    return network


def _some_layout(model: Path) -> str:
    """The first layout of a model whose outputs are those of ``expected.npz`` above it."""
    return min(path.name for path in model.iterdir() if path.is_dir() and not (path / EXPECTED).is_file())
