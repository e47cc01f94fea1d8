"""Simple rules for two classes, which a network has to beat to have learned more."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg, sparse

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]
Places = NDArray[np.complex64]
Texts = tuple[NDArray[np.int32], NDArray[np.int64]]

BINS = 32

TREES, LEAVES = 60, 15
"""Of gradient boosting: on 20,000 samples of seven features, more of either is no better."""

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


def best_accuracy_by_places(
    train: Places, train_labels: Labels, test: Places, test_labels: Labels
) -> float:
    """Return the test accuracy of the best rule that sees the places of a sample's two discs.

    One rule sees how far apart they are (`majority_in_bins_accuracy`), the other all that
    `features_of_places` has (`boosted_trees_accuracy`). The better of the two is chosen on the test
    samples: a network that beats it has learned more than places tell.

    Args:
        train, test: the discs' centres x + iy, shape (samples, 2).
        train_labels, test_labels: 0 or 1, shape (samples,).

    Returns:
        nan where a place isn't known.
    """
    apart, others = (np.abs(each[:, 1] - each[:, 0]) for each in (train, test))
    by_distance = majority_in_bins_accuracy(apart, train_labels, others, test_labels)
    if np.isnan(by_distance):
        return by_distance
    features = features_of_places(train), features_of_places(test)
    return max(
        by_distance,
        boosted_trees_accuracy(features[0], train_labels, features[1], test_labels),
    )


def features_of_places(places: Places) -> Floats:
    """Return features of two places that don't depend on their order.

    Args:
        places: x + iy, shape (samples, 2).

    Returns:
        Both x and both y, sorted by x, the middle's x and y, and the distance: (samples, 7).
    """
    each = np.sort(places.astype(np.complex128), axis=1)  # complex numbers sort by x, then by y
    middle = each.mean(axis=1)
    apart = np.abs(each[:, 1] - each[:, 0])
    return np.column_stack([each.real, each.imag, middle.real, middle.imag, apart])


def boosted_trees_accuracy(
    train: Floats, train_labels: Labels, test: Floats, test_labels: Labels
) -> float:
    """Return the test accuracy of gradient boosting, the same at every call.

    Args:
        train, test: features, shape (samples, features).
        train_labels, test_labels: 0 or 1, shape (samples,). Where all training labels are alike,
            the rule knows no other.
    """
    if len(np.unique(train_labels)) == 1:
        return float((test_labels == train_labels[0]).mean())
    from sklearn.ensemble import HistGradientBoostingClassifier
    from threadpoolctl import threadpool_limits

    trees = HistGradientBoostingClassifier(
        max_iter=TREES, max_leaf_nodes=LEAVES, early_stopping=False, random_state=0
    )
    with threadpool_limits(1):  # its threads get in each other's way where cores are shared
        trees.fit(train, train_labels)
        return float(trees.score(test, test_labels))


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


def word_counts_accuracy(
    train: Texts, train_labels: Labels, test: Texts, test_labels: Labels, vocabulary: int
) -> float:
    """Return the test accuracy of ridge regression on counts of many words, most of them zero.

    As `ridge_accuracy`, but that counts aren't standardised: they stay sparse.

    Args:
        train, test: tokens, shape (samples, longest), and how many of each row aren't padding.
        train_labels, test_labels: 0 or 1, shape (samples,).
        vocabulary: how many different tokens there are.
    """
    signs = 2.0 * train_labels - 1.0
    counts = _word_counts(train, vocabulary)
    found = sparse.linalg.lsqr(counts, signs - signs.mean(), damp=RIDGE**0.5, atol=1e-4, btol=1e-4)
    scores = _word_counts(test, vocabulary) @ found[0] + signs.mean()
    return float(np.mean((scores > 0) == (test_labels == 1)))


def _word_counts(texts: Texts, vocabulary: int) -> sparse.csr_array:
    """How often each token occurs in a text, shape (samples, vocabulary)."""
    tokens, lengths = texts
    kept = tokens[np.arange(tokens.shape[1]) < lengths[:, None]]
    rows = np.repeat(np.arange(len(tokens)), lengths)
    return sparse.csr_array((np.ones(len(rows)), (rows, kept)), shape=(len(tokens), vocabulary))
