"""The random generators go through JSON text and draw on as if nothing had happened."""

import json
import random
import subprocess
import sys
from contextlib import suppress

import numpy as np
import paddle
import pytest

from onion.checkpointing import rng
from tests.abilities import needs_draws_again


def draw():
    return (
        [random.random(), random.gauss(0, 1), random.randrange(10**30)],
        np.random.normal(size=3).tobytes(),
        np.random.randint(0, 2**31, 5).tobytes(),
        paddle.rand([5]).numpy().tobytes(),
        paddle.nn.functional.dropout(paddle.ones([50]), 0.5).numpy().tobytes(),
        paddle.randperm(20).numpy().tobytes(),
    )


def seed(number):
    random.seed(number)
    np.random.seed(number)
    paddle.seed(number)


def through_text(states):
    return json.loads(json.dumps(states))


@needs_draws_again
@pytest.mark.parametrize("drawn_before", [0, 1, 2, 7])
def test_every_generator_draws_on_to_the_bit_after_a_way_through_json(drawn_before):
    seed(3)
    for _ in range(drawn_before):
        draw()
    states = through_text(rng.capture())
    expected = [draw() for _ in range(3)]
    seed(4)
    for _ in range(2):
        draw()
        rng.restore(states)
        assert through_text(rng.capture()) == states
        assert [draw() for _ in range(3)] == expected


def test_what_is_seeded_by_name_has_numbers_of_its_own_and_moves_no_others():
    def drawn(number, name):
        with rng.seeded(number, name):
            return draw()

    seed(3)
    expected = draw()
    seed(3)
    first = drawn(1, "mask")
    assert draw() == expected
    assert drawn(1, "mask") == first
    for other in (drawn(2, "mask"), drawn(1, "capital")):
        assert all(one != two for one, two in zip(first, other, strict=True))
    seed(3)
    with suppress(ZeroDivisionError), rng.seeded(1, "mask"):
        raise ZeroDivisionError
    assert draw() == expected


def test_half_used_pairs_of_normal_numbers_are_kept():
    seed(3)
    random.gauss(0, 1)
    np.random.normal()
    states = through_text(rng.capture())
    expected = random.gauss(0, 1), np.random.normal()
    seed(4)
    rng.restore(states)
    assert (random.gauss(0, 1), np.random.normal()) == expected


@needs_draws_again
def test_draws_are_undone_and_told_by_generator():
    seed(3)
    before = rng.capture()
    expected = [draw() for _ in range(2)]
    assert rng.undo_draws(before) == ["python", "numpy", "paddle"]
    assert [draw() for _ in range(2)] == expected
    seed(3)
    assert rng.undo_draws(before) == []
    random.random()
    assert rng.undo_draws(before) == ["python"]
    assert [draw() for _ in range(2)] == expected


def test_capturing_draws_nothing():
    seed(3)
    expected = draw()
    seed(3)
    rng.capture()
    assert draw() == expected


@needs_draws_again
def test_another_process_draws_the_same():
    seed(3)
    draw()
    states = json.dumps(rng.capture())
    expected = draw()
    program = (
        "import json, sys, random, numpy, warnings; warnings.simplefilter('ignore')\n"
        "from onion.checkpointing import rng\n"
        "rng.restore(json.loads(sys.stdin.read()))\n"
        "import paddle\n"
        "print([random.random(), random.gauss(0, 1), random.randrange(10**30)])\n"
        "numpy.random.normal(size=3), numpy.random.randint(0, 2**31, 5)\n"
        "print(paddle.rand([5]).numpy().tobytes())\n"
    )
    run = subprocess.run([sys.executable, "-c", program], input=states, capture_output=True, text=True, check=True)
    assert run.stdout.splitlines() == [repr(expected[0]), repr(expected[3])]


def test_without_paddle_only_the_two_others_are_captured_and_paddle_is_not_loaded():
    program = (
        "import sys, json\n"
        "from onion.checkpointing import rng\n"
        "states = rng.capture(); rng.restore(json.loads(json.dumps(states)))\n"
        "print(sorted(states), 'paddle' in sys.modules)\n"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout == "['numpy', 'python'] False\n"


def test_of_processes_with_a_gpu_each_the_generator_of_ones_own_gpu_counts(monkeypatch):
    """Of GPUs there is only what Paddle says of them: a state for each that the process sees."""
    states = [paddle.get_rng_state()[0]]
    paddle.seed(7)
    states += paddle.get_rng_state()
    plain = [rng._plain(state.__getstate__()) for state in states]
    assert plain[0] != plain[1]
    monkeypatch.setenv("PADDLE_TRAINERS_NUM", "2")
    monkeypatch.setattr(paddle, "get_rng_state", lambda: states)
    set_to = []
    monkeypatch.setattr(paddle, "set_rng_state", set_to.append)
    for device in (0, 1):
        monkeypatch.setattr(paddle.device, "get_device", lambda device=device: f"gpu:{device}")
        assert rng.capture()["paddle"] == [plain[device]]
    rng.restore({"paddle": [plain[0]]})  # by the second process, of what the first has saved
    assert [rng._plain(state.__getstate__()) for state in set_to[0]] == [plain[0], plain[0]]
