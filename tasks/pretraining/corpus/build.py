"""``onion corpus build``: raw text -> a folder of shards.

One process reads documents and puts them into blocks, others tokenize and segment blocks, and the first writes the
results in order. The bytes depend on the input and the settings alone: a block ends with the document that brings it to
a number of characters, a shard with the block that brings it to a number of tokens. The manifest is written anew after
each shard; a build that was ended in any way begins again behind the last one.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import chain, islice
from pathlib import Path

import attrs

from onion.checkpointing.atomic_files import remove_abandoned, sync_folder
from onion.checkpointing.lock import LOCK, exclusive_lock
from onion.data.workers import Workers
from onion.errors import DataError
from onion.models.tokenizer import Tokenizer
from onion.tasks.data.features.hashing import digest_of_file
from onion.tasks.pretraining.corpus.encoding import (
    VERSION,
    Counts,
    DocumentEncoder,
    Encoded,
    Paragraphs,
    blocks_of,
    type_of_ids,
)
from onion.tasks.pretraining.corpus.folder import TOKENIZER, CorpusFolder
from onion.tasks.pretraining.corpus.manifest import MANIFEST, Input, Manifest, Origin, ShardRecord
from onion.tasks.pretraining.corpus.raw_text import read_documents
from onion.tasks.pretraining.corpus.segmentation.segmenter import Segmenter
from onion.tasks.pretraining.corpus.shard_files import map_shard, writing_shard
from onion.tasks.validators import NATURAL, TEXTS, as_texts

SHARD_TOKENS = 1 << 26
BLOCK_CHARACTERS = 1 << 18
"""Characters in a block, or one for each token of a shard if these are fewer. A result has some 3 bytes for each."""

Told = Callable[[Counts], object]


@attrs.frozen(kw_only=True, eq=False)
class Build:
    """How a corpus is made.

    Attributes:
        inputs: files as :func:`onion.tasks.pretraining.corpus.raw_text.read_documents` takes them, in order.
        tokenizer: makes the ids; its files are copied into the corpus.
        segmenter: finds words, phrases and entities.
        language: of the texts, such as ``zh``, for the manifest. Default: not told.
        shard_tokens: a shard ends with the block of documents that brings it to so many. Default 2**26, 200 MB.
        workers: processes that tokenize. Default 1: this one, and no other.
    """

    inputs: Sequence[str] = attrs.field(converter=as_texts, validator=TEXTS)
    tokenizer: Tokenizer
    segmenter: Segmenter
    language: str | None = None
    shard_tokens: int = attrs.field(default=SHARD_TOKENS, validator=NATURAL)
    workers: int = attrs.field(default=1, validator=NATURAL)

    def run(self, output: Path, told: Told = lambda counts: None) -> CorpusFolder:
        """Make a corpus, or go on with one that was begun.

        Args:
            output: its folder, new or that of the same build.
            told: is called with the counts of what is there, and then of each block that has been written, for a
                progress bar.

        Raises:
            DataError: an input is invalid or has changed, the folder holds something else or another corpus, or cannot
                be written: its whole shards stay, and the same build goes on behind them.
            CheckpointError: another process is building there.
        """
        origin = self._origin()
        try:
            output.mkdir(parents=True, exist_ok=True)
            with exclusive_lock(output, self):
                remove_abandoned(output)
                manifest = self._begun(output, origin)
                if not manifest.complete:
                    self._write(output, manifest, told)
        except OSError as error:
            raise DataError(
                f"{output}: cannot be written: {error.strerror}; its whole shards stay, and the same command goes on "
                "behind them"
            ) from None
        return CorpusFolder.open(output)

    def _origin(self) -> Origin:
        inputs = [
            Input(name=path.name, size=path.stat().st_size, sha256=sha256)
            for path, sha256 in ((Path(each), digest_of_file(each)) for each in self.inputs)
        ]
        return Origin(
            language=self.language,
            tokenizer=_sums(self.tokenizer),
            vocab_size=self.tokenizer.vocab_size,
            segmenter=self.segmenter.name,
            segmenter_version=self.segmenter.version,
            dictionary_sha256=self.segmenter.dictionary_sha256,
            shard_tokens=self.shard_tokens,
            encoding=VERSION,
            inputs=tuple(inputs),
        )

    def _begun(self, output: Path, origin: Origin) -> Manifest:
        """Return the manifest of the build in a folder, or begin one."""
        if (output / MANIFEST).exists():
            manifest = Manifest.read(output)
            if manifest.origin == origin:
                _check_shards(output, manifest)
                return manifest
            if manifest.shards:  # nothing is lost where none is whole, such as after an error in the first lines
                told = manifest.origin.differences(origin)
                raise DataError(f"{output}: holds another corpus ({told}); choose a new folder, or remove this one")
        elif any(each.name not in (LOCK, TOKENIZER) for each in output.iterdir()):
            raise DataError(f"{output}: is not empty, and holds no corpus; choose a new folder")
        shutil.rmtree(output / TOKENIZER, ignore_errors=True)
        self.tokenizer.save_pretrained(output / TOKENIZER)
        sync_folder(output)
        manifest = Manifest(origin=origin)
        manifest.write(output)
        return manifest

    def _write(self, output: Path, manifest: Manifest, told: Told) -> None:
        told(manifest.counts)
        size = min(BLOCK_CHARACTERS, self.shard_tokens)
        blocks = blocks_of(islice(self._documents(), manifest.counts.documents, None), _characters, size)
        with closing(self._encoded(blocks)) as encoded:
            for first in encoded:
                with writing_shard(output, len(manifest.shards)) as shard:
                    for each in chain([first], encoded):
                        shard.append(each)
                        told(each.counts)
                        if shard.counts.tokens >= self.shard_tokens:
                            break
                record = ShardRecord(counts=shard.counts, sha256=shard.sums)
                manifest = attrs.evolve(manifest, shards=(*manifest.shards, record))
                manifest.write(output)
        if not manifest.counts.tokens:
            raise DataError(f"{', '.join(self.inputs)}: the tokenizer finds no token in the texts")
        if self._origin() != manifest.origin:
            raise DataError(f"{output}: an input has changed while it was read; delete the folder and start again")
        attrs.evolve(manifest, complete=True).write(output)

    def _documents(self) -> Iterator[Paragraphs]:
        return (document.paragraphs for path in self.inputs for document in read_documents(Path(path)))

    def _encoded(self, blocks: Iterable[list[Paragraphs]]) -> Generator[Encoded, None, None]:
        encoder = DocumentEncoder(self.tokenizer, self.segmenter)
        if self.workers == 1:
            yield from map(encoder, blocks)
        else:
            yield from Workers(partial(_on_one_thread, encoder), self.workers).map(blocks)


def _on_one_thread(encoder: DocumentEncoder, documents: Sequence[Paragraphs]) -> Encoded:
    """Encode documents in a worker: the tokenizer's own threads would take the processors from the other workers."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    return encoder(documents)


def _characters(document: Paragraphs) -> int:
    return sum(map(len, document))


def _sums(tokenizer: Tokenizer) -> dict[str, str]:
    return {name: hashlib.sha256(content).hexdigest() for name, content in sorted(tokenizer.files().items())}


def _check_shards(output: Path, manifest: Manifest) -> None:
    """Refuse to go on behind shards that are not whole any more; hours later nobody could read the corpus.

    Raises:
        DataError: the message names the file.
    """
    ids = type_of_ids(manifest.origin.vocab_size)
    try:
        for number, shard in enumerate(manifest.shards):
            map_shard(output, number, ids, shard.counts)
    except DataError as error:
        raise DataError(f"{error}; remove {output}, and start the build again") from None
