"""Gradient descent on a quadratic: the steps that it takes against the condition number."""

import numpy as np

from overfit_cli import experiment


@experiment(
    claims=[
        "as-kappa: power of kappa in iterations is 1 within 0.1",
        "as-its-root: power of kappa in iterations is 0.5 within 0.1",
    ]
)
def train(kappa: float = 100.0, d: int = 20, seed: int = 0):
    """Steps of size 1/λ_max until the squared distance is a millionth of its start."""
    curvature = np.geomspace(1 / kappa, 1, d)
    x = np.random.default_rng(seed).normal(size=d)
    start = x @ x
    for step in range(10**6):
        if x @ x <= 1e-6 * start:
            return {"iterations": step}
        x -= curvature * x
    raise RuntimeError("a million steps were not enough")
