"""A function in a process of its own: forked, listened to, killed if it is late.

The parent has imported all that is needed and has computed nothing, so it has one thread, and a child costs its own
work only.
"""

from __future__ import annotations

import faulthandler
import json
import os
import select
import signal
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any, NoReturn, TypeAlias

Tell: TypeAlias = Callable[[dict[str, Any]], None]
"""Says something to the parent at once."""


@dataclass(frozen=True)
class End:
    """How a child ended.

    Attributes:
        code: its exit status, or minus the signal that ended it.
        late: whether the parent ended it, because its time was up.
        told: what it said to the parent.
    """

    code: int
    late: bool
    told: list[dict[str, Any]]

    @property
    def killed(self) -> bool:
        """Whether it died by SIGKILL, its own or the parent's."""
        return self.code == -signal.SIGKILL

    def said(self, what: str) -> list[Any]:
        """Return all it told under a name."""
        return [each[what] for each in self.told if what in each]


def live(work: Callable[[Tell], None], words: Path, limit: float, kill_after: float | None = None) -> End:
    """Run a function in a child.

    Args:
        work: the function; it can tell the parent something.
        words: the file that gets what the child prints, its traceback, and where it hangs when the limit is near.
        limit: the seconds after which it hangs, and is killed.
        kill_after: the seconds after which it is killed anyway; None: never.
    """
    reading, writing = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _live(work, writing, words, limit)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        lines, late = _listen(pipe.fileno(), limit if kill_after is None else kill_after)
        if late:
            os.kill(child, signal.SIGKILL)
            lines += pipe.read()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return End(code, late, [json.loads(line) for line in lines.splitlines()])


def _live(work: Callable[[Tell], None], writing: int, words: Path, limit: float) -> NoReturn:
    """Be the child: no ``finally`` of the parent may run in it, and no exit handler."""

    def tell(said: dict[str, Any]) -> None:
        os.write(writing, (json.dumps(said) + "\n").encode())

    code = 1
    try:
        output = os.open(words, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(output, 1)
        os.dup2(output, 2)
        faulthandler.dump_traceback_later(0.9 * limit, file=2)
        work(tell)
        code = 0
    except BaseException:
        os.write(2, traceback.format_exc().encode())
    finally:
        os._exit(code)


def _listen(pipe: int, seconds: float) -> tuple[bytes, bool]:
    """Return what comes through a pipe until its other end closes, and whether the time was up before."""
    heard, end = b"", monotonic() + seconds
    while select.select([pipe], [], [], max(end - monotonic(), 0))[0]:
        more = os.read(pipe, 65536)
        if not more:
            return heard, False
        heard += more
    return heard, True
