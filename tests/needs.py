"""What a test may need of the machine, and the reason for which it is skipped where that is not there."""

import paddle
import pytest

bfloat16 = pytest.mark.skipif(
    not paddle.amp.is_bfloat16_supported(),
    reason="Paddle says that this processor has no bfloat16, and leaves a network in 32 bits with a warning",
)
