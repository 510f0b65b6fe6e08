"""What is pretrained, on what, and what it is fine-tuned on: all settings of the study stand here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

TOKENS = 14_000_000
"""Of a pretraining, nearly: a batch may have a few less than ``tokens_per_batch``."""

SHAPE = {
    "model_type": "ernie",
    "vocab_size": 18000,
    "hidden_size": 256,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "intermediate_size": 1024,
    "max_position_embeddings": 513,
    "hidden_act": "relu",
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
}
"""The config.json of the encoder, as benchmarks/results has it for Chinese."""

BATCH_TOKENS, WARMUP_STEPS = 4096, 500
PRETRAINING: Mapping[str, Any] = {
    "tokens_per_batch": BATCH_TOKENS,
    "learning_rate": 5e-4,
    "adam_beta1": 0.9,
    "adam_beta2": 0.98,
    "weight_decay": 0.01,
    "max_grad_norm": 1.0,
    "schedule": "linear",
    "test_every": "pass",
    "seed": 1,
}
"""Settings of ``onion pretrain`` that all arms have; the rate falls to 0."""

BUILD = ("--segmenter", "jieba", "--entities", "lac", "--language", "zh")
"""Of ``onion corpus build``; whoever masks characters only does not look at the units."""

EVERYTHING, WIKIPEDIA, HELD_OUT = "everything", "text_zh", "held-out"
"""The corpora: the texts of all training splits, one of them alone, and its validation split."""

MASKS = {"characters": "character", "words": "word", "entities": "entity"}
"""Under which masks each model is tested -> ``masking.levels``; ``entity`` masks words outside of entities."""


@dataclass(frozen=True)
class Arm:
    """A model: how it is pretrained, if it is.

    ``options`` go to ``onion pretrain`` besides PRETRAINING; ``times`` is its length in TOKENS.
    """

    name: str
    title: str
    corpus: str | None = EVERYTHING
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    times: int = 1


def _masked(level: str) -> dict[str, Any]:
    return {"tasks": ["knowledge-masking"], "masking.levels": level}


NONE = Arm("none", "random weights", corpus=None)
CHARACTERS = Arm("characters", "characters masked, as BERT does", options=_masked("character"))
WORDS = Arm("words", "words masked", options=_masked("word"))
ENTITIES = Arm("entities", "words and entities masked", options=_masked("entity"))
ALONE = Arm("text_zh", "words masked, Wikipedia's text alone (CC BY-SA)", WIKIPEDIA, _masked("word"))
LEVELS = (CHARACTERS, WORDS, ENTITIES)

TASKS = ["knowledge-masking", "sentence-reordering", "sentence-distance", "discourse-relation"]
"""Of the schedules, in the order in which the continual one begins them."""


def _scheduled(order: str) -> dict[str, Any]:
    return {"tasks": TASKS, "order": order, "masking.levels": "word"}


CONTINUAL = Arm("continual", "four tasks, continually", WIKIPEDIA, _scheduled("continual"))
TOGETHER = Arm("together", "four tasks, all together", WIKIPEDIA, _scheduled("together"))
ONE_BY_ONE = Arm("one-by-one", "four tasks, one after the other", WIKIPEDIA, _scheduled("one-by-one"))
SCHEDULES = (CONTINUAL, TOGETHER, ONE_BY_ONE)

ARMS = (NONE, *LEVELS, ALONE, *SCHEDULES)
"""In the order in which they are run; the longer one comes last (see ``longer``)."""

LONGER = "longer"


def longer(arm: Arm) -> Arm:
    """Return an arm that is trained three times as long."""
    return Arm(LONGER, f"{arm.title}, three times as long", arm.corpus, arm.options, times=3)


@dataclass(frozen=True)
class Data:
    """A data set to fine-tune on; the settings besides are those of benchmarks/results for these rows."""

    name: str
    title: str
    task: str
    folder: str
    figure: str
    passes: int

    @property
    def files(self) -> tuple[str, str]:
        """The training file and the dev file, below the folder of data."""
        return f"{self.folder}/train.tsv", f"{self.folder}/dev.tsv"


DATA_SETS = (
    Data("chnsenticorp", "ChnSentiCorp", "classify", "chnsenticorp", "accuracy", 3),
    Data("lcqmc", "LCQMC", "classify", "lcqmc", "accuracy", 3),
    Data("tnews", "TNEWS", "classify", "tnews", "accuracy", 1),
    Data("msra-ner", "MSRA-NER", "tag", "msra_ner", "f1", 1),
)
SEEDS = (1, 2, 3)
FINE_TUNING: Mapping[str, Any] = {"lr": 3e-4, "options": {"max_length": 128}}
"""The same for all arms: chosen for random weights long before, by benchmarks/results, and not for any of these."""
