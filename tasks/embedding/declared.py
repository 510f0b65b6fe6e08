"""How a model of sentence-transformers says that its vectors are made. Without Paddle.

modules.json                        the modules, in their order: the encoder, a pooling, perhaps a normalization
1_Pooling/config.json               the pooling; modules.json has the name of the folder
sentence_bert_config.json           the maximum number of tokens, special ones included
config_sentence_transformers.json   prompts, and which of them texts begin with unless another is asked for
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from onion.checkpointing.atomic_files import read_file
from onion.errors import WeightsError
from onion.models.families import read_config
from onion.tasks.embedding.names import CLS, MEAN
from onion.tasks.embedding.pooling import Pooling

MODULES, TRANSFORMER, PROMPTS = "modules.json", "sentence_bert_config.json", "config_sentence_transformers.json"

MODE = "pooling_mode"
MODES = {f"{MODE}_cls_token": CLS, f"{MODE}_mean_tokens": MEAN, CLS: CLS, MEAN: MEAN}
"""Poolings as sentence-transformers writes them, a flag each or, in its newer versions, a name -> ours."""


def pooling_for(
    folder: Path,
    pooling: str | None = None,
    *,
    layer: int | None = None,
    normalize: bool = False,
    max_length: int | None = None,
    default: Pooling | None = None,
) -> Pooling:
    """Return how an encoder's vectors are made: as asked for, or else as its folder says.

    Args:
        folder: of the encoder.
        pooling: with one, the files of sentence-transformers are not looked at.
        layer: of the token vectors. Default: the last.
        normalize: also where the folder does not say so.
        max_length: in the place of what the folder says.
        default: of folders that say nothing. Default: ``cls``, not normalized, 128 tokens.

    Raises:
        WeightsError: a file is damaged, or asks for what onion does not compute, such as a dense layer.
    """
    chosen = declared_pooling(folder) or default or Pooling() if pooling is None else Pooling(pooling)
    chosen = attrs.evolve(chosen, layer=layer, normalize=normalize or chosen.normalize)
    return chosen if max_length is None else attrs.evolve(chosen, max_length=max_length)


def declared_pooling(folder: Path) -> Pooling | None:
    """Return what the files of sentence-transformers say; None: there are none.

    Raises:
        WeightsError: see :func:`pooling_for`.
    """
    if not (folder / MODULES).is_file():
        return None
    modules = _modules(folder)
    if unknown := modules.keys() - {"Transformer", "Pooling", "Normalize"}:
        raise _beyond(folder, f"the module {min(unknown)}")
    if "Pooling" not in modules:
        raise _beyond(folder, "no pooling")
    transformer, tokenizer = _settings(folder / TRANSFORMER), _settings(folder / "tokenizer_config.json")
    if transformer.get("do_lower_case") and not tokenizer.get("do_lower_case"):
        raise _beyond(folder, "texts in lower case")
    if prompt := _settings(folder / PROMPTS).get("default_prompt_name"):
        raise _beyond(folder, f"the prompt {prompt!r} before each text")
    lengths = transformer.get("max_seq_length"), tokenizer.get("model_max_length"), read_config(folder).max_length
    return Pooling(
        _mode(folder, _settings(folder / modules["Pooling"] / "config.json")),
        normalize="Normalize" in modules,
        max_length=min(length for length in lengths if isinstance(length, int)),
    )


def _modules(folder: Path) -> dict[str, str]:
    """Return the path of each module by the name of its class.

    Raises:
        WeightsError: the file is damaged.
    """
    listed = _read(folder / MODULES)
    try:
        return {str(each["type"]).rpartition(".")[2]: str(each["path"]) for each in listed}
    except (TypeError, KeyError):
        raise WeightsError(f"{folder / MODULES} is damaged; it has no list of modules with type and path.") from None


def _mode(folder: Path, settings: Mapping[str, Any]) -> str:
    """Return the only pooling that a file switches on; the mean, if it switches on none.

    Raises:
        WeightsError: it is one that onion does not compute, or there are several.
    """
    named = settings.get(MODE) or [name for name, on in settings.items() if name.startswith(f"{MODE}_") and on is True]
    modes = [named] if isinstance(named, str) else list(named) or [MEAN]
    if len(modes) > 1 or modes[0] not in MODES:
        raise _beyond(folder, f"pooling {' and '.join(str(mode).removeprefix(f'{MODE}_') for mode in modes)}")
    return MODES[modes[0]]


def _settings(path: Path) -> dict[str, Any]:
    """Return a file's object; an empty one if there is no file.

    Raises:
        WeightsError: the file is damaged.
    """
    found = _read(path) if path.is_file() else {}
    if not isinstance(found, dict):
        raise WeightsError(f"{path} is damaged; it holds no JSON object.")
    return found


def _read(path: Path) -> Any:
    try:
        return json.loads(read_file(path))
    except (OSError, ValueError, RecursionError) as error:
        raise WeightsError(f"{path} cannot be read as JSON: {error}") from None


def _beyond(folder: Path, what: str) -> WeightsError:
    return WeightsError(
        f"{folder} asks for {what}, by its files of sentence-transformers, which onion does not compute; with a "
        f"pooling of your own, {CLS} or {MEAN}, these files are not used."
    )
