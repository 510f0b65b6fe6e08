"""``onion serve``."""

from __future__ import annotations

import argparse
from pathlib import Path

from onion.cli.commands import answer_signals, start_paddle
from onion.serving.call_log import write_calls
from onion.serving.limits import ServingLimits


def serve(options: argparse.Namespace) -> int:
    """Serve models until the end of the process is asked for."""
    from onion.serving.server import ModelServer
    from onion.tasks.export.engines import needs_paddle

    models = dict(map(_named, options.models))
    if options.engine == "paddle" or (options.engine is None and any(map(needs_paddle, map(Path, models.values())))):
        start_paddle()
    else:
        answer_signals()
    if options.log_calls:
        write_calls()
    limits = ServingLimits(
        body=options.max_body,
        texts=options.max_texts,
        tokens=options.max_tokens,
        queue=options.queue,
        batch_tokens=options.batch_tokens,
        connections=options.connections,
        drain=options.drain,
    )
    server = ModelServer(
        models,
        options.host,
        options.port,
        token_file=options.token_file,
        limits=limits,
        threads=options.threads,
        workers=options.workers,
        engine=options.engine,
    )
    print(server.url, flush=True)
    server.run()
    return 0


def _named(given: str) -> tuple[str, str]:
    """Return name and folder of ``NAME=DIR``, or of a folder, whose name is the model's."""
    name, equals, folder = given.partition("=")
    return (name, folder) if equals else (Path(given).resolve().name if Path(given).exists() else given, given)
