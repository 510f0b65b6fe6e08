"""The same training once more, which nobody attacks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from streaming.children import python
from streaming.waiting import until

from abusing.trainer import BATCH, STEPS
from abusing.verdict import JOURNAL, differences, newest
from onion.online import SpoolWriter


def compared(attacked: Path, room: Path) -> dict[str, Any]:
    """Learn as many batches of the same samples, undisturbed, steered as the friend has; compare.

    Args:
        attacked: the folder of the run.
        room: an empty folder.
    """
    disturbed = newest(attacked)
    (room / "run").mkdir(parents=True)
    # The commands only: where samples were rejected is nothing that the undisturbed run has.
    rows = [
        line for line in (attacked / JOURNAL).read_text().splitlines(keepends=True) if "command" in json.loads(line)
    ]
    (room / "run" / JOURNAL).write_text("".join(rows))
    with SpoolWriter(room / "samples.db") as writer:
        for begin in range(0, disturbed.step * BATCH, 1000):
            writer.write([{"id": number} for number in range(begin, begin + 1000)])
    alone = python("abusing.trainer", room, STEPS, disturbed.step)
    try:
        until(lambda: alone.over)
    finally:
        alone.end()
    differs = differences(disturbed, newest(room / "run"))
    rejected = disturbed.items["stream_provider"]["rejected"]
    return {"step": disturbed.step, "rejected": rejected, "same": not differs, "differs": differs}
