"""Whether onion computes what transformers, PaddleNLP and sentence-transformers compute; ``make parity`` runs it.

Each reference is installed into an environment of its own (environments.py says where), at the versions in
scripts/reference_outputs/requirements-*.txt. It then runs small random models, MiniLM and tokenizers, onion runs the
same, and a table says how far the two are apart. Exit status 1 if any row differs by more than 1e-5.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from scripts.parity import encoders, fine_tuning, ids
from scripts.parity.common import TOLERANCE, Row, all_agree, rendered

NOTES = f"""
equal: no difference exceeds {TOLERANCE:g}; a parameter's gradient relative to its largest element where that exceeds 1
bert is RoBERTa-wwm (Chinese) too, which differs from it in nothing but its name
"""


def main() -> int:
    """Compare all there is; return the exit status."""
    rows: list[Row] = []
    for compare in (encoders.compare, encoders.compare_minilm, fine_tuning.compare, ids.compare):
        with tempfile.TemporaryDirectory() as folder:
            rows += compare(Path(folder))
    print(rendered(rows))
    print(NOTES)
    return 0 if all_agree(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
