"""What an encoder is, whatever its family: the contract that tasks rely on, and all that does not depend on the layers.

A family's encoder is a subclass of :class:`PretrainedEncoder` with layers of its own and ``forward``.
"""

from __future__ import annotations

import copy
import logging
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import attrs
import numpy as np
import paddle
from paddle import nn

from onion.errors import DataError
from onion.models import hub
from onion.models.ops import rows
from onion.models.packing import Ids, Packing
from onion.models.pretrained_config import PretrainedConfig
from onion.models.weights import Weights, read_weights, write_weights

log = logging.getLogger(__name__)

Own = TypeVar("Own", bound="PretrainedEncoder")


@attrs.frozen(slots=False, eq=False, repr=False)  # cached properties live in __dict__
class Encoded:
    """What an encoder makes of a batch. Take what you need: the padded and the pooled form are made when first read.

    ``sequence_output, pooled_output = encoded`` works too.

    Attributes:
        packing: where the tokens stand in the padded batch.
    """

    _vectors: paddle.Tensor
    packing: Packing
    _pooler: Callable[[paddle.Tensor], paddle.Tensor]
    _cls_only: bool = False
    _cls_is_last: bool = False

    @property
    def packed(self) -> paddle.Tensor:
        """[tokens, hidden], the tokens of all rows without padding, row by row.

        Raises:
            DataError: the encoder was asked for the vectors of [CLS] only.
        """
        if self._cls_only:
            raise DataError("the encoder was called with cls_only, so there are no vectors of other tokens")
        return self._vectors

    @cached_property
    def cls(self) -> paddle.Tensor:
        """[batch, hidden], of each row the token that stands for all of it: the first, and the last in XLNet."""
        if self._cls_only:
            return self._vectors
        return rows(self._vectors, self.packing.lasts if self._cls_is_last else self.packing.firsts)

    @cached_property
    def sequence_output(self) -> paddle.Tensor:
        """[batch, length, hidden], zero where there is padding."""
        return self.packing.unpack(self.packed)

    @cached_property
    def pooled_output(self) -> paddle.Tensor:
        """[batch, hidden], what the family makes of :attr:`cls` for a head over whole texts."""
        return self._pooler(self.cls)

    def __iter__(self) -> Iterator[paddle.Tensor]:
        yield self.sequence_output
        yield self.pooled_output


class PretrainedEncoder(nn.Layer, ABC):
    """An encoder that reads and writes its own folder; made with a config, its weights are new.

    Attributes:
        config: sizes and settings.
        config_class: the class of ``config``.
        layers_path: where in it the list of its layers is: a path of sublayers, which also begins their parameters'
            names.
        cls_is_last: whether the token that stands for a text is its last one; else it is the first.
        masked_lm: whether it was pretrained to guess masked words, so that it may have a head for that.
        pooler_is_pretrained: whether published weights hold the pooler; where not, every training starts with a new
            one.
    """

    config: PretrainedConfig
    config_class: ClassVar[type[PretrainedConfig]]
    layers_path: ClassVar[str]
    cls_is_last: ClassVar[bool] = False
    masked_lm: ClassVar[bool] = False
    pooler_is_pretrained: ClassVar[bool] = True

    def __init__(self, config: PretrainedConfig) -> None:
        super().__init__()
        self.config = config

    @abstractmethod
    def forward(
        self,
        input_ids: Ids,
        token_type_ids: Ids | None = None,
        position_ids: Ids | None = None,
        attention_mask: Ids | None = None,
        task_type_ids: Ids | int | None = None,
        cls_only: bool = False,
    ) -> Encoded:
        """Encode a padded batch.

        Every argument may be a tensor or a numpy array, integers of shape [batch, length]. Where the tokens
        stand is worked out on the host: on a GPU give ``attention_mask`` as a numpy array, and nothing waits for the
        device.

        Args:
            input_ids: token ids; what stands on padding does not matter.
            token_type_ids: segment ids; default 0.
            position_ids: of families with absolute positions; default those that the family was trained with.
            attention_mask: above 0 where a token stands, anywhere in the row, 0 elsewhere; default where ``input_ids``
                is not ``config.pad_token_id``.
            task_type_ids: of families that know tasks.
            cls_only: nothing but ``pooled_output`` and ``cls`` will be read, so the encoder may leave out the rest.

        Raises:
            DataError: the batch is longer than the encoder takes, a row has no token, shapes differ, something is no
                array of integers (masks may be of any numbers), or (checked on the host only) an id has no embedding.
        """

    @classmethod
    def from_pretrained(cls: type[Own], name_or_folder: str | Path, **settings: Any) -> Own:
        """Load an encoder of this family; ``auto.load_encoder`` loads one of any family.

        Args:
            name_or_folder: a folder, or a named model, which is fetched the first time (see hub.py). It holds the
                config and the weights; heads among these are left out.
            **settings: config values to use instead of the file's, such as ``hidden_dropout_prob=0``.

        Raises:
            WeightsError: neither a folder nor a known name; or something is missing, damaged, or does not fit.
        """
        folder = hub.resolve(name_or_folder)
        return cls.of(cls.config_class.read(folder), read_weights(folder), **settings)

    @classmethod
    def of(cls: type[Own], config: PretrainedConfig, weights: Weights, **settings: Any) -> Own:
        """Make an encoder of a folder's config and weights; before its parameters are made, the weights are checked.

        Raises:
            WeightsError: they do not fit, or there is no such setting.
        """
        weights.check_settings(config)
        config = config.changed(**settings)
        fresh = weights.check(config)  # sizes that are wrong may also be larger than the memory
        encoder = cls(config)
        encoder._take(weights, fresh)
        return encoder

    def fill(self, weights: Weights) -> None:
        """Take over the encoder's part of weights that were read; all of it or, when something is wrong, nothing.

        Raises:
            WeightsError: they do not fit.
        """
        self._take(weights, weights.check(self.config))

    def _take(self, weights: Weights, fresh: tuple[str, ...]) -> None:
        parameters = dict(self.named_parameters())
        for name, array in weights.arrays.items():
            parameters[name].set_value(np.ascontiguousarray(array))
        if fresh:
            level = logging.WARNING if self.pooler_is_pretrained else logging.DEBUG
            log.log(level, "%s holds no pooler; it starts with random weights", weights.path)
        if weights.ignored:
            log.debug("%s: not the encoder's, ignored: %s", weights.path, ", ".join(weights.ignored))

    def save_pretrained(self, folder: str | Path, layout: str = "onion") -> None:
        """Write ``config.json`` and ``model.safetensors``, each replaced as a whole or not at all; the folder is made.

        The weights, which come first, also name what the config says of their meaning: a folder that a killed process
        leaves with one new file and one old is refused when it is loaded, unless both mean the same.

        Args:
            folder: where to.
            layout: of the weights; :func:`onion.models.weights.write_weights` lists them.

        Raises:
            WeightsError: they cannot be written, or there is no such layout.
        """
        write_weights(folder, arrays_of(self), layout, config=self.config)
        self.config.write(folder)

    def first_layers(self: Own, count: int) -> Own:
        """Return an encoder of the first layers of this one; all parameters are shared."""
        encoder = shallow = _shallow_copy(self)
        encoder.config = self.config.changed(num_hidden_layers=count)
        *path, last = self.layers_path.split(".")
        for name in path:
            inner = _shallow_copy(getattr(shallow, name))
            setattr(shallow, name, inner)
            shallow = inner
        setattr(shallow, last, nn.LayerList(list(getattr(shallow, last))[:count]))
        return encoder


def arrays_of(layer: nn.Layer) -> dict[str, np.ndarray]:
    """The parameters of a layer as they are saved: name -> array."""
    return {name: _array(parameter) for name, parameter in layer.named_parameters()}


def _array(parameter: paddle.Tensor) -> np.ndarray:
    """Paddle hands out bfloat16, which numpy lacks, as its bits in integers; we save it as float32."""
    array: np.ndarray = (parameter.astype("float32") if parameter.dtype == paddle.bfloat16 else parameter).numpy()
    return array


Copied = TypeVar("Copied", bound=nn.Layer)


def _shallow_copy(layer: Copied) -> Copied:
    """A layer whose sublayers can be replaced without changing the other one's."""
    copied = copy.copy(layer)
    copied.__dict__["_sub_layers"] = OrderedDict(layer._sub_layers)
    return copied
