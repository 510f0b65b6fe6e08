"""GAN-BERT over a tiny encoder: who moves when, and the same onion without the GAN's rings."""

import json

import pytest

from onion import GradientMachine, Observer
from onion.tasks.finetune.fine_tune import Job
from onion.tasks.finetune.settings import Settings
from onion.tasks.networks.gan_bert import Discriminator
from tests.examples.in_process import load, watch
from tests.tasks import helpers

SMALL = {"labelled": 0.125, "times": 2, "batch_size": 4, "learning_rate": 3e-3}


@pytest.fixture(scope="module")
def example():
    module = load("gan_bert")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "SETTINGS", SMALL)
        patch.setattr(module, "use_threads", lambda *count: 1)  # the other tests go on with as many as they had
        yield module


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """An encoder, and files of which 12 rows keep their labels: 6 batches of 4."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(helpers, "POSITIONS", 128)
        made = helpers.tiny_encoder(tmp_path_factory.mktemp("gan_bert"))
    helpers.write_tsv(made / "train.tsv", helpers.films(96, seed=1))
    helpers.write_tsv(made / "dev.tsv", helpers.films(40, seed=2))
    return made


@pytest.fixture(scope="module")
def prepared(folder):
    """Read the files."""

    def prepare(seed=1):
        files = {name: str(folder / f"{name}.tsv") for name in ("train", "dev")}
        return Job.prepare(Settings(task="classification", encoder=str(folder), seed=seed, **files))

    return prepare


@pytest.fixture(scope="module")
def begun(example, prepared):
    """Compose the training."""

    def begin(plain=False):
        job = prepared()
        return example.onion(job, Discriminator(job.network.encoder, len(job.task.labels)), plain)

    return begin


def networks(runner):
    return {type(machine.network).__name__: machine.network for machine in runner.all(GradientMachine)}


def test_each_network_moves_in_its_own_ring_alone(begun):
    moved, runner = [], begun()
    watched = networks(runner)
    runner = runner.insert_before("parameter_updater", watch("discriminating", watched, moved))
    runner.insert_before("stop_gradient", watch("forging", watched, moved)).run(passes=1)
    first = [("discriminating", [], []), ("forging", [], [])]  # the learning rate begins at 0
    rings = [("discriminating", ["Discriminator"], []), ("forging", ["Generator"], [])]
    assert [each[1:] for each in moved] == first + rings * 5


def test_pairs_are_of_labelled_rows_again_and_again_and_of_others_once(example, prepared):
    examples = prepared().train_set
    drawn = example.pairs(examples, 1)
    labelled, texts = ([each["place"] for each in side] for side in zip(*drawn, strict=True))
    assert len(labelled) == len(texts) == 24
    assert labelled[:12] == labelled[12:]
    assert len({*labelled}) == 12
    assert len({*texts}) == 24
    assert {*labelled}.isdisjoint(texts)
    assert [one["place"] for one, _ in example.pairs(examples, 1)] == labelled
    assert [one["place"] for one, _ in example.pairs(examples, 2)] != labelled


def test_a_batch_has_the_labels_of_its_first_half_alone(example, prepared):
    drawn = example.pairs(prepared().train_set, 1)[:3]
    mixed, alone = example.collate(drawn), example.collate([(one,) for one, _ in drawn])
    wanted = [each["ids"].tolist() for each in (*(one for one, _ in drawn), *(other for _, other in drawn))]
    rows = [row[:length] for row, length in zip(mixed["input_ids"].tolist(), mixed["lengths"], strict=True)]
    assert rows == wanted
    assert mixed["labels"].tolist() == alone["labels"].tolist() == [one["label"] for one, _ in drawn]
    assert len(alone["lengths"]) == 3


def test_the_plain_onion_lacks_the_rings_of_the_gan_and_sees_the_same_labels(begun):
    seen = {True: [], False: []}

    def labels_seen(plain):
        runner = begun(plain)
        names = [item.name for item in runner.walk()]
        note = Observer(on_batch_begin=lambda state: seen[plain].append(state.batch))
        runner.insert_before("discriminating", note).run(passes=1)
        return names, [(batch["input_ids"][:4, :3].tolist(), batch["labels"].tolist()) for batch in seen[plain]]

    plain, gan = labels_seen(True), labels_seen(False)
    assert plain[0] == ["data_provider", "discriminating", "parameter_updater", "gradient_machine"]
    assert plain[1] == gan[1]
    assert len(plain[1]) == 6
    assert "fakes" not in seen[True][0]
    assert seen[False][0]["fakes"].shape[0] == 8


@pytest.mark.parametrize("variant", ["gan", "plain"])
def test_the_example_tells_its_figures(example, folder, variant, capsys):
    plain = ["--plain"] if variant == "plain" else []
    example.main([str(folder), "--seed", "3", "--encoder", str(folder), *plain])
    drawn, told = capsys.readouterr().out.rstrip().rsplit("\n", 1)
    told = json.loads(told)
    assert ("stop_gradient" in drawn) == (variant == "gan")
    assert 0 < told.pop("accuracy") <= 1
    assert told.pop("seconds") >= 0
    assert told == {"example": "gan_bert", "variant": variant, "seed": 3, **SMALL}
