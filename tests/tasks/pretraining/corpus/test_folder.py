"""Folders of corpora: what is written is mapped back, and damage of any file is told with its name."""

import json
import shutil
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onion.errors import DataError
from onion.models.tokenizer import Tokenizer
from onion.tasks.pretraining.corpus.encoding import Counts, Encoded, type_of_ids
from onion.tasks.pretraining.corpus.folder import CorpusFolder
from onion.tasks.pretraining.corpus.manifest import Manifest
from onion.tasks.pretraining.corpus.segments import Segments
from onion.tasks.pretraining.corpus.shard_files import check_sum, map_shard, path_of, writing_shard
from tests.tasks.pretraining.corpus.texts import build, place_in, sums


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    found = place_in(tmp_path_factory.mktemp("texts"), documents=20)
    build(found).run(found / "whole")
    return found


@pytest.fixture
def copy(place, tmp_path):
    return shutil.copytree(place / "whole", tmp_path / "copy")


def encoded(documents, kind):
    tokens = np.array([token for document in documents for token in document], kind)
    lengths = np.array([len(document) for document in documents])
    counts = Counts(tokens=len(tokens), documents=len(documents))
    return Encoded(tokens, (tokens % 251).astype(np.uint8), lengths, counts)


_blocks = st.lists(st.lists(st.lists(st.integers(0, 65535), max_size=5), min_size=1, max_size=4), max_size=4)


@given(blocks=_blocks, large=st.booleans())
def test_shards_are_mapped_as_they_were_written(tmp_path_factory, blocks, large):
    folder, kind = tmp_path_factory.mktemp("shard"), type_of_ids(100000 if large else 65536)
    with writing_shard(folder, 3) as writer:
        for block in blocks:
            writer.append(encoded(block, kind))
    shard = map_shard(folder, 3, kind, writer.counts)
    documents = [document for block in blocks for document in block]
    assert len(shard) == len(documents)
    found = [shard.tokens[begin:end].tolist() for begin, end in zip(shard.starts[:-1], shard.starts[1:], strict=True)]
    assert found == documents
    assert np.array_equal(shard.flags, shard.tokens % 251)
    assert (shard.tokens.dtype, shard.flags.dtype, shard.starts.dtype) == (kind, np.uint8, np.int64)
    for name, wanted in writer.sums.items():
        check_sum(path_of(folder, 3, name), wanted)
    assert sorted(path.name for path in folder.iterdir()) == [
        f"shard-00003.{each}" for each in ("docs", "flags", "tokens")
    ]


def test_nothing_is_left_of_a_shard_that_failed(tmp_path):
    with suppress(KeyboardInterrupt), writing_shard(tmp_path, 0) as writer:
        writer.append(encoded([[1, 2]], np.uint16))
        assert len(sums(tmp_path)) == 3
        raise KeyboardInterrupt
    assert not sums(tmp_path)


def test_ids_have_sixteen_bits_as_long_as_they_fit():
    assert [type_of_ids(size).itemsize for size in (1, 65536, 65537)] == [2, 2, 4]


def test_a_corpus_needs_nothing_but_its_folder(place, tmp_path):
    moved = shutil.copytree(place / "whole", tmp_path / "elsewhere")
    corpus = CorpusFolder.open(moved)
    corpus.verify()
    assert corpus.fingerprint == CorpusFolder.open(place / "whole").fingerprint
    assert corpus.tokenizer.files() == Tokenizer.from_pretrained(place / "tiny").files()
    assert Segments.of(corpus, 20).lengths.sum() == corpus.manifest.counts.tokens
    assert not corpus.shards[0].tokens.flags.writeable


def test_damage_of_any_file_is_found_and_named(copy):
    for name in sums(copy).keys() - {"manifest.json"}:
        path = copy / name
        content = path.read_bytes()
        damaged = bytearray(content)
        damaged[len(damaged) // 2] ^= 1
        path.write_bytes(damaged)
        with pytest.raises(DataError, match=f"{name}: is damaged: its SHA-256 is not the one in the manifest"):
            CorpusFolder.open(copy).verify()
        path.unlink()
        with pytest.raises(DataError, match=f"{name}: there is no such file"):
            CorpusFolder.open(copy).verify()
        path.write_bytes(content)
    CorpusFolder.open(copy).verify()


def test_opening_finds_files_of_another_size(copy):
    for name in sums(copy):
        if name.startswith("shard"):
            path = copy / name
            content = path.read_bytes()
            for changed in (content[:-1], content + b"\0", b""):
                path.write_bytes(changed)
                told = f"{name}: has {len(changed)} bytes instead of {len(content)}; it was cut off or is of another"
                with pytest.raises(DataError, match=told):
                    CorpusFolder.open(copy)
            path.write_bytes(content)
    starts = copy / "shard-00000.docs"
    starts.write_bytes(bytes(8) + starts.read_bytes()[:-8])
    with pytest.raises(DataError, match=r"shard-00000\.docs: its documents do not end with the tokens"):
        CorpusFolder.open(copy)


def test_a_tokenizer_that_was_changed_is_refused(copy):
    path = copy / "tokenizer" / "tokenizer.json"
    path.write_bytes(path.read_bytes() + b"\n")
    corpus = CorpusFolder.open(copy)
    with pytest.raises(DataError, match=r"tokenizer\.json: is damaged: its SHA-256 is not the one in the manifest"):
        corpus.tokenizer  # noqa: B018


def changed(record, path, value):
    *places, last = path
    for place in places:
        record = record[place]
    record[last] = value


WRONG = [
    (("format",), 2),
    (("complete",), "yes"),
    (("shards",), {"a": 1}),
    (("shards", 0, "counts", "tokens"), -1),
    (("shards", 0, "counts", "tokens"), True),
    (("shards", 0, "counts", "words"), 10**6),
    (("shards", 0, "counts"), {"tokens": 1, "more": 2}),
    (("shards", 0, "sha256"), {}),
    (("origin", "vocab_size"), 0),
    (("origin", "segmenter"), None),
    (("origin", "inputs"), [{}]),
    (("origin", "tokenizer"), ["a"]),
    (("origin",), None),
    (("counts",), {}),
]


@pytest.mark.parametrize(("path", "value"), WRONG)
def test_a_manifest_that_cannot_be_right_is_refused(copy, path, value):
    record = json.loads((copy / "manifest.json").read_bytes())
    changed(record, path, value)
    (copy / "manifest.json").write_text(json.dumps(record))
    with pytest.raises(DataError, match=r"manifest\.json: is not the manifest of a corpus, or is damaged \("):
        Manifest.read(copy)


def test_a_manifest_is_read_as_it_was_written(copy):
    manifest = Manifest.read(copy)
    before = (copy / "manifest.json").read_bytes()
    manifest.write(copy)
    assert (copy / "manifest.json").read_bytes() == before
    assert Manifest.read(copy).fingerprint == manifest.fingerprint
