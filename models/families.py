"""The families of encoders: by the ``model_type`` of a config, what reads, names and makes its encoder. Without Paddle.

Another architecture is a folder and a line here: docs/adding_an_encoder.md.
"""

from __future__ import annotations

from pathlib import Path

import attrs

from onion.errors import WeightsError
from onion.models.config import EncoderConfig
from onion.models.electra.config import ElectraConfig
from onion.models.electra.naming import ElectraNaming
from onion.models.formats.config_readers import find, model_type_of, read_values
from onion.models.formats.name_mapping import BertNaming, Naming
from onion.models.pretrained_config import PretrainedConfig
from onion.models.tokenization.family_files import FamilyTokenizer
from onion.models.xlnet import tokenizer as xlnet_tokenizer
from onion.models.xlnet.config import XLNetConfig
from onion.models.xlnet.naming import XLNetNaming


@attrs.frozen
class Family:
    """A family of encoders.

    Attributes:
        config: the class of its configs.
        naming: what the systems call its parameters.
        encoder: the class of its encoders, as ``module:class``: it needs Paddle, so it is imported when one is made
            (auto.py).
        tokenizer: the file that is a tokenizer in this family's folders only, if there is one; those of BERT, ERNIE
            and RoBERTa are known in all folders (tokenization/loading.py).
    """

    config: type[PretrainedConfig]
    naming: Naming
    encoder: str
    tokenizer: FamilyTokenizer | None = None


BERT = Family(EncoderConfig, BertNaming(), "onion.models.encoder:Encoder")

FAMILIES: dict[str, Family] = {
    "bert": BERT,
    "electra": Family(ElectraConfig, ElectraNaming(), "onion.models.electra.encoder:ElectraEncoder"),
    "ernie": BERT,
    "roberta": BERT,
    "xlnet": Family(XLNetConfig, XLNetNaming(), "onion.models.xlnet.encoder:XLNetEncoder", xlnet_tokenizer.TOKENIZER),
}
"""``model_type`` -> family."""


def read_config(path: str | Path) -> PretrainedConfig:
    """Read the config of a model of any family: Hugging Face's, PaddleNLP's, static ERNIE's or our own.

    Args:
        path: the file, or the folder it lies in.

    Raises:
        WeightsError: no such file, not JSON, of no family that is known (the message lists those), or a value is not
            supported; the message names the file.
    """
    path = find(Path(path))
    values = read_values(path)
    try:
        return _family(model_type_of(values, path.name)).config.from_dict(values, path)
    except WeightsError as error:
        raise WeightsError(f"{path}: {error}") from error


def family_in(folder: Path) -> Family:
    """The family of the model in a folder; BERT's where no config says another one, or none that is known."""
    try:
        path = find(folder)
        return _family(model_type_of(read_values(path), path.name))
    except WeightsError:
        return BERT  # what is wrong is said by who reads the config


def _family(model_type: object) -> Family:
    if not isinstance(model_type, str) or model_type not in FAMILIES:
        raise WeightsError(f"model_type is {model_type!r}; the families of encoders are {', '.join(FAMILIES)}")
    return FAMILIES[model_type]
