"""The example of ERNIE 1.0's lines: it learns which sentence follows, and stands beside what counting reaches."""

import numpy as np
import pytest

from onion.tasks.pretraining.corpus.ernie_lines import write_samples
from tests.examples.in_process import run_example
from tests.tasks.pretraining.samples import sample


def lines(count, seed):
    """Samples whose second sentence, if it follows, begins with the last word of the first, and else with another."""
    draw = np.random.default_rng(seed)

    def one():
        first, other = draw.integers(100, 110, size=(2, 4)).tolist()
        follows = int(draw.integers(2))
        begins = [first[-1], 200] if follows else [150, 201]
        return sample([[word] for word in first], [[word] for word in (*begins, *other)], follows)

    return [one() for _ in range(count)]


@pytest.fixture
def words(tmp_path):
    for name, count, seed in (("train", 400, 1), ("valid", 120, 2)):
        write_samples(tmp_path / f"{name}.gz", lines(count, seed))
    files = [tmp_path / "train.gz", tmp_path / "valid.gz"]
    return [*files, "--output", tmp_path / "out", "--hidden", 64, "--tokens", 256]


def test_it_learns_and_stands_beside_what_counting_reaches(words):
    told, drawing = run_example("ernie_lines.py", *words, "--passes", 20)
    assert told["valid.accuracy"] > 0.9 > told["baseline.accuracy.overlap"]
    assert told["baseline.accuracy.shared_tokens"] > 0.6
    assert told["valid.word_loss"] < 9
    assert "ErnieMasker" in drawing
    assert run_example("ernie_lines.py", *words, "--passes", 20)[0] == told  # from its last checkpoint


def test_lines_of_another_vocabulary_are_refused(words, tmp_path):
    write_samples(tmp_path / "train.gz", [sample([[17]], [[18000]])])
    with pytest.raises(Exception, match=r"train\.gz:1: token id 18000 is not in the vocabulary"):
        run_example("ernie_lines.py", *words)
