"""Results as files: a JSON file each, under a name that says what was run.

A result counts as long as all that it stands for is what it was; whatever changes makes another name.
"""

from __future__ import annotations

import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

from onion.checkpointing.atomic_files import replace_file

DIGITS = 12


def name_of(title: str, record: Any) -> str:
    """Return the name of a result's file.

    Args:
        title: for people.
        record: all that decides about the result, as JSON values.
    """
    digest = hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()[:DIGITS]
    return f"{title}.{digest}.json"


@cache
def sum_of(path: Path) -> str:
    """Return the SHA-256 of what is in a file; it is read once."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def read(path: Path) -> dict[str, Any] | None:
    """Return a result; None: it is not there, or damaged."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def keep(path: Path, result: dict[str, Any]) -> None:
    """Write a result; the file appears whole or not at all, and its folder is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, (json.dumps(result, indent=1) + "\n").encode())
