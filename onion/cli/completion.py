"""Completion of commands by argcomplete: ``eval "$(register-python-argcomplete onion)"`` in a shell.

The shell starts the program itself, with ``_ARGCOMPLETE`` in the environment, whenever somebody presses the tab key; so
nothing heavy is loaded here.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any


def asked() -> bool:
    """Return whether a shell asks for completions."""
    return "_ARGCOMPLETE" in os.environ


def complete(commands: argparse.ArgumentParser) -> None:
    """Answer the shell, and exit; without argcomplete, do nothing."""
    try:
        import argcomplete
    except ImportError:
        return
    for parser in parsers(commands):
        for action in parser._actions:
            values = _values_of(action)
            if values is not None:
                action.completer = values  # type: ignore[attr-defined]  # argcomplete looks for it there
    argcomplete.autocomplete(commands)


def parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Yield a parser and those of its commands."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from parsers(command)


def _values_of(action: argparse.Action) -> Callable[..., Sequence[str]] | None:
    """Return what gives the values of an argument; None: argcomplete's own, which are choices or files."""
    for name in action.option_strings or [str(action.metavar)]:
        if name in _VALUES:
            return _VALUES[name]
    if isinstance(action.metavar, str) and "|" in action.metavar and action.metavar.islower():
        values = action.metavar.split("|")
        return lambda **asked: values
    return None


def _tasks(**asked: Any) -> Sequence[str]:
    from onion.tasks.names import TASK_NAMES

    return TASK_NAMES


def _all_tasks(**asked: Any) -> Sequence[str]:
    from onion.tasks.names import PRETRAINING_TASK_NAMES, TASK_NAMES

    return [*TASK_NAMES, *PRETRAINING_TASK_NAMES]


def _presets(**asked: Any) -> Sequence[str]:
    from onion.tasks.finetune.presets import PRESETS

    return list(PRESETS)


def _models(**asked: Any) -> Sequence[str]:
    from onion.models.downloads.sources import ALIASES, REPOSITORIES, SOURCES

    return [*SOURCES, *REPOSITORIES, *ALIASES]


def _encoders(**asked: Any) -> Sequence[str]:
    return [*_models(), *_folders(**asked)]


def _folders(**asked: Any) -> Sequence[str]:
    from argcomplete.completers import DirectoriesCompleter

    return list(DirectoriesCompleter()(**asked))


_VALUES: dict[str, Callable[..., Sequence[str]]] = {
    "--task": _tasks,
    "TASK": _all_tasks,
    "--preset": _presets,
    "NAME": _models,
    "--encoder": _encoders,
    "--tokenizer": _encoders,
    "--run": _folders,
}
"""Flag, or what the help calls an argument without one -> its values."""
