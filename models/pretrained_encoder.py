"""What the encoders of all families have in common: the interface for tasks, and loading, saving and sharing.

A family's encoder is a subclass of :class:`PretrainedEncoder` with its layers and ``forward``.
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
from onion.models.merging import merged
from onion.models.ops import rows
from onion.models.packing import Ids, Packing
from onion.models.pretrained_config import PretrainedConfig
from onion.models.weights import Weights, read_weights, write_weights

log = logging.getLogger(__name__)

Own = TypeVar("Own", bound="PretrainedEncoder")


@attrs.frozen(slots=False, eq=False, repr=False)  # cached properties live in __dict__
class Encoded:
    """The output of an encoder. The padded and the pooled form are computed when they are first read.

    ``sequence_output, pooled_output = encoded`` works too.

    Attributes:
        packing: the positions of the tokens in the padded batch.
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
            DataError: the encoder was called with ``cls_only``.
        """
        if self._cls_only:
            raise DataError("the encoder was called with cls_only and has computed no vectors of other tokens")
        return self._vectors

    @cached_property
    def cls(self) -> paddle.Tensor:
        """[batch, hidden], the token that represents each row: the first, or the last in XLNet."""
        if self._cls_only:
            return self._vectors
        return rows(self._vectors, self.packing.lasts if self._cls_is_last else self.packing.firsts)

    @cached_property
    def sequence_output(self) -> paddle.Tensor:
        """[batch, length, hidden], zero for padding."""
        return self.packing.unpack(self.packed)

    @cached_property
    def pooled_output(self) -> paddle.Tensor:
        """[batch, hidden], the family's pooler applied to :attr:`cls`, for heads over whole texts."""
        return self._pooler(self.cls)

    def __iter__(self) -> Iterator[paddle.Tensor]:
        yield self.sequence_output
        yield self.pooled_output


class PretrainedEncoder(nn.Layer, ABC):
    """An encoder that is loaded from and saved to a folder; constructed from a config, its weights are new.

    Attributes:
        config: sizes and settings.
        config_class: the class of ``config``.
        layers_path: path of the list of layers in the encoder, which is also the prefix of their parameters.
        cls_is_last: whether the last token represents a text; else the first.
        masked_lm: whether it was pretrained by masked LM, so that its weights may have a head for it.
        pooler_is_pretrained: whether published weights contain the pooler; else every fine-tuning starts with a new
            one.
        lora_targets: the linear layers to which :func:`onion.models.lora.add_lora` adds adapters by default.
        gradient_checkpointing: whether each layer keeps its input only until the backward pass, which computes the rest
            again: less memory, more time, and the same gradients to the bit. Default False; may be set at any time.
    """

    config: PretrainedConfig
    config_class: ClassVar[type[PretrainedConfig]]
    layers_path: ClassVar[str]
    cls_is_last: ClassVar[bool] = False
    masked_lm: ClassVar[bool] = False
    pooler_is_pretrained: ClassVar[bool] = True
    lora_targets: ClassVar[tuple[str, ...]] = ("q_proj", "v_proj")
    gradient_checkpointing: bool = False

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

        Every argument may be a tensor or a numpy array, integers of shape [batch, length]. Token positions are computed
        on the host: on a GPU give ``attention_mask`` as a numpy array, which avoids waiting for the device.

        Args:
            input_ids: token ids; ids of padding are ignored.
            token_type_ids: segment ids; default 0.
            position_ids: for families with absolute positions; default: those of the family's pretraining.
            attention_mask: > 0 for tokens, anywhere in the row, 0 for padding; default: ``input_ids`` differs from
                ``config.pad_token_id``.
            task_type_ids: for families with tasks.
            cls_only: only ``pooled_output`` and ``cls`` will be read, so the encoder may omit the rest.

        Raises:
            DataError: the batch is longer than the encoder supports, a row has no token, shapes differ, an argument is
                not an array of integers (masks may have any numbers), or (checked on the host only) an id has no
                embedding.
        """

    @classmethod
    def from_pretrained(cls: type[Own], name_or_folder: str | Path, **settings: Any) -> Own:
        """Load an encoder of this family, as ``auto.load_encoder`` loads one of any family."""
        folder = hub.resolve(name_or_folder)
        return cls.of(cls.config_class.read(folder), read_weights(folder), **settings)

    @classmethod
    def of(cls: type[Own], config: PretrainedConfig, weights: Weights, **settings: Any) -> Own:
        """Create an encoder from a folder's config and weights, which are checked before parameters are allocated.

        Raises:
            WeightsError: the weights do not fit, or a setting does not exist.
        """
        weights.check_settings(config)
        config = config.changed(**settings)
        fresh = weights.check(config)  # before allocating: wrong sizes may exceed the memory
        encoder = cls(config)
        encoder._take(weights, fresh)
        return encoder

    def fill(self, weights: Weights) -> None:
        """Copy weights into the encoder's parameters; raise a WeightsError, and copy nothing, if they do not fit."""
        self._take(weights, weights.check(self.config))

    def _take(self, weights: Weights, fresh: tuple[str, ...]) -> None:
        parameters = dict(self.named_parameters())
        for name, array in weights.arrays.items():
            parameters[name].set_value(np.ascontiguousarray(array))
        if fresh:
            level = logging.WARNING if self.pooler_is_pretrained else logging.DEBUG
            log.log(level, "%s contains no pooler; it starts with random weights", weights.path)
        if weights.ignored:
            log.debug("%s: not part of the encoder, ignored: %s", weights.path, ", ".join(weights.ignored))

    def save_pretrained(self, folder: str | Path, layout: str = "onion") -> None:
        """Write ``config.json`` and ``model.safetensors``, each replaced atomically; the folder is created.

        LoRA's adapters are merged into the weights that are written.

        The weights are written first and contain the settings that determine their meaning: a folder with one new and
        one old file, left by a killed process, is refused when loading, unless both mean the same.

        Args:
            folder: the target.
            layout: of the weights; see :func:`onion.models.weights.write_weights`.

        Raises:
            WeightsError: they cannot be written, or the layout is unknown.
        """
        write_weights(folder, arrays_of(self), layout, config=self.config)
        self.config.write(folder)

    def first_layers(self: Own, count: int) -> Own:
        """Return an encoder of the first ``count`` layers; all parameters are shared."""
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
    """Return the parameters of a layer as they are saved: name -> array; adapters are merged."""
    tensors = [*layer.named_parameters(), *layer.named_buffers()]  # the scale of an adapter is a buffer
    return merged({name: _array(tensor) for name, tensor in tensors})


def _array(parameter: paddle.Tensor) -> np.ndarray:
    """Return a parameter as an array; bfloat16, which numpy does not have, as float32."""
    array: np.ndarray = (parameter.astype("float32") if parameter.dtype == paddle.bfloat16 else parameter).numpy()
    return array


Copied = TypeVar("Copied", bound=nn.Layer)


def _shallow_copy(layer: Copied) -> Copied:
    """Copy a layer so that its sublayers can be replaced without changing the original."""
    copied = copy.copy(layer)
    copied.__dict__["_sub_layers"] = OrderedDict(layer._sub_layers)
    return copied
