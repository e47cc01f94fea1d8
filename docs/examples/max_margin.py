"""Gradient descent on the logistic loss of separable data: how its margin comes to the largest."""

import numpy as np
from sklearn.svm import SVC

from overfit_cli import experiment


@experiment(
    claims=[
        "direction: margin / largest > 0.9 where horizon >= 10000",
        "as-one-over-t: power of horizon in largest - margin is -1 within 0.2",
    ]
)
def train(horizon: int = 1000, n: int = 40, d: int = 5, seed: int = 0):
    """Margin of the normalised weights after `horizon` steps, and the largest possible."""
    random = np.random.default_rng(seed)
    labels = random.choice([-1.0, 1.0], n)
    x = random.normal(size=(n, d))
    x[:, 0] = labels * (1 + np.abs(x[:, 0]))
    signed = labels[:, None] * x  # y x, (n, d)
    w = np.zeros(d)
    for _ in range(horizon):
        w += 0.1 * signed.T @ (1 / (1 + np.exp(signed @ w))) / n
    both = np.r_[signed, -signed], np.r_[np.ones(n), -np.ones(n)]  # symmetric: no intercept
    best = SVC(kernel="linear", C=1e6, tol=1e-8).fit(*both).coef_[0]
    margins = [(signed @ v).min() / np.linalg.norm(v) for v in (w, best)]
    return {"margin": margins[0], "largest": margins[1]}
