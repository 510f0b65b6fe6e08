"""The values that a search chooses from.

learning_rate: 1e-5..1e-3:log    a range, by its logarithm
warmup_ratio: 0..0.2             a range
max_length: 64..256:64           a range in steps: 64, 128, 192, 256
batch_size: [16, 32]             values; as text: 16,32
mrpc.mix_ratio: 0.5..2           of one of several tasks
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs

from onion.errors import DataError, OnionError
from onion.messages import listed, shown
from onion.tasks.data.texts import check_max_length
from onion.tasks.finetune.config_file import resolve
from onion.tasks.finetune.initialization import Initialization
from onion.tasks.finetune.multitask_settings import MultiTaskSettings
from onion.tasks.finetune.settings import Settings
from onion.tasks.registry import get_task

if TYPE_CHECKING:
    import optuna

FIXED = ("task", "tasks", "train", "dev", "columns", "monitor", "seed")
"""Settings without which figures cannot be compared. The seed also chooses a share of the training file."""

NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
RANGE = re.compile(rf"({NUMBER})\.\.({NUMBER})(?::(log|{NUMBER}))?")
FORMS = "must be LOW..HIGH, LOW..HIGH:log, LOW..HIGH:STEP or values such as 16,32"

Value: TypeAlias = str | int | float | bool | None


@attrs.frozen
class Range:
    """Numbers from ``low`` to ``high``, both included.

    Attributes:
        low: the lowest.
        high: the highest.
        log: whether they are drawn by their logarithm.
        step: from one to the next; None: any, or whole numbers.
        whole: whether they are integers.
    """

    low: float
    high: float
    log: bool = False
    step: float | None = None
    whole: bool = False

    @property
    def examples(self) -> tuple[float, float]:
        """Return the values that are tried before a search."""
        return self.low, self.high

    def suggest(self, trial: optuna.Trial, name: str) -> None:
        """Let a trial choose."""
        if self.whole:
            trial.suggest_int(name, int(self.low), int(self.high), log=self.log, step=int(self.step or 1))
        else:
            trial.suggest_float(name, self.low, self.high, log=self.log, step=self.step)

    def __str__(self) -> str:
        kind = ":log" if self.log else "" if self.step is None else f":{self.step}"
        return f"{self.low}..{self.high}{kind}"


@attrs.frozen
class Values:
    """Some values in no order.

    Attributes:
        values: at least two.
    """

    values: tuple[Value, ...]

    @property
    def examples(self) -> tuple[Value, ...]:
        """Return the values that are tried before a search."""
        return self.values

    def suggest(self, trial: optuna.Trial, name: str) -> None:
        """Let a trial choose."""
        trial.suggest_categorical(name, self.values)

    def __str__(self) -> str:
        return ",".join(map(str, self.values))


Space: TypeAlias = Mapping[str, Range | Values]
"""Setting -> what it is chosen from."""


def search_space(search: object, settings: Mapping[str, Any]) -> Space:
    """Read a search space, and try its values in the settings.

    Args:
        search: setting -> a text such as ``1e-5..1e-3:log`` or ``16,32``, or a list of values.
        settings: the others, by name, as a config file has them.

    Raises:
        DataError: an entry is invalid, or the training does not take a value; the message names the entry.
    """
    if not isinstance(search, Mapping) or not all(isinstance(name, str) for name in search):
        raise DataError(f"search must be a mapping, such as 'learning_rate: 1e-5..1e-3:log', got {shown(search)}")
    if not search:
        raise DataError("there is nothing to search; name settings with --search or under search: in the config file")
    return {name: _entry(name, given, settings) for name, given in search.items()}


def _entry(name: str, given: object, settings: Mapping[str, Any]) -> Range | Values:
    if name in FIXED or name.rpartition(".")[2] in FIXED:
        raise DataError(f"search: {name}: trainings that differ in it cannot be compared; leave it out")

    def fits(value: Value) -> None:
        try:
            check(resolve(with_values(settings, {name: value})))
        except OnionError as error:
            raise DataError(f"search: {name}: {error}") from None

    try:
        entry = _read(given, fits)
    except ValueError as error:
        raise DataError(f"search: {name}: {error}") from None
    for value in entry.examples:
        fits(value)
    return entry


def _read(given: object, fits: Callable[[Value], None]) -> Range | Values:
    if isinstance(given, str) and (found := RANGE.fullmatch(given.strip())):
        return _range(found[1], found[2], found[3], fits)
    values = [_value(each) for each in given.split(",")] if isinstance(given, str) else given
    if not isinstance(values, list | tuple) or len(values) < 2:
        raise ValueError(f"{FORMS}, got {shown(given)}")
    values = [_value(each) if isinstance(each, str) else each for each in values]
    for value in values:
        if not isinstance(value, str | int | float | bool | None):
            raise ValueError(f"{shown(value)} is no single value; {FORMS}")
        if values.count(value) > 1:
            raise ValueError(f"{shown(value)} is there twice")
    return Values(tuple(values))


def _range(low: str, high: str, kind: str | None, fits: Callable[[Value], None]) -> Range:
    first, last, step = Decimal(low), Decimal(high), None
    if not first < last:
        raise ValueError(f"the range must rise, got {low}..{high}")
    if kind == "log" and first <= 0:
        raise ValueError(f"a range by its logarithm must begin above 0, got {low}")
    if kind is not None and kind != "log":
        step = Decimal(kind)
        if not 0 < step <= last - first:
            raise ValueError(f"the step must be above 0 and at most {last - first}, got {kind}")
        last = first + (last - first) // step * step
    whole = _is_whole([first, last, step or first], fits)
    number = int if whole else float
    return Range(number(first), number(last), kind == "log", None if step is None else number(step), whole)


def _is_whole(numbers: Sequence[Decimal], fits: Callable[[Value], None]) -> bool:
    """Tell whether a range is of integers: it is written in integers, and the setting takes no fraction in it."""
    if any(number.as_tuple().exponent for number in numbers):
        return False
    try:
        fits(float(numbers[0]) + 0.5)
    except DataError:
        return True
    return False


def _value(text: str) -> Any:
    """Read a value as ``--set`` does: JSON, or otherwise a string."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text.strip()


def with_values(settings: Mapping[str, Any], values: Mapping[str, Value]) -> dict[str, Any]:
    """Return settings with values in their places; ``mrpc.mix_ratio`` belongs into the entry of a task.

    Raises:
        DataError: there is no such task.
    """
    found = dict(settings)
    for name, value in values.items():
        task, dot, own = name.rpartition(".")
        if not dot:
            found[name] = value
            continue
        tasks = found.get("tasks")
        if tasks is None:
            raise DataError("a name with a dot is a setting of one of several tasks, and this training has one task")
        if task not in tasks:
            raise DataError(f"there is no task {shown(task)}; there are {listed(tasks)}")
        found["tasks"] = {**tasks, task: {**tasks[task], own: value}}
    return found


def check(settings: Settings | MultiTaskSettings) -> None:
    """Check what can be checked without the data: the settings of the tasks, the encoder, the lengths of texts.

    Raises:
        OnionError: something is invalid or missing.
    """
    parts = settings.tasks.values() if isinstance(settings, MultiTaskSettings) else [settings]
    positions = Initialization.of(settings).config().max_length
    for part in parts:
        check_max_length(get_task(part.task, part.options).max_length, positions)
