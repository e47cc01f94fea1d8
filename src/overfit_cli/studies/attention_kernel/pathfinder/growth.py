"""How a contour goes on: one paddle in each of many scenes (Linsley et al. 2018)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from overfit_cli.studies.attention_kernel.pathfinder.paddles import (
    Bools,
    Integers,
    Paddles,
    Points,
    blocked,
)
from overfit_cli.studies.attention_kernel.pathfinder.settings import PathfinderSettings

TURNS_TRIED = 6
"""How many turns a contour tries before it counts as stuck."""


@dataclass(frozen=True)
class Placement:
    """The first try that fits, in each scene.

    Attributes:
        paddle: shape (scenes, 1); meaningless where nothing fits.
        fits: shape (scenes,).
    """

    paddle: Paddles
    fits: Bools


def extend(
    settings: PathfinderSettings, random: np.random.Generator, placed: Paddles, last: Integers
) -> Placement:
    """Let a contour of each scene go on by one paddle, after the one in column `last`.

    The first of several turns that fits is a draw from the law of a turn, given that it fits.
    """
    before = placed.take((np.arange(len(last)), last))
    turns = _turns(settings, random, (len(last), TURNS_TRIED))
    directions = before.directions[:, None] * np.exp(1j * turns)
    half = settings.stride / 2
    middles = (before.middles + half * before.directions)[:, None] + half * directions
    tries = Paddles(middles, directions)
    return first_that_fits(tries, blocked(settings, tries, placed, last))


def _turns(
    settings: PathfinderSettings, random: np.random.Generator, shape: tuple[int, int]
) -> NDArray[np.float64]:
    """Draw turns δ of density ∝ cos²(cδ): sin(cδ) is then a coordinate of a point of the disc."""
    radius, angle = random.random((2, *shape))
    height = np.sqrt(radius) * np.cos(2 * np.pi * angle)
    return np.asarray(np.arcsin(height) / settings.continuity)


def any_direction(random: np.random.Generator, shape: tuple[int, ...]) -> Points:
    """Draw directions of absolute value 1, all as likely."""
    return np.asarray(np.exp(2j * np.pi * random.random(shape)))


def first_that_fits(tries: Paddles, is_blocked: Bools) -> Placement:
    """Take the first try of each scene that isn't blocked; both have shape (scenes, tries)."""
    chosen = np.argmin(is_blocked, axis=1)[:, None]
    paddle = Paddles(
        np.take_along_axis(tries.middles, chosen, axis=1),
        np.take_along_axis(tries.directions, chosen, axis=1),
    )
    return Placement(paddle, np.asarray(~is_blocked.all(axis=1)))
