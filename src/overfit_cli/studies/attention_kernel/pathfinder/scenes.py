"""Geometry of Pathfinder images: contours, distractors and discs, before any pixel.

Contours grow paddle by paddle, in many scenes at once (Linsley et al. 2018). The label is a fair
coin, and independent of the distance between the two discs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from overfit_cli.core.errors import UserError
from overfit_cli.studies.attention_kernel.pathfinder.paddles import (
    Bools,
    Integers,
    Paddles,
    PathfinderSettings,
    Points,
    crosses_border,
    is_blocked,
)

TURNS_TRIED = 6
"""The number of turns that a contour tries before it counts as stuck."""
# The numbers of further tries; measured to be fastest at LRA's hard settings.
MOST_STEPS_BACK = 4
STEPS_PER_PADDLE = 16
SEEDS_TRIED = 12
DISTRACTORS_TRIED = 24

SHARE_UNFILLED = 0.5
"""The share of started scenes that may stay unfilled: the last ones would cost the most."""

MOST_TRIES = 40
"""The average number of tries of a scene above which the settings are called impossible."""

_NOWHERE = -1e9 + 0j  # the position of absent paddles: far from all others


@dataclass(frozen=True)
class Scenes:
    """The geometry of images: paddles of the two targets, then of the distractors.

    Markers are the discs' centres x + iy, shape (scenes, 2); labels are 1 where a contour connects
    them, shape (scenes,).
    """

    paddles: Paddles
    markers: Points
    labels: Integers

    @property
    def distances(self) -> NDArray[np.float64]:
        """The distances between the discs, shape (scenes,)."""
        return np.abs(self.markers[:, 1] - self.markers[:, 0])


def draw_scenes(settings: PathfinderSettings, random: np.random.Generator, scenes: int) -> Scenes:
    """Draw `scenes` independent scenes.

    The label is a coin that is thrown after the targets are placed (see `place_markers`); the
    distractors are independent of it.
    """
    rounds: list[Scenes] = []
    missing, tried, share = scenes, 0, 1 - SHARE_UNFILLED
    while missing > 0:
        starts = int(1.1 * missing / share) + 8
        tried += starts
        if tried > MOST_TRIES * scenes:
            raise UserError(_impossible_message(settings))
        marked = place_markers(settings, random, grow_targets(settings, random, starts))
        paddles, filled = add_distractors(settings, random, marked.targets)
        rounds.append(Scenes(paddles, marked.markers[filled], marked.labels[filled]))
        missing -= len(filled)
        share = max(len(filled), 1) / starts
    return Scenes(
        Paddles(
            np.concatenate([part.paddles.middles for part in rounds])[:scenes],
            np.concatenate([part.paddles.directions for part in rounds])[:scenes],
        ),
        np.concatenate([part.markers for part in rounds])[:scenes],
        np.concatenate([part.labels for part in rounds])[:scenes],
    )


def _impossible_message(settings: PathfinderSettings) -> str:
    return (
        f"size {settings.size}: two contours of {settings.contour_length} paddles and"
        f" {settings.distractors} distractors of {settings.distractor_length} hardly ever fit in"
        " it with two pairs of ends equally far apart; take a larger size, fewer or shorter"
        " contours, or a smaller continuity."
    )


def grow_targets(settings: PathfinderSettings, random: np.random.Generator, scenes: int) -> Paddles:
    """Grow two contours in turn, a paddle at a time, in each of `scenes` empty scenes.

    Where a contour is stuck, Linsley et al. start again; here its last few paddles are removed. The
    same is done where no two pairs of ends match (see `matches`).

    Returns:
        Shape (filled scenes, 2 · contour_length): the first contour, then the second.
    """
    seeds = _seeds(settings, random, scenes)
    shape = (len(seeds.middles), 2 * settings.contour_length)
    placed = Paddles(np.full(shape, _NOWHERE), np.ones(shape, dtype=complex))
    placed.put(np.s_[:, :2], seeds)
    counts, growing = np.full(shape[0], 2), np.arange(shape[0])
    for _ in range(STEPS_PER_PADDLE * shape[1]):
        growing = growing[counts[growing] < shape[1]]
        if len(growing) <= shape[0] * SHARE_UNFILLED:
            break
        counts[growing] = _grow_or_take_back(settings, random, placed, growing, counts[growing])
    return _sort_by_contour(placed.take(counts == shape[1]))


def _seeds(settings: PathfinderSettings, random: np.random.Generator, scenes: int) -> Paddles:
    """Place both contours' first paddles, `seed_distance` apart; shape (scenes with room, 2).

    As in Linsley et al., the first begins near the centre, at least 2 · seed_distance from the
    edges where the image is large enough, so that both contours have room.
    """
    reach = max(settings.size / 2 - 2 * settings.seed_distance, settings.size / 16)
    x, y = settings.size / 2 + reach * random.uniform(-1, 1, (2, scenes, 1))
    offset = settings.seed_distance * any_direction(random, (scenes, 1))
    starts = x + 1j * y + offset * np.arange(2)
    directions = any_direction(random, (scenes, 2))
    first_paddles = Paddles(starts + settings.paddle_length / 2 * directions, directions)
    first, second = first_paddles.take(np.s_[:, :1]), first_paddles.take(np.s_[:, 1:])
    no_paddles = first_paddles.take(np.s_[:, :0])
    free = ~(is_blocked(settings, first, no_paddles) | is_blocked(settings, second, first))
    return first_paddles.take(free[:, 0])


def _grow_or_take_back(
    settings: PathfinderSettings,
    random: np.random.Generator,
    placed: Paddles,
    growing: Integers,
    counts: Integers,
) -> Integers:
    """Add a paddle in place to each growing scene, or remove some where it is stuck.

    The contours grow in turn, so the last paddle of the contour to extend is the second from the
    end. Returns the new number of paddles of each growing scene.
    """
    step = extend(settings, random, placed.take(growing), counts - 2)
    placed.put((growing[step.fits], counts[step.fits]), step.paddle.take(step.fits).flat())
    counts, stuck = counts + step.fits, ~step.fits
    full = counts == placed.middles.shape[1]
    targets = _sort_by_contour(placed.take(growing[full]))
    stuck[full] = ~matches(settings, targets).any(axis=(1, 2))
    steps_back = random.integers(1, MOST_STEPS_BACK + 1, len(growing))
    counts = np.where(stuck, np.maximum(counts - steps_back, 2), counts)
    removed = np.arange(placed.middles.shape[1]) >= counts[:, None]
    placed.middles[growing] = np.where(removed, _NOWHERE, placed.middles[growing])
    return counts


def _sort_by_contour(alternating: Paddles) -> Paddles:
    """Sort paddles of alternating contours by contour, shape (scenes, 2 · contour_length)."""
    return alternating.take(np.s_[:, 0::2]).append(alternating.take(np.s_[:, 1::2]))


def add_distractors(
    settings: PathfinderSettings, random: np.random.Generator, targets: Paddles
) -> tuple[Paddles, Integers]:
    """Add the distractors to scenes; each has a few tries where it is blocked.

    Returns all paddles of the scenes that are complete, and the indices of these scenes.
    """
    placed, scene_numbers = targets, np.arange(len(targets.middles))
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
        complete = np.delete(np.arange(shape[0]), missing)
        placed = placed.append(chains).take(complete)
        scene_numbers = scene_numbers[complete]
    return placed, scene_numbers


def _grow_distractor(
    settings: PathfinderSettings, random: np.random.Generator, placed: Paddles
) -> tuple[Paddles, Bools]:
    """Grow one short contour in each scene; return it where it fits, and whether it fits."""
    first = placed.middles.shape[1]
    position = random.random((2, len(placed.middles), SEEDS_TRIED)) * settings.size
    tries = Paddles(position[0] + 1j * position[1], any_direction(random, position[0].shape))
    step = first_fit(tries, is_blocked(settings, tries, placed))
    alive = np.flatnonzero(step.fits)
    scene = placed.append(step.paddle).take(alive)
    for _ in range(settings.distractor_length - 1):
        last = np.full(len(alive), scene.middles.shape[1] - 1)
        step = extend(settings, random, scene, last)
        scene, alive = scene.append(step.paddle).take(step.fits), alive[step.fits]
    grown = np.zeros(len(placed.middles), dtype=np.bool_)
    grown[alive] = True
    return scene.take(np.s_[:, first:]), grown


@dataclass(frozen=True)
class Placement:
    """The first try that fits, in each scene; a paddle has no meaning where none does."""

    paddle: Paddles
    fits: Bools


def extend(
    settings: PathfinderSettings, random: np.random.Generator, placed: Paddles, last: Integers
) -> Placement:
    """Extend a contour of each scene by one paddle, after the paddle in column `last`.

    The first turn that fits is a draw from the distribution of turns, given that it fits.
    """
    previous = placed.take((np.arange(len(last)), last))
    turns = _turns(settings, random, (len(last), TURNS_TRIED))
    directions = previous.directions[:, None] * np.exp(1j * turns)
    half = settings.stride / 2
    middles = (previous.middles + half * previous.directions)[:, None] + half * directions
    tries = Paddles(middles, directions)
    return first_fit(tries, is_blocked(settings, tries, placed, last))


def _turns(
    settings: PathfinderSettings, random: np.random.Generator, shape: tuple[int, int]
) -> NDArray[np.float64]:
    """Draw turns δ of density ∝ cos²(cδ): sin(cδ) is then a coordinate of a point of the disc."""
    radius, angle = random.random((2, *shape))
    height = np.sqrt(radius) * np.cos(2 * np.pi * angle)
    return np.asarray(np.arcsin(height) / settings.continuity)


def any_direction(random: np.random.Generator, shape: tuple[int, ...]) -> Points:
    """Draw directions of absolute value 1, uniformly."""
    return np.asarray(np.exp(2j * np.pi * random.random(shape)))


def first_fit(tries: Paddles, blocked: Bools) -> Placement:
    """Return the first try of each scene that is not blocked; both have shape (scenes, tries)."""
    index = np.argmin(blocked, axis=1)[:, None]
    paddle = Paddles(
        np.take_along_axis(tries.middles, index, axis=1),
        np.take_along_axis(tries.directions, index, axis=1),
    )
    return Placement(paddle, np.asarray(~blocked.all(axis=1)))


@dataclass(frozen=True)
class MarkedScenes:
    """Scenes with their discs; targets are the first contour, then the second."""

    targets: Paddles
    markers: Points
    labels: Integers


def place_markers(
    settings: PathfinderSettings, random: np.random.Generator, targets: Paddles
) -> MarkedScenes:
    """Draw the label of each scene with a fair coin, and place its discs accordingly.

    A scene is drawn before its label. It has a connected and an unconnected pair of ends that share
    one end and have the same distance, up to the tolerance. The coin chooses the pair: only the
    position of the second disc depends on the label, and the distance of the discs does not.

    With `matched` places, a second coin mirrors the scene at the disc that both pairs share, so
    that the unconnected pair lies where the connected one did. A third coin chooses the distance of
    the discs from those of the two pairs. Then positions are independent of the label.
    """
    scenes = np.arange(len(targets.middles))
    chances = random.random((len(scenes), 4)) * matches(settings, targets).reshape(-1, 4)
    match = np.divmod(chances.argmax(axis=1), 2)
    labels = random.integers(0, 2, len(scenes))
    if settings.matched == "places":
        mirrored = np.flatnonzero(random.integers(0, 2, len(scenes)))
        turned = _mirror(
            settings,
            targets,
            mirrored,
            (match[0][mirrored], match[1][mirrored]),
        )
        targets.put(mirrored, turned)
    shared, connected, unconnected = (
        ends[scenes, *match] for ends in _end_pairs(settings, targets)
    )
    second = np.where(labels == 1, connected, unconnected)
    if settings.matched == "places":
        # The two pairs differ in length by up to the tolerance: a coin chooses the length.
        lengths = np.abs(np.stack([connected, unconnected]) - shared)
        length = lengths[random.integers(0, 2, len(scenes)), scenes]
        second = shared + (second - shared) / np.abs(second - shared) * length
    return MarkedScenes(targets, np.stack([shared, second], axis=1), labels)


def matches(settings: PathfinderSettings, targets: Paddles) -> Bools:
    """Find the connected and unconnected pairs of ends that have the same distance.

    As in Linsley et al., one disc lies where a contour begins and the other where one ends. So
    there are two connected pairs, i, and two unconnected ones, j, and any i and j share one disc.
    They match where their distances differ by less than the tolerance and the discs do not touch;
    with `matched` places, the mirrored scene must also stay inside the image. Shape (scenes, 2, 2),
    by i and j.
    """
    shared, connected, unconnected = _end_pairs(settings, targets)
    connected_distance, apart_distance = np.abs(connected - shared), np.abs(unconnected - shared)
    close = np.abs(connected_distance - apart_distance) < settings.distance_tolerance
    matching = close & (
        np.minimum(connected_distance, apart_distance) > 2 * settings.marker_radius + 1
    )
    if settings.matched == "places":
        rows = np.arange(len(targets.middles))
        for i, j in np.ndindex(2, 2):
            turned = _mirror(settings, targets, rows, (i, j))
            matching[:, i, j] &= ~crosses_border(settings, turned).any(axis=1)
    return np.asarray(matching)


def _mirror(
    settings: PathfinderSettings,
    targets: Paddles,
    scenes: Integers,
    match: tuple[int, int] | tuple[NDArray[np.int64], NDArray[np.int64]],
) -> Paddles:
    """Mirror scenes at the line that bisects the angle between a match's two pairs of ends.

    The shared end is fixed; the directions of the connected and the unconnected end are exchanged.
    """
    selected = targets.take(scenes)
    rows = np.arange(len(scenes))
    shared, connected, unconnected = (ends[rows, *match] for ends in _end_pairs(settings, selected))
    turn = ((connected - shared) * (unconnected - shared))[:, None]
    turn /= np.maximum(np.abs(turn), np.finfo(np.float64).tiny)
    middles = shared[:, None] + turn * (selected.middles - shared[:, None]).conj()
    return Paddles(middles, turn * selected.directions.conj())


def _end_pairs(settings: PathfinderSettings, targets: Paddles) -> tuple[Points, Points, Points]:
    """Return the end that both pairs share, the end connected to it, and the unconnected end.

    Each has shape (scenes, 2, 2). Index i is the contour that connects; index j is the contour
    where the unconnected pair begins. With i = j both pairs begin at the same end, else both end
    where contour i ends.
    """
    first, last = targets.ends(settings)
    length = settings.contour_length
    begins, stops = first[:, [0, length]], last[:, [length - 1, 2 * length - 1]]  # (scenes, 2)
    same_contour = np.eye(2, dtype=bool)
    i, j = np.indices((2, 2))
    shared = np.where(same_contour, begins[:, i], stops[:, i])
    connected = np.where(same_contour, stops[:, i], begins[:, i])
    unconnected = np.where(same_contour, stops[:, 1 - i], begins[:, j])
    return shared, connected, unconnected
