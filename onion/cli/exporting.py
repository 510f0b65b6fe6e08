"""``onion export``."""

from __future__ import annotations

import argparse
from typing import Any

from onion.cli.commands import chosen, start_paddle
from onion.errors import DataError
from onion.text_formats import json_text


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

    more = {"task_name": options.task, "settings": chosen(options), "vocab": options.vocab}
    return write(options.run, options.output, options.format, **made, **more)


def _of_encoder(options: argparse.Namespace, made: dict[str, Any]) -> dict[str, Any]:
    from onion.tasks.embedding.pooling import Pooling
    from onion.tasks.export.export_encoder import export_encoder

    if options.task is not None or options.set or options.vocab is not None:
        raise DataError("--task, --set and --vocab are for --run only, not for an encoder")
    pooling = Pooling(*(getattr(options, name) for name in ("pooling", "layer", "normalize", "max_length")))
    return export_encoder(options.encoder, options.output, options.format, pooling=pooling, **made)
