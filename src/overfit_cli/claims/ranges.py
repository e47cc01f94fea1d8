"""Arithmetic of numbers of which only two ends are known."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from overfit_cli.core.arrays import Floats

_INCREASING: tuple[Callable[..., Any], ...] = (np.log, np.exp, np.sqrt)


class Range(NDArrayOperatorsMixin):
    """Numbers that lie between two ends, which may be infinite, in the place of an array.

    NumPy's arithmetic, `log`, `exp` and `sqrt` of it give ranges that contain what the arithmetic
    gives for any numbers in between.
    """

    def __init__(self, low: Floats, high: Floats) -> None:
        self.low, self.high = low, high

    def __array_ufunc__(
        self, ufunc: Callable[..., Any], method: str, *inputs: Any, **options: Any
    ) -> Range:
        ends = [(x.low, x.high) if isinstance(x, Range) else (x, x) for x in inputs]
        corners = [np.asarray(ufunc(*corner), np.float64) for corner in itertools.product(*ends)]
        if ufunc in _INCREASING:
            return Range(np.where(np.isnan(corners[0]), -np.inf, corners[0]), corners[-1])
        low, high = np.minimum.reduce(corners), np.maximum.reduce(corners)  # nan where one is
        unbounded = np.isnan(low)
        if ufunc is np.divide:
            unbounded |= np.asarray((ends[1][0] < 0) & (ends[1][1] >= 0))
        if ufunc is np.power:  # a power of numbers of both signs is not monotone
            unbounded |= np.asarray(ends[0][0] < 0)
        return Range(np.where(unbounded, -np.inf, low), np.where(unbounded, np.inf, high))
