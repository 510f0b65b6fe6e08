"""The emulated process: every task trained, tested, saved, resumed, predicted with, embedded.

    python -m scripts.portable.journey FOLDER    (of scripts.portable.material.prepare)

Before each step it prints a line that names it. Where an instruction is met that the processor lacks, it dies there and
then, and standard error has the line of Python.
"""

from __future__ import annotations

import faulthandler
import io
import json
import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from onion import device
from onion.cli import main as onion
from onion.paths import shortened

CUT_STEP = 3
"""Where a training is interrupted, between two tests."""
TEST_PREFIX = "dev."
"""Of the figures that a test inside the training reports."""
ROWS, LENGTH = 6, 12
"""Of each file to test on; tokens of a text that is embedded."""

Step: TypeAlias = tuple[str, Callable[[], None]]


def journey(folder: Path) -> Iterator[Step]:
    """Yield the steps: what each does, and what does it."""
    yield "Paddle loaded", _load
    from onion.tasks.registry import TASKS

    for task in TASKS:
        config, run = folder / f"{task}.json", folder / task
        yield f"{task}: trained, tested, cut off", partial(_begin, config, run)
        yield f"{task}: resumed, tested, saved", partial(_go_on, config, run)
        yield f"{task}: evaluated", partial(_evaluate, config, run)
        yield f"{task}: predicted with", partial(_predict, config, run)
        yield f"{task}: its encoder embeds", partial(_embed_by, run)
    yield "onion embed", partial(_embed, folder)


def _load() -> None:
    paddle = device.paddle()
    paddle.disable_signal_handler()  # it would write the C++ stack, and hangs over that under the emulator
    faulthandler.enable()
    _check(not paddle.base.core.supports_avx512f(), "the emulated processor has AVX-512, so nothing would be shown")


def _begin(config: Path, run: Path) -> None:
    from onion.tasks.finetune.config_file import read_config, resolve
    from onion.tasks.finetune.fine_tune import prepare

    settings = resolve(read_config(config))
    state = prepare(settings).onion(run).run(passes=settings.passes, steps=CUT_STEP)
    _check(state.step == CUT_STEP, f"it was to be cut off at step {CUT_STEP} and ended at step {state.step}")
    _check(_tests(run) == [2], f"it was to be tested at step 2, and was at {_tests(run)}")


def _go_on(config: Path, run: Path) -> None:
    answers, log = _onion("train", "--config", config, "--output", run)
    resumed = f"resumed from step {CUT_STEP} in {shortened(run)}"
    _check(resumed in log, f"{resumed!r} was to be logged, and was not: {log}")
    expected = list(range(2, answers[-1]["step"] + 1, 2))
    _check(_tests(run) == expected, f"it was to be tested at {expected} in all, and was at {_tests(run)}")


def _evaluate(config: Path, run: Path) -> None:
    (figures,), _ = _onion("evaluate", "--run", run, "--input", _dev(config))
    told = {name: figures.get(name) for name in _best(run)}
    _check(told == _best(run), f"evaluate tells {told}, and the test inside the training told {_best(run)}")


def _predict(config: Path, run: Path) -> None:
    found, _ = _onion("predict", "--run", run, "--input", _dev(config))
    _check([each["index"] for each in found] == list(range(ROWS)), f"of {ROWS} rows it was predicted: {found}")


def _embed_by(run: Path) -> None:
    from onion.tasks.embedding.embedder import Embedder
    from onion.tasks.finetune.predictor import Predictor

    predictor = Predictor.load(run)
    embedder = Embedder(predictor.network.encoder, predictor.tokenizer, "mean", max_length=LENGTH)
    _check_vectors(embedder(["a lovely film", "it was dull and grim !"]), 2)


def _embed(folder: Path) -> None:
    out = folder / "vectors"
    words = ["--encoder", folder / "encoder", "--input", _dev(folder / "classification.json"), "--max-length", LENGTH]
    (report,), _ = _onion("embed", *words, "--tokens", "--output", out)
    _check_vectors(np.load(out / "cls_emb.npy"), ROWS)
    _check_vectors(np.load(out / "top_layer_emb.npy"), report["tokens"])


def _onion(*words: object) -> tuple[list[Any], list[str]]:
    with redirect_stdout(io.StringIO()) as printed, _heard() as logged:
        status = onion(list(map(str, words)))
    _check(status == 0, f"onion {' '.join(map(str, words))} ended with {status}")
    return [json.loads(line) for line in printed.getvalue().splitlines() if line.startswith("{")], logged


@contextmanager
def _heard() -> Iterator[list[str]]:
    messages: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: messages.append(record.getMessage())  # type: ignore[method-assign]
    log = logging.getLogger("onion")
    log.addHandler(handler)
    try:
        yield messages
    finally:
        log.removeHandler(handler)


def _dev(config: Path) -> str:
    return str(json.loads(config.read_text(encoding="utf-8"))["dev"])


def _tests(run: Path) -> list[int]:
    rows = map(json.loads, (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines())
    return [row["step"] for row in rows if any(name.startswith(TEST_PREFIX) for name in row)]


def _best(run: Path) -> dict[str, float]:
    """Return the figures that the test inside the training reported for the best checkpoint."""
    from onion.checkpointing.run_state import best_checkpoint

    metrics = best_checkpoint(run).run["metrics"]
    return {name.removeprefix(TEST_PREFIX): value for name, value in metrics.items() if name.startswith(TEST_PREFIX)}


def _check(holds: bool, complaint: str) -> None:
    if not holds:
        sys.exit(complaint)


def _check_vectors(vectors: np.ndarray, count: int) -> None:
    _check(len(vectors) == count, f"{len(vectors)} vectors of {count}")
    _check(bool(np.isfinite(vectors).all()), "a vector has numbers that are none")


def main() -> None:
    for name, act in journey(Path(sys.argv[1])):
        print(name, flush=True)
        act()


if __name__ == "__main__":
    main()
