"""Classification tasks: samples as tokens with labels, and the accuracy of a shortcut rule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Examples:
    """Labelled samples.

    Attributes:
        tokens: whole numbers from 0, shape (samples, tokens).
        labels: 0 or 1, shape (samples,).
        lengths: how many tokens of a sample aren't padding, shape (samples,); None where all are.
    """

    tokens: NDArray[Any]
    labels: NDArray[np.int64]
    lengths: NDArray[np.int64] | None = None

    @property
    def row_lengths(self) -> NDArray[np.int64]:
        """How many tokens of each sample aren't padding, shape (samples,)."""
        if self.lengths is not None:
            return self.lengths
        return np.full(len(self.tokens), self.tokens.shape[1])

    def take(self, rows: NDArray[np.int64]) -> Examples:
        """Return some of the samples."""
        lengths = None if self.lengths is None else self.lengths[rows]
        return Examples(self.tokens[rows], self.labels[rows], lengths)


@dataclass(frozen=True, eq=False)
class Task:
    """What a cell trains on.

    Attributes:
        train, test: the samples.
        vocabulary: how many different tokens there are.
        shortcut: the test accuracy of a rule that sees too little to solve the task; nan where
            there is none.
        collections: a fingerprint of each collection of data that the samples were taken from, by
            its name; empty where they were made here.
    """

    train: Examples
    test: Examples
    vocabulary: int
    shortcut: float
    collections: Mapping[str, str] = field(default_factory=dict)
