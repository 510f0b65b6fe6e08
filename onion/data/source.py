"""The user's data as one of three kinds: `Indexed`, `PassSource` or `Stream`.

==========================================================  =========
given                                                       becomes
==========================================================  =========
path of a ``.tsv``, ``.csv`` or ``.jsonl`` file             `Indexed`
list, tuple, array, `Table`, map-style dataset              `Indexed`
what has a length and a method ``of_pass``                  `PassSource`: an `Indexed` for each pass
iterable, iterable-style dataset, generator function        `Stream`
iterator (a generator, an open file)                        `Stream`, for one pass
==========================================================  =========

A ``paddle.io.Dataset`` is known by its methods, so Paddle is not needed here. What gives batches in the place of
examples, as a ``DataLoader`` does, is refused (see `onion.data.paddle_loader`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Protocol, runtime_checkable

from onion.data.files import read_rows
from onion.errors import DataError


@runtime_checkable
class Indexed(Protocol):
    """Examples that can be had in any order: ``source[i]`` for i from 0 to ``len(source) - 1``."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> Any: ...


@runtime_checkable
class Skippable(Protocol):
    """A stream of known length that need not make each of its examples: a resumed pass begins sooner."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Any]: ...

    def skipping(self, skipped: Sequence[int], /) -> Iterator[Any]:
        """The examples of a pass, with anything in the place of each that is skipped.

        Args:
            skipped: For every example 1 or 0.
        """


@runtime_checkable
class PassSource(Protocol):
    """Examples that are others in every pass: masks that are drawn anew, pairs with other negatives.

    An attribute ``lengths``, ``[examples]`` integers, may say how many tokens each example has at most in any pass, for
    ``tokens_per_batch``.
    """

    def __len__(self) -> int:
        """How many examples a pass has: the same number in every pass."""

    def of_pass(self, pass_id: int, /) -> Indexed:
        """The examples of a pass, asked for when it begins, or is entered again in the middle.

        They are a function of pass and number alone, or a resumed run would see others. With ``num_workers`` they are
        pickled for the workers of the pass.

        Args:
            pass_id: From 0; each task of a TaskSampler counts its own.
        """


class Stream:
    """Examples that come one after the other, from the beginning in each pass.

    ``restart`` returns the iterator of one pass; it raises `DataError` if there cannot be another pass.

    Attributes:
        size: How many examples a pass has, of a stream that is `Skippable`; else None.
    """

    __slots__ = ("_restart", "_skipping", "size")

    def __init__(self, restart: Callable[[], Iterator[Any]], skippable: Skippable | None = None) -> None:
        self._restart = restart
        self._skipping = None if skippable is None else skippable.skipping
        self.size = None if skippable is None else len(skippable)

    def examples(self) -> Iterator[Any]:
        """The examples of one pass; `DataError` if there is no other pass, or (when it is drawn) no example."""
        return _not_empty(self._restart())

    def skipping(self, skipped: Sequence[int]) -> Iterator[Any]:
        """Those of a pass of a stream that is `Skippable`, which need not make the ones that are skipped."""
        assert self._skipping is not None
        return self._skipping(skipped)


def as_source(given: Any) -> Indexed | PassSource | Stream:
    """Recognise data as in the table above; `DataError` for anything else, no data, or an unreadable file."""
    if isinstance(given, str | os.PathLike):
        return read_rows(given)
    _refuse_batches(given)
    if isinstance(given, Mapping | AbstractSet):
        kind = type(given).__name__
        raise DataError(f"a {kind} has no first, second and third example; pass a list made of it")
    if has_length(given) and (isinstance(given, PassSource) or hasattr(type(given), "__getitem__")):
        if len(given) == 0:
            raise DataError(f"the data source ({type(given).__name__}) is empty; it needs at least one example")
        numbered: Indexed | PassSource = given
        return numbered
    if isinstance(given, Iterator):
        return Stream(_Once(given))
    if hasattr(type(given), "__iter__"):  # of the type, since a class is a function that makes an iterable
        return Stream(lambda: iter(given), given if isinstance(given, Skippable) else None)
    if callable(given):
        return Stream(lambda: _call(given))
    kind = type(given).__name__
    raise DataError(
        f"cannot read examples from a {kind}; pass a path, a sequence, an iterable, a dataset or a function"
    )


def examples_of_pass(source: Indexed | PassSource, pass_id: int) -> Indexed:
    """The examples that a source has in a pass."""
    if not isinstance(source, PassSource):
        return source
    examples = source.of_pass(pass_id)
    if not isinstance(examples, Indexed):
        kind, given = type(source).__name__, type(examples).__name__
        raise DataError(f"{kind}.of_pass returned a {given}; it must return examples that have a length and numbers")
    return examples


BATCHES = {
    ("paddle.", "DataLoader"): "DataProvider takes a paddle.io.DataLoader as it is",
    ("paddle.", "_DataLoaderIterBase"): "give the DataLoader itself, which makes an iterator for every pass",
    ("paddle.", "BatchSampler"): "give the DataLoader that has it, or the dataset",
    ("torch.", "DataLoader"): (
        "its tensors are no arrays to Paddle: give a paddle.io.DataLoader of the same data, as numpy arrays, or a "
        "function that yields its batches as numpy arrays, with batch_size=1 and collate=lambda given: given[0]"
    ),
    ("torch.", "_BaseDataLoaderIter"): "it is used up after one pass; see what is said of torch's DataLoader itself",
}
"""(package, class) -> the remedy for sources that yield batches instead of examples."""


def named(given: Any, package: str, name: str) -> bool:
    """Whether something is of a class of that name in that package, or of a subclass; the package is not imported."""
    return any(kind.__name__ == name and kind.__module__.startswith(package) for kind in type(given).__mro__)


def _refuse_batches(given: Any) -> None:
    for (package, name), remedy in BATCHES.items():
        if named(given, package, name):
            raise DataError(f"a {type(given).__name__} of {package[:-1]} yields batches, not examples; {remedy}")
    if getattr(given, "__module__", None) == "paddle.batch":
        raise DataError("paddle.batch makes batches of a reader's examples; pass the reader itself, and batch_size=")


def has_length(given: Any) -> bool:
    """Whether ``len(given)`` works."""
    # paddle.io.IterableDataset inherits a __len__ and a __getitem__ that only raise, so having them proves nothing.
    try:
        len(given)
    except (TypeError, NotImplementedError, RuntimeError, ValueError):
        return False
    return True


class _Once:
    """Returns its iterator for one pass only, since an iterator cannot be restarted."""

    def __init__(self, iterator: Iterator[Any]) -> None:
        self._iterator: Iterator[Any] | None = iterator

    def __call__(self) -> Iterator[Any]:
        iterator, self._iterator = self._iterator, None
        if iterator is None:
            raise DataError("the iterator is exhausted; pass a list, or a function that returns a new iterator")
        return iterator


def _call(function: Callable[[], Any]) -> Iterator[Any]:
    made = function()
    if not isinstance(made, Iterable):
        kind = type(made).__name__
        raise DataError(f"the data function returned a {kind}; it must return an iterable of examples, or yield them")
    return iter(made)


def _not_empty(examples: Iterator[Any]) -> Iterator[Any]:
    empty = True
    for example in examples:
        empty = False
        yield example
    if empty:
        raise DataError("the data source returned no examples in this pass; was it exhausted by an earlier one?")


def fingerprint(source: Any) -> str | None:
    """Return a text that identifies the data without reading all of them, or None if there is none.

    It is the source's attribute ``fingerprint`` (`Table` has one of all its cells) or ``_fingerprint`` (Hugging Face's
    datasets), or else its length. Give sources of equal length the attribute to tell them apart.
    """
    for name in ("fingerprint", "_fingerprint"):
        if isinstance(told := getattr(source, name, None), str):
            return told
    return f"{len(source)} examples" if has_length(source) else None


def say_where(error: BaseException, place: str) -> None:
    """Add the place at which an error occurred; its type and its traceback stay.

    A `DataError` gets the place in front of its message. Any other error gets a note (PEP 678), which Python shows from
    3.11 on; before that it is in ``__notes__`` all the same.
    """
    if isinstance(error, DataError):
        what, *more = error.args or ("",)
        error.args = (f"{place}: {what}", *more)
    else:
        vars(error).setdefault("__notes__", []).append(place)
