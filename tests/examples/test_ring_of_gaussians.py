"""The ring of Gaussians: its points, how well samples cover it, a picture of them."""

from xml.etree import ElementTree

import numpy as np
import pytest

from tests.examples.in_process import load

ring = load("ring_of_gaussians")


def test_figures_of_the_real_points_are_full_and_of_one_mode_are_not():
    real = ring.figures(ring.points(300))
    assert real["modes"] == 8
    assert real["good_share"] == pytest.approx(1 - np.exp(-4.5), abs=0.005)  # Rayleigh's, within 3 deviations
    assert real["smallest_share"] > 0.12
    assert ring.figures(ring.points(10)[:8]) == {"modes": 8, "good_share": 1.0, "smallest_share": 0.125}
    alone = ring.MODES[:1].repeat(100, axis=0)
    assert ring.figures(alone) == {"modes": 1, "good_share": 1.0, "smallest_share": 0.0}
    far = np.concatenate([alone, alone * 1.03 + [0, 0.001]])  # 0.06 away, and a little more
    assert ring.figures(far) == {"modes": 1, "good_share": 0.5, "smallest_share": 0.0}


def test_a_mode_is_covered_from_half_of_an_equal_share():
    samples = np.concatenate([ring.MODES[:1].repeat(15, axis=0), ring.MODES[1:2]])
    assert ring.figures(samples)["modes"] == 2
    assert ring.figures(np.concatenate([samples, ring.MODES[:1]]))["modes"] == 1


def test_points_are_of_every_mode_in_turn_and_the_same_for_a_seed():
    points = ring.points(50, seed=3)
    assert (points.shape, points.dtype) == ((400, 2), np.float32)
    assert np.abs(points.reshape(50, 8, 2).mean(axis=0) - ring.MODES).max() < 0.02
    assert points.std(axis=0) == pytest.approx([2**0.5] * 2, abs=0.01)
    assert np.array_equal(points, ring.points(50, seed=3))
    assert not np.array_equal(points, ring.points(50, seed=4))


def test_a_picture_has_a_dot_for_each_sample_and_up_is_up():
    root = ElementTree.fromstring(ring.picture(np.array([[0, 0], [0, 1], [-1, 0]])))
    assert root.find("{*}path").get("d") == "M500 500h0M500 300h0M300 500h0"
    circles = [(int(each.get("cx")), int(each.get("cy"))) for each in root.findall("{*}g/{*}circle")]
    assert circles[:3] == [(900, 500), (783, 217), (500, 100)]
    assert len(circles) == 8
    assert {each.get("r") for each in root.findall("{*}g/{*}circle")} == {"12"}
