import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onion import DataProvider, Observer, Runner, RunnerItem, Saver
from onion.tasks.masked_lm.masking import Masker, MaskFiller, SteadyMasker, first_tokens
from onion.tasks.metrics.perplexity import Guesses
from onion.testing import Batches
from tests.tasks.helpers import VOCAB

PAD, UNK, CLS, SEP, MASK = range(5)
WORDS = range(5, len(VOCAB))


def batch(*rows):
    """A padded batch of rows of words, each a list of token ids; [CLS] before and [SEP] behind."""
    ids = [[CLS, *(token for word in row for token in word), SEP] for row in rows]
    words = [[-1, *(number for number, word in enumerate(row) for _ in word), -1] for row in rows]
    length = max(map(len, ids))
    return {
        "input_ids": np.array([row + [PAD] * (length - len(row)) for row in ids]),
        "words": np.array([row + [-1] * (length - len(row)) for row in words]),
        "lengths": list(map(len, ids)),
    }


def many(rows=400, seed=0):
    """Rows of 2 to 40 words of 1 to 3 tokens."""
    chance = np.random.default_rng(seed)
    lengths = chance.integers(2, 41, rows)
    return batch(*([chance.choice(WORDS, chance.integers(1, 4)).tolist() for _ in range(n)] for n in lengths))


some_batches = st.lists(
    st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=4), max_size=12), min_size=1, max_size=5
).map(lambda rows: batch(*rows))


@settings(max_examples=200)
@given(some_batches, st.integers(0, 99), st.booleans(), st.sampled_from([1e-9, 0.15, 0.5, 1.0]))
def test_masked_batches(tokenizer, given_batch, seed, whole_words, share):
    before = {name: np.array(value) for name, value in given_batch.items()}
    found = Masker(tokenizer, seed, share, whole_words).masked(given_batch)
    for name, value in given_batch.items():
        assert np.array_equal(value, before[name])  # the batch itself is as it was
    assert found.keys() == {"input_ids", "lengths", "masked_positions", "labels"}
    old, new = before["input_ids"], found["input_ids"]
    chosen = np.zeros(old.shape, bool)
    chosen.reshape(-1)[found["masked_positions"]] = True
    assert found["labels"].dtype == new.dtype == np.int64
    assert found["labels"].tolist() == old[chosen].tolist()
    assert (new[~chosen] == old[~chosen]).all()
    assert np.isin(new[chosen], [MASK, *WORDS]).all()
    may_be = old >= min(WORDS)
    assert not chosen[~may_be].any()
    assert (chosen.any(axis=1) == may_be.any(axis=1)).all()  # at least one a row
    if share == 1:
        assert (chosen == may_be).all()
    if share == 1e-9 and not whole_words:
        assert (chosen.sum(axis=1) <= 1).all()
    if whole_words:
        for row, words in zip(chosen, before["words"], strict=True):
            for word in range(words.max() + 1):
                assert len({*row[words == word].tolist()}) == 1


@pytest.mark.parametrize("whole_words", [False, True])
def test_shares(tokenizer, whole_words):
    given_batch = many(2000)
    found = Masker(tokenizer, 1, whole_words=whole_words).masked(given_batch)
    old, new = found["labels"], found["input_ids"].reshape(-1)[found["masked_positions"]]
    tokens = (given_batch["words"] >= 0).sum()
    assert len(old) / tokens == pytest.approx(0.15, abs=0.012)  # a little more: every short row has one
    assert (new == MASK).mean() == pytest.approx(0.8, abs=0.01)
    assert (new == old).mean() == pytest.approx(0.1 + 0.1 / len(WORDS), abs=0.008)
    swapped = new[(new != MASK) & (new != old)]
    assert len(swapped) / len(old) == pytest.approx(0.1, abs=0.01)
    counts = np.bincount(swapped, minlength=len(VOCAB))[list(WORDS)]
    assert counts.min() > 0.4 * counts.mean()  # each word stands in, about as often as any other
    assert counts.max() < 1.6 * counts.mean()


def test_all_places_of_a_row_are_chosen_equally_often(tokenizer):
    masker, row = Masker(tokenizer, 3), batch([[word] for word in (5, 6, 7, 8, 9)])
    places = np.concatenate([masker.masked(row)["masked_positions"] for _ in range(4000)])
    counts = np.bincount(places, minlength=7)
    assert counts[0] == counts[6] == 0
    assert counts[1:6].min() > 0.9 * counts[1:6].mean()


def test_first_tokens_by_hand():
    words = np.array([[-1, 0, 0, 1, 1, 1, -1], [-1, 3, -1, 4, 4, -1, -1]])
    assert first_tokens(words).tolist() == [[0, 1, 1, 3, 3, 3, 6], [0, 1, 2, 3, 3, 5, 5]]


def masks(masker, batches):
    return [masker.masked(each)["input_ids"].tolist() for each in batches]


def test_the_seed_decides_and_every_batch_is_masked_otherwise(tokenizer):
    same = [many(20)] * 3
    one, again, other = (masks(Masker(tokenizer, seed), same) for seed in (1, 1, 2))
    assert one == again
    assert one != other
    assert one[0] != one[1] != one[2]


def test_a_restored_state_goes_on_with_the_same_masks(tokenizer):
    masker, batches = Masker(tokenizer, 1), [many(5, seed) for seed in range(6)]
    masks(masker, batches[:3])
    saved = json.loads(json.dumps(masker.state_dict()))
    wanted = masks(masker, batches[3:])
    resumed = Masker(tokenizer, 99)
    resumed.load_state_dict(saved)
    assert masks(resumed, batches[3:]) == wanted


def noting(seen):
    """Note what every batch became, by its step."""
    return Observer(on_batch_begin=lambda state: seen.update({state.step: state.batch["input_ids"].tolist()}))


def run(folder, masker, **until):
    seen, rows = {}, many(40)
    examples = [{name: rows[name][row] for name in ("input_ids", "words")} for row in range(40)]
    Runner(Saver(folder, every=2), DataProvider(examples, 8, shuffle=True), masker, noting(seen)).run(**until)
    return seen


def test_a_steady_masker_masks_alike_in_every_pass(tokenizer, tmp_path):
    batches = [many(8, seed) for seed in range(3)]
    steady, other = {}, {}
    for kind, seen in ((SteadyMasker, steady), (Masker, other)):
        Runner(Batches(batches), kind(tokenizer, 1), noting(seen)).run(passes=2)
    assert [steady[step] for step in (0, 1, 2)] == [steady[step] for step in (3, 4, 5)]
    assert [other[step] for step in (0, 1, 2)] == [steady[step] for step in (0, 1, 2)]
    assert other[3] != steady[3]
    seen = run(tmp_path, SteadyMasker(tokenizer, 1), steps=3) | run(tmp_path, SteadyMasker(tokenizer, 1), passes=1)
    assert seen == run(tmp_path / "whole", SteadyMasker(tokenizer, 1), passes=1)


class Answer(RunnerItem):
    """Outputs as a network's ``decode`` gives them."""

    def on_batch(self, state):
        self.places = state.batch["masked_positions"]
        yield
        none = Guesses(np.zeros((0, 2), np.int64), np.zeros((0, 2), np.float32))
        two = Guesses(np.array([[5, 6], [17, 900]]), np.array([[0.75, 0.1234567], [0.5, 0.25]], np.float32))
        state.outputs = [none, two]


def test_masks_in_texts_are_found_and_guesses_written_as_words(tokenizer):
    ids = np.array([[CLS, 5, SEP, PAD, PAD], [CLS, MASK, 6, MASK, SEP]])
    answer = Answer()
    state = Runner(Batches([{"input_ids": ids}]), MaskFiller(tokenizer), answer).run(passes=1)
    assert answer.places == [6, 8]
    assert state.outputs == [
        [],
        [
            {"words": ["lovely", "great"], "word_ids": [5, 6], "probabilities": [0.75, 0.123457]},
            {"words": ["the", None], "word_ids": [17, 900], "probabilities": [0.5, 0.25]},
        ],
    ]
