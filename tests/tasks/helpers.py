"""A tiny encoder, small files and processes for the tests of tasks/ and of the command line."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

from tests.paths import DATA

GOOD = ["lovely", "great", "warm", "bright", "fine", "happy"]
BAD = ["awful", "poor", "cold", "dull", "grim", "sad"]
PLAIN = ["the", "a", "film", "plot", "was", "is", "and", "it", "of", "story", "actor", "scene"]
VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *GOOD, *BAD, *PLAIN, "中", "文", "über", "uber", ".", "!"]
IDS = {token: index for index, token in enumerate(VOCAB)}
HIDDEN, LAYERS, POSITIONS = 32, 2, 24


def needs_data(test: Any) -> Any:
    """Mark a test that needs the data sets: ``-m data`` picks it, and it is skipped where they are missing."""
    return pytest.mark.data(pytest.mark.skipif(not DATA.is_dir(), reason="the data sets are not here")(test))


def tiny_arrays(seed: int = 0) -> dict[str, np.ndarray]:
    """Random weights of a BERT of 2 layers x 32, by the names of this project's own layout."""
    generator = np.random.default_rng(seed)
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (len(VOCAB), HIDDEN),
        "embeddings.position_embeddings.weight": (POSITIONS, HIDDEN),
        "embeddings.token_type_embeddings.weight": (2, HIDDEN),
        "embeddings.layer_norm.weight": (HIDDEN,),
        "embeddings.layer_norm.bias": (HIDDEN,),
        "pooler.dense.weight": (HIDDEN, HIDDEN),
        "pooler.dense.bias": (HIDDEN,),
    }
    square, widening, narrowing = (HIDDEN, HIDDEN), (HIDDEN, 2 * HIDDEN), (2 * HIDDEN, HIDDEN)
    linear = dict.fromkeys([f"self_attn.{each}_proj" for each in ("q", "k", "v", "out")], square)
    for layer in (f"encoder.layers.{number}" for number in range(LAYERS)):
        for name, shape in {**linear, "linear1": widening, "linear2": narrowing}.items():
            shapes |= {f"{layer}.{name}.weight": shape, f"{layer}.{name}.bias": shape[1:]}
        for norm in ("norm1", "norm2"):
            shapes |= {f"{layer}.{norm}.weight": (HIDDEN,), f"{layer}.{norm}.bias": (HIDDEN,)}
    return {
        name: np.ones(shape, np.float32)
        if "norm" in name and name.endswith("weight")
        else generator.normal(0, 0.2, shape).astype(np.float32)
        for name, shape in shapes.items()
    }


def tiny_encoder(folder: Path, **changes: object) -> Path:
    """Write the folder of a tiny encoder: weights, config and vocabulary, without the code under test."""
    folder.mkdir(parents=True, exist_ok=True)
    config = {
        "vocab_size": len(VOCAB),
        "hidden_size": HIDDEN,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": 4,
        "intermediate_size": 2 * HIDDEN,
        "max_position_embeddings": POSITIONS,
        "model_type": "bert",
    }
    (folder / "config.json").write_text(json.dumps({**config, **changes}))
    (folder / "vocab.txt").write_text("\n".join(VOCAB) + "\n", encoding="utf-8")
    safetensors.numpy.save_file(tiny_arrays(), folder / "model.safetensors")
    return folder


def films(count: int, seed: int, good: str = "good", bad: str = "bad") -> list[tuple[str, str]]:
    """Texts whose label can be learned: (text, label), a few words each."""
    chance = random.Random(seed)
    found = []
    for _ in range(count):
        label, words = chance.choice([(good, GOOD), (bad, BAD)])
        text = chance.choices(PLAIN, k=chance.randrange(1, 8)) + chance.choices(words, k=2)
        chance.shuffle(text)
        found.append((" ".join(text), label))
    return found


def write_tsv(path: Path, rows: list[tuple[str, ...]], header: tuple[str, ...] = ("text_a", "label")) -> Path:
    """Write a .tsv file."""
    path.write_text("".join("\t".join(row) + "\n" for row in [header, *rows]), encoding="utf-8")
    return path


def write_jsonl(path: Path, *rows: dict[str, object]) -> Path:
    """Write a .jsonl file."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def of_dev(report: dict[str, object]) -> dict[str, object]:
    """What a training reports of its last test, as an evaluation gives it."""
    return {name.removeprefix("dev."): value for name, value in report.items() if name.startswith("dev.")}


def snapshot(folder: Path) -> dict[str, bytes | None]:
    """What stands under a folder: path -> content (None: a folder)."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


def log_rows(folder: Path) -> list[dict[str, object]]:
    """The rows of a run's log, without what tells of the clock or of one process only."""
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    return [{name: value for name, value in row.items() if name not in ("seconds", "examples")} for row in rows]
