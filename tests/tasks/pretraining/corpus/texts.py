"""Raw texts in the words of the tiny tokenizer, and builds of them."""

import hashlib
import random
from pathlib import Path

from onion.models.tokenizer import Tokenizer
from onion.tasks.pretraining.corpus.build import Build
from onion.tasks.pretraining.corpus.segmentation.tokenizer_words import TokenizerWords
from tests.fresh_python import module
from tests.tasks.helpers import BAD, GOOD, PLAIN, tiny_encoder

WORDS = [*GOOD, *BAD, *PLAIN, "中文", "unheard-of"]


def some_text(documents, seed=0):
    """Documents of some paragraphs of some sentences, as plain text."""
    draw = random.Random(seed)

    def sentence():
        return " ".join(draw.choices(WORDS, k=draw.randint(2, 9))).capitalize() + draw.choice(".!")

    def paragraph():
        return " ".join(sentence() for _ in range(draw.randint(1, 4)))

    return "\n\n".join("\n".join(paragraph() for _ in range(draw.randint(1, 3))) for _ in range(documents)) + "\n"


def place_in(folder, documents=60):
    """Fill a folder with the tokenizer ``tiny`` and the texts ``a.txt`` and ``b.txt``; return it."""
    tiny_encoder(folder / "tiny")
    (folder / "a.txt").write_text(some_text(documents))
    (folder / "b.txt").write_text(some_text(documents // 2, seed=1))
    return folder


def build(place, **changes):
    """A build of the texts in a folder, of some shards."""
    inputs = [str(place / name) for name in ("a.txt", "b.txt")]
    tokenizer = Tokenizer.from_pretrained(place / "tiny")
    settings = {"inputs": inputs, "tokenizer": tokenizer, "segmenter": TokenizerWords(), "shard_tokens": 500}
    return Build(**{**settings, **changes})


def sums(folder):
    """The checksum of each file in a folder."""
    files = sorted(path for path in Path(folder).rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def build_again_and_again(place):
    """Kill builds after every number of operations on files in a process of its own; print each status."""
    done = module("tests.tasks.pretraining.corpus.killed_builds", str(place))
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()
