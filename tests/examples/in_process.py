"""Examples, run within the process of the tests: importing Paddle anew would take most of the time."""

from __future__ import annotations

import importlib
import io
import json
import runpy
from contextlib import redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from onion import Observer, Runner, Saver
from onion.checkpointing import checkpoint
from tests.paths import ROOT
from tests.toys import bits

EXAMPLES = ROOT / "examples"


def load(name: str) -> ModuleType:
    """Import an example as a module, with the others beside it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(EXAMPLES))
        return importlib.import_module(name)


def run_example(name: str, *words: object, steps: int | None = None) -> tuple[dict[str, Any], str]:
    """Run an example as its docstring says.

    Args:
        name: the file.
        words: of the command line.
        steps: where to stop the run that has a Saver in it, as an interruption would; None: it is run to its end.

    Returns:
        What the last line tells, which is JSON; and all that was printed.
    """
    run = Runner.run

    def cut_run(self, passes=None, **given):
        return run(self, passes, **(given | {"steps": steps} if Saver in self else given))

    printed = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(printed):
        patch.setattr("sys.argv", [name, *map(str, words)])
        patch.setattr("onion.device.use_threads", lambda *count: 1)  # the other tests go on with as many as they had
        if steps is not None:
            patch.setattr(Runner, "run", cut_run)
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    return json.loads(printed.getvalue().splitlines()[-1]), printed.getvalue()


def watch(ring: str, networks: dict[str, Any], moved: list[Any]) -> Observer:
    """Note after each batch the ring, the networks that it has moved, and those whose gradients are left."""
    before: dict[str, Any] = {}

    def begin(state):
        before.update({name: bits(network) for name, network in networks.items()})

    def end(state):
        changed = [name for name, network in networks.items() if bits(network) != before[name]]
        left = [name for name, one in networks.items() if any(each.grad is not None for each in one.parameters())]
        moved.append((state.next_step, ring, changed, left))

    return Observer(on_batch_begin=begin, on_batch_end=end)


def saved_bits(folder: Path) -> dict[str, bytes]:
    """Return every array of the newest checkpoint, by item and path."""
    items = checkpoint.newest(folder).items
    return {
        f"{item}/{name}": value.tobytes()
        for item, saved in items.items()
        for name, value in saved.items()
        if hasattr(value, "tobytes")
    }
