"""The main job: learn which chapter of Python's library reference a docstring sentence belongs to, then label new ones.

python examples/main_job.py "Return the cosine of x." "Decode a base64 string."

Builds the data from this Python's own standard library, fine-tunes MiniLM on it, predicts the sentences of the command
line with the best checkpoint. The last line is JSON: dev accuracy, majority-class accuracy, seconds.
"""

from __future__ import annotations

import json
import sys
from datetime import datetime
from pathlib import Path
from time import perf_counter

import stdlib_topics

from onion.device import use_threads
from onion.tasks.finetune.fine_tune import train
from onion.tasks.finetune.inference import predict_texts
from onion.tasks.finetune.settings import Settings

PASSES = 2
TEST_EVERY = 150


def main(texts: list[str]) -> int:
    """Run the job; return the exit status."""
    begun = perf_counter()
    use_threads()
    out = Path("out") / f"main-{datetime.now():%Y%m%d-%H%M%S}"
    stdlib_topics.main(["--output", str(out / "data")])
    files = str(out / "data/train.tsv"), str(out / "data/dev.tsv")
    settings = Settings(task="classification", train=files[0], dev=files[1], passes=PASSES, test_every=TEST_EVERY)
    trained = train(settings, out)
    if trained.signal is not None:
        return 128 + trained.signal
    for predicted in predict_texts(out, texts) if texts else ():
        print(json.dumps(predicted, ensure_ascii=False))
    report = {
        "dev_accuracy": trained.report["dev.accuracy"],
        "majority_accuracy": trained.report["majority_accuracy"],
        "seconds": round(perf_counter() - begun, 1),
    }
    print(json.dumps(report))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
