"""Two small corpora in folders, a config, and pretrainings of a few steps."""

import json
import random

import pytest

from onion.models.tokenizer import Tokenizer
from onion.tasks.pretraining.corpus.build import Build
from onion.tasks.pretraining.corpus.segmentation.tokenizer_words import TokenizerWords
from tests.tasks.pretraining.texts import SPECIAL

WORDS = [
    "the",
    "cat",
    "dog",
    "bird",
    "sees",
    "hears",
    "likes",
    "a",
    "red",
    "small",
    "old",
    "tree",
    "house",
    "river",
    ".",
]


def written(path, seed, documents=24):
    """Write documents of one paragraph, whose sentences keep to one animal."""
    drawn = random.Random(seed)
    texts = []
    for _ in range(documents):
        animal = drawn.choice(["cat", "dog", "bird"])
        sentences = [
            f"The {animal} {drawn.choice(['sees', 'hears', 'likes'])} a {drawn.choice(['red', 'small', 'old'])} "
            f"{drawn.choice(['tree', 'house', 'river'])}."
            for _ in range(drawn.randint(3, 6))
        ]
        texts.append(" ".join(sentences))
    path.write_text("\n\n".join(texts) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def corpora(tmp_path_factory):
    """The folders of two corpora: to learn from, and to test on."""
    folder = tmp_path_factory.mktemp("corpora")
    (folder / "vocabulary").mkdir()
    (folder / "vocabulary" / "vocab.txt").write_text("\n".join([*SPECIAL, *WORDS]) + "\n", encoding="utf-8")
    tokenizer = Tokenizer.from_pretrained(folder / "vocabulary")
    for name, seed in (("train", 1), ("valid", 2)):
        text = written(folder / f"{name}.txt", seed)
        Build(inputs=[str(text)], tokenizer=tokenizer, segmenter=TokenizerWords()).run(folder / name)
    return folder


@pytest.fixture(scope="session")
def config_file(corpora):
    """The config of a tiny encoder."""
    path = corpora / "config.json"
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    path.write_text(json.dumps({"model_type": "bert", "vocab_size": 32, "max_position_embeddings": 48, **sizes}))
    return path


@pytest.fixture
def given(corpora, config_file):
    """The settings of a short pretraining; keyword arguments replace some."""

    def make(**changes):
        usual = {
            "corpus": str(corpora / "train"),
            "config": str(config_file),
            "max_steps": 6,
            "max_length": 48,
            "tokens_per_batch": 128,
            "learning_rate": 1e-2,
            "save_every": 2,
            "log_every": 2,
        }
        return {name: value for name, value in (usual | changes).items() if value is not None}

    return make
