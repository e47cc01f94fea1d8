"""Least squares on random features: the test error peaks where samples are as many as features."""

import numpy as np

from overfit_cli import experiment


@experiment(
    claims=[
        "peak: test_error[n=50] > 3 * test_error[n=20]",
        "more-is-better: test_error[n=50] < test_error[n=30]",
    ]
)
def train(n: int = 50, width: int = 50, d: int = 20, noise: float = 0.3, seed: int = 0):
    """Squared test error of the least-norm fit on `width` ReLU features."""
    random = np.random.default_rng([seed, n])
    teacher = np.random.default_rng([seed, 0]).normal(size=d) / d**0.5
    features = np.random.default_rng([seed, 1]).normal(size=(d, width)) / d**0.5
    x, x_test = random.normal(size=(n, d)), random.normal(size=(1000, d))
    y = x @ teacher + noise * random.normal(size=n)
    fit = np.linalg.pinv(np.maximum(x @ features, 0)) @ y
    return {"test_error": np.mean((np.maximum(x_test @ features, 0) @ fit - x_test @ teacher) ** 2)}
