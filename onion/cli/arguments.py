"""The parser of all commands, and the flags of those in commands.py."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path

from onion.cli import commands as run
from onion.cli import compressing, control, corpus, distilling, exporting, pretraining, serving, telling_tasks, tuning
from onion.cli.examples import EXAMPLES
from onion.cli.flags import (
    add_columns,
    add_output,
    add_quiet,
    add_resumption,
    add_run,
    add_run_or_name,
    add_set,
    add_settings,
    add_task,
    add_threads,
    dash,
)
from onion.cli.parser import Parser, Version
from onion.cli.values import natural, not_negative, read
from onion.tasks.embedding.names import POOLINGS
from onion.tasks.validators import COLUMNS, NAMES


def parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    text = "Training loops made of nested items, for PaddlePaddle."
    top = Parser(prog="onion", description=text, examples=EXAMPLES[""])
    top.add_argument("--version", action=Version, help="show the versions of onion, Paddle and Python")
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    debug = Parser(add_help=False)
    debug.add_argument("--debug", action="store_true", help="show tracebacks and debug messages")

    def add(name: str, add_flags: Callable[..., None], text: str, *more: Parser) -> None:
        command = commands.add_parser(name, help=text, description=text, parents=[debug], examples=EXAMPLES[name])
        add_flags(command, *more)

    add("train", _add_train, "fine-tune an encoder; the same command resumes an interrupted run")
    pretrain = "pretrain an encoder on a corpus; the same command resumes an interrupted run"
    add("pretrain", pretraining.add_flags, pretrain)
    add("distill", distilling.add_flags, "train a small student of a trained model; the same command resumes it")
    compress = "train a narrower, shallower model of a trained one; the same command resumes it"
    add("compress", compressing.add_flags, compress)
    add("evaluate", _add_evaluate, "evaluate a trained model on a labelled file")
    add("predict", _add_predict, "predict with a trained model")
    add("export", exporting.add_flags, "write a trained model as ONNX, as a program of Paddle or for transformers")
    add("serve", serving.add_flags, "serve trained models and encoders over HTTP")
    add("push", _add_push, "upload a trained model to Hugging Face's hub")
    tune = "search for settings with Optuna; the same command resumes an interrupted search"
    add("tune", tuning.add_tune_flags, tune)
    folds = "train once for each fold of the training file, and average the figures"
    add("cross-validate", tuning.add_folds_flags, folds)
    add("lr-find", tuning.add_range_flags, "suggest a learning rate by a range test")
    add("tasks", _add_tasks, "list the kinds of tasks, or the files and settings of one")
    add("draw", _add_draw, "show the loop of a run")
    add("embed", _add_embed, "write a vector for each text of a file, from a pretrained encoder")
    add("weights", _add_weights, "list and download pretrained weights", debug)
    add("corpus", corpus.add_actions, "make corpora for pretraining from raw text, and list what they hold", debug)
    add("cache", _add_cache, "list or delete cached features", debug)
    add("replay", _add_replay, "repeat an online run from its samples and its journal, and compare")
    add("ctl", control.add_actions, "watch and steer a run that has a ControlServer", debug)
    return top


def _add_cache(command: argparse.ArgumentParser, debug: argparse.ArgumentParser) -> None:
    actions = command.add_subparsers(required=True, metavar="ACTION")
    listing = actions.add_parser("ls", help="list them", parents=[debug])
    listing.set_defaults(command=run.list_cache)
    clearing = actions.add_parser("clear", help="delete them; they are computed again when needed", parents=[debug])
    text = "only those unused for this many days (default: 0, all)"
    clearing.add_argument("--unused", type=not_negative, default=0, metavar="DAYS", help=text)
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
    add_run(command)
    add_task(command)
    add("--license", metavar="ID", help="license for the model card, such as apache-2.0 (default: none is told)")
    language = "language for the model card, such as zh; may be repeated"
    add("--language", action="append", default=[], metavar="CODE", help=language)
    add("--message", metavar="TEXT", help="message of the commit (default: Push a model for TASK)")
    add("--private", action="store_true", help="make a repository that is created private")
    add("--output", type=Path, metavar="DIR", help="write the files to a new folder instead, and upload nothing")
    command.set_defaults(command=run.push)


def _add_train(command: argparse.ArgumentParser) -> None:
    add_output(command, "folder for checkpoints and the log")
    add_resumption(command)
    add_settings(command)
    command.set_defaults(command=run.train)


def _add_evaluate(command: argparse.ArgumentParser) -> None:
    add_run_or_name(command)
    command.add_argument(
        "--input",
        required=True,
        metavar="FILE",
        help="labelled rows as in training; also a pattern, .parquet or hf:NAME/SPLIT",
    )
    report = "folder for a report: figures of each class, the confusion matrix, the errors (JSON, CSV, SVG)"
    command.add_argument("--report", type=Path, metavar="DIR", help=report)
    add_task(command)
    add_columns(command)
    add_set(command, "override a setting that applies after training, such as null_threshold=-1.5")
    add_threads(command)
    command.set_defaults(command=run.evaluate)


def _add_predict(command: argparse.ArgumentParser) -> None:
    add_run_or_name(command)
    texts = command.add_mutually_exclusive_group(required=True)
    texts.add_argument("--input", metavar="FILE", help="rows as in training, without labels; -: standard input")
    texts.add_argument("--text", action="append", metavar="TEXT", help="a text; may be repeated")
    texts.add_argument("stdin", nargs="?", type=dash, metavar="-", help="read lines from standard input")
    output = "file to write: .csv, or else JSON lines (default: JSON lines on standard output)"
    command.add_argument("--output", type=Path, metavar="FILE", help=output)
    carry = "columns of the input to write beside each prediction, such as id,text_a,label"
    command.add_argument("--carry", type=partial(read, NAMES), default=(), metavar="NAME,...", help=carry)
    command.add_argument(
        "--files", type=Path, metavar="DIR", help="also write the task's own files, such as predictions.json"
    )
    add_task(command)
    add_columns(command)
    add_set(command, "override a setting that applies after training, such as threshold=0.3")
    add_threads(command)
    command.set_defaults(command=run.predict)


def _add_tasks(command: argparse.ArgumentParser) -> None:
    command.add_argument("name", nargs="?", metavar="TASK", help="such as classification (default: list them all)")
    command.set_defaults(command=telling_tasks.tasks)


def _add_draw(command: argparse.ArgumentParser) -> None:
    add_run(command)
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
    pooling = "pooling of token vectors (default: what the folder says, or cls)"
    add("--pooling", choices=POOLINGS, help=pooling)
    add("--layer", type=natural, metavar="N", help="layer to take vectors from, counted from 1 (default: the last)")
    normalize = "scale every vector of cls_emb.npy to length 1, also if the folder does not say so"
    add("--normalize", action="store_true", default=None, help=normalize)
    add("--tokens", action="store_true", help="also write top_layer_emb.npy (float32 [tokens, hidden]) and lengths.npy")
    length = "maximum tokens per text (default: what the folder says, or 128)"
    add("--max-length", type=natural, metavar="N", help=length)
    add("--batch-size", type=natural, default=64, metavar="N", help="texts per batch (default: %(default)s)")
    add_quiet(command)
    add_threads(command)
    command.set_defaults(command=run.embed)


def _add_replay(command: argparse.ArgumentParser) -> None:
    command.add_argument("folder", type=Path, metavar="DIR", help="the run's: its checkpoints and journal.jsonl")
    maker = "a function that takes a folder and returns the runner that saves there, such as my_run:make"
    command.add_argument("--onion", required=True, metavar="MODULE:FUNCTION", help=maker)
    command.add_argument("--output", type=Path, metavar="DIR", help="folder of the second run (default: DIR/replay)")
    command.set_defaults(command=run.replay)
