"""The head that a job's model begins with: ``python -m benchmarks.results.hugging_face.head JOB.json`` writes it.

A .npz file where the job says (``head_file``): ``weight``, float32 ``[hidden, outputs]``, as onion's layers have it,
and ``bias``, float32 ``[outputs]``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
from torch import nn
from transformers import PreTrainedModel

from benchmarks.results.hugging_face.tasks import prepared_of


def head_of(model: PreTrainedModel) -> nn.Linear:
    """Return the one linear layer beside the encoder."""
    [head] = [layer for layer in model.children() if isinstance(layer, nn.Linear)]
    return head


def main(path: str) -> None:
    """Write the head of a job."""
    job = json.loads(Path(path).read_text(encoding="utf-8"))
    head = head_of(prepared_of(job)[0].model)
    np.savez(job["head_file"], weight=head.weight.detach().numpy().T, bias=head.bias.detach().numpy())


if __name__ == "__main__":
    main(sys.argv[1])
