"""The weights of a folder: every layout that onion knows in, and three out. Without Paddle.

In: our own, Hugging Face's (safetensors or PyTorch, whole or in shards), PaddleNLP's, static ERNIE's. Our own layout is
``model.safetensors`` with PaddleNLP's parameter names and Paddle's [in, out] linear weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import attrs
import numpy as np

from onion.errors import WeightsError
from onion.models.formats.layouts import SAFETENSORS, read_stored
from onion.models.formats.naming import HEADS, PREFIXES, place_of, to_hugging_face, to_paddlenlp
from onion.models.formats.tensors import write_safetensors

# What the metadata of a safetensors file names as its format: transformers wants "pt", PaddleNLP refuses "pd".
FORMATS = {"onion": "pd", "huggingface": "pt", "paddlenlp": "np"}
# Models trained without a pooler (masked words, tokens, questions) store none; it starts anew and the report says so.
MAY_BE_MISSING = "pooler."
NAMES_SHOWN = 5
# Which key of the config says how many rows an embedding has.
ROWS = {
    "embeddings.word_embeddings.weight": "vocab_size",
    "embeddings.position_embeddings.weight": "max_position_embeddings",
    "embeddings.token_type_embeddings.weight": "type_vocab_size",
    "embeddings.task_type_embeddings.weight": "task_type_vocab_size",
}


@attrs.frozen
class Weights:
    """What a folder's weights hold for an encoder.

    Attributes:
        path: the file, the index of several, or the folder of static ERNIE's.
        arrays: our name of an encoder's parameter -> float32 array in Paddle's layout.
        ignored: names in the file that are neither the encoder's nor of ``heads``, as they stand there.
        layout: ``"huggingface"``, ``"onion"`` (PaddleNLP's names in safetensors), ``"paddlenlp"`` or ``"static"``.
        heads: the heads of pre-training: ``cls.predictions...`` and ``cls.seq_relationship...`` (PaddleNLP's names) ->
            array; empty where the file has none. Take them or leave them. A decoder that is tied to the word
            embeddings may be stored as ``cls.predictions.decoder_weight`` or not at all.
    """

    path: Path
    arrays: dict[str, np.ndarray] = attrs.field(repr=False)
    ignored: tuple[str, ...]
    layout: str
    heads: dict[str, np.ndarray] = attrs.field(factory=dict, repr=False)

    def check(self, shapes: Mapping[str, tuple[int, ...]]) -> tuple[str, ...]:
        """Check that the arrays are those of an encoder with parameters of these shapes.

        Returns:
            Names of parameters the file may lack and does (the pooler's).

        Raises:
            WeightsError: parameters are missing, unexpected or misshapen, or hold values that are not finite; all that
                was found is said in one message, long lists cut.
        """
        missing = [name for name in shapes if name not in self.arrays]
        fresh = tuple(name for name in missing if name.startswith(MAY_BE_MISSING))
        if len(fresh) != sum(name.startswith(MAY_BE_MISSING) for name in shapes):
            fresh = ()  # half a pooler is damage
        _complain(self.path, self.arrays, shapes, [name for name in missing if name not in fresh])
        return fresh

    def check_heads(self, shapes: Mapping[str, tuple[int, ...]]) -> tuple[str, ...]:
        """Check the heads' arrays against the parameters of heads; what else the file holds does not matter.

        Returns:
            Names of parameters that the file lacks.

        Raises:
            WeightsError: as :meth:`check`, except that heads may be missing.
        """
        _complain(self.path, {name: array for name, array in self.heads.items() if name in shapes}, shapes, [])
        return tuple(name for name in shapes if name not in self.heads)


def read_weights(folder: str | Path) -> Weights:
    """Read the weights of a folder, whichever of the layouts it holds.

    Looked for in this order: ``model.safetensors`` (ours or Hugging Face's), ``model_state.pdparams``,
    ``pytorch_model.bin``, each whole or with ``.index.json`` in shards, and ``params/`` of static ERNIE. Pickles are
    read without running them.

    Raises:
        WeightsError: no such folder or file, or a damaged one.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise WeightsError(f"{folder}: no such folder")
    path, stored, unread, layout = read_stored(folder)
    arrays: dict[str, np.ndarray] = {}
    heads: dict[str, np.ndarray] = {}
    ignored = list(unread)
    for stored_name, array in stored.items():
        place = place_of(stored_name, layout)
        if place is None:
            ignored.append(stored_name)
            continue
        kept = heads if place.is_head else arrays
        value = array.T if place.transpose else array
        if place.name not in kept:
            kept[place.name] = value
        elif not place.is_head or not np.array_equal(kept[place.name], value):  # tied biases may stand there twice
            raise WeightsError(f"{path}: {place.name} is stored twice")
    return Weights(path, arrays, tuple(ignored), layout, heads)


def write_weights(
    folder: str | Path, arrays: Mapping[str, np.ndarray], layout: str = "onion", prefix: str = ""
) -> Path:
    """Write ``model.safetensors``; the folder is made, the file replaced as a whole or not at all.

    Args:
        folder: where to.
        arrays: our parameter name -> array; heads of pre-training (``cls...``) may be among them.
        layout: ``"onion"``, ``"huggingface"`` (the names and [out, in] matrices that transformers reads) or
            ``"paddlenlp"`` (what PaddleNLP reads from safetensors; it wants no pickle).
        prefix: what stands before the encoder's names in a model with heads: ``"bert."``, ``"ernie."`` or
            ``"roberta."``; default nothing, as in a bare encoder.

    Returns:
        The file.

    Raises:
        WeightsError: it cannot be written, or there is no such layout or prefix.
    """
    if layout not in FORMATS or prefix not in ("", *PREFIXES):
        known = f"layouts are {', '.join(FORMATS)}; prefixes {', '.join(PREFIXES)} or none"
        raise WeightsError(f"cannot write the layout {layout!r} with the prefix {prefix!r}; {known}")
    path = make_folder(folder) / SAFETENSORS
    named = {}
    for name, array in arrays.items():
        if layout == "huggingface":
            name, transpose = to_hugging_face(name, prefix)
            array = array.T if transpose else array
        elif layout == "paddlenlp":
            name = to_paddlenlp(name, prefix)
        elif not name.startswith(HEADS):
            name = prefix + name
        named[name] = array
    write_safetensors(path, named, FORMATS[layout])
    return path


def make_folder(folder: str | Path) -> Path:
    """Make a folder and those above it, if need be.

    Raises:
        WeightsError: it cannot be made.
    """
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WeightsError(f"{folder}: cannot make the folder: {error.strerror}") from error
    return folder


def _complain(
    path: Path, arrays: Mapping[str, np.ndarray], shapes: Mapping[str, tuple[int, ...]], missing: list[str]
) -> None:
    """Raise one error that lists all that is wrong with the arrays, if anything is."""
    misshapen = [
        f"{name} is {list(array.shape)}, not {list(shapes[name])}{_rows(name, array, shapes[name])}"
        for name, array in arrays.items()
        if name in shapes and array.shape != tuple(shapes[name])
    ]
    complaints = [
        *_listed("missing", missing),
        *_listed("unexpected", [name for name in arrays if name not in shapes]),
        *_listed("misshapen", misshapen),
        *_listed("not floating-point", [name for name, array in arrays.items() if array.dtype.kind != "f"]),
        *_listed("not finite", [name for name, array in arrays.items() if not _finite(array)]),
    ]
    if complaints:
        raise WeightsError(f"{path}: the weights do not fit the config: {'; '.join(complaints)}")


def _rows(name: str, array: np.ndarray, shape: tuple[int, ...]) -> str:
    """Which key of the config an embedding contradicts, where only its number of rows is wrong."""
    if name not in ROWS or array.ndim != 2 or array.shape[1] != shape[1]:
        return ""
    return f" (the config's {ROWS[name]} is {shape[0]}, the weights' {array.shape[0]})"


def _finite(array: np.ndarray) -> bool:
    return bool(np.isfinite(array).all())


def _listed(what: str, names: list[str]) -> list[str]:
    """``what`` with its names as one clause, cut when long; nothing when there are none."""
    if not names:
        return []
    rest = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    return [f"{what}: {', '.join(names[:NAMES_SHOWN])}{rest}"]
