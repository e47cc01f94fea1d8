"""Double descent on handwritten digits: random ReLU features, fitted without any penalty."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np
from sklearn.datasets import load_digits

from overfit_cli import Parameter

Samples = Annotated[int, Parameter("training samples", symbol="n")]
Width = Annotated[int, Parameter("random features", symbol="m")]


def train(n: Samples = 100, width: Width = 100, seed: int = 0) -> dict[str, float]:
    """Fit n digits by least squares on random features, and test on the rest."""
    features, labels = _features(width, seed)
    weights = np.linalg.lstsq(features[:n], labels[:n], rcond=None)[0]
    return _measured(features, labels, weights, n)


def descend(
    n: Samples = 100,
    width: Width = 100,
    learning_rate: float = 1.0,
    updates: int = 300,
    seed: int = 0,
) -> Iterator[dict[str, float]]:
    """Fit the same by gradient descent, and yield every step."""
    features, labels = _features(width, seed)
    weights = np.zeros((width, 10))
    for _ in range(updates):
        yield _measured(features, labels, weights, n)
        residual = features[:n] @ weights - labels[:n]
        weights -= learning_rate * features[:n].T @ residual / n


def _features(width: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The digits in the order of the seed: ReLU features and one-hot labels."""
    rng = np.random.default_rng(seed)
    digits = load_digits()
    order = rng.permutation(len(digits.target))
    projected = digits.data[order] / 16 @ rng.standard_normal((64, width))
    return np.maximum(projected, 0) / np.sqrt(8 * width), np.eye(10)[digits.target[order]]


def _measured(
    features: np.ndarray, labels: np.ndarray, weights: np.ndarray, n: int
) -> dict[str, float]:
    outputs = features @ weights
    wrong = outputs.argmax(1) != labels.argmax(1)
    loss = ((outputs - labels) ** 2).sum(1)
    return {
        "test_error": wrong[n:].mean(),
        "test_loss": loss[n:].mean(),
        "train_loss": loss[:n].mean(),
    }
