"""The parts of a report, and the folder they are written to."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from onion.checkpointing.atomic_files import read_file, write_synced
from onion.checkpointing.new_folder import check_new, new_folder
from onion.text_formats import csv_line, json_text

SUMMARY = "report.json"
FILES = "files"
"""The entry of the summary with the names of the other files, by which an earlier report is known."""


@attrs.frozen
class Sheet:
    """A table of a report.

    Attributes:
        columns: their names.
        rows: the cells of each row: texts and numbers.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]

    def csv(self) -> str:
        """Return it as CSV (RFC 4180), with a header."""
        return "".join(f"{csv_line(cells)}\r\n" for cells in (self.columns, *self.rows))


@attrs.frozen(kw_only=True)
class Report:
    """What an evaluation tells beyond its figures; ``Task.report`` makes it.

    Attributes:
        summary: entries of ``report.json``, JSON values.
        sheets: tables, by the name of their file: ``{"errors.csv": ...}``.
        pictures: SVG, by the name of its file.
    """

    summary: Mapping[str, Any] = attrs.field(factory=dict)
    sheets: Mapping[str, Sheet] = attrs.field(factory=dict)
    pictures: Mapping[str, str] = attrs.field(factory=dict)

    def write(self, folder: str | Path, about: Mapping[str, Any] | None = None) -> None:
        """Write all files, or none of them; an earlier report in the folder is replaced.

        Args:
            folder: a new or empty one, or one with a report.
            about: the first entries of ``report.json``, such as the figures. Default: none.

        Raises:
            DataError: the folder holds something else, or cannot be written; nothing was changed.
        """
        folder = Path(folder)
        check_folder(folder)
        texts = {**{name: sheet.csv() for name, sheet in self.sheets.items()}, **self.pictures}
        summary = {**(about or {}), **self.summary, FILES: sorted(texts)}
        texts[SUMMARY] = json_text(summary, indent=1) + "\n"
        with new_folder(folder) as made:
            for name, text in texts.items():
                write_synced(made / name, text.encode())
            if folder.is_dir():
                check_folder(folder)  # somebody else may have filled it meanwhile
                folder.rename(made.with_name("earlier"))  # which is deleted with the temporary folder


def check_folder(folder: Path) -> None:
    """Refuse a folder that holds anything but an earlier report.

    Raises:
        DataError: it is not empty, is a file, or cannot be replaced by a folder.
    """
    if folder.is_symlink() or not _is_report(folder):
        check_new(folder)


def _is_report(folder: Path) -> bool:
    try:
        files = json.loads(read_file(folder / SUMMARY))[FILES]
        return {path.name for path in folder.iterdir()} <= {SUMMARY, *files}
    except (OSError, ValueError, RecursionError, TypeError, KeyError):
        return False
