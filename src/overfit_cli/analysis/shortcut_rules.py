"""Simple rules for two classes, which a network has to beat to have learned more."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]

BINS = 32

RIDGE = 1.0
"""The penalty on the squared weights: as much as one sample more would weigh."""


def majority_in_bins_accuracy(
    train_values: ArrayLike, train_labels: ArrayLike, test_values: ArrayLike, test_labels: ArrayLike
) -> float:
    """Return the test accuracy of a rule that sees one number of each sample.

    The rule is the majority of the training labels in each of 32 bins that hold equally many
    training values. All arguments have shape (samples,), and labels are 0 or 1. The accuracy is nan
    where there are no samples, or a value isn't finite.
    """
    values, labels = np.asarray(train_values), np.asarray(train_labels)
    others, truth = np.asarray(test_values), np.asarray(test_labels)
    if not (
        len(values) and len(others) and np.isfinite(values).all() and np.isfinite(others).all()
    ):
        return float("nan")
    edges = np.quantile(values, np.linspace(0, 1, BINS + 1)[1:-1])
    bins = np.searchsorted(edges, values)
    balance = np.bincount(bins, weights=2 * labels - 1, minlength=BINS)
    rule = np.where(balance == 0, labels.mean() > 0.5, balance > 0)
    return float((rule[np.searchsorted(edges, others)] == truth).mean())


def ridge_accuracy(train: Floats, train_labels: Labels, test: Floats, test_labels: Labels) -> float:
    """Return the test accuracy of ridge regression on standardised features.

    The rule is fitted by least squares of the labels ±1, with a small penalty. A sample is called
    positive where the rule is above 0.

    Args:
        train, test: features, shape (samples, features).
        train_labels, test_labels: 0 or 1, shape (samples,).
    """
    centre, spread = train.mean(axis=0), train.std(axis=0)
    spread[spread == 0] = 1.0
    features = (train - centre) / spread
    signs = 2.0 * train_labels - 1.0
    gram = features.T @ features + RIDGE * np.eye(features.shape[1])
    weights = linalg.solve(gram, features.T @ (signs - signs.mean()), assume_a="pos")
    scores = (test - centre) / spread @ weights + signs.mean()
    return float(np.mean((scores > 0) == (test_labels == 1)))
