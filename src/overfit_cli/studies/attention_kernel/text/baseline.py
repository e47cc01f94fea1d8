"""How far a shortcut gets: the accuracy of a rule that sees how often a token occurs, not where."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from overfit_cli.studies.attention_kernel.text.texts import PADDING, Texts

Floats = NDArray[np.float64]

RIDGE = 1.0
"""The penalty on the squared weights: as much as one text more would weigh, so next to nothing."""


def bag_of_words_accuracy(train: Texts, test: Texts, vocabulary: int) -> float:
    """Return the share of `test` that ridge regression on token counts gets right.

    The rule is fitted to `train`: least squares of the labels ±1 on the counts of the tokens
    1, ..., `vocabulary` - 1, standardised, with a small penalty. Padding isn't counted: the other
    counts and the bias say what it would. A text is called positive where the rule is above 0.
    """
    counts = _counts(train, vocabulary)
    centre, spread = counts.mean(axis=0), counts.std(axis=0)
    spread[spread == 0] = 1.0
    features = (counts - centre) / spread
    signs = 2.0 * train.labels - 1.0
    gram = features.T @ features + RIDGE * np.eye(features.shape[1])
    weights = linalg.solve(gram, features.T @ (signs - signs.mean()), assume_a="pos")
    scores = (_counts(test, vocabulary) - centre) / spread @ weights + signs.mean()
    return float(np.mean((scores > 0) == (test.labels == 1)))


def _counts(texts: Texts, vocabulary: int) -> Floats:
    """Count every text's tokens but padding, shape (texts, vocabulary - 1)."""
    counts = np.empty((len(texts.tokens), vocabulary))
    for row, tokens, length in zip(counts, texts.tokens, texts.lengths.tolist(), strict=True):
        row[:] = np.bincount(tokens[:length], minlength=vocabulary)
    return np.delete(counts, PADDING, axis=1)
