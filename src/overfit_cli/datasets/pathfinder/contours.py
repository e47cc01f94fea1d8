"""Contours that grow paddle by paddle, in many scenes at once (Linsley et al. 2018)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from overfit_cli.datasets.pathfinder.markers import matches
from overfit_cli.datasets.pathfinder.paddles import Bools, Integers, Paddles, Points, blocked
from overfit_cli.datasets.pathfinder.settings import PathfinderSettings

TURNS_TRIED = 6
"""How many turns a contour tries before it counts as stuck."""

# How often what doesn't fit is tried again; measured to be fastest at LRA's hard settings.
MOST_TAKEN_BACK = 4
STEPS_PER_PADDLE = 16
SEEDS_TRIED = 12
DISTRACTORS_TRIED = 24
SHARE_LEFT = 0.5
"""The share of the scenes begun that may be left unfilled: the last ones would cost the most."""

_NOWHERE = -1e9 + 0j  # where paddles lie that aren't there: near to nothing


def grow_targets(settings: PathfinderSettings, random: np.random.Generator, scenes: int) -> Paddles:
    """Grow two contours in turn, a paddle at a time, in each of `scenes` empty scenes.

    Where Linsley et al. start all over when a contour runs into a dead end, the last few paddles
    are taken back here, and so they are where no two pairs of ends `match` (see `markers`).

    Returns:
        Shape (scenes that were filled in time, 2 · contour_length): first one contour, then the
        other.
    """
    seeds = _seeds(settings, random, scenes)
    shape = (len(seeds.middles), 2 * settings.contour_length)
    placed = Paddles(np.full(shape, _NOWHERE), np.ones(shape, dtype=complex))
    placed.put(np.s_[:, :2], seeds)
    counts, growing = np.full(shape[0], 2), np.arange(shape[0])
    for _ in range(STEPS_PER_PADDLE * shape[1]):
        growing = growing[counts[growing] < shape[1]]
        if len(growing) <= shape[0] * SHARE_LEFT:
            break
        counts[growing] = _grow_or_take_back(settings, random, placed, growing, counts[growing])
    return _one_after_the_other(placed.take(counts == shape[1]))


def _grow_or_take_back(
    settings: PathfinderSettings,
    random: np.random.Generator,
    placed: Paddles,
    growing: Integers,
    counts: Integers,
) -> Integers:
    """Add a paddle in place to each growing scene, or take some back where that leads nowhere.

    The contours grow in turn, so the last paddle of the one whose turn it is comes second from
    the end.

    Args:
        settings, random: how paddles are drawn, and the random numbers for it.
        placed: shape (scenes, paddles).
        growing: which scenes these are, shape (growing,).
        counts: how many paddles each of them has, shape (growing,).

    Returns:
        How many each has now, shape (growing,).
    """
    step = extend(settings, random, placed.take(growing), counts - 2)
    placed.put((growing[step.fits], counts[step.fits]), step.paddle.take(step.fits).flat())
    counts, stuck = counts + step.fits, ~step.fits
    full = counts == placed.middles.shape[1]
    targets = _one_after_the_other(placed.take(growing[full]))
    stuck[full] = ~matches(settings, targets).any(axis=(1, 2))
    back = random.integers(1, MOST_TAKEN_BACK + 1, len(growing))
    counts = np.where(stuck, np.maximum(counts - back, 2), counts)
    taken = np.arange(placed.middles.shape[1]) >= counts[:, None]
    placed.middles[growing] = np.where(taken, _NOWHERE, placed.middles[growing])
    return counts


def _one_after_the_other(in_turn: Paddles) -> Paddles:
    """Sort paddles that were laid in turn by contour, shape (scenes, 2 · contour_length)."""
    return in_turn.take(np.s_[:, 0::2]).then(in_turn.take(np.s_[:, 1::2]))


def add_distractors(
    settings: PathfinderSettings, random: np.random.Generator, targets: Paddles
) -> tuple[Paddles, Integers]:
    """Add the distractors to scenes; each is tried a few times where it meets something.

    Returns:
        The distractors' paddles after the targets', shape (scenes that took them all, paddles), and
        which scenes those are.
    """
    placed, which = targets, np.arange(len(targets.middles))
    for _ in range(settings.distractors):
        shape = (len(placed.middles), settings.distractor_length)
        chains = Paddles(np.full(shape, _NOWHERE), np.ones(shape, dtype=complex))
        missing = np.arange(shape[0])
        for _ in range(DISTRACTORS_TRIED):
            chain, grown = _grow_distractor(settings, random, placed.take(missing))
            chains.put(missing[grown], chain)
            missing = missing[~grown]
            if not len(missing):
                break
        placed = placed.then(chains)
        placed, which = placed.take(kept := np.delete(np.arange(shape[0]), missing)), which[kept]
    return placed, which


def _grow_distractor(
    settings: PathfinderSettings, random: np.random.Generator, placed: Paddles
) -> tuple[Paddles, Bools]:
    """Grow one short contour in each scene.

    Returns:
        Its paddles, shape (scenes where it fits, distractor_length), and which scenes those are,
        shape (scenes,).
    """
    first = placed.middles.shape[1]
    where = random.random((2, len(placed.middles), SEEDS_TRIED)) * settings.size
    tries = Paddles(where[0] + 1j * where[1], any_direction(random, where[0].shape))
    step = first_that_fits(tries, blocked(settings, tries, placed))
    alive = np.flatnonzero(step.fits)
    scene = placed.then(step.paddle).take(alive)
    for _ in range(settings.distractor_length - 1):
        last = np.full(len(alive), scene.middles.shape[1] - 1)
        step = extend(settings, random, scene, last)
        scene, alive = scene.then(step.paddle).take(step.fits), alive[step.fits]
    grown = np.zeros(len(placed.middles), dtype=np.bool_)
    grown[alive] = True
    return scene.take(np.s_[:, first:]), grown


def _seeds(settings: PathfinderSettings, random: np.random.Generator, scenes: int) -> Paddles:
    """Place both contours' first paddles, `seed_distance` apart; shape (scenes that are left, 2).

    As in Linsley et al., the first begins near the centre, at least 2 · seed_distance from the
    edges where the image is that large, so that both contours have room.
    """
    reach = max(settings.size / 2 - 2 * settings.seed_distance, settings.size / 16)
    x, y = settings.size / 2 + reach * random.uniform(-1, 1, (2, scenes, 1))
    apart = settings.seed_distance * any_direction(random, (scenes, 1))
    starts = x + 1j * y + apart * np.arange(2)
    directions = any_direction(random, (scenes, 2))
    both = Paddles(starts + settings.paddle_length / 2 * directions, directions)
    first, second = both.take(np.s_[:, :1]), both.take(np.s_[:, 1:])
    none = both.take(np.s_[:, :0])
    free = ~(blocked(settings, first, none) | blocked(settings, second, first))
    return both.take(free[:, 0])


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

    The first of several turns that fits is a draw from the turns' distribution, given that it fits.
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
