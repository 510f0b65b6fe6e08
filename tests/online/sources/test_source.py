"""What all sources share: samples as JSON, positions, replay readers."""

import math
from time import monotonic

import pytest

from onion import CompositionError, DataError
from onion.online import Folder, RedisStream, RedisWriter, Spool, SpoolWriter
from onion.online.sources.source import from_json, to_json_lines
from tests.online.sources.kinds import FolderKind, RedisKind, SpoolKind, kind_of


@pytest.mark.parametrize(
    "value", [{"a": [1, 2.5, None, True]}, "旅馆 很好\n\0", "half \ud800 a pair", -(2**70), "", [], {}]
)
def test_what_goes_in_comes_out(value):
    (text,) = to_json_lines([value])
    assert from_json(text.encode().decode(), "here") == value
    assert "\n" not in text


def test_text_stays_readable():
    assert to_json_lines(["旅"]) == ['"旅"']


@pytest.mark.parametrize("wrong", [math.nan, math.inf, {1, 2}, b"bytes", object()])
def test_what_is_not_json_is_refused_by_its_number(wrong):
    with pytest.raises(DataError, match=r"sample 2 of this write is not a JSON value \(.*No sample was taken"):
        to_json_lines([1, wrong])


def test_unbounded_depth_is_refused():
    deep = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(DataError, match="sample 1"):
        to_json_lines([deep])


@pytest.mark.parametrize("text", ["{", "", "[" * 100_000])
def test_a_damaged_text_is_an_error_with_its_place(text):
    with pytest.raises(DataError, match="here: the stored text is not JSON"):
        from_json(text, "here")


# -- every kind of source ----------------------------------------------------------------------------------------------

TOTAL = 30


@pytest.fixture(params=[SpoolKind, FolderKind, RedisKind])
def kind(request, tmp_path):
    return kind_of(request, request.param, tmp_path / "source")


@pytest.fixture
def filled(kind):
    for begin in range(0, TOTAL, 10):
        kind.put([{"id": number} for number in range(begin, begin + 10)])
    return kind


@pytest.fixture
def source(filled, opened):
    return opened(filled.make())


def ids(source, n, lot=7):
    found = []
    while len(found) < n and (samples := source.read(min(lot, n - len(found)), 0.2)):
        found += [sample.data["id"] for sample in samples]
    return found


def test_samples_come_in_order_each_with_the_position_behind_it(kind, opened):
    source = opened(kind.make())
    assert (source.read(2, 0), source.position) == ([], "")
    kind.put([{"id": 1}, {"id": 2}, {"id": 3}])
    samples = source.read(2, 0)
    assert [sample.data["id"] for sample in samples] == [1, 2]
    assert source.position == samples[1].position != samples[0].position
    assert source.waiting() == (1 if kind.counts else None)
    assert ids(source, 9) == [3]
    assert source.waiting() == (0 if kind.counts else None)


def test_it_waits_no_longer_than_asked(kind, opened):
    source, begin = opened(kind.make()), monotonic()
    assert source.read(1, 0.2) == []
    assert monotonic() - begin >= 0.2


def test_a_position_can_be_set_and_all_samples_behind_it_come_again(filled, source, opened):
    samples = source.read(5, 0)
    source.position = samples[1].position
    assert ids(source, TOTAL) == list(range(2, TOTAL))
    source.position = ""
    assert ids(source, TOTAL) == list(range(TOTAL))
    source.close()
    again = opened(filled.make())
    again.position = samples[2].position
    assert ids(again, 2) == [3, 4]


def test_it_continues_after_it_was_closed(source):
    assert ids(source, 3) == [0, 1, 2]
    source.close()
    source.close()
    assert ids(source, 2) == [3, 4]
    source.commit(source.position)
    source.commit("")
    assert ids(source, TOTAL) == list(range(5, TOTAL))


def test_invalid_positions_are_refused(kind):
    source = kind.make()
    for position in kind.wrong:
        with pytest.raises(DataError, match="is no position in"):
            source.position = position


def test_removed_samples_are_an_error_and_the_beginning_is_the_oldest_sample(filled, opened, caplog):
    source = opened(filled.make(retention=filled.removed))
    samples = [sample for _ in range(3) for sample in source.read(10, 0)]
    source.commit(samples[19].position)
    source.position = samples[10].position
    with pytest.raises(DataError, match=r"have been removed.*resume from a newer checkpoint"):
        source.read(9, 0)
    source.position = samples[19].position
    assert ids(source, TOTAL) == list(range(20, TOTAL))
    source.position = ""
    assert ids(source, TOTAL) == list(range(20, TOTAL))
    assert "have been removed; reading starts after them" in caplog.text
    source.close()
    source.commit(source.position)  # which opens it again
    filled.put([{"id": TOTAL}])
    assert ids(source, 1) == [TOTAL]  # under a number that was never used


def test_a_wrong_retention_is_refused(kind):
    for retention in kind.no_retention:
        with pytest.raises(CompositionError, match="retention must be a timedelta"):
            kind.make(retention=retention)


@pytest.mark.parametrize(
    ("named", "name"),
    [
        (Spool("/a.db"), "Spool('/a.db')"),
        (SpoolWriter("/a.db", "clicks"), "SpoolWriter('/a.db', 'clicks')"),
        (Folder("/inbox"), "Folder('/inbox')"),
        (RedisStream("redis://:secret@host", "s"), "RedisStream('s')"),
        (RedisWriter("redis://:secret@host", "s", "clicks"), "RedisWriter('s', 'clicks')"),
    ],
)
def test_names_have_no_passwords(named, name):
    assert repr(named) == name


# -- replay readers ----------------------------------------------------------------------------------------------------


def test_a_replay_reader_reads_all_samples_whatever_was_read_and_committed(source, opened):
    assert ids(source, 20) == list(range(20))
    source.commit(source.position)
    reader = opened(source.replay_reader())
    reader.position = ""
    assert ids(reader, 20) == list(range(20))
    reader.commit(reader.position)
    reader.close()
    assert ids(source, TOTAL) == list(range(20, TOTAL))


def test_a_replay_reader_continues_from_a_position_and_waits_no_longer_than_asked(source, opened):
    ids(source, 12)
    reader = opened(source.replay_reader())
    reader.position = source.position
    assert ids(reader, 3) == [12, 13, 14]
    assert reader.position != source.position
    assert ids(source, TOTAL) == list(range(12, TOTAL))
    assert ids(reader, TOTAL) == list(range(15, TOTAL))
    assert (reader.read(1, 0), reader.waiting()) == ([], None)


def test_a_replay_reader_without_the_first_samples_is_an_error(filled, opened):
    source = filled.make(retention=filled.removed)
    ids(source, 21)
    source.commit(source.position)
    ids(source, 1)
    source.close()
    with pytest.raises(DataError, match="removed"):
        opened(source.replay_reader()).read(1, 0)
