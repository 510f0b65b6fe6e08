"""The commands that compare trainings: ``onion tune | cross-validate | lr-find``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from functools import partial
from typing import Any

from onion.cli.commands import settings_layers, start_paddle
from onion.cli.flags import add_output, add_settings
from onion.cli.values import natural, positive, read
from onion.errors import DataError
from onion.messages import shown
from onion.text_formats import json_text
from onion.validation import Check

_folds = partial(read, Check("an integer >= 2", lambda value: value >= 2, reads=int))


def add_tune_flags(command: argparse.ArgumentParser) -> None:
    """Add the flags of ``onion tune``."""
    add_output(command, "folder for the study, its trials and best.json")
    entry = "values of a setting to search: LOW..HIGH, LOW..HIGH:log, LOW..HIGH:STEP or A,B,C; may be repeated"
    command.add_argument("--search", action="append", type=_entry, default=[], metavar="NAME=VALUES", help=entry)
    trials = "trainings in all, also in the runs before (default: %(default)s)"
    command.add_argument("--trials", type=natural, default=20, metavar="N", help=trials)
    pruner = "how trainings that fall behind are ended early: median, halving or none (default: %(default)s)"
    command.add_argument("--pruner", default="median", metavar="NAME", help=pruner)
    add_settings(command)
    command.set_defaults(command=tune)


def add_folds_flags(command: argparse.ArgumentParser) -> None:
    """Add the flags of ``onion cross-validate``."""
    add_output(command, "folder for the trainings and their figures")
    folds = "parts of the training file, each of which is tested on (default: %(default)s)"
    command.add_argument("--folds", type=_folds, default=5, metavar="N", help=folds)
    add_settings(command, without=("dev",))
    command.set_defaults(command=cross_validate)


def add_range_flags(command: argparse.ArgumentParser) -> None:
    """Add the flags of ``onion lr-find``."""
    add_output(command, "folder for lr_find.csv and lr_find.svg")
    for name, default, text in (("first", 1e-7, "the first learning rate"), ("last", 1.0, "the last one")):
        text = f"{text} (default: %(default)s)"
        command.add_argument(f"--{name}", type=positive, default=default, metavar="X", help=text)
    steps = "updates from the first to the last (default: %(default)s)"
    command.add_argument("--steps", type=natural, default=100, metavar="N", help=steps)
    add_settings(command)
    command.set_defaults(command=find_learning_rate)


def tune(options: argparse.Namespace) -> int:
    """Search for settings; print one line of JSON."""
    start_paddle(options.threads)
    from onion.tasks.finetune.config_file import SEARCH, resolve
    from onion.tasks.tuning.tune import tune as search_for

    preset, file, flags = settings_layers(options)
    search = file.pop(SEARCH, {})
    if not isinstance(search, Mapping):
        raise DataError(f"{options.config}: search must be a mapping, such as 'learning_rate: 1e-5..1e-3:log'")
    space = {**search, **_once(options.search)}
    settings = resolve(preset, file, flags)
    found = search_for(settings, space, options.output, options.trials, pruner=options.pruner, quiet=options.quiet)
    return _told(found)


def _once(entries: list[tuple[str, str]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, values in entries:
        if name in found:
            raise DataError(f"--search {name} is given twice; remove one of them")
        found[name] = values
    return found


def cross_validate(options: argparse.Namespace) -> int:
    """Train once for each fold; print one line of JSON."""
    start_paddle(options.threads)
    from onion.tasks.finetune.config_file import merged
    from onion.tasks.tuning.cross_validation import cross_validate as validate

    return _told(validate(merged(*settings_layers(options)), options.output, options.folds, quiet=options.quiet))


def find_learning_rate(options: argparse.Namespace) -> int:
    """Suggest a learning rate; print one line of JSON."""
    start_paddle(options.threads)
    from onion.tasks.finetune.config_file import merged
    from onion.tasks.tuning.rate_search import find_learning_rate as find

    settings = merged(*settings_layers(options))
    test = {"first": options.first, "last": options.last, "steps": options.steps}
    return _told(find(settings, options.output, **test, quiet=options.quiet), "nothing was written")


def _told(found: Any, then: str = "the same command resumes it") -> int:
    """Print the report of a ``Trained``; return the exit status."""
    print(json_text(found.report))
    if found.signal is None:
        return 0
    print(f"onion: stopped; {then}", file=sys.stderr)
    return 128 + int(found.signal)


def _entry(text: str) -> tuple[str, str]:
    """Parse ``NAME=VALUES`` of a search space."""
    name, _, values = text.partition("=")
    if not (name and values):
        raise argparse.ArgumentTypeError(
            f"must be NAME=VALUES, such as learning_rate=1e-5..1e-3:log, got {shown(text)}"
        )
    return name.replace("-", "_"), values
