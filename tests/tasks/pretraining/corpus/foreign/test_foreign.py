"""PaddleNLP's and Megatron-LM's files: the ids, sentences and documents that were written; damage is told."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onion.errors import DataError
from onion.models.tokenizer import Tokenizer
from onion.tasks.data.features.cache import stored
from onion.tasks.pretraining.corpus.flags import IN_PARAGRAPH, IN_SENTENCE, IN_WORD
from onion.tasks.pretraining.corpus.opening import open_corpus
from onion.tasks.pretraining.corpus.segments import Segments
from tests.tasks.helpers import tiny_encoder
from tests.tasks.pretraining.corpus.foreign.files import WRITERS, write_megatron
from tests.tasks.pretraining.corpus.texts import build, place_in

TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "##b", "c", "##d"]
DOCUMENTS = [[[5, 6, 7], [7, 8, 6]], [], [[6, 5], [], [8]]]
FLAGS = [[0, IN_WORD, 0], [0, IN_WORD, IN_WORD], [0, 0], [0]]

everyone = pytest.mark.parametrize("who", WRITERS)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    folder = tiny_encoder(tmp_path_factory.mktemp("tiny"))
    (folder / "vocab.txt").write_text("\n".join(TOKENS) + "\n")
    return Tokenizer.from_pretrained(folder)


def written(folder, who, documents=DOCUMENTS, **settings):
    """Write a corpus; return the paths of its ids and of its index."""
    write, *endings = WRITERS[who]
    write(folder / "a", documents, **settings)
    return [folder / f"a{ending}" for ending in endings]


@everyone
@pytest.mark.parametrize("kind", ["uint16", "int32"])
def test_ids_sentences_words_and_documents(tmp_path, tokenizer, who, kind):
    paths = written(tmp_path, who, kind=kind)
    found = [open_corpus(path, tokenizer) for path in (tmp_path / "a", *paths)]
    assert len({corpus.fingerprint for corpus in found}) == 1
    (shard,) = found[0].shards
    assert shard.tokens.tolist() == [5, 6, 7, 7, 8, 6, 6, 5, 8]
    assert shard.tokens.dtype.kind == "u"
    assert shard.starts.tolist() == [0, 6, 6, 9]
    assert ((shard.flags & IN_WORD) > 0).tolist() == [word > 0 for sentence in FLAGS for word in sentence]
    assert ((shard.flags & IN_SENTENCE) == 0).nonzero()[0].tolist() == [0, 3, 6, 8]
    assert ((shard.flags & IN_PARAGRAPH) == 0).nonzero()[0].tolist() == [0, 6]
    assert Segments.of(found[0], 5).lengths.tolist() == [3, 3, 3]


_documents = st.lists(st.lists(st.lists(st.integers(0, 8), max_size=4), max_size=3), min_size=1, max_size=4)


@everyone
@given(documents=_documents)
def test_what_is_written_is_read(tmp_path_factory, tokenizer, who, documents):
    if who == "paddlenlp" and not any(map(any, documents)):
        documents = [[[5]]]  # numpy cannot map a file without numbers
    folder = tmp_path_factory.mktemp("written")
    written(folder, who, documents)
    (shard,) = open_corpus(folder / "a", tokenizer).shards
    found = [shard.tokens[begin:end].tolist() for begin, end in zip(shard.starts[:-1], shard.starts[1:], strict=True)]
    assert found == [[token for sentence in document for token in sentence] for document in documents]
    sentences = [sentence for document in documents for sentence in document if sentence]
    assert ((shard.flags & IN_SENTENCE) == 0).sum() == len(sentences)


@everyone
def test_flags_of_a_large_corpus_are_kept(tmp_path, tokenizer, monkeypatch, who):
    written(tmp_path, who)
    wanted = open_corpus(tmp_path / "a", tokenizer).shards[0].flags
    monkeypatch.setenv("ONION_HOME", str(tmp_path))
    monkeypatch.setattr("onion.tasks.pretraining.corpus.derived.KEPT_FROM", 1)
    monkeypatch.setattr("onion.tasks.pretraining.corpus.foreign.sentence_lengths.AT_ONCE", 2)
    for _ in range(2):
        assert np.array_equal(open_corpus(tmp_path / "a", tokenizer).shards[0].flags, wanted)
    assert [entry.about["task"] for entry in stored()] == ["flags"]


@everyone
def test_ids_beyond_the_vocabulary_are_told(tmp_path, tokenizer, who):
    ids, _ = written(tmp_path, who, [[[5, 9]]])
    with pytest.raises(DataError, match=f"{ids.name}: has the id 9, and the tokenizer 9 tokens; give the tokenizer"):
        open_corpus(tmp_path / "a", tokenizer)


@everyone
def test_special_tokens_in_the_middle_of_texts_are_told(tmp_path, tokenizer, who, caplog):
    ids, _ = written(tmp_path, who, [[[5, 3], [7, 4, 3]]])
    open_corpus(tmp_path / "a", tokenizer)
    [record] = caplog.records
    assert f"{ids.name}: 3 of its tokens are special ones, such as [SEP]" in record.getMessage()
    caplog.clear()
    written(tmp_path, who)
    open_corpus(tmp_path / "a", tokenizer)
    assert not caplog.records


@everyone
@pytest.mark.parametrize("which", [0, 1])
def test_files_that_are_cut_off_missing_or_of_another_corpus(tmp_path, tokenizer, who, which):
    paths = written(tmp_path, who)
    content = paths[which].read_bytes()
    for damage in (content[:-2], content[:10], b""):
        paths[which].write_bytes(damage)
        with pytest.raises(DataError, match=f"^{paths[which]}|a_idx.npz: the lengths"):
            open_corpus(paths[0], tokenizer)
    paths[which].unlink()
    with pytest.raises(DataError, match=f"{paths[which].name}: there is no such file"):
        open_corpus(paths[0], tokenizer)
    (tmp_path / "other").mkdir()
    other = written(tmp_path / "other", who, [[[5, 6], [7]]])
    paths[which].write_bytes(other[which].read_bytes())
    with pytest.raises(
        DataError, match=r"a_idx.npz: the lengths of its sentences are not those of|a\.bin: has .* bytes"
    ):
        open_corpus(paths[0], tokenizer)


def test_indices_of_megatron_that_cannot_be_right(tmp_path, tokenizer):
    write_megatron(tmp_path / "a", DOCUMENTS)
    index = tmp_path / "a.idx"
    right = index.read_bytes()
    places = 34 + 4 * 5
    wrong = {
        "is no index of Megatron-LM": b"MMIDIDY" + right[7:],
        "is of version 2": right[:9] + struct.pack("<Q", 2) + right[17:],
        "with ids of type 7": right[:17] + b"\x07" + right[18:],
        "which are not those of 1152921504606846976 sequences": right[:18] + struct.pack("<Q", 1 << 60) + right[26:],
        "do not stand one after the other": right[:places] + struct.pack("<q", 2) + right[places + 8 :],
        "its documents are not those of 5 sentences": right[:-8] + struct.pack("<q", 4),
        "the lengths of its sentences": right[:34] + struct.pack("<2i", -1, 7) + right[42:],
    }
    for told, content in wrong.items():
        index.write_bytes(content)
        if "lengths" in told:
            changed = bytearray(content)
            changed[places : places + 16] = struct.pack("<2q", 0, -2)
            index.write_bytes(changed)
        with pytest.raises(DataError, match=rf"a\.idx: .*{told}"):
            open_corpus(index, tokenizer)


def test_arrays_of_paddlenlp_that_cannot_be_right(tmp_path, tokenizer):
    ids, index = written(tmp_path, "paddlenlp")
    for wrong in (np.zeros(9, np.float32), np.zeros((3, 3), np.uint16), np.array([None])):
        np.save(ids, wrong, allow_pickle=True)
        with pytest.raises(DataError, match=r"a_ids\.npy: is no such file of PaddleNLP, or is damaged"):
            open_corpus(ids, tokenizer)
    written(tmp_path, "paddlenlp")
    for wrong in ({"lens": np.ones(9)}, {"lens": np.ones(9), "docs": np.ones(2)}, {"lens": None, "docs": None}):
        np.savez(index, **wrong)
        with pytest.raises(DataError, match=r"a_idx\.npz: is no such file of PaddleNLP, or is damaged"):
            open_corpus(ids, tokenizer)


def test_whatever_is_named(tmp_path, tokenizer):
    place = place_in(tmp_path, documents=4)
    made = build(place).run(place / "made")
    assert open_corpus(place / "made").fingerprint == made.fingerprint
    written(tmp_path, "megatron")
    with pytest.raises(DataError, match=r"a\.bin: does not hold the tokenizer that made it; give that too"):
        open_corpus(tmp_path / "a.bin")
    for name in ("nothing", "a.txt"):
        with pytest.raises(DataError, match=f"{name}: there is no corpus; name a folder of 'onion corpus build', or"):
            open_corpus(tmp_path / name, tokenizer)
    with pytest.raises(DataError, match=r"tiny: is no corpus, since it has no manifest\.json; make one with"):
        open_corpus(tmp_path / "tiny")
