"""Pathfinder images rendered point by point, and contours found by the gaps between paddles."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from overfit_cli.studies.attention_kernel.classifier_parameters import PathfinderSettings
from overfit_cli.studies.attention_kernel.scenes import Scenes

Segment = tuple[complex, complex]
Disc = tuple[complex, float]


def paddles_of(settings: PathfinderSettings, scenes: Scenes, image: int) -> list[Segment]:
    """Return one image's paddles by their ends."""
    half = settings.paddle_length / 2
    middles, directions = scenes.paddles.middles[image], scenes.paddles.directions[image]
    pairs = zip(middles.tolist(), directions.tolist(), strict=True)
    return [(middle - half * along, middle + half * along) for middle, along in pairs]


def discs_of(settings: PathfinderSettings, scenes: Scenes, image: int) -> list[Disc]:
    """Return one image's discs: centre and radius."""
    return [(centre, settings.marker_radius) for centre in scenes.markers[image].tolist()]


def pixels(
    settings: PathfinderSettings, paddles: list[Segment], discs: list[Disc], points: int
) -> NDArray[np.float64]:
    """Return grey levels from 0 to 255, each the mean of the ink at points × points places."""
    thick = settings.paddle_thickness / 2
    shapes = [(_shortened(ends, thick), thick) for ends in paddles]
    shapes += [((centre, centre), radius) for centre, radius in discs]
    image = np.zeros((settings.size, settings.size))
    for row, column in np.ndindex(image.shape):
        for down, across in np.ndindex(points, points):
            place = complex(column + (across + 0.5) / points, row + (down + 0.5) / points)
            image[row, column] += max(_ink(place, shape, points) for shape in shapes)
    return 255 * image / points**2


def _shortened(ends: Segment, by: float) -> Segment:
    """Take the round caps off a paddle's length."""
    along = (ends[1] - ends[0]) / abs(ends[1] - ends[0])
    return ends[0] + by * along, ends[1] - by * along


def _ink(place: complex, shape: tuple[Segment, float], points: int) -> float:
    """Return 1 inside, 0 outside, and what lies between within half a spacing of the edge."""
    (begin, end), radius = shape
    span, share = end - begin, 0.0
    if span:
        share = ((place - begin) * span.conjugate()).real / abs(span) ** 2
    nearest = begin + min(max(share, 0.0), 1.0) * span
    away = math.hypot((place - nearest).real, (place - nearest).imag)
    return min(max(0.5 + points * (radius - away), 0.0), 1.0)


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
