"""Read the demo data that ERNIE 1.0 is published with: count what is in it, mask it as ERNIE does, compare its words.

python -m scripts.ernie_demo FOLDER [--vocabulary FOLDER]

FOLDER has demo_train_set.gz and demo_valid_set.gz. Prints a table: what, found, expected. The expected counts are those
of the published files; the digests of masks were made by the function of PaddlePaddle/ERNIE (tag static_graph,
ernie/batching.py) with numpy's generator seeded as below; here they come through a DataProvider and an ErnieMasker.
The words of the files, which Baidu's own segmenter has found, are compared with those that rjieba finds in the same
characters. The last row says how often one is right about next sentences without reading. Exit status 1: something
differs.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from onion import DataProvider, Observer, Runner
from onion.models.tokenizer import Tokenizer
from onion.tasks.pretraining.corpus.ernie_examples import example_of
from onion.tasks.pretraining.corpus.ernie_lines import ErnieSample, read_samples, write_samples
from onion.tasks.pretraining.corpus.segmentation.jieba import Jieba
from onion.tasks.pretraining.examples import Example
from onion.tasks.pretraining.masking.ernie import ErnieMasker, Vocabulary
from onion.tasks.pretraining.tasks.next_sentence import NextSentence

VOCABULARY, TOKENS = Vocabulary(size=18000, cls_id=1, sep_id=2, mask_id=3), 8192
COUNTS: dict[str, dict[str, Any]] = {
    "demo_train_set.gz": {
        "lines": 10000,
        "labels 0, 1": [6221, 3779],
        "tokens": 953318,
        "length: mean, least, most": [95.33, 10, 131],
        "length: percentiles 5, 25, 50, 75, 95": [36, 79, 104, 118, 126],
        "sentence 0, 1": [507319, 445999],
        "units -1, 0, 1": [30000, 650406, 272912],
        "units of 1, 2, 3, 4 tokens": [0.5915, 0.3986, 0.0087, 0.0010],
        "mean length of a unit": 1.4196,
        "[UNK], [MASK], [PAD]": [364, 0, 0],
        "unit -1 at [CLS] and [SEP] and nowhere else": True,
        "## pieces within a unit, that begin one": [3361, 0],
    },
    "demo_valid_set.gz": {
        "lines": 6000,
        "labels 0, 1": [3709, 2291],
        "tokens": 571123,
        "length: mean, least, most": [95.19, 9, 130],
        "length: percentiles 5, 25, 50, 75, 95": [34, 79, 104, 117, 126],
        "sentence 0, 1": [306181, 264942],
        "units -1, 0, 1": [18000, 389948, 163175],
        "units of 1, 2, 3, 4 tokens": [0.593, 0.3968, 0.0091, 0.0010],
        "mean length of a unit": 1.4185,
        "[UNK], [MASK], [PAD]": [241, 0, 0],
        "unit -1 at [CLS] and [SEP] and nowhere else": True,
        "## pieces within a unit, that begin one": [2097, 0],
    },
}
FIRST_BATCH = {
    "words": [100, "0e5756ee8dbf82fd", "215755a6bd77a79f", "74e3ba7d0f3ffcd4"],
    "characters": [110, "fa6ce7a769f8a486", "8f0af1665f7d3893", "dfa458b483dceddb"],
}
"""Targets, and digests of positions, labels and ids, of the first 8 lines."""

WHOLE = {
    "words": [157, 1278367, 139301, [0.8006, 0.0994, 0.1], 47],
    "characters": [157, 1278367, 138667, [0.8006, 0.1002, 0.0992], 23],
}
"""Batches, padded places, targets, shares of [MASK], random and kept words, rows without a target."""

LINES, LEAST = 400, 0.92
"""Lines whose words are compared, and the F1 that the borders between words have at least."""

NEXT_SENTENCES = {
    "accuracy.commonest": 0.618,
    "accuracy.lengths": 0.618,
    "accuracy.shared_tokens": 0.799,
    "accuracy.shared_bigrams": 0.834,
    "accuracy.overlap": 0.849,
}
"""What a network has to beat on the valid set: always no, and counting what both sentences share."""


def counts(samples: Sequence[ErnieSample], tokenizer: Tokenizer) -> dict[str, Any]:
    """Return what COUNTS has of a file."""
    lengths = [len(each.ids) for each in samples]
    ids = np.concatenate([each.ids for each in samples])
    units = np.concatenate([each.units for each in samples])
    sentences = np.concatenate([each.sentences for each in samples])
    sizes = np.concatenate([np.bincount(each.words[each.words >= 0]) for each in samples])
    return {
        "lines": len(samples),
        "labels 0, 1": np.bincount([each.label for each in samples]).tolist(),
        "tokens": len(units),
        "length: mean, least, most": [round(float(np.mean(lengths)), 2), min(lengths), max(lengths)],
        "sentence 0, 1": np.bincount(sentences).tolist(),
        "units -1, 0, 1": np.bincount(units + 1).tolist(),
        "length: percentiles 5, 25, 50, 75, 95": np.percentile(lengths, (5, 25, 50, 75, 95)).tolist(),
        "units of 1, 2, 3, 4 tokens": [round(float((sizes == size).mean()), 4) for size in (1, 2, 3, 4)],
        "mean length of a unit": round(float(sizes.mean()), 4),
        "[UNK], [MASK], [PAD]": [int((ids == each).sum()) for each in _special(tokenizer)],
        "unit -1 at [CLS] and [SEP] and nowhere else": bool((np.isin(ids, _borders(tokenizer)) == (units == -1)).all()),
        "## pieces within a unit, that begin one": _inside(tokenizer, ids, units),
    }


def _special(tokenizer: Tokenizer) -> tuple[int, int, int]:
    return tokenizer.unk_id, tokenizer.mask_id, tokenizer.pad_id


def _borders(tokenizer: Tokenizer) -> tuple[int, int]:
    return tokenizer.cls_id, tokenizer.sep_id


def _inside(tokenizer: Tokenizer, ids: np.ndarray, units: np.ndarray) -> list[int]:
    """Return how many of the pieces that begin with ## are inside a unit, and how many begin one."""
    every = np.arange(VOCABULARY.size)
    pieces = np.array([(piece or "").startswith("##") for piece in tokenizer.tokens(every)])[ids]
    return [int((pieces & (units == 1)).sum()), int((pieces & (units == 0)).sum())]


def batches(samples: Sequence[ErnieSample]) -> Iterator[list[Example]]:
    """Yield batches of at most TOKENS padded places, in the order of the file, as ERNIE makes them."""
    batch: list[Example] = []
    longest = 0
    for each in samples:
        longest = max(longest, len(each.ids))
        if batch and (len(batch) + 1) * longest > TOKENS:
            yield batch
            batch, longest = [], len(each.ids)
        batch.append(example_of(each))
    yield batch


def masked(given: Sequence[list[Example]], words: bool, seed: int) -> list[dict[str, Any]]:
    """Return what an onion makes of batches of unmasked examples."""
    found: list[dict[str, Any]] = []
    provider = DataProvider(given, 1, collate=lambda batches: batches[0])
    masker = ErnieMasker(VOCABULARY, seed, word_share=1.0 if words else 0.0)
    Runner(provider, masker, Observer(on_batch_begin=lambda state: found.append(state.batch))).run(passes=1)
    return found


def first_batch(samples: Sequence[ErnieSample], words: bool) -> list[Any]:
    """Return what FIRST_BATCH has of the first 8 samples."""
    (found,) = masked([[example_of(each) for each in samples[:8]]], words, seed=0)
    digests = (_digest(found[name]) for name in ("masked_positions", "word_labels", "input_ids"))
    return [len(found["masked_positions"]), *digests]


def whole_file(samples: Sequence[ErnieSample], words: bool) -> list[Any]:
    """Return what WHOLE has of all samples."""
    found = masked([*batches(samples)], words, seed=1)
    places = sum(batch["input_ids"].size for batch in found)
    without = sum(_without_target(batch) for batch in found)
    new = np.concatenate([batch["input_ids"].reshape(-1)[batch["masked_positions"]] for batch in found])
    labels = np.concatenate([batch["word_labels"] for batch in found])
    kept, hidden = new == labels, new == VOCABULARY.mask_id
    shares = [round(float(each.mean()), 4) for each in (hidden, ~kept & ~hidden, kept)]
    return [len(found), places, len(labels), shares, without]


def sentences_of_words(sample: ErnieSample, tokenizer: Tokenizer) -> Iterator[list[str]]:
    """Yield the words of each sentence; an unknown token is a character that no dictionary has."""
    pieces = [piece or "" for piece in tokenizer.tokens(sample.ids)]
    texts = ["\ufffd" if piece == "[UNK]" else piece.removeprefix("##") for piece in pieces]
    for sentence in (0, 1):
        words = sample.words[(sample.sentences == sentence) & (sample.words >= 0)]
        yield ["".join(texts[place] for place in np.flatnonzero(sample.words == word)) for word in np.unique(words)]


def agreement(sentences: Sequence[Sequence[str]]) -> tuple[list[float], float]:
    """Compare rjieba's words with given ones: precision, recall and F1 of borders between words, and F1 of words."""
    found = Jieba().segment(["".join(words) for words in sentences])
    borders, whole = np.zeros(3), np.zeros(3)
    for words, spans in zip(sentences, found, strict=True):
        ends = np.cumsum([len(word) for word in words]).tolist()
        ours, theirs = set(spans.words[:-1, 1].tolist()), set(ends[:-1])
        borders += len(ours & theirs), len(ours), len(theirs)
        ours, theirs = set(map(tuple, spans.words.tolist())), set(zip([0, *ends[:-1]], ends, strict=True))
        whole += len(ours & theirs), len(ours), len(theirs)
    return _scores(*borders), _scores(*whole)[-1]


def _scores(both: float, ours: float, theirs: float) -> list[float]:
    """Return precision, recall and F1."""
    return [both / ours, both / theirs, 2 * both / (ours + theirs)]


def _without_target(batch: dict[str, Any]) -> int:
    rows, length = batch["input_ids"].shape
    return int(rows) - len(np.unique(np.array(batch["masked_positions"]) // length))


def next_sentences(folder: Path) -> dict[str, float]:
    """Return what is right about the next sentences of the valid set without reading, counted on the train set."""
    train, held_out = ([example_of(each) for each in read_samples(folder / name)] for name in COUNTS)
    return {name: round(value, 3) for name, value in NextSentence().baseline(train, held_out).items()}


def _digest(values: Any) -> str:
    return hashlib.sha256(np.asarray(values).astype("<i8").tobytes()).hexdigest()[:16]


def _same(samples: Sequence[ErnieSample]) -> bool:
    """Whether what is written is read back equal."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "again.gz"
        write_samples(path, samples)
        return all(
            one.label == other.label
            and all(np.array_equal(getattr(one, name), getattr(other, name)) for name in ("ids", "sentences", "units"))
            for one, other in zip(samples, read_samples(path), strict=True)
        )


def rows(folder: Path, vocabulary: Path) -> Iterator[tuple[str, Any, Any]]:
    """Yield what is counted, what was found, and what is expected."""
    tokenizer = Tokenizer.from_pretrained(vocabulary)
    for name, expected in COUNTS.items():
        samples = list(read_samples(folder / name))
        for what, found in counts(samples, tokenizer).items():
            yield f"{name}: {what}", found, expected[what]
        yield f"{name}: written and read back equal", _same(samples), True
        if name == "demo_train_set.gz":
            for units in ("words", "characters"):
                by_words = units == "words"
                yield f"masks of 8 lines by {units}", first_batch(samples, by_words), FIRST_BATCH[units]
                yield f"masks of all lines by {units}", whole_file(samples, by_words), WHOLE[units]
        else:
            words = [each for sample in samples[:LINES] for each in sentences_of_words(sample, tokenizer) if each]
            (precision, recall, f1), of_words = agreement(words)
            told = f"precision {precision:.3f}, recall {recall:.3f}, F1 {f1:.3f}, F1 of words {of_words:.3f}"
            yield f"rjieba's borders in {LINES} lines: {told}; F1 at least {LEAST}", f1 >= LEAST, True
    yield "next sentences without reading", next_sentences(folder), NEXT_SENTENCES


def main() -> int:
    """Print the table; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--vocabulary", type=Path, help="default: vocab/ernie-1.0-zh beside the folder")
    options = parser.parse_args()
    vocabulary = options.vocabulary or options.folder.resolve().parent / "vocab" / "ernie-1.0-zh"
    wrong = 0
    for what, found, expected in rows(options.folder, vocabulary):
        same = found == expected
        wrong += not same
        print(f"{what} | {found} | {'same' if same else f'EXPECTED {expected}'}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
