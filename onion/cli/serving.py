"""``onion serve``."""

from __future__ import annotations

import argparse
import os
from functools import partial
from pathlib import Path

from onion.cli.commands import answer_signals, start_paddle
from onion.cli.values import natural, positive, read
from onion.serving.call_log import write_calls
from onion.serving.limits import ServingLimits
from onion.validation import Check

PORT = Check("a port from 0 to 65535", lambda value: 0 <= value <= 65535, reads=int)


def add_flags(command: argparse.ArgumentParser) -> None:
    """Add the flags of the command."""
    add, limits = command.add_argument, ServingLimits()
    models = (
        "folder of onion train or onion export, or an encoder (mean of the token vectors, scaled to length 1); its "
        "name in addresses is that of the folder"
    )
    add("models", nargs="+", metavar="[NAME=]DIR", help=models)
    add("--host", default="127.0.0.1", help="address to listen at; others need a token (default: %(default)s)")
    add("--port", type=partial(read, PORT), default=8000, metavar="N", help="0: any (default: %(default)s)")
    where = "file with the token that callers send, readable by its owner only (default: $ONION_TOKEN)"
    add("--token-file", type=Path, metavar="FILE", help=where)
    engine = "engine of runs: paddle or onnx (default: paddle, if it is installed)"
    add("--engine", choices=["paddle", "onnx"], metavar="NAME", help=engine)
    threads = "threads that ONNX Runtime computes one batch on (default: %(default)s)"
    add("--threads", type=natural, default=1, metavar="N", help=threads)
    workers = "batches computed at the same time (default: one for each processor, at most 8, by --threads)"
    add("--workers", type=natural, metavar="N", help=workers)
    group = command.add_argument_group("limits")
    for name, value, metavar, text in (
        ("--max-body", limits.body, "BYTES", "bytes of a call"),
        ("--max-texts", limits.texts, "N", "texts of a call"),
        ("--max-tokens", limits.tokens, "N", "tokens of a call, of all windows over its texts"),
        ("--queue", limits.queue, "N", "texts that wait; further calls are refused with 429"),
        ("--batch-tokens", limits.batch_tokens, "N", "tokens computed together"),
        ("--connections", limits.connections, "N", "connections at a time"),
    ):
        group.add_argument(name, type=natural, default=value, metavar=metavar, help=f"{text} (default: %(default)s)")
    drain = "time for calls under way when the service ends (default: %(default)s)"
    group.add_argument("--drain", type=positive, default=limits.drain, metavar="SECONDS", help=drain)
    calls = "log a line of JSON for each call, without texts"
    add("--log-calls", action="store_true", help=calls)
    command.set_defaults(command=serve)


def serve(options: argparse.Namespace) -> int:
    """Serve models until the end of the process is asked for."""
    from onion.serving.served_models import check_names
    from onion.serving.server import ModelServer

    named = list(map(_named, options.models))
    check_names(name for name, _ in named)
    models = dict(named)
    if any(_by_paddle(Path(folder), options.engine) for folder in models.values()):
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


def _by_paddle(folder: Path, engine: str | None) -> bool:
    """Tell whether Paddle computes a model: for ONNX Runtime, encoders have to be exported first."""
    from onion.tasks.export.engines import needs_paddle
    from onion.tasks.export.manifest import is_exported
    from onion.tasks.finetune.run_files import RUN_FILE

    if engine == "onnx" and (is_exported(folder) or (folder / RUN_FILE).is_file()):
        return False
    return engine == "paddle" or needs_paddle(folder)


def _named(given: str) -> tuple[str, str]:
    """Return name and folder of ``NAME=DIR``, or of a folder, whose name is the model's.

    A link has its own name: the folder that it leads to is exchanged.
    """
    if Path(given).exists():
        return Path(os.path.abspath(given)).name, given  # noqa: PTH100  resolve() would follow links
    name, equals, folder = given.partition("=")
    return (name, folder) if equals else (given, given)
