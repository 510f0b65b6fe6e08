"""What the sides are given: the rows of ERNIE's demo, a few masked batches of them, and one network in two layouts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from benchmarks.pretraining.rows import IGNORED, Batch, Row, write_batches, write_rows
from benchmarks.pretraining.work import Job
from onion.models.config import EncoderConfig
from onion.models.encoder import Encoder
from onion.models.pretraining_heads import EncoderForPretraining
from onion.models.tokenizer import Tokenizer
from onion.tasks.batches import mask_of
from onion.tasks.pretraining.corpus.ernie_examples import example_of
from onion.tasks.pretraining.corpus.ernie_lines import ErnieSample, read_samples
from onion.tasks.pretraining.examples import collate
from onion.tasks.pretraining.masking.ernie import Vocabulary, masked

# onion comes first, so that it can choose the math library that Paddle loads
# isort: split
import paddle

RECIPE = {"batch_size": 32, "lr": 5e-4, "weight_decay": 0.01, "clip": 1.0, "seed": 1, "share": 0.15}
NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
FEW = 5
"""Batches on which all sides have to have the same costs."""

SHAPE = EncoderConfig(
    vocab_size=18000,
    hidden_size=256,
    num_hidden_layers=4,
    num_attention_heads=4,
    intermediate_size=1024,
    max_position_embeddings=513,
    hidden_act="relu",
)


def job(room: Path, lines: Path, vocabulary: Path, steps: int, shape: EncoderConfig = SHAPE) -> Job:
    """Write it all, and return the job of every side; the first rows are as many as ``steps`` batches have.

    Raises:
        ValueError: there are fewer.
    """
    size = int(RECIPE["batch_size"])
    samples = list(islice(read_samples(lines), max(steps, FEW) * size))
    if len(samples) < max(steps, FEW) * size:
        raise ValueError(f"{lines} has {len(samples)} rows, too few for {steps} batches of {size}; ask for fewer steps")
    write_batches(str(room / "few.npz"), list(few(samples[: FEW * size], shape.vocab_size)))
    rows: list[Row] = [
        {"ids": each.ids, "types": each.sentences, "units": each.units, "label": each.label} for each in samples
    ]
    write_rows(str(room / "rows.npz"), rows[: steps * size])
    tokens = sum(len(row["ids"]) for row in rows[: steps * size])
    named = {"rows": str(room / "rows.npz"), "few": str(room / "few.npz"), "vocab_size": shape.vocab_size}
    return {**RECIPE, **named, "tokens": tokens, **folders(room, vocabulary, shape)}


def few(samples: Sequence[ErnieSample], vocab_size: int) -> Iterator[Batch]:
    """Yield batches with ERNIE's own masks."""
    generator, vocabulary = np.random.RandomState(0), Vocabulary(vocab_size, cls_id=1, sep_id=2, mask_id=3)
    size = int(RECIPE["batch_size"])
    for begin in range(0, len(samples), size):
        given = [example_of(each) for each in samples[begin : begin + size]]
        batch = collate(masked(given, True, vocabulary, generator))
        words = np.full(batch["input_ids"].size, IGNORED)
        words[batch["masked_positions"]] = batch["word_labels"]
        yield {
            "ids": batch["input_ids"],
            "types": batch["token_type_ids"],
            "mask": mask_of(batch).astype(np.int64),
            "words": words.reshape(batch["input_ids"].shape),
            "labels": batch["labels"],
        }


def folders(room: Path, vocabulary: Path, shape: EncoderConfig) -> dict[str, str]:
    """Write the same random weights as BERT for transformers and as ERNIE for PaddleNLP, with dropout and without."""
    tokenizer = Tokenizer.from_pretrained(vocabulary)
    found = {}
    for model_type, layout in (("bert", "huggingface"), ("ernie", "paddlenlp")):
        given: tuple[tuple[str, dict[str, float]], ...] = (model_type, {}), (f"{model_type} still", NO_DROPOUT)
        for title, changes in given:
            folder = room / title.replace(" ", "-")
            folder.mkdir()
            tokenizer.save_pretrained(folder)
            paddle.seed(1)
            network = EncoderForPretraining(Encoder(shape.changed(model_type=model_type, **changes)))
            network.save_pretrained(folder, layout=layout)
            found[title] = str(folder)
    return found
