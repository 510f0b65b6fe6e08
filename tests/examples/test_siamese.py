"""The example of two towers, on a tiny encoder and pairs that share words."""

import random

import numpy as np
import pytest

from onion.checkpointing import checkpoint
from onion.models.encoder import Encoder
from tests.examples.in_process import run_example, saved_bits
from tests.tasks.helpers import BAD, GOOD, PLAIN, tiny_encoder, write_tsv


def pairs(count, seed):
    """Pairs of texts; the more words they share, the higher the label, from 0 to 5."""
    chance = random.Random(seed)
    found = []
    for _ in range(count):
        first, other = (chance.choices(GOOD + BAD + PLAIN, k=5) for _ in range(2))
        shared = chance.randrange(6)
        found.append((" ".join(first), " ".join(first[:shared] + other[shared:]), str(float(shared))))
    return found


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = tmp_path_factory.mktemp("siamese")
    write_tsv(place / "train.tsv", pairs(160, seed=1), ("text_a", "text_b", "label"))
    write_tsv(place / "dev.tsv", pairs(60, seed=2), ("text_a", "text_b", "label"))
    tiny_encoder(place / "encoder", max_position_embeddings=24)
    return place


def run(place, out, *more, **cut):
    return run_example("siamese.py", place, "--output", place / out, "--encoder", place / "encoder", *more, **cut)


@pytest.fixture(scope="module")
def whole(place):
    return run(place, "whole")


def test_the_last_line_tells_the_correlation_before_and_after(whole):
    told, drawing = whole
    assert (told["example"], told["seed"], told["passes"]) == ("siamese", 1, 2)
    assert 0 < told["before"] < 1
    assert 0 < told["after"] < 1
    assert "GradientMachine(Siamese)" in drawing


def test_both_towers_are_one_encoder_and_it_moved(place, whole):
    saved = checkpoint.newest(place / "whole").items["gradient_machine"]
    begun = Encoder.from_pretrained(place / "encoder").state_dict()
    assert saved.keys() == {f"encoder.{name}" for name in begun}
    path = "encoder.layers.0.linear1.weight"
    assert not np.array_equal(saved[f"encoder.{path}"], begun[path])


def test_another_seed_is_another_run(place, whole):
    run(place, "other", "--seed", 2)
    assert saved_bits(place / "other") != saved_bits(place / "whole")
