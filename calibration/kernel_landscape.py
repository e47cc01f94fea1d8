"""Made-up worlds for the claims of `kernel-landscape`, with noise as measured on four networks."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
import pandas as pd

from calibration.rates import World, Worlds
from calibration.worlds import Random, worlds_from
from overfit_cli.studies.attention_kernel.landscape.claims import REAL

DEVIATIONS = (0.95, 0.5)
"""Of the log₂ ratio of both Laplacians: from network to network, and between a network's pairs."""

SHAPES = {"gaussian": 0.5, "softmax": 2.0}

MINIMA = {"gaussian": 2.78, "softmax": 2.0}
"""Of the gamma distribution of a network's expected number of minima, and its mean. The Gaussian's
has the longer tail; log₂(1 + minima) has the same mean, 1.29, for both."""


def ratios(design: pd.DataFrame, random: Random, *, ratio: float = 0.0) -> pd.DataFrame:
    """Return cells in which softmax's Laplacian is 2^ratio times as large, in the middle."""
    network, pair = DEVIATIONS
    logs = ratio + random.normal(0, network, _networks(design))[design["seed"]]
    softmax = (design["kernel"] == "softmax").to_numpy()
    noise = random.normal(0, pair / np.sqrt(2), len(design))
    return design.assign(rms_laplacian=0.2 * 2 ** (np.where(softmax, logs, 0.0) + noise))


def minima(design: pd.DataFrame, random: Random, *, factor: float = 1.0) -> pd.DataFrame:
    """Return cells in which softmax has `factor` times as many minima as where both have as many.

    Each network has an expected number of minima of its own under each kernel.
    """
    softmax = design["kernel"] == "softmax"
    expected = {
        name: MINIMA[name] * random.gamma(shape, 1 / shape, _networks(design))[design["seed"]]
        for name, shape in SHAPES.items()
    }
    means = np.where(softmax, factor * expected["softmax"], expected["gaussian"])
    return design.assign(interior_minima=random.poisson(means))


def _networks(design: pd.DataFrame) -> int:
    return int(design["seed"].max()) + 1


def _worlds(true: World, alike: World) -> Worlds:
    """Worlds of a claim: where it is false both kernels have as much, or there are few networks."""
    return worlds_from(true, alike, 6)


def real(design: pd.DataFrame, random: Random, *, world: World) -> pd.DataFrame:
    """Return cells of the paper's text, model and training."""
    return world(design.assign(**REAL[0]), random)


def _real(worlds: Worlds) -> Worlds:
    return Worlds(*(partial(real, world=each) for each in (worlds.true, worlds.false, worlds.open)))


_MINIMA = _worlds(partial(minima, factor=20.0), minima)
_CURVATURE = _worlds(partial(ratios, ratio=8.0), ratios)

WORLDS: Mapping[str, Worlds] = {
    "landscape-real-minima": _real(_MINIMA),
    "landscape-real-curvature": _real(_CURVATURE),
    "landscape-minima": _MINIMA,
    "landscape-curvature": _CURVATURE,
}
