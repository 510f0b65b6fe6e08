"""What Paddle's build and this machine can do, as marks: a test that needs more is skipped, and tells the reason.

An ability is asked for, where it can be; a version is not.
"""

import paddle
import pytest

from onion.models.by_hand import pieces


def needs(ability, reason):
    """Return the mark that skips a test where an ability is missing."""
    return pytest.mark.skipif(not ability, reason=reason)


GPUS = paddle.device.cuda.device_count() if paddle.is_compiled_with_cuda() else 0


def needs_gpu(test):
    """Mark a test that needs a GPU: ``-m gpu`` picks it, and it is skipped where Paddle finds none."""
    return pytest.mark.gpu(needs(GPUS, "needs a GPU that Paddle can use")(test))


needs_layers_by_hand = needs(pieces.HAS_KERNELS, "Paddle does not hand out the gradients that layers by hand need")
