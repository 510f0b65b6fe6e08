"""Train a step of every task with a BERT and an ERNIE, predict with them, and run the catalogue of onions.

It takes the paths of a GPU: what asks whether a tensor is on the CPU gets the answer no. kernels.py runs it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from unittest.mock import patch

from onion import GradientMachine, MixedPrecision, Runner, device
from onion.models import encoder as encoders
from onion.models import ops
from onion.models.config import EncoderConfig
from onion.models.encoder import Encoder
from onion.models.tokenizer import Tokenizer
from onion.tasks.finetune import optimization
from onion.tasks.finetune.fine_tune import fine_tune
from onion.tasks.finetune.predictor import Predictor, read_task
from onion.tasks.registry import TASKS
from tests.onions import ONIONS
from tests.onions.learning_online import LEARNING_ONLINE
from tests.onions.material import OPTIONS, encoder, files

# onion comes first, so that it can choose the math library that Paddle loads
# isort: split
import paddle

ERNIE = {
    "model_type": "ernie",
    "hidden_act": "relu",
    "type_vocab_size": 4,
    "task_type_vocab_size": 3,
    "use_task_id": True,
}
PREDICTED_ROWS = 3


@contextmanager
def on_the_paths_of_a_gpu() -> Iterator[None]:
    """Let every place where a GPU takes another path than the CPU take it."""
    with ExitStack() as patches:
        patches.enter_context(patch.object(ops, "on_cpu", lambda x: False))
        patches.enter_context(patch.object(encoders, "lean", lambda layers, embedded: None))
        patches.enter_context(patch.object(optimization, "_can_be_scaled", lambda gradients: False))
        patches.enter_context(patch.object(device, "_to_tensor", paddle.to_tensor))
        yield


def ernie(folder: Path) -> Path:
    """Write an ERNIE 3.0 of the size and with the words of the tests' BERT."""
    Encoder(EncoderConfig.read(encoder()).changed(**ERNIE)).save_pretrained(folder)
    (folder / "vocab.txt").write_bytes((encoder() / "vocab.txt").read_bytes())
    return folder


def one_task(name: str, start: Path, out: Path) -> None:
    train, dev = files(name)
    options = OPTIONS.get(name, {"max_length": 16})
    runner = fine_tune(
        name, train, dev, out, encoder=str(start), options=options, passes=1, batch_size=4, learning_rate=1e-3
    )
    runner.insert_before(GradientMachine, MixedPrecision("float16")).run(passes=1)
    task = read_task(out)
    predictor = Predictor(task, Runner(GradientMachine(Predictor.load(out).network)), Tokenizer.from_pretrained(out))
    found = list(predictor(islice(task.rows(dev, labelled=False), PREDICTED_ROWS)))
    assert found, f"{name} predicted nothing"


def main() -> None:
    with tempfile.TemporaryDirectory() as room, on_the_paths_of_a_gpu():
        for family, start in (("bert", encoder()), ("ernie", ernie(Path(room) / "ernie"))):
            for name in TASKS:
                print(f"{name} with {family}", flush=True)
                one_task(name, start, Path(room) / family / name)
        for name, kind in ONIONS.items():
            if name not in LEARNING_ONLINE:  # these differ from the others by where their samples come from
                print(name, flush=True)
                kind.make(Path(room) / "onions" / name.replace(" ", "-")).run(passes=kind.passes, steps=kind.steps)


if __name__ == "__main__":
    main()
