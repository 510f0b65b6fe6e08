"""Builds that are killed at every fourth operation on files, and started again.

    python -m tests.tasks.pretraining.corpus.killed_builds FOLDER

A line for each number of operations before the kill: the status of the first process, of the second one, and whether
the corpus has the same files with the same bytes as one that was not killed.
"""

import os
import signal
import sys
from itertools import count
from pathlib import Path

from onion.checkpointing.atomic_files import Files, through
from tests.tasks.pretraining.corpus.texts import build, sums


class Killing(Files):
    """Kills its process instead of an operation, or in the middle of a write."""

    def __init__(self, left):
        self.left = left

    def _one_less(self):
        self.left -= 1
        if self.left < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def write(self, file, content):
        if not self.left:
            super().write(file, content[: len(content) // 2])
            file.flush()
        self._one_less()
        super().write(file, content)

    def sync(self, handle):
        self._one_less()
        super().sync(handle)

    def rename(self, source, target):
        self._one_less()
        super().rename(source, target)


def in_a_process(place, output, files=None):
    """Build in a forked process, which is the first to tokenize; return how it ended."""
    child = os.fork()
    if not child:
        with through(files or Files()):
            build(place, shard_tokens=120).run(output)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main(place):
    in_a_process(place, place / "whole")
    for before in count(0, 4):
        first = in_a_process(place, place / f"{before}", Killing(before))
        second = in_a_process(place, place / f"{before}")
        print(first, second, sums(place / f"{before}") == sums(place / "whole"))
        if not first:
            return


if __name__ == "__main__":
    main(Path(sys.argv[1]))
