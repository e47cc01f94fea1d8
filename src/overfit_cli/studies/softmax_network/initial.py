"""Initial weights of the two-layer networks."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from overfit_cli.core.training import named_rng

Floats = NDArray[np.float64]
Initialisation = Literal["symmetric", "independent"]


def initial_weights(
    way: Initialisation, shape: tuple[int, int, int], sigma: float, seed: int
) -> tuple[Floats, Floats]:
    """Draw W(0), (m, d), and a, (outputs, m); a wider network extends a narrower one.

    In the symmetric case each hidden unit stands twice, with opposite signs (Definition 3.7).

    Args:
        way: which case.
        shape: m, d and outputs; m is even in the symmetric case.
        sigma: σ, the deviation of a weight.
        seed: the cell's.
    """
    m, d, outputs = shape
    units = m // 2 if way == "symmetric" else m
    weights = named_rng(seed, "init", "weights").standard_normal((units, d))
    signs = named_rng(seed, "init", "signs").choice([-1.0, 1.0], (units, outputs)).T
    if way == "symmetric":
        weights = np.repeat(weights, 2, axis=0)
        signs = np.stack([signs, -signs], axis=-1).reshape(outputs, -1)
    return sigma * weights, signs
