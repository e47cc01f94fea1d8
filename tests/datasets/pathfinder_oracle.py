"""Pathfinder's contours found by looking for gaps between paddles."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from tests.datasets.pathfinder_reference import Disc, Segment

_STEPS = 40


def distance(first: Segment, second: Segment) -> float:
    """Return how near two segments come, from points along them: at most a step too much."""
    shares = np.linspace(0, 1, _STEPS + 1)
    one = first[0] + shares * (first[1] - first[0])
    other = second[0] + shares * (second[1] - second[0])
    return float(np.abs(one[:, None] - other[None, :]).min())


def contours(paddles: list[Segment], gap: float) -> list[set[int]]:
    """Group paddles: two that come within `gap` of each other lie on one contour."""
    groups = [{place} for place in range(len(paddles))]
    for one, other in combinations(range(len(paddles)), 2):
        if distance(paddles[one], paddles[other]) <= gap:
            left, right = (next(g for g in groups if place in g) for place in (one, other))
            if left is not right:
                left |= right
                groups = [group for group in groups if group is not right]
    return groups


def is_connected(paddles: list[Segment], discs: list[Disc], gap: float) -> bool:
    """Whether one contour has the paddles' ends that lie nearest to the discs."""
    marked = [_nearest(paddles, centre) for centre, _ in discs]
    return any(set(marked) <= group for group in contours(paddles, gap))


def _nearest(paddles: list[Segment], centre: complex) -> int:
    return int(np.argmin([min(_away(ends, centre)) for ends in paddles]))


def _away(ends: Segment, centre: complex) -> list[float]:
    return [abs(end - centre) for end in ends]
