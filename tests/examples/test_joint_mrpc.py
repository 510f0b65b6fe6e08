"""MRPC with helpers over one encoder, on small data and a tiny encoder."""

import json
import subprocess
import sys

import numpy as np
import pytest

from onion import GradientMachine, Observer, ParameterUpdater, RunnerItem
from onion.tasks.finetune.fine_tune import Job, fine_tune
from onion.tasks.finetune.settings import Settings
from tests.examples.in_process import EXAMPLES, load
from tests.tasks import helpers
from tests.tasks.helpers import films, write_tsv
from tests.toys import bits

SCRIPT = EXAMPLES / "joint_mrpc.py"
joint_mrpc = load("joint_mrpc")

HELPERS = ["rte", "sts-b", "mlm"]
PAIRS = ("text_a", "text_b", "label")


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    """A tiny one with positions for texts of the example's length."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(helpers, "POSITIONS", joint_mrpc.OPTIONS["max_length"])
        return str(helpers.tiny_encoder(tmp_path_factory.mktemp("encoder")))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Pairs of films: whether both are as good, in words and in numbers; eight batches of MRPC."""
    folder = tmp_path_factory.mktemp("glue")
    for name, labels in {"mrpc": ("0", "1"), "rte": ("not_entailment", "entailment"), "sts-b": ("0.5", "4.5")}.items():
        (folder / name).mkdir()
        for file, count, seed in (("train.tsv", 32, 1), ("dev.tsv", 8, 2)):
            pairs = zip(films(count, seed), films(count, seed + 10), strict=True)
            rows = [(one, other, labels[first == second]) for (one, first), (other, second) in pairs]
            write_tsv(folder / name / file, rows, PAIRS)
    return folder


def job(folder, encoder):
    files = {name: str(folder / "mrpc" / f"{name}.tsv") for name in ("train", "dev")}
    return Job.prepare(Settings(task="classification", **files, **usual(encoder)))


def usual(encoder):
    return {"encoder": encoder, "passes": 2, "batch_size": 4, "options": joint_mrpc.OPTIONS}


class Tasks(RunnerItem):
    """Write down the task of every batch."""

    def __init__(self):
        self.seen, self.batches = [], {}

    def on_batch(self, state):
        self.seen.append(state.task)
        self.batches.setdefault(state.task, []).append(sorted(state.batch["places"]))


def test_alone_it_is_the_fine_tuning_of_onion_train_to_the_bit(folder, encoder, tmp_path):
    """So a figure without helpers is that of ``onion train`` with its usual settings."""
    alone = joint_mrpc.onion(job(folder, encoder), folder, [])
    state = alone.run(passes=2)
    files = folder / "mrpc" / "train.tsv", folder / "mrpc" / "dev.tsv"
    plain = fine_tune("classification", *files, tmp_path, test_every=16, **usual(encoder))
    expected = plain.run(passes=2)
    trained = alone[GradientMachine].network.networks["mrpc"]
    assert bits(trained) == bits(plain[GradientMachine].network)
    assert state.step == expected.step == 16
    assert state.metrics["mrpc.accuracy"] == expected.metrics["dev.accuracy"]
    assert state.metrics["share.mrpc"] == 1


def test_with_helpers_mrpc_has_the_same_beginning_and_batches_and_all_heads_learn(folder, encoder):
    seen, heads = {}, {}
    for names in ([], HELPERS):
        tasks = Tasks()
        runner = joint_mrpc.onion(job(folder, encoder), folder, names).insert_before(ParameterUpdater, tasks)
        before = bits(runner[GradientMachine].network)
        heads[bool(names)] = bits(runner[GradientMachine].network.networks["mrpc"])
        runner.run(passes=2)
        after = bits(runner[GradientMachine].network)
        still = {name for name, value in after.items() if value == before[name]}
        assert not [name for name in still if not name.endswith("position_embeddings.weight")]
        seen[bool(names)] = tasks
    assert seen[True].batches["mrpc"] == seen[False].batches["mrpc"]
    assert heads[True] == heads[False]
    counts = {name: seen[True].seen.count(name) for name in ("mrpc", *HELPERS)}
    assert counts["mrpc"] == 16
    assert all(counts.values())
    assert sum(counts.values()) < 48


def test_the_rate_is_planned_for_the_batches_of_all_tasks(folder, encoder):
    """Two passes of eight batches, and 8 + 8 + 4 of the helpers: the top after a tenth of 36, rounded."""
    rates = []
    note = Observer(on_batch_begin=lambda state: rates.append(state.runner[ParameterUpdater].optimizer.get_lr()))
    runner = joint_mrpc.onion(job(folder, encoder), folder, HELPERS).insert_before(ParameterUpdater, note)
    runner.run(passes=2)
    assert np.argmax(rates) == 4
    assert max(rates) == pytest.approx(5e-5)
    assert rates[20] == pytest.approx(5e-5 * 16 / 32)


@pytest.mark.parametrize("variant", ["joint", "alone"])
def test_it_runs_as_its_docstring_says(folder, encoder, variant):
    command = [sys.executable, "-W", "ignore", SCRIPT, folder, "--seed", "2", "--encoder", encoder]
    alone = ["--alone"] if variant == "alone" else []
    done = subprocess.run([*command, *alone], capture_output=True, text=True, check=True, cwd=SCRIPT.parents[1])
    report = json.loads(done.stdout.splitlines()[-1])
    wanted = {"example": "joint_mrpc", "variant": variant, "seed": 2, "passes": 3, "max_length": 128}
    assert wanted.items() <= report.items()
    assert 0 <= report["accuracy"] <= 1
    assert 0 <= report["f1"] <= 1
    assert report["seconds"] >= 0
    assert report["shares"].keys() == ({"mrpc"} if variant == "alone" else {"mrpc", *HELPERS})
    assert sum(report["shares"].values()) == pytest.approx(1)
