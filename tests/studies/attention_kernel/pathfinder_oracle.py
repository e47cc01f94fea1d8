"""Pathfinder images rendered point by point, and contours found by the gaps between paddles."""

from __future__ import annotations

import math

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


def distances(paddles: list[Segment]) -> NDArray[np.float64]:
    """Return how near any two come, from points along them: at most a step too much."""
    shares = np.linspace(0, 1, _STEPS + 1)
    points = [begin + shares * (end - begin) for begin, end in paddles]
    return np.array([[np.abs(one[:, None] - other).min() for other in points] for one in points])


def nearest(paddles: list[Segment], centres: NDArray[np.complex128]) -> list[int]:
    """Return the paddles one of whose ends lies nearest to each of these points."""
    away = np.abs(np.array(paddles)[..., None] - centres)  # (paddles, ends, points)
    return list(away.min(axis=1).argmin(axis=0))
