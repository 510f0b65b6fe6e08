"""The streams: their samples, and what changes in them."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from onion.data import read_rows

Rows: TypeAlias = list[tuple[str, int]]
"""Texts and their labels, 0 or 1."""

BUCKETS, HELD_OUT = 4096, 300


@dataclass(frozen=True)
class Phase:
    """A part of a stream without changes.

    Attributes:
        inputs: float32 ``[n, width]``.
        labels: int64 ``[n]``, 0 or 1.
        held_out: other inputs and labels of the same kind.
    """

    inputs: NDArray[np.float32]
    labels: NDArray[np.int64]
    held_out: tuple[NDArray[np.float32], NDArray[np.int64]]


@dataclass(frozen=True)
class Stream:
    """A stream.

    Attributes:
        name: on the command line.
        title: of its section of the page.
        text: describes it.
        file: of its samples, in the folder of data.
        phases: names of the phases, in order.
        make: (file, seed, folder for results that take long) -> the phases.
    """

    name: str
    title: str
    text: str
    file: str
    phases: tuple[str, ...]
    make: Callable[[Path, int, Path], list[Phase]]


def films(path: Path, seed: int, out: Path, each: int = 2500) -> list[Phase]:
    """Sentences of SST-2 as vectors of a frozen MiniLM; then others with flipped labels."""
    rows = _read(path)[: 2 * each + HELD_OUT]
    vectors, labels = _by_minilm([text for text, _ in rows], out), np.array([label for _, label in rows])
    order = np.random.default_rng(seed).permutation(2 * each)
    held_out = vectors[2 * each :], labels[2 * each :]
    first, second = order[:each], order[each:]
    return [
        Phase(vectors[first], labels[first], held_out),
        Phase(vectors[second], 1 - labels[second], (held_out[0], 1 - held_out[1])),
    ]


def reviews(path: Path, seed: int, out: Path, each: int = 1900) -> list[Phase]:
    """ChnSentiCorp's reviews of hotels, then of books, then of notebooks, as hashed characters and pairs of them."""
    groups: dict[str, Rows] = {name: [] for name in WORDS}
    for text, label in dict(_read(path)).items():
        if (domain := domain_of(text)) is not None:
            groups[domain].append((text, label))
    random = np.random.default_rng(seed)
    return [_phase([rows[place] for place in random.permutation(len(rows))], each) for rows in groups.values()]


def _phase(rows: Rows, each: int) -> Phase:
    inputs = np.stack([hashed(text) for text, _ in rows[: each + HELD_OUT]])
    labels = np.array([label for _, label in rows[: each + HELD_OUT]])
    return Phase(inputs[:each], labels[:each], (inputs[each:], labels[each:]))


WORDS = {
    "hotels": ["酒店", "房间", "宾馆", "入住", "前台", "早餐", "携程", "客房"],
    "books": ["书", "作者", "阅读", "故事", "小说", "看完", "内容", "读"],
    "notebooks": ["笔记本", "电脑", "系统", "散热", "键盘", "屏幕", "驱动", "硬盘", "显卡", "内存", "机器", "本本"],
}
"""The file does not contain the domain of a review; these words do."""


def domain_of(text: str) -> str | None:
    """Return the domain with the most words in a review; None: there is no such domain."""
    (most, domain), (second, _) = sorted(
        ((sum(map(text.count, words)), name) for name, words in WORDS.items()), reverse=True
    )[:2]
    return domain if most > second else None


def hashed(text: str) -> NDArray[np.float32]:
    """Return the normalized counts of hashed characters and pairs of characters in a text, float32."""
    counts = np.zeros(BUCKETS, np.float32)
    for gram in [*text, *map("".join, pairwise(text))]:
        counts[zlib.crc32(gram.encode()) % BUCKETS] += 1
    return counts / max(1.0, float(np.linalg.norm(counts)))


def _read(path: Path) -> Rows:
    return [(row["text_a"], int(row["label"])) for row in read_rows(path, ["text_a", "label"])]


def _by_minilm(texts: Sequence[str], out: Path) -> NDArray[np.float32]:
    """Return the mean-pooled vectors of a frozen MiniLM, computed once."""
    path = out / f"minilm-{len(texts)}.npy"
    if not path.exists():
        from onion.tasks.embedding.embedder import Embedder

        out.mkdir(parents=True, exist_ok=True)
        vectors = Embedder.from_pretrained("minilm", pooling="mean", normalize=True)(list(texts))
        partial = path.with_suffix(".partial.npy")
        np.save(partial, vectors)
        partial.replace(path)
    return np.load(path)


STREAMS = (
    Stream(
        "films",
        "An abrupt change: flipped labels",
        "The first 5,000 rows of SST-2's train file (Socher et al. 2013), which are sentences and parts of sentences; "
        "after 2,500 of them, positive and negative are exchanged. This artificial change is the hardest one: "
        "everything learned is wrong. The inputs are the mean-pooled vectors of a frozen MiniLM. The next 300 rows are "
        "held out; they may contain parts of sentences of which other parts are trained on.",
        "glue/sst-2/train.tsv",
        ("original", "flipped"),
        films,
    ),
    Stream(
        "reviews",
        "A change of domain: hotels, books, notebooks",
        "ChnSentiCorp's reviews, each text once: 1,900 of hotels, then as many of books, then of notebooks. The file "
        "does not contain the domains; they are determined by words (`WORDS` in `benchmarks/online/streams.py`), and "
        "ambiguous reviews are left out. The inputs are hashed characters and pairs of them; nothing is pretrained.",
        "chnsenticorp/train.tsv",
        ("hotels", "books", "notebooks"),
        reviews,
    ),
)
