"""Places of the two discs: the label is a coin that the distance between them can't give away."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from overfit_cli.datasets.pathfinder.paddles import (
    Bools,
    Paddles,
    Points,
)
from overfit_cli.datasets.pathfinder.settings import PathfinderSettings


def matches(settings: PathfinderSettings, targets: Paddles) -> Bools:
    """Say which ends of the other contour are as far from a contour's end as its own other end.

    As in Linsley et al., one disc lies where a contour begins and the other where one ends. So
    there are two ways to connect, i, and two not to, j, and any i and j share one disc. They match
    where their distances differ by less than the tolerance, and the discs don't touch.

    Args:
        settings: hold the tolerance, the discs' radius and the contours' length.
        targets: the first contour, then the second, shape (scenes, 2 · contour_length).

    Returns:
        Shape (scenes, 2, 2), by i and j.
    """
    connected, apart = np.abs(_ways(settings, targets))
    close = np.abs(connected[:, :, None] - apart[:, None, :]) < settings.distance_tolerance
    clear = np.minimum(connected[:, :, None], apart[:, None, :]) > 2 * settings.marker_radius + 1
    return np.asarray(close & clear)


def place(
    settings: PathfinderSettings, random: np.random.Generator, targets: Paddles
) -> tuple[Points, NDArray[np.int64]]:
    """Throw a fair coin in each scene, and put its discs where the coin says.

    A scene is drawn before its label, and holds a connected and an unconnected pair of ends that
    share one end and are equally far apart. The coin decides between them: only where the second
    disc lies depends on the label, and the distance between the discs doesn't, up to the tolerance.

    Args:
        settings: as for `matches`.
        random: what the coin and the choice between several matches are drawn with.
        targets: scenes that have a match, shape (scenes, 2 · contour_length).

    Returns:
        The discs' centres, shape (scenes, 2), and the labels, 1 where one contour connects them
        and 0 where none does, shape (scenes,).
    """
    scenes = np.arange(len(targets.middles))
    chances = random.random((len(scenes), 4)) * matches(settings, targets).reshape(-1, 4)
    chosen = chances.argmax(axis=1)
    labels = random.integers(0, 2, len(scenes))
    contour = np.where(labels == 1, chosen // 2, chosen % 2)
    other = np.where(labels == 1, contour, 1 - contour)
    begins, stops = _begins_and_stops(settings, targets)
    return np.stack([begins[scenes, contour], stops[scenes, other]], axis=1), labels


def _ways(settings: PathfinderSettings, targets: Paddles) -> Points:
    """Return the steps between discs, shape (2, scenes, 2): connected or not, from contour i."""
    begins, stops = _begins_and_stops(settings, targets)
    return np.stack([stops - begins, stops[:, ::-1] - begins])


def _begins_and_stops(settings: PathfinderSettings, targets: Paddles) -> tuple[Points, Points]:
    """Return where the two contours begin and where they end, shape (scenes, 2) each."""
    first, last = targets.ends(settings)
    length = settings.contour_length
    return first[:, [0, length]], last[:, [length - 1, 2 * length - 1]]
