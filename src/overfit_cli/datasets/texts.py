"""Labelled texts of one length, as a model takes them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

PADDING = 0
"""The token that fills up a text that is too short; no word and no byte has this number."""


@dataclass(frozen=True, eq=False)
class Texts:
    """Texts cut or padded to one length.

    Attributes:
        tokens: shape (texts, length); `PADDING` from a text's end on.
        lengths: how many tokens of a text aren't padding, at least 1; shape (texts,).
        labels: 1 for a positive text and 0 for a negative one, shape (texts,).
    """

    tokens: NDArray[np.int16]
    lengths: NDArray[np.int64]
    labels: NDArray[np.int64]
