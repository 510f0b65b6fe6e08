"""The parser of all commands."""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from textwrap import dedent, indent
from typing import Any, NoReturn

import attrs

import onion
from onion.cli import commands as run
from onion.cli import compressing, control, corpus, distilling, exporting, pretraining, serving, tuning
from onion.cli.colours import error_line
from onion.cli.examples import EXAMPLES
from onion.cli.values import natural, read
from onion.messages import printable, shown
from onion.serving.limits import ServingLimits
from onion.tasks.compression.settings import RECIPE, CompressSettings
from onion.tasks.embedding.names import CLS, POOLINGS
from onion.tasks.export.names import EIGHT_BITS, FORMATS, ONNX
from onion.tasks.finetune.declared import GROUPS, Declared, declared_in
from onion.tasks.finetune.settings import Settings
from onion.tasks.finetune.taught_settings import TaughtSettings
from onion.tasks.pretraining.settings import PretrainingSettings
from onion.tasks.students.settings import RECIPES, DistillSettings
from onion.tasks.validators import COLUMNS, NAMES, NOT_NEGATIVE, POSITIVE
from onion.validation import Check

MISTAKE = 2
WHEELS = ("paddlepaddle", "paddlepaddle-gpu")
"""The packages of Paddle. They overwrite each other: if both are installed, one of them is broken."""


class Parser(argparse.ArgumentParser):
    """A parser whose error messages take two lines, and whose help ends with examples.

    Args:
        examples: commands, one a line.
        settings: those of ``argparse.ArgumentParser``.
    """

    def __init__(self, *, examples: str = "", **settings: Any) -> None:
        formatter = argparse.RawDescriptionHelpFormatter  # keeps the lines of the examples
        epilog = f"examples:\n{indent(dedent(examples).strip(), '  ')}" if examples else None
        super().__init__(formatter_class=formatter, epilog=epilog, **settings)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Refuse unknown arguments by the parser of their command, whose help lists the known ones."""
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found, unknown

    def error(self, message: str) -> NoReturn:
        """Exit with the error and a reference to the help."""
        line = error_line(self.prog, printable(message), sys.stderr)
        self.exit(MISTAKE, f"{line}\nSee {self.prog} --help.\n")


def versions() -> str:
    """Return one line with the versions of onion, Paddle and Python, without importing Paddle."""
    from importlib.metadata import PackageNotFoundError, version

    wheels = []
    for name in WHEELS:
        try:
            wheels.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return ", ".join([f"onion {onion.__version__}", *(wheels or ["no Paddle"]), f"Python {platform.python_version()}"])


class Version(argparse.Action):
    """Prints the versions, which are looked up only then, and exits."""

    def __init__(self, option_strings: Sequence[str], dest: str, **more: Any) -> None:
        # It is not stored in the options, from which the settings of a training are taken.
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, default=argparse.SUPPRESS, **more)

    def __call__(self, parser: argparse.ArgumentParser, *rest: object) -> None:
        """Print them."""
        print(versions())
        parser.exit()


def parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    text = "Training loops made of nested rings, for PaddlePaddle."
    top = Parser(prog="onion", description=text, examples=EXAMPLES[""])
    top.add_argument("--version", action=Version, help="show the versions of onion, Paddle and Python")
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    debug = Parser(add_help=False)
    debug.add_argument("--debug", action="store_true", help="show tracebacks and debug messages")

    def add(name: str, text: str) -> argparse.ArgumentParser:
        return commands.add_parser(name, help=text, description=text, parents=[debug], examples=EXAMPLES[name])

    _add_train(add("train", "fine-tune an encoder; the same command resumes an interrupted run"))
    _add_pretrain(add("pretrain", "pretrain an encoder on a corpus; the same command resumes an interrupted run"))
    _add_distill(add("distill", "train a small student of a trained model; the same command resumes it"))
    _add_compress(add("compress", "train a narrower, shallower model of a trained one; the same command resumes it"))
    _add_evaluate(add("evaluate", "evaluate a trained model on a labelled file"))
    _add_predict(add("predict", "predict with a trained model"))
    _add_export(add("export", "write a trained model as ONNX, as a program of Paddle or for transformers"))
    _add_serve(add("serve", "serve trained models and encoders over HTTP"))
    _add_push(add("push", "upload a trained model to Hugging Face's hub"))
    _add_tune(add("tune", "search for settings with Optuna; the same command resumes an interrupted search"))
    _add_cross_validate(add("cross-validate", "train once for each fold of the training file, and average the figures"))
    _add_lr_find(add("lr-find", "suggest a learning rate by a range test"))
    _add_tasks(add("tasks", "list the kinds of tasks, or the files and settings of one"))
    _add_draw(add("draw", "show the onion of a run"))
    _add_embed(add("embed", "write a vector for each text of a file, from a pretrained encoder"))
    _add_weights(add("weights", "list and download pretrained weights"), debug)
    corpus.add_actions(add("corpus", "make corpora for pretraining from raw text, and list what they hold"), debug)
    _add_cache(add("cache", "list or delete cached features"), debug)
    _add_replay(add("replay", "repeat an online run from its samples and its journal, and compare"))
    _add_ctl(add("ctl", "watch and steer a run that has a ControlServer"), debug)
    return top


def _add_cache(command: argparse.ArgumentParser, debug: argparse.ArgumentParser) -> None:
    actions = command.add_subparsers(required=True, metavar="ACTION")
    listing = actions.add_parser("ls", help="list them", parents=[debug])
    listing.set_defaults(command=run.list_cache)
    clearing = actions.add_parser("clear", help="delete them; they are computed again when needed", parents=[debug])
    text = "only those unused for this many days (default: 0, all)"
    clearing.add_argument("--unused", type=_not_negative, default=0, metavar="DAYS", help=text)
    clearing.set_defaults(command=run.clear_cache)


def _add_weights(command: argparse.ArgumentParser, debug: argparse.ArgumentParser) -> None:
    actions = command.add_subparsers(required=True, metavar="ACTION")
    listing = actions.add_parser("ls", help="list the known names", parents=[debug])
    listing.set_defaults(command=run.list_weights)
    fetching = actions.add_parser("get", help="download or update weights and print their folder", parents=[debug])
    names = "a name from weights ls, such as minilm, or a repository of Hugging Face's hub: OWNER/NAME[@REVISION]"
    fetching.add_argument("name", metavar="NAME", help=names)
    fetching.set_defaults(command=run.fetch)


def _add_push(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add("name", metavar="OWNER/NAME[@BRANCH]", help="repository; it and its branch are created if they do not exist")
    _add_run(command)
    _add_task(command)
    add("--license", metavar="ID", help="license for the model card, such as apache-2.0 (default: none is told)")
    language = "language for the model card, such as zh; may be repeated"
    add("--language", action="append", default=[], metavar="CODE", help=language)
    add("--message", metavar="TEXT", help="message of the commit (default: Push a model for TASK)")
    add("--private", action="store_true", help="make a repository that is created private")
    add("--output", type=Path, metavar="DIR", help="write the files to a new folder instead, and upload nothing")
    command.set_defaults(command=run.push)


def _add_train(command: argparse.ArgumentParser) -> None:
    _add_output(command, "folder for checkpoints and the log")
    _add_resumption(command)
    _add_settings(command)
    command.set_defaults(command=run.train)


def _add_pretrain(command: argparse.ArgumentParser) -> None:
    _add_output(command, "folder for checkpoints, the log and the encoder")
    extend = "go on with a run of fewer tasks in the folder: the same encoder and optimizer, and fresh heads"
    command.add_argument("--extend", action="store_true", help=extend)
    _add_resumption(command)
    _add_quiet(command)
    file = ".yaml or .json file of settings; flags override it"
    command.add_argument("--settings", type=Path, metavar="FILE", help=file)
    _add_declared(command, PretrainingSettings.declared())
    _add_set(command, "set a setting of a task or of the masks, such as masking.share=0.2")
    _add_threads(command)
    command.set_defaults(command=pretraining.pretrain)


def _add_distill(command: argparse.ArgumentParser) -> None:
    _add_output(command, "folder for checkpoints, the log and the teacher's logits")
    told = {
        name: ", ".join(dict.fromkeys(f"{student} {recipe[name]}" for student, recipe in RECIPES.items()))
        for name in sorted({name for recipe in RECIPES.values() for name in recipe})
    }
    _add_taught(command, DistillSettings, told)
    _add_threads(command)
    command.set_defaults(command=distilling.distill)


def _add_compress(command: argparse.ArgumentParser) -> None:
    _add_output(command, "folder for checkpoints and the log")
    _add_taught(command, CompressSettings, {name: str(value) for name, value in RECIPE.items()})
    exported = "with one of these the best model is also written as ONNX, to the folder export in --output"
    _add_smaller_export(command.add_argument_group("export", exported))
    _add_threads(command)
    command.set_defaults(command=compressing.compress)


def _add_taught(command: argparse.ArgumentParser, kind: type[TaughtSettings], told: Mapping[str, str]) -> None:
    """Add the flags of a training by a teacher; ``told`` names the defaults of its recipe."""
    force = "resume in a folder whose run differs in settings or data; differences are logged"
    command.add_argument("--force-resume", action="store_true", help=force)
    _add_quiet(command)
    declared = kind.declared()
    for name, default in told.items():
        declared[name] = attrs.evolve(declared[name][0], default=default), None
    _add_declared(command, declared)


def _add_smaller_export(command: argparse._ActionsContainer) -> None:
    """Add the flags by which an exported model becomes smaller."""
    bits = "8-bit weights in ONNX: dynamic (no data needed) or static (with --calibrate)"
    command.add_argument("--int8", choices=EIGHT_BITS, metavar="KIND", help=bits)
    lines = "rows as onion predict reads them from standard input, for --int8 static"
    command.add_argument("--calibrate", type=Path, metavar="FILE", help=lines)
    vocab = "file of texts whose tokens the model keeps, such as the training file (default: all tokens)"
    command.add_argument("--vocab", type=Path, metavar="FILE", help=vocab)


def _add_tune(command: argparse.ArgumentParser) -> None:
    _add_output(command, "folder for the study, its trials and best.json")
    entry = "values of a setting to search: LOW..HIGH, LOW..HIGH:log, LOW..HIGH:STEP or A,B,C; may be repeated"
    command.add_argument("--search", action="append", type=_entry, default=[], metavar="NAME=VALUES", help=entry)
    trials = "trainings in all, also in the runs before (default: %(default)s)"
    command.add_argument("--trials", type=natural, default=20, metavar="N", help=trials)
    pruner = "how trainings that fall behind are ended early: median, halving or none (default: %(default)s)"
    command.add_argument("--pruner", default="median", metavar="NAME", help=pruner)
    _add_settings(command)
    command.set_defaults(command=tuning.tune)


def _add_cross_validate(command: argparse.ArgumentParser) -> None:
    _add_output(command, "folder for the trainings and their figures")
    folds = "parts of the training file, each of which is tested on (default: %(default)s)"
    command.add_argument("--folds", type=_folds, default=5, metavar="N", help=folds)
    _add_settings(command, without=("dev",))
    command.set_defaults(command=tuning.cross_validate)


def _add_lr_find(command: argparse.ArgumentParser) -> None:
    _add_output(command, "folder for lr_find.csv and lr_find.svg")
    for name, default, text in (("first", 1e-7, "the first learning rate"), ("last", 1.0, "the last one")):
        text = f"{text} (default: %(default)s)"
        command.add_argument(f"--{name}", type=_positive, default=default, metavar="X", help=text)
    steps = "updates from the first to the last (default: %(default)s)"
    command.add_argument("--steps", type=natural, default=100, metavar="N", help=steps)
    _add_settings(command)
    command.set_defaults(command=tuning.find_learning_rate)


def _add_resumption(command: argparse.ArgumentParser) -> None:
    """Add the flags of a training in a folder, by one process or several."""
    force = "resume in a folder whose run differs in settings, data or onion; differences are logged"
    command.add_argument("--force-resume", action="store_true", help=force)
    processes = "processes of this machine that train together (default: %(default)s)"
    command.add_argument("--processes", type=natural, default=1, metavar="N", help=processes)


def _add_output(command: argparse.ArgumentParser, text: str) -> None:
    command.add_argument("--output", type=Path, required=True, metavar="DIR", help=text)


def _add_settings(command: argparse.ArgumentParser, without: Collection[str] = ()) -> None:
    """Add the flags of a training's settings."""
    _add_quiet(command)
    command.add_argument("--preset", metavar="NAME", help="published settings, such as ernie/chnsenticorp")
    command.add_argument(
        "--config", type=Path, metavar="FILE", help=".yaml or .json file of settings; flags override it"
    )
    _add_declared(command, {name: each for name, each in declared_in(Settings).items() if name not in without})
    length = "maximum tokens per example (default: 128; question-answering: 384)"
    command.add_argument("--max-length", type=natural, default=argparse.SUPPRESS, metavar="N", help=length)
    _add_set(command, "set a setting of the task, such as label_smoothing=0.1 (onion tasks NAME lists them)")
    _add_threads(command)


def _add_declared(command: argparse.ArgumentParser, declared: Mapping[str, tuple[Declared, Any]]) -> None:
    """Add the flags of declared settings, under their headings."""
    for title in GROUPS:
        group = command.add_argument_group(title)
        for name, (setting, default) in declared.items():
            if setting.group == title:
                _add_setting(group, name, setting, default)


def _add_setting(group: argparse._ArgumentGroup, name: str, setting: Declared, default: Any) -> None:
    """Add the flag of a setting; one that is not given is absent from the options: a file or the task may set it."""
    told = None if default is False else setting.shown(default)
    text = f"{setting.help}; may be repeated" if setting.many else setting.help
    text = text if told is None else f"{text} (default: {told})"
    more: dict[str, Any]
    if isinstance(default, bool):
        more = {"action": argparse.BooleanOptionalAction}
    elif setting.many:
        more = {"action": "append", "metavar": setting.metavar}
    else:
        metavar = setting.metavar or ("N" if setting.check.reads is int else "X")
        more = {"type": partial(read, setting.check), "metavar": metavar}
    group.add_argument(f"--{name.replace('_', '-')}", help=text, default=argparse.SUPPRESS, **more)


def _add_evaluate(command: argparse.ArgumentParser) -> None:
    _add_run_or_name(command)
    command.add_argument(
        "--input",
        required=True,
        metavar="FILE",
        help="labelled rows as in training; also a pattern, .parquet or hf:NAME/SPLIT",
    )
    report = "folder for a report: figures of each class, the confusion matrix, the errors (JSON, CSV, SVG)"
    command.add_argument("--report", type=Path, metavar="DIR", help=report)
    _add_task(command)
    _add_columns(command)
    _add_set(command, "override a setting that applies after training, such as null_threshold=-1.5")
    _add_threads(command)
    command.set_defaults(command=run.evaluate)


def _add_predict(command: argparse.ArgumentParser) -> None:
    _add_run_or_name(command)
    texts = command.add_mutually_exclusive_group(required=True)
    texts.add_argument("--input", metavar="FILE", help="rows as in training, without labels; -: standard input")
    texts.add_argument("--text", action="append", metavar="TEXT", help="a text; may be repeated")
    texts.add_argument("stdin", nargs="?", choices=["-"], metavar="-", help="read lines from standard input")
    output = "file to write: .csv, or else JSON lines (default: JSON lines on standard output)"
    command.add_argument("--output", type=Path, metavar="FILE", help=output)
    carry = "columns of the input to write beside each prediction, such as id,text_a,label"
    command.add_argument("--carry", type=partial(read, NAMES), default=(), metavar="NAME,...", help=carry)
    command.add_argument(
        "--files", type=Path, metavar="DIR", help="also write the task's own files, such as predictions.json"
    )
    _add_task(command)
    _add_columns(command)
    _add_set(command, "override a setting that applies after training, such as threshold=0.3")
    _add_threads(command)
    command.set_defaults(command=run.predict)


def _add_export(command: argparse.ArgumentParser) -> None:
    model = command.add_mutually_exclusive_group(required=True)
    _add_run_or_name(model, required=False)
    encoder = "an encoder instead, as in embed, for vectors of texts"
    model.add_argument("--encoder", metavar="NAME|DIR", help=encoder)
    _add_output(command, "new folder for the model")
    formats = "onnx, paddle (a program that Paddle Inference runs) or huggingface (default: %(default)s)"
    command.add_argument("--format", choices=FORMATS, default=ONNX, metavar="FORMAT", help=formats)
    _add_smaller_export(command)
    texts = "rows as in --calibrate, on which the model is held against the original (default: random words)"
    command.add_argument("--texts", type=Path, metavar="FILE", help=texts)
    _add_task(command)
    _add_set(command, "override a setting that applies after training, such as threshold=0.3")
    vectors = command.add_argument_group("vectors of an encoder")
    vectors.add_argument("--pooling", choices=POOLINGS, default=CLS, help="pooling of token vectors (default: cls)")
    layer = "layer to take vectors from, counted from 1 (default: the last)"
    vectors.add_argument("--layer", type=natural, metavar="N", help=layer)
    vectors.add_argument("--normalize", action="store_true", help="scale every vector to length 1")
    length = "maximum tokens per text (default: %(default)s)"
    vectors.add_argument("--max-length", type=natural, default=128, metavar="N", help=length)
    _add_threads(command)
    command.set_defaults(command=exporting.export)


def _add_serve(command: argparse.ArgumentParser) -> None:
    add, limits = command.add_argument, ServingLimits()
    models = "folder of onion train or onion export, or an encoder; its name in addresses is that of the folder"
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
    group.add_argument("--drain", type=_positive, default=limits.drain, metavar="SECONDS", help=drain)
    calls = "log a line of JSON for each call, without texts"
    add("--log-calls", action="store_true", help=calls)
    command.set_defaults(command=serving.serve)


def _add_tasks(command: argparse.ArgumentParser) -> None:
    command.add_argument("name", nargs="?", metavar="TASK", help="such as classification (default: list them all)")
    command.set_defaults(command=run.tasks)


def _add_draw(command: argparse.ArgumentParser) -> None:
    _add_run(command)
    text = "file to write (default: standard output); .svg: a picture"
    command.add_argument("--output", type=Path, metavar="FILE", help=text)
    command.set_defaults(command=run.draw)


def _add_embed(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add("--encoder", default="minilm", metavar="NAME|DIR", help="as in train (default: %(default)s)")
    data = "rows with text_a, text_b if any; also a pattern, .parquet or hf:NAME/SPLIT"
    add("--input", required=True, metavar="FILE", help=data)
    output = "new folder for cls_emb.npy, float32 [rows, hidden], and rows.jsonl, the texts"
    add("--output", type=Path, required=True, metavar="DIR", help=output)
    carry = "other columns of the input to write into rows.jsonl, such as id,title"
    add("--carry", type=partial(read, NAMES), default=(), metavar="NAME,...", help=carry)
    columns = "columns of onion and of the file, where they differ, such as text_a=sentence"
    add("--columns", type=partial(read, COLUMNS), metavar="OURS=THEIRS,...", help=columns)
    pooling = "pooling of token vectors (default: cls, or that of an exported encoder)"
    add("--pooling", choices=POOLINGS, help=pooling)
    add("--layer", type=natural, metavar="N", help="layer to take vectors from, counted from 1 (default: the last)")
    add("--normalize", action="store_true", help="scale every vector of cls_emb.npy to length 1")
    add("--tokens", action="store_true", help="also write top_layer_emb.npy (float32 [tokens, hidden]) and lengths.npy")
    length = "maximum tokens per text (default: 128, or that of an exported encoder)"
    add("--max-length", type=natural, metavar="N", help=length)
    add("--batch-size", type=natural, default=64, metavar="N", help="texts per batch (default: %(default)s)")
    _add_quiet(command)
    _add_threads(command)
    command.set_defaults(command=run.embed)


def _add_replay(command: argparse.ArgumentParser) -> None:
    command.add_argument("folder", type=Path, metavar="DIR", help="the run's: its checkpoints and journal.jsonl")
    maker = "a function that takes a folder and returns the runner that saves there, such as my_run:make"
    command.add_argument("--onion", required=True, metavar="MODULE:FUNCTION", help=maker)
    command.add_argument("--output", type=Path, metavar="DIR", help="folder of the second run (default: DIR/replay)")
    command.set_defaults(command=run.replay)


def _add_ctl(command: argparse.ArgumentParser, debug: argparse.ArgumentParser) -> None:
    actions = command.add_subparsers(required=True, metavar="ACTION", dest="action")
    remote = Parser(add_help=False)
    remote.add_argument("--url", help=f"address of the service (default: $ONION_URL, or {control.DEFAULT_URL})")
    # The token itself is never an argument: every user of the machine could read it in the list of processes.
    where = "file with the token, readable by its owner only (default: $ONION_TOKEN)"
    remote.add_argument("--token-file", type=Path, metavar="FILE", help=where)
    waiting = Parser(add_help=False)
    wait = "time to wait for the answer, at most 60; the command stays queued (default: %(default)s)"
    waiting.add_argument("--timeout", type=_wait, default=30.0, metavar="SECONDS", help=wait)

    def add(name: str, text: str, function: Callable[..., int], *more: Parser) -> argparse.ArgumentParser:
        action = actions.add_parser(name, help=text, description=text, parents=[debug, remote, *more])
        action.set_defaults(command=function)
        return action

    add("status", "show the state of the run", control.look)
    add("show", "show the onion, with the time of each item", control.look)
    add("metrics", "show the metrics in the Prometheus text format", control.look)
    add("events", "follow the events, one JSON line each", control.events)
    add("pause", "pause before the next batch", control.steer, waiting)
    add("resume", "resume a paused run", control.steer, waiting)
    stepping = add("step", "run some batches, then pause", control.step, waiting)
    stepping.add_argument("n", nargs="?", type=natural, default=1, metavar="N", help="batches (default: 1)")
    add("save", "write a checkpoint", control.steer, waiting)
    add("test", "run the testers", control.steer, waiting)
    stopping = add("stop", "end the run", control.stop, waiting)
    stopping.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    stopping.add_argument("--why", metavar="TEXT", help="reason, stored in the journal")
    setting = add("set", "change settings, such as learning_rate=0.001", control.change, waiting)
    setting.add_argument("settings", nargs="+", type=_setting, metavar="NAME=VALUE")
    for name, text in (("enable", "enable an item"), ("disable", "disable an item")):
        switching = add(name, text, control.switch, waiting)
        switching.add_argument("item", metavar="ITEM", help="name of the item in the onion")
    sending = add("samples", "add samples to the stream", control.samples)
    sending.add_argument("file", metavar="FILE", help="JSON lines; -: standard input")
    predicting = add("predict", "predict with the newest snapshot", control.predict)
    text = "JSON lines (default: -, standard input)"
    predicting.add_argument("file", nargs="?", default="-", metavar="FILE", help=text)


def _add_run(command: argparse.ArgumentParser) -> None:
    command.add_argument("--run", type=Path, required=True, metavar="DIR", help="output folder of onion train")


def _add_run_or_name(command: argparse._ActionsContainer, required: bool = True) -> None:
    text = "output folder of onion train or onion export, or OWNER/NAME of a model from onion push"
    command.add_argument("--run", required=required, metavar="DIR|NAME", help=text)


def _add_columns(command: argparse.ArgumentParser) -> None:
    text = "columns of the task and of the file, where they differ (default: those of the training)"
    command.add_argument("--columns", type=partial(read, COLUMNS), metavar="OURS=THEIRS,...", help=text)


def _add_task(command: argparse.ArgumentParser) -> None:
    command.add_argument("--task", metavar="NAME", help="which task, in a run of several")


def _add_threads(command: argparse.ArgumentParser) -> None:
    default = "$OMP_NUM_THREADS, or one per processor, at most 8"
    command.add_argument("--threads", type=natural, metavar="N", help=f"number of threads (default: {default})")


def _add_quiet(command: argparse.ArgumentParser) -> None:
    text = "show no progress: no bar on a terminal, no lines elsewhere"
    command.add_argument("--quiet", action="store_true", help=text)


def _add_set(command: argparse.ArgumentParser, text: str) -> None:
    text = f"{text}; may be repeated"
    command.add_argument("--set", action="append", type=_setting, default=[], metavar="NAME=VALUE", help=text)


def _setting(text: str) -> tuple[str, Any]:
    """Parse ``NAME=VALUE``; the value is JSON, or otherwise a string."""
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise argparse.ArgumentTypeError(f"must be NAME=VALUE, got {shown(text)}")
    try:
        return name, json.loads(value)
    except (ValueError, RecursionError):
        return name, value


def _entry(text: str) -> tuple[str, str]:
    """Parse ``NAME=VALUES`` of a search space."""
    name, _, values = text.partition("=")
    if not (name and values):
        raise argparse.ArgumentTypeError(
            f"must be NAME=VALUES, such as learning_rate=1e-5..1e-3:log, got {shown(text)}"
        )
    return name.replace("-", "_"), values


_positive = partial(read, POSITIVE)
_folds = partial(read, Check("an integer >= 2", lambda value: value >= 2, reads=int))
_not_negative = partial(read, NOT_NEGATIVE)
PORT = Check("a port from 0 to 65535", lambda value: 0 <= value <= 65535, reads=int)
_wait = partial(read, Check("a number of seconds from 0 to 60", lambda value: 0 <= value <= 60, reads=float))
