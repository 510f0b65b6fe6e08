"""``manifest.json``: what a folder of a corpus holds, and what it was made of."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from onion.checkpointing.atomic_files import replace_file
from onion.data.opening import opened
from onion.errors import DataError
from onion.messages import listed
from onion.tasks.data.features.hashing import digest_of_values
from onion.tasks.pretraining.corpus.encoding import Counts
from onion.tasks.pretraining.corpus.shard_files import KINDS
from onion.tasks.validators import COUNT, NATURAL, SWITCH, TEXT
from onion.validation import Check

MANIFEST = "manifest.json"
FORMAT = 1


def _is_sums(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(each, str) and each for pair in value.items() for each in pair)


SUMS = Check("names with checksums", _is_sums)
OPTIONAL_TEXT = Check("a string or null", lambda value: value is None or isinstance(value, str))


@attrs.frozen(kw_only=True)
class Input:
    """A file that a corpus was made of.

    Attributes:
        name: without its folder.
        size: in bytes.
        sha256: of its content.
    """

    name: str = attrs.field(validator=TEXT)
    size: int = attrs.field(validator=COUNT)
    sha256: str = attrs.field(validator=TEXT)


@attrs.frozen(kw_only=True)
class Origin:
    """What a corpus is made of: equal origins give equal bytes.

    Attributes:
        language: of the texts, such as ``zh``; None: not told.
        tokenizer: SHA-256 of each of its files, by name.
        vocab_size: of the tokenizer, which the ids are below.
        segmenter, segmenter_version: its name and version.
        dictionary_sha256: of the dictionary of the segmenter, if it has one of its own.
        shard_tokens: a shard ends with the block of documents that brings it to so many.
        encoding: version of the code that makes ids and flags of them.
        inputs: in their order.
    """

    language: str | None = attrs.field(validator=OPTIONAL_TEXT)
    tokenizer: Mapping[str, str] = attrs.field(validator=SUMS)
    vocab_size: int = attrs.field(validator=NATURAL)
    segmenter: str = attrs.field(validator=TEXT)
    segmenter_version: str = attrs.field(validator=TEXT)
    dictionary_sha256: str | None = attrs.field(validator=OPTIONAL_TEXT)
    shard_tokens: int = attrs.field(validator=NATURAL)
    encoding: int = attrs.field(validator=NATURAL)
    inputs: Sequence[Input]

    def differences(self, other: Origin) -> str:
        """Return the names of the settings in which another origin differs, for messages."""
        mine, others = attrs.asdict(self), attrs.asdict(other)
        return ", ".join(name.replace("_", " ") for name in mine if mine[name] != others[name])


@attrs.frozen(kw_only=True)
class ShardRecord:
    """A shard that is whole.

    Attributes:
        counts: what it has.
        sha256: of each file, by its kind.
    """

    counts: Counts
    sha256: Mapping[str, str] = attrs.field(validator=SUMS)


@attrs.frozen(kw_only=True)
class Manifest:
    """What a folder holds.

    Attributes:
        origin: what it is made of.
        shards: those that are whole, in order.
        complete: whether these are all.
    """

    origin: Origin
    shards: Sequence[ShardRecord] = ()
    complete: bool = attrs.field(default=False, validator=SWITCH)

    @property
    def counts(self) -> Counts:
        """What all shards have."""
        return sum((shard.counts for shard in self.shards), Counts())

    @property
    def fingerprint(self) -> str:
        """Identifies the content: a digest of everything in it."""
        return digest_of_values(self._record())

    def _record(self) -> dict[str, Any]:
        return {"format": FORMAT, "counts": attrs.asdict(self.counts), **attrs.asdict(self)}

    def write(self, folder: Path) -> None:
        """Write the manifest atomically; raises OSError."""
        replace_file(folder / MANIFEST, json.dumps(self._record(), indent=1, ensure_ascii=False).encode() + b"\n")

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """Read the manifest of a folder.

        Raises:
            DataError: it is missing, damaged, or of a later version of onion.
        """
        path = folder / MANIFEST
        if folder.is_dir() and not path.exists():
            raise DataError(f"{folder}: is no corpus, since it has no {MANIFEST}; make one with 'onion corpus build'")
        with opened(path) as file:
            content = file.read()
        try:
            record = json.loads(content)
            if record["format"] != FORMAT:
                raise DataError(f"its format is {record['format']!r}, and this version of onion reads {FORMAT}")
            return _manifest_of(record)
        except (DataError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise DataError(
                f"{path}: is not the manifest of a corpus, or is damaged ({error}); build it anew"
            ) from None


def _manifest_of(record: Mapping[str, Any]) -> Manifest:
    origin = {**record["origin"], "inputs": tuple(Input(**each) for each in record["origin"]["inputs"])}
    shards = [
        ShardRecord(counts=_counts_of(each["counts"]), sha256={kind: each["sha256"][kind] for kind in KINDS})
        for each in record["shards"]
    ]
    found = Manifest(origin=Origin(**origin), shards=tuple(shards), complete=record["complete"])
    if attrs.asdict(found.counts) != record["counts"]:
        raise DataError("the counts of its shards do not add up")
    return found


def _counts_of(record: Mapping[str, Any]) -> Counts:
    wrong = [name for name, value in record.items() if not COUNT.fits(value)]
    if wrong:
        raise DataError(f"{listed(wrong)} must be {COUNT.wanted}")
    return Counts(**record)
