"""A pretrained model on held-out text under masks of one kind; prints its figures in JSON.

python -m benchmarks.pretraining.study.under_masks ENCODER CORPUS LEVEL
"""

from __future__ import annotations

import json
import sys
from functools import partial
from typing import Any

from benchmarks.frame.processes import THREADS
from benchmarks.pretraining.study.arms import BATCH_TOKENS, PRETRAINING
from onion import DataProvider, Evaluator, Forward, Runner
from onion.device import use_threads
from onion.models.pretraining_heads import EncoderForPretraining
from onion.tasks.collector import Decoder
from onion.tasks.pretraining.corpus.opening import open_corpus
from onion.tasks.pretraining.examples import collate
from onion.tasks.pretraining.masking.masking import MaskedExamples, Masking
from onion.tasks.pretraining.metric import PretrainingMetric
from onion.tasks.pretraining.networks import PretrainingNetwork
from onion.tasks.pretraining.tasks.knowledge_masking import KnowledgeMasking


def figures(encoder: str, corpus: str, level: str) -> dict[str, float]:
    """Return what ``PretrainingMetric`` tells of masked words."""
    text = open_corpus(corpus)
    known = EncoderForPretraining.from_pretrained(encoder)
    network = PretrainingNetwork(known.encoder, known.cls.predictions)
    seed = int(PRETRAINING["seed"])
    masked = MaskedExamples(KnowledgeMasking().samples(text, seed), Masking(levels=level), text.tokenizer, seed)
    data = DataProvider(
        masked.of_pass(0),
        tokens_per_batch=BATCH_TOKENS,
        lengths=masked.lengths,
        collate=partial(collate, pad_id=text.tokenizer.pad_id),
    )
    test = Runner(data, Evaluator(PretrainingMetric()), Decoder(network), Forward(network))
    found: dict[str, Any] = dict(test.run(passes=1).metrics)
    return {name: float(value) for name, value in found.items()}


if __name__ == "__main__":
    use_threads(THREADS)
    print(json.dumps(figures(*sys.argv[1:])))
