"""One command with one file: what it needs, how it is run, what is wrong with how it ended or with what it left."""

from __future__ import annotations

import faulthandler
import io
import json
import logging
import shutil
import signal
import subprocess
import sys
import traceback
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from random import Random
from types import FrameType
from typing import NoReturn
from unittest.mock import patch

import attrs

from onion.checkpointing.atomic_files import PARTIAL
from onion.cli import INTERRUPTED, TERMINATED, Printable, main
from onion.models.config import EncoderConfig
from onion.models.encoder import Encoder
from onion.models.hub import home
from onion.tasks.data.features.store import open_store
from onion.tasks.finetune.seeding import seed_everything
from scripts.spoil.changes import Spoilt
from scripts.spoil.files import TABLES, TASKS, VOCABULARY, endings, good_records, written

USAGE_ERROR = 2
MAX_MESSAGE_LENGTH = 1000
"""Characters; more than what is shown of a file together with the longest name that a file may have."""

PROGRAM = "import sys, onion.cli; sys.exit(onion.cli.main())"


@attrs.frozen
class Ended:
    """How a command ended: status (None: stopped, or an error was raised), messages, log lines if known, error."""

    status: int | None
    said: str
    logged: list[str] = attrs.field(factory=list)
    broken: str | None = None


class Hang(BaseException):
    """A command took too long."""


def run_here(command: Command, limit: int) -> Ended:
    """Call what the command calls, in this process; only in the main thread.

    After ``limit`` seconds it hangs; if it hangs in code that is not Python, the process ends after twice as long.

    Raises:
        KeyboardInterrupt: a signal ended the command.
    """
    said, log = io.StringIO(), _Log()
    with ExitStack() as held:
        held.enter_context(redirect_stderr(said))
        held.enter_context(redirect_stdout(io.TextIOWrapper(io.BytesIO(), encoding="utf-8")))
        held.enter_context(patch.object(logging.getLogger(), "handlers", [log]))
        if command.input is not None:
            given = held.enter_context(io.TextIOWrapper(command.input.open("rb")))
            held.enter_context(patch.object(sys, "stdin", given))
        try:
            with _limited(limit):
                status = main(command.words)
        except SystemExit as left:
            status = int(left.code or 0)
        except BaseException:
            return Ended(None, said.getvalue(), log.lines, traceback.format_exc())
    if status in (INTERRUPTED, TERMINATED):  # such a signal is meant for all of them
        raise KeyboardInterrupt
    return Ended(status, said.getvalue(), log.lines)


def run_apart(command: Command, limit: int) -> Ended:
    """Run the command in a process of its own; arguments as in :func:`run_here`."""
    with ExitStack() as held:
        given = held.enter_context(command.input.open("rb")) if command.input else subprocess.DEVNULL
        words = [sys.executable, "-c", PROGRAM, *command.words]
        try:
            done = subprocess.run(words, stdin=given, capture_output=True, timeout=limit, check=False)
        except subprocess.TimeoutExpired:
            return Ended(None, "", broken=f"hangs for more than {limit} s")
    return Ended(done.returncode, done.stderr.decode(errors="replace"))


def faults_of_end(ended: Ended, apart: bool) -> Iterator[str]:
    """Yield what is wrong with how a command ended; ``apart``: as a process, whose log is among its messages."""
    if ended.broken is not None:
        yield ended.broken
        return
    if ended.status not in (0, USAGE_ERROR):
        yield f"status {ended.status}"
    lines = ended.said.splitlines()
    if "Traceback" in ended.said or not all(line.startswith(("onion", "See onion")) for line in lines):
        yield f"says {ended.said[-MAX_MESSAGE_LENGTH:]!r}"
    if not apart and not (1 <= len(lines) <= 2 if ended.status else not lines):
        yield f"says {len(lines)} lines with status {ended.status}"
    if ended.status and not lines:
        yield "says nothing of what was wrong"
    for line in [*lines, *ended.logged]:
        if not line.isprintable():
            yield f"says what cannot be seen: {line[:MAX_MESSAGE_LENGTH]!r}"
        if len(line) > MAX_MESSAGE_LENGTH:
            yield f"says a line of {len(line)} characters: {line[:100]!r}"


class _Log(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.setFormatter(Printable("onion: %(message)s"))
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines += self.format(record).splitlines()


@contextmanager
def _limited(limit: int) -> Iterator[None]:
    before = signal.signal(signal.SIGALRM, _hang)
    signal.alarm(limit)
    faulthandler.dump_traceback_later(2 * limit, exit=True, file=sys.__stderr__ or 2)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _hang(number: int, frame: FrameType | None) -> NoReturn:
    raise Hang("too long")


@attrs.frozen
class Command:
    """One call of the command line: what the file is to it, arguments, the only output, and standard input."""

    name: str
    words: list[str]
    output: Path
    input: Path | None = None


def commands_for(spoilt: Spoilt, ground: Ground) -> Iterator[Command]:
    """Yield every command that reads such a file."""
    task, path, room = spoilt.task, spoilt.path, spoilt.path.parent
    room = next(each for each in (room, *room.parents) if each.is_dir())  # of a path through a file
    good, run, out = ground.good(task), str(ground.run(task)), room / "out"
    yield Command("train", ground.training(task, path, good, out), out)
    yield Command("stream", [*ground.training(task, path, good, out), "--stream"], out)
    yield Command("dev", ground.training(task, good, path, out), out)
    evaluate = ["evaluate", "--run", run, "--report", str(out), "--threads", "1", "--input"]
    yield Command("evaluate", [*evaluate, str(path)], out)
    predict = ["predict", "--run", run, "--output", str(out), "--threads", "1", "--input"]
    yield Command("predict", [*predict, str(path)], out)
    if _is_file(path):
        yield Command("lines", [*predict, "-"], out, input=path)
    if path.suffix in TABLES:
        words = ["embed", "--quiet", "--encoder", str(ground.encoder), "--max-length", "24", "--threads", "1"]
        yield Command("embed", [*words, "--input", str(path), "--output", str(out)], out)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name that is too long
        return False


LENGTH = 24
"""Tokens that an example may have."""

SIZES = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
READING = ("--set", "max_query_length=8", "--set", "doc_stride=6", "--set", "max_answer_length=4")
QUICK = ("--quiet", "--passes", "1", "--batch-size", "16", "--max-length", str(LENGTH), "--threads", "1")


@attrs.frozen
class Ground:
    """A folder that holds everything but the spoilt files."""

    folder: Path

    @property
    def encoder(self) -> Path:
        return self.folder / "encoder"

    def good(self, task: str) -> Path:
        return self.folder / f"{task}{endings(task)[0]}"

    def run(self, task: str) -> Path:
        return self.folder / f"run-{task}"

    def training(self, task: str, train: Path, dev: Path, out: Path) -> list[str]:
        words = ["train", "--task", task, "--train", str(train), "--dev", str(dev), "--output", str(out)]
        return [*words, "--encoder", str(self.encoder), *QUICK, *(READING if task == "question-answering" else ())]

    @property
    def features(self) -> Path:
        return home() / "features"


def lay(folder: Path) -> Ground:
    """Write the encoder and the good files; the models are trained by the command itself (:meth:`Ground.training`)."""
    ground = Ground(folder)
    config = EncoderConfig(
        vocab_size=len(VOCABULARY),
        max_position_embeddings=LENGTH,
        type_vocab_size=2,
        model_type="bert",
        **SIZES,  # type: ignore[arg-type]
    )
    seed_everything(1)
    Encoder(config).save_pretrained(ground.encoder)
    config.write(ground.encoder)
    (ground.encoder / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n", encoding="utf-8")
    for task in TASKS:
        path = ground.good(task)
        path.write_bytes(written(good_records(task, Random(7)), path.suffix))
    return ground


Kept = dict[str, dict[str, int]]
"""Each entry of the folder of features -> the sums of its files."""


def kept_features(folder: Path) -> Kept:
    entries = sorted(folder.iterdir()) if folder.is_dir() else []
    return {entry.name: {path.name: zlib.crc32(path.read_bytes()) for path in _files(entry)} for entry in entries}


def faults_of_features(folder: Path, before: Kept) -> Iterator[str]:
    """Yield what is half-written or has changed; remove what is new, so that the next command begins with the same."""
    after = kept_features(folder)
    for name, sums in before.items():
        if after.get(name) != sums:
            yield f"the features {name} have changed"
    for name in after.keys() - before.keys():
        entry = folder / name
        if not _is_whole(entry):
            yield f"the features {name} are not whole"
        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()


def faults_of_output(output: Path, status: int) -> Iterator[str]:
    """Yield what is half-written; of a training that has begun, whole checkpoints may stay."""
    if status and output.exists() and not (output / "run.json").is_file():
        yield f"{output.name} is there"
    yield from (f"{path.name} is left" for path in _files(output) if PARTIAL in path.name)


def remove(output: Path) -> None:
    shutil.rmtree(output) if output.is_dir() else output.unlink(missing_ok=True)


def _files(place: Path) -> list[Path]:
    return [path for path in sorted(place.rglob("*")) if path.is_file()] if place.is_dir() else [place]


def _is_whole(entry: Path) -> bool:
    if entry.is_dir():
        return open_store(entry) is not None
    try:
        return set(json.loads(entry.read_bytes())) == {"value", "sum"}
    except ValueError:
        return False
