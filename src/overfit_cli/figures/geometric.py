"""Means of logarithms, for columns that span so much that a plain mean is its largest value's."""

from __future__ import annotations

import numpy as np
import pandas as pd

WIDE_SPAN = 1e6
"""The factor from which on a mean is geometric."""


def spans_widely(numbers: pd.Series[float]) -> bool:
    """Whether numbers, none negative, span more than a factor of a million; zeros don't count."""
    finite = numbers[np.isfinite(numbers)]
    positive = finite[finite > 0]
    if positive.empty or finite.min() < 0:
        return False
    return bool(positive.max() / positive.min() > WIDE_SPAN)


def logarithms(numbers: pd.Series[float]) -> pd.Series[float]:
    """Return the logarithms of one setting's numbers; nan everywhere where none is positive.

    Zeros, where a loss is down to nothing, count as the setting's smallest positive number.
    """
    positive = numbers[numbers > 0]
    if positive.empty:
        return numbers * np.nan
    return numbers.clip(lower=positive.min()).map(np.log)
