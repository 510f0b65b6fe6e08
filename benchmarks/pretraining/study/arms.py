"""What is pretrained, on what, and what it is fine-tuned on: all settings of the study stand here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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

PRETRAINING: Mapping[str, Any] = {
    "tokens_per_batch": 1024,
    "learning_rate": 1e-3,
    "warmup_ratio": 0.1,
    "adam_beta1": 0.9,
    "adam_beta2": 0.98,
    "adam_epsilon": 1e-6,
    "weight_decay": 0.01,
    "max_grad_norm": 1.0,
    "schedule": "linear",
    "test_every": "pass",
    "seed": 1,
}
"""Settings of ``onion pretrain`` that all arms have, as EARLIER found them; the rate falls to 0."""

CHINESE = ("--segmenter", "jieba", "--entities", "lac", "--language", "zh")
ENGLISH = ("--language", "en")
"""Of ``onion corpus build``; whoever masks characters only does not look at the units."""

EVERYTHING, WIKIPEDIA, HELD_OUT = "everything", "text_zh", "held-out"
WIKIPEDIA_EN, HELD_OUT_EN = "text_en", "held-out-en"
"""The corpora: the texts of all training splits, Wikipedia's alone, and its validation split."""

MASKS = {"characters": "character", "words": "word", "entities": "entity"}
"""Under which masks each model is tested -> ``masking.levels``; ``entity`` masks words outside of entities."""


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
PAIRS_ALONE = DATA_SETS[1:2]
SEEDS = (1, 2, 3)
FINE_TUNING: Mapping[str, Any] = {"lr": 3e-4, "options": {"max_length": 128}}
"""The same for all arms: chosen for random weights long before, by benchmarks/results, and not for any of these."""


@dataclass(frozen=True)
class Arm:
    """A model: how it is pretrained, if it is, and what it is fine-tuned on.

    Attributes:
        corpus, held_out: what it learns from, and is tested on; a corpus of None: it is not pretrained.
        options: go to ``onion pretrain`` besides PRETRAINING.
        files: options that are files, below the folder of data.
        encoder: by name, that it begins with; None: it has SHAPE and random weights.
        dropout: of SHAPE.
        tokens: that it reads.
        data: what it is fine-tuned on.
        shipped: whether it is fine-tuned as it comes with onion: with 16 bits, by its name.
    """

    name: str
    title: str
    corpus: str | None = EVERYTHING
    held_out: str = HELD_OUT
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    files: Mapping[str, str] = field(default_factory=dict, hash=False)
    encoder: str | None = None
    dropout: float = 0.1
    tokens: int = TOKENS
    data: Sequence[Data] = DATA_SETS
    shipped: bool = False


SHARE = 0.4
"""Of the units that are masked, as SHARES found it; Wettig et al. 2023 (arXiv 2202.08005) find it for larger models."""


def _masked(level: str) -> dict[str, Any]:
    return {"tasks": ["knowledge-masking"], "masking.levels": level, "masking.share": SHARE}


RECIPE_TOKENS = 1_228_800


def _recipe(tokens_per_batch: int, rate: float, dropout: float, share: float | None = None) -> Arm:
    options: dict[str, Any] = {"tasks": ["knowledge-masking"], "masking.levels": "word"}
    options |= {"tokens_per_batch": tokens_per_batch, "learning_rate": rate}
    name = f"recipe-{tokens_per_batch}-{rate:g}-{dropout:g}"
    title = f"words masked, {RECIPE_TOKENS:,} tokens"
    if share is None:
        options |= {"adam_epsilon": 1e-8}
    else:
        name, title, options = f"{name}-{share:g}", f"{share:g} of the {title}", {**options, "masking.share": share}
    return Arm(name, title, options=options, dropout=dropout, tokens=RECIPE_TOKENS, data=())


EARLIER = (_recipe(4096, 1e-3, 0.0), _recipe(1024, 1e-3, 0.0), _recipe(1024, 2e-3, 0.0), _recipe(1024, 1e-3, 0.1))
"""Short pretrainings, to choose size of batch, rate and dropout by, of a time when the bias of the masked LM head began
with zeros and Adam's epsilon was 1e-8. They are not run again: their results are kept."""

SHARES = (_recipe(1024, 1e-3, 0.1, 0.15), _recipe(1024, 1e-3, 0.1, SHARE))
"""To choose the share of masked words by, with what ``onion pretrain`` does now."""


NONE = Arm("none", "random weights", corpus=None)
CHARACTERS = Arm("characters", "characters masked, as BERT does", options=_masked("character"))
WORDS = Arm("words", "words masked", options=_masked("word"))
ENTITIES = Arm("entities", "words and entities masked", options=_masked("entity"))
ALONE = Arm(
    "text_zh", "words masked, Wikipedia's text alone (CC BY-SA)", WIKIPEDIA, options=_masked("word"), shipped=True
)
LEVELS = (CHARACTERS, WORDS, ENTITIES)

TASKS = ["knowledge-masking", "sentence-reordering", "sentence-distance", "discourse-relation"]
"""Of the schedules, in the order in which the continual one begins them."""


def _scheduled(order: str, title: str) -> Arm:
    options = {**_masked("word"), "tasks": TASKS, "order": order}
    return Arm(order, f"four tasks on Wikipedia's text, {title}", WIKIPEDIA, options=options, data=PAIRS_ALONE)


CONTINUAL = _scheduled("continual", "continually")
TOGETHER = _scheduled("together", "all together")
ONE_BY_ONE = _scheduled("one-by-one", "one after the other")
SCHEDULES = (CONTINUAL, TOGETHER, ONE_BY_ONE)


def _classes(tasks: Sequence[str], **more: Any) -> dict[str, Any]:
    """Return options for tasks that mask nothing: their classes are the question."""
    return {"tasks": list(tasks), **{f"{name}.masks": False for name in tasks}, "adam_epsilon": 1e-8, **more}


SENTENCE_TASKS = ("sentence-reordering", "sentence-distance", "discourse-relation", "ir-relevance")

CLASSES_ZH = Arm(
    "classes-zh",
    "from wiki-zh, tasks of texts",
    WIKIPEDIA,
    options={
        **_classes(SENTENCE_TASKS),
        "tokens_per_batch": 4096,
        "learning_rate": 2e-4,  # at 1e-3, with batches of 1,024 tokens, nothing was learned: the commonest class won
    },
    files={"ir-relevance.questions": "cmrc2018/train.json", "ir-relevance.held_out": "cmrc2018/dev.json"},
    encoder="wiki-zh",
    tokens=8_000_000,
    data=(),
)
CLASSES_EN = Arm(
    "classes-en",
    "from minilm, tasks of words",
    WIKIPEDIA_EN,
    HELD_OUT_EN,
    options={**_classes(("capitalisation", "token-document")), "learning_rate": 1e-4},
    encoder="minilm",
    tokens=800_000,
    data=(),
)
SENTENCES_EN = Arm(
    "sentences-en",
    "from minilm, tasks of texts",
    WIKIPEDIA_EN,
    HELD_OUT_EN,
    options={
        **_classes(SENTENCE_TASKS),
        "discourse-relation.language": "en",
        "learning_rate": 1e-4,
    },
    files={"ir-relevance.questions": "squad/train_sample.json", "ir-relevance.held_out": "xquad/xquad.en.json"},
    encoder="minilm",
    tokens=3_000_000,
    data=(),
)
CLASSES = (CLASSES_ZH, SENTENCES_EN, CLASSES_EN)
"""The tasks of ERNIE 2.0 that have classes, from a pretrained encoder: are they better than trivial baselines?"""

ARMS = (*SHARES, ALONE, NONE, *LEVELS, *SCHEDULES, *CLASSES)
"""In the order in which they are run; the longer one comes last (see ``longer``)."""

FINE_TUNED = (NONE, *LEVELS, ALONE, *SCHEDULES)
"""The lines of the table of fine-tunings."""

LONGER = "longer"


def longer(arm: Arm) -> Arm:
    """Return an arm that is trained three times as long."""
    title = f"{arm.title}, three times as long"
    return Arm(LONGER, title, arm.corpus, options=arm.options, tokens=3 * arm.tokens)
