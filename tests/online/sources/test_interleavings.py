"""In whatever order a source is written, read, set back, committed and opened again: the samples are the same."""

import itertools

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from onion.online import Spool
from tests.online.sources.kinds import FolderKind, RedisKind, SpoolKind, kind_of

SHARE = st.floats(0, 1)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(1, 4)),
        st.tuples(st.just("read"), st.integers(1, 5)),
        st.tuples(st.just("back"), SHARE),
        st.tuples(st.just("commit"), SHARE),
        st.tuples(st.just("reopen"), st.none()),
    ),
    max_size=30,
)


def follow(steps, open_source, write):
    """Take the steps; after each read, the samples are those that were written, from the position on."""
    source, written, places, at, committed = open_source(), [], [""], 0, 0
    try:
        for kind, value in [*steps, ("read", 1000)]:
            if kind == "write":
                lot = [{"id": len(written) + each} for each in range(value)]
                write(lot)
                written += lot
            elif kind == "read":
                while samples := source.read(value, 0):
                    assert [sample.data for sample in samples] == written[at : at + len(samples)]
                    places[at + 1 :] = [*(sample.position for sample in samples), *places[at + 1 + len(samples) :]]
                    at += len(samples)
                    assert source.position == places[at]
                    if value < 1000:
                        break
                else:
                    assert at == len(written)
            elif kind == "back":
                at = committed + round(value * (len(places) - 1 - committed))
                source.position = places[at]
            elif kind == "commit":
                committed += round(value * (at - committed)) if at > committed else 0
                source.commit(places[committed])
            else:
                source.close()
                source = open_source()
                source.position = places[at]
    finally:
        source.close()


lots = itertools.count()


@pytest.mark.parametrize("kind", [SpoolKind, FolderKind, RedisKind])
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_any_order(request, tmp_path, kind, steps):
    made = kind_of(request, kind, tmp_path / f"lot{next(lots)}")
    follow(steps, lambda: made.make(retention=made.removed), made.put)


@pytest.mark.parametrize("steps", [[("write", 3), ("read", 2), ("commit", 1.0), ("reopen", None), ("back", 0.0)]])
def test_follow_detects_a_source_that_repeats(steps, tmp_path):
    class Repeating(Spool):
        def read(self, n, timeout):
            samples = super().read(n, timeout)
            self.position = "0"
            return samples

    spool = Repeating(tmp_path / "s.db")
    with spool.writer() as writer, pytest.raises(AssertionError):
        follow(steps, lambda: spool, writer.write)
