"""Files of any content for the readers of the tasks: they end in features, or in an error that says where."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from onion.errors import DataError
from onion.models.tokenizer import Tokenizer
from onion.tasks.data.features.examples import Examples
from onion.tasks.task import Task

TEXTS = st.sampled_from(["a film", "lovely", "the plot was 中文.", ""])
CELLS = st.one_of(st.sampled_from(["", " ", "nan", "1e30", ",", '"', "\ufeff"]), st.text(max_size=6))
VALUES = st.recursive(
    st.one_of(CELLS, st.none(), st.booleans(), st.integers(), st.floats()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=2), inner, max_size=2)),
    max_leaves=4,
)


@st.composite
def files(draw: st.DrawFn, columns: Mapping[str, st.SearchStrategy[Any]]) -> tuple[str, bytes]:
    """The ending of a file's name, and what is in it: good rows, rows with anything in them, or any bytes.

    Args:
        draw: given by hypothesis.
        columns: name -> its good cells.
    """
    ending = draw(st.sampled_from([".tsv", ".csv", ".jsonl"]))
    how = draw(st.sampled_from(["good", "good", "wild", "wild", "bytes"]))
    if how == "bytes":
        return ending, draw(st.binary(max_size=60))
    names = draw(st.permutations(list(columns)))
    row = st.fixed_dictionaries({name: columns[name] for name in names})
    if how == "wild":
        anything = VALUES if ending == ".jsonl" else CELLS
        cells = {name: st.one_of(columns[name], anything) for name in names}
        row = st.one_of(row, st.fixed_dictionaries(cells), st.fixed_dictionaries({}, optional=cells))
        names = names[draw(st.integers(0, 1)) :]
    rows = draw(st.lists(row, min_size=1, max_size=5))
    if ending == ".jsonl":
        return ending, "".join(json.dumps(row) + "\n" for row in rows).encode()
    return ending, _table(ending, [names, *[list(row.values()) for row in rows]]).encode(errors="surrogatepass")


def check(task: Task, columns: Mapping[str, st.SearchStrategy[Any]], folder: Path, tokenizer: Tokenizer) -> None:
    """Read many files; every one has to end well or be refused, and some have to end in each of the two ways."""
    ended: Counter[bool] = Counter()

    @settings(max_examples=300)
    @given(files(columns))
    def run(file: tuple[str, bytes]) -> None:
        path = folder / f"any{file[0]}"
        path.write_bytes(file[1])
        ended[read_whole(task, path, tokenizer)] += 1

    run()
    assert min(ended[True], ended[False]) > 20, ended


def read_whole(task: Task, path: Path, tokenizer: Tokenizer) -> bool:
    """Whether a labelled file becomes a batch; False if it is refused with its name."""
    try:
        task = task.fitted(path)
        rows = list(task.rows(path, labelled=True))
        examples = task.features(rows, tokenizer, True, Counter())
        task.metric(path)
    except DataError as error:
        if not str(error).startswith(f"{path}:"):
            raise
        return False
    assert len(list(task.rows(path, labelled=False))) == len(rows)
    task.baseline(examples)
    task.collate(Examples.of(examples)[:], pad_id=0)
    return True


def _table(kind: str, rows: list[list[str]]) -> str:
    if kind == ".tsv":
        return "".join("\t".join(row) + "\n" for row in rows)
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue()
