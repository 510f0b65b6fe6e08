"""The commands: functions from parsed options to an exit status. Only those that need Paddle import it."""

from __future__ import annotations

import argparse
import importlib
import json
import signal
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

from onion.checkpointing.atomic_files import replace_file
from onion.cli.processes import run_in_processes
from onion.device import use_threads, wish_threads
from onion.errors import CheckpointError, DataError, OnionError
from onion.host import launch
from onion.tasks.finetune.declared import declared_in
from onion.tasks.finetune.settings import Settings
from onion.text_formats import csv_lines, json_text

if TYPE_CHECKING:
    from onion.tasks.finetune.fine_tune import Trained

DIFFERS = 1


class Terminated(KeyboardInterrupt):
    """SIGTERM outside a training loop, which would finish its batch first."""


def start_paddle(threads: int | None = None) -> None:
    """Import Paddle, and let SIGTERM clean up as Ctrl-C does; Paddle's own handler prints a C++ stack and exits.

    Args:
        threads: the number of threads; None: what :func:`onion.device.use_threads` chooses.
    """
    wish_threads(threads)  # of ONNX Runtime, which may compute too
    use_threads(threads)
    answer_signals()


def _start_engine(run: Path, threads: int | None) -> None:
    """Start what computes the predictions of a folder: Paddle, or another engine, for which it is not loaded."""
    from onion.tasks.export.engines import needs_paddle

    if needs_paddle(run):
        start_paddle(threads)
    else:
        wish_threads(threads)
        answer_signals()


def answer_signals() -> None:
    """Let SIGTERM clean up as Ctrl-C does, and SIGHUP too, unless it is ignored (``nohup``)."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _terminate)
        if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:
            signal.signal(signal.SIGHUP, _hang_up)


def _terminate(number: int, frame: FrameType | None) -> NoReturn:
    raise Terminated


def _hang_up(number: int, frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)  # without a message: the terminal is gone


def train(options: argparse.Namespace) -> int:
    """Fine-tune an encoder; print the onion, and at the end one line of JSON."""
    if options.processes > 1 and launch.world_size() == 1:
        return run_in_processes(options.processes, options.arguments, options.output / "logs")
    start_paddle(options.threads)
    launch.end_with_launcher()
    from onion.tasks.finetune import config_file, fine_tune

    settings = config_file.resolve(*settings_layers(options))
    trained = fine_tune.train(settings, options.output, options.force_resume, options.quiet)
    return ended(trained)


def ended(trained: Trained) -> int:
    """Print the report of a training on the first of its processes; return the exit status."""
    if launch.rank() == 0:
        print(json_text(trained.report))
    if trained.signal is None:
        return 0
    print(f"onion: stopped at step {trained.report['step']}; the same command resumes it", file=sys.stderr)
    return 128 + int(trained.signal)


def settings_layers(options: argparse.Namespace) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Return the settings of preset, config file and flags; later ones take precedence."""
    from onion.tasks.finetune import config_file, presets

    flags = {name: value for name, value in vars(options).items() if name in (*declared_in(Settings), "max_length")}
    return (
        dict(presets.preset(options.preset)) if options.preset else {},
        config_file.read_config(options.config) if options.config else {},
        {**flags, **chosen(options, flags)},
    )


def chosen(options: argparse.Namespace, flags: Collection[str] = ()) -> dict[str, Any]:
    """Return the settings of ``--set``, each of which may be given once and not by a flag too."""
    found: dict[str, Any] = {}
    for name, value in options.set:
        if name in found or name in flags:
            other = "--set" if name in found else f"--{name.replace('_', '-')}"
            raise DataError(f"{name} is set twice, by {other} and by --set; remove one of them")
        found[name] = value
    return found


def evaluate(options: argparse.Namespace) -> int:
    """Evaluate a trained model; print one line of JSON."""
    from onion.tasks.finetune import inference
    from onion.tasks.finetune.run_folder import find_run

    run = find_run(options.run)
    _start_engine(run, options.threads)
    given = run, options.input, chosen(options), options.task, options.columns, options.report
    print(json_text(inference.evaluate(*given)))
    return 0


def predict(options: argparse.Namespace) -> int:
    """Predict for texts; write one line of JSON each."""
    from onion.data.files import byte_lines
    from onion.tasks.data.rows import STANDARD_INPUT
    from onion.tasks.finetune import inference
    from onion.tasks.finetune.predictor import CHUNK
    from onion.tasks.finetune.run_folder import find_run

    run = find_run(options.run)
    _start_engine(run, options.threads)
    settings = chosen(options)
    for name in ("carry", "columns"):
        if getattr(options, name) and options.input in (None, "-"):
            raise DataError(f"--{name} needs --input with a file, which has columns")
    if options.output is not None and options.output.suffix.lower() == ".gz":
        raise DataError(f"{options.output}: predictions are written uncompressed; name the file .jsonl or .csv")
    if options.files is not None:
        inference.task_with_files(run, options.task)
    found: Iterable[dict[str, Any]]
    if options.text:
        found = inference.predict_texts(run, options.text, settings, options.task)
    elif "-" in (options.stdin, options.input):
        # At a terminal every line is answered at once; a pipe is read in chunks of lines.
        chunk = 1 if sys.stdin.isatty() else CHUNK
        lines = byte_lines(sys.stdin.buffer, STANDARD_INPUT)
        found = inference.predict_lines(run, lines, chunk, settings, options.task)
    else:
        found = inference.predict(run, options.input, settings, options.task, options.columns, options.carry)
    if options.files is not None:
        found = predicted = list(found)
        inference.write_files(run, predicted, options.files, options.task)
    is_csv = options.output is not None and options.output.suffix.lower() == ".csv"
    _put_out(csv_lines(found) if is_csv else map(json_text, found), options.output)
    return 0


def embed(options: argparse.Namespace) -> int:
    """Write the vectors of texts; print one line of JSON."""
    _start_engine(Path(options.encoder), options.threads)
    from onion.tasks.embedding import files

    names = ["tokens", "pooling", "layer", "normalize", "max_length", "batch_size", "quiet", "columns", "carry"]
    settings = {name: getattr(options, name) for name in names}
    report = files.embed(options.encoder, options.input, options.output, **settings)
    print(json.dumps(report, ensure_ascii=False))
    return 0


def draw(options: argparse.Namespace) -> int:
    """Write the drawing of a run's onion."""
    suffix = ".svg" if options.output and options.output.suffix == ".svg" else ".txt"
    drawing = options.run / f"onion{suffix}"
    if not drawing.exists():
        raise CheckpointError(f"{options.run} holds no run of onion ({drawing.name} is missing); train first.")
    _put_out(drawing.read_text(encoding="utf-8").splitlines(), options.output)
    return 0


def push(options: argparse.Namespace) -> int:
    """Upload a trained model, and print its address; or write its files to a folder, and print that."""
    from onion.models.upload import check_upload

    if options.output is None:
        check_upload(options.name)  # before Paddle is loaded
    start_paddle()
    from onion.tasks.publishing.push import push as upload
    from onion.tasks.publishing.push import write

    card = {"task_name": options.task, "license": options.license, "languages": tuple(options.language)}
    if options.output is None:
        print(upload(options.run, options.name, message=options.message, private=options.private, **card))
    else:
        print(write(options.run, options.output, options.name, **card))
    return 0


def fetch(options: argparse.Namespace) -> int:
    """Download weights; print their folder."""
    from onion.models import hub

    print(hub.fetch(options.name))
    return 0


def list_weights(options: argparse.Namespace) -> int:
    """Print a line for each known name: name, whether it is downloaded, its source."""
    from onion.models import hub

    rows = [("NAME", "HERE", "SOURCE")]
    rows += [(known.name, "yes" if known.here else "no", known.origin) for known in hub.known_models()]
    width = max(len(name) for name, _, _ in rows)
    for name, here, origin in rows:
        print(f"{name:{width}}  {here:4}  {origin}")
    return 0


def list_cache(options: argparse.Namespace) -> int:
    """Print a line for each store of features, the latest used first, and their folder."""
    start_paddle()
    from onion.tasks.data.features import cache

    found = cache.stored()
    for each in found:
        used = time.strftime("%Y-%m-%d %H:%M", time.localtime(each.used))
        print(f"{each.size / 1e6:10.1f} MB  {used}  {each.about.get('task', '-'):20}  {each.about.get('file', '-')}")
    print(f"{sum(each.size for each in found) / 1e6:10.1f} MB  in {cache.features_folder()}")
    return 0


def clear_cache(options: argparse.Namespace) -> int:
    """Delete features; print their size."""
    start_paddle()
    from onion.tasks.data.features import cache

    freed = cache.clear(options.unused)
    print(f"{freed / 1e6:.1f} MB deleted in {cache.features_folder()}")
    return 0


def replay(options: argparse.Namespace) -> int:
    """Repeat an online run; print the comparison, one line of JSON; the status is 1 if it is not bit-identical."""
    start_paddle()
    from onion.online.journal.replay import replay as repeat

    report = repeat(options.folder, _imported(options.onion), options.output or options.folder / "replay")
    print(json.dumps(report, ensure_ascii=False))
    return 0 if report["same"] else DIFFERS


def _imported(name: str) -> Callable[[Path], Any]:
    """Import the function ``module:function``; the module may be in the current folder.

    Raises:
        OnionError: there is no such function.
    """
    module, colon, function = name.partition(":")
    if not (module and colon and function):
        raise OnionError(f"--onion {name} is not of the form module:function.")
    sys.path.insert(0, str(Path.cwd()))
    try:
        made = getattr(importlib.import_module(module), function, None)
    except ModuleNotFoundError as error:
        raise OnionError(f"--onion {name}: {error}; is it in the current folder?") from None
    if not callable(made):
        raise OnionError(f"--onion {name}: {module} has no function {function}.")
    result: Callable[[Path], Any] = made
    return result


def _put_out(lines: Iterable[str], output: Path | None) -> None:
    """Print lines, or write them to a file atomically."""
    if output is None:
        for line in lines:
            print(line)
        return
    content = (f"{line}\n".encode() for line in lines)
    replaced = True
    try:
        replaced = not output.exists() or output.is_file()  # /dev/null or a pipe is written to
        if replaced:
            replace_file(output, content)
        else:
            with output.open("wb") as file:
                file.writelines(content)
    except BrokenPipeError:
        raise
    except OSError as error:
        told = "; nothing was written" if replaced else ""
        raise DataError(f"{output}: cannot be written: {error.strerror}{told}.") from None
