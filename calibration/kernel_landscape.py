"""Made-up worlds for the claims of `kernel-landscape`, with noise as measured on four networks."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
import pandas as pd

from calibration.rates import World, Worlds
from calibration.worlds import Random, worlds_from
from overfit_cli.studies.attention_kernel.landscape.claims import REAL

DEVIATIONS = {
    "rms_laplacian": (0.95, 0.5),
    "quadratic_residual": (1.4, 0.9),
    "sharpness": (1.0, 1.0),
}
"""Of the log₂ ratio of both kernels: from network to network, and between a network's pairs."""

SHAPES = {"gaussian": 0.5, "softmax": 2.0}

MINIMA = {"gaussian": 2.78, "softmax": 2.0}
"""Of the gamma distribution of a network's expected number of minima, and its mean. The Gaussian's
has the longer tail; log₂(1 + minima) has the same mean, 1.29, for both."""


def ratios(
    design: pd.DataFrame, random: Random, *, column: str, ratio: float = 0.0
) -> pd.DataFrame:
    """Return cells in whose column softmax has 2^ratio times as much, in the middle."""
    network, pair = DEVIATIONS[column]
    logs = ratio + random.normal(0, network, _networks(design))[design["seed"]]
    softmax = (design["kernel"] == "softmax").to_numpy()
    noise = random.normal(0, pair / np.sqrt(2), len(design))
    return design.assign(**{column: 0.2 * 2 ** (np.where(softmax, logs, 0.0) + noise)})


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


def _ratio_worlds(column: str) -> Worlds:
    alike = partial(ratios, column=column)
    return _worlds(partial(alike, ratio=8.0), alike)


def real(design: pd.DataFrame, random: Random, *, world: World) -> pd.DataFrame:
    """Return cells of the paper's text, model and training."""
    return world(design.assign(**REAL[0]), random)


def _real(worlds: Worlds) -> Worlds:
    return Worlds(*(partial(real, world=each) for each in (worlds.true, worlds.false, worlds.open)))


_MINIMA = _worlds(partial(minima, factor=20.0), minima)
_CURVATURE = _ratio_worlds("rms_laplacian")

_GENERATED = {
    "minima": _MINIMA,
    "curvature": _CURVATURE,
    "quadratic": _ratio_worlds("quadratic_residual"),
    "sharpness": _ratio_worlds("sharpness"),
}

WORLDS: Mapping[str, Worlds] = {
    "landscape-real-minima": _real(_MINIMA),
    "landscape-real-curvature": _real(_CURVATURE),
    **{f"landscape-{name}": worlds for name, worlds in _GENERATED.items()},
    **{f"landscape-pathfinder-{name}": worlds for name, worlds in _GENERATED.items()},
}
