"""The GAN of the ring of Gaussians: who moves when, resumption to the bit, what it draws and tells."""

import importlib
import json
import runpy
import sys
from xml.etree import ElementTree

import paddle
import pytest

from onion import CompositionError, Observer, Saver, StopGradient
from tests.abilities import needs_draws_again
from tests.paths import ROOT

EXAMPLES = ROOT / "examples"


@pytest.fixture(scope="module")
def example():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(EXAMPLES))
        yield importlib.import_module("gan_gaussians")


def begun(example, folder, seed=1, steps=12):
    paddle.seed(seed)
    generator, discriminator = example.Generator(2), example.Network(1)
    return generator, discriminator, example.onion(folder, generator, discriminator, steps)


def bits(network):
    return [parameter.numpy().tobytes() for parameter in network.parameters()]


def saving(runner, every):
    """Return the onion with checkpoints that often."""
    return runner.replace(Saver, Saver(runner[Saver].folder, every=every))


def test_each_network_moves_in_its_own_steps_alone(example, tmp_path):
    generator, discriminator, runner = begun(example, tmp_path)
    networks, before, moved = {"g": generator, "d": discriminator}, {}, []

    def note(ring):
        def begin(state):
            before.update({name: bits(network) for name, network in networks.items()})

        def end(state):
            changed = "".join(name for name, network in networks.items() if bits(network) != before[name])
            left = any(parameter.grad is not None for parameter in discriminator.parameters())
            moved.append((state.next_step, ring, changed, left))

        return Observer(on_batch_begin=begin, on_batch_end=end)

    learn, every = runner.items[2:]
    forge = every.items[0]
    watched = type(runner)(
        *runner.items[:2],
        type(runner)(note("discriminating"), *learn.items),
        type(every)(every.n, type(runner)(note("forging"), *forge.items)),
    )
    watched.run(steps=4)
    assert moved == [
        (1, "discriminating", "d", False),
        (2, "discriminating", "d", False),
        (2, "forging", "g", False),
        (3, "discriminating", "d", False),
        (4, "discriminating", "d", False),
        (4, "forging", "g", False),
    ]


@needs_draws_again
@pytest.mark.parametrize("cut", [1, 2, 3, 5])
def test_a_run_that_was_cut_comes_to_the_same_bits(example, tmp_path, cut):
    *networks, runner = begun(example, tmp_path / "whole")
    saving(runner, 1).run(steps=6)
    saving(begun(example, tmp_path / "cut")[2], 1).run(steps=cut)
    *others, again = begun(example, tmp_path / "cut", seed=9)
    saving(again, 1).run(steps=6)
    assert [bits(each) for each in networks] == [bits(each) for each in others]


def test_the_generator_cannot_stand_inside_the_frozen_of_itself(example, tmp_path):
    generator, _, runner = begun(example, tmp_path)
    forge = runner.items[3].items[0]
    with pytest.raises(CompositionError, match=r"is inside stop_gradient, which keeps gradients from all"):
        type(runner)(StopGradient(generator), *forge.items[1:])


def test_the_example_draws_tells_and_goes_on_where_it_was(example, tmp_path, capsys):
    example.main(tmp_path, steps=6)
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert told.keys() == {"example", "steps", "modes", "good_share", "smallest_share"}
    drawn = (tmp_path / "points.svg").read_bytes()
    root = ElementTree.fromstring(drawn)
    dots = root.find("{*}path").get("d")
    assert dots.count("M") == 2500
    assert len(root.findall("{*}g/{*}circle")) == 8
    assert len(drawn) < 100_000
    again = EXAMPLES / "gan_gaussians.py"
    assert len(again.read_text(encoding="utf-8").splitlines()) <= 80
    example.main(tmp_path, steps=6)
    assert json.loads(capsys.readouterr().out.splitlines()[-1]) == told
    assert (tmp_path / "points.svg").read_bytes() == drawn


def test_without_a_folder_it_says_what_it_wants(example, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["gan_gaussians.py"])
    with pytest.raises(SystemExit, match=r"gan_gaussians.py OUT"):
        runpy.run_path(str(EXAMPLES / "gan_gaussians.py"), run_name="__main__")


def test_the_picture_in_the_docs_is_one_of_this_example():
    root = ElementTree.fromstring((EXAMPLES.parent / "docs" / "gan_gaussians.svg").read_bytes())
    assert root.find("{*}path").get("d").count("M") == 2500
