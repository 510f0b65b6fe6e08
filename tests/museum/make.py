"""Write the exhibits of this version's format: ``python -m tests.museum.make``; it refuses to write over any."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from onion.checkpointing import checkpoint
from tests.museum.onions import CUT, EXHIBITS, STEPS

MUSEUM = Path(__file__).parent


def end_of(folder: Path) -> dict[str, object]:
    """What a run came to: its counters, metrics, the steps of its log's rows, every number of its items."""
    newest = checkpoint.newest(folder)
    assert newest is not None
    arrays = {
        f"{item}/{key}": value.astype("float64").ravel().tolist()
        for item, saved in newest.items.items()
        for key, value in saved.items()
        if hasattr(value, "tolist")
    }
    rows = [json.loads(line)["step"] for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return {"counters": newest.run["counters"], "metrics": newest.run["metrics"], "rows": rows, "arrays": arrays}


def main() -> None:
    """Write them."""
    room = MUSEUM / f"format-{checkpoint.FORMAT}"
    room.mkdir()
    for name, onion in EXHIBITS.items():
        onion(room / name).run(steps=CUT)
        with tempfile.TemporaryDirectory() as whole:
            onion(Path(whole)).run(steps=STEPS)
            (room / name / "end.json").write_text(json.dumps(end_of(Path(whole))) + "\n")


if __name__ == "__main__":
    main()
