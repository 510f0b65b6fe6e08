"""Whether Paddle has a GPU kernel for every operator that training and prediction use; ``make gpu-dry`` runs it.

    python -m scripts.gpu_operators

It needs a GPU build of Paddle and no GPU. A process trains, tests and predicts on the paths that a GPU takes, and
Paddle's log tells which kernels ran (kernels.py). For one that ran with floating-point numbers, kernels for float32,
float16 and bfloat16 have to be registered; otherwise for the types it ran with. Exit status 1 if one is missing and
kernels.py names no way around it, or names one that is not needed; 2 if this Paddle is for the CPU.
"""

from __future__ import annotations

import sys
from pathlib import Path

import onion  # noqa: F401 - before Paddle, whose math library it chooses
from scripts.gpu_operators.kernels import FailedError, idle_ways, needed_of, recorded, rendered, verdicts

# isort: split
import paddle

ROOT = Path(__file__).parents[2]


def main() -> int:
    if not paddle.is_compiled_with_cuda():
        print("this Paddle is for the CPU and has no GPU kernels to look for; `make gpu-dry` installs one that has")
        return 2
    try:
        used = recorded("scripts.gpu_operators.trained", ROOT)
    except FailedError as error:
        print(error)
        return 1
    found = verdicts(needed_of(used), paddle.base.core._get_registered_phi_kernels("all"))
    failed, idle = [verdict.name for verdict in found if verdict.fails], idle_ways(found)
    print(rendered(found))
    print(f"\nPaddle {paddle.__version__}, CUDA {paddle.version.cuda()}: {len(found)} operators", end=", ")
    print(f"{sum(not each.missing for each in found)} with all their GPU kernels, {len(failed)} without a way around")
    if idle:
        print(f"ways around that nothing has taken: {', '.join(idle)}; take them out of gpu_operators/kernels.py")
    return 1 if failed or idle else 0


if __name__ == "__main__":
    sys.exit(main())
