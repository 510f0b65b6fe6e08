"""Write tests/models/golden/ARCHITECTURE/: small random encoders as the references save them, and what they compute.

Run where the reference is installed (none is a dependency of onion), once for each; ``make parity`` leaves such
environments behind, see scripts/reference_outputs/requirements-*.txt:

    python -m scripts.make_golden_encoders transformers
    python -m scripts.make_golden_encoders paddlenlp

A folder holds a sub-folder for each layout and ``expected.npz``, made by transformers, and by
PaddleNLP for ERNIE, in float32 on the CPU: a batch, the outputs, and the gradient of every parameter under our names
and in our layout (linear weights [in, out]). The gradients are those of the sum of all outputs times
``factor:OUTPUT``. The weights are the same in all layouts of an architecture. Static ERNIE has another epsilon, and an
``expected.npz`` of its own.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from scripts.reference_outputs.architectures import CASES, write

GOLDEN = Path(__file__).parent.parent / "tests" / "models" / "golden"
# Whose outputs are the expected ones.
AUTHORITY = {"bert": "transformers", "roberta": "transformers", "ernie": "paddlenlp"}
# Each layout once where one architecture is as good as another, so that the files stay small.
LAYOUTS = {
    "transformers": {
        "bert": ("huggingface", "huggingface-shards", "torch"),
        "roberta": ("huggingface", "torch"),
        "ernie_1": ("huggingface",),
        "ernie_3": ("huggingface",),
        "electra": ("huggingface", "torch"),
        "electra_equal": ("huggingface",),
        "xlnet": ("huggingface", "torch"),
        "xlnet_clamped": ("huggingface",),
    },
    "paddlenlp": {
        "bert": ("paddlenlp",),
        "roberta": ("paddlenlp",),
        "ernie_1": ("paddlenlp", "paddlenlp-nested", "static"),
        "ernie_2": ("paddlenlp", "static"),
        "ernie_3": ("paddlenlp", "paddlenlp-nested", "static"),
        "ernie_tiny": ("paddlenlp", "paddlenlp-nested"),
    },
}


def main(reference: str) -> None:
    """Write what one reference has to give."""
    by = importlib.import_module(f"scripts.reference_outputs.by_{reference}")
    for name, layouts in LAYOUTS[reference].items():
        if name in CASES:
            case = CASES[name]
            write(by, case, GOLDEN / name, layouts, expected=AUTHORITY[case.family] == reference)
        else:
            families = importlib.import_module("scripts.reference_outputs.families")
            write(families, families.CASES[name], GOLDEN / name, layouts)
        size = sum(path.stat().st_size for path in (GOLDEN / name).rglob("*") if path.is_file())
        print(f"{name}: {', '.join(layouts)}; {size} bytes in the folder by now")


if __name__ == "__main__":
    main(sys.argv[1])
