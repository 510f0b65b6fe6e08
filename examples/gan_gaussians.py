"""A GAN in one onion: a generator learns a ring of 8 Gaussians, a step for every two of its discriminator.

python examples/gan_gaussians.py OUT    trains and draws OUT/points.svg; resumes if run again

The losses are those of Goodfellow et al. (2014, non-saturating), with R1 for the discriminator (Mescheder et al. 2018).
The last line is JSON: figures of 2,500 samples, see ring_of_gaussians.py.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from ring_of_gaussians import figures, picture, points

from onion import DataProvider, Every, GradientMachine, ParameterUpdater, Runner, Saver, StopGradient

# onion comes first, so that it can choose the math library that Paddle loads
# isort: split
import paddle
from paddle import nn
from paddle.nn.functional import softplus


class Network(nn.Sequential):
    """Three hidden layers: ``[n, 2] -> [n, outputs]``."""

    def __init__(self, outputs: int) -> None:
        hidden = [layer for width in (2, 128, 128) for layer in (nn.Linear(width, 128), nn.ReLU())]
        super().__init__(*hidden, nn.Linear(128, outputs))


class Generator(Network):
    """Noise -> as many points as a batch has, ``[n, 2]``."""

    def forward(self, batch: paddle.Tensor) -> paddle.Tensor:
        """Make them."""
        return super().forward(paddle.randn([len(batch), 2]))


def onion(out: Path, generator: Generator, discriminator: Network, steps: int) -> Runner:
    """Compose the training."""

    def told_apart(scores: paddle.Tensor, real: paddle.Tensor) -> paddle.Tensor:
        real.stop_gradient = False
        (slopes,) = paddle.grad(discriminator(real).sum(), real, create_graph=True)
        fakes = discriminator(generator(real).detach())
        return softplus(-scores).mean() + softplus(fakes).mean() + 0.05 * (slopes**2).sum(1).mean()

    def fooled(fakes: paddle.Tensor, real: paddle.Tensor) -> paddle.Tensor:
        return softplus(-discriminator(fakes)).mean()

    def updater(network: Network, every: int = 1) -> ParameterUpdater:
        rate = paddle.optimizer.lr.CosineAnnealingDecay(1e-3, T_max=steps // every)
        return ParameterUpdater(paddle.optimizer.Adam(rate, beta1=0.5, beta2=0.99, parameters=network.parameters()))

    return Runner(
        Saver(out, every=1000),
        DataProvider(points(1024), 128, shuffle=True),
        Runner(updater(discriminator), GradientMachine(discriminator, told_apart)),
        Every(2, Runner(StopGradient(discriminator), updater(generator, 2), GradientMachine(generator, fooled))),
    )


def main(out: Path, steps: int = 4000) -> None:
    """Train, draw, print."""
    paddle.seed(1)
    generator, discriminator = Generator(2), Network(1)
    runner = onion(out, generator, discriminator, steps)
    print(runner)
    runner.run(steps=steps)
    paddle.seed(2)
    samples = generator(range(2500)).detach().numpy()
    (out / "points.svg").write_text(picture(samples))
    print(json.dumps({"example": "gan_gaussians", "steps": steps, **figures(samples)}))


if __name__ == "__main__":
    main(Path(sys.argv[1])) if len(sys.argv) == 2 else sys.exit(__doc__)
