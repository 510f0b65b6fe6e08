"""What tells one data source from another without reading all of it."""

from __future__ import annotations

from typing import Any

from onion.data.source import has_length


def fingerprint(source: Any) -> str | None:
    """Return a text that is another one where the data are others, or None if nothing tells.

    It is the source's attribute ``fingerprint`` (`Table` has one of all its cells) or ``_fingerprint`` (Hugging Face's
    datasets), or else its length. To tell apart sources of one length, give them the attribute.
    """
    for name in ("fingerprint", "_fingerprint"):
        if isinstance(told := getattr(source, name, None), str):
            return told
    return f"{len(source)} examples" if has_length(source) else None
