"""How a model of sentence-transformers says that its vectors are made. Without Paddle.

modules.json                        the modules, in their order: the encoder, a pooling, perhaps a normalization
1_Pooling/config.json               the pooling; modules.json has the name of the folder
sentence_bert_config.json           the maximum number of tokens, special ones included; older ones have other names
config_sentence_transformers.json   prompts, and which of them texts begin with unless another is asked for
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from onion.checkpointing.atomic_files import read_file
from onion.errors import WeightsError
from onion.models.families import read_config
from onion.models.tokenization.loading import SETTINGS_FILE, read_settings
from onion.models.tokenizer import Tokenizer
from onion.models.xlnet.config import NO_LIMIT
from onion.tasks.embedding.names import CLS, MAX_LENGTH, MEAN, POOLINGS
from onion.tasks.embedding.pooling import Pooling
from onion.validation import is_whole

MODULES, PROMPTS = "modules.json", "config_sentence_transformers.json"

NAMES = ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
TRANSFORMERS = tuple(f"sentence_{name}_config.json" for name in NAMES)
"""Files of the encoder's settings; the first is that of all newer models."""

PACKAGE = "sentence_transformers."

FOLDER = re.compile(r"\w[\w-]*", re.ASCII)
"""A folder beside ``modules.json``, and no path that leads elsewhere."""

MODE = "pooling_mode"
MODES = {f"{MODE}_cls_token": CLS, f"{MODE}_mean_tokens": MEAN, CLS: CLS, MEAN: MEAN}
"""Poolings as sentence-transformers writes them, a flag each or, in its newer versions, a name -> ours."""


def pooling_for(
    folder: Path,
    pooling: str | None = None,
    *,
    layer: int | None = None,
    normalize: bool | None = None,
    max_length: int | None = None,
    default: Pooling | None = None,
) -> Pooling:
    """Return how an encoder's vectors are made: as asked for, or else as its folder says.

    Args:
        folder: of the encoder.
        pooling: with one, the files of sentence-transformers are not looked at.
        layer: of the token vectors. Default: the last.
        normalize: in the place of what the folder says.
        max_length: in the place of what the folder says.
        default: of folders that say nothing. Default: ``cls``, not normalized, 128 tokens.

    Raises:
        WeightsError: a file is damaged, or asks for what onion does not compute, such as a dense layer.
    """
    chosen = declared_pooling(folder) or default or Pooling() if pooling is None else Pooling(pooling)
    asked: dict[str, Any] = {"normalize": normalize, "max_length": max_length}
    return attrs.evolve(chosen, layer=layer, **{name: each for name, each in asked.items() if each is not None})


def declared_pooling(folder: Path) -> Pooling | None:
    """Return what the files of sentence-transformers say; None: there are none.

    Raises:
        WeightsError: see :func:`pooling_for`.
    """
    if not (folder / MODULES).is_file():
        return None
    modules = _modules(folder)
    settings = next((read_settings(folder / name) for name in TRANSFORMERS if (folder / name).is_file()), {})
    _check_texts(folder, settings)
    mode = _mode(folder, modules["Pooling"])
    return Pooling(mode, normalize="Normalize" in modules, max_length=_max_length(folder, settings))


def _modules(folder: Path) -> dict[str, str]:
    """Return the path of each module by the name of its class.

    Raises:
        WeightsError: the file is damaged, or there are other modules than an encoder, a pooling and a normalization.
    """
    path = folder / MODULES
    try:
        listed = [(str(each["type"]), str(each["path"])) for each in json.loads(read_file(path))]
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        raise WeightsError(f"{path} is damaged; it must be a list of modules, each with type and path") from None
    names = [kind.rpartition(".")[2] if kind.startswith(PACKAGE) else kind for kind, _ in listed]
    if names not in (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"]):
        raise _unsupported(path, f"the modules {', '.join(names) or 'none'}, in this order,")
    found = dict(zip(names, (place for _, place in listed), strict=True))
    if not FOLDER.fullmatch(found["Pooling"]):
        raise _unsupported(path, f"a pooling in {found['Pooling']!r}, which is not the name of a folder,")
    if found["Transformer"]:
        raise _unsupported(path, f"an encoder in the folder {found['Transformer']}")
    return found


def _check_texts(folder: Path, settings: Mapping[str, Any]) -> None:
    """Refuse what is done to texts before they are tokenized.

    Raises:
        WeightsError: texts are made lower case, which the tokenizer does not do by itself, or begin with a prompt.
    """
    if settings.get("do_lower_case"):
        upper, lower = Tokenizer.from_pretrained(folder)(["A Film", "a film"])
        if upper.ids.tolist() != lower.ids.tolist():
            raise _unsupported(folder, "do_lower_case with a tokenizer that keeps capitals")
    if prompt := read_settings(folder / PROMPTS).get("default_prompt_name"):
        raise _unsupported(folder / PROMPTS, f"the prompt {prompt!r} before each text")


def _mode(folder: Path, place: str) -> str:
    """Return the only pooling that is switched on; the mean, if none is.

    Raises:
        WeightsError: the file is not there, or names several poolings, or one that onion does not compute.
    """
    path = folder / place / "config.json"
    if not path.is_file():
        raise WeightsError(f"{path} is missing, which {MODULES} names; copy it, or choose a pooling yourself")
    settings = read_settings(path)
    named = settings.get(MODE, [name for name, on in settings.items() if name.startswith(f"{MODE}_") and on is True])
    modes = [named] if isinstance(named, str) else named or [MEAN]
    if not isinstance(modes, list) or len(modes) > 1 or str(modes[0]) not in MODES:
        raise _unsupported(path, f"pooling {named}")
    mode = MODES[str(modes[0])]
    if mode == CLS and read_config(folder).model_type == "xlnet":
        raise _unsupported(path, "the vector of XLNet's first token, which is not that of classification,")
    return mode


def _max_length(folder: Path, settings: Mapping[str, Any]) -> int:
    """Return the maximum number of tokens: that of the model or else of the tokenizer, at most the encoder's.

    Raises:
        WeightsError: it is no positive integer.
    """
    name, tokens = "max_seq_length", settings.get("max_seq_length")
    if tokens is None:
        name, tokens = "model_max_length", read_settings(folder / SETTINGS_FILE).get("model_max_length", NO_LIMIT)
    if not is_whole(tokens) or tokens < 1:
        raise WeightsError(f"{folder}: {name} is {tokens!r}; it must be a positive integer")
    found = min(tokens, read_config(folder).max_length)
    return found if found < NO_LIMIT else MAX_LENGTH  # ``tokenizer_config.json`` may have 10^30


def _unsupported(path: Path, what: str) -> WeightsError:
    return WeightsError(
        f"{path}: {what} is not supported; choose a pooling ({', '.join(POOLINGS)}), and the files of "
        "sentence-transformers are not used"
    )
