"""What the rounds of the data benchmark came to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from benchmarks.common.measured import Figure
from benchmarks.common.rounds import Round, figures, ratios

ONION, PEER = "onion", "transformers"
GOAL_TOKENS = 1e6
GOAL_WAITS = 1.0
GOAL_HELP = 0.3
MEGABYTE = 1e6


def refuse_difference(title: str, told: Round) -> None:
    """Insist that both sides, both ways, found the same ids.

    Raises:
        SystemExit: they did not; no times are told then.
    """
    digests = {told[side][f"{way} digest"] for side in (ONION, PEER) for way in ("features", "tokenizer")}
    if len(digests) > 1:
        raise SystemExit(f"{title}: the sides found different ids, so no times are told")


def of_texts(title: str, rounds: Sequence[Round]) -> Iterator[Figure]:
    """Tell texts a second of both sides, and by how much onion's are more."""
    for side, way, what in (
        (ONION, "features", "onion, file to features"),
        (ONION, "tokenizer", "onion, texts to ids"),
        (PEER, "features", "transformers, file to ids"),
        (PEER, "tokenizer", "transformers, texts to ids"),
    ):
        yield Figure(f"{title}: {what}", "texts a second", figures(rounds, side, way), digits=0)
    yield Figure(f"{title}: file to features, onion beside transformers", "x", _all(rounds), at_least=1.0)
    yield Figure(f"{title}: texts to ids, the same", "x", ratios(rounds, ONION, PEER, "tokenizer"), at_least=1.0)


def _all(rounds: Sequence[Round]) -> list[float]:
    """Onion with reading the file against the peer's tokenizer alone: its texts are in a list already."""
    return [each[ONION]["features"] / each[PEER]["tokenizer"] for each in rounds]


def of_cache(rounds: Sequence[Round]) -> Figure:
    """Tell tokens a second of features from the cache."""
    values = figures(rounds, ONION, "tokens")
    return Figure("features from the cache through DataProvider", "tokens a second", values, None, GOAL_TOKENS, 0)


def of_training(rounds: Sequence[Round], peaks: Sequence[Mapping[str, int]]) -> Iterator[Figure]:
    """Tell waits and memory of trainings.

    Args:
        rounds: of trainings; the same number of steps on both sides.
        peaks: side -> bytes, for each round.
    """
    for each in rounds:
        if each[ONION]["steps"] != each[PEER]["steps"]:
            raise SystemExit("the sides made different numbers of steps")
    waits = [100 * share for share in figures(rounds, ONION, "waits")]
    yield Figure("share of a training that waits for data", "%", waits, GOAL_WAITS, digits=3)
    for side in (ONION, PEER):
        yield Figure(f"peak memory of a training, {side}", "MB", [peak[side] / MEGABYTE for peak in peaks], digits=0)


def of_starts(rounds: Sequence[Round], helps: Sequence[float]) -> Iterator[Figure]:
    """Tell how long it takes to begin."""
    yield Figure("`onion --help`", "s", helps, GOAL_HELP, digits=3)
    yield Figure("start of a training to its first batch, onion, features cached", "s", figures(rounds, ONION, "first"))
    yield Figure("the same, transformers, which tokenises", "s", figures(rounds, PEER, "first"))
