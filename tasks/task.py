"""The contract of a task: how a file becomes features, the head, the metric, the predictions.

A task is a frozen attrs class: its settings, and what is read from the training file (``fitted``). The runners and jobs
in ``finetune/`` are the same for all tasks. ``registry.py`` lists the tasks.

    file -> rows -> features -> batches -> network -> outputs -> decoded -> metric or predictions
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeVar

import attrs

from onion.errors import DataError
from onion.messages import shown
from onion.tasks.data.labels import Labels
from onion.tasks.reports.report import Report
from onion.tasks.validators import NATURAL

if TYPE_CHECKING:
    import numpy as np
    from paddle import nn

    from onion import RunnerItem
    from onion.items.evaluator import Metric
    from onion.models.tokenizer import Tokenizer
    from onion.models.weights import Weights
    from onion.tasks.data.features.examples import Example, Examples

NOT_OF_FEATURES = {"of_features": False}
"""Metadata of a field that does not affect features, but the loss, predictions or metrics."""

FEW = 256
"""Rows in memory while examples are counted."""

Decode: TypeAlias = "Callable[[np.ndarray, dict[str, Any]], list[Any]]"
"""What decodes the outputs of a network, as an array, and the batch: one entry per example."""

TEXT_VECTOR, TOKEN_VECTORS, MASKED_TOKENS = "the vector of a text", "the vectors of tokens", "masked tokens"
"""What the heads of networks that can be exported are over; see ``Task.head_over``."""

AFTER_TRAINING = {**NOT_OF_FEATURES, "after_training": True}
"""Metadata of a field that can be changed after training: it affects predictions and metrics only."""

Own = TypeVar("Own", bound="Task")


@attrs.frozen(kw_only=True)
class Task(ABC):
    """Base class of tasks.

    Attributes:
        name: the value of ``--task``.
        features_version: of the features; raise it whenever they change, so that cached ones are not used.
        monitor: the metric by which the best checkpoint is chosen; minimized if it is in the metric's
            ``less_is_better``, otherwise maximized.
        together: the column whose rows stay together where a part of the training file is left out to test on, such
            as ``qid``; None (default): rows are independent.
        head_over: what the head of :meth:`network` is over, for an exported model: ``TEXT_VECTOR``, its layer
            ``classifier`` over the pooled output; ``TOKEN_VECTORS``, that layer over every token; ``MASKED_TOKENS``,
            BERT's masked LM head. None: it is another one, and the task cannot be exported; the default, also of a
            subclass with a :meth:`network` of its own, which has to say it again.
        decoding_weights: paths of the network's parameters that :meth:`decoding` needs. Default: none.
        max_length: the maximum number of tokens of an example, including special ones.
    """

    name: ClassVar[str]
    features_version: ClassVar[int] = 1
    monitor: ClassVar[str]
    together: ClassVar[str | None] = None
    head_over: ClassVar[str | None] = None
    decoding_weights: ClassVar[Sequence[str]] = ()

    max_length: int = attrs.field(default=128, validator=NATURAL)

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "network" in vars(cls) and "head_over" not in vars(cls):
            cls.head_over = None  # that of the inherited network says nothing of this one

    # -- data ---------------------------------------------------------------------------------------------------------

    @abstractmethod
    def rows(self, path: str | Path, labelled: bool) -> Iterator[Any]:
        """Yield the rows of a file; each call reads it again.

        Raises:
            DataError: the file is invalid; the message has the place.
        """

    @abstractmethod
    def line_rows(self, lines: Iterable[str]) -> Iterator[Any]:
        """Yield a row without label for each line of text, as ``onion predict`` reads them from standard input."""

    def text_rows(self, texts: Sequence[str]) -> Iterator[Any]:
        """Yield a row without label for each single text, for ``onion predict --text``.

        Raises:
            DataError: the task reads something else; this is the default.
        """
        raise DataError(f"--text: the task {self.name} reads more than single texts; use --input with a file")

    def fitted(self: Own, path: str | Path) -> Own:
        """Return the task with everything that is read from the training file, such as labels. Default: unchanged.

        Raises:
            DataError: there is nothing to learn from the file.
        """
        return self

    def extra_fit_files(self, path: str | Path) -> list[Path]:
        """Return other files that :meth:`fitted` reads, such as one beside the training file. Default: none."""
        return []

    @abstractmethod
    def features(self, rows: Sequence[Any], tokenizer: Tokenizer, labelled: bool, notes: Counter[str]) -> list[Example]:
        """Convert rows into examples.

        Args:
            rows: some of :meth:`rows`.
            tokenizer: converts texts into ids.
            labelled: whether the examples get targets.
            notes: receive warnings, and how often each applies: "texts longer than ...".

        Returns:
            One or more examples per row, each with ``row``, its index in ``rows``, and ``ids``; all with the same
            fields.

        Raises:
            DataError: a row is invalid.
        """

    def count(self, rows: Iterable[Any], tokenizer: Tokenizer) -> int:
        """Return the number of examples that :meth:`features` makes of labelled rows, without keeping any.

        Default: make them, a few rows at a time. A task with one example per row only needs to check the rows.

        Raises:
            DataError: a row is invalid.
        """
        rows, examples = iter(rows), 0
        while some := list(islice(rows, FEW)):
            examples += len(self.features(some, tokenizer, True, Counter()))
        return examples

    @property
    def makes_one_each(self) -> bool:
        """Whether :meth:`features` makes one example of every row, so that rows can be skipped. Default: no."""
        return False

    def classes(self, examples: Examples) -> np.ndarray | None:
        """Return the class of each labelled example, an integer ``[examples]``, to draw all classes equally often.

        Default: None, the examples have no classes.
        """
        return None

    def unlearned(self, examples: Sequence[Example]) -> int:
        """Return the number of labelled examples that have nothing to learn from. Default: 0."""
        return 0

    @abstractmethod
    def collate(self, examples: Sequence[Example], pad_id: int) -> dict[str, Any]:
        """Make a batch; its list ``places`` has the indices of the examples."""

    # -- learning -----------------------------------------------------------------------------------------------------

    @abstractmethod
    def network(self, encoder: nn.Layer) -> nn.Layer:
        """Put the head over an encoder.

        Returns:
            A layer that is called with a batch and has ``loss(outputs, batch)`` and ``decode(outputs, batch)``; the
            latter returns a list with one entry per example, for :meth:`metric` and :meth:`predictions`. If the loss is
            not a mean over examples, ``loss_weight(batch)`` returns what it is a mean over, for several processes.
        """

    def decoding(self, weights: Mapping[str, np.ndarray]) -> Decode:
        """Return what decodes a network's outputs without the network, as an exported model needs it.

        It is called with the outputs of a batch as an array, and with the batch of :meth:`collate`, and returns what
        the network's ``decode(outputs, batch)`` does.

        Args:
            weights: the parameters of the network by their paths, for those that decoding needs, such as
                ``crf.transitions``.

        Raises:
            DataError: the task cannot decode without its network; this is the default.
        """
        raise DataError(
            f"the task {self.name} cannot decode without its network; define {type(self).__name__}.decoding, which "
            "returns a function of the outputs, as an array, and the batch"
        )

    def outputs_of(self, logits: np.ndarray, batch: Mapping[str, Any]) -> np.ndarray:
        """Return the outputs of the network for a batch from the logits of an exported model. Default: the same.

        Args:
            logits: as :func:`onion.tasks.export.heads.network_graph` gives them.
            batch: of :meth:`collate`.
        """
        return logits

    def fill(self, network: nn.Layer, weights: Weights) -> None:  # noqa: B027  doing nothing is the default
        """Load pretrained weights of the head, if the encoder's file has them. Default: nothing.

        Args:
            network: that of :meth:`network`.
            weights: of the file, including those of the encoder.

        Raises:
            WeightsError: they do not fit.
        """

    def train_items(self, tokenizer: Tokenizer, seed: int) -> list[RunnerItem]:
        """Return the items between the data and the network in training. Default: none."""
        return []

    def eval_items(self, tokenizer: Tokenizer, seed: int) -> list[RunnerItem]:
        """Return those of a test. Default: as in training."""
        return self.train_items(tokenizer, seed)

    def predict_items(self, tokenizer: Tokenizer) -> list[RunnerItem]:
        """Return those of a prediction; on the way out, the outputs are already decoded. Default: none."""
        return []

    # -- results ------------------------------------------------------------------------------------------------------

    @abstractmethod
    def metric(self, path: str | Path) -> Metric:
        """Return the metric of the decoded outputs for a labelled file."""

    @abstractmethod
    def predictions(self, rows: Sequence[Any], examples: Sequence[Example], decoded: Sequence[Any]) -> Iterator[Any]:
        """Yield the prediction for each row, as JSON values.

        Args:
            rows: as passed to :meth:`features`.
            examples: the examples it returned.
            decoded: the decoded outputs of each example.
        """

    def files(self, predicted: Sequence[Any]) -> dict[str, Any]:
        """Return other files with all predictions: file name -> JSON value. Default: none."""
        return {}

    def report(self, rows: Sequence[Any], predicted: Iterable[Any]) -> Report:
        """Return what an evaluation tells beyond its figures: each class, each error. Default: nothing.

        Args:
            rows: all labelled rows of a file.
            predicted: what :meth:`predictions` yields for each; not asked for where there is nothing to tell.
        """
        return Report()

    def baseline(self, examples: Sequence[Example]) -> dict[str, float]:
        """Return the metrics of a trivial prediction. Default: none."""
        return {}

    # -- record -------------------------------------------------------------------------------------------------------

    def record(self) -> dict[str, Any]:
        """Return the name and all fields as JSON values, for ``registry.recorded_task``."""
        return {"task": self.name, **attrs.asdict(self, value_serializer=_plain)}

    @classmethod
    def adjustable(cls) -> list[str]:
        """Return the names of the settings that :meth:`adjusted` takes."""
        return [field.name for field in attrs.fields(cls) if field.metadata.get("after_training")]

    def adjusted(self: Own, settings: Mapping[str, Any]) -> Own:
        """Return the task of a trained model with some other settings, such as a threshold.

        Raises:
            DataError: a setting is fixed by the training, unknown or invalid.
        """
        free = self.adjustable()
        fixed = [name for name in settings if name not in free]
        if fixed:
            told = f"only {', '.join(free)} can" if free else "no setting can"
            raise DataError(f"{shown(fixed[0])} cannot be changed after training; of the task {self.name} {told}")
        record = {name: value for name, value in self.record().items() if name != "task"}
        return type(self).from_settings({**record, **settings})

    def features_record(self) -> dict[str, Any]:
        """Return the part of the record that affects features."""
        of_the_features = attrs.asdict(
            self, filter=lambda field, _: field.metadata.get("of_features", True), value_serializer=_plain
        )
        return {"task": self.name, **of_the_features}

    @classmethod
    def from_settings(cls: type[Own], settings: Mapping[str, Any]) -> Own:
        """Create the task from its settings.

        Raises:
            DataError: a setting is unknown or invalid; the message lists the known ones.
        """
        known = [field.name for field in attrs.fields(cls) if field.init]
        unknown = [name for name in settings if name not in known]
        if unknown:
            raise DataError(
                f"unknown setting {shown(unknown[0])}; the task {cls.name} has {', '.join(known)}; "
                "see onion train --help for those of training, docs/migrating.md for the names that other trainers use"
            )
        try:
            return cls(**settings)
        except (DataError, TypeError, ValueError) as error:
            raise DataError(f"{cls.name}: {error.args[0] if error.args else error}") from None


def _plain(task: Any, field: Any, value: Any) -> Any:
    """Convert labels into a list, for the record."""
    return list(value) if isinstance(value, Labels) else value
