"""The registry of encoder families, by the ``model_type`` of a config. Without Paddle.

CONTRIBUTING.md ("Add an encoder") describes how to add a family.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import attrs
import tokenizers

from onion.errors import WeightsError
from onion.models.config import EncoderConfig
from onion.models.electra.config import ElectraConfig
from onion.models.electra.naming import ElectraNaming
from onion.models.formats.config_readers import CONFIG_FILE, find, model_type_of, read_values
from onion.models.formats.name_mapping import BertNaming, Naming
from onion.models.formats.paths import naming
from onion.models.pretrained_config import PretrainedConfig
from onion.models.tokenization.pre_tokenizer import Preparation
from onion.models.words import words_file
from onion.models.words.config import WordsConfig
from onion.models.words.names import SPECIAL_TOKENS
from onion.models.words.naming import WordsNaming
from onion.models.xlnet import tokenizer as xlnet_tokenizer
from onion.models.xlnet.config import XLNetConfig
from onion.models.xlnet.naming import XLNetNaming


@attrs.frozen
class FamilyTokenizer:
    """A file that is a tokenizer in folders of one family, if there is no ``tokenizer.json``.

    Attributes:
        file: its name.
        special_tokens: part (``cls_token``, ...) -> token, unless ``tokenizer_config.json`` has another one.
        build: creates a tokenizer of the library from the file, the special tokens and ``tokenizer_config.json``;
            raises WeightsError if the file is damaged.
        prepare: creates, from the same, what prepares texts for that tokenizer. Default: nothing of the family's own.
    """

    file: str
    special_tokens: Mapping[str, str]
    build: Callable[[Path, Mapping[str, str], Mapping[str, Any]], tokenizers.Tokenizer]
    prepare: Callable[[Path, Mapping[str, str], Mapping[str, Any]], Preparation] | None = None


@attrs.frozen
class Family:
    """A family of encoders.

    Attributes:
        config: the config class.
        naming: converts parameter names and layouts.
        encoder: the encoder class as ``module:class``; it needs Paddle, so auto.py imports it when needed.
        tokenizer: a tokenizer file that only this family has, if any; tokenization/loading.py recognizes those of BERT,
            ERNIE and RoBERTa in every folder.
    """

    config: type[PretrainedConfig]
    naming: Naming
    encoder: str
    tokenizer: FamilyTokenizer | None = None


SPIECE = FamilyTokenizer("spiece.model", xlnet_tokenizer.SPECIAL_TOKENS, xlnet_tokenizer.build)
WORDS = FamilyTokenizer(words_file.WORDS_FILE, SPECIAL_TOKENS, words_file.build, words_file.preparation)
BERT = Family(EncoderConfig, BertNaming(), "onion.models.encoder:Encoder")

FAMILIES: dict[str, Family] = {
    "bert": BERT,
    "bow": Family(WordsConfig, WordsNaming(), "onion.models.words.encoder:BagOfWords", WORDS),
    "cnn": Family(WordsConfig, WordsNaming(), "onion.models.words.encoder:Convolution", WORDS),
    "electra": Family(ElectraConfig, ElectraNaming(), "onion.models.electra.encoder:ElectraEncoder"),
    "ernie": BERT,
    "lstm": Family(WordsConfig, WordsNaming(), "onion.models.words.encoder:BidirectionalLSTM", WORDS),
    "roberta": BERT,
    "xlnet": Family(XLNetConfig, XLNetNaming(), "onion.models.xlnet.encoder:XLNetEncoder", SPIECE),
}
"""``model_type`` -> family."""


def read_config(path: str | Path) -> PretrainedConfig:
    """Read the config of a model of any family: Hugging Face's, PaddleNLP's, static ERNIE's or onion's.

    Args:
        path: the file, or its folder.

    Raises:
        WeightsError: the file is missing or not JSON, the family is unknown (the message lists the known ones), or a
            value is not supported; the message names the file.
    """
    path = find(Path(path))
    values = read_values(path)
    with naming(path):
        return _family(model_type_of(values, path.name)).config.from_dict(values, path)


def check_family(folder: Path) -> None:
    """Refuse a model of an unknown family by its config alone, if it has one.

    Raises:
        WeightsError: the family is unknown (the message lists the known ones), or the config is not JSON.
    """
    path = folder / CONFIG_FILE
    if path.is_file():
        values = read_values(path)
        with naming(path):
            _family(model_type_of(values, path.name))


def family_in(folder: Path) -> Family:
    """Return the family of the model in a folder; BERT's if there is no config or its family is unknown."""
    try:
        path = find(folder)
        return _family(model_type_of(read_values(path), path.name))
    except WeightsError:
        return BERT  # whoever reads the config reports the error


def _family(model_type: object) -> Family:
    if not isinstance(model_type, str) or model_type not in FAMILIES:
        raise WeightsError(f"model_type must be one of {', '.join(FAMILIES)}, got {model_type!r}")
    return FAMILIES[model_type]
