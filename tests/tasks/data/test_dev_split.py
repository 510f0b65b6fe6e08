from collections import Counter

import pytest

from onion.errors import DataError
from onion.tasks.data.dev_split import chosen, is_share, split
from onion.tasks.data.rows import file_rows


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("ONION_HOME", str(tmp_path / "home"))
    return tmp_path


def test_a_share_is_a_number_between_0_and_1(home, monkeypatch):
    monkeypatch.chdir(home)
    assert [is_share(each) for each in ("0.1", "1e-2", "1", "0", "dev.tsv", "-0.5", "nan")] == [
        True,
        True,
        *[False] * 5,
    ]
    (home / "0.1").touch()
    assert not is_share("0.1")


def test_each_label_keeps_its_share():
    labels = ["a"] * 60 + ["b"] * 30 + ["c"] * 10
    found = chosen(labels, 0.2, seed=3)
    assert Counter(labels[place] for place in found) == {"a": 12, "b": 6, "c": 2}
    assert found == chosen(labels, 0.2, seed=3) != chosen(labels, 0.2, seed=4)
    assert len(chosen([0.5 * i for i in range(100)], 0.2, seed=1)) == 20  # numbers are no classes
    assert len(chosen([["B-PER"]] * 100, 0.2, seed=1)) == 20


def test_the_rows_are_in_one_file_or_the_other_in_their_order(home):
    path = home / "a.tsv"
    path.write_text("text_a\tlabel\n" + "".join(f"{i}\t{i % 2}\n" for i in range(20)))
    train, dev = split(path, 0.3, seed=1)
    rows = {name: list(file_rows(each, ["text_a", "label"])) for name, each in (("train", train), ("dev", dev))}
    places = {name: [int(row.cells["text_a"]) for row in each] for name, each in rows.items()}
    assert len(places["dev"]) == 6
    assert all(each == sorted(each) for each in places.values())
    assert sorted(places["train"] + places["dev"]) == list(range(20))
    assert all(row.path == path and row.line == int(row.cells["text_a"]) + 2 for row in rows["dev"])
    assert split(path, 0.3, seed=1) == (train, dev)


def test_lines_of_a_text(home):
    (home / "a.txt").write_text("".join(f"{i}\n" for i in range(10)))
    train, dev = split(home / "a.txt", 0.2, seed=1)
    assert len(dev.read_text().splitlines()) == 2
    assert sorted((train.read_text() + dev.read_text()).split(), key=int) == [str(i) for i in range(10)]


@pytest.mark.parametrize(
    ("name", "text", "what"),
    [
        ("a.tsv", "text_a\tlabel\nx\t1\n", "leaves nothing to test on"),
        ("a.json", "{}", r"no share of a \.json file can be left out; give a dev file"),
    ],
)
def test_what_cannot_be_split(home, name, text, what):
    (home / name).write_text(text)
    with pytest.raises(DataError, match=what):
        split(home / name, 0.1, seed=1)


def test_every_label_stays_in_the_training_file():
    labels = ["good"] * 20 + ["bad"] * 2
    tested = chosen(labels, 0.9, 1)
    assert {label for place, label in enumerate(labels) if place not in tested} == {"good", "bad"}
