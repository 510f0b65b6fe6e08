"""ERNIE 1.0's masks, held against its algorithm as one would write it down, token by token."""

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onion import DataProvider, Observer, Runner, Saver
from onion.errors import DataError
from onion.tasks.pretraining.corpus.ernie_examples import ErnieExamples, example_of
from onion.tasks.pretraining.corpus.ernie_lines import ListedFile, write_samples
from onion.tasks.pretraining.examples import collate
from onion.tasks.pretraining.masking.ernie import ErnieMasker, Vocabulary, masked
from onion.tasks.pretraining.masking.levels import CHARACTER, WORD
from onion.testing import assert_resumes_exactly
from tests.paths import DATA
from tests.tasks.helpers import needs_data
from tests.tasks.pretraining.samples import CLS, MASK, SEP, sample, some_samples

VOCAB = Vocabulary(100, CLS, SEP, MASK)


def by_hand(samples, words, seed):
    """Mask token by token; return padded rows, positions and labels."""
    generator = np.random.RandomState(seed)
    total = sum(len(each.ids) for each in samples)
    chance, word = generator.rand(total).tolist(), generator.randint(1, VOCAB.size, size=total).tolist()
    longest = max(len(each.ids) for each in samples)
    rows, positions, labels, place = [], [], [], 0
    for number, each in enumerate(samples):
        row = each.ids.tolist()
        chosen = False
        for column, unit in enumerate(each.units.tolist()):
            own, scale = chance[place], 1.0
            if unit == 0 or (unit == 1 and not words):
                chosen, scale = own <= 0.15, 0.15
            if unit != -1 and chosen:
                positions.append(number * longest + column)
                labels.append(row[column])
                if own > 0.2 * scale:
                    row[column] = MASK
                elif own > 0.1 * scale:
                    row[column] = word[place]
            place += 1
        rows.append(row + [0] * (longest - len(row)))
    return rows, positions, labels


def parts(batch):
    return batch["input_ids"].tolist(), batch["masked_positions"], batch["word_labels"].tolist()


@pytest.mark.parametrize("words", [True, False])
@given(samples=some_samples, seed=st.integers(0, 1000))
def test_the_masks_are_ernies(words, samples, seed):
    found = collate(masked([example_of(each) for each in samples], words, VOCAB, np.random.RandomState(seed)))
    assert parts(found) == by_hand(samples, words, seed)
    assert {*found["word_levels"].tolist()} <= {WORD if words else CHARACTER}
    assert found["labels"].tolist() == [each.label for each in samples]


def some_lines(count=40):
    chance = np.random.default_rng(0)

    def units():
        return [chance.integers(4, 99, chance.integers(1, 4)).tolist() for _ in range(chance.integers(2, 9))]

    return [sample(units(), units(), int(chance.integers(0, 2))) for _ in range(count)]


@pytest.fixture
def lines(tmp_path):
    path = tmp_path / "lines.gz"
    write_samples(path, some_lines())
    return ErnieExamples.read([path])


def batches(provider, masker):
    seen = []
    Runner(provider, masker, Observer(on_batch_begin=lambda state: seen.append(state.batch))).run(passes=2)
    return seen


def test_the_item_masks_what_a_provider_gives(lines):
    seen = batches(DataProvider(lines, 8, collate=list), ErnieMasker(VOCAB, seed=7))
    assert len(seen) == 10
    assert parts(seen[0]) == by_hand(some_lines()[:8], True, 7)
    assert seen[5]["input_ids"].tolist() != seen[0]["input_ids"].tolist()  # the generator goes on


def test_words_or_characters_are_drawn_for_each_pass():
    masker = ErnieMasker(VOCAB, 0, word_share=0.3)
    drawn = [masker.by_words(pass_id, {"file": file}) for file in range(20) for pass_id in range(50)]
    assert np.mean(drawn) == pytest.approx(0.3, abs=0.05)
    assert ErnieMasker(VOCAB, 0).by_words(3, {})
    assert not ErnieMasker(VOCAB, 0, word_share=0).by_words(3, {})


def test_each_file_of_a_list_has_its_own_share(tmp_path):
    files = [ListedFile(tmp_path / f"{number}.gz", share) for number, share in enumerate((1.1, 0.0))]
    for file in files:
        write_samples(file.path, some_lines(10))
    lines = ErnieExamples.read(files)
    assert lines.fingerprint != ErnieExamples.read([file.path for file in files]).fingerprint
    batch, _ = batches(DataProvider(lines, 20, collate=list), ErnieMasker(VOCAB, seed=7))
    of_second = np.array(batch["masked_positions"]) // batch["input_ids"].shape[1] >= 10
    assert set(batch["word_levels"][~of_second]) == {WORD}
    assert set(batch["word_levels"][of_second]) == {CHARACTER}


def test_a_resumed_run_draws_the_same_masks(lines, tmp_path):
    def run(folder):
        data = DataProvider(lines, 8, shuffle=True, collate=list)
        return Runner(Saver(folder, every=3), data, ErnieMasker(VOCAB, 0, word_share=0.5))

    assert_resumes_exactly(run, tmp_path, passes=2, cuts=(2, 5, 6))


def test_long_lines_are_left_out_and_counted(tmp_path):
    write_samples(tmp_path / "one.gz", some_lines(10))
    lengths = sorted(len(each.ids) for each in some_lines(10))
    found = ErnieExamples.read([tmp_path / "one.gz"], max_length=lengths[4])
    assert len(found) + found.left_out == 10
    assert sorted(found.lengths.tolist()) == [each for each in lengths if each <= lengths[4]]
    assert found.fingerprint != ErnieExamples.read([tmp_path / "one.gz"]).fingerprint


def test_files_without_lines_are_refused(tmp_path):
    write_samples(tmp_path / "none.gz", [])
    with pytest.raises(DataError, match=r"none\.gz: there is no line"):
        ErnieExamples.read([tmp_path / "none.gz"])


def _digest(values):
    return hashlib.sha256(np.asarray(values).astype("<i8").tobytes()).hexdigest()[:16]


@needs_data
@pytest.mark.parametrize(
    ("word_share", "wanted"),
    [
        (1.1, ["0e5756ee8dbf82fd", "215755a6bd77a79f", "74e3ba7d0f3ffcd4"]),
        (0.0, ["fa6ce7a769f8a486", "8f0af1665f7d3893", "dfa458b483dceddb"]),
    ],
)
def test_the_first_batch_of_the_published_data_is_masked_as_by_ernie(word_share, wanted):
    lines = ErnieExamples.read([DATA / "ernie_pretrain_demo" / "demo_train_set.gz"])
    masker = ErnieMasker(Vocabulary(18000, 1, 2, 3), seed=0, word_share=word_share)
    seen = []
    watch = Observer(on_batch_begin=lambda state: seen.append(state.batch) or state.stop("enough"))
    Runner(DataProvider(lines, 8, collate=list), masker, watch).run(passes=1)
    assert [_digest(seen[0][name]) for name in ("masked_positions", "word_labels", "input_ids")] == wanted
