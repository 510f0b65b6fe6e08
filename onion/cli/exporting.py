"""``onion export``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from onion.cli.commands import chosen, start_paddle
from onion.cli.flags import add_output, add_run_or_name, add_set, add_smaller_export, add_task, add_threads
from onion.cli.values import natural
from onion.errors import DataError
from onion.tasks.embedding.names import POOLINGS
from onion.tasks.export.names import FORMATS, ONNX
from onion.text_formats import json_text

OF_VECTORS = ("pooling", "layer", "normalize", "max_length")
"""Flags of how an encoder's vectors are made."""


def add_flags(command: argparse.ArgumentParser) -> None:
    """Add the flags of the command."""
    model = command.add_mutually_exclusive_group(required=True)
    add_run_or_name(model, required=False)
    encoder = "an encoder instead, as in embed, for vectors of texts"
    model.add_argument("--encoder", metavar="NAME|DIR", help=encoder)
    add_output(command, "new folder for the model")
    formats = "onnx, paddle (a program that Paddle Inference runs) or huggingface (default: %(default)s)"
    command.add_argument("--format", choices=FORMATS, default=ONNX, metavar="FORMAT", help=formats)
    add_smaller_export(command)
    texts = "rows as in --calibrate, on which the model is compared with the original (default: random words)"
    command.add_argument("--texts", type=Path, metavar="FILE", help=texts)
    add_task(command)
    add_set(command, "override a setting that applies after training, such as threshold=0.3")
    vectors = command.add_argument_group("vectors of an encoder")
    pooling = "pooling of token vectors (default: what the folder says, or cls)"
    vectors.add_argument("--pooling", choices=POOLINGS, help=pooling)
    layer = "layer to take vectors from, counted from 1 (default: the last)"
    vectors.add_argument("--layer", type=natural, metavar="N", help=layer)
    normalize = "scale every vector to length 1, also if the folder does not say so"
    vectors.add_argument("--normalize", action="store_true", default=None, help=normalize)
    length = "maximum tokens per text (default: what the folder says, or 128)"
    vectors.add_argument("--max-length", type=natural, metavar="N", help=length)
    add_threads(command)
    command.set_defaults(command=export)


def export(options: argparse.Namespace) -> int:
    """Write a model for other places; print its folder and how it differs from the original, one line of JSON."""
    start_paddle(options.threads)
    made = {name: getattr(options, name) for name in ("int8", "calibrate", "texts")}
    manifest = _of_run(options, made) if options.encoder is None else _of_encoder(options, made)
    size = sum(each["size"] for each in manifest["files"].values())
    told = {name: manifest[name] for name in ("format", "int8", "compared")}
    print(json_text({"output": str(options.output), "bytes": size, **told}))
    return 0


def _of_run(options: argparse.Namespace, made: dict[str, Any]) -> dict[str, Any]:
    from onion.tasks.export.export import export as write

    if idle := [name for name in OF_VECTORS if getattr(options, name)]:
        raise DataError(f"--{idle[0].replace('_', '-')} is for --encoder only; a run has its own")
    more = {"task_name": options.task, "settings": chosen(options), "vocab": options.vocab}
    return write(options.run, options.output, options.format, **made, **more)


def _of_encoder(options: argparse.Namespace, made: dict[str, Any]) -> dict[str, Any]:
    from onion.tasks.export.export_encoder import export_encoder

    if options.task is not None or options.set or options.vocab is not None:
        raise DataError("--task, --set and --vocab are for --run only, not for an encoder")
    vectors = {name: getattr(options, name) for name in OF_VECTORS}
    return export_encoder(options.encoder, options.output, options.format, **vectors, **made)
