"""Data as people have them: each way in gives the rows that a task reads, and errors name where a row came from."""

import json

import pytest

from onion.errors import DataError
from onion.tasks.classification import Classification
from onion.tasks.data.prepared import data_folder, files_of, named, prepared
from onion.tasks.data.rows import file_rows


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("ONION_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(path, *rows):
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    return str(path)


def read(path, *columns):
    return [(row.path.name, row.line, *(row.cells[name] for name in columns)) for row in file_rows(path, columns)]


def test_a_file_that_a_task_can_read_is_left_alone(home):
    for name in ("a.tsv", "a.csv", "a.jsonl", "a.txt"):
        assert str(prepared(write(home / name, "text_a", "x"))) == str(home / name)
    squad = write(home / "squad.json", '{"data": []}')
    assert str(prepared(squad)) == squad
    assert not data_folder().exists()


def test_columns_have_other_names(home):
    path = write(home / "a.csv", "id,sentence,Sentiment", "1,a film,good", '2,"another, film",bad')
    found = prepared(path, {"text_a": "sentence", "label": "Sentiment"})
    assert read(found, "text_a", "label", "id") == [
        ("a.csv", 2, "a film", "good", "1"),
        ("a.csv", 3, "another, film", "bad", "2"),
    ]


def test_names_lead_into_objects(home):
    path = write(home / "a.jsonl", json.dumps({"doc": {"title": {"en": "one"}}, "a.b": "two"}))
    assert read(prepared(path, {"text_a": "doc.title.en", "label": "a.b"}), "text_a", "label") == [
        ("a.jsonl", 1, "one", "two")
    ]


def test_several_files_and_patterns(home):
    write(home / "d" / "b.tsv", "text_a\tlabel", "b\t1")
    write(home / "d" / "a.csv", "text_a,label", "a,0")
    assert files_of("d/*") == ["d/a.csv", "d/b.tsv"]
    assert read(prepared("d/*"), "text_a", "label") == [("a.csv", 2, "a", "0"), ("b.tsv", 2, "b", "1")]
    assert read(prepared("d/b.tsv, d/a.csv"), "text_a") == [("b.tsv", 2, "b"), ("a.csv", 2, "a")]
    for name in ("one", "two"):
        write(home / f"{name}.txt", name)
    assert prepared("*.txt").read_text() == "one\ntwo\n"


def test_a_name_with_special_characters_is_a_file_if_it_is_there(home):
    assert files_of(write(home / "a,[b]*.tsv", "x")) == [str(home / "a,[b]*.tsv")]


def test_a_list_of_objects(home):
    path = write(home / "a.json", '[{"text_a": "x",', '"label": 1}, {"text_a": "y", "label": 0}]')
    assert read(prepared(path), "text_a", "label") == [("a.json", 1, "x", 1), ("a.json", 2, "y", 0)]


def test_parquet(home):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pyarrow.table({"sentence": ["a", "b"], "label": [0, 1]}), home / "a.parquet")
    found = prepared(str(home / "a.parquet"), {"text_a": "sentence"})
    assert read(found, "text_a", "label") == [("a.parquet", 1, "a", 0), ("a.parquet", 2, "b", 1)]
    (home / "b.parquet").write_bytes(b"PAR1 not really")
    with pytest.raises(
        DataError,
        match=r"b\.parquet: broken Parquet file after row 0 \(Parquet magic bytes not found.*\); write it anew",
    ):
        prepared(str(home / "b.parquet"))


def test_bytes_of_parquet_are_texts_if_they_are_utf_8(home):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pyarrow.table({"text_a": ["中文".encode(), b"\xff"]}), home / "a.parquet")
    one, other = file_rows(prepared("a.parquet"), ["text_a"])
    assert one.text("text_a") == "中文"
    with pytest.raises(DataError, match=r"^a\.parquet:2: text_a is {'bytes': 1}, not a string"):
        other.text("text_a")


@pytest.mark.parametrize(
    ("columns", "names", "what"),
    [
        ([["a"], ["b"]], ["text_a", "text_a"], "there are two columns 'text_a'; rename one of them"),
        ([[]], ["text_a"], "there are no rows in it; it needs at least one"),
        ([[2**62]], ["when"], r"broken Parquet file after row 0 \(.*\); write it anew"),
    ],
)
def test_tables_of_parquet_that_have_no_meaning(home, columns, names, what):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    kinds = {"when": pyarrow.timestamp("us")}
    arrays = [
        pyarrow.array(column, kinds.get(name, pyarrow.string())) for column, name in zip(columns, names, strict=True)
    ]
    parquet.write_table(pyarrow.table(arrays, names=names), home / "a.parquet")
    with pytest.raises(DataError, match=rf"^a\.parquet: {what}"):
        prepared("a.parquet")
    assert not list(data_folder().glob("*"))


@pytest.mark.parametrize("name", ["a.json", "a.conll"])
def test_no_rows(home, name):
    (home / name).write_text({"a.json": "[]", "a.conll": "\n \n"}[name])
    with pytest.raises(DataError, match=rf"^{name}: there are no rows in it; it needs at least one"):
        prepared(name)


def test_errors_about_a_converted_file_name_its_source(home):
    path = prepared(write(home / "a.csv", "s,label", "x,1"), {"text_a": "s"})
    told = r"^a\.csv: all rows have the label '1'; there is nothing to learn"
    with pytest.raises(DataError, match=told), named(path, "a.csv"):
        Classification().fitted(path)


@pytest.mark.slow
def test_a_data_set_of_hugging_face_with_class_labels(home, monkeypatch):
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", home / "cache")
    features = datasets.Features(
        {"text_a": datasets.Value("string"), "label": datasets.ClassLabel(names=["bad", "good"])}
    )
    made = datasets.Dataset.from_dict({"text_a": ["x", "y"], "label": [1, 0]}, features=features)
    folder = home / "films"
    folder.mkdir()
    made.to_parquet(folder / "train.parquet")
    source = f"hf:{folder}/default/train"
    assert [row[2:] for row in read(prepared(source), "text_a", "label")] == [("x", "good"), ("y", "bad")]
    with pytest.raises(DataError, match=r"hf:nowhere: write hf:NAME/CONFIG/SPLIT"):
        prepared("hf:nowhere")
    with pytest.raises(DataError, match=rf"{folder}/default/dev: cannot be loaded: .*dev"):
        prepared(f"hf:{folder}/default/dev")


def test_conll(home):
    path = write(home / "a.conll", "小 I-PER", "明 I-PER", "", "好 O")
    assert read(prepared(path), "text_a", "label") == [
        ("a.conll", 1, ["小", "明"], ["B-PER", "I-PER"]),
        ("a.conll", 4, ["好"], ["O"]),
    ]


def test_it_is_converted_once_and_again_when_the_file_changes(home):
    path = write(home / "a.csv", "s,label", "x,1")
    first = prepared(path, {"text_a": "s"})
    stamp = first.stat().st_mtime_ns
    assert prepared(path, {"text_a": "s"}) == first
    assert first.stat().st_mtime_ns == stamp
    write(home / "a.csv", "s,label", "y,1")
    assert prepared(path, {"text_a": "s"}) != first


def test_labels_need_not_be_there_to_predict(home):
    path = write(home / "a.csv", "s", "x")
    columns = {"text_a": "s", "label": "gold"}
    with pytest.raises(DataError, match=r"a\.csv:2: there is no column 'gold'; there are 's'"):
        prepared(path, columns)
    assert read(prepared(path, columns, labelled=False), "text_a") == [("a.csv", 2, "x")]


@pytest.mark.parametrize(
    ("name", "content", "columns", "what"),
    [
        ("a.csv", "s,label\nx,1", {"text_a": "t"}, r"a\.csv:2: there is no column 't'; there are 's', 'label'"),
        (
            "a.csv",
            "s,label\nx,1",
            {"s": "text_a"},
            r"a\.csv:2: there is no column 'text_a'; .*; the column of the task comes first: text_a=s$",
        ),
        (
            "a.csv",
            "text_a,label\nx,1",
            {"text_a": "sentence"},
            r"a\.csv:2: there is no column 'sentence'; .*; if it is text_a in this file: text_a=text_a$",
        ),
        ("a.jsonl", '{"d": {"t": 1}}', {"text_a": "d.u"}, r"a\.jsonl:1: there is no column 'd\.u'"),
        ("a.json", '[{"a": 1}, 2]', {}, r"a\.json:2: row 2 of the list is 2, not an object"),
        ("a.json", "[1", {}, r"a\.json: broken JSON"),
        ("a.json", '{"data": []}', {"text_a": "b"}, r"a\.json: must be a list of objects to be read as rows"),
        (
            "a.xlsx",
            "",
            {"a": "b"},
            r"a\.xlsx: cannot tell the format by the ending; name the file \.tsv",
        ),
        ("b.csv", 's\nx\n"', {"text_a": "s"}, r"b\.csv:3: broken CSV"),
    ],
)
def test_what_is_refused_with_file_and_line(home, name, content, columns, what):
    (home / name).write_text(content)
    with pytest.raises(DataError, match=what):
        prepared(str(home / name), columns)
    assert not list(data_folder().glob("*"))


@pytest.mark.parametrize("column", ["text_a", "label"])
def test_an_empty_cell_is_told_as_such(home, column):
    """Of a list, of lines and of Parquet, renamed or not."""
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    rows = [{"text_a": "x", "label": "1"}, {"text_a": "y", "label": "0"}]
    rows[1][column] = None
    (home / "a.json").write_text(json.dumps(rows))
    write(home / "a.jsonl", *map(json.dumps, rows))
    parquet.write_table(pyarrow.Table.from_pylist(rows), home / "a.parquet")
    for name in ("a.json", "a.jsonl", "a.parquet"):
        for columns in ({}, {column: column}):
            row = list(file_rows(prepared(name, columns), ["text_a", "label"]))[1]
            with pytest.raises(
                DataError, match=rf"^{name}:2: {column} is empty \(null\); fill it in or remove the row"
            ):
                row.label(column)


def test_a_pattern_without_a_file():
    with pytest.raises(DataError, match=r"nothing\*\.tsv: there is no such file, and none matches it as a pattern"):
        prepared("nothing*.tsv")


@pytest.mark.parametrize("source", ["a.tsv,", ","])
def test_an_empty_name(source):
    with pytest.raises(DataError, match="a name between commas is empty; remove the comma"):
        prepared(source)


def test_errors_of_a_row_name_the_file_it_came_from(home):
    path = write(home / "a.csv", "s,gold", "x,1", "y,")
    rows = list(file_rows(prepared(path, {"text_a": "s", "label": "gold"}), ["text_a", "label"]))
    with pytest.raises(DataError, match=r"a\.csv:3: label is empty"):
        rows[1].label("label")


def test_json_that_is_no_list_has_no_rows(home):
    (home / "a.json").write_text("3")
    with pytest.raises(DataError, match=r"^a.json: must be a list of objects to be read as rows"):
        prepared("a.json", {"label": "x"})


def test_a_list_after_a_byte_order_mark(home):
    (home / "a.json").write_bytes(b'\xef\xbb\xbf[{"text_a": "a film"}]')
    assert [row.cells for row in file_rows(prepared("a.json"), ["text_a"])] == [{"text_a": "a film"}]


def test_half_a_character_is_told_in_the_row_that_has_it(home):
    (home / "a.jsonl").write_text('{"t": "\\ud800"}\n')
    (row,) = file_rows(prepared("a.jsonl", {"text_a": "t"}), ["text_a"])
    with pytest.raises(DataError, match=r"^a.jsonl:1: text_a has an unpaired surrogate"):
        row.text("text_a")


def test_a_plain_text_has_no_columns_to_convert(home):
    path = home / "a.txt"
    path.write_text("a film\n")
    assert prepared(path, {"text_a": "s"}) == path
