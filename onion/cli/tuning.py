"""The commands that compare trainings: ``onion tune | cross-validate | lr-find``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from typing import Any

from onion.cli.commands import settings_layers, start_paddle
from onion.errors import DataError
from onion.text_formats import json_text


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
