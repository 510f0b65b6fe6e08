"""Files of any content for the readers of the tasks: they end in features, or in an error that says where."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onion.errors import DataError
from onion.models.tokenizer import Tokenizer
from onion.tasks.classification import Classification
from onion.tasks.data.features.examples import Examples
from onion.tasks.matching import Matching
from onion.tasks.multilabel import MultiLabel
from onion.tasks.question_answering.task import QuestionAnswering
from onion.tasks.regression import Regression
from onion.tasks.task import Task
from onion.tasks.token_classification.task import TokenClassification
from tests.tasks import squad_files
from tests.tasks.squad_files import TINY

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


LABELLED = {"text_a": TEXTS, "label": st.sampled_from(["good", "bad"])}
ASKED = {"text_a": TEXTS, "text_b": TEXTS, "qid": st.sampled_from(["1", "x"])}
TAGGED = {
    "text_a": st.sampled_from(["a\x02film", "中\x02.", "plot"]),
    "label": st.sampled_from(["O\x02B-x", "B-x\x02I-x"]),
}
CASES = {
    "classify": (Classification(max_length=8), files(LABELLED)),
    "classify pairs": (Classification(max_length=8), files(LABELLED | {"text_b": TEXTS})),
    "regress": (
        Regression(max_length=8),
        files({"text_a": TEXTS, "text_b": TEXTS, "label": st.sampled_from(["1", "-2.5", "0"])}),
    ),
    "match": (Matching(max_length=8), files(ASKED | {"label": st.sampled_from(["0", "1"])})),
    "match in pairs": (Matching(max_length=8), files(ASKED | {"text_b_neg": TEXTS})),
    "multilabel": (
        MultiLabel(max_length=8),
        files({"text_a": TEXTS, "label": st.sampled_from(["x", "x,y", "", "y, z"])}),
    ),
    "tag": (TokenClassification(max_length=8), files(TAGGED)),
    "read": (QuestionAnswering(**TINY), squad_files.files().map(lambda content: (".json", content))),
}


@pytest.mark.parametrize("name", CASES)
def test_any_file_ends_in_features_or_in_an_error_with_its_place(name, tmp_path, tokenizer):
    """Every file ends well or is refused, and some have to end in each of the two ways."""
    task, contents = CASES[name]
    ended: Counter[bool] = Counter()

    @settings(max_examples=300)
    @given(contents)
    def run(file: tuple[str, bytes]) -> None:
        path = tmp_path / f"any{file[0]}"
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
