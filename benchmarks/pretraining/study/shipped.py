"""Make the model that comes with onion from an encoder that ``onion pretrain`` has left.

    python -m benchmarks.pretraining.study.shipped RUN/encoder HELD_OUT FOLDER

Writes config, tokenizer, and the weights in 16 bits, without the positions that were never trained. HELD_OUT is a
corpus that the encoder has not seen. Nothing is written if the folder would be 20 MB or more, or if 16 bits change the
outputs by more than 0.02 or the loss of masked words by 0.01 nats or more. The same encoder gives the same bytes.

Prints what 16 bits change and what the folder holds, in JSON. Its card: card.py.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from benchmarks.pretraining.study.under_masks import figures, masked_examples
from onion.device import use_threads
from onion.errors import OnionError, WeightsError
from onion.models.auto import load_encoder
from onion.models.formats.layouts import SAFETENSORS
from onion.models.formats.safetensors_file import read_metadata, read_safetensors, write_safetensors
from onion.tasks.pretraining.corpus.opening import open_corpus
from onion.tasks.pretraining.examples import collate

HALF = np.float16
MAX_LENGTH = 128
"""Tokens of an example of the pretraining."""

POSITIONS, POSITIONS_OF_CONFIG = "position_embeddings.weight", "max_position_embeddings"
CONFIG, BESIDE = "config.json", ("tokenizer.json", "tokenizer_config.json")
MAX_BYTES = 20_000_000
MAX_OUTPUTS, MAX_LOSS = 0.02, 0.01
"""By how much 16 bits may change values of the outputs, which are about 1, and the loss of masked words in nats."""

COMPARED = 64
"""Segments of which all outputs are compared."""


@attrs.frozen
class Difference:
    """How far apart two encoders are.

    Attributes:
        outputs: the largest difference of two values of ``sequence_output``, which LayerNorm has brought to about 1.
        whole_loss, half_loss: of masked words, in nats: the one's, the other's.
    """

    outputs: float
    whole_loss: float
    half_loss: float

    @property
    def loss(self) -> float:
        """How far the losses are apart."""
        return abs(self.whole_loss - self.half_loss)


def make(encoder: Path, held_out: Path, target: Path) -> dict[str, Any]:
    """Write the folder of the model, replaced as a whole; return what 16 bits change, its bytes, and its checksum.

    Raises:
        OnionError: something is not what it should be, or the model is too large or too different; the folder stays as
            it was.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as work:
        folder = Path(work) / target.name
        folder.mkdir()
        write_halved(encoder, folder)
        difference = compared(encoder, folder, held_out)
        check(folder, difference)
        shutil.rmtree(target, ignore_errors=True)
        folder.rename(target)
    digest = hashlib.sha256((target / SAFETENSORS).read_bytes()).hexdigest()
    return {**attrs.asdict(difference), "bytes": size_of(target), "sha256": digest}


def write_halved(encoder: Path, folder: Path) -> None:
    """Write an encoder with its weights in float16, under the names that they have, and no longer texts than trained.

    Args:
        encoder: a folder that ``onion pretrain`` has written.
        folder: there is, and is empty.

    Raises:
        WeightsError: a file is missing or damaged, or a weight is too large for float16.
    """
    for name in (CONFIG, *BESIDE):
        if not (encoder / name).is_file():
            raise WeightsError(f"{encoder / name}: no such file; give the folder `encoder` of `onion pretrain`")
    halved = {name: _half(name, array, encoder) for name, array in read_safetensors(encoder / SAFETENSORS).items()}
    write_safetensors(folder / SAFETENSORS, halved, read_metadata(encoder / SAFETENSORS))
    config = json.loads((encoder / CONFIG).read_text(encoding="utf-8"))
    config[POSITIONS_OF_CONFIG] = min(MAX_LENGTH, config[POSITIONS_OF_CONFIG])
    (folder / CONFIG).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    for name in BESIDE:
        shutil.copyfile(encoder / name, folder / name)


def _half(name: str, array: np.ndarray, encoder: Path) -> np.ndarray:
    if array.size and not float(np.abs(array).max()) <= float(np.finfo(HALF).max):  # NaN compares false too
        raise WeightsError(f"{encoder}: {name} has values that float16 does not hold; keep it in 32 bits")
    return array[:MAX_LENGTH].astype(HALF) if name.endswith(POSITIONS) else array.astype(HALF)


def compared(one: Path, other: Path, held_out: Path) -> Difference:
    """Compare two encoders with their masked LM heads on a corpus; both see the same masks, of whole words.

    Raises:
        OnionError: a folder is no encoder, or no corpus.
    """
    corpus = open_corpus(held_out)
    rows = masked_examples(corpus, "word").of_pass(0)
    batch = collate([rows[number] for number in range(min(COMPARED, len(rows)))], corpus.tokenizer.pad_id)
    vectors = [_vectors(folder, batch["input_ids"]) for folder in (one, other)]
    losses = [figures(folder, corpus, "word")["word_loss"] for folder in (one, other)]
    return Difference(float(np.abs(vectors[0] - vectors[1]).max()), *losses)


def _vectors(folder: Path, ids: np.ndarray) -> np.ndarray:
    encoder = load_encoder(folder)
    encoder.eval()
    vectors: np.ndarray = encoder(ids).packed.numpy()
    return vectors


def check(folder: Path, difference: Difference) -> None:
    """Raise a WeightsError if a folder is too large, or too different from the encoder in 32 bits."""
    if (size := size_of(folder)) >= MAX_BYTES:
        raise WeightsError(f"the model has {size:,} bytes, and should have less than {MAX_BYTES:,}")
    if difference.outputs > MAX_OUTPUTS or difference.loss >= MAX_LOSS:
        raise WeightsError(
            f"16 bits change outputs by {difference.outputs:.3g} and the loss of masked words by {difference.loss:.3g} "
            f"nats; {MAX_OUTPUTS} and {MAX_LOSS} are the limits"
        )


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())


def main(arguments: list[str]) -> int:
    """Write the folder; return the exit status."""
    encoder, held_out, target = map(Path, arguments)
    use_threads()
    try:
        print(json.dumps(make(encoder, held_out, target)))
    except OnionError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
