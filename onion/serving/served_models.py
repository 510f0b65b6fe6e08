"""The models of a service by name, and how one is exchanged while it is served."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from onion.errors import DataError, OnionError, WeightsError
from onion.http.refused import Refused
from onion.messages import listed, shown
from onion.models import hub
from onion.serving.servable import Servable, load_servable
from onion.tasks.export.answers_file import KeptAnswer, read_answers
from onion.tasks.export.manifest import is_exported, read_manifest
from onion.tasks.export.names import ANSWERS

log = logging.getLogger("onion")

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
RESERVED = (
    "docs",
    "health",
    "info",
    "metrics",
    "models",
    "openapi.json",
    "predict",
    "embed",
    "ready",
    "rerank",
    "static",
    "v1",
    "v2",
)
"""First parts of the service's own addresses."""

ALIKE = 1e-3
"""How far a number of a stored answer may be from the model's: far more than another engine's rounding."""

ALIKE_OF_8_BITS = 0.05
"""The same for a model with 8 bits: rounding in another order may take a number to the next of their 255 steps."""

FLIPPED = 0.1
"""The share of words in stored answers that may be others: where two are equally likely, rounding decides."""

DERIVED = ("id", "labels", "nbest", "spans")
"""Parts of answers that follow from others, and may be of another length where one of those was flipped."""

WARM_UP = "a film"


@attrs.frozen(eq=False)
class Loaded:
    """A model as a folder had it.

    Attributes:
        servable: it.
        version: how often the folder had been loaded then.
    """

    servable: Servable
    version: int


class ServedModel:
    """A model that is served by a name.

    Args:
        name: in addresses.
        folder: of a run, an export or an encoder, or the name of an encoder; it may change before a reload.
        threads: that one batch is computed on.
        engine: of a run; see ``Predictor.load``.

    Attributes:
        now: what was loaded last; a reload exchanges model and version in one step.
    """

    def __init__(self, name: str, folder: str, threads: int = 1, engine: str | None = None) -> None:
        self.name, self.folder, self._threads, self._engine = name, folder, threads, engine
        self._local = Path(folder).exists()  # a folder that is exchanged later is not looked for on the hub meanwhile
        self._reloading = threading.Lock()
        self.now = Loaded(self._load(), 1)

    @property
    def servable(self) -> Servable:
        """The model as it is now."""
        return self.now.servable

    def reload(self) -> None:
        """Load the folder again, and serve what it has from the next call on; calls under way keep the old model.

        Raises:
            OnionError: the folder has no model, or one that does not give its stored answers; the old one stays.
            Refused: it is being reloaded already (409).
        """
        if not self._reloading.acquire(blocking=False):
            raise Refused(f"The model {self.name} is being reloaded already.", 409)
        try:
            self.now = Loaded(self._load(), self.now.version + 1)
        finally:
            self._reloading.release()

    def _load(self) -> Servable:
        path = Path(self.folder)
        if self._local and not path.exists():
            raise WeightsError(f"{path}: the folder is gone; put it back, and load the model again.")
        # Resolved once: a link that is exchanged meanwhile would make one model of the files of two.
        folder = path.resolve() if path.exists() else hub.resolve(self.folder)
        servable = load_servable(folder, self._threads, self._engine)
        check_answers(servable, folder)
        return servable


def check_answers(servable: Servable, folder: Path) -> None:
    """Warm a model up by the rows of its folder, and compare what it answers with what is stored there.

    Raises:
        WeightsError: it gives other answers.
        CheckpointError: the file with the answers is damaged.
    """
    kept = read_answers(folder)
    if not kept:
        _warm_up(servable)
        return
    found, stored = [], []
    for each in kept:
        found += leaves(servable.answer([servable.prepare_line(each.row)])[0])
        stored += leaves(each.prediction if each.exported is None else each.exported)
    if not alike(found, stored, ALIKE if kept[0].exported is None else ALIKE_OF_8_BITS) and not _is_older(folder, kept):
        raise WeightsError(
            f"{folder}: the model gives other answers to the rows of {ANSWERS} than are stored there; export it again."
        )


def _is_older(folder: Path, kept: Sequence[KeptAnswer]) -> bool:
    """Return whether an export with 8 bits has the answers of its run only, as the first ones had."""
    has_8_bits = is_exported(folder) and read_manifest(folder).int8 is not None
    return has_8_bits and all(each.exported is None for each in kept)


def _warm_up(servable: Servable) -> None:
    try:
        servable.answer([servable.prepare(WARM_UP)])
    except DataError:  # it reads something else than texts
        log.debug("a model of the task %s was not warmed up", servable.task)


def leaves(answer: Any) -> list[Any]:
    """Return the numbers and words of an answer, in its order."""
    if isinstance(answer, Mapping):
        return [leaf for name, each in answer.items() if name not in DERIVED for leaf in leaves(each)]
    if isinstance(answer, (list, np.ndarray)):
        return [leaf for each in answer for leaf in leaves(each)]
    return [float(answer) if isinstance(answer, np.floating) else answer]


def alike(found: Sequence[Any], stored: Sequence[Any], bound: float = ALIKE) -> bool:
    """Return whether numbers, above 1 relative to them, are equal within a bound, and nearly all words the same."""
    if len(found) != len(stored):
        return False
    pairs = list(zip(found, stored, strict=True))
    numbers = [(one, other) for one, other in pairs if isinstance(other, float)]
    words = [one == other for one, other in pairs if not isinstance(other, float)]
    close = all(isinstance(one, float) and abs(one - other) <= bound * max(1.0, abs(other)) for one, other in numbers)
    return close and words.count(False) <= FLIPPED * len(words)


class ServedModels:
    """The models of a service.

    Args:
        models: in the order in which they were given.

    Raises:
        OnionError: a name is invalid, or belongs to two.
    """

    def __init__(self, models: Iterable[ServedModel]) -> None:
        self.all = list(models)
        self._by_name = {model.name: model for model in self.all}

    def __getitem__(self, name: str) -> ServedModel:
        """Return the model of a name.

        Raises:
            Refused: there is none (404).
        """
        if name not in self._by_name:
            raise Refused(f"There is no model {shown(name)}; there are {listed(self._by_name)}.", 404)
        return self._by_name[name]

    def first(self, *kinds: str) -> ServedModel:
        """Return the first model of one of these kinds; without kinds the first.

        Raises:
            Refused: there is none (404).
        """
        for model in self.all:
            if not kinds or model.servable.kind in kinds:
                return model
        raise Refused(f"No model here is of this kind ({' or '.join(kinds)}).", 404)


def check_names(names: Iterable[str]) -> None:
    """Refuse names that do not fit into an address, or that two models have.

    Raises:
        OnionError: one does not.
    """
    seen: set[str] = set()
    for name in names:
        if not NAME.fullmatch(name) or name in RESERVED:
            raise OnionError(
                f"the name {shown(name)} cannot be part of an address; use letters, digits, ., _ and -, and none of "
                f"{', '.join(sorted(RESERVED))}: NAME=DIR"
            )
        if name in seen:
            raise OnionError(f"two models have the name {shown(name)}; give another one: NAME=DIR")
        seen.add(name)
