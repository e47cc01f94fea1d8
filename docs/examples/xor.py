"""A two-layer network on XOR of two coordinates, among d − 2 that say nothing."""

import numpy as np

from overfit_cli import experiment


@experiment(
    claims=[
        "harder: test_error rises along d",
        "whatever-d: test_error < 0.1",
    ]
)
def train(d: int = 10, n: int = 200, width: int = 40, seed: int = 0):
    """Share of wrong signs on fresh points after 500 steps of gradient descent."""
    random = np.random.default_rng([seed, d])
    x, x_test = random.normal(size=(n, d)), random.normal(size=(1000, d))
    y, y_test = (np.sign(points[:, 0] * points[:, 1]) for points in (x, x_test))
    W = random.normal(size=(d, width)) / d**0.5
    a = random.choice([-1.0, 1.0], width) / width**0.5
    for _ in range(500):
        hidden = np.maximum(x @ W, 0)  # (n, width)
        slope = y / (1 + np.exp(y * (hidden @ a))) / n  # −∂L/∂f, (n,)
        W += 2.0 * x.T @ (slope[:, None] * a * (hidden > 0))
        a += 2.0 * hidden.T @ slope
    return {"test_error": np.mean(np.sign(np.maximum(x_test @ W, 0) @ a) != y_test)}
