"""What networks and optimizers hold that no checkpoint has: it is told where a resumed run came to something else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import FunctionType
from typing import Any

from onion.engine.item import transient_of
from onion.testing.snapshot import Fields, is_layer, is_optimizer, snapshot


def hidden(items: Mapping[str, Any]) -> dict[str, Fields]:
    """Return, by item, what its networks and optimizers hold beside what is saved of them, by the way to it.

    Of a network it is every buffer that is not persistable and every attribute of a layer's own, at every depth; of an
    optimizer every attribute that Paddle's own code does not know. What their classes name in ``transient`` is left
    out.

    Args:
        items: by their names.
    """
    seen: dict[int, tuple[Any, Any]] = {}
    return {
        title: Fields(
            type(item).__name__,
            {
                f"{name}.{path}": snapshot(value, seen)
                for name, holder in vars(item).items()
                for path, value in _beside_what_is_saved(holder)
            },
        )
        for title, item in items.items()
    }


def _beside_what_is_saved(holder: Any) -> Iterator[tuple[str, Any]]:
    if is_layer(holder):
        for path, layer in holder.named_sublayers(include_self=True):
            for name, value in _of_layer(layer):
                yield f"{path}.{name}" if path else name, value
    elif is_optimizer(holder):
        known = {*_names_in(type(holder)), *transient_of(holder)}
        yield from ((name, value) for name, value in vars(holder).items() if name not in known)


def _of_layer(layer: Any) -> Iterator[tuple[str, Any]]:
    from onion.device import paddle

    known = {*vars(paddle().nn.Layer()), *transient_of(layer)}
    yield from ((name, value) for name, value in vars(layer).items() if name not in known and not is_layer(value))
    passing = layer._non_persistable_buffer_names_set
    yield from ((name, value) for name, value in layer._buffers.items() if name in passing and name not in known)


def _names_in(kind: type) -> Iterator[str]:
    """Give all names that the methods of a class have in them, as far as it and its parents are Paddle's."""
    for parent in kind.__mro__:
        if parent.__module__.partition(".")[0] == "paddle":
            for method in vars(parent).values():
                function = getattr(method, "__wrapped__", method)
                if isinstance(function, FunctionType):
                    yield from function.__code__.co_names
