"""The job behind ``onion export --encoder``: an encoder that makes vectors of texts, for other places."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from onion import __version__
from onion.checkpointing.atomic_files import write_synced
from onion.checkpointing.new_folder import check_new, new_folder
from onion.errors import DataError
from onion.models import hub
from onion.models.pretrained_encoder import arrays_of
from onion.tasks.batches import batch_of
from onion.tasks.data.texts import examples_of
from onion.tasks.embedding.embedder import Embedder
from onion.tasks.embedding.pooling import Pooling
from onion.tasks.export.answers_file import write_answers
from onion.tasks.export.comparison import Comparison
from onion.tasks.export.exported_network import inputs_of
from onion.tasks.export.graph import graph_of_encoder
from onion.tasks.export.manifest import Manifest, refuse_exported, sums_of
from onion.tasks.export.names import EMBEDDING, HUGGINGFACE, ONNX, POOLING_FILE
from onion.tasks.export.samples import sample_texts, text_lines
from onion.tasks.export.writing import AT_ONCE, check_choices, write_onnx

KEPT = 6
"""Digits behind the point of the vectors in ``answers.jsonl``."""


def export_encoder(
    encoder: str | Path,
    output: str | Path,
    format: str = ONNX,
    *,
    pooling: str | None = None,
    layer: int | None = None,
    normalize: bool | None = None,
    max_length: int | None = None,
    int8: str | None = None,
    calibrate: str | Path | None = None,
    texts: str | Path | None = None,
) -> dict[str, Any]:
    """Write an encoder to a new folder; return its manifest. The folder is as that of :func:`export.export`.

    Args:
        encoder: a folder or a known name, as ``onion embed`` takes it.
        output: a new or empty folder; it has all files, or does not exist after an error.
        format: ``onnx`` or ``paddle``.
        pooling: of the token vectors: ``cls``, ``mean`` or ``pooler``. Default: this and the next three as the folder
            says, or else ``cls`` of the last layer, not normalized, 128 tokens
            (:func:`onion.tasks.embedding.declared.pooling_for`).
        layer: that token vectors are taken from, from 1. Default: the last.
        normalize: whether vectors are scaled to length 1.
        max_length: tokens of a text.
        int8: ``dynamic`` or ``static``: weights of 8 bits in an ONNX model. Default: 32.
        calibrate: for ``static``, a file of texts: a table with ``text_a``, or one a line.
        texts: such a file, on which it is compared with the encoder. Default: random words.

    Raises:
        DataError: an argument is wrong.
        WeightsError: there is no such encoder, it differs from the original, or cannot be written.
        OnionError: a package is not installed.
    """
    check_choices(format, int8, calibrate)
    if format == HUGGINGFACE:
        raise DataError(
            "format huggingface is for runs; write an encoder in that layout by encoder.save_pretrained(folder, "
            "'huggingface') in Python"
        )
    output = Path(output)
    check_new(output)
    folder = hub.resolve(encoder)
    refuse_exported(folder, "export the encoder")
    own = Embedder.from_pretrained(folder, pooling, layer=layer, normalize=normalize, max_length=max_length)
    chosen = Pooling(own.pooling, layer, bool(getattr(own.network, "normalize", False)), own.max_length)
    lines = sample_texts(own.tokenizer, chosen.max_length) if texts is None else text_lines(Path(texts))
    with new_folder(output) as target:
        own.tokenizer.save_pretrained(target)
        network = own.network.encoder  # type: ignore[union-attr]  # it is not exported
        network.config.write(target)
        write_synced(target / POOLING_FILE, json.dumps(attrs.asdict(chosen), indent=1).encode())
        graph = graph_of_encoder(network.config, chosen)
        if format == ONNX:
            batches = None if calibrate is None else _batches(own, text_lines(Path(calibrate)))
            write_onnx(target, graph, arrays_of(network), int8, batches)
        else:
            from onion.tasks.export.paddle_program import write_program

            write_program(target, graph, network, network)
        vectors = own(lines)
        write_answers(target, lines, _told(vectors))
        manifest = Manifest(format, EMBEDDING, __version__, int8, {}, sums_of(target))
        manifest.write(target)
        exported = Embedder.from_exported(target)
        compared = Comparison.of([vectors], [exported(lines)], len(lines))
        compared.check(exact=int8 is None)
        if int8 is not None:
            write_answers(target, lines, _told(vectors), _told([exported([line])[0] for line in lines]))
            manifest = attrs.evolve(manifest, files=sums_of(target))
        manifest = attrs.evolve(manifest, compared=compared.told(int8))
        manifest.write(target)
    return attrs.asdict(manifest)


def _told(vectors: Iterable[np.ndarray]) -> list[list[float]]:
    return [[round(float(each), KEPT) for each in vector] for vector in vectors]


def _batches(embedder: Embedder, lines: Sequence[str]) -> list[dict[str, np.ndarray]]:
    examples = examples_of(embedder.tokenizer(lines, max_length=embedder.max_length))
    examples.sort(key=lambda example: len(example["ids"]))
    parts = (examples[begin : begin + AT_ONCE] for begin in range(0, len(examples), AT_ONCE))
    return [inputs_of(batch_of(part, embedder.tokenizer.pad_id)) for part in parts]
