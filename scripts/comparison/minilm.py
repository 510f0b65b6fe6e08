"""MiniLM, whose weights are real: token by token and gradient by gradient, and the vectors of sentences."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from comparison import jobs, lines
from comparison.differences import difference, differences
from comparison.table import Row, worst
from onion.models import hub
from onion.models.encoder import Encoder
from onion.models.tokenizer import Tokenizer
from onion.tasks.embedding.embedder import Embedder

LONGEST = 300  # characters: fewer than the 512 tokens that the weights reach
MAX_LENGTH = 512


def compare(folder: Path) -> Iterator[Row]:
    """MiniLM against transformers and sentence-transformers; fetched if it is not here."""
    model = hub.fetch("minilm")
    texts = [text[:LONGEST] for text in lines.own()[::3] + lines.of_data("en", 24)]
    asked = folder / "texts.json"
    asked.write_text(json.dumps(texts), encoding="utf-8")
    jobs.run("transformers", "minilm", model, asked, folder / "minilm.npz")
    yield _tokens(model, texts, dict(np.load(folder / "minilm.npz")))
    jobs.run("transformers", "sentences", model, asked, folder / "sentences.npz")
    yield _sentences(model, texts, dict(np.load(folder / "sentences.npz")))


def _tokens(model: Path, texts: list[str], expected: dict[str, np.ndarray]) -> Row:
    """Every token's vector, the pooled ones, and the gradient of every weight."""
    network = Encoder.from_pretrained(model)
    network.eval()
    ours = [encoding.ids.tolist() for encoding in Tokenizer.from_pretrained(model)(texts, max_length=MAX_LENGTH)]
    masks = expected["attention_mask"].astype(bool)
    theirs = [row[mask].tolist() for row, mask in zip(expected["input_ids"], masks, strict=True)]
    outputs, gradients = differences(network, expected)
    outputs = outputs if ours == theirs else float("inf")
    return Row(f"minilm, {masks.sum()} tokens", str(expected["maker"]), "huggingface", outputs, gradients)


def _sentences(model: Path, texts: list[str], expected: dict[str, np.ndarray]) -> Row:
    """Mean-pooled vectors, as they are and divided by their length."""
    found = []
    for name, normalize in (("means", False), ("normalized", True)):
        embedder = Embedder.from_pretrained(model, "mean", normalize=normalize, max_length=MAX_LENGTH)
        found.append(difference(embedder(texts), expected[name]))
    what = f"minilm, mean of {len(texts)} texts"
    return Row(what, str(expected["maker"]), "huggingface", worst(found))
