"""Bad files of every kind, for every task: they end in an error that says where, or in features if they do at all."""

import copy
import csv
import io
import json
import re
from collections import Counter
from functools import partial

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onion.errors import DataError
from onion.tasks.classification import Classification
from onion.tasks.data.features.examples import Examples
from onion.tasks.data.rows import decoded
from onion.tasks.masked_lm.task import MaskedLM
from onion.tasks.matching import Matching
from onion.tasks.multilabel import MultiLabel
from onion.tasks.question_answering.task import QuestionAnswering
from onion.tasks.registry import TASKS
from onion.tasks.regression import Regression
from onion.tasks.task import Task
from onion.tasks.token_classification.task import TokenClassification
from tests.tasks import squad_files
from tests.tasks.squad_files import TINY, answer_of

TEXTS = st.sampled_from(["a film", "lovely", "the plot was 中文.", ""])
CELLS = st.one_of(st.sampled_from(["", " ", "nan", "1e30", ",", '"', "\ufeff"]), st.text(max_size=6))
VALUES = st.recursive(
    st.one_of(CELLS, st.none(), st.booleans(), st.integers(), st.floats()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=2), inner, max_size=2)),
    max_leaves=4,
)


@st.composite
def files(draw, columns):
    """The ending of a file's name, and what is in it: good rows, rows with anything in them, or any bytes."""
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
    return ending, table([names, *[list(row.values()) for row in rows]], ending)


WITH_LABELS = {"text_a": TEXTS, "label": st.sampled_from(["good", "bad"])}
ASKED = {"text_a": TEXTS, "text_b": TEXTS, "qid": st.sampled_from(["1", "x"])}
TAGS = st.sampled_from(["O\x02B-x", "B-x\x02I-x"])
CASES = {
    "classify": (Classification, files(WITH_LABELS)),
    "classify pairs": (Classification, files(WITH_LABELS | {"text_b": TEXTS})),
    "regress": (Regression, files(WITH_LABELS | {"text_b": TEXTS, "label": st.sampled_from(["1", "-2.5", "0"])})),
    "match": (Matching, files(ASKED | {"label": st.sampled_from(["0", "1"])})),
    "match in pairs": (Matching, files(ASKED | {"text_b_neg": TEXTS})),
    "multilabel": (MultiLabel, files(WITH_LABELS | {"label": st.sampled_from(["x", "x,y", "", "y, z"])})),
    "tag": (TokenClassification, files({"text_a": st.sampled_from(["a\x02film", "中\x02.", "plot"]), "label": TAGS})),
    "mask": (MaskedLM, files({"text_a": TEXTS})),
    "mask pairs": (MaskedLM, files({"text_a": TEXTS, "text_b": TEXTS})),
    "mask plain text": (MaskedLM, st.tuples(st.just(".txt"), st.one_of(st.text().map(str.encode), st.binary()))),
    "read": (QuestionAnswering, squad_files.files().map(lambda content: (".json", content))),
}


@pytest.mark.parametrize("name", CASES)
def test_any_file_ends_in_features_or_in_an_error_with_its_place(name, tmp_path, tokenizer):
    """Every file ends well or is refused, and some have to end in each of the two ways."""
    kind, contents = CASES[name]
    task = kind(**(TINY if kind is QuestionAnswering else {"max_length": 8}))
    ended = Counter()

    @settings(max_examples=300)
    @given(contents)
    def run(file):
        path = tmp_path / f"any{file[0]}"
        path.write_bytes(file[1])
        ended[read_whole(task, path, tokenizer)] += 1

    run()
    assert min(ended[True], ended[False]) > 20, ended


def read_whole(task, path, tokenizer):
    """Whether a labelled file becomes a batch; False if it is refused with its name."""
    try:
        task, examples = learned(task, path, tokenizer)
        rows = list(task.rows(path, labelled=True))
    except DataError as error:
        if not str(error).startswith(f"{path}:"):
            raise
        return False
    assert len(list(task.rows(path, labelled=False))) == len(rows)
    if examples:
        task.baseline(examples)
        task.collate(Examples.of(examples)[:], pad_id=0)
    return True


# -- one thing that is wrong -------------------------------------------------------------------------------------------

WRONG = [None, True, 5, 1.5, float("nan"), "", "x", "\ud83d", [], [[]], {}, {"a": 1}, 10**40]
"""Values of JSON that hardly anything is."""


@attrs.frozen
class Case:
    """A task, and rows that it can be learned from: columns, and cells."""

    task: Task
    columns: list[str]
    rows: list[list[str]]


ROWS = {
    "classification": Case(Classification(), ["text_a", "label"], [["a film", "good"], ["the plot", "bad"]]),
    "classification of pairs": Case(
        Classification(), ["text_a", "text_b", "label"], [["a", "film", "good"], ["a", "plot", "bad"]]
    ),
    "regression": Case(Regression(), ["text_a", "label"], [["a film", "1.5"], ["the plot", "2"]]),
    "matching": Case(Matching(), ["text_a", "text_b", "label"], [["a", "film", "1"], ["a", "plot", "0"]]),
    "matching by questions": Case(
        Matching(), ["text_a", "text_b", "label", "qid"], [["a", "film", "1", "q"], ["a", "plot", "0", "q"]]
    ),
    "matching in pairs": Case(
        Matching(), ["text_a", "text_b", "text_b_neg"], [["a", "film", "plot"], ["it", "plot", "film"]]
    ),
    "multilabel": Case(MultiLabel(), ["text_a", "label"], [["a film", "x,y"], ["the plot", "y"]]),
    "token-classification": Case(TokenClassification(), ["text_a", "label"], [["a\2film", "O\2B-x"], ["plot", "O"]]),
    "masked-lm": Case(MaskedLM(), ["text_a"], [["a film"], ["the plot"]]),
}
READING = QuestionAnswering(**TINY)
QUESTIONS = [
    {"id": "q1", "question": "a film", "answers": [answer_of("warm", 11)], "is_impossible": False},
    {"id": "q2", "question": "a plot", "answers": [], "is_impossible": True},
]
SQUAD = {"data": [{"title": "t", "paragraphs": [{"context": "a film was warm", "qas": QUESTIONS}]}]}


def test_no_task_is_forgotten():
    assert {case.task.name for case in ROWS.values()} | {READING.name} == TASKS.keys()


@pytest.fixture(params=ROWS)
def case(request):
    return ROWS[request.param]


def table(rows, ending=".tsv"):
    """A file's content; the first row names the columns."""
    if ending == ".jsonl":
        return "".join(json.dumps(dict(zip(rows[0], row, strict=True))) + "\n" for row in rows[1:]).encode()
    text = io.StringIO()
    if ending == ".tsv":
        text.writelines("\t".join(row) + "\n" for row in rows)
    else:
        csv.writer(text).writerows(rows)
    return text.getvalue().encode(errors="surrogatepass")


def learned(task, path, tokenizer):
    """Learn a file: the fitted task and its examples."""
    task = task.fitted(path)
    return task, measured(task, path, tokenizer)


def measured(task, path, tokenizer):
    """The examples of a file to test a fitted task on."""
    examples = task.features(list(task.rows(path, labelled=True)), tokenizer, True, Counter())
    task.metric(path)
    return examples


def predicted(task, path, tokenizer):
    return task.features(list(task.rows(path, labelled=False)), tokenizer, False, Counter())


def plain(examples):
    return [{name: getattr(value, "tolist", lambda v=value: v)() for name, value in each.items()} for each in examples]


def refused(task, path, tokenizer, told, fitted=None, unlabelled=True):
    """Insist on an error that begins with the file, and matches, whatever the file is for."""
    fitted = fitted or task
    for use, of in [(learned, task), (measured, fitted), *[(predicted, fitted)] * unlabelled]:
        with pytest.raises(DataError, match=re.escape(str(path)) + told):
            use(of, path, tokenizer)


@pytest.fixture
def good(case, tmp_path):
    """The task as fitted to a good file."""
    path = tmp_path / "good.tsv"
    path.write_bytes(table([case.columns, *case.rows]))
    return case.task.fitted(path)


# -- tables ------------------------------------------------------------------------------------------------------------


def spoilt(kind, columns, rows):
    """The ending, the content, and what is said of it."""
    whole = [columns, *rows]
    wide = len(columns)
    return {
        "empty": (".tsv", b"", ":1: there is no header"),
        "blank": (".tsv", b"\n\n", ":1: there is no header"),
        "header": (".tsv", table([columns]), ": there are no rows in the file"),
        "no text": (".tsv", table([["text", *columns[1:]], *rows]), ":1: the header has no column 'text_a'"),
        "twice": (".tsv", table([[*columns, "text_a"], *[[*row, ""] for row in rows]]), ":1: .*'text_a' twice"),
        "too many": (".tsv", table([*whole, [*rows[0], ""]]), f":4: expected {wide} columns, got {wide + 1}"),
        "gap": (".tsv", table(whole) + b"\n" + table(rows), f":4: expected {wide} columns, got 0"),
        "latin": (".tsv", table(whole) + b"\xfc" + table(rows), ":4: byte 0xfc at offset 0 of this line is not UTF-8"),
        "utf-16": (".tsv", table(whole).decode().encode("utf-16"), ":1: a NUL byte"),
        "nul": (".tsv", table(whole) + b"\0" + table(rows), ":4: a NUL byte"),
        "csv empty": (".csv", b"", ":1: there is no header"),
        "quote": (".csv", table(whole, ".csv") + b'"a\n', ":4: broken CSV"),
        "json empty": (".jsonl", b"", ": there are no rows in the file"),
        "format": (".doc", table(whole), ": cannot tell the format by the ending"),
    }[kind]


KINDS = ["empty", "blank", "header", "no text", "twice", "too many", "gap", "latin", "utf-16", "nul", "csv empty"]
KINDS += ["quote", "json empty", "format"]


@pytest.mark.parametrize("kind", KINDS)
def test_tables_that_are_none(case, good, tmp_path, tokenizer, kind):
    ending, content, told = spoilt(kind, case.columns, case.rows)
    path = tmp_path / f"bad{ending}"
    path.write_bytes(content)
    refused(case.task, path, tokenizer, told, good)


def test_no_file(case, good, tmp_path, tokenizer):
    (tmp_path / "folder.tsv").mkdir()
    refused(case.task, tmp_path / "none.tsv", tokenizer, ": there is no such file", good)
    refused(case.task, tmp_path / "folder.tsv", tokenizer, ": this is a folder", good)


def test_a_column_that_is_missing(case, good, tmp_path, tokenizer):
    for missing in case.columns[1:]:
        keep = [place for place, name in enumerate(case.columns) if name != missing]
        path = tmp_path / "bad.tsv"
        path.write_bytes(table([[row[place] for place in keep] for row in [case.columns, *case.rows]]))
        if missing == "qid" or (missing == "text_b" and not isinstance(case.task, Matching)):  # a file of another kind
            learned(case.task, path, tokenizer)
            continue
        refused(case.task, path, tokenizer, ":1: the header has no column", good, unlabelled=missing == "text_b")


@pytest.mark.parametrize("ending", [".tsv", ".csv", ".jsonl"])
def test_tables_that_are_odd_and_mean_the_same(case, tmp_path, tokenizer, ending):
    whole = table([case.columns, *case.rows], ending)
    backwards = [["more", *case.columns[::-1]], *[["?", *row[::-1]] for row in case.rows]]
    same = {
        "as it is": whole,
        "mark": b"\xef\xbb\xbf" + whole,
        "line ends": whole.replace(b"\r", b"").replace(b"\n", b"\r\n"),
        "blank end": whole + b"\n\r\n\n",
        "no end": whole.rstrip(),
        "order": table(backwards, ending),
    }
    found = {}
    for name, content in same.items():
        path = tmp_path / f"{name}{ending}"
        path.write_bytes(content)
        task, examples = learned(case.task, path, tokenizer)
        found[name] = task, plain(examples), plain(predicted(task, path, tokenizer))
    assert all(each == found["as it is"] for each in found.values())


@pytest.mark.parametrize(
    "text", ['"', 'a "film', "a\u2028film", "a\x85film", "\ufeff", " ", "\U0001f600", "a" * 200_000]
)
def test_texts_that_are_odd_are_one_row(case, tmp_path, tokenizer, text):
    path = tmp_path / "odd.tsv"
    for place, name in enumerate(case.columns):
        if name.startswith("text"):
            row = [*case.rows[0][:place], text, *case.rows[0][place + 1 :]]
            if case.task.name == "token-classification":
                row = [text, "O"]
            path.write_bytes(table([case.columns, *case.rows, row]))
            task = case.task.fitted(path)
            rows = list(task.rows(path, labelled=True))
            assert len(rows) == 3
            assert {example["row"] for example in measured(task, path, tokenizer)} >= {0, 1}
            assert {example["row"] for example in predicted(task, path, tokenizer)} == {0, 1, 2}


# -- labels ------------------------------------------------------------------------------------------------------------

LABELLED = [name for name, case in ROWS.items() if "label" in case.columns]


@pytest.mark.parametrize("name", LABELLED)
def test_white_space_around_a_label_is_no_part_of_it(name, tmp_path, tokenizer):
    case = ROWS[name]
    place = case.columns.index("label")
    padded = [[*row[:place], f" {row[place]}\u3000 ", *row[place + 1 :]] for row in case.rows]
    found = []
    for rows in (case.rows, padded, [case.rows[0], padded[1]]):
        path = tmp_path / "a.tsv"
        path.write_bytes(table([case.columns, *rows]))
        task, examples = learned(case.task, path, tokenizer)
        found.append((task, plain(examples)))
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("name", LABELLED)
@pytest.mark.parametrize("label", ["never seen", "", " "])
def test_a_label_that_was_not_learned(name, tmp_path, tokenizer, label):
    case = ROWS[name]
    if case.task.name == "multilabel" and not label.strip():
        return  # no label at all
    path = tmp_path / "good.tsv"
    path.write_bytes(table([case.columns, *case.rows]))
    good = case.task.fitted(path)
    place = case.columns.index("label")
    row = [*case.rows[1][:place], label, *case.rows[1][place + 1 :]]
    path = tmp_path / "dev.tsv"
    path.write_bytes(table([case.columns, *case.rows, row]))
    told = ":4: .*" + (repr(label) if label.strip() and name != "token-classification" else "")
    with pytest.raises(DataError, match=re.escape(str(path)) + told):
        measured(good, path, tokenizer)
    if not label.strip():
        with pytest.raises(DataError, match=re.escape(f"{path}:4: ") + ".*(is empty|not a number)"):
            learned(case.task, path, tokenizer)
    predicted(good, path, tokenizer)  # asks for no labels


# -- JSON lines --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (b"[1]\n", ":3: this line is a JSON list"),
        (b"5\n", ":3: this line is a JSON int"),
        (b"{}\n", ":3: there is no 'text_a' in this object"),
        (b'{"text_a": \n', ":3: broken JSON"),
        (b"a film\n", ":3: broken JSON"),
        (b"[" * 100_000 + b"\n", ":3: JSON that Python does not read"),
        (b"\xff\n", ":3: byte 0xff at offset 0"),
        (b"\n{}\n", ":3: a blank line between objects"),
    ],
)
def test_lines_that_are_no_objects(case, good, tmp_path, tokenizer, line, told):
    path = tmp_path / "bad.jsonl"
    path.write_bytes(table([case.columns, *case.rows], ".jsonl") + line)
    refused(case.task, path, tokenizer, told, good)


def test_every_cell_may_be_anything(case, good, tmp_path, tokenizer):
    """It ends in features or in an error with the line; what is certainly no text or no label is refused."""
    path = tmp_path / "any.jsonl"
    ended = Counter()
    for column in case.columns:
        for value in WRONG:
            row = [value if name == column else cell for name, cell in zip(case.columns, case.rows[0], strict=True)]
            path.write_bytes(table([case.columns, *case.rows, row], ".jsonl"))
            for use, of in ((learned, case.task), (measured, good), (predicted, good)):
                ended[ends(partial(use, of, path, tokenizer), f"{path}:3: ")] += 1
            if column.startswith("text") and not isinstance(value, (str, list)):
                if column == "text_b" and value is None:
                    continue
                refused(case.task, path, tokenizer, f":3: .*{column}", good, unlabelled=column != "text_b_neg")
    assert min(ended[True], ended[False]) > 0, ended


def ends(use, place):
    """Whether something ends well; else in an error that names the place."""
    try:
        use()
    except DataError as error:
        if not str(error).startswith(place):
            raise
        return False
    return True


def test_labels_of_json_may_be_numbers(tmp_path, tokenizer):
    for name in ("classification", "regression", "matching"):
        case = ROWS[name]
        path = tmp_path / "a.jsonl"
        rows = [[*row[:-1], number] for row, number in zip(case.rows, (0, 1), strict=True)]
        path.write_bytes(table([case.columns, *rows], ".jsonl"))
        learned(case.task, path, tokenizer)
        path.write_bytes(table([case.columns, *rows, [*case.rows[0][:-1], float("nan")]], ".jsonl"))
        with pytest.raises(DataError, match=r"a\.jsonl:3: label is nan, which is not a JSON number"):
            learned(case.task, path, tokenizer)


# -- plain text --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", ": there is no text in the file"),
        (b"\n \n", ": there is no text in the file"),
        (b"a film\n\xfc\n", ":2: byte 0xfc at offset 0 of this line is not UTF-8"),
        (b"a film\n\n\0\n", ":3: a NUL byte"),
    ],
)
def test_plain_text(tmp_path, tokenizer, content, told):
    path = tmp_path / "a.txt"
    path.write_bytes(content)
    refused(MaskedLM(), path, tokenizer, told, MaskedLM(pairs=False))


# -- SQuAD's form ------------------------------------------------------------------------------------------------------


def document(tmp_path, content):
    path = tmp_path / "a.json"
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return path


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", ":1: broken JSON"),
        (b'{"data":\n[', ":2: broken JSON at column 2"),
        (b'{"data":\n["\xfc"]}', ":2: byte 0xfc is not UTF-8"),
        (json.dumps(SQUAD).encode("utf-16"), ":1: byte 0xff is not UTF-8"),
        (b"[" * 100_000, ": JSON that Python does not read"),
        (b'{"data": 1' + b"0" * 5000 + b"}", ": JSON that Python does not read"),
        (b"[]", ": is .*, not an object with 'data'"),
        (b'{"data": []}', ": there are no questions in the file"),
        (b'{"data": [{"paragraphs": []}]}', ": there are no questions in the file"),
        (b'{"version": 1}', ": there is no 'data' here, only 'version'"),
        (b'{"data": [{"paragraphs": [{"context": "a\\ud83d", "qas": []}]}]}', r": data\[0\].*an unpaired surrogate"),
    ],
)
def test_files_that_are_not_of_the_form(tmp_path, tokenizer, content, told):
    refused(READING, document(tmp_path, content), tokenizer, told)


def test_no_file_of_the_form(tmp_path, tokenizer):
    (tmp_path / "folder.json").mkdir()
    refused(READING, tmp_path / "none.json", tokenizer, ": there is no such file")
    refused(READING, tmp_path / "folder.json", tokenizer, ": this is a folder")


def test_files_that_are_odd_and_mean_the_same(tmp_path, tokenizer):
    whole = json.dumps(SQUAD, indent=1).encode()
    found = []
    for content in (whole, b"\xef\xbb\xbf" + whole, whole.replace(b"\n", b"\r\n"), whole + b"\n\n", json.dumps(SQUAD)):
        path = document(tmp_path, content if isinstance(content, bytes) else content.encode())
        task, examples = learned(READING, path, tokenizer)
        found.append((task, plain(examples)))
    assert all(each == found[0] for each in found)


def places(value, way=()):
    """The way to every value of a document."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, each in inner:
        yield (*way, name)
        yield from places(each, (*way, name))


def at(value, way):
    for name in way:
        value = value[name]
    return value


NEEDED = {"data", "paragraphs", "context", "qas", "id", "question", "answers", "text", "answer_start"}


@pytest.mark.parametrize("way", list(places(SQUAD)), ids=lambda way: ".".join(map(str, way)))
def test_every_value_may_be_anything(tmp_path, tokenizer, way):
    """It ends in features or in an error; what is of the wrong type is refused, with the way to it."""
    for value in WRONG:
        wrong = copy.deepcopy(SQUAD)
        right, at(wrong, way[:-1])[way[-1]] = at(SQUAD, way), value
        path = document(tmp_path, wrong)
        ended = [ends(partial(use, READING, path, tokenizer), f"{path}: ") for use in (learned, predicted)]
        if type(value) is not type(right) and way[-1] in NEEDED and not (way[-1] == "id" and type(value) is int):
            assert not ended[0]


@pytest.mark.parametrize("way", list(places(SQUAD)), ids=lambda way: ".".join(map(str, way)))
def test_every_value_may_be_missing(tmp_path, tokenizer, way):
    without = copy.deepcopy(SQUAD)
    del at(without, way[:-1])[way[-1]]
    path = document(tmp_path, without)
    ended = ends(partial(learned, READING, path, tokenizer), f"{path}: ")
    if way[-1] in NEEDED:
        assert not ended


def test_the_same_id_twice(tmp_path, tokenizer):
    twice = copy.deepcopy(SQUAD)
    twice["data"] *= 2
    told = r": data\[1\].paragraphs\[0\].qas\[0\] \(id q1\): the id is also that of data\[0\]"
    refused(READING, document(tmp_path, twice), tokenizer, told)


# -- standard input ----------------------------------------------------------------------------------------------------

LINES = {
    "classification": "a film",
    "regression": "a film",
    "matching": "a\tfilm",
    "multilabel": "a film",
    "token-classification": "a film",
}
LINES |= {"masked-lm": "a [MASK]", "question-answering": "a film\tthe film was warm"}


@pytest.mark.parametrize("name", TASKS)
def test_lines(tmp_path, tokenizer, name):
    if name == "question-answering":
        task = READING
    else:
        path = tmp_path / "a.tsv"
        path.write_bytes(table([ROWS[name].columns, *ROWS[name].rows]))
        task = ROWS[name].task.fitted(path)
    good = LINES[name].encode()
    for bad in (b"\xff", b"a\0", b"{", b"{}", b"{[]}", b"[" * 10, b"a\tb\tc\td\te", b'{"text_a": 5}', b"{" * 100_000):
        raw = [b"\xef\xbb\xbf" + good + b"\r\n", bad + b"\n"]
        rows = task.line_rows(decoded(raw))
        assert plain(task.features([next(rows)], tokenizer, False, Counter())) == plain(
            task.features(list(task.line_rows([LINES[name]])), tokenizer, False, Counter())
        )
        ended = ends(lambda rows=rows: task.features([next(rows)], tokenizer, False, Counter()), "standard input:2: ")
        assert not ended or bad == b"[" * 10
