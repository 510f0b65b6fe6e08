"""A line of JSON for each call, without texts: they may be anybody's."""

from __future__ import annotations

import json
import logging
from datetime import datetime, timezone
from typing import Any

log = logging.getLogger("onion.calls")
log.propagate = False
log.setLevel(logging.WARNING)


def log_call(**values: Any) -> None:
    """Log a call: its time, and what is told of it."""
    if log.isEnabledFor(logging.INFO):
        now = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        log.info(json.dumps({"time": now, **values}, ensure_ascii=False))


def write_calls() -> None:
    """Write the lines to standard error, as they are, so that a collector reads them as JSON."""
    if not log.handlers:
        log.addHandler(logging.StreamHandler())
    log.setLevel(logging.INFO)
