"""What a task is: how a file becomes features, which head learns from them, how well it does, what it predicts.

A task is a frozen attrs class: its settings, and what only the training file can tell (``fitted``). The onions and the
jobs around it (``onions.py``, ``jobs/``) are the same for all tasks. One task is one file; ``catalogue.py`` lists them.

    file -> rows -> features -> batches -> network -> outputs -> decoded -> metric or predictions
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import attrs

from onion.errors import DataError
from onion.messages import shown
from onion.tasks.data.labels import Labels
from onion.tasks.validators import NATURAL

if TYPE_CHECKING:
    from paddle import nn

    from onion import RunnerItem
    from onion.items.evaluator import Metric
    from onion.models.tokenizer import Tokenizer
    from onion.models.weights import Weights
    from onion.tasks.data.features.examples import Example

NOT_OF_FEATURES = {"of_features": False}
"""Metadata of a field that changes nothing about the features: of the loss, of predictions, of figures."""

FEW = 256
"""Rows that are in memory while examples are counted."""

AFTER_TRAINING = {**NOT_OF_FEATURES, "after_training": True}
"""Metadata of a field that a trained model may have another value of: it counts in predictions and figures only."""

Own = TypeVar("Own", bound="Task")


@attrs.frozen(kw_only=True)
class Task(ABC):
    """What all tasks have in common.

    Attributes:
        name: what ``--task`` calls it.
        features_version: of the features that it makes; to be raised where they become others, since what was made
            before is kept.
        monitor: the figure of its metric by which the best checkpoint is chosen; of those in the metric's
            ``less_is_better`` less is better, of others more.
        max_length: tokens an example may have, special ones included.
    """

    name: ClassVar[str]
    features_version: ClassVar[int] = 1
    monitor: ClassVar[str]

    max_length: int = attrs.field(default=128, validator=NATURAL)

    # -- data ---------------------------------------------------------------------------------------------------------

    @abstractmethod
    def rows(self, path: str | Path, labelled: bool) -> Iterator[Any]:
        """Give the rows of a file, one by one and anew with each call.

        Raises:
            DataError: the file is not what it should be; the message says where.
        """

    @abstractmethod
    def line_rows(self, lines: Iterable[str]) -> Iterator[Any]:
        """Give a row without label for each line of text, as ``onion predict`` reads them from standard input."""

    def text_rows(self, texts: Sequence[str]) -> Iterator[Any]:
        """Give a row without label for each of some single texts, as ``onion predict --text`` has them.

        Raises:
            DataError: the task reads something else; this is the default.
        """
        raise DataError(f"--text: the task {self.name} reads more than single texts; use --input with a file")

    def fitted(self: Own, path: str | Path) -> Own:
        """Return the task with what the training file tells, such as its labels. Default: unchanged.

        Raises:
            DataError: there is nothing to be learned from the file.
        """
        return self

    def extra_fit_files(self, path: str | Path) -> list[Path]:
        """Return the other files that :meth:`fitted` reads, such as one beside the training file. Default: none."""
        return []

    @abstractmethod
    def features(self, rows: Sequence[Any], tokenizer: Tokenizer, labelled: bool, notes: Counter[str]) -> list[Example]:
        """Turn some rows into examples: arrays of numbers.

        Args:
            rows: those of :meth:`rows`.
            tokenizer: turns texts into ids.
            labelled: whether the examples get what they are to learn.
            notes: is told what the user should know, and how often it was so: "texts longer than ...".

        Returns:
            One or more examples a row, each with ``row``, its place among ``rows``, and ``ids``; all with the same
            fields.

        Raises:
            DataError: a row is not what it should be.
        """

    def count(self, rows: Iterable[Any], tokenizer: Tokenizer) -> int:
        """Return how many examples :meth:`features` makes of some labelled rows, without keeping any.

        Default: it makes them, a few rows at a time. A task that makes one of each row only has to look at the rows.

        Raises:
            DataError: a row is not what it should be.
        """
        rows, examples = iter(rows), 0
        while some := list(islice(rows, FEW)):
            examples += len(self.features(some, tokenizer, True, Counter()))
        return examples

    def unlearned(self, examples: Sequence[Example]) -> int:
        """Return how many of some labelled examples there is nothing to learn from. Default: 0."""
        return 0

    @abstractmethod
    def collate(self, examples: Sequence[Example], pad_id: int) -> dict[str, Any]:
        """Make a batch; ``places`` (a list) tells where its examples stand among all."""

    # -- learning -----------------------------------------------------------------------------------------------------

    @abstractmethod
    def network(self, encoder: nn.Layer) -> nn.Layer:
        """Put the head over an encoder.

        Returns:
            A layer that is called with a batch, has ``loss(outputs, batch)`` and ``decode(outputs, batch)``; the latter
            gives a list with one entry an example, as :meth:`metric` and :meth:`predictions` take them.
        """

    def fill(self, network: nn.Layer, weights: Weights) -> None:  # noqa: B027  doing nothing is the default
        """Take over what the encoder's file holds for the head as well. Default: nothing, the head begins anew.

        Args:
            network: that of :meth:`network`.
            weights: what was read of the file; the encoder has taken over its part.

        Raises:
            WeightsError: they do not fit.
        """

    def train_items(self, tokenizer: Tokenizer, seed: int) -> list[RunnerItem]:
        """Return the items that stand between the data and the network in training. Default: none."""
        return []

    def eval_items(self, tokenizer: Tokenizer, seed: int) -> list[RunnerItem]:
        """Return those of a test. Default: as in training."""
        return self.train_items(tokenizer, seed)

    def predict_items(self, tokenizer: Tokenizer) -> list[RunnerItem]:
        """Return those of a prediction; on the way out they find what was decoded as the outputs. Default: none."""
        return []

    # -- results ------------------------------------------------------------------------------------------------------

    @abstractmethod
    def metric(self, path: str | Path) -> Metric:
        """Return what measures the decoded outputs for the examples of a labelled file."""

    @abstractmethod
    def predictions(self, rows: Sequence[Any], examples: Sequence[Example], decoded: Sequence[Any]) -> Iterator[Any]:
        """Give what is predicted for each row, as JSON values.

        Args:
            rows: as :meth:`features` had them.
            examples: what it made of them.
            decoded: for each example what the network's ``decode`` gave.
        """

    def files(self, predicted: Sequence[Any]) -> dict[str, Any]:
        """Return what else is to be written of all predictions: file name -> JSON value. Default: nothing."""
        return {}

    def baseline(self, examples: Sequence[Example]) -> dict[str, float]:
        """Return figures that learning nothing would reach. Default: none."""
        return {}

    # -- record -------------------------------------------------------------------------------------------------------

    def record(self) -> dict[str, Any]:
        """Return the name and all fields as JSON values; ``catalogue.get_task`` makes the task of them."""
        return {"task": self.name, **attrs.asdict(self, value_serializer=_plain)}

    def adjusted(self: Own, settings: Mapping[str, Any]) -> Own:
        """Return the task of a trained model with some other settings, such as a threshold.

        Raises:
            DataError: a setting that is fixed by the training, or that there is not, or a value that does not do.
        """
        free = [field.name for field in attrs.fields(type(self)) if field.metadata.get("after_training")]
        fixed = [name for name in settings if name not in free]
        if fixed:
            told = f"only {', '.join(free)} can" if free else "no setting can"
            raise DataError(f"{shown(fixed[0])} cannot be changed after training; of the task {self.name} {told}")
        record = {name: value for name, value in self.record().items() if name != "task"}
        return type(self).from_settings({**record, **settings})

    def features_record(self) -> dict[str, Any]:
        """Return that part of the record that decides about the features."""
        of_the_features = attrs.asdict(
            self, filter=lambda field, _: field.metadata.get("of_features", True), value_serializer=_plain
        )
        return {"task": self.name, **of_the_features}

    @classmethod
    def from_settings(cls: type[Own], settings: Mapping[str, Any]) -> Own:
        """Make the task of its settings by name.

        Raises:
            DataError: a setting that this task has not, or a value that does not do; the message says which do.
        """
        known = [field.name for field in attrs.fields(cls) if field.init]
        unknown = [name for name in settings if name not in known]
        if unknown:
            raise DataError(
                f"unknown setting {shown(unknown[0])}; the task {cls.name} has {', '.join(known)}; "
                f"see onion train --help for those of training"
            )
        try:
            return cls(**settings)
        except (DataError, TypeError, ValueError) as error:
            raise DataError(f"{cls.name}: {error.args[0] if error.args else error}") from None


def _plain(task: Any, field: Any, value: Any) -> Any:
    """Labels are recorded as the list that they are made of."""
    return list(value) if isinstance(value, Labels) else value
