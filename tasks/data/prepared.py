"""Data as people have them, as one file that the tasks read: several files, other columns, other formats, a split.

What a task cannot read as it is, is converted once: into JSON lines under ``$ONION_HOME/data``, whose name is the
digest of what was given. Each row keeps the file and line that it came from (``AT``), so errors name those.

    train.tsv               as it is
    data/*.csv, a.tsv,b.tsv several files
    rows.parquet            needs the extra [parquet]
    hf:glue/mrpc/train      a data set of Hugging Face's ``datasets``: name/config/split; needs the extra [datasets]
    train.conll             a token and its tag a line, sentences apart by blank lines; also .bio, .iob, .iob2
    rows.json               a list of objects
"""

from __future__ import annotations

import glob
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from onion.checkpointing.atomic_files import replace_file
from onion.data.files import FORMATS, iter_lines, iter_rows
from onion.data.opening import is_fed, opened
from onion.data.table import ABSENT, at
from onion.errors import DataError, OnionError
from onion.messages import listed, shown
from onion.models.hub import home
from onion.tasks.data.conll import ENDINGS, conll_rows
from onion.tasks.data.features.hashing import digest_of_file, ending_of
from onion.tasks.data.rows import AT, NAMED, unknown_format

VERSION = 3
"""Of the conversion. To be raised where it gives other rows."""

HUB, LABEL = "hf:", "label"
Cells = Mapping[str, Any]
Found = tuple[str, int, Cells]
"""File, line (or row, from 1) and cells."""


def prepared(source: str | Path, columns: Mapping[str, str] | None = None, labelled: bool = True) -> Path:
    """Return a file that a task can read.

    Args:
        source: a path, a glob pattern, paths separated by commas, or ``hf:NAME/CONFIG/SPLIT``.
        columns: column of the task -> column of the source, where they differ. A dot leads into nested objects.
        labelled: whether the source must have the column of the labels. Default True.

    Raises:
        DataError: a file is missing or broken, or has no such column; file and line are named.
        OnionError: a library is not installed.
    """
    source, columns = str(source), columns or {}
    needed = set(columns) if labelled else set(columns) - {LABEL}
    if source.startswith(HUB):
        return _converted(_hub_rows(source), [source], columns, needed)
    paths = files_of(source)
    plain = all(ending_of(path) == ".txt" for path in paths)  # lines of text, which have no columns
    if len(paths) == 1 and (plain or not columns) and not _is_converted(paths[0]):
        return Path(paths[0])
    if plain:
        return _joined(paths)
    return _converted((found for path in paths for found in source_rows(path)), paths, columns, needed)


def files_of(source: str) -> list[str]:
    """Return the files that a source names, those of a pattern in alphabetical order.

    Raises:
        DataError: a pattern matches nothing.
    """
    if Path(source).exists() or is_fed(Path(source)):
        return [source]
    found: list[str] = []
    for part in map(str.strip, source.split(",")):
        if not part:
            raise DataError(f"{source}: a name between commas is empty; remove the comma")
        # Path.glob takes no absolute pattern.
        matches = sorted(glob.glob(part)) if glob.has_magic(part) else [part]  # noqa: PTH207
        if not matches:
            raise DataError(f"{part}: there is no such file, and none matches it as a pattern")
        found += matches
    return found


@contextmanager
def named(path: Path, source: str) -> Iterator[None]:
    """Let errors about a converted file name what it was converted from, not the file that nobody knows.

    Args:
        path: of :func:`prepared`.
        source: what it was given.
    """
    try:
        yield
    except DataError as error:
        raise DataError(str(error).replace(str(path), source)) from None


def _is_converted(path: str) -> bool:
    ending = ending_of(path)
    return ending == ".parquet" or ending in ENDINGS or (ending == ".json" and not _is_squad(path))


def _is_squad(path: str) -> bool:
    """Tell whether a JSON file begins as one object, as those of question answering do, and not as a list."""
    with opened(Path(path)) as file:
        return not file.read(64).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[")


# -- rows -------------------------------------------------------------------------------------------------------------


def source_rows(path: str) -> Iterator[Found]:
    """Yield the rows of a file with all their columns.

    Raises:
        DataError: the file is broken, or of an unknown format; file and line are named.
        OnionError: a library is not installed.
    """
    ending = ending_of(path)
    if ending in ENDINGS:
        found: Iterable[tuple[int, Cells]] = conll_rows(Path(path))
    elif ending == ".parquet":
        found = _parquet_rows(path)
    elif ending == ".json":
        found = _json_rows(path)
    elif ending in FORMATS:
        found = iter_rows(path)
    else:
        raise unknown_format(path)
    for line, cells in found:
        yield path, line, cells


def _json_rows(path: str) -> Iterator[tuple[int, Cells]]:
    with opened(Path(path)) as file:
        try:
            rows = json.loads(file.read().decode("utf-8-sig"))
        except (ValueError, RecursionError) as error:
            raise DataError(f"{path}: broken JSON ({error})") from None
    if not isinstance(rows, list):
        raise DataError(f"{path}: must be a list of objects to be read as rows, such as [{{...}}, {{...}}]")
    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict):
            raise at(Path(path), number, f"row {number} of the list is {shown(row)}, not an object")
        yield number, row


def _parquet_rows(path: str) -> Iterator[tuple[int, Cells]]:
    try:
        from pyarrow import ArrowException, parquet
    except ModuleNotFoundError:
        raise OnionError(f"{path}: Parquet needs pyarrow: pip install 'onion-paddle[parquet]'") from None
    number = 0
    with opened(Path(path)) as file:
        try:
            table = parquet.ParquetFile(file)
            _refuse_twice(path, table.schema_arrow.names)
            for batch in table.iter_batches(batch_size=1024):
                for row in batch.to_pylist():
                    number += 1
                    yield number, row
        except (ArrowException, OSError, ValueError, OverflowError) as error:  # the last: a date that Python has not
            told = " ".join(str(error).split())
            raise DataError(f"{path}: broken Parquet file after row {number} ({told}); write it anew") from None


def _refuse_twice(path: str, names: Sequence[str]) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise DataError(f"{path}: there are two columns {shown(twice[0])}; rename one of them")


def _hub_rows(source: str) -> Iterator[Found]:
    try:
        import datasets
    except ModuleNotFoundError:
        raise OnionError(f"{source}: needs datasets: pip install 'onion-paddle[datasets]'") from None
    parts = source.removeprefix(HUB).split("/")
    if len(parts) < 2:
        raise DataError(f"{source}: write hf:NAME/CONFIG/SPLIT, such as hf:glue/mrpc/train, or hf:NAME/SPLIT")
    name, config = ("/".join(parts[:-2]), parts[-2]) if len(parts) > 2 else (parts[0], None)
    try:
        rows = datasets.load_dataset(name, config, split=parts[-1])
    except Exception as error:  # whatever a data set's own loading raises
        raise DataError(f"{source}: cannot be loaded: {' '.join(str(error).split())}") from None
    names = {column: kind.int2str for column, kind in rows.features.items() if isinstance(kind, datasets.ClassLabel)}
    for number, row in enumerate(rows, 1):
        yield (
            source,
            number,
            {
                column: names[column](value) if column in names and value is not None and value >= 0 else value
                for column, value in row.items()
            },
        )


# -- conversion -------------------------------------------------------------------------------------------------------


def _converted(rows: Iterator[Found], sources: list[str], columns: Mapping[str, str], needed: Collection[str]) -> Path:
    """Return the file of converted rows; it is written unless it is there."""
    if any(source.startswith(HUB) for source in sources):
        content = hashlib.sha256()
        lines = []
        for line in _lines(sources[0], rows, columns, needed):
            content.update(line)
            lines.append(line)
        return written(content.hexdigest(), ".jsonl", lambda: lines)
    key = digest(
        {
            "files": [[digest_of_file(path), path] for path in sources],
            "columns": dict(columns),
            "needed": sorted(needed),
        }
    )
    return written(key, ".jsonl", lambda: _lines(", ".join(sources), rows, columns, needed))


def _lines(source: str, rows: Iterable[Found], columns: Mapping[str, str], needed: Collection[str]) -> Iterator[bytes]:
    file = None
    for file, line, cells in rows:
        chosen = {ours: _nested(cells, theirs) for ours, theirs in columns.items()}
        for ours in chosen.keys() & needed:
            if chosen[ours] is ABSENT:
                raise at(Path(file), line, _missing(ours, columns[ours], cells))
        given = {ours: value for ours, value in chosen.items() if value is not ABSENT}
        yield json_line({**cells, **given, AT: [file, line]})
    if file is None:
        raise DataError(f"{source}: there are no rows in it; it needs at least one")


def _missing(ours: str, theirs: str, cells: Cells) -> str:
    told = f"there is no column {shown(theirs)}; there are {listed(cells)}"
    if ours not in cells:
        return told
    if theirs in NAMED:
        return f"{told}; the column of the task comes first: {theirs}={ours}"
    return f"{told}; if it is {ours} in this file: {ours}={ours}"


def json_line(row: Mapping[str, Any]) -> bytes:
    """Return a row as a line of JSON."""
    try:
        return (json.dumps(row, ensure_ascii=False, default=_as_json) + "\n").encode()
    except UnicodeEncodeError:  # half a character, which only an escape can write
        return (json.dumps(row, default=_as_json) + "\n").encode()


def _as_json(value: Any) -> Any:
    """Return a text for what JSON has not: a date, or bytes, as which many programs write texts into Parquet."""
    if not isinstance(value, bytes):
        return str(value)
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"bytes": len(value)}  # a picture, or a text in another encoding; no task takes it for a text


def _nested(cells: Cells, name: str) -> Any:
    """Return a cell by its name, or by the names of nested objects with dots between them; ABSENT: there is none."""
    if name in cells:
        return cells[name]
    found: Any = cells
    for part in name.split("."):
        found = found.get(part, ABSENT) if isinstance(found, Mapping) else ABSENT
    return found


def _joined(paths: list[str]) -> Path:
    """Return the plain texts of several files in one."""
    key = digest({"texts": [digest_of_file(path) for path in paths]})
    lines = (f"{line}\n".encode() for path in paths for _, line in iter_lines(path))
    return written(key, ".txt", lambda: lines)


def written(key: str, ending: str, lines: Callable[[], Iterable[bytes]]) -> Path:
    """Return the converted file of a key; unless it is there, it is written, as a whole or not at all.

    Raises:
        DataError: it cannot be written.
    """
    path = data_folder() / f"{key}{ending}"
    if path.exists():
        return path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, lines())
    except OSError as error:
        raise DataError(
            f"{path}: cannot be written: {error.strerror}; converted data are kept in $ONION_HOME"
        ) from None
    return path


def data_folder() -> Path:
    """Return where converted data are kept."""
    return Path(home() / "data")


def digest(about: Any) -> str:
    """Return the key of what is converted, a JSON value."""
    return hashlib.sha256(json.dumps([VERSION, about], sort_keys=True).encode()).hexdigest()
