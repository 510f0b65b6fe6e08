"""What Paddle's build and this machine can do, as marks: a test that needs more is skipped, and tells the reason.

An ability is asked for, where it can be; a version is not.
"""

import paddle
import pytest

from onion.checkpointing import rng
from onion.models.fused.training import primitives


def needs(ability, reason):
    """Return the mark that skips a test where an ability is missing."""
    return pytest.mark.skipif(not ability, reason=reason)


def gpus():
    """Return how many GPUs Paddle can use."""
    return paddle.device.cuda.device_count() if paddle.is_compiled_with_cuda() else 0


def needs_gpu(test):
    """Mark a test that needs a GPU: ``-m gpu`` picks it, and it is skipped where Paddle finds none."""
    return pytest.mark.gpu(needs(gpus(), "needs a GPU that Paddle can use")(test))


def can_draw_again():
    """Tell whether Paddle's place among its random numbers can be read and restored; 2.6 cannot, on the CPU."""
    before = paddle.get_rng_state()
    paddle.rand([3])  # away from the first number of a seed
    saved = rng.capture()
    drawn = paddle.rand([3])
    rng.restore(saved)
    again = paddle.rand([3])
    paddle.set_rng_state(before)
    return bool((drawn == again).all())


def known(optimizers):
    """Return the names of optimizers as parameters; those that this Paddle does not have are skipped."""
    return [
        pytest.param(name, marks=needs(_can_be_made(make), f"this Paddle has no {name}"))
        for name, make in optimizers.items()
    ]


def _can_be_made(make):
    try:
        make([paddle.create_parameter([1], "float32")])
    except (AttributeError, TypeError):  # no such optimizer; no such argument
        return False
    return True


needs_layers_by_hand = needs(
    primitives.HAS_KERNELS, "this Paddle does not hand out the gradients that layers by hand need"
)
needs_draws_again = needs(can_draw_again(), "this Paddle cannot restore its place among random numbers on the CPU")
needs_bfloat16 = needs(
    paddle.amp.is_bfloat16_supported(),
    "Paddle says that this processor has no bfloat16, and leaves a network in 32 bits with a warning",
)
