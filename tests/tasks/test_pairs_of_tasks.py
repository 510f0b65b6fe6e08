"""Tasks that work alone work together: every pair of them is trained jointly for a few batches."""

from collections import Counter
from functools import partial
from itertools import combinations_with_replacement

import numpy as np
import paddle
import pytest

from onion import DataProvider, ForTask, GradientMachine, ParameterUpdater, Runner, TaskData, TaskSampler
from onion.models.encoder import Encoder
from onion.multitask.strategies import RoundRobin
from onion.tasks.data.features.examples import Examples
from onion.tasks.networks.multi_head import MultiHead
from onion.tasks.registry import TASKS, get_task
from tests.tasks.helpers import films, write_tsv
from tests.tasks.squad_files import TINY, squad
from tests.tasks.tagged import tagged
from tests.toys import bits

SETTINGS = {"question-answering": TINY}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A small training file of each task."""
    folder = tmp_path_factory.mktemp("pairs")
    texts = films(12, seed=1)
    paths = {name: folder / f"{name}.{'json' if name == 'question-answering' else 'tsv'}" for name in TASKS}
    write_tsv(paths["classification"], texts)
    write_tsv(paths["regression"], [(text, str(len(text) / 9)) for text, _ in texts])
    judged = [(text, "a good film", str(int(label == "good"))) for text, label in texts]
    write_tsv(paths["matching"], judged, ("text_a", "text_b", "label"))
    several = [(text, label if place % 3 else "good,bad") for place, (text, label) in enumerate(texts)]
    write_tsv(paths["multilabel"], several)
    write_tsv(paths["masked-lm"], [(text,) for text, _ in texts], ("text_a",))
    write_tsv(paths["token-classification"], tagged(12, seed=2))
    squad(paths["question-answering"], *[(text, "was it", [(text.split()[0], 0)]) for text, _ in texts])
    return paths


@pytest.fixture(scope="module")
def prepared(files, tokenizer):
    """Of each task: itself, fitted, and its examples."""

    def prepare(name):
        task = get_task(name, SETTINGS.get(name, {"max_length": 16})).fitted(files[name])
        rows = list(task.rows(files[name], labelled=True))
        return task, Examples.of(task.features(rows, tokenizer, True, Counter()))

    return {name: prepare(name) for name in TASKS}


def joint(tasks, tokenizer, encoder_folder):
    """Networks of tasks over one encoder, a sampler over their data, and the runner."""
    paddle.seed(7)
    encoder = Encoder.from_pretrained(encoder_folder)
    network = MultiHead(encoder, {name: task.network(encoder) for name, (task, _) in tasks.items()})
    optimizer = paddle.optimizer.AdamW(1e-3, parameters=network.parameters())
    mixed = {
        name: TaskData(DataProvider(examples, 4, collate=partial(task.collate, pad_id=tokenizer.pad_id)))
        for name, (task, examples) in tasks.items()
    }
    rings = [ForTask(name, ring) for name, (task, _) in tasks.items() for ring in task.train_items(tokenizer, seed=0)]
    sampler = TaskSampler(mixed, RoundRobin())
    return network, sampler, Runner(sampler, *rings, ParameterUpdater(optimizer), GradientMachine(network))


@pytest.mark.parametrize("pair", list(combinations_with_replacement(TASKS, 2)), ids="+".join)
def test_every_pair_of_tasks_learns_together(pair, prepared, tokenizer, encoder_folder):
    names = dict(zip(("one", "two"), pair, strict=True))
    network, sampler, runner = joint({name: prepared[kind] for name, kind in names.items()}, tokenizer, encoder_folder)
    before = bits(network)

    assert runner.run(steps=6).step == 6

    told = sampler.log_values()
    assert told["share.one"] == told["share.two"] == 0.5
    assert np.isfinite([told["loss.one"], told["loss.two"]]).all()
    moved = {name for name, value in bits(network).items() if value != before[name]}
    for part in ("encoder.", "networks.one.", "networks.two."):
        assert any(name.startswith(part) for name in moved), part


def test_all_tasks_at_once(prepared, tokenizer, encoder_folder):
    _, sampler, runner = joint(prepared, tokenizer, encoder_folder)
    assert runner.run(steps=2 * len(TASKS)).step == 14
    assert all(np.isfinite(sampler.log_values()[f"loss.{name}"]) for name in TASKS)
