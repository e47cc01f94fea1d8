"""Scenes: the geometry of Pathfinder images, before any pixel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from overfit_cli.datasets.pathfinder.contours import (
    SHARE_LEFT,
    add_distractors,
    grow_targets,
)
from overfit_cli.datasets.pathfinder.markers import place
from overfit_cli.datasets.pathfinder.paddles import Integers, Paddles, Points
from overfit_cli.datasets.pathfinder.settings import PathfinderSettings
from overfit_cli.errors import UserError

MOST_TRIES = 40
"""How many tries a scene may take on average before the settings are called impossible."""


@dataclass(frozen=True)
class Scenes:
    """What is to be seen; lengths are in pixels.

    Attributes:
        paddles: shape (scenes, paddles): those of the two targets, then those of the distractors.
        markers: the discs' centres x + iy, shape (scenes, 2).
        labels: 1 where a contour connects the discs, else 0, shape (scenes,).
    """

    paddles: Paddles
    markers: Points
    labels: Integers

    @property
    def distances(self) -> NDArray[np.float64]:
        """How far apart the discs are, shape (scenes,)."""
        return np.abs(self.markers[:, 1] - self.markers[:, 0])


def contour_of_paddles(settings: PathfinderSettings) -> Integers:
    """Return which contour each paddle belongs to, shape (paddles,); 0 and 1 are the targets."""
    targets = np.repeat(np.arange(2), settings.contour_length)
    distractors = np.repeat(np.arange(settings.distractors), settings.distractor_length)
    return np.concatenate([targets, 2 + distractors])


def draw_scenes(settings: PathfinderSettings, random: np.random.Generator, scenes: int) -> Scenes:
    """Draw `scenes` independent scenes.

    The label is a coin that is thrown when the targets lie (see `place`); distractors are laid
    without regard to it.

    Raises:
        UserError: if hardly any scene can be filled.
    """
    rounds: list[Scenes] = []
    missing, tried, share = scenes, 0, 1 - SHARE_LEFT
    while missing > 0:
        starts = int(1.1 * missing / share) + 8
        tried += starts
        if tried > MOST_TRIES * scenes:
            raise UserError(_hardly_ever_fits(settings))
        marked = place(settings, random, grow_targets(settings, random, starts))
        paddles, kept = add_distractors(settings, random, marked.targets)
        rounds.append(Scenes(paddles, marked.markers[kept], marked.labels[kept]))
        missing -= len(kept)
        share = max(len(kept), 1) / starts
    return Scenes(
        Paddles(
            np.concatenate([part.paddles.middles for part in rounds])[:scenes],
            np.concatenate([part.paddles.directions for part in rounds])[:scenes],
        ),
        np.concatenate([part.markers for part in rounds])[:scenes],
        np.concatenate([part.labels for part in rounds])[:scenes],
    )


def _hardly_ever_fits(settings: PathfinderSettings) -> str:
    return (
        f"size {settings.size}: two contours of {settings.contour_length} paddles and"
        f" {settings.distractors} distractors of {settings.distractor_length} hardly ever fit in"
        " it with two pairs of ends equally far apart; take a larger size, fewer or shorter"
        " contours, or a smaller continuity."
    )
