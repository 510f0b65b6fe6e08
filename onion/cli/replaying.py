"""``onion replay``: repeat an online run from its samples and its journal."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from onion.cli.commands import start_paddle
from onion.errors import OnionError

DIFFERS = 1


def replay(options: argparse.Namespace) -> int:
    """Print what came out, one line of JSON; the status is 1 where it is not bit-identical."""
    start_paddle()
    from onion.online.journal.replay import replay as repeat

    output = options.output or options.folder / "replay"
    report = repeat(options.folder, made_by(options.onion), output)
    print(json.dumps(report, ensure_ascii=False))
    return 0 if report["same"] else DIFFERS


def made_by(name: str) -> Callable[[Path], Any]:
    """Return the function that ``module:function`` names; the module may be in the current folder.

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
