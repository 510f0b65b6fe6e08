"""The two models, as folders that transformers and onion read, and the texts that they are given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.frame import DATA
from onion.models import hub
from onion.models.config import EncoderConfig
from onion.models.encoder import Encoder
from onion.models.tokenizer import Tokenizer

# onion comes first, so that it can choose the math library that Paddle loads
# isort: split
import paddle

CLASSES = 2
LONG = 24
"""Long texts: some, for torch takes seconds for so many."""


def minilm(folder: Path, data: Path = DATA) -> dict[str, Any]:
    """Return the job of MiniLM (6 layers of 384, its real weights) and SST-2's 872 test sentences."""
    head = _head(folder, 384)
    return {"folder": str(hub.resolve("minilm")), "head": head, "max_length": 128, "texts": texts(data / "glue/sst-2")}


def base(folder: Path, data: Path = DATA) -> dict[str, Any]:
    """Return the job of an ERNIE 1.0 base (12 layers of 768, random weights) and long texts of ChnSentiCorp."""
    vocabulary = data / "vocab" / "ernie-1.0-zh"
    tokenizer = Tokenizer.from_pretrained(vocabulary)
    tokenizer.save_pretrained(folder)
    paddle.seed(1)
    config = EncoderConfig(
        vocab_size=tokenizer.vocab_size,
        hidden_size=768,
        num_hidden_layers=12,
        num_attention_heads=12,
        intermediate_size=3072,
        max_position_embeddings=513,
        hidden_act="relu",
        layer_norm_eps=1e-5,
    )
    Encoder(config).save_pretrained(folder, layout="huggingface")
    head = _head(folder, config.hidden_size)
    long = texts(data / "chnsenticorp")[:LONG]
    return {"folder": str(folder), "head": head, "max_length": 256, "texts": long}


def texts(folder: Path) -> list[str]:
    first, *lines = (folder / "dev.tsv").read_text(encoding="utf-8").rstrip("\n").split("\n")
    column = first.split("\t").index("text_a")
    return [line.split("\t")[column] for line in lines]


def _head(folder: Path, width: int) -> str:
    generator = np.random.default_rng(1)
    weight = generator.normal(0, 0.1, (width, CLASSES)).astype(np.float32)
    path = folder / "head.npz"
    np.savez(path, weight=weight, bias=np.array([0.1, -0.1], np.float32))
    return str(path)
