"""Read the weights of a folder in any supported layout, and write them in three. Without Paddle.

Reads onion's own, Hugging Face's (safetensors or PyTorch, whole or in shards), PaddleNLP's and static ERNIE's. The own
layout is ``model.safetensors`` with PaddleNLP's parameter names and Paddle's [in, out] linear weights. The folder's
family determines the names (families.py).
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from onion.errors import WeightsError
from onion.models.families import BERT, FAMILIES, family_in
from onion.models.formats.layouts import SAFETENSORS, read_stored
from onion.models.formats.name_mapping import HEADS, LM_HEAD, without_prefix
from onion.models.formats.paths import is_folder
from onion.models.formats.safetensors_file import read_metadata, write_safetensors
from onion.models.pretrained_config import PretrainedConfig, Shape

log = logging.getLogger(__name__)

OWN = "onion"
# Layout -> format in the metadata of a safetensors file: transformers requires "pt", PaddleNLP refuses "pd".
FORMATS = {OWN: "pd", "huggingface": "pt", "paddlenlp": "np"}
# Models trained without a pooler (masked LM, tokens, questions) store none; it gets new weights, with a warning.
MAY_BE_MISSING = "pooler."
HEADS_OF_PRETRAINING = ("cls.predictions.", "cls.seq_relationship.")
# Key in the metadata of onion's safetensors files: the settings that the weights were saved with.
SETTINGS = "onion"
NAMES_SHOWN = 5
# Embedding -> the key of the config for its number of rows.
ROWS = {
    "embeddings.word_embeddings.weight": "vocab_size",
    "embeddings.weight": "vocab_size",
    "word_embedding.weight": "vocab_size",
    "embeddings.position_embeddings.weight": "max_position_embeddings",
    "embeddings.token_type_embeddings.weight": "type_vocab_size",
    "embeddings.task_type_embeddings.weight": "task_type_vocab_size",
}


@attrs.frozen
class Weights:
    """The weights of a folder.

    Attributes:
        path: the file, the index of several, or static ERNIE's folder.
        arrays: onion's parameter name -> float32 array in Paddle's layout.
        ignored: names in the file that belong neither to the encoder nor to ``heads``, as stored.
        layout: ``"huggingface"``, ``"onion"`` (PaddleNLP's names in safetensors), ``"paddlenlp"`` or ``"static"``.
        heads: the pretraining heads: ``cls.predictions...`` and ``cls.seq_relationship...`` (PaddleNLP's names) ->
            array; empty if the file has none. A decoder that is tied to the word embeddings may be stored as
            ``cls.predictions.decoder_weight`` or omitted.
        settings: :meth:`PretrainedConfig.meaning` when onion saved them; empty in other files.
    """

    path: Path
    arrays: dict[str, np.ndarray] = attrs.field(repr=False)
    ignored: tuple[str, ...]
    layout: str
    heads: dict[str, np.ndarray] = attrs.field(factory=dict, repr=False)
    settings: dict[str, Any] = attrs.field(factory=dict)

    def check_settings(self, config: PretrainedConfig) -> None:
        """Check that the config is the one that the weights were saved with, as far as shapes do not show it.

        Weights and config are two files; a process that is killed between them leaves new weights with an old config.

        Raises:
            WeightsError: they contradict each other; the message names the keys.
        """
        found = config.meaning()
        odd = [
            f"{name} is {found[name]!r} and was {value!r}"
            for name, value in self.settings.items()
            if name in found and found[name] != value
        ]
        if odd:
            raise WeightsError(
                f"{self.path}: was saved with another config than the one in its folder: {'; '.join(odd)}. Was saving "
                f"interrupted? Save again, or correct the config; other settings can be given when loading"
            )

    def check(self, config: PretrainedConfig) -> tuple[str, ...]:
        """Check that the arrays fit an encoder of this config, without allocating its parameters.

        Returns:
            Names of the parameters that the file lacks and may lack (the pooler's).

        Raises:
            WeightsError: parameters are missing, unexpected, misshapen or not finite; one message lists all, shortened
                there and complete in the log (debug).
        """
        if config.num_hidden_layers > len(self.arrays):  # the names alone could fill the memory
            raise WeightsError(
                f"{self.path}: the weights do not fit the config: its num_hidden_layers is {config.num_hidden_layers}, "
                f"and there are {len(self.arrays)} parameters in all"
            )
        return _check_fit(self.path, self.arrays, config.shapes(), (MAY_BE_MISSING,))

    def check_heads(self, shapes: Mapping[str, Shape]) -> tuple[str, ...]:
        """Check the heads' arrays against parameters of heads; other arrays are ignored.

        Returns:
            Names of parameters that the file lacks.

        Raises:
            WeightsError: as :meth:`check`, except that whole heads may be missing.
        """
        heads = {name: array for name, array in self.heads.items() if name in shapes}
        return _check_fit(self.path, heads, shapes, HEADS_OF_PRETRAINING)

    @property
    def unknown_heads(self) -> tuple[str, ...]:
        """Names of pretraining heads in the file that are unknown."""
        return tuple(name for name in self.ignored if without_prefix(name).startswith((HEADS, LM_HEAD)))


def read_weights(folder: str | Path) -> Weights:
    """Read the weights of a folder, in any supported layout.

    The first of these is read: ``model.safetensors`` (onion's or Hugging Face's), ``model_state.pdparams``,
    ``pytorch_model.bin``, each whole or with ``.index.json`` in shards, and static ERNIE's ``params/``. Pickles are
    read without executing them.

    Raises:
        WeightsError: the folder or file is missing or damaged.
    """
    folder = Path(folder)
    if not is_folder(folder):
        raise WeightsError(f"{folder}: no such folder")
    naming = family_in(folder).naming
    path, stored, unread, layout = read_stored(folder, naming.is_hugging_face)
    arrays: dict[str, np.ndarray] = {}
    heads: dict[str, np.ndarray] = {}
    ignored = list(unread)
    for stored_name, stored_array in stored.items():
        ours = naming.to_ours(stored_name, stored_array, layout)
        if ours is None:
            ignored.append(stored_name)
            continue
        name, value = ours
        is_head = name.startswith(HEADS)
        kept = heads if is_head else arrays
        if name not in kept:
            kept[name] = value
        elif not is_head or not np.array_equal(kept[name], value):  # tied biases may be stored twice
            raise WeightsError(f"{path}: {name} is stored twice")
    return Weights(path, arrays, tuple(ignored), layout, heads, _settings(path))


def _settings(path: Path) -> dict[str, Any]:
    """Return the config settings that onion's files contain."""
    if path.name != SAFETENSORS:
        return {}
    try:
        settings = json.loads(read_metadata(path).get(SETTINGS, "{}"))
    except (ValueError, RecursionError):
        settings = None
    if not isinstance(settings, dict):
        raise WeightsError(f"{path}: {SETTINGS!r} in its metadata is not a JSON object; save or download it again")
    return settings


def write_weights(
    folder: str | Path,
    arrays: Mapping[str, np.ndarray],
    layout: str = "onion",
    prefix: str = "",
    config: PretrainedConfig | None = None,
    others: Mapping[str, np.ndarray] | None = None,
) -> Path:
    """Write ``model.safetensors``, replaced atomically; the folder is created.

    Args:
        folder: the target.
        arrays: onion's parameter name -> array; pretraining heads (``cls...``) may be included.
        layout: ``"onion"``, ``"huggingface"`` (names and [out, in] matrices that transformers reads) or ``"paddlenlp"``
            (PaddleNLP's names).
        prefix: prefix of the encoder's names in a model with heads, such as ``"bert."``; default none, as in a bare
            encoder.
        config: of the encoder; its settings go into the metadata, and its family determines the names. Default: BERT's
            names.
        others: further arrays, such as those of a task's head, by the names that they have in the file.

    Returns:
        The file.

    Raises:
        WeightsError: it cannot be written, or the layout or prefix is unknown, or does not know of removed heads.
    """
    naming = (BERT if config is None else FAMILIES[config.model_type]).naming
    if layout not in FORMATS or prefix not in ("", *naming.prefixes):
        known = f"layouts are {', '.join(FORMATS)}; prefixes {', '.join(naming.prefixes)} or none"
        raise WeightsError(f"cannot write the layout {layout!r} with the prefix {prefix!r}; {known}")
    if config is not None and not config.has_all_heads and layout != OWN:
        raise WeightsError(
            f"cannot write the layout {layout!r}: heads were removed from this encoder, and no other library reads "
            f"such a one; its own layout is {OWN!r}"
        )
    path = make_folder(folder) / SAFETENSORS
    named = dict(naming.to_theirs(name, array, layout, prefix, config) for name, array in arrays.items())
    settings = {} if config is None else {SETTINGS: json.dumps(config.meaning())}
    write_safetensors(path, {**named, **(others or {})}, {"format": FORMATS[layout], **settings})
    return path


def make_folder(folder: str | Path) -> Path:
    """Create a folder and its parents, if necessary; raise a WeightsError if it cannot be created."""
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WeightsError(f"{folder}: cannot create the folder: {error.strerror}") from error
    return folder


def _check_fit(
    path: Path, arrays: Mapping[str, np.ndarray], shapes: Mapping[str, Shape], optional: tuple[str, ...]
) -> tuple[str, ...]:
    """Raise one WeightsError, which names ``path``, for all arrays that do not fit the parameters' shapes.

    Parts with a prefix in ``optional`` may be missing as a whole. Returns the names of the parameters that are missing.
    """
    whole = [part for part in optional if not any(name.startswith(part) for name in arrays if name in shapes)]
    missing = [name for name in shapes if name not in arrays]
    fresh = tuple(name for name in missing if name.startswith(tuple(whole)))
    misshapen = [
        f"{name} is {list(array.shape)}, not {list(shapes[name])}{_rows(name, array, shapes[name])}"
        for name, array in arrays.items()
        if name in shapes and array.shape != tuple(shapes[name])
    ]
    complaints = {
        "missing": [name for name in missing if name not in fresh],
        "unexpected": [name for name in arrays if name not in shapes],
        "misshapen": misshapen,
        "not floating-point": [name for name, array in arrays.items() if array.dtype.kind != "f"],
        "not finite": [name for name, array in arrays.items() if not _finite(array)],
    }
    found = {what: names for what, names in complaints.items() if names}
    if found:
        for what, names in found.items():
            log.debug("%s: %s: %s", path, what, ", ".join(names))
        listed = "; ".join(f"{what}: {_cut(names)}" for what, names in found.items())
        raise WeightsError(f"{path}: the weights do not fit the config: {listed}")
    return fresh


def _rows(name: str, array: np.ndarray, shape: tuple[int, ...]) -> str:
    """Name the key of the config that an embedding contradicts, if only its number of rows differs."""
    if name not in ROWS or array.ndim != 2 or array.shape[1] != shape[1]:
        return ""
    return f" (the config's {ROWS[name]} is {shape[0]}, the weights' {array.shape[0]})"


def _finite(array: np.ndarray) -> bool:
    return bool(np.isfinite(array).all())


def _cut(names: list[str]) -> str:
    """Join names for a message, shortened if there are more than ``NAMES_SHOWN``."""
    rest = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    return f"{', '.join(names[:NAMES_SHOWN])}{rest}"
