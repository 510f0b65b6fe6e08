"""Masks by the kinds of unit that a corpus marks."""

import pickle

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onion.errors import DataError
from onion.tasks.masked_lm.masking import special_ids, word_ids
from onion.tasks.pretraining.corpus.flags import ENTITY, IN_ENTITY, IN_PHRASE, IN_WORD, PHRASE
from onion.tasks.pretraining.examples import collate
from onion.tasks.pretraining.masking.levels import LEVELS
from onion.tasks.pretraining.masking.masking import MaskedExamples, Masking
from onion.tasks.pretraining.masking.units import first_of_units, kinds_of
from tests.tasks.helpers import VOCAB

PAD, UNK, CLS, SEP, MASK = range(5)
WORDS = range(5, len(VOCAB))
CHARACTER_LEVEL, WORD_LEVEL, PHRASE_LEVEL, ENTITY_LEVEL = range(len(LEVELS))


@attrs.frozen(eq=False)
class Given:
    """The same samples in every pass."""

    samples: list
    fingerprint: str = "given"

    @property
    def lengths(self):
        return np.array([len(each["ids"]) for each in self.samples])

    def __len__(self):
        return len(self.samples)

    def of_pass(self, pass_id):
        return self.samples


def example(ids, flags):
    return {
        "ids": np.array([CLS, *ids, SEP]),
        "types": np.zeros(len(ids) + 2, np.int64),
        "flags": np.array([0, *flags, 0], np.uint8),
    }


def flags_of(units):
    """Flags of entities, phrases and words: nested lists of the lengths of words."""
    found = []
    for kind, words in units:
        for number, word in enumerate(words):
            for token in range(word):
                bits = IN_WORD * (token > 0)
                if kind in ("phrase", "entity"):
                    whole, inside = (PHRASE, IN_PHRASE) if kind == "phrase" else (ENTITY, IN_ENTITY)
                    bits |= whole | inside * (number > 0 or token > 0)
                found.append(bits)
    return found


_kinds = st.sampled_from(["plain", "phrase", "entity"])
_units = st.lists(st.tuples(_kinds, st.lists(st.integers(1, 3), min_size=1, max_size=3)), max_size=8)


@st.composite
def some_examples(draw):
    flags = flags_of(draw(_units))
    ids = draw(st.lists(st.sampled_from([UNK, *WORDS]), min_size=len(flags), max_size=len(flags)))
    return example(ids, flags)


def many(count=2000, tokens=60):
    """Examples in which a third of the tokens each is in words alone, in phrases and in entities."""
    chance = np.random.default_rng(0)
    found = []
    for _ in range(count):
        kinds = chance.choice(["plain", "phrase", "entity"], tokens // 4)
        flags = flags_of([(str(kind), chance.integers(1, 3, 2).tolist()) for kind in kinds])
        found.append(example(chance.choice(WORDS, len(flags)).tolist(), flags))
    return Given(found)


def masked(tokenizer, samples, pass_id=0, seed=0, **settings):
    return MaskedExamples(samples, Masking(**settings), tokenizer, seed).of_pass(pass_id)


def firsts(flags, level):
    flags = np.array(flags, np.uint8)
    return first_of_units(flags, kinds_of(flags, level)).tolist()


#        plain words 1 + 2;  an entity of words 2 + 1;  an entity of one token;  a phrase of words 1 + 2 + 1
MIXED = flags_of([("plain", [1, 2]), ("entity", [2, 1]), ("entity", [1]), ("phrase", [1, 2, 1])])


@pytest.mark.parametrize(
    ("level", "units", "kinds"),
    [
        (CHARACTER_LEVEL, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10], [0] * 11),
        (WORD_LEVEL, [0, 1, 1, 3, 3, 5, 6, 7, 8, 8, 10], [1] * 11),
        (PHRASE_LEVEL, [0, 1, 1, 3, 3, 5, 6, 7, 7, 7, 7], [1] * 7 + [2] * 4),
        (ENTITY_LEVEL, [0, 1, 1, 3, 3, 3, 6, 7, 7, 7, 7], [1] * 3 + [3] * 4 + [2] * 4),
    ],
)
def test_units_by_hand(level, units, kinds):
    assert firsts(MIXED, level) == units
    assert kinds_of(np.array(MIXED, np.uint8), level).tolist() == kinds


def test_an_entity_parts_the_phrase_around_it():
    inside = PHRASE | IN_PHRASE
    flags = [PHRASE, inside, inside | ENTITY, inside | ENTITY | IN_ENTITY, inside, inside]
    assert firsts(flags, ENTITY_LEVEL) == [0, 0, 2, 2, 4, 4]
    assert firsts(flags, PHRASE_LEVEL) == [0] * 6


def test_no_word_is_cut_by_an_entity_inside_it():
    assert firsts([0, IN_WORD | ENTITY, IN_WORD | ENTITY | IN_ENTITY, IN_WORD, 0], ENTITY_LEVEL) == [0, 0, 0, 0, 4]


def test_a_text_without_tokens_has_no_units():
    assert firsts([], ENTITY_LEVEL) == []


@given(
    st.lists(some_examples(), min_size=1, max_size=4),
    st.integers(0, 9),
    st.integers(0, 3),
    st.sampled_from(LEVELS),
    st.sampled_from([1e-9, 0.15, 1.0]),
)
def test_masked_examples(tokenizer, samples, seed, pass_id, level, share):
    found = masked(tokenizer, Given(samples), pass_id, seed, levels=level, share=share)
    assert len(found) == len(samples)
    for number, before in enumerate(samples):
        old = before["ids"].copy()
        after = found[number]
        assert (before["ids"] == old).all()
        assert after.keys() == {*before, "masked", "originals", "levels"}
        assert all(after[name].dtype == np.int64 for name in ("ids", "masked", "originals", "levels"))
        chosen = np.zeros(len(old), bool)
        chosen[after["masked"]] = True
        assert (np.diff(after["masked"]) > 0).all()
        assert (after["ids"][~chosen] == old[~chosen]).all()
        restored = after["ids"].copy()
        restored[after["masked"]] = after["originals"]
        assert (restored == old).all()
        assert np.isin(after["ids"][chosen], [MASK, *WORDS]).all()
        may_be = old >= min(WORDS)
        assert not chosen[~may_be].any()
        assert chosen.any() == may_be.any()
        kinds = kinds_of(before["flags"], LEVELS.index(level))
        assert (after["levels"] == kinds[after["masked"]]).all()
        units = first_of_units(before["flags"], kinds)
        for unit in np.unique(units):
            assert len({*chosen[(units == unit) & may_be].tolist()}) <= 1  # all tokens of a unit, or none
        if share == 1:
            assert (chosen == may_be).all()
        if share == 1e-9:
            assert len({*units[chosen].tolist()}) <= 1


@pytest.mark.parametrize("level", LEVELS)
def test_shares(tokenizer, level):
    samples = many()
    found = masked(tokenizer, samples, levels=level)
    rows = [found[number] for number in range(len(samples))]
    old = np.concatenate([row["originals"] for row in rows])
    new = np.concatenate([row["ids"][row["masked"]] for row in rows])
    tokens = sum(len(row["ids"]) - 2 for row in rows)
    assert len(old) / tokens == pytest.approx(0.15, abs=0.008)
    assert (new == MASK).mean() == pytest.approx(0.8, abs=0.01)
    assert (new == old).mean() == pytest.approx(0.1 + 0.1 / len(WORDS), abs=0.01)
    swapped = new[(new != MASK) & (new != old)]
    counts = np.bincount(swapped, minlength=len(VOCAB))[list(WORDS)]
    assert counts.min() > 0.5 * counts.mean()
    kinds = np.bincount(np.concatenate([row["levels"] for row in rows]), minlength=4)
    assert [count > 0 for count in kinds] == {
        "character": [True, False, False, False],
        "word": [False, True, False, False],
        "phrase": [False, True, True, False],
        "entity": [False, True, True, True],
    }[level]


def test_levels_are_shared_out_among_the_examples(tokenizer):
    samples = Given([example([5, 6], [0, IN_WORD])] * 4000)
    found = masked(tokenizer, samples, levels={"character": 3, "word": 1})
    kinds = [int(found[number]["levels"][0]) for number in range(4000)]
    assert np.mean(kinds) == pytest.approx(0.25, abs=0.03)
    assert Masking(levels={"word": 1, "character": 1}).level(0.4) == CHARACTER_LEVEL
    assert {Masking(levels={"phrase": 1}).level(chance) for chance in (0.0, 0.999)} == {PHRASE_LEVEL}


def same(one, other):
    return all(np.array_equal(one[name], other[name]) for name in one)


def test_masks_are_a_function_of_seed_pass_and_example(tokenizer):
    samples = many(count=3)
    rows = {
        (seed, pass_id, number): masked(tokenizer, samples, pass_id, seed)[number]
        for seed in range(2)
        for pass_id in range(2)
        for number in (2, 0, 1)
    }
    assert len({row["ids"].tobytes() for row in rows.values()}) == len(rows)
    for (seed, pass_id, number), row in rows.items():
        again = pickle.loads(pickle.dumps(masked(tokenizer, samples, pass_id, seed)))
        assert same(again[number], row)
        assert same(again[number - 3], row)


def test_other_settings_are_another_fingerprint(tokenizer):
    samples = many(count=1)
    found = {
        MaskedExamples(samples, masking, tokenizer, seed).fingerprint
        for seed in range(2)
        for masking in (Masking(), Masking(levels="entity"), Masking(share=0.3))
    }
    assert len(found) == 6


def test_the_batch_has_the_masks(tokenizer):
    samples = many(count=3)
    given_rows = [masked(tokenizer, samples)[number] for number in range(3)]
    batch = collate(given_rows)
    flat = batch["input_ids"].reshape(-1)
    flat[batch["masked_positions"]] = batch["word_labels"]
    length = batch["input_ids"].shape[1]
    for row, sample in enumerate(samples.samples):
        assert flat[row * length :][: len(sample["ids"])].tolist() == sample["ids"].tolist()
    assert batch["word_levels"].tolist() == [WORD_LEVEL] * len(batch["masked_positions"])


def test_spare_and_missing_tokens_are_no_words(tmp_path, tokenizer):
    from onion.models.tokenizer import Tokenizer

    assert word_ids(tokenizer).tolist() == list(WORDS)
    tokens = ["[PAD]", "[unused1]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "[unused", "##s"]
    (tmp_path / "vocab.txt").write_text("\n".join(tokens) + "\n")
    other = Tokenizer.from_pretrained(tmp_path)
    assert word_ids(other).tolist() == [6, 7, 8]
    assert not {*special_ids(other)} & {*word_ids(other).tolist()}


@pytest.mark.parametrize(
    "settings",
    [
        {"levels": "letters"},
        {"levels": {}},
        {"levels": {"word": 0}},
        {"levels": {"word": -1, "entity": 2}},
        {"levels": {"word": "much"}},
        {"levels": {"word": [1]}},
        {"levels": 3},
        {"share": 0},
        {"masked": 0.9, "swapped": 0.2},
    ],
)
def test_settings_that_make_no_sense_are_refused(settings):
    with pytest.raises(DataError, match=next(iter(settings))):
        Masking(**settings)


def test_settings_of_files_are_read():
    masking = Masking(share="0.2", levels={"word": "1", "entity": 3})
    assert (masking.share, masking.levels) == (0.2, {"word": 1.0, "entity": 3.0})
