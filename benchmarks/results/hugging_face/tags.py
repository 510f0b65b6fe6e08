"""Tagging, as in transformers' run_ner.py: the first sub-token of every token has its tag; figures of seqeval."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from seqeval.metrics import f1_score, precision_score, recall_score
from transformers import AutoModelForTokenClassification, DataCollatorForTokenClassification, Trainer

from benchmarks.results.hugging_face.files import tagged
from benchmarks.results.hugging_face.training import Prepared, in_order

IGNORED = -100
OUTSIDE = "O"


def tagging(job: dict[str, Any], tokenizer: Any) -> Prepared:
    """Prepare a job with a tag a token."""
    rows = tagged(job["train"])
    names = sorted({tag for _, tags in rows for tag in tags})

    def figures(trainer: Trainer, path: str) -> dict[str, float]:
        tokens, true = zip(*tagged(path), strict=True)
        examples, firsts = _examples(tokens, [[0] * len(tags) for tags in true], tokenizer, job)
        numbers = np.argmax(in_order(trainer, examples), axis=-1)
        told = [_tags(*each, names) for each in zip(true, firsts, numbers, strict=True)]
        true = list(true)
        return {
            "precision": precision_score(true, told),
            "recall": recall_score(true, told),
            "f1": f1_score(true, told),
        }

    numbered = [[names.index(tag) for tag in tags] for _, tags in rows]
    examples, _ = _examples([tokens for tokens, _ in rows], numbered, tokenizer, job)
    model = AutoModelForTokenClassification.from_pretrained(job["encoder"], num_labels=len(names))
    return Prepared(model, examples, DataCollatorForTokenClassification(tokenizer), figures)


def _examples(
    tokens: Sequence[Sequence[str]], tags: Sequence[Sequence[int]], tokenizer: Any, job: dict[str, Any]
) -> tuple[list[dict[str, Any]], list[dict[int, int]]]:
    """Examples, and for each where the first sub-token of its tokens stands."""
    length = job["options"]["max_length"]
    found = tokenizer(list(tokens), is_split_into_words=True, truncation=True, max_length=length)
    examples, all_firsts = [], []
    for place, numbers in enumerate(tags):
        example = {name: values[place] for name, values in found.items()}
        firsts: dict[int, int] = {}
        for position, word in enumerate(found.word_ids(place)):
            if word is not None:
                firsts.setdefault(word, position)
        example["labels"] = [IGNORED] * len(example["input_ids"])
        for word, position in firsts.items():
            example["labels"][position] = numbers[word]
        examples.append(example)
        all_firsts.append(firsts)
    return examples, all_firsts


def _tags(true: Sequence[str], firsts: dict[int, int], numbers: np.ndarray, names: Sequence[str]) -> list[str]:
    """A tag for every token; one that was cut off, or has no sub-token, is outside."""
    return [names[numbers[firsts[word]]] if word in firsts else OUTSIDE for word in range(len(true))]
