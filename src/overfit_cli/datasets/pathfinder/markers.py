"""Places of the two discs: the label is a coin that the distance between them can't give away."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from overfit_cli.datasets.pathfinder.paddles import (
    Bools,
    Integers,
    Paddles,
    Points,
    outside,
)
from overfit_cli.datasets.pathfinder.settings import PathfinderSettings


@dataclass(frozen=True)
class Marked:
    """Scenes with their discs.

    Attributes:
        targets: the first contour, then the second, shape (scenes, 2 · contour_length).
        markers: the discs' centres x + iy, shape (scenes, 2).
        labels: 1 where one contour connects them and 0 where none does, shape (scenes,).
    """

    targets: Paddles
    markers: Points
    labels: Integers


def matches(settings: PathfinderSettings, targets: Paddles) -> Bools:
    """Say which ends of the other contour are as far from a contour's end as its own other end.

    As in Linsley et al., one disc lies where a contour begins and the other where one ends. So
    there are two ways to connect, i, and two not to, j, and any i and j share one disc. They match
    where their distances differ by less than the tolerance, and the discs don't touch; with
    `matched` places, the scene must also stay inside the image when turned over (see `place`).

    Args:
        settings: hold the tolerance, the discs' radius and the contours' length.
        targets: the first contour, then the second, shape (scenes, 2 · contour_length).

    Returns:
        Shape (scenes, 2, 2), by i and j.
    """
    shared, connected, apart = _ways(settings, targets)
    near, far = np.abs(connected - shared), np.abs(apart - shared)
    close = np.abs(near - far) < settings.distance_tolerance
    found = close & (np.minimum(near, far) > 2 * settings.marker_radius + 1)
    if settings.matched == "places":
        every = np.arange(len(targets.middles))
        for i, j in np.ndindex(2, 2):
            turned = _turned_over(settings, targets, every, (i, j))
            found[:, i, j] &= ~outside(settings, turned).any(axis=1)
    return np.asarray(found)


def place(settings: PathfinderSettings, random: np.random.Generator, targets: Paddles) -> Marked:
    """Throw a fair coin in each scene, and put its discs where the coin says.

    A scene is drawn before its label, and holds a connected and an unconnected pair of ends that
    share one end and are equally far apart. The coin decides between them: only where the second
    disc lies depends on the label, and the distance between the discs doesn't, up to the tolerance.

    With `matched` places, a second coin turns the scene over about the disc that both pairs share,
    so that the unconnected pair comes to lie where the connected one did, and a third one lays the
    second disc as far from the first as either pair's ends are, at most the tolerance off the
    contour's end. Then each label has its discs at the same places equally often, and places tell
    nothing.

    Args:
        settings: as for `matches`.
        random: what the coins and the choice between several matches are drawn with.
        targets: scenes that have a match, shape (scenes, 2 · contour_length).
    """
    scenes = np.arange(len(targets.middles))
    chances = random.random((len(scenes), 4)) * matches(settings, targets).reshape(-1, 4)
    chosen = np.divmod(chances.argmax(axis=1), 2)
    labels = random.integers(0, 2, len(scenes))
    if settings.matched == "places":
        over = np.flatnonzero(random.integers(0, 2, len(scenes)))
        turned = _turned_over(settings, targets, over, (chosen[0][over], chosen[1][over]))
        targets.put(over, turned)
    shared, connected, apart = (each[scenes, *chosen] for each in _ways(settings, targets))
    other = np.where(labels == 1, connected, apart)
    if settings.matched == "places":
        # The tolerance leaves two lengths: which of them the disc lies at is a coin of its own.
        lengths = np.abs(np.stack([connected, apart]) - shared)
        length = lengths[random.integers(0, 2, len(scenes)), scenes]
        other = shared + (other - shared) / np.abs(other - shared) * length
    return Marked(targets, np.stack([shared, other], axis=1), labels)


def _turned_over(
    settings: PathfinderSettings,
    targets: Paddles,
    scenes: Integers,
    match: tuple[int, int] | tuple[NDArray[np.int64], NDArray[np.int64]],
) -> Paddles:
    """Mirror scenes in the line that halves the angle between a match's two pairs of ends.

    The end that both share stays, and the unconnected one comes to lie in the direction of the
    connected one, and the other way round.

    Args:
        settings: hold the contours' length.
        targets: the first contour, then the second, shape (all scenes, 2 · contour_length).
        scenes: which of them, shape (scenes,).
        match: its i and j, see `matches`.
    """
    chosen = targets.take(scenes)
    every = np.arange(len(scenes))
    shared, connected, apart = (each[every, *match] for each in _ways(settings, chosen))
    turn = ((connected - shared) * (apart - shared))[:, None]
    turn /= np.maximum(np.abs(turn), np.finfo(np.float64).tiny)
    middles = shared[:, None] + turn * (chosen.middles - shared[:, None]).conj()
    return Paddles(middles, turn * chosen.directions.conj())


def _ways(settings: PathfinderSettings, targets: Paddles) -> tuple[Points, Points, Points]:
    """Return the end that both pairs share, the one connected to it, and the one that isn't.

    Each has shape (scenes, 2, 2), by which contour connects, i, and where the unconnected pair
    begins, j: with i = j both pairs begin there, else both end where contour i does.
    """
    first, last = targets.ends(settings)
    length = settings.contour_length
    begins, stops = first[:, [0, length]], last[:, [length - 1, 2 * length - 1]]  # (scenes, 2)
    same = np.eye(2, dtype=bool)
    i, j = np.indices((2, 2))
    shared = np.where(same, begins[:, i], stops[:, i])
    connected = np.where(same, stops[:, i], begins[:, i])
    apart = np.where(same, stops[:, 1 - i], begins[:, j])
    return shared, connected, apart
