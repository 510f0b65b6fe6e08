"""The GAN of the ring of Gaussians: who moves when, what it draws and tells."""

import json
import runpy
import sys
from xml.etree import ElementTree

import paddle
import pytest

from tests.examples.in_process import EXAMPLES, load, watch


@pytest.fixture(scope="module")
def example():
    return load("gan_gaussians")


def begun(example, folder, seed=1, steps=12):
    paddle.seed(seed)
    generator, discriminator = example.Generator(2), example.Network(1)
    return generator, discriminator, example.onion(folder, generator, discriminator, steps)


def test_each_network_moves_in_its_own_steps_alone(example, tmp_path):
    generator, discriminator, runner = begun(example, tmp_path)
    networks, moved = {"g": generator, "d": discriminator}, []
    learn, every = runner.items[2:]
    forge = every.items[0]
    watched = type(runner)(
        *runner.items[:2],
        type(runner)(watch("discriminating", networks, moved), *learn.items),
        type(every)(every.n, type(runner)(watch("forging", networks, moved), *forge.items)),
    )
    watched.run(steps=4)
    learning, forging = ("discriminating", ["d"], []), ("forging", ["g"], [])
    assert moved == [(1, *learning), (2, *learning), (2, *forging), (3, *learning), (4, *learning), (4, *forging)]


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
