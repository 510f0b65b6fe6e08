"""In what ways the same batches are trained on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Way:
    """One way.

    Attributes:
        name: of it.
        text: for the page.
        served: whether the run has a Record and a Control with its service.
        client: what a client does meanwhile, as client.py has it; empty: there is none.
    """

    name: str
    text: str
    served: bool = True
    client: tuple[str, ...] = ()


OFF = Way("off", "no Record, no Control: what the others are held against", served=False)

WAYS = (
    OFF,
    Way("idle", "the service is there, and nobody calls"),
    Way("watched", "a client asks for `/status` once a second, and another one reads `/events`", client=("watch",)),
    Way("http 1", "`POST /samples` of one sample, one call after the other", client=("post", "1")),
    Way("http 100", "the same, of 100 samples", client=("post", "100")),
    Way("spool 1", "`SpoolWriter.write` of one sample in another process, one after the other", client=("write", "1")),
    Way("spool 100", "the same, of 100 samples", client=("write", "100")),
    Way("commands", "`PATCH /settings` of the learning rate, one after the other", client=("steer",)),
)


def order(number: int) -> list[Way]:
    """Return the ways in the order of a round: two rounds there and back, the next two beginning with another one."""
    begin = number // 2 % len(WAYS)
    turned = [*WAYS[begin:], *WAYS[:begin]]
    return turned if number % 2 == 0 else turned[::-1]
