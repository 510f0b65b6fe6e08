"""All of a prediction but the network works where Paddle is not installed, in a process that cannot import it."""

import json

import pytest

from onion.models.tokenizer import Tokenizer
from onion.tasks.registry import TASKS, recorded_task
from tests.fresh_python import python
from tests.onions.material import files
from tests.tasks.squad_files import TINY

NO_PADDLE = """
import sys

class NoPaddle:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "paddle":
            raise ModuleNotFoundError("No module named 'paddle'", name="paddle")

sys.meta_path.insert(0, NoPaddle())
"""

MODULES = [
    *(f"onion.tasks.{name}" for name in ("registry", "task", "collector", "reference", "decoding", "batches")),
    *(f"onion.tasks.data.{name}" for name in ("rows", "texts", "prepared", "carried", "labels", "dev_split")),
    *(f"onion.tasks.data.features.{name}" for name in ("cache", "examples", "stream", "text_checks")),
    *(f"onion.tasks.finetune.{name}" for name in ("predictor", "recipes", "inference", "run_folder", "run_files")),
    *(f"onion.tasks.reports.{name}" for name in ("report", "one_label", "several_labels", "chunks", "numbers")),
    *(f"onion.tasks.metrics.{name}" for name in ("classification", "chunk_f1", "correlation", "ranking", "perplexity")),
    *(f"onion.tasks.embedding.{name}" for name in ("files", "npy")),
    *(f"onion.models.{name}" for name in ("tokenizer", "families", "hub", "weights")),
]

PREDICT = """
import json
from collections import Counter
from types import SimpleNamespace

import numpy as np

from onion import Runner, RunnerItem
from onion.models.tokenizer import Tokenizer
from onion.tasks.collector import Collector, Decoder
from onion.tasks.data.features.examples import Examples
from onion.tasks.finetune.recipes import in_order
from onion.tasks.registry import get_task

class Drawn(RunnerItem):
    "In the place of a network: outputs of its shape, at random."

    def __init__(self, task, words):
        self.task, self.words, self.chance = task, words, np.random.default_rng(1)

    def on_batch(self, state):
        state.outputs = self.chance.normal(size=self.shape(state.batch)).astype(np.float32)

    def shape(self, batch):
        rows, length = batch["input_ids"].shape
        return {
            "classification": lambda: (rows, len(self.task.labels)),
            "regression": lambda: (rows, 1),
            "matching": lambda: (rows, 2),
            "multilabel": lambda: (rows, len(self.task.labels)),
            "masked-lm": lambda: (len(batch["masked_positions"]), self.words),
            "token-classification": lambda: (sum(batch["words"]), len(self.task.labels)),
            "question-answering": lambda: (rows, length, 2),
        }[self.task.name]()

def predicted(task, path, tokenizer):
    rows = list(task.rows(path, labelled=False))
    examples = Examples.of(task.features(rows, tokenizer, False, Counter()))
    tags = len(getattr(task, "labels", ()))
    chain = {"crf.transitions": (tags, tags), "crf.start": tags, "crf.end": tags}
    decode = task.decoding({name: np.zeros(shape, np.float32) for name, shape in chain.items()})
    collector, decoder = Collector(len(examples)), Decoder(SimpleNamespace(decode=decode))
    drawn = Drawn(task, tokenizer.vocab_size)
    data = in_order(task, examples, tokenizer.pad_id)
    Runner(data, collector, *task.predict_items(tokenizer), decoder, drawn).run(passes=1)
    return list(task.predictions(rows, examples, collector.found))

tokenizer = Tokenizer.from_pretrained(FOLDER)
made = []
for name, options, path in CASES:
    task = get_task(name, options).fitted(path)
    made.append([task.record(), predicted(task, path, tokenizer)])
assert not [name for name in sys.modules if name.partition(".")[0] == "paddle"]
print(json.dumps(made))
"""

READ = """
from pathlib import Path
from onion.errors import OnionError
from onion.models.families import read_config
from onion.models.tokenizer import Tokenizer
from onion.tasks.finetune.predictor import Predictor, read_task
from onion.tasks.finetune.run_folder import find_run, read_drawing, read_record

folder = find_run(FOLDER)
task = read_task(folder)
record = read_record(folder)
assert read_drawing(folder).startswith("Runner")
config, tokenizer = read_config(folder / "config.json"), Tokenizer.from_pretrained(folder)
print(task.name, record["task"], config.model_type, tokenizer.pad_id)
try:
    Predictor.load(folder, engine="paddle")
except OnionError as error:
    print(error)
"""


def run(code, **values):
    named = "".join(f"{name} = {value!r}\n" for name, value in values.items())
    return python(f"{NO_PADDLE}{named}{code}")[0].splitlines()


def test_modules_are_imported():
    code = "import importlib\nfor name in MODULES:\n    importlib.import_module(name)\nprint('all')"
    assert run(code, MODULES=MODULES) == ["all"]
    with pytest.raises(AssertionError, match="No module named 'paddle'"):
        run("import onion.tasks.networks.heads")


def test_every_task_predicts_from_the_outputs(encoder_folder):
    options = {"question-answering": {**TINY, "with_negative": True}}
    cases = [(name, options.get(name, {"max_length": 16}), str(files(name)[0])) for name in TASKS]
    joint = ("token-classification", {"max_length": 16, "decoder": "crf"}, str(files("token-classification")[0]))
    texts = encoder_folder.parent / "masks.tsv"
    texts.write_text("text_a\na [MASK] film\nthe plot\n[MASK] [MASK]\n")
    masks = ("masked-lm", {"max_length": 16, "guesses": 2}, str(texts))
    (line,) = run(PREDICT, FOLDER=str(encoder_folder), CASES=[*cases, joint, masks])
    made = json.loads(line)
    assert [record["task"] for record, _ in made] == [*TASKS, joint[0], masks[0]]
    for (record, predicted), (_, _, path) in zip(made, [*cases, joint, masks], strict=True):
        task = recorded_task(record, "the other process")
        assert len(predicted) == len(list(task.rows(path, labelled=False)))
    classes, numbers, matches, labels, _, tags, answers, *_ = ([*each[0]] for _, each in made)
    assert (classes, numbers) == (["label", "probabilities"], ["value"])
    assert (matches, labels) == (["score", "label"], ["labels", "probabilities"])
    assert tags == ["tokens", "tags", "probabilities", "spans"]
    assert answers == ["id", "answer", "begin", "end", "nbest", "null_odds"]
    assert [len(row["masks"]) for row in made[-1][1]] == [1, 0, 2]
    assert all(len(mask["words"]) == 2 for row in made[-1][1] for mask in row["masks"])


def test_a_run_is_read_and_its_own_network_asks_for_paddle(trained):
    folder, _ = trained
    pad_id = Tokenizer.from_pretrained(folder).pad_id
    read, told = run(READ, FOLDER=str(folder))
    assert read == f"classification classification bert {pad_id}"
    assert told == "PaddlePaddle is not installed: pip install 'onion-paddle[cpu]' (or [gpu]; never both)."
