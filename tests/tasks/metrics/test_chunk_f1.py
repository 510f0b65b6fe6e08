import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqeval.metrics import accuracy_score, classification_report
from seqeval.metrics.sequence_labeling import get_entities, precision_recall_fscore_support

from onion.tasks.data.labels import Labels
from onion.tasks.metrics.chunk_f1 import ChunkMetric, TagScheme
from tests.tasks.metrics.of_tasks import METRICS, tags_of

BIO = Labels(["O", "B-PER", "I-PER", "B-PER.NAM", "I-PER.NAM"])
ALL = Labels(["O", *(f"{prefix}-{kind}" for prefix in "BIES" for kind in ("x", "y-z")), "B", "I"])


def spans(labels, names):
    """(type, first, last) of every chunk in one row."""
    scheme = TagScheme(labels)
    found = scheme.chunks(np.array([labels.numbers()[name] for name in names]), np.array([0]))
    kinds = [scheme.kinds[kind] for kind in found.kinds]
    return list(zip(kinds, found.begins.tolist(), found.lasts.tolist(), strict=True))


def measured(labels, true, predicted):
    """The figures of rows of tags, each row in one piece."""
    metric, numbers = ChunkMetric(labels), labels.numbers()
    for row, (one, other) in enumerate(zip(true, predicted, strict=True)):
        batch = {"rows": [row], "begins": [0], "tags": np.array([numbers[tag] for tag in one])}
        metric.update([tags_of(*(numbers[tag] for tag in other))], batch)
    return metric.result()


def of_seqeval(true, predicted):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # figures that are not defined
        precision, recall, f1, _ = precision_recall_fscore_support(true, predicted, average="micro")
        by_type = {}
        if any(tag != "O" for row in (*true, *predicted) for tag in row):
            by_type = classification_report(true, predicted, output_dict=True)
    kinds = {f"f1.{kind}": row["f1-score"] for kind, row in by_type.items() if not kind.endswith(" avg")}
    return {"precision": precision, "recall": recall, "f1": f1, "accuracy": accuracy_score(true, predicted), **kinds}


def same_figures(found, wanted):
    assert {name for name, value in found.items() if value} <= wanted.keys() <= found.keys()
    for name, value in wanted.items():
        assert found[name] == pytest.approx(value, abs=1e-9), name


def test_tags_of_other_schemes():
    words = Labels(["B", "M", "E", "S"])
    assert spans(words, ["B", "M", "E", "S", "B", "E"]) == [("_", 0, 2), ("_", 3, 3), ("_", 4, 5)]
    speech = Labels(["NN", "VB", "O"])  # every word for itself
    assert spans(speech, ["NN", "NN", "O", "VB"]) == [("NN", 0, 0), ("NN", 1, 1), ("VB", 3, 3)]


def test_a_chunk_ends_with_its_row():
    found = TagScheme(BIO).chunks(np.array([1, 2, 2, 0, 2]), np.array([0, 2, 4]))
    assert (found.begins.tolist(), found.lasts.tolist()) == ([0, 2, 4], [1, 2, 4])


@given(st.lists(st.sampled_from(ALL.names), min_size=1, max_size=12))
def test_chunks_are_those_of_seqeval(tags):
    assert spans(ALL, tags) == get_entities(tags)


def pairs_of_rows():
    tags = st.sampled_from(ALL.names)
    row = st.lists(st.tuples(tags, tags), min_size=1, max_size=9)
    return st.lists(row, min_size=1, max_size=5)


@settings(max_examples=200)
@given(pairs_of_rows())
def test_figures_are_those_of_seqeval(rows):
    true = [[one for one, _ in row] for row in rows]
    predicted = [[other for _, other in row] for row in rows]
    same_figures(measured(ALL, true, predicted), of_seqeval(true, predicted))


def test_no_chunks_at_all():
    figures = measured(BIO, [["O", "O"]], [["O", "O"]])
    assert figures == {"precision": 0, "recall": 0, "f1": 0, "accuracy": 1, "f1.PER": 0, "f1.PER.NAM": 0}
    assert set(ChunkMetric(BIO).result().values()) == {0}


def test_a_row_is_put_together_before_chunks_are_counted():
    """Two rows in three windows, in no order: of row 1 the words 2 and 3 belong to the first."""
    make, batches, _ = METRICS["chunks"]
    metric = make()
    for batch in batches:
        metric.update(*batch)
    figures = metric.result()
    # Row 0: x wanted, none found. Row 1: one x from 0 to 2, and it is found.
    assert (figures["precision"], figures["recall"], figures["accuracy"]) == (1, 0.5, pytest.approx(4 / 5))
