"""Sources read aside: from the very first sample on, and without a trace."""

from datetime import timedelta

import pytest

from onion import DataError
from onion.online.sources import Folder, RedisStream, RedisWriter, Spool, SpoolWriter

TOTAL = 30


class Kind:
    """A source in which there are 30 samples, and how what is in it can be told from outside."""

    def __init__(self, make, put):
        self.make, self.put = make, put


@pytest.fixture(params=["spool", "redis", "folder"])
def kind(request, tmp_path):
    if request.param == "spool":
        path = tmp_path / "samples.db"
        return Kind(lambda **keep: Spool(path, **keep), lambda: put_rows(SpoolWriter(path)))
    if request.param == "folder":
        inbox = tmp_path / "inbox"
        return Kind(lambda **keep: Folder(inbox, settle=0, **keep), lambda: put_files(inbox))
    url = request.getfixturevalue("url")
    return Kind(lambda **keep: RedisStream(url, "samples", **long(keep)), lambda: put_rows(RedisWriter(url, "samples")))


def long(keep):
    return {"keep": timedelta(0)} if keep else {"keep": timedelta(days=1)}


def put_rows(writer):
    for begin in range(0, TOTAL, 10):
        writer.write([{"id": number} for number in range(begin, begin + 10)])
    writer.close()


def put_files(folder):
    folder.mkdir()
    for begin in range(0, TOTAL, 10):
        rows = "".join(f'{{"id": {number}}}\n' for number in range(begin, begin + 10))
        (folder / f"{begin:02}.jsonl").write_text(rows)


def ids(source, n, lot=7):
    found = []
    while len(found) < n and (samples := source.read(min(lot, n - len(found)), 0.2)):
        found += [sample.data["id"] for sample in samples]
    return found


def test_all_samples_are_there_again_whatever_the_run_has_read_and_committed(kind):
    kind.put()
    source = kind.make()
    assert ids(source, 20) == list(range(20))
    source.commit(source.position)
    aside = source.aside()
    aside.position = ""
    assert ids(aside, 20) == list(range(20))
    aside.commit(aside.position)
    aside.close()
    assert ids(source, TOTAL) == list(range(20, TOTAL))
    source.close()


def test_it_goes_on_from_a_position_and_waits_no_longer_than_it_is_told(kind):
    kind.put()
    source = kind.make()
    ids(source, 12)
    aside = source.aside()
    aside.position = source.position
    assert ids(aside, 3) == [12, 13, 14]
    assert aside.position != source.position
    source_rest = ids(source, TOTAL)
    assert source_rest == list(range(12, TOTAL))
    assert ids(aside, TOTAL) == list(range(15, TOTAL))
    assert aside.read(1, 0) == []
    aside.close()
    source.close()


def test_where_the_first_samples_are_gone_that_is_said(kind):
    kind.put()
    source = kind.make(keep=0)
    ids(source, 21)
    source.commit(source.position)
    ids(source, 1)
    source.close()
    aside = source.aside()
    aside.position = ""
    with pytest.raises(DataError, match="removed"):
        aside.read(1, 0)
    aside.close()
