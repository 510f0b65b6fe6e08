"""In what ways the same batches are trained on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class HookIterator:
    """One way.

    Attributes:
        name: of it.
        text: for the page.
        served: whether the run has a Journal and a ControlServer with its service.
        client: what a client does meanwhile, as client.py has it; empty: there is none.
    """

    name: str
    text: str
    served: bool = True
    client: tuple[str, ...] = ()


OFF = HookIterator("off", "no Journal, no ControlServer: what the others are held against", served=False)

WAYS = (
    OFF,
    HookIterator("idle", "the service is there, and nobody calls"),
    HookIterator(
        "watched", "a client asks for `/status` once a second, and another one reads `/events`", client=("watch",)
    ),
    HookIterator("http 1", "`POST /samples` of one sample, one call after the other", client=("post", "1")),
    HookIterator("http 100", "the same, of 100 samples", client=("post", "100")),
    HookIterator(
        "spool 1", "`SpoolWriter.write` of one sample in another process, one after the other", client=("write", "1")
    ),
    HookIterator("spool 100", "the same, of 100 samples", client=("write", "100")),
    HookIterator("commands", "`PATCH /settings` of the learning rate, one after the other", client=("steer",)),
)


def order(number: int) -> list[HookIterator]:
    """Return the ways in the order of a round: two rounds there and back, the next two beginning with another one."""
    begin = number // 2 % len(WAYS)
    turned = [*WAYS[begin:], *WAYS[:begin]]
    return turned if number % 2 == 0 else turned[::-1]
