"""MRPC with three helpers over one encoder: RTE, STS-B, and the masked words of MRPC's own texts.

python examples/joint_mrpc.py FOLDER --seed 1            FOLDER holds mrpc/, rte/ and sts-b/ with train.tsv and dev.tsv
python examples/joint_mrpc.py FOLDER --seed 1 --alone    the same batches of MRPC and the same settings, without them

The last line is JSON: accuracy and F1 on mrpc/dev.tsv after the last pass, seconds, each task's share of the batches.
"""

from __future__ import annotations

import argparse
import json
from functools import partial
from pathlib import Path
from time import perf_counter

from onion import DataProvider, ForTask, GradientMachine, ParameterUpdater, Progress, Runner, TaskSampler, Tester
from onion.device import use_threads
from onion.multitask.task_data import TaskData, plan
from onion.tasks.data.features.cache import cached_features
from onion.tasks.finetune.fine_tune import Job
from onion.tasks.finetune.optimization import fine_tuning_optimizer
from onion.tasks.finetune.recipes import evaluation_onion
from onion.tasks.finetune.settings import Settings
from onion.tasks.networks.multi_head import MultiHead
from onion.tasks.registry import get_task

# name -> kind of task, the folder of its data, batches for each batch of MRPC
HELPERS = {"rte": ("classification", "rte", 0.5), "sts-b": ("regression", "sts-b", 0.5)}
HELPERS |= {"mlm": ("masked-lm", "mrpc", 0.25)}
SETTINGS = ("passes", "batch_size", "learning_rate", "warmup_ratio", "weight_decay", "max_grad_norm")
OPTIONS = {"max_length": 128}


def onion(job: Job, folder: Path, helpers: list[str]) -> Runner:
    """Compose the training of MRPC, which is the job's, and of helpers, with a test of MRPC after each pass."""
    own, pad_id, encoder = job.settings, job.tokenizer.pad_id, job.network.encoder
    usual = {"batch_size": own.batch_size, "shuffle": True, "seed": own.seed}
    tasks, examples = {"mrpc": job.task}, {"mrpc": job.train_set}
    for name in helpers:
        kind, path = HELPERS[name][0], folder / HELPERS[name][1] / "train.tsv"
        tasks[name] = get_task(kind, OPTIONS).fitted(path)
        examples[name] = cached_features(tasks[name], path, job.tokenizer)

    def data(name: str) -> DataProvider:
        collate = partial(tasks[name].collate, pad_id=pad_id)
        return DataProvider(examples[name], lengths=examples[name].lengths, collate=collate, **usual)

    mixed = {"mrpc": TaskData(data("mrpc"))}
    mixed |= {name: TaskData(data(name), HELPERS[name][2], target=False) for name in helpers}
    network = MultiHead(encoder, {"mrpc": job.network, **{name: tasks[name].network(encoder) for name in helpers}})
    schedule = own.learning_rate, sum(plan(mixed, "mrpc", own.passes).values()), own.warmup_ratio
    optimizer = fine_tuning_optimizer(network, *schedule, own.weight_decay, own.max_grad_norm)
    return Runner(
        Progress(),
        Tester(evaluation_onion(job.task, job.network, job.dev_set, job.task.metric(own.dev), pad_id), name="mrpc"),
        TaskSampler(mixed, seed=own.seed),
        *(ForTask(name, ring) for name in helpers for ring in tasks[name].train_items(job.tokenizer, own.seed)),
        ParameterUpdater(optimizer),
        GradientMachine(network),
    )


if __name__ == "__main__":
    begun = perf_counter()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("--encoder", default="minilm", help="a known name or a folder")
    given = parser.parse_args()
    use_threads()
    files = {name: str(given.folder / "mrpc" / f"{name}.tsv") for name in ("train", "dev")}
    settings = Settings(task="classification", **files, encoder=given.encoder, seed=given.seed, options=OPTIONS)
    print(runner := onion(Job.prepare(settings), given.folder, [] if given.alone else list(HELPERS)), flush=True)
    found = runner.run(passes=settings.passes).metrics
    report = {"example": "joint_mrpc", "variant": "alone" if given.alone else "joint", "seed": given.seed}
    report |= {"accuracy": found["mrpc.accuracy"], "f1": found["mrpc.f1"], "seconds": round(perf_counter() - begun, 1)}
    report |= {name: getattr(settings, name) for name in SETTINGS} | OPTIONS
    print(json.dumps(report | {"shares": {name: found[f"share.{name}"] for name in runner[TaskSampler].tasks}}))
