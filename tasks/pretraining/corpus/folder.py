"""`CorpusFolder`: a corpus as ``onion corpus build`` makes it, mapped into memory.

manifest.json       what it holds and what it was made of, with checksums
tokenizer/          the tokenizer's own files
shard-00000.tokens  the ids of the first shard; .flags and .docs beside them (``shard_files.py``)
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from onion.errors import DataError
from onion.models.tokenizer import Tokenizer
from onion.tasks.pretraining.corpus.corpus import Shard
from onion.tasks.pretraining.corpus.encoding import type_of_ids
from onion.tasks.pretraining.corpus.manifest import Manifest
from onion.tasks.pretraining.corpus.shard_files import KINDS, check_sum, map_shard, path_of

TOKENIZER = "tokenizer"


class CorpusFolder:
    """A corpus in a folder. Opening it reads neither tokens nor flags; see ``onion.tasks.pretraining.corpus.corpus``.

    Attributes:
        path: the folder.
        manifest: what it holds.
        shards: mapped into memory, read-only.
    """

    def __init__(self, path: Path, manifest: Manifest, shards: Sequence[Shard]) -> None:
        self.path, self.manifest, self.shards = path, manifest, shards

    @classmethod
    def open(cls, path: str | Path) -> CorpusFolder:
        """Open a folder, and compare the sizes of its files with the manifest.

        Raises:
            DataError: it is no corpus, its build has not ended, or a file is missing or of another size; the message
                names the file.
        """
        folder = Path(path)
        manifest = Manifest.read(folder)
        if not manifest.complete:
            raise DataError(
                f"{folder}: its build has not ended ({len(manifest.shards)} shards are whole); start the same 'onion "
                "corpus build' again, which goes on with it"
            )
        ids = type_of_ids(manifest.origin.vocab_size)
        shards = [map_shard(folder, number, ids, each.counts) for number, each in enumerate(manifest.shards)]
        return cls(folder, manifest, tuple(shards))

    @property
    def fingerprint(self) -> str:
        """Identifies the content: a digest of the manifest, which has the checksums of all files."""
        return self.manifest.fingerprint

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer that made the ids, loaded when it is first asked for.

        Raises:
            DataError: one of its files is not the one that it was.
            WeightsError: it cannot be loaded.
        """
        self._check_tokenizer()
        return Tokenizer.from_pretrained(self.path / TOKENIZER)

    def _check_tokenizer(self) -> None:
        for name, wanted in self.manifest.origin.tokenizer.items():
            check_sum(self.path / TOKENIZER / Path(name).name, wanted)

    def verify(self) -> None:
        """Compare all files with their checksums, which reads them.

        Raises:
            DataError: one is damaged; the message names it.
        """
        self._check_tokenizer()
        for number, shard in enumerate(self.manifest.shards):
            for kind in KINDS:
                check_sum(path_of(self.path, number, kind), shard.sha256[kind])
