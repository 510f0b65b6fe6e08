"""The weights of a folder: every layout that onion knows in, and three out. Without Paddle.

What the parameters are called there, the folder's family says (families.py).

In: our own, Hugging Face's (safetensors or PyTorch, whole or in shards), PaddleNLP's, static ERNIE's. Our own layout is
``model.safetensors`` with PaddleNLP's parameter names and Paddle's [in, out] linear weights.
"""

from __future__ import annotations

import json
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
from onion.models.shape_checks import check_fit

# What the metadata of a safetensors file names as its format: transformers wants "pt", PaddleNLP refuses "pd".
FORMATS = {"onion": "pd", "huggingface": "pt", "paddlenlp": "np"}
# Models trained without a pooler (masked words, tokens, questions) store none; it starts anew and the report says so.
MAY_BE_MISSING = "pooler."
HEADS_OF_PRETRAINING = ("cls.predictions.", "cls.seq_relationship.")
# Under this name the metadata of a safetensors file of ours has the settings that the weights were saved with.
SETTINGS = "onion"


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
        settings: :meth:`PretrainedConfig.meaning` when we saved them; empty in files of others.
    """

    path: Path
    arrays: dict[str, np.ndarray] = attrs.field(repr=False)
    ignored: tuple[str, ...]
    layout: str
    heads: dict[str, np.ndarray] = attrs.field(factory=dict, repr=False)
    settings: dict[str, Any] = attrs.field(factory=dict)

    def check_settings(self, config: PretrainedConfig) -> None:
        """Check that the config beside the weights is the one they were saved with, as far as others would fit too.

        Weights and config are two files; a process that is killed between them leaves new weights under an old config.

        Raises:
            WeightsError: they contradict each other; the message names the keys.
        """
        found = config.meaning()
        odd = [
            f"{name} is {found[name]!r} there and was {value!r}"
            for name, value in self.settings.items()
            if name in found and found[name] != value
        ]
        if odd:
            raise WeightsError(
                f"{self.path}: the config beside it is not the one it was saved with: {'; '.join(odd)}. Was saving "
                f"interrupted? Save again or mend the config; other settings can be given when it is loaded"
            )

    def check(self, config: PretrainedConfig) -> tuple[str, ...]:
        """Check that the arrays are those of an encoder of this config; without making any of its parameters.

        Returns:
            Names of parameters the file may lack and does (the pooler's).

        Raises:
            WeightsError: parameters are missing, unexpected or misshapen, or hold values that are not finite; all that
                was found is said in one message, long lists cut there and whole in the log (debug).
        """
        if config.num_hidden_layers > len(self.arrays):  # so many that their names alone would fill the memory
            raise WeightsError(
                f"{self.path}: the weights do not fit the config: its num_hidden_layers is {config.num_hidden_layers}, "
                f"and there are {len(self.arrays)} parameters in all"
            )
        return check_fit(self.path, self.arrays, config.shapes(), (MAY_BE_MISSING,))

    def check_heads(self, shapes: Mapping[str, Shape]) -> tuple[str, ...]:
        """Check the heads' arrays against the parameters of heads; what else the file holds does not matter.

        Returns:
            Names of parameters that the file lacks.

        Raises:
            WeightsError: as :meth:`check`, except that whole heads may be missing.
        """
        heads = {name: array for name, array in self.heads.items() if name in shapes}
        return check_fit(self.path, heads, shapes, HEADS_OF_PRETRAINING)

    @property
    def unknown_heads(self) -> tuple[str, ...]:
        """Names in the file that stand where the heads of pre-training do and are none that we know."""
        return tuple(name for name in self.ignored if without_prefix(name).startswith((HEADS, LM_HEAD)))


def read_weights(folder: str | Path) -> Weights:
    """Read the weights of a folder, whichever of the layouts it holds.

    Looked for in this order: ``model.safetensors`` (ours or Hugging Face's), ``model_state.pdparams``,
    ``pytorch_model.bin``, each whole or with ``.index.json`` in shards, and ``params/`` of static ERNIE. Pickles are
    read without running them.

    Raises:
        WeightsError: no such folder or file, or a damaged one.
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
        elif not is_head or not np.array_equal(kept[name], value):  # tied biases may stand there twice
            raise WeightsError(f"{path}: {name} is stored twice")
    return Weights(path, arrays, tuple(ignored), layout, heads, _settings(path))


def _settings(path: Path) -> dict[str, Any]:
    """What our own files say about the config that they were saved with."""
    if path.name != SAFETENSORS:
        return {}
    try:
        settings = json.loads(read_metadata(path).get(SETTINGS, "{}"))
    except (ValueError, RecursionError):
        settings = None
    if not isinstance(settings, dict):
        raise WeightsError(f"{path}: {SETTINGS!r} in its metadata is no JSON object; save or fetch it again")
    return settings


def write_weights(
    folder: str | Path,
    arrays: Mapping[str, np.ndarray],
    layout: str = "onion",
    prefix: str = "",
    config: PretrainedConfig | None = None,
) -> Path:
    """Write ``model.safetensors``; the folder is made, the file replaced as a whole or not at all.

    Args:
        folder: where to.
        arrays: our parameter name -> array; heads of pre-training (``cls...``) may be among them.
        layout: ``"onion"``, ``"huggingface"`` (the names and [out, in] matrices that transformers reads) or
            ``"paddlenlp"`` (what PaddleNLP reads from safetensors; it wants no pickle).
        prefix: what stands before the encoder's names in a model with heads, such as ``"bert."``; default nothing, as
            in a bare encoder.
        config: of the encoder; what it says of the weights' meaning goes into the file's metadata, and its family
            decides about the names. Default: BERT's.

    Returns:
        The file.

    Raises:
        WeightsError: it cannot be written, or there is no such layout or prefix.
    """
    naming = (BERT if config is None else FAMILIES[config.model_type]).naming
    if layout not in FORMATS or prefix not in ("", *naming.prefixes):
        known = f"layouts are {', '.join(FORMATS)}; prefixes {', '.join(naming.prefixes)} or none"
        raise WeightsError(f"cannot write the layout {layout!r} with the prefix {prefix!r}; {known}")
    path = make_folder(folder) / SAFETENSORS
    named = dict(naming.to_theirs(name, array, layout, prefix, config) for name, array in arrays.items())
    settings = {} if config is None else {SETTINGS: json.dumps(config.meaning())}
    write_safetensors(path, named, {"format": FORMATS[layout], **settings})
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
