"""What the engines on torch share: batches, network, optimizer."""

from __future__ import annotations

import torch

from benchmarks.loop.work import INPUTS, RATE, Example, Parameters, first_weight, note_call, taken

Batch = tuple[torch.Tensor, torch.Tensor]


def ready(examples: list[Example]) -> list[Batch]:
    """Return pairs of tensors."""
    return [(torch.from_numpy(x), torch.from_numpy(y)) for x, y in examples]


class Noted(torch.nn.Linear):
    """A Linear with a clock."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Note the call."""
        note_call()
        return super().forward(x)


def network() -> Noted:
    """Return a new Linear(8, 1), always the same."""
    linear = Noted(INPUTS, 1)
    with torch.no_grad():
        linear.weight.copy_(torch.from_numpy(first_weight().T))
        linear.bias.zero_()
    return linear


def sgd(linear: torch.nn.Module) -> torch.optim.SGD:
    """Return the optimizer."""
    return torch.optim.SGD(linear.parameters(), lr=RATE)


def parameters(linear: torch.nn.Linear) -> Parameters:
    """Return what was learned."""
    return taken(linear.weight.detach(), linear.bias.detach())
