"""What each command does: parsed options in, exit status out. Paddle is loaded only by those that need it."""

from __future__ import annotations

import argparse
import json
import math
import signal
import sys
import threading
import time
from collections.abc import Collection, Iterable
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from onion.checkpointing.atomic_files import replace_file
from onion.cli.csv_lines import csv_lines
from onion.device import use_threads
from onion.errors import CheckpointError, DataError


class Terminated(KeyboardInterrupt):
    """SIGTERM, where no training loop finishes its batch first."""


def start_paddle(threads: int | None = None) -> None:
    """Load Paddle, and let SIGTERM clean up as Ctrl-C does; Paddle's own handler prints a C++ stack and leaves.

    SIGHUP too, unless it is ignored (``nohup``).

    Args:
        threads: to compute on; None: what :func:`onion.device.use_threads` chooses.
    """
    use_threads(threads)
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _terminate)
        if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:
            signal.signal(signal.SIGHUP, _hang_up)


def _terminate(number: int, frame: FrameType | None) -> NoReturn:
    raise Terminated


def _hang_up(number: int, frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)  # without a word: the terminal is gone


def train(options: argparse.Namespace) -> int:
    """Fine-tune an encoder; print the onion, and at the end one line of JSON."""
    start_paddle(options.threads)
    from onion.tasks.finetune import fine_tune

    trained = fine_tune.train(_settings(options), options.output, options.force_resume, options.quiet)
    print(_json(trained.report))
    if trained.signal is None:
        return 0
    print(f"onion: stopped at step {trained.report['step']}; the same command resumes it", file=sys.stderr)
    return 128 + int(trained.signal)


def _settings(options: argparse.Namespace) -> Any:
    """Preset, config file, flags: the later ones win."""
    from onion.tasks.finetune import config_file, presets

    own = ("command", "debug", "output", "preset", "config", "set", "force_resume", "threads", "quiet")
    flags = {name: value for name, value in vars(options).items() if name not in own}
    return config_file.resolve(
        presets.preset(options.preset) if options.preset else {},
        config_file.read_config(options.config) if options.config else {},
        {**flags, **_chosen(options, flags)},
    )


def _chosen(options: argparse.Namespace, flags: Collection[str] = ()) -> dict[str, Any]:
    """Settings of ``--set``: each one once, and none that has a flag."""
    found: dict[str, Any] = {}
    for name, value in options.set:
        if name in found or name in flags:
            other = "--set" if name in found else f"--{name.replace('_', '-')}"
            raise DataError(f"{name} is set twice, by {other} and by --set; remove one of them")
        found[name] = value
    return found


def evaluate(options: argparse.Namespace) -> int:
    """Measure a trained model; print one line of JSON."""
    start_paddle(options.threads)
    from onion.tasks.finetune import inference

    print(_json(inference.evaluate(options.run, options.input, _chosen(options), options.task, options.columns)))
    return 0


def predict(options: argparse.Namespace) -> int:
    """Label texts; put out one line of JSON each."""
    start_paddle(options.threads)
    from onion.data.files import byte_lines
    from onion.tasks.data.rows import STANDARD_INPUT
    from onion.tasks.finetune import inference
    from onion.tasks.finetune.predictor import CHUNK

    settings = _chosen(options)
    if options.carry and options.input in (None, "-"):
        raise DataError("--carry needs --input with a file, which has columns")
    if options.files is not None:
        inference.task_with_files(options.run, options.task)
    found: Iterable[dict[str, Any]]
    if options.text:
        found = inference.predict_texts(options.run, options.text, settings, options.task)
    elif "-" in (options.stdin, options.input):
        # A person who types waits for every answer; a pipe is read many lines at a time.
        chunk = 1 if sys.stdin.isatty() else CHUNK
        lines = byte_lines(sys.stdin.buffer, STANDARD_INPUT)
        found = inference.predict_lines(options.run, lines, chunk, settings, options.task)
    else:
        found = inference.predict(options.run, options.input, settings, options.task, options.columns, options.carry)
    if options.files is not None:
        found = predicted = list(found)
        inference.write_files(options.run, predicted, options.files, options.task)
    is_csv = options.output is not None and options.output.suffix == ".csv"
    _put_out(csv_lines(found) if is_csv else map(_json, found), options.output)
    return 0


def embed(options: argparse.Namespace) -> int:
    """Write the vectors of texts; print one line of JSON."""
    start_paddle(options.threads)
    from onion.tasks.embedding import files

    names = ["tokens", "pooling", "layer", "normalize", "max_length", "batch_size", "quiet"]
    settings = {name: getattr(options, name) for name in names}
    report = files.embed(options.encoder, options.input, options.output, **settings)
    print(json.dumps(report, ensure_ascii=False))
    return 0


def draw(options: argparse.Namespace) -> int:
    """Put out the drawing of a run's onion."""
    suffix = ".svg" if options.output and options.output.suffix == ".svg" else ".txt"
    drawing = options.run / f"onion{suffix}"
    if not drawing.exists():
        raise CheckpointError(f"{options.run} holds no run of onion ({drawing.name} is missing); train first.")
    _put_out(drawing.read_text(encoding="utf-8").splitlines(), options.output)
    return 0


def fetch(options: argparse.Namespace) -> int:
    """Fetch weights; print their folder."""
    from onion.models import hub

    print(hub.fetch(options.name))
    return 0


def list_weights(options: argparse.Namespace) -> int:
    """Print a line for each known name: name, whether it is here, where it comes from."""
    from onion.models import hub

    rows = [("NAME", "HERE", "SOURCE")]
    rows += [(known.name, "yes" if known.here else "no", known.origin) for known in hub.known_models()]
    width = max(len(name) for name, _, _ in rows)
    for name, here, origin in rows:
        print(f"{name:{width}}  {here:4}  {origin}")
    return 0


def list_cache(options: argparse.Namespace) -> int:
    """Print a line for each store of features, what was used last first, and where they are."""
    start_paddle()
    from onion.tasks.data.features import cache

    found = cache.stored()
    for each in found:
        used = time.strftime("%Y-%m-%d %H:%M", time.localtime(each.used))
        print(f"{each.size / 1e6:10.1f} MB  {used}  {each.about.get('task', '-'):20}  {each.about.get('file', '-')}")
    print(f"{sum(each.size for each in found) / 1e6:10.1f} MB  in {cache.features_folder()}")
    return 0


def clear_cache(options: argparse.Namespace) -> int:
    """Delete features; say how much that was."""
    start_paddle()
    from onion.tasks.data.features import cache

    freed = cache.clear(options.unused)
    print(f"{freed / 1e6:.1f} MB deleted in {cache.features_folder()}")
    return 0


def _json(value: Any) -> str:
    """One line of JSON, which knows no NaN: a figure of a training that went astray is null."""
    return json.dumps(_finite(value), ensure_ascii=False, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, list):
        return list(map(_finite, value))
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _put_out(lines: Iterable[str], output: Path | None) -> None:
    """Print lines, or write them to a file that is whole or not there."""
    if output is None:
        for line in lines:
            print(line)
        return
    content = (f"{line}\n".encode() for line in lines)
    try:
        if output.exists() and not output.is_file():  # /dev/null, a pipe: there is nothing to replace
            with output.open("wb") as file:
                file.writelines(content)
        else:
            replace_file(output, content)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise DataError(f"{output}: cannot be written: {error.strerror}; nothing was written.") from None
