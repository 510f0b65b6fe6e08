"""benchmarks/memory: all sides run, and gradient checkpointing has to change no bit."""

import pytest

from benchmarks import memory


def test_sides_learn_the_same_with_and_without_gradient_checkpointing():
    shape = {"batch": 2, "length": 8, "layers": 1, "width": 64, "steps": 1}
    found = [memory.prepare({**shape, **job})() for job in memory.SIDES.values()]
    assert all(each["seconds"] > 0 for each in found)
    bits = [each["bits"] for each in found]
    assert bits[0] == bits[1] != bits[2] == bits[3]


def rounds(*pairs, bits="same"):
    return [{"seconds": seconds, "peak": peak * 2**20, "bits": bits} for seconds, peak in pairs]


def test_each_round_is_compared_with_all_parameters():
    sides = [rounds((2, 100), (4, 100)), rounds((3, 50), (6, 50)), rounds((1, 80), (2, 80)), rounds((1, 40), (2, 40))]
    told = {each.what: each.cells()[1] for each in memory.figures_of(dict(zip(memory.SIDES, sides, strict=True)))}
    assert told["processor time of a step: LoRA"] == "1.50 s"
    assert told["peak memory: all parameters, gradient checkpointing"] == "50 MiB"
    assert told["time: all parameters, gradient checkpointing, beside all parameters"] == "1.50 times"
    assert told["memory: LoRA, gradient checkpointing, beside all parameters"] == "0.40 times"


def test_other_bits_are_no_result():
    found = {name: rounds((1, 1), bits=str(number)) for number, name in enumerate(memory.SIDES)}
    with pytest.raises(SystemExit, match="gradient checkpointing: other bits than without"):
        memory._require_equal(found)
