"""GAN-BERT over a tiny encoder: who moves when, resumption to the bit, and the same onion without the GAN's rings."""

import importlib
import json

import pytest

from onion import CompositionError, GradientMachine, Observer, Runner, Saver
from onion.tasks.finetune.fine_tune import Job
from onion.tasks.finetune.settings import Settings
from onion.tasks.networks.gan_bert import Discriminator
from tests.abilities import needs_draws_again
from tests.paths import ROOT
from tests.tasks import helpers

EXAMPLES = ROOT / "examples"
SMALL = {"labelled": 0.125, "times": 2, "batch_size": 4, "learning_rate": 3e-3}


@pytest.fixture(scope="module")
def example():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(EXAMPLES))
        module = importlib.import_module("gan_bert")
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


def bits(network):
    return {path: parameter.numpy().tobytes() for path, parameter in network.named_parameters()}


def networks(runner):
    return {type(machine.network).__name__: machine.network for machine in runner.all(GradientMachine)}


def watched(runner, moved):
    """Return the onion with notes of which network each of the two inner runners moved, and what gradients it left."""
    before = {}

    def note(ring):
        def begin(state):
            before.update({name: bits(network) for name, network in networks(runner).items()})

        def end(state):
            changed = [name for name, network in networks(runner).items() if bits(network) != before[name]]
            left = [name for name, one in networks(runner).items() if any(p.grad is not None for p in one.parameters())]
            moved.append((ring, changed, left))

        return Observer(on_batch_begin=begin, on_batch_end=end)

    return runner.insert_before("parameter_updater", note("discriminating")).insert_before(
        "stop_gradient", note("forging")
    )


def test_each_network_moves_in_its_own_ring_alone(begun):
    moved = []
    watched(begun(), moved).run(passes=1)
    first = [("discriminating", [], []), ("forging", [], [])]  # the learning rate begins at 0
    assert moved == first + [("discriminating", ["Discriminator"], []), ("forging", ["Generator"], [])] * 5


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


@needs_draws_again
@pytest.mark.parametrize("cut", [2, 5])
def test_a_run_that_was_cut_in_mid_pass_comes_to_the_same_bits(begun, tmp_path, cut):
    def saved(runner, name):
        return Runner(Saver(tmp_path / name, every=100), *runner.items)

    whole = saved(begun(), "whole")
    whole.run(passes=1)
    saved(begun(), "cut").run(passes=1, steps=cut)
    resumed = saved(begun(), "cut")
    for network in networks(resumed).values():
        for parameter in network.parameters():
            parameter.set_value(parameter * 0)
    state = resumed.run(passes=1)
    assert state.step > cut
    for name, network in networks(whole).items():
        assert bits(networks(resumed)[name]) == bits(network)


def test_an_updater_of_the_discriminator_inside_frozen_is_refused(begun):
    runner = begun()
    updater = runner["parameter_updater"]
    with pytest.raises(CompositionError, match=r"is inside stop_gradient, which keeps gradients from all"):
        runner.without("discriminating").replace("parameter_updater-2", updater)


@pytest.mark.parametrize("variant", ["gan", "plain"])
def test_the_example_tells_its_figures(example, folder, variant, capsys):
    plain = ["--plain"] if variant == "plain" else []
    example.main([str(folder), "--seed", "3", "--encoder", str(folder), *plain])
    drawn, told = capsys.readouterr().out.rstrip().rsplit("\n", 1)
    told = json.loads(told)
    assert ("stop_gradient" in drawn) == (variant == "gan")
    assert 0 < told.pop("accuracy") <= 1
    assert told.pop("seconds") > 0
    assert told == {"example": "gan_bert", "variant": variant, "seed": 3, **SMALL}


def test_it_has_at_most_80_lines():
    assert len((EXAMPLES / "gan_bert.py").read_text(encoding="utf-8").splitlines()) <= 80
