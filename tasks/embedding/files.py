"""The job behind ``onion embed``: from a file of any size to .npy files, in constant memory.

rows are read and tokenized chunk by chunk  ->  sorted by length within the chunk  ->  batches
->  each row's vectors are written to its position in the files, which appear together at the end
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from onion import DataProvider, HookIterator, Progress, Runner, RunnerItem, State
from onion.checkpointing.atomic_files import sync, write
from onion.checkpointing.new_folder import check_new, new_folder
from onion.data.opening import refuse_pipe
from onion.errors import DataError
from onion.models import hub
from onion.models.families import read_config
from onion.models.tokenizer import Tokenizer
from onion.tasks.batches import batch_of
from onion.tasks.data.carried import carried
from onion.tasks.data.features.examples import Example
from onion.tasks.data.features.text_checks import Tally
from onion.tasks.data.prepared import json_line, prepared
from onion.tasks.data.rows import Row, file_rows
from onion.tasks.data.texts import PAIR, TEXT, check_max_length, checked_texts, examples_of, note_cut, tell_notes
from onion.tasks.embedding.exported_encoder import ExportedEncoder
from onion.tasks.embedding.npy import NpyFile
from onion.tasks.export.exported_network import forward_of

if TYPE_CHECKING:
    from onion.tasks.embedding.embedder import Embedder
    from onion.tasks.networks.pooled_encoder import PooledEncoder

CHUNK = 50
"""Batches per chunk, the part of a file that is in memory."""

VECTORS, TOKENS, LENGTHS, ROWS = "cls_emb.npy", "top_layer_emb.npy", "lengths.npy", "rows.jsonl"
"""The first two are the names used by ERNIE's encoder tool, here for any pooling and layer."""


def embed(
    encoder: str | Path,
    data: str | Path,
    output: Path,
    tokens: bool = False,
    pooling: str | None = None,
    quiet: bool = False,
    columns: Mapping[str, str] | None = None,
    carry: Sequence[str] = (),
    **settings: Any,
) -> dict[str, Any]:
    """Load an encoder by its name or folder and call :func:`embed_file`; ``settings`` are those of Embedder.

    The folder and the first row are checked before weights are fetched.

    Raises:
        OnionError: the encoder, its settings, the file or the folder are invalid.
    """
    from onion.tasks.embedding.embedder import Embedder

    check_new(output)
    refuse_pipe(Path(data))
    path = prepared(data, columns, labelled=False)
    next(_rows(path))
    next(carried(path, data, [TEXT, *carry], [PAIR]))
    if settings.get("max_length") is not None:  # for a message with the name of the flag
        check_max_length(settings["max_length"], read_config(hub.resolve(encoder)).max_length)
    embedder = Embedder.from_pretrained(encoder, pooling, **settings)
    return embed_file(embedder, data, output, tokens, quiet, columns, carry)


def embed_file(
    embedder: Embedder,
    data: str | Path,
    output: Path,
    tokens: bool = False,
    quiet: bool = False,
    columns: Mapping[str, str] | None = None,
    carry: Sequence[str] = (),
) -> dict[str, Any]:
    """Write the vectors of a file's rows, in their order.

    * ``cls_emb.npy``: float32 ``[rows, hidden]``
    * ``rows.jsonl``: the texts of each row, ``text_a`` and ``text_b`` if there is one, and the columns that are carried
    * with ``tokens`` also ``top_layer_emb.npy``, the token vectors of all rows, special tokens included: float32
      ``[tokens, hidden]``; and ``lengths.npy``, the number of tokens of each row: int64 ``[rows]``

    Args:
        embedder: computes the vectors.
        data: rows with ``text_a``, and ``text_b`` if they are pairs, as ``onion.tasks.data.prepared.prepared`` takes
            them. They are read more than once, since every row is checked before the first is computed.
        output: a new or empty folder; it has all files, or does not exist after an error or an interrupt.
        tokens: write the token vectors, too.
        quiet: show no progress.
        columns: as ``prepared`` takes them. Default: the columns of the file have the names above.
        carry: other columns to write beside the texts, such as an id.

    Returns:
        ``rows``, ``tokens``, ``hidden`` and ``output``.

    Raises:
        DataError: the input is invalid, or the folder cannot be written.
    """
    check_new(output)
    network = _with_tokens(embedder.network) if tokens else embedder.network
    path = prepared(data, columns, labelled=False)
    stream = TextStream(path, embedder.tokenizer, embedder.max_length, CHUNK * embedder.batch_size)
    with new_folder(output) as folder, ExitStack() as held:
        files: list[tuple[Any, ...]] = [(VECTORS, "<f4", embedder.width)]
        if tokens:
            files += [(TOKENS, "<f4", embedder.width), (LENGTHS, "<i8")]
        vectors, *rest = (held.enter_context(NpyFile(folder / name, *kind)) for name, *kind in files)
        embedding_onion(network, stream, embedder, Writer(vectors, *rest), quiet).run(passes=1)
        written = _write_rows(folder / ROWS, carried(path, data, [TEXT, *carry], [PAIR]))
        if not vectors.rows == written == len(stream):
            raise DataError(f"{data}: changed while it was read; nothing was written.")
    tell_notes(str(data), stream.notes)
    return {"rows": len(stream), "tokens": stream.tokens, "hidden": embedder.width, "output": str(output)}


def _with_tokens(pooled: PooledEncoder | ExportedEncoder) -> PooledEncoder:
    """Return a network that gives the vectors of tokens too.

    Raises:
        DataError: it was exported, and gives those of texts only.
    """
    if isinstance(pooled, ExportedEncoder):
        raise DataError("an exported encoder gives the vectors of texts only; for those of tokens take the encoder.")
    from onion.tasks.networks.pooled_encoder import PooledEncoder

    return PooledEncoder(pooled.encoder, pooled.pooling, normalize=pooled.normalize, tokens=True)


def _write_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> int:
    """Write a line of JSON for each row; return how many."""
    count = 0
    with path.open("wb") as file:
        for cells in rows:
            write(file, json_line(cells))
            count += 1
        sync(file)
    return count


def embedding_onion(
    network: PooledEncoder | ExportedEncoder,
    stream: TextStream,
    embedder: Embedder,
    writer: Writer,
    quiet: bool = False,
) -> Runner:
    """Return the runner that embeds a stream of texts."""
    return Runner(
        Progress(quiet=quiet),
        DataProvider(stream, embedder.batch_size, collate=partial(_collate, pad_id=embedder.tokenizer.pad_id)),
        Expected(-(-len(stream) // embedder.batch_size)),
        writer,
        forward_of(network),
    )


def _collate(examples: list[Example], pad_id: int) -> dict[str, Any]:
    return {**batch_of(examples, pad_id), "starts": [example["start"] for example in examples]}


class TextStream:
    """The examples of a file, read in every pass chunk by chunk; within a chunk sorted by length.

    Args:
        path: the file.
        tokenizer: converts its texts into ids.
        max_length: the maximum number of tokens of an example.
        chunk: rows per chunk; a multiple of the batch size, so that no batch has rows of two chunks.

    Attributes:
        notes: warnings about the rows read so far.
        tokens: the number of their tokens.

    Raises:
        DataError: the file cannot be read, has no rows, or an invalid one.
    """

    def __init__(self, path: str | Path, tokenizer: Tokenizer, max_length: int, chunk: int) -> None:
        self._path, self._tokenizer, self._max_length, self._chunk = Path(path), tokenizer, max_length, chunk
        self.notes: Counter[str] = Counter()
        self.tokens = 0
        self._rows = sum(1 for _ in _rows(self._path))

    def __len__(self) -> int:
        return self._rows

    def __iter__(self) -> Iterator[Example]:
        self.notes.clear()
        self.tokens = 0
        tally = Tally(self._tokenizer)
        rows = _rows(self._path)
        first = 0
        while chunk := list(islice(rows, self._chunk)):
            examples = self._examples(chunk, first)
            tally.add(examples)
            yield from sorted(examples, key=lambda example: len(example["ids"]))
            first += len(chunk)
        tally.note(self.notes)

    def _examples(self, chunk: list[Row], first: int) -> list[Example]:
        seconds = [row.cells[PAIR] for row in chunk] if PAIR in chunk[0].cells else None
        encodings = self._tokenizer([row.cells[TEXT] for row in chunk], seconds, max_length=self._max_length)
        note_cut(self.notes, encodings, self._max_length)
        examples = examples_of(encodings)
        for example in examples:
            example |= {"place": first + example["row"], "start": self.tokens}
            self.tokens += len(example["ids"])
        return examples


def _rows(path: str | Path) -> Iterator[Row]:
    return checked_texts(file_rows(path, [TEXT], [PAIR]))


class Expected(RunnerItem):
    """Provide the number of batches of a stream, so that an outer progress bar shows the remaining time.

    Args:
        batches: the number of batches per pass.
    """

    def __init__(self, batches: int) -> None:
        self.batches = batches

    def on_pass(self, state: State) -> None:
        """Count them down."""
        assert state.batches is not None  # set by the DataProvider
        state.batches = _Counted(state.batches, self.batches)


class _Counted(Iterator[Any]):
    def __init__(self, batches: Iterator[Any], left: int) -> None:
        self._batches, self._left = batches, left

    def __next__(self) -> Any:
        batch = next(self._batches)
        self._left -= 1
        return batch

    def __length_hint__(self) -> int:
        return max(self._left, 0)


class Writer(RunnerItem):
    """Write the network's outputs for each row to the position of the row.

    Args:
        vectors: for the vectors of the rows.
        tokens: for their token vectors, if the network returns them.
        lengths: for the number of tokens of each row.
    """

    def __init__(self, vectors: NpyFile, tokens: NpyFile | None = None, lengths: NpyFile | None = None) -> None:
        self.vectors, self.tokens, self.lengths = vectors, tokens, lengths

    def on_batch(self, state: State) -> HookIterator:
        """Write the batch."""
        yield
        rows = state.batch["places"]
        if self.tokens is None or self.lengths is None:
            self._write_vectors(rows, np.asarray(state.outputs))
            return
        vectors, packed = map(np.asarray, state.outputs)
        self._write_vectors(rows, vectors)
        here = 0
        for row, start, length in zip(rows, state.batch["starts"], state.batch["lengths"], strict=True):
            self.tokens.put(start, packed[here : here + length])
            self.lengths.put(row, np.array([length]))
            here += length

    def _write_vectors(self, rows: list[int], vectors: np.ndarray) -> None:
        for row, vector in zip(rows, vectors, strict=True):
            self.vectors.put(row, vector[None])
