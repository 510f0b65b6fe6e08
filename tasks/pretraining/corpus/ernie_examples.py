"""ERNIE 1.0's pretraining data as examples of next sentence, with their units as words."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import attrs
import numpy as np
from numpy.typing import NDArray

from onion.errors import DataError
from onion.tasks.data.features.hashing import digest_of_file, digest_of_values
from onion.tasks.pretraining.corpus.ernie_lines import INSIDE, ErnieSample, ListedFile, read_samples
from onion.tasks.pretraining.corpus.flags import IN_WORD
from onion.tasks.pretraining.examples import Example


def example_of(sample: ErnieSample) -> Example:
    """Return the example of a line; its label is 1 if the second sentence follows, as in ``next-sentence``."""
    flags = np.where(sample.units == INSIDE, IN_WORD, 0).astype(np.uint8)
    return {"ids": sample.ids, "types": sample.sentences, "flags": flags, "label": sample.label}


@attrs.frozen(eq=False)
class ErnieExamples:
    """The lines of files, the same in every pass: ``PassExamples``.

    Attributes:
        examples: unmasked, in memory.
        fingerprint: identifies files and settings.
        left_out: how many lines were too long.
    """

    examples: Sequence[Example]
    fingerprint: str
    left_out: int

    @classmethod
    def read(
        cls, files: Sequence[Path | ListedFile], max_length: int = 512, vocab_size: int | None = None
    ) -> ErnieExamples:
        """Read files; longer lines are left out, as ERNIE does.

        Args:
            files: paths, or what :func:`onion.tasks.pretraining.corpus.ernie_lines.read_file_list` reads: then each
                example has ``file``, the number of its file, and the ``word_share`` of that.
            max_length: of the lines that are kept, in tokens. Default 512.
            vocab_size: of the encoder's word embeddings, which all ids have to be below. Default None: any ids.

        Raises:
            DataError: a file is malformed, an id is not in the vocabulary, or all lines are too long.
        """
        examples, lines = [], 0
        paths = [file.path if isinstance(file, ListedFile) else file for file in files]
        for number, (file, path) in enumerate(zip(files, paths, strict=True)):
            told = {"file": number, "word_share": file.word_share} if isinstance(file, ListedFile) else {}
            samples = list(read_samples(path, vocab_size))
            lines += len(samples)
            examples += [{**example_of(each), **told} for each in samples if len(each.ids) <= max_length]
        if not lines:
            raise DataError(f"{', '.join(map(str, paths))}: there is no line")
        if not examples:
            raise DataError(f"{', '.join(map(str, paths))}: no line has at most {max_length} tokens; raise max_length")
        shares = [file.word_share if isinstance(file, ListedFile) else None for file in files]
        settings = {"files": [digest_of_file(path) for path in paths], "max_length": max_length}
        listed = {"word_shares": shares} if any(share is not None for share in shares) else {}
        return cls(examples, digest_of_values({**settings, **listed}), lines - len(examples))

    @property
    def lengths(self) -> NDArray[np.integer]:
        """Tokens of each example, int64 ``[examples]``."""
        return np.array([len(example["ids"]) for example in self.examples])

    def __len__(self) -> int:
        """The number of examples."""
        return len(self.examples)

    def of_pass(self, pass_id: int) -> Sequence[Example]:
        """Return all examples, which are the same in every pass."""
        return self.examples
