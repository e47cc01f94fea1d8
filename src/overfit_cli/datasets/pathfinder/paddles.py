"""Paddles as segments of the complex plane, and which of them would touch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from overfit_cli.datasets.pathfinder.settings import PathfinderSettings

Points = NDArray[np.complex128]
Bools = NDArray[np.bool_]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Paddles:
    """Segments of one length; a point (x, y), in pixels from the upper left corner, is x + iy.

    Attributes:
        middles: shape (scenes, paddles).
        directions: of absolute value 1, shape (scenes, paddles).
    """

    middles: Points
    directions: Points

    def ends(self, settings: PathfinderSettings) -> Points:
        """Return where each begins and ends, shape (2, scenes, paddles)."""
        half = settings.paddle_length / 2 * self.directions
        return np.stack([self.middles - half, self.middles + half])

    def take(self, index: Any) -> Paddles:
        """Return the paddles that a NumPy index picks."""
        return Paddles(self.middles[index], self.directions[index])

    def put(self, index: Any, paddles: Paddles) -> None:
        """Overwrite the paddles that a NumPy index picks."""
        self.middles[index] = paddles.middles
        self.directions[index] = paddles.directions

    def flat(self) -> Paddles:
        """Return the paddles as one row, shape (scenes · paddles,)."""
        return Paddles(self.middles.ravel(), self.directions.ravel())

    def then(self, *more: Paddles) -> Paddles:
        """Return these and then `more`, along the axis of paddles."""
        parts = (self, *more)
        return Paddles(
            np.concatenate([part.middles for part in parts], axis=1),
            np.concatenate([part.directions for part in parts], axis=1),
        )


def blocked(
    settings: PathfinderSettings, tries: Paddles, placed: Paddles, skip: Integers | None = None
) -> Bools:
    """Say which tries would leave the image or come too near to a placed paddle.

    Args:
        settings: say how near is too near.
        tries: shape (scenes, tries).
        placed: shape (scenes, paddles).
        skip: in each scene, the column of `placed` that a try follows on its contour, and may be
            near to; shape (scenes,).

    Returns:
        Shape (scenes, tries).
    """
    result = outside(settings, tries)
    offsets = tries.middles[:, :, None] - placed.middles[:, None, :]
    near = offsets.real**2 + offsets.imag**2 < (settings.paddle_length + settings.clearance) ** 2
    near &= ~result[:, :, None]
    if skip is not None:
        near[np.arange(len(skip)), :, skip] = False
    scene, which, other = np.nonzero(near)
    touching = _touching(
        settings,
        offsets[scene, which, other],
        tries.directions[scene, which],
        placed.directions[scene, other],
    )
    result[scene[touching], which[touching]] = True
    return result


def outside(settings: PathfinderSettings, tries: Paddles) -> Bools:
    """Say which paddles cross the border, of the shape of their middles."""
    ends = tries.ends(settings)
    low, high = settings.border, settings.size - settings.border
    inside = (ends.real >= low) & (ends.real <= high) & (ends.imag >= low) & (ends.imag <= high)
    return np.asarray(~inside.all(axis=0))


def _touching(
    settings: PathfinderSettings, offsets: Points, directions: Points, others: Points
) -> Bools:
    """Say which pairs of segments cross or come nearer than the clearance, shape (pairs,).

    Two segments that don't cross are nearest at an end of one of them. Turned into the frame of
    the other segment, that end's distance is read off its coordinates.

    Args:
        settings: hold the segments' length and the clearance.
        offsets: from the middle of each other segment to this one's, shape (pairs,).
        directions, others: the segments' directions, shape (pairs,).
    """
    half = settings.paddle_length / 2
    sides = np.array([[-half], [half]])
    touching = np.zeros(offsets.shape, dtype=np.bool_)
    crossing = ~touching
    for ends in (
        (offsets + sides * directions) * others.conj(),
        (sides * others - offsets) * directions.conj(),
    ):
        beyond = np.maximum(np.abs(ends.real) - half, 0)
        touching |= (beyond**2 + ends.imag**2 < settings.clearance**2).any(axis=0)
        crossing &= ends.imag[0] * ends.imag[1] <= 0
    return touching | crossing
