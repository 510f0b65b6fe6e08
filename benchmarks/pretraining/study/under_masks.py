"""A pretrained model on held-out text under masks of one kind; prints its figures in JSON.

python -m benchmarks.pretraining.study.under_masks ENCODER CORPUS LEVEL
"""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.pretraining.study.arms import PRETRAINING
from onion import DataProvider, Evaluator, Forward, Runner
from onion.device import use_threads
from onion.models.pretraining_heads import EncoderForPretraining
from onion.tasks.collector import Decoder
from onion.tasks.pretraining.corpus.corpus import Corpus
from onion.tasks.pretraining.corpus.opening import open_corpus
from onion.tasks.pretraining.examples import collate
from onion.tasks.pretraining.masking.masking import MaskedExamples, Masking
from onion.tasks.pretraining.metric import PretrainingMetric
from onion.tasks.pretraining.networks import PretrainingNetwork
from onion.tasks.pretraining.tasks.knowledge_masking import KnowledgeMasking

BATCH_TOKENS = 4096


def masked_examples(corpus: Corpus, level: str) -> MaskedExamples:
    """Return the segments of a corpus under masks that are always the same."""
    seed = int(PRETRAINING["seed"])
    return MaskedExamples(KnowledgeMasking().samples(corpus, seed), Masking(levels=level), corpus.tokenizer, seed)


def figures(encoder: Path, corpus: Corpus, level: str) -> dict[str, float]:
    """Return what ``PretrainingMetric`` tells of masked words."""
    known = EncoderForPretraining.from_pretrained(encoder)
    network = PretrainingNetwork(known.encoder, known.cls.predictions)
    masked = masked_examples(corpus, level)
    data = DataProvider(
        masked.of_pass(0),
        tokens_per_batch=BATCH_TOKENS,
        lengths=masked.lengths,
        collate=partial(collate, pad_id=corpus.tokenizer.pad_id),
    )
    test = Runner(data, Evaluator(PretrainingMetric()), Decoder(network), Forward(network))
    found: dict[str, Any] = dict(test.run(passes=1).metrics)
    return {name: float(value) for name, value in found.items()}


if __name__ == "__main__":
    use_threads()
    print(json.dumps(figures(Path(sys.argv[1]), open_corpus(sys.argv[2]), sys.argv[3])))
