"""Count the examples of ERNIE 2.0's pretraining tasks on Wikipedia's texts, beside their trivial baselines.

python -m scripts.pretraining_counts FOLDER

FOLDER has text_zh, text_en, cmrc2018, drcd, squad and vocab. Chinese words need the extra ``chinese``. Prints a table:
what, found, expected. Expected are the counts of a reference whose sentences were cut by a simple rule and whose list
of markers is known in part; so those of a marker, and the share of capitals, may differ by 15 %. Exit status 1: one
differs by more.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from onion.models.tokenizer import Tokenizer
from onion.tasks.pretraining.corpus.build import Build
from onion.tasks.pretraining.corpus.corpus import Corpus
from onion.tasks.pretraining.corpus.segmentation.segmenter import SegmenterSettings, make_segmenter
from onion.tasks.pretraining.examples import UNLABELLED, Example, PassExamples
from onion.tasks.pretraining.task import PretrainingTask
from onion.tasks.pretraining.tasks.capitalisation import Capitalisation
from onion.tasks.pretraining.tasks.discourse_relation import DiscourseRelation
from onion.tasks.pretraining.tasks.ir_relevance import IRRelevance
from onion.tasks.pretraining.tasks.sentence_distance import SentenceDistance
from onion.tasks.pretraining.tasks.sentence_reordering import SentenceReordering
from onion.tasks.pretraining.tasks.token_document import TokenDocument

MOST, TOLERANCE = 8000, 0.15
"""Examples that shares and baselines are counted on, and the part by which what is expected may differ."""

CAPITALS = {True: 0.143, False: 0.099}
"""The share of words with a capital in English, with the first words of sentences and without them."""


@attrs.frozen
class Text:
    """A text, and what is expected of it.

    Attributes:
        language: of the text and of the markers.
        vocabulary: the folder of the tokenizer.
        words: where words come from.
        questions: files of questions, for the relevance of passages.
        markers: how many sentences begin with some of the markers.
    """

    language: str
    vocabulary: str
    words: str
    questions: tuple[str, ...]
    markers: dict[str, int]


TEXTS = (
    Text(
        "zh",
        "ernie-1.0-zh",
        "jieba",
        ("cmrc2018/train.json", "drcd/dev.json"),
        {"由于": 625, "但": 597, "此外": 552, "然而": 428, "其中": 385, "虽然": 274, "不过": 262, "当时": 261}
        | {"同时": 237, "尽管": 233, "后来": 225, "之后": 213, "因此": 203, "随后": 201},
    ),
    Text(
        "en",
        "ernie-2.0-en",
        "tokenizer",
        ("squad/train_sample.json",),
        {"However": 875, "For example": 499, "When": 471, "After": 458, "Although": 406},
    ),
)


def tasks_of(text: Text, data: Path) -> Iterator[tuple[str, PretrainingTask]]:
    """Yield the tasks of a text, each with what it reads."""
    name = f"text_{text.language}"
    yield name, SentenceReordering()
    yield name, SentenceDistance()
    yield name, DiscourseRelation(language=text.language)
    yield name, TokenDocument()
    if text.language == "en":
        yield from ((name, Capitalisation(sentence_starts=starts)) for starts in CAPITALS)
    for file in text.questions:
        yield file, IRRelevance(questions=str(data / file))


def figures(task: PretrainingTask, samples: PassExamples) -> Iterator[tuple[str, Any]]:
    """Yield what is counted of a task's examples in the first pass: all of them, or MOST at random."""
    chosen = np.random.default_rng(0).permutation(len(samples))[:MOST]
    drawn = samples.of_pass(0)
    examples = [drawn[int(each)] for each in chosen]
    shares = shares_of(task, examples)
    half = len(examples) // 2
    yield "examples", len(samples)
    yield "mean length", round(float(np.mean([len(each["ids"]) for each in examples])), 1)
    if len(shares) <= 9:
        yield "shares", shares
    for name, value in task.baseline(examples[:half], examples[half:]).items():
        yield f"baseline {name}", round(value, 3)


def shares_of(task: PretrainingTask, examples: Sequence[Example]) -> dict[str, float]:
    """Return the share of each class among the labels, of texts or of words."""
    if task.each_token:
        labels = np.concatenate([each["token_labels"][each["token_labels"] != UNLABELLED] for each in examples])
    else:
        labels = np.array([each["label"] for each in examples])
    counts = np.bincount(labels, minlength=len(task.classes))
    return dict(zip(task.classes, (counts / len(labels)).round(3).tolist(), strict=True))


def markers(task: DiscourseRelation, samples: PassExamples) -> dict[str, int]:
    """Return how many examples each marker has."""
    drawn = samples.of_pass(0)
    labels = [drawn[each]["label"] for each in range(len(drawn))]
    return dict(zip(task.markers, np.bincount(labels, minlength=len(task.markers)).tolist(), strict=True))


def rows(text: Text, data: Path, corpus: Corpus) -> Iterator[tuple[str, Any, float | None]]:
    """Yield what is counted, what was found, and what is expected, if it is known."""
    for name, task in tasks_of(text, data):
        samples = task.samples(corpus, seed=0)
        told = f"{name}: {task.name}"
        if isinstance(task, Capitalisation):
            told += "" if task.sentence_starts else ", without sentence starts"
        for what, found in figures(task, samples):
            yield f"{told}: {what}", found, None
            if isinstance(task, Capitalisation) and what == "shares":
                yield f"{told}: capitals", found["capital"], CAPITALS[task.sentence_starts]
        if isinstance(task, DiscourseRelation):
            for marker, found in markers(task, samples).items():
                yield f"{name}: {task.name}: {marker}", found, text.markers.get(marker)


def main() -> int:
    """Print the table; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    data, wrong = parser.parse_args().folder, 0
    for text in TEXTS:
        with tempfile.TemporaryDirectory() as folder:
            build = Build(
                inputs=[str(data / f"text_{text.language}" / f"wiki_{text.language}.train.txt")],
                tokenizer=Tokenizer.from_pretrained(data / "vocab" / text.vocabulary),
                segmenter=make_segmenter(SegmenterSettings(words=text.words)),
                language=text.language,
            )
            for what, found, expected in rows(text, data, build.run(Path(folder) / "corpus")):
                far = expected is not None and abs(found - expected) > TOLERANCE * expected
                wrong += far
                told = "" if expected is None else f"{'EXPECTED' if far else 'about'} {expected}"
                print(f"{what} | {found} | {told}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
