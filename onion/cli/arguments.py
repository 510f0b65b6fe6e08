"""The parser of all commands."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from onion.cli import commands as run
from onion.cli import control, replaying
from onion.cli.version import Version
from onion.messages import printable, shown

MISTAKE = 2

Number = TypeVar("Number", int, float)


class Parser(argparse.ArgumentParser):
    """A parser whose complaints take two lines."""

    def error(self, message: str) -> NoReturn:
        """Say what was wrong, and who knows better."""
        self.exit(MISTAKE, f"{self.prog}: {printable(message)}\nSee {self.prog} --help.\n")


def parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    top = Parser(prog="onion", description="Training loops made of nested rings, for PaddlePaddle.")
    top.add_argument("--version", action=Version, help="show the versions of onion, Paddle and Python")
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    debug = Parser(add_help=False)
    debug.add_argument("--debug", action="store_true", help="show tracebacks and debug messages")

    def add(name: str, text: str) -> argparse.ArgumentParser:
        return commands.add_parser(name, help=text, description=text, parents=[debug])

    _add_train(add("train", "fine-tune an encoder; run again, it goes on where it was stopped"))
    evaluation = add("evaluate", "measure a trained model on a labelled file")
    evaluation.add_argument("--from", dest="folder", type=Path, required=True, metavar="DIR", help="a folder of train")
    evaluation.add_argument("--data", required=True, metavar="FILE", help="labelled rows as in training")
    _add_set(evaluation, "another value of a setting that counts after training, such as null_threshold=-1.5")
    _add_threads(evaluation)
    evaluation.set_defaults(command=run.evaluate)
    _add_predict(add("predict", "label texts with a trained model"))
    _add_embed(add("embed", "write a vector for each text of a file, by an encoder as it is"))
    drawing = add("draw", "show the onion that a folder was trained with")
    drawing.add_argument("--from", dest="folder", type=Path, required=True, metavar="DIR", help="a folder of train")
    drawing.add_argument("--output", type=Path, metavar="FILE", help="write it there; .svg: as a picture")
    drawing.set_defaults(command=run.draw)
    cache = add("cache", "list or delete the features that are kept").add_subparsers(required=True, metavar="ACTION")
    listing = cache.add_parser("ls", help="list them", parents=[debug])
    listing.set_defaults(command=run.list_cache)
    clearing = cache.add_parser("clear", help="delete them; they are made again when they are needed", parents=[debug])
    clearing.add_argument("--unused", type=_not_negative, default=0, metavar="DAYS", help="unused for so long only")
    clearing.set_defaults(command=run.clear_cache)
    weights = add("weights", "list and fetch pretrained weights").add_subparsers(required=True, metavar="ACTION")
    listing = weights.add_parser("ls", help="list the known names", parents=[debug])
    listing.set_defaults(command=run.list_weights)
    fetching = weights.add_parser("get", help="fetch or update weights and print their folder", parents=[debug])
    names = "one that weights ls lists, such as minilm, or a repository of Hugging Face's hub: OWNER/NAME[@REVISION]"
    fetching.add_argument("name", metavar="NAME", help=names)
    fetching.set_defaults(command=run.fetch)
    again = add("replay", "repeat an online run from its samples and its journal, and compare")
    again.add_argument("folder", type=Path, metavar="DIR", help="the run's: its checkpoints and journal.jsonl")
    maker = "a function that takes a folder and returns the onion that saves there, such as my_run:make"
    again.add_argument("--onion", required=True, metavar="MODULE:FUNCTION", help=maker)
    again.add_argument("--out", type=Path, metavar="DIR", help="where the second run saves (default: DIR/replay)")
    again.set_defaults(command=replaying.replay)
    _add_ctl(add("ctl", "watch and steer a run that has a ControlServer"), debug)
    return top


def _add_train(command: argparse.ArgumentParser) -> None:
    # What is not given is absent from the options: a preset or a config file may say it, and the task has its own.
    def add(name: str, text: str, **more: Any) -> None:
        command.add_argument(name, help=text, default=argparse.SUPPRESS, **more)

    command.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder for checkpoints and the log")
    anyway = "go on in a folder whose training differs in settings, data or onion; what differs is told"
    command.add_argument("--resume-anyway", action="store_true", help=anyway)
    _add_quiet(command)
    command.add_argument("--preset", metavar="NAME", help="published settings, such as ernie/chnsenticorp")
    command.add_argument("--config", type=Path, metavar="FILE", help=".yaml or .json: settings by name; flags win")
    add("--task", "what to learn: classify, regress, match, multilabel, tag, read, mask", metavar="NAME")
    add("--train", "what to learn from", metavar="FILE")
    add("--dev", "the same, to test on while training", metavar="FILE")
    add("--encoder", "folder, name of weights ls, or OWNER/NAME of the hub (default: minilm)", metavar="NAME|DIR")
    add(
        "--init",
        "begin with what another training has learned, not with --encoder; DIR is its folder or a checkpoint",
        metavar="DIR",
    )
    add("--init-head", "take the head from there too (needs --init)", action=argparse.BooleanOptionalAction)
    add("--passes", "over the training file (default: 3)", type=_natural)
    add("--batch-size", "examples a batch (default: 32)", type=_natural)
    add("--lr", "highest learning rate (default: 5e-5)", type=_positive)
    add("--max-length", "tokens an example may have (default: 128; read: 384)", type=_natural)
    add("--seed", "of everything random (default: 1)", type=_seed)
    add("--test-every", "steps between two tests (default: four times a pass)", type=_natural, metavar="STEPS")
    add("--warmup", "share of the steps with a rising rate (default: 0.1)", type=_share)
    add("--weight-decay", "decoupled (default: 0.01)", type=_not_negative)
    add("--clip", "largest global norm of the gradients (default: 1)", type=_positive)
    add(
        "--best",
        "figure by which a checkpoint is the best (default: the task's)",
        metavar="FIGURE",
    )
    add("--stream", "read the training file anew, in its own order", action=argparse.BooleanOptionalAction)
    _add_set(command, "a setting of the task itself, such as label_smoothing=0.1")
    _add_threads(command)
    command.set_defaults(command=run.train)


def _add_predict(command: argparse.ArgumentParser) -> None:
    command.add_argument("--from", dest="folder", type=Path, required=True, metavar="DIR", help="a folder of train")
    texts = command.add_mutually_exclusive_group(required=True)
    texts.add_argument("--input", metavar="FILE", help="rows as in training, without label; -: standard input")
    texts.add_argument("--text", action="append", metavar="TEXT", help="a text; may be given several times")
    texts.add_argument("stdin", nargs="?", choices=["-"], metavar="-", help="lines of standard input")
    command.add_argument("--output", type=Path, metavar="FILE", help="a JSON line a row (default: standard output)")
    command.add_argument("--files", type=Path, metavar="DIR", help="the task's own files too, such as predictions.json")
    _add_set(command, "another value of a setting that counts after training, such as threshold=0.3")
    _add_threads(command)
    command.set_defaults(command=run.predict)


def _add_embed(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add("--encoder", default="minilm", metavar="NAME|DIR", help="as in train (default: %(default)s)")
    add("--input", required=True, metavar="FILE", help=".tsv, .csv or .jsonl with text_a, text_b if any; of any size")
    add("--out", type=Path, required=True, metavar="DIR", help="new folder for cls_emb.npy: float32 [rows, hidden]")
    add("--pooling", choices=["cls", "mean", "pooler"], default="cls", help="of token vectors (default: %(default)s)")
    add("--layer", type=_natural, metavar="N", help="take the vectors of this layer, from 1 (default: the last)")
    add("--normalize", action="store_true", help="give every vector of cls_emb.npy the length 1")
    add("--tokens", action="store_true", help="write top_layer_emb.npy (float32 [tokens, hidden]) and lengths.npy too")
    add("--max-length", type=_natural, default=128, help="tokens a text may have (default: %(default)s)")
    add("--batch-size", type=_natural, default=64, help="texts a batch (default: %(default)s)")
    _add_quiet(command)
    _add_threads(command)
    command.set_defaults(command=run.embed)


def _add_ctl(command: argparse.ArgumentParser, debug: argparse.ArgumentParser) -> None:
    actions = command.add_subparsers(required=True, metavar="ACTION", dest="action")
    remote = Parser(add_help=False)
    remote.add_argument(
        "--url", help=f"of the service (default: the environment's ONION_URL, or {control.DEFAULT_URL})"
    )
    # The token itself is never an argument: every user of the machine could read it in the list of processes.
    where = "holds the token, and only its owner can read it (default: the environment's ONION_TOKEN)"
    remote.add_argument("--token-file", type=Path, metavar="FILE", help=where)
    waiting = Parser(add_help=False)
    wait = "to wait for the answer, 60 at most; the command stays in line (default: %(default)s)"
    waiting.add_argument("--timeout", type=_wait, default=30.0, metavar="SECONDS", help=wait)

    def add(name: str, text: str, function: Callable[..., int], *more: Parser) -> argparse.ArgumentParser:
        action = actions.add_parser(name, help=text, description=text, parents=[debug, remote, *more])
        action.set_defaults(command=function)
        return action

    add("status", "where the run is", control.look)
    add("onion", "its onion, with what each ring costs", control.look)
    add("metrics", "its figures, as Prometheus text", control.look)
    add("events", "what happens, as it happens: a JSON line each", control.events)
    add("pause", "wait before the next batch", control.steer, waiting)
    add("resume", "go on", control.steer, waiting)
    stepping = add("step", "run some batches, then pause", control.step, waiting)
    stepping.add_argument("n", nargs="?", type=_natural, default=1, metavar="N", help="batches (default: 1)")
    add("save", "write a checkpoint", control.steer, waiting)
    add("test", "run the testers", control.steer, waiting)
    stopping = add("stop", "end the run", control.stop, waiting)
    stopping.add_argument("--yes", action="store_true", help="do not ask, at a terminal either")
    stopping.add_argument("--why", metavar="TEXT", help="stored in the journal")
    setting = add("set", "change settings, such as learning_rate=0.001", control.change, waiting)
    setting.add_argument("settings", nargs="+", type=_setting, metavar="NAME=VALUE")
    for name, text in (("enable", "let a ring take part"), ("disable", "leave a ring out")):
        add(name, text, control.switch, waiting).add_argument("ring", metavar="RING", help="its name in the onion")
    sending = add("samples", "put samples into the stream", control.samples)
    sending.add_argument("file", metavar="FILE", help="a JSON value a line; -: standard input")
    predicting = add("predict", "ask for predictions of the newest snapshot", control.predict)
    predicting.add_argument("file", nargs="?", default="-", metavar="FILE", help="a JSON value a line (default: -)")


def _add_threads(command: argparse.ArgumentParser) -> None:
    default = "OMP_NUM_THREADS of the environment, or one a processor, 8 at most"
    command.add_argument("--threads", type=_natural, metavar="N", help=f"that compute (default: {default})")


def _add_quiet(command: argparse.ArgumentParser) -> None:
    text = "show no progress: no bar on a terminal, no lines elsewhere"
    command.add_argument("--quiet", action="store_true", help=text)


def _add_set(command: argparse.ArgumentParser, text: str) -> None:
    command.add_argument(
        "--set",
        action="append",
        type=_setting,
        default=[],
        metavar="NAME=VALUE",
        help=f"{text}; may be given several times",
    )


def _setting(text: str) -> tuple[str, Any]:
    """``NAME=VALUE``; the value is JSON, or else a text."""
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise argparse.ArgumentTypeError(f"{shown(text)} is not NAME=VALUE")
    try:
        return name, json.loads(value)
    except (ValueError, RecursionError):
        return name, value


def _natural(text: str) -> int:
    return _number(text, int, lambda value: value >= 1, "a whole number from 1")


def _positive(text: str) -> float:
    return _number(text, float, lambda value: 0 < value < float("inf"), "a number above 0")


def _not_negative(text: str) -> float:
    return _number(text, float, lambda value: 0 <= value < float("inf"), "a number from 0")


def _wait(text: str) -> float:
    return _number(text, float, lambda value: 0 <= value <= 60, "a number of seconds from 0 to 60")


def _share(text: str) -> float:
    return _number(text, float, lambda value: 0 <= value <= 1, "a number from 0 to 1")


def _seed(text: str) -> int:
    return _number(text, int, lambda value: 0 <= value < 2**32, "a whole number from 0 to 4294967295")


def _number(text: str, kind: type[Number], fits: Callable[[Number], bool], wanted: str) -> Number:
    try:
        value = kind(text)
    except ValueError:
        value = None
    if value is None or not fits(value):
        raise argparse.ArgumentTypeError(f"{shown(text)} is not {wanted}")
    return value
