"""A classification problem of a cell: samples, what is known of them, and the planted head."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Samples:
    """Labelled samples.

    Attributes:
        inputs: X, shape (samples, tokens, features).
        labels: y, ±1, shape (samples,).
        relevant: which tokens carry the label, shape (samples, tokens); None where none does alone.
    """

    inputs: Floats
    labels: Floats
    relevant: Bools | None = None


@dataclass(frozen=True)
class Head:
    """The weights of one attention head.

    Attributes:
        projection: U, shape (tokens, features).
        attention: W, shape (features, features).
    """

    projection: Floats
    attention: Floats


@dataclass(frozen=True)
class Problem:
    """What a cell is trained and tested on.

    Attributes:
        train: the training samples.
        test: the test samples.
        first: those of the first phase.
        planted: the head that gave the labels; None where none did.
        margin: the margin that attention can reach, γ_attn; nan where it isn't known.
        patterns: μ₊, μ₋ and ν₁ to ν_M as rows; None where there are none.
    """

    train: Samples
    test: Samples
    first: Samples
    planted: Head | None
    margin: float
    patterns: Floats | None = None
