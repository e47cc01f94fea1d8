"""Settings of a Pathfinder image, and the paddles of its contours.

Defaults are LRA's hard 32 × 32 images (Tay et al. 2020). Paddles are segments of the complex plane;
`is_blocked` finds those that would touch.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from overfit_cli.core.errors import UserError

LARGEST = 1024
"""The largest value of any setting."""

MINIMA = {
    "size": 8,
    "contour_length": 2,
    "distractors": 0,
    "distractor_length": 1,
    "antialiasing": 1,
    "continuity": 1.0,
    "paddle_margin": 0.25,
}
"""The least values of some settings; the others are above 0."""

_FULLEST = 0.6  # Random contours hardly ever fill half of an image.


@dataclass(frozen=True)
class PathfinderSettings:
    """Parameters of Linsley et al. 2018 (section 3.1 and their generator); lengths are in pixels.

    Attributes:
        contour_length: number of paddles of each of the two target contours.
        paddle_margin: the gap of a contour before and after each paddle.
        continuity: c of a turn, whose density is ∝ cos²(cδ) for |δ| ≤ π / 2c; larger is straighter.
        seed_distance: distance between the first ends of the two target contours.
        distance_tolerance: the largest difference between the disc distances of the connected and
            the unconnected pair of a scene.
        matched: the property that is independent of the label: the discs' distance, or their
            places.
        antialiasing: points per pixel and axis at which ink is evaluated.
    """

    size: int = 32
    contour_length: int = 14
    paddle_length: float = 2.0
    paddle_thickness: float = 0.5
    paddle_margin: float = 0.5
    continuity: float = 1.0
    distractors: int = 5
    distractor_length: int = 4
    marker_radius: float = 1.5
    seed_distance: float = 7.0
    distance_tolerance: float = 0.5
    matched: Literal["distance", "places"] = "distance"
    antialiasing: int = 2

    def __post_init__(self) -> None:
        for field in fields(self):
            if field.name != "matched":
                self._check_range(field.name)
        self._check_room()

    @property
    def stride(self) -> float:
        """The length that a paddle adds to a contour: the paddle and a margin on either side."""
        return self.paddle_length + 2 * self.paddle_margin

    @property
    def clearance(self) -> float:
        """The least distance between the middle lines of paddles that are not successive.

        It is wider than a contour's gaps, and keeps a contour clear of a disc on any end of
        another.
        """
        return self.paddle_thickness + max(3 * self.paddle_margin, self.marker_radius + 0.25)

    @property
    def border(self) -> float:
        """The width that contours leave free at the edges, so that a disc on any end is whole."""
        return max(self.marker_radius, self.paddle_thickness / 2)

    @property
    def paddles(self) -> int:
        """The number of paddles of an image."""
        return 2 * self.contour_length + self.distractors * self.distractor_length

    def _check_range(self, name: str) -> None:
        value = getattr(self, name)
        is_integer = isinstance(type(self).__dataclass_fields__[name].default, int)
        minimum = MINIMA.get(name, 0)
        valid = math.isfinite(value) and minimum <= value <= LARGEST
        if not valid or (is_integer and value != int(value)) or (name not in MINIMA and value == 0):
            kind = "a whole number" if is_integer else "a number"
            start = f"from {minimum:g}" if name in MINIMA else "above 0 and"
            raise UserError(f"{name} {value}: it takes {kind} {start} up to {LARGEST}.")

    def _check_room(self) -> None:
        if self.size * self.antialiasing > LARGEST:
            raise UserError(
                f"size {self.size} times antialiasing {self.antialiasing}: that makes more than"
                f" {LARGEST} points across an image; take less of either."
            )
        field = self.size - 2 * self.border
        if field < max(self.stride, self.seed_distance):
            raise UserError(
                f"size {self.size}: that leaves {max(field, 0):g} pixels between the borders, too"
                f" few for seed_distance {self.seed_distance:g} and steps of {self.stride:g};"
                " take a larger size, or smaller ones of those."
            )
        required = self.paddles * self.stride * self.clearance
        room = (field + self.clearance) ** 2
        if required > _FULLEST * room:
            raise UserError(
                f"size {self.size}: two contours of {self.contour_length} paddles and"
                f" {self.distractors} distractors of {self.distractor_length} take about"
                f" {required:.0f} square pixels with what they keep clear, too many of the"
                f" {room:.0f} there are; take a larger size, or fewer or shorter contours."
            )


Points = NDArray[np.complex128]
Bools = NDArray[np.bool_]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Paddles:
    """Segments of one length; a point (x, y), in pixels from the upper left corner, is x + iy.

    Middles and directions (of absolute value 1) have shape (scenes, paddles).
    """

    middles: Points
    directions: Points

    def ends(self, settings: PathfinderSettings) -> Points:
        """Return the first and the last point of each, shape (2, scenes, paddles)."""
        half = settings.paddle_length / 2 * self.directions
        return np.stack([self.middles - half, self.middles + half])

    def take(self, index: Any) -> Paddles:
        """Return the paddles at a NumPy index."""
        return Paddles(self.middles[index], self.directions[index])

    def put(self, index: Any, paddles: Paddles) -> None:
        """Overwrite the paddles at a NumPy index."""
        self.middles[index] = paddles.middles
        self.directions[index] = paddles.directions

    def flat(self) -> Paddles:
        """Return the paddles as one row, shape (scenes · paddles,)."""
        return Paddles(self.middles.ravel(), self.directions.ravel())

    def append(self, *added: Paddles) -> Paddles:
        """Return these and then `added`, along the axis of paddles."""
        parts = (self, *added)
        return Paddles(
            np.concatenate([part.middles for part in parts], axis=1),
            np.concatenate([part.directions for part in parts], axis=1),
        )


def is_blocked(
    settings: PathfinderSettings, tries: Paddles, placed: Paddles, skip: Integers | None = None
) -> Bools:
    """Find the tries that would cross the border or come too close to a placed paddle.

    Tries and the result have shape (scenes, tries). `skip` is in each scene the column of the
    paddle that a try follows on its contour, which may be close to it.
    """
    result = crosses_border(settings, tries)
    offsets = tries.middles[:, :, None] - placed.middles[:, None, :]
    close = offsets.real**2 + offsets.imag**2 < (settings.paddle_length + settings.clearance) ** 2
    close &= ~result[:, :, None]
    if skip is not None:
        close[np.arange(len(skip)), :, skip] = False
    scene, attempt, neighbour = np.nonzero(close)
    touching = _are_touching(
        settings,
        offsets[scene, attempt, neighbour],
        tries.directions[scene, attempt],
        placed.directions[scene, neighbour],
    )
    result[scene[touching], attempt[touching]] = True
    return result


def crosses_border(settings: PathfinderSettings, tries: Paddles) -> Bools:
    """Find the paddles that cross the border; the shape is that of their middles."""
    ends = tries.ends(settings)
    low, high = settings.border, settings.size - settings.border
    contained = (ends.real >= low) & (ends.real <= high) & (ends.imag >= low) & (ends.imag <= high)
    return np.asarray(~contained.all(axis=0))


def _are_touching(
    settings: PathfinderSettings, offsets: Points, directions: Points, other_directions: Points
) -> Bools:
    """Find the pairs of segments that cross or are closer than the clearance, shape (pairs,).

    Two segments that do not cross are closest at an end of one of them. The coordinates of that end
    in the frame of the other segment give its distance.
    """
    half = settings.paddle_length / 2
    sides = np.array([[-half], [half]])
    touching = np.zeros(offsets.shape, dtype=np.bool_)
    crossing = ~touching
    for ends in (
        (offsets + sides * directions) * other_directions.conj(),
        (sides * other_directions - offsets) * directions.conj(),
    ):
        overhang = np.maximum(np.abs(ends.real) - half, 0)
        touching |= (overhang**2 + ends.imag**2 < settings.clearance**2).any(axis=0)
        crossing &= ends.imag[0] * ends.imag[1] <= 0
    return touching | crossing
