"""Points of 8 Gaussians in a ring, how well samples cover them, and a picture of samples.

The ring is that of Metz et al., "Unrolled Generative Adversarial Networks" (2017): radius 2, standard deviation 0.02.
"""

from __future__ import annotations

import numpy as np

ANGLES = np.arange(8) * np.pi / 4
MODES = 2 * np.stack([np.cos(ANGLES), np.sin(ANGLES)], axis=1)
SIGMA = 0.02


def points(each: int, seed: int = 0) -> np.ndarray:
    """Draw so many points of each Gaussian, float32 ``[8 * each, 2]``."""
    noise = np.random.default_rng(seed).normal(scale=SIGMA, size=(each, 8, 2))
    return (MODES + noise).reshape(-1, 2).astype("float32")


def figures(samples: np.ndarray) -> dict[str, float]:
    """Tell how well samples ``[n, 2]`` cover the Gaussians.

    Returns:
        ``good_share``, the part of the samples within 3 standard deviations of a mode; ``smallest_share``, the part
        that is good and of the mode with the fewest; ``modes``, how many modes have got half of an equal share or more.
    """
    distances = np.linalg.norm(samples[:, None] - MODES, axis=2)
    good = distances.min(axis=1) <= 3 * SIGMA
    shares = np.bincount(distances.argmin(axis=1)[good], minlength=8) / len(samples)
    return {
        "modes": int((shares >= 1 / 16).sum()),
        "good_share": float(good.mean()),
        "smallest_share": float(shares.min()),
    }


def picture(samples: np.ndarray) -> str:
    """Draw samples ``[n, 2]``, and around each mode a circle of 3 standard deviations, as SVG."""
    dots = "".join(f"M{x:.0f} {y:.0f}h0" for x, y in _places(samples))
    rings = "".join(f'<circle cx="{x:.0f}" cy="{y:.0f}" r="{600 * SIGMA:.0f}"/>' for x, y in _places(MODES))
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1000 1000" width="500" fill="none">\n'
        '<rect width="1000" height="1000" fill="white"/>\n'
        f'<path d="{dots}" stroke="steelblue" stroke-width="4" stroke-linecap="round"/>\n'
        f'<g stroke="crimson">{rings}</g>\n</svg>\n'
    )


def _places(points: np.ndarray) -> np.ndarray:
    """Return where points stand in a picture of 1000 x 1000, upwards being less."""
    return np.array([500, 500]) + np.array([200, -200]) * points
