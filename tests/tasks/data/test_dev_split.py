from collections import Counter

import pytest

from onion.errors import DataError
from onion.tasks.data.dev_split import chosen, dealt, part_of, split
from onion.tasks.data.rows import file_rows


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("ONION_HOME", str(tmp_path / "home"))
    return tmp_path


def test_a_part_is_a_share_or_a_fold(home, monkeypatch):
    monkeypatch.chdir(home)
    written = ["0.1", "1e-2", "2/5", "dev.tsv", "a/5"]
    assert [part_of(each) is not None for each in written] == [*[True] * 3, *[False] * 2]
    for number in ("20%", "1", "0", "-0.5", "nan"):
        with pytest.raises(DataError, match=f"dev: {number} is neither a file nor a share; .* such as 0.2"):
            part_of(number)
    for name in ("0.1", "20%"):
        (home / name).touch()
        assert part_of(name) is None
    for fold in ("0/5", "6/5", "1/1"):
        with pytest.raises(DataError, match=f"dev: there is no fold {fold}; the folds of five are 1/5"):
            part_of(fold)


def test_each_label_keeps_its_share():
    labels = ["a"] * 60 + ["b"] * 30 + ["c"] * 10
    found = chosen(0.2, labels, seed=3)
    assert Counter(labels[place] for place in found) == {"a": 12, "b": 6, "c": 2}
    assert found == chosen(0.2, labels, seed=3) != chosen(0.2, labels, seed=4)
    assert len(chosen(0.2, [0.5 * i for i in range(100)], seed=1)) == 20  # numbers are no classes
    assert len(chosen(0.2, [["B-PER"]] * 100, seed=1)) == 20


def test_the_rows_are_in_one_file_or_the_other_in_their_order(home):
    path = home / "a.tsv"
    path.write_text("text_a\tlabel\n" + "".join(f"{i}\t{i % 2}\n" for i in range(20)))
    train, dev = split(path, "0.3", seed=1)
    rows = {name: list(file_rows(each, ["text_a", "label"])) for name, each in (("train", train), ("dev", dev))}
    places = {name: [int(row.cells["text_a"]) for row in each] for name, each in rows.items()}
    assert len(places["dev"]) == 6
    assert all(each == sorted(each) for each in places.values())
    assert sorted(places["train"] + places["dev"]) == list(range(20))
    assert all(row.path == path and row.line == int(row.cells["text_a"]) + 2 for row in rows["dev"])
    assert split(path, "0.3", seed=1) == (train, dev)


def test_lines_of_a_text(home):
    (home / "a.txt").write_text("".join(f"{i}\n" for i in range(10)))
    train, dev = split(home / "a.txt", "0.2", seed=1)
    assert len(dev.read_text().splitlines()) == 2
    assert sorted((train.read_text() + dev.read_text()).split(), key=int) == [str(i) for i in range(10)]


@pytest.mark.parametrize(
    ("name", "text", "what"),
    [
        ("a.tsv", "text_a\tlabel\nx\t1\n", "leaves nothing to test on"),
        ("a.json", "{}", r"left out of \.tsv, \.csv, \.jsonl and \.txt files only; give a dev file"),
    ],
)
def test_what_cannot_be_split(home, name, text, what):
    (home / name).write_text(text)
    with pytest.raises(DataError, match=what):
        split(home / name, "0.1", seed=1)


def test_every_label_stays_in_the_training_file():
    labels = ["good"] * 20 + ["bad"] * 2
    tested = chosen(0.9, labels, 1)
    assert {label for place, label in enumerate(labels) if place not in tested} == {"good", "bad"}


def test_folds_share_no_place_and_each_has_its_part_of_every_label():
    labels = ["a"] * 61 + ["b"] * 30 + ["c"] * 10 + ["single"]
    folds = [dealt(number, 5, labels, seed=3) for number in range(1, 6)]
    assert sorted(place for fold in folds for place in fold) == list(range(101))  # all but the single one
    for fold in folds:
        counts = Counter(labels[place] for place in fold)
        assert (counts["a"] in (12, 13), counts["b"], counts["c"]) == (True, 6, 2)
    assert folds[0] == dealt(1, 5, labels, seed=3) != dealt(1, 5, labels, seed=4)


@pytest.mark.parametrize("dev", ["0.25", "2/4"])
def test_rows_of_one_question_stay_together(home, dev):
    path = home / "a.tsv"
    rows = [(f"{i}", f"q{i % 8}", f"{i % 3 % 2}") for i in range(40)]
    path.write_text("text_a\tqid\tlabel\n" + "".join("\t".join(row) + "\n" for row in rows))
    questions = [
        {row.cells["qid"] for row in file_rows(each, ["qid"])} for each in split(path, dev, seed=1, together="qid")
    ]
    assert [len(each) for each in questions] == [6, 2]
    assert not questions[0] & questions[1]
    assert split(path, dev, seed=1) != split(path, dev, seed=1, together="qid")


def test_rows_without_a_question_are_independent(home):
    path = home / "a.jsonl"
    path.write_text("".join(f'{{"text_a": "{i}", "qid": {"null" if i < 10 else 7}}}\n' for i in range(20)))
    tested = [row.line for row in file_rows(split(path, "0.5", seed=1, together="qid")[1], ["text_a"])]
    assert len({line for line in tested if line > 10}) in (0, 10)
    assert 0 < len([line for line in tested if line <= 10]) < 10
