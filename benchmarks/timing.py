"""Timing of commands and functions."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def timed(work: Callable[[], T]) -> tuple[float, T]:
    """Return how long `work` took, in seconds, and what it gave."""
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result
