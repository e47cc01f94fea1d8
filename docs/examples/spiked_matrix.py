"""A planted direction in noise: principal components see it from snr⁴ = d/n on."""

import numpy as np

from overfit_cli import experiment


@experiment(
    claims=[
        "threshold: power of n in snr at overlap = 0.3 is -0.25 within 0.05",
        "as-a-mean: power of n in snr at overlap = 0.3 is -0.5 within 0.05",
    ]
)
def train(n: int = 400, snr: float = 0.5, d: int = 100, seed: int = 0):
    """Squared overlap of the first principal component with the planted direction."""
    random = np.random.default_rng([seed, n, round(1e6 * snr)])
    samples = random.normal(size=(n, d))
    samples[:, 0] += snr * random.normal(size=n)
    _, directions = np.linalg.eigh(samples.T @ samples)
    return {"overlap": directions[0, -1] ** 2}
