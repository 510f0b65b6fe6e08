"""Lines of rows that were run when only the table was kept, not what each training gave.

They stand until the row is run again: ``make results ROWS=...``.
"""

from __future__ import annotations

MARK = "†"
NOTE = (
    f"{MARK} run 2026-11-20 to 2026-11-21 on 2 cores, Intel(R) Xeon(R) Processor (family 6, model 167), with the "
    "versions above; only these lines were kept of it."
)

LINES: dict[str, tuple[tuple[str, ...], ...]] = {
    "rte": (
        (
            "3 passes (234 steps), rate 5e-05, 128 tokens, 5 seeds",
            "accuracy",
            "55.7 ± 1.2",
            "56.6 ± 1.0",
            "-0.9",
            "311 / 456",
        ),
    ),
    "mrpc": (
        (
            "3 passes (345 steps), rate 5e-05, 128 tokens, 3 seeds",
            "accuracy",
            "79.3 ± 1.6",
            "77.1 ± 0.4",
            "+2.2",
            "535 / 1514",
        ),
        ("", "f1", "85.7 ± 1.2", "84.9 ± 0.3", "+0.8", ""),
    ),
    "cola": (
        (
            "3 passes (804 steps), rate 5e-05, 128 tokens, 3 seeds",
            "matthews",
            "26.1 ± 1.0",
            "26.2 ± 3.4",
            "-0.1",
            "328 / 375",
        ),
    ),
    "sts-b": (
        (
            "3 passes (540 steps), rate 5e-05, 128 tokens, 3 seeds",
            "pearson",
            "84.5 ± 0.4",
            "82.6 ± 0.9",
            "+1.8",
            "250 / 196",
        ),
        ("", "spearman", "84.9 ± 0.3", "84.4 ± 0.3", "+0.5", ""),
    ),
    "qnli": (
        (
            "3 passes (420 steps), rate 5e-05, 128 tokens, 3 seeds",
            "accuracy",
            "83.7 ± 0.2",
            "83.3 ± 0.1",
            "+0.4",
            "298 / 233",
        ),
    ),
    "sst-2": (
        ("1 pass (2105 steps), rate 5e-05, 128 tokens, 1 seed", "accuracy", "90.0", "89.6", "+0.5", "1494 / 1234"),
    ),
    "chnsenticorp": (
        ("3 passes (900 steps), rate 0.0003, 128 tokens, 1 seed", "accuracy", "87.9", "86.8", "+1.1", "396 / 337"),
    ),
    "lcqmc": (
        ("3 passes (1173 steps), rate 0.0003, 128 tokens, 1 seed", "accuracy", "64.6", "63.5", "+1.1", "201 / 135"),
    ),
    "tnews": (
        ("1 pass (1668 steps), rate 0.0003, 128 tokens, 1 seed", "accuracy", "48.9", "48.6", "+0.4", "214 / 155"),
    ),
}
"""Name of a row -> the cells of each of its lines behind the title."""
