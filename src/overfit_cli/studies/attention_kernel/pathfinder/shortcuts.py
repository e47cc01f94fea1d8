"""Rules that know the label without following a contour, to be reported beside every result."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from overfit_cli.studies.attention_kernel.pathfinder.drawing import PathfinderImages

BINS = 32


def distance_rule_accuracy(
    train_distances: ArrayLike,
    train_labels: ArrayLike,
    test_distances: ArrayLike,
    test_labels: ArrayLike,
) -> float:
    """Return how often the distance between the discs alone gives the label: 0.5 is never.

    The rule is the majority of the training labels in each of 32 bins that hold equally many
    training distances. All arguments have shape (images,); nan where a distance is unknown.
    """
    return _binned_rule(train_distances, train_labels, test_distances, test_labels)


def ink_rule_accuracy(train: PathfinderImages, test: PathfinderImages) -> float:
    """Return how often the mean grey level alone gives the label, by the same kind of rule."""
    ink_train, ink_test = train.pixels.mean(axis=(1, 2)), test.pixels.mean(axis=(1, 2))
    return _binned_rule(ink_train, train.labels, ink_test, test.labels)


def _binned_rule(
    train_values: ArrayLike, train_labels: ArrayLike, test_values: ArrayLike, test_labels: ArrayLike
) -> float:
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
