"""Write tests/tasks/golden/minilm_mean.npz: sentence-transformers' mean-pooled vectors of a few texts by ``minilm``.

Run where sentence-transformers is installed (not a dependency of onion; ``make parity``, which compares live, leaves
such an environment behind); the file was made with its version 6.2.0, transformers 5.23.0 and torch 2.13.0 on the CPU
in float32. It holds the vectors before and after the last module, which normalises:

    python -m scripts.make_golden_embeddings ~/.cache/onion/minilm
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from scripts.reference_outputs.texts import mean_vectors

GOLDEN = Path(__file__).parent.parent / "tests" / "tasks" / "golden" / "minilm_mean.npz"
TEXTS = [
    "A deep, moving film.",
    "no",
    "",
    "Ünïcödé, 中文 and e-mail@example.com: 12,345.67!",
    "It rains. The streets are wet, and nobody has brought an umbrella.",
    "Return the cosine of x in radians. " * 8,
]


def main(folder: str) -> None:
    """Run the reference once and write its inputs and outputs."""
    found = mean_vectors(folder, TEXTS)
    np.savez_compressed(GOLDEN, texts=np.array(TEXTS), **found)
    print(f"{GOLDEN}: {GOLDEN.stat().st_size} bytes, by {found['maker']}")


if __name__ == "__main__":
    main(sys.argv[1])
