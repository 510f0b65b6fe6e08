"""`open_corpus`: a corpus by its path, whoever made it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from onion.errors import DataError
from onion.models.tokenizer import Tokenizer
from onion.tasks.pretraining.corpus.corpus import Corpus
from onion.tasks.pretraining.corpus.folder import CorpusFolder
from onion.tasks.pretraining.corpus.foreign import megatron, paddlenlp
from onion.tasks.pretraining.corpus.foreign.sentence_lengths import SentenceLengths

FOREIGN: dict[str, Callable[[Path], SentenceLengths]] = {
    paddlenlp.IDS: paddlenlp.read_paddlenlp,
    paddlenlp.INDEX: paddlenlp.read_paddlenlp,
    megatron.IDS: megatron.read_megatron,
    megatron.INDEX: megatron.read_megatron,
}
"""The ending of a file -> what reads it and the one beside it."""


def open_corpus(path: str | Path, tokenizer: Tokenizer | None = None) -> Corpus:
    """Open a corpus.

    Args:
        path: a folder of ``onion corpus build``; or PaddleNLP's ``NAME_ids.npy`` or ``NAME_idx.npz``, or Megatron-LM's
            ``NAME.bin`` or ``NAME.idx``, or NAME alone.
        tokenizer: that made the ids of PaddleNLP's or Megatron-LM's files. A folder has its own, and needs none.

    Raises:
        DataError: there is no corpus, or it is damaged, or the tokenizer is missing or not the one that made it.
    """
    path = Path(path)
    if path.is_dir():
        return CorpusFolder.open(path)
    prefix, read = _found(path)
    if tokenizer is None:
        raise DataError(f"{path}: does not hold the tokenizer that made it; give that too (tokenizer)")
    return read(prefix).corpus(tokenizer)


def _found(path: Path) -> tuple[Path, Callable[[Path], SentenceLengths]]:
    for ending, read in FOREIGN.items():
        if path.name.endswith(ending):
            return path.with_name(path.name.removesuffix(ending)), read
        if path.with_name(path.name + ending).exists():
            return path, read
    raise DataError(
        f"{path}: there is no corpus; name a folder of 'onion corpus build', or PaddleNLP's or Megatron-LM's files "
        f"({', '.join(FOREIGN)})"
    )
