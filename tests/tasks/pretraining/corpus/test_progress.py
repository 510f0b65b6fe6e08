"""The bar of a build: on a terminal only, in bytes of text, with an end if that is known."""

import gzip
import io
import re
import sys
from contextlib import suppress

import pytest

from onion.tasks.pretraining.corpus.progress import progress
from tests.tasks.pretraining.corpus.texts import build, place_in


class Terminal(io.StringIO):
    def isatty(self):
        return True

    def fileno(self):
        raise OSError


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return place_in(tmp_path_factory.mktemp("texts"))


def shown(place, monkeypatch, stream, names, **settings):
    monkeypatch.setattr(sys, "stderr", stream)
    inputs = [str(place / each) for each in names]
    with progress(inputs, **settings) as told:
        build(place, inputs=inputs).run(place / "-".join(["of", *names, *settings]), told)
    return stream.getvalue()


def test_the_bar_ends_with_the_texts(place, monkeypatch):
    drawn = shown(place, monkeypatch, Terminal(), ["a.txt", "b.txt"])
    assert "100%" in drawn.rpartition("\r")[2]
    size = sum((place / name).stat().st_size for name in ("a.txt", "b.txt"))
    assert f"{size / 1000:.1f}k/{size / 1000:.1f}k" in drawn


def test_the_bar_goes_on_where_a_build_goes_on(place, monkeypatch):
    inputs = [str(place / "a.txt")]

    def interrupt(counts):
        done.append(counts.bytes)
        if len(done) == 8:
            raise KeyboardInterrupt

    done = []
    with suppress(KeyboardInterrupt):
        build(place, inputs=inputs).run(place / "twice", interrupt)
    monkeypatch.setattr(sys, "stderr", stream := Terminal())
    with progress(inputs) as told:
        build(place, inputs=inputs).run(place / "twice", told)
    first, second, *_ = re.findall(r"(\d+)%", stream.getvalue())
    assert int(first) == 0 < int(second)
    assert "100%" in stream.getvalue().rpartition("\r")[2]


def test_the_end_of_packed_texts_is_not_known(place, monkeypatch):
    (place / "a.txt.gz").write_bytes(gzip.compress((place / "a.txt").read_bytes()))
    drawn = shown(place, monkeypatch, Terminal(), ["a.txt.gz"])
    assert "%" not in drawn
    assert "B/s" in drawn


def test_nothing_is_shown_elsewhere_or_if_not_wanted(place, monkeypatch):
    assert shown(place, monkeypatch, io.StringIO(), ["a.txt"]) == ""
    assert shown(place, monkeypatch, Terminal(), ["a.txt"], quiet=True) == ""
