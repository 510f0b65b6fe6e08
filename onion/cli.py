"""The command line: ``onion train | evaluate | predict | draw | weights``.

Exit status: 0, 2 for a mistake that the message explains, 130 after Ctrl-C (128 + n for another signal).
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from onion.device import use_threads
from onion.disk import replace_file
from onion.errors import CheckpointError, DataError, OnionError

INTERRUPTED = 130

Number = TypeVar("Number", int, float)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return its exit status."""
    options = parser().parse_args(arguments)
    logging.basicConfig(format="onion: %(message)s", level=logging.DEBUG if options.debug else logging.INFO)
    try:
        return int(options.command(options))
    except OnionError as error:
        if options.debug:
            raise
        print(f"onion: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        if options.debug:
            raise
        print("onion: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader has left; say nothing at exit
        return 141


def parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    top = argparse.ArgumentParser(prog="onion", description="Training loops made of nested rings, for PaddlePaddle.")
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    debug = argparse.ArgumentParser(add_help=False)
    debug.add_argument("--debug", action="store_true", help="show tracebacks and debug messages")

    def add(name: str, text: str) -> argparse.ArgumentParser:
        return commands.add_parser(name, help=text, description=text, parents=[debug])

    _add_train(add("train", "fine-tune an encoder; run again, it goes on where it was stopped"))
    evaluation = add("evaluate", "measure a trained model on a labelled file")
    evaluation.add_argument("--from", dest="folder", type=Path, required=True, metavar="DIR", help="a folder of train")
    evaluation.add_argument("--data", required=True, metavar="FILE", help="rows with text_a, text_b if any, label")
    evaluation.set_defaults(command=_evaluate)
    _add_predict(add("predict", "label texts with a trained model"))
    drawing = add("draw", "show the onion that a folder was trained with")
    drawing.add_argument("--from", dest="folder", type=Path, required=True, metavar="DIR", help="a folder of train")
    drawing.add_argument("--output", type=Path, metavar="FILE", help="write it there; .svg: as a picture")
    drawing.set_defaults(command=_draw)
    weights = add("weights", "fetch pretrained weights").add_subparsers(required=True, metavar="ACTION")
    fetching = weights.add_parser("get", help="fetch weights once and print their folder", parents=[debug])
    fetching.add_argument("name", metavar="NAME", help="such as minilm")
    fetching.set_defaults(command=_fetch)
    return top


def _add_train(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add("--task", choices=["classify"], required=True, help="what to learn")
    add("--train", required=True, metavar="FILE", help=".tsv, .csv or .jsonl with text_a, text_b if any, label")
    add("--dev", required=True, metavar="FILE", help="the same, to test on while training")
    add("--encoder", default="minilm", metavar="NAME|DIR", help="pretrained weights (default: %(default)s)")
    add("--out", type=Path, required=True, metavar="DIR", help="folder for checkpoints and the log")
    add("--passes", type=_natural, default=3, help="over the training file (default: %(default)s)")
    add("--batch-size", type=_natural, default=32, help="examples a batch (default: %(default)s)")
    add("--lr", type=_positive, default=5e-5, help="highest learning rate (default: %(default)s)")
    add("--max-length", type=_natural, default=128, help="tokens an example may have (default: %(default)s)")
    add("--seed", type=int, default=1, help="of everything random (default: %(default)s)")
    add("--test-every", type=_natural, metavar="STEPS", help="steps between two tests (default: four times a pass)")
    add("--warmup", type=_share, default=0.1, help="share of the steps with a rising rate (default: %(default)s)")
    add("--weight-decay", type=_not_negative, default=0.01, help="decoupled (default: %(default)s)")
    add("--clip", type=_positive, default=1.0, help="largest global norm of the gradients (default: %(default)s)")
    command.set_defaults(command=_train)


def _add_predict(command: argparse.ArgumentParser) -> None:
    command.add_argument("--from", dest="folder", type=Path, required=True, metavar="DIR", help="a folder of train")
    texts = command.add_mutually_exclusive_group(required=True)
    texts.add_argument("--input", metavar="FILE", help="rows with text_a, text_b if any")
    texts.add_argument("--text", action="append", metavar="TEXT", help="a text; may be given several times")
    command.add_argument("--output", type=Path, metavar="FILE", help="a JSON line a row (default: standard output)")
    command.set_defaults(command=_predict)


def _natural(text: str) -> int:
    return _number(text, int, lambda value: value >= 1, "a whole number from 1")


def _positive(text: str) -> float:
    return _number(text, float, lambda value: 0 < value < float("inf"), "a number above 0")


def _not_negative(text: str) -> float:
    return _number(text, float, lambda value: 0 <= value < float("inf"), "a number from 0")


def _share(text: str) -> float:
    return _number(text, float, lambda value: 0 <= value <= 1, "a number from 0 to 1")


def _number(text: str, kind: type[Number], fits: Callable[[Number], bool], wanted: str) -> Number:
    try:
        value = kind(text)
    except ValueError:
        value = None
    if value is None or not fits(value):
        raise argparse.ArgumentTypeError(f"{text!r} is not {wanted}")
    return value


def _train(options: argparse.Namespace) -> int:
    use_threads()
    from onion.tasks.settings import Settings
    from onion.tasks.training import train

    names = [name for name in vars(options) if name not in ("command", "debug", "out")]
    trained = train(Settings(**{name: getattr(options, name) for name in names}), options.out)
    print(json.dumps(trained.report, ensure_ascii=False))
    if trained.signal is None:
        return 0
    print(f"onion: stopped at step {trained.report['step']}; the same command goes on from there", file=sys.stderr)
    return 128 + int(trained.signal)


def _evaluate(options: argparse.Namespace) -> int:
    use_threads()
    from onion.tasks.inference import evaluate

    print(json.dumps(evaluate(options.folder, options.data)))
    return 0


def _predict(options: argparse.Namespace) -> int:
    use_threads()
    from onion.tasks.inference import predict, predict_texts

    lines = predict_texts(options.folder, options.text) if options.text else predict(options.folder, options.input)
    _put_out(lines, options.output)
    return 0


def _draw(options: argparse.Namespace) -> int:
    suffix = ".svg" if options.output and options.output.suffix == ".svg" else ".txt"
    drawing = options.folder / f"onion{suffix}"
    if not drawing.exists():
        raise CheckpointError(f"{options.folder} holds no run of onion ({drawing.name} is missing); train first.")
    _put_out(drawing.read_text(encoding="utf-8").splitlines(), options.output)
    return 0


def _fetch(options: argparse.Namespace) -> int:
    from onion.models import hub

    print(hub.fetch(options.name))
    return 0


def _put_out(lines: Iterable[str], output: Path | None) -> None:
    """Print lines, or write them to a file that is whole or not there."""
    if output is None:
        for line in lines:
            print(line)
        return
    try:
        replace_file(output, (f"{line}\n".encode() for line in lines))
    except OSError as error:
        raise DataError(f"{output}: cannot be written: {error.strerror}; nothing was written.") from None
