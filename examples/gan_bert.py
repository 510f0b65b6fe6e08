"""GAN-BERT (Croce, Castellucci and Basili, ACL 2020): few labels, many texts, and a generator of fake sentences.

python examples/gan_bert.py FOLDER --seed 1            1 % of the labels of FOLDER/train.tsv, and other texts without
python examples/gan_bert.py FOLDER --seed 1 --plain    the same labels in the same batches; the GAN's rings left out
"""

from __future__ import annotations

import argparse
import json
from time import perf_counter
from typing import Any

import numpy as np

from onion import DataProvider, GradientMachine, OutputsToBatch, ParameterUpdater, Runner, StopGradient
from onion.device import use_threads
from onion.tasks.batches import batch_of
from onion.tasks.finetune.fine_tune import Job
from onion.tasks.finetune.optimization import fine_tuning_optimizer
from onion.tasks.finetune.recipes import evaluation_onion
from onion.tasks.finetune.settings import Settings
from onion.tasks.networks.gan_bert import Discriminator, FakeGenerator, Generator

SETTINGS: dict[str, Any] = {"labelled": 0.01, "times": 10, "batch_size": 32, "learning_rate": 1e-4}


def pairs(examples: Any, seed: int) -> list[Any]:
    """Draw examples that keep their labels. Pair each, as often as it is seen, with another one that does not."""
    order = np.random.default_rng(seed).permutation(len(examples)).tolist()
    count, times = int(SETTINGS["labelled"] * len(order)), SETTINGS["times"]
    drawn = [examples[place] for place in order[: count + count * times]]
    return list(zip(drawn[:count] * times, drawn[count:], strict=True))


def collate(drawn: list[Any]) -> dict[str, Any]:
    """Make a batch of pairs: first those with labels, then the others."""
    batch = batch_of([example for side in zip(*drawn, strict=True) for example in side])
    return batch | {"labels": batch["labels"][: len(drawn)]}


def onion(job: Job, discriminator: Discriminator, plain: bool) -> Runner:
    """Compose the training."""
    size, rate, seed = SETTINGS["batch_size"], SETTINGS["learning_rate"], job.settings.seed
    source = [pair[:1] if plain else pair for pair in pairs(job.train_set, seed)]
    generator, steps = Generator(discriminator.encoder.config.hidden_size), -(-len(source) // size)
    learn, forge = (ParameterUpdater(fine_tuning_optimizer(each, rate, steps)) for each in (discriminator, generator))
    fooling = GradientMachine(generator, discriminator.generator_loss)
    gan = Runner(
        DataProvider(source, size, shuffle=True, seed=seed, collate=collate),
        FakeGenerator(generator),
        Runner(learn, GradientMachine(discriminator), name="discriminating"),
        OutputsToBatch("judged"),
        Runner(StopGradient(discriminator), forge, fooling, name="forging"),
    )
    return gan.without(FakeGenerator, OutputsToBatch, "forging") if plain else gan


def main(arguments: list[str] | None = None) -> None:
    """Train, test on FOLDER/dev.tsv, print; the last line is JSON."""
    begun = perf_counter()
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folder", help="holds train.tsv and dev.tsv")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plain", action="store_true", help="without the GAN's rings")
    parser.add_argument("--encoder", default="minilm", help="a known name or a folder")
    given = parser.parse_args(arguments)
    use_threads()
    files = {name: f"{given.folder}/{name}.tsv" for name in ("train", "dev")}
    job = Job.prepare(Settings(task="classification", encoder=given.encoder, seed=given.seed, **files))
    discriminator = Discriminator(job.network.encoder, len(job.task.labels))
    print(runner := onion(job, discriminator, given.plain))
    runner.run(passes=1)
    tested = evaluation_onion(job.task, discriminator, job.dev_set, job.task.metric(job.settings.dev)).run(passes=1)
    told = {"variant": "plain" if given.plain else "gan", "seed": given.seed, "accuracy": tested.metrics["accuracy"]}
    print(json.dumps({"example": "gan_bert", **told, "seconds": round(perf_counter() - begun, 1), **SETTINGS}))


if __name__ == "__main__":
    main()
