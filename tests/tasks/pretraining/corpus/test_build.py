"""Builds: what is in the text is in the corpus; the bytes depend on nothing else, however the build came to its end."""

import errno
import gzip
import os
import shutil

import numpy as np
import pytest

from onion.checkpointing.atomic_files import Files, through
from onion.errors import DataError
from onion.models.tokenizer import Tokenizer
from onion.tasks.pretraining.corpus.encoding import DocumentEncoder, blocks_of
from onion.tasks.pretraining.corpus.flags import CAPITAL, IN_PARAGRAPH, IN_SENTENCE, starts
from onion.tasks.pretraining.corpus.folder import CorpusFolder
from onion.tasks.pretraining.corpus.raw_text import read_documents
from onion.tasks.pretraining.corpus.segmentation.dictionary import Dictionary
from onion.tasks.pretraining.corpus.segmentation.sentences import sentences
from onion.tasks.pretraining.corpus.segmentation.tokenizer_words import TokenizerWords
from tests.tasks.pretraining.corpus.texts import build, build_again_and_again, place_in, sums


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return place_in(tmp_path_factory.mktemp("texts"))


@pytest.fixture(scope="module")
def whole(place):
    return build(place).run(place / "whole")


def test_every_document_is_there_with_its_borders(place, whole):
    texts = [each.paragraphs for name in ("a.txt", "b.txt") for each in read_documents(place / name)]
    documents = [
        (shard.tokens[begin:end], shard.flags[begin:end])
        for shard in whole.shards
        for begin, end in zip(shard.starts[:-1], shard.starts[1:], strict=True)
    ]
    assert len(whole.shards) > 3
    tokenizer = whole.tokenizer
    for text, (tokens, flags) in zip(texts, documents, strict=True):
        wanted = [each.ids[1:-1].tolist() for each in tokenizer(text, max_length=10000)]
        assert [each.tolist() for each in np.split(tokens, starts(flags, IN_PARAGRAPH)[1:])] == wanted
        assert ((flags & IN_SENTENCE) == 0).sum() == sum(len(sentences(paragraph)) for paragraph in text)
        assert (flags[(flags & IN_SENTENCE) == 0] & CAPITAL).any()


def test_the_counts_of_the_manifest(whole):
    counts = whole.manifest.counts
    flags = np.concatenate([shard.flags for shard in whole.shards])
    tokens = np.concatenate([shard.tokens for shard in whole.shards])
    assert counts.documents == 90
    assert counts.tokens == len(tokens) == len(flags)
    assert counts.sentences == ((flags & IN_SENTENCE) == 0).sum()
    assert counts.paragraphs == ((flags & IN_PARAGRAPH) == 0).sum()
    assert counts.unknown == (tokens == whole.tokenizer.unk_id).sum() > 0
    assert all(shard.counts.tokens >= 500 for shard in whole.manifest.shards[:-1])


def test_any_number_of_workers_gives_the_same_bytes(place, whole):
    for workers in (2, 3):
        build(place, workers=workers).run(place / f"by {workers}")
        assert sums(place / f"by {workers}") == sums(whole.path)


def test_a_build_that_was_killed_anywhere_goes_on(tmp_path):
    *killed, last = build_again_and_again(place_in(tmp_path, documents=4))
    assert last == "0 0 True"
    assert set(killed) == {"-9 0 True"}
    assert len(killed) > 10


class Full(Files):
    """A disk that is full after some writes."""

    def __init__(self, left):
        self.left = left

    def write(self, file, content):
        self.left -= 1
        if self.left < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        super().write(file, content)


def test_a_full_disk_leaves_whole_shards(place, whole):
    output = place / "full"
    told = "full: cannot be written: No space left on device; its whole shards stay, and the same command goes on"
    with through(Full(40)), pytest.raises(DataError, match=told):
        build(place).run(output)
    names = set(sums(output))
    assert {"shard-00000.docs", "shard-00000.flags", "shard-00000.tokens"} < names < set(sums(whole.path))
    with pytest.raises(DataError, match=r"full: its build has not ended \(\d shards are whole\); start the same"):
        CorpusFolder.open(output)
    build(place).run(output)
    assert sums(output) == sums(whole.path)


def test_a_build_does_not_go_on_behind_a_shard_that_is_cut_off(place):
    output = place / "cut off"
    with through(Full(40)), pytest.raises(DataError, match="No space left"):
        build(place).run(output)
    path = output / "shard-00000.tokens"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(
        DataError,
        match=r"shard-00000\.tokens: has \d+ bytes instead of \d+.*; remove .*cut off, and start the build again",
    ):
        build(place).run(output)


def test_an_interrupt_leaves_whole_shards(place, whole):
    seen = []

    def interrupt(counts):
        seen.append(counts)
        if len(seen) == 7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build(place).run(place / "interrupted", interrupt)
    assert not list((place / "interrupted").rglob(".*"))
    build(place).run(place / "interrupted", seen.append)
    assert sums(place / "interrupted") == sums(whole.path)
    again = len(seen)
    build(place).run(place / "interrupted", seen.append)  # it is complete
    assert len(seen) == again


def test_another_build_is_refused(place, whole, tmp_path):
    others = {"inputs": [str(place / "a.txt")], "shard_tokens": 600, "language": "en"}
    for name, value in others.items():
        told = rf"whole: holds another corpus \({name.replace('_', ' ')}\); choose a new folder"
        with pytest.raises(DataError, match=told):
            build(place, **{name: value}).run(whole.path)
    later = TokenizerWords()
    later.version = "of tomorrow"
    (tmp_path / "units.txt").write_text("lovely film\tentity\n", encoding="utf-8")
    shutil.copytree(place / "tiny", tmp_path / "tiny")
    with (tmp_path / "tiny" / "vocab.txt").open("a", encoding="utf-8") as file:
        file.write("another\n")
    for changes, told in (
        ({"segmenter": later}, "segmenter version"),
        ({"segmenter": Dictionary(tmp_path / "units.txt")}, "segmenter, .*dictionary sha256"),
        ({"tokenizer": Tokenizer.from_pretrained(tmp_path / "tiny")}, "tokenizer, vocab size"),
    ):
        with pytest.raises(DataError, match=rf"holds another corpus \({told}\)"):
            build(place, **changes).run(whole.path)
    shutil.rmtree(tmp_path / "tiny")
    (tmp_path / "units.txt").unlink()
    (tmp_path / "mine.txt").touch()
    with pytest.raises(DataError, match="is not empty, and holds no corpus; choose a new folder"):
        build(place).run(tmp_path)
    with pytest.raises(DataError, match=r"c\.txt: there is no such file"):
        build(place, inputs=[str(place / "c.txt")]).run(tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_build_that_failed_in_its_first_lines_is_made_anew_of_corrected_ones(tmp_path):
    place = place_in(tmp_path)
    lines = place / "lines.jsonl"
    lines.write_text('{"text": "A film."}\n{"text": \n', encoding="utf-8")
    with pytest.raises(DataError, match=r"lines\.jsonl:2: "):
        build(place, inputs=[str(lines)]).run(place / "out")
    lines.write_text('{"text": "A film."}\n', encoding="utf-8")
    assert build(place, inputs=[str(lines)]).run(place / "out").manifest.counts.documents == 1
    with pytest.raises(DataError, match="holds another corpus"):
        build(place).run(place / "out")


def test_an_input_that_changes_meanwhile_is_told(tmp_path):
    place = place_in(tmp_path)

    def change(counts):
        with (place / "b.txt").open("a") as file:
            file.write("\nA film.\n")

    with pytest.raises(DataError, match="an input has changed while it was read; delete the folder and start again"):
        build(place).run(place / "out", change)


def test_packed_texts_are_the_same_corpus(place, whole):
    (place / "a.txt.gz").write_bytes(gzip.compress((place / "a.txt").read_bytes()))
    corpus = build(place, inputs=[str(place / "a.txt.gz"), str(place / "b.txt")]).run(place / "packed")
    of_shards = {name: found for name, found in sums(corpus.path).items() if name.startswith("shard")}
    assert of_shards == {name: found for name, found in sums(whole.path).items() if name.startswith("shard")}


def test_a_special_token_in_a_text_is_unknown(place):
    tokenizer = Tokenizer.from_pretrained(place / "tiny")
    encoded = DocumentEncoder(tokenizer, TokenizerWords())([["a [MASK] film [SEP]"]])
    unknown = tokenizer.unk_id
    assert encoded.tokens.tolist() == [*tokenizer(["a"])[0].ids[1:-1], unknown, tokenizer(["film"])[0].ids[1], unknown]
    assert encoded.counts.unknown == 2


def test_a_document_is_encoded_as_if_it_were_alone(place):
    encoder = DocumentEncoder(Tokenizer.from_pretrained(place / "tiny"), TokenizerWords())
    documents = [each.paragraphs for each in read_documents(place / "a.txt")]
    together = encoder(documents)
    alone = [encoder([each]) for each in documents]
    assert np.array_equal(together.tokens, np.concatenate([each.tokens for each in alone]))
    assert np.array_equal(together.flags, np.concatenate([each.flags for each in alone]))
    assert together.lengths.tolist() == [each.counts.tokens for each in alone]
    assert together.counts == sum((each.counts for each in alone[1:]), alone[0].counts)


def test_a_long_document_is_encoded_in_parts(place, monkeypatch):
    encoder = DocumentEncoder(Tokenizer.from_pretrained(place / "tiny"), TokenizerWords())
    documents = [each.paragraphs for each in read_documents(place / "a.txt")]
    whole = encoder(documents)
    monkeypatch.setattr("onion.tasks.pretraining.corpus.encoding.AT_ONCE", 200)
    parts = encoder(documents)
    for name in ("tokens", "flags", "lengths"):
        assert np.array_equal(getattr(parts, name), getattr(whole, name))
    assert parts.counts == whole.counts


def test_blocks_end_with_the_item_that_fills_them():
    assert list(blocks_of(["ab", "cd", "efghi", "j"], len, 4)) == [["ab", "cd"], ["efghi"], ["j"]]
    assert list(blocks_of([], len, 4)) == []
