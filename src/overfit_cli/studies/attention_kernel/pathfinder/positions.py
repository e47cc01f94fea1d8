"""Rules that see the discs' places alone: the accuracy that a network has to exceed."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from overfit_cli.core.arrays import Floats

Labels = NDArray[np.int64]
Points = NDArray[np.complex64]

BINS = 32

TREES, LEAVES = 60, 15
"""The size of gradient boosting: on 20,000 samples of seven features a larger one is no better."""


def majority_in_bins_accuracy(
    train_values: ArrayLike, train_labels: ArrayLike, test_values: ArrayLike, test_labels: ArrayLike
) -> float:
    """Return the test accuracy of a rule that sees one number of each sample.

    The rule is the majority of the training labels in each of 32 bins that hold equally many
    training values. All arguments have shape (samples,), and labels are 0 or 1. The accuracy is nan
    without samples, or where a value is not finite.
    """
    values, labels = np.asarray(train_values), np.asarray(train_labels)
    tested, truth = np.asarray(test_values), np.asarray(test_labels)
    if not (
        len(values) and len(tested) and np.isfinite(values).all() and np.isfinite(tested).all()
    ):
        return float("nan")
    edges = np.quantile(values, np.linspace(0, 1, BINS + 1)[1:-1])
    bins = np.searchsorted(edges, values)
    balance = np.bincount(bins, weights=2 * labels - 1, minlength=BINS)
    rule = np.where(balance == 0, labels.mean() > 0.5, balance > 0)
    return float((rule[np.searchsorted(edges, tested)] == truth).mean())


def best_accuracy_of_positions(
    train: Points, train_labels: Labels, test: Points, test_labels: Labels
) -> float:
    """Return the test accuracy of the best rule that sees the centres of a sample's two discs.

    One rule sees their distance (`majority_in_bins_accuracy`), the other all features of
    `point_features` (`boosted_trees_accuracy`). The better of the two is chosen on the test
    samples: a network that exceeds it has learned more than the positions tell.

    Args:
        train, test: the discs' centres x + iy, shape (samples, 2).
        train_labels, test_labels: 0 or 1, shape (samples,).

    Returns:
        nan where a centre is not known.
    """
    distances = [np.abs(centres[:, 1] - centres[:, 0]) for centres in (train, test)]
    accuracy = majority_in_bins_accuracy(distances[0], train_labels, distances[1], test_labels)
    if np.isnan(accuracy):
        return accuracy
    features = point_features(train), point_features(test)
    return max(
        accuracy,
        boosted_trees_accuracy(features[0], train_labels, features[1], test_labels),
    )


def point_features(centres: Points) -> Floats:
    """Return features of two points that do not depend on their order.

    Args:
        centres: x + iy, shape (samples, 2).

    Returns:
        Both x and both y, sorted by x, the midpoint's x and y, and the distance: (samples, 7).
    """
    ordered = np.sort(centres.astype(np.complex128), axis=1)  # complex numbers sort by x, then by y
    middle = ordered.mean(axis=1)
    distances = np.abs(ordered[:, 1] - ordered[:, 0])
    return np.column_stack([ordered.real, ordered.imag, middle.real, middle.imag, distances])


def boosted_trees_accuracy(
    train: Floats, train_labels: Labels, test: Floats, test_labels: Labels
) -> float:
    """Return the test accuracy of gradient boosting, the same at every call.

    Args:
        train, test: features, shape (samples, features).
        train_labels, test_labels: 0 or 1, shape (samples,). Where all training labels are equal,
            the rule predicts that label.
    """
    if len(np.unique(train_labels)) == 1:
        return float((test_labels == train_labels[0]).mean())
    from sklearn.ensemble import HistGradientBoostingClassifier
    from threadpoolctl import threadpool_limits

    trees = HistGradientBoostingClassifier(
        max_iter=TREES, max_leaf_nodes=LEAVES, early_stopping=False, random_state=0
    )
    with threadpool_limits(1):  # several of its threads are slower where cores are shared
        trees.fit(train, train_labels)
        return float(trees.score(test, test_labels))
