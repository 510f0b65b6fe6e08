"""What all sources share: samples as JSON, replay readers."""

import json
import math
import subprocess
import sys
from datetime import timedelta
from time import monotonic

import pytest

from onion import CompositionError, DataError
from onion.online import Folder, RedisStream, RedisWriter, Spool, SpoolWriter
from onion.online.sources.source import SampleWriter, Source, from_json, to_json_lines


def test_importing_the_sources_loads_no_library():
    code = (
        "import sys\n"
        "from onion.online import Folder, RedisStream, RedisWriter, Spool, SpoolWriter\n"
        "RedisStream('redis://nowhere', 's'), RedisWriter('redis://nowhere', 's')\n"
        "print(sorted({'paddle', 'redis', 'fastapi', 'river'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("base", "kinds"), [(SampleWriter, (SpoolWriter, RedisWriter)), (Source, (Spool, RedisStream, Folder))]
)
def test_they_share_a_base(base, kinds):
    assert all(base in kind.__mro__ for kind in kinds)


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
    with pytest.raises(DataError, match=r"sample 2 of this write is no JSON value \(.*Nothing was taken"):
        to_json_lines([1, wrong])


def test_depth_without_end_is_refused():
    deep = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(DataError, match="sample 1"):
        to_json_lines([deep])


@pytest.mark.parametrize("text", ["{", "", "[" * 100_000])
def test_a_damaged_text_is_told_with_its_place(text):
    with pytest.raises(DataError, match="here: what is stored there is not JSON"):
        from_json(text, "here")


# -- what holds for each of them ---------------------------------------------------------------------------------------

TOTAL = 30


class SpoolKind:
    """A way to make a source and to fill it."""

    wrong = ("x", "-1", "1.5", "²", "1@", "1@x/1.000000", f"1@{'0' * 16}/1")
    no_retention = (-1, 1.5, "day", None, timedelta(-1))
    removed, counts = 0, True

    def __init__(self, folder, url):
        self.at = folder / "samples.db"

    def make(self, **settings):
        return Spool(self.at, **settings)

    def put(self, rows):
        with SpoolWriter(self.at) as writer:
            writer.write(rows)


class FolderKind(SpoolKind):
    wrong = ("x", "1", "1:", "-1:0", "²:1", "1:1@", "1:1@x", "1:1@" + "0" * 17)
    counts = False

    def __init__(self, folder, url):
        self.at, self.files = folder / "inbox", 0
        self.at.mkdir()

    def make(self, **settings):
        return Folder(self.at, settle=0, **settings)

    def put(self, rows):
        self.files += 1
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (self.at / f"{self.files:03}.jsonl").write_text(text)


class RedisKind(SpoolKind):
    wrong = ("x", "12", "1-", "1-2#", "1-2#x", "²-1")
    no_retention = (timedelta(-1), 5, None)
    removed = timedelta(0)

    def __init__(self, folder, url):
        self.at = url

    def make(self, **settings):
        return RedisStream(self.at, "samples", **{"retention": timedelta(days=1), **settings})

    def put(self, rows):
        with RedisWriter(self.at, "samples") as writer:
            writer.write(rows)


@pytest.fixture(params=[SpoolKind, FolderKind, pytest.param(RedisKind, marks=pytest.mark.redis)])
def kind(request, tmp_path):
    return request.param(tmp_path, request.getfixturevalue("url") if request.param is RedisKind else None)


@pytest.fixture
def filled(kind):
    for begin in range(0, TOTAL, 10):
        kind.put([{"id": number} for number in range(begin, begin + 10)])
    return kind


@pytest.fixture
def source(filled):
    source = filled.make()
    yield source
    source.close()


def ids(source, n, lot=7):
    found = []
    while len(found) < n and (samples := source.read(min(lot, n - len(found)), 0.2)):
        found += [sample.data["id"] for sample in samples]
    return found


def test_samples_come_in_order_each_with_the_place_behind_it(kind):
    source = kind.make()
    assert (source.read(2, 0), source.position) == ([], "")
    kind.put([{"id": 1}, {"id": 2}, {"id": 3}])
    samples = source.read(2, 0)
    assert [sample.data["id"] for sample in samples] == [1, 2]
    assert source.position == samples[1].position != samples[0].position
    assert source.waiting() == (1 if kind.counts else None)
    assert ids(source, 9) == [3]
    assert source.waiting() == (0 if kind.counts else None)
    source.close()


def test_it_waits_no_longer_than_asked(kind):
    source, begin = kind.make(), monotonic()
    assert source.read(1, 0.2) == []
    assert monotonic() - begin >= 0.2
    source.close()


def test_a_place_can_be_set_and_everything_behind_it_comes_again(filled, source):
    samples = source.read(5, 0)
    source.position = samples[1].position
    assert ids(source, TOTAL) == list(range(2, TOTAL))
    source.position = ""
    assert ids(source, TOTAL) == list(range(TOTAL))
    source.close()
    again = filled.make()
    again.position = samples[2].position
    assert ids(again, 2) == [3, 4]
    again.close()


def test_it_goes_on_after_it_was_closed(source):
    assert ids(source, 3) == [0, 1, 2]
    source.close()
    source.close()
    assert ids(source, 2) == [3, 4]
    source.commit(source.position)
    source.commit("")
    assert ids(source, TOTAL) == list(range(5, TOTAL))


def test_what_is_no_place_is_refused(kind):
    source = kind.make()
    for position in kind.wrong:
        with pytest.raises(DataError, match="is no position in"):
            source.position = position


def test_samples_that_were_removed_are_missed_and_the_beginning_is_the_oldest_there_is(filled, caplog):
    source = filled.make(retention=filled.removed)
    samples = [sample for _ in range(3) for sample in source.read(10, 0)]
    source.commit(samples[19].position)
    source.position = samples[10].position
    with pytest.raises(DataError, match=r"have been removed.*resume from a newer checkpoint"):
        source.read(9, 0)
    source.position = samples[19].position
    assert ids(source, TOTAL) == list(range(20, TOTAL))
    source.position = ""
    assert ids(source, TOTAL) == list(range(20, TOTAL))
    assert "have been removed; reading begins behind them" in caplog.text
    source.close()
    source.commit(source.position)  # which opens it again
    filled.put([{"id": TOTAL}])
    assert ids(source, 1) == [TOTAL]  # under a number that was never used
    source.close()


def test_a_wrong_retention_is_refused(kind):
    for retention in kind.no_retention:
        with pytest.raises(CompositionError, match="retention must be a timedelta"):
            kind.make(retention=retention)


def test_their_names(tmp_path):
    assert repr(Spool("/a.db")) == "Spool('/a.db')"
    assert repr(Folder("/inbox")) == "Folder('/inbox')"
    assert repr(RedisStream("redis://:secret@host", "s")) == "RedisStream('s')"


# -- replay readers ----------------------------------------------------------------------------------------------------


def test_all_samples_are_there_again_whatever_the_run_has_read_and_committed(source):
    assert ids(source, 20) == list(range(20))
    source.commit(source.position)
    reader = source.replay_reader()
    reader.position = ""
    assert ids(reader, 20) == list(range(20))
    reader.commit(reader.position)
    reader.close()
    assert ids(source, TOTAL) == list(range(20, TOTAL))


def test_a_replay_reader_goes_on_from_a_position_and_waits_no_longer_than_asked(source):
    ids(source, 12)
    reader = source.replay_reader()
    reader.position = source.position
    assert ids(reader, 3) == [12, 13, 14]
    assert reader.position != source.position
    assert ids(source, TOTAL) == list(range(12, TOTAL))
    assert ids(reader, TOTAL) == list(range(15, TOTAL))
    assert (reader.read(1, 0), reader.waiting()) == ([], None)
    reader.close()


def test_a_replay_reader_misses_the_first_samples_where_they_are_gone(filled):
    source = filled.make(retention=filled.removed)
    ids(source, 21)
    source.commit(source.position)
    ids(source, 1)
    source.close()
    reader = source.replay_reader()
    with pytest.raises(DataError, match="removed"):
        reader.read(1, 0)
    reader.close()
