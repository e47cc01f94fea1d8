"""Geometry of Pathfinder images: contours, distractors and discs, before any pixel.

Contours grow paddle by paddle, in many scenes at once (Linsley et al. 2018). The label is a fair
coin, and independent of the distance between the two discs. Paddles are segments of the complex
plane: a point (x, y), in pixels from the upper left corner, is x + iy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from overfit_cli.core.arrays import Floats
from overfit_cli.core.errors import UserError
from overfit_cli.studies.attention_kernel.classifier_parameters import PathfinderSettings

Points = NDArray[np.complex128]
Bools = NDArray[np.bool_]
Integers = NDArray[np.int64]

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
class Paddles:
    """Segments of one length."""

    middles: Points  # (scenes, paddles)
    directions: Points  # of absolute value 1, (scenes, paddles)

    @classmethod
    def nowhere(cls, scenes: int, paddles: int) -> Paddles:
        """Return paddles that are still to be placed."""
        shape = (scenes, paddles)
        return cls(np.full(shape, _NOWHERE), np.ones(shape, dtype=complex))

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

    def joined(self, *others: Paddles, axis: int = 1) -> Paddles:
        """Return these and then others, by default along the axis of paddles."""
        parts = (self, *others)
        return Paddles(
            np.concatenate([part.middles for part in parts], axis),
            np.concatenate([part.directions for part in parts], axis),
        )


def is_blocked(
    settings: PathfinderSettings, tries: Paddles, placed: Paddles, skip: Integers | None = None
) -> Bools:
    """Find the tries that would cross the border or come too close to a placed paddle.

    Tries and the result have shape (scenes, tries). `skip` is in each scene the column of the
    paddle that a try follows on its contour, which may be close to it.
    """
    result = crosses_border(settings, tries)
    offsets = tries.middles[:, :, None] - placed.middles[:, None, :]  # (scenes, tries, paddles)
    close = offsets.real**2 + offsets.imag**2 < (settings.paddle_length + settings.clearance) ** 2
    close &= ~result[:, :, None]
    if skip is not None:
        close[np.arange(len(skip)), :, skip] = False
    scene, attempt, neighbour = np.nonzero(close)
    directions = tries.directions[scene, attempt], placed.directions[scene, neighbour]
    touching = _are_touching(settings, offsets[scene, attempt, neighbour], *directions)
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


@dataclass(frozen=True)
class Scenes:
    """The geometry of images: paddles of the two targets, then of the distractors."""

    paddles: Paddles
    markers: Points  # the discs' centres x + iy, (scenes, 2)
    labels: Integers  # 1 where a contour connects them, (scenes,)

    @property
    def distances(self) -> Floats:
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
            raise UserError(
                f"size {settings.size}: {settings.contours_in_words} hardly ever fit in it with "
                "two pairs of ends equally far apart; take a larger size, fewer or shorter "
                "contours, or a smaller continuity."
            )
        marked = place_markers(settings, random, grow_targets(settings, random, starts))
        paddles, filled = add_distractors(settings, random, marked.paddles)
        rounds.append(Scenes(paddles, marked.markers[filled], marked.labels[filled]))
        missing -= len(filled)
        share = max(len(filled), 1) / starts
    first, *others = (part.paddles for part in rounds)
    return Scenes(
        first.joined(*others, axis=0).take(np.s_[:scenes]),
        np.concatenate([part.markers for part in rounds])[:scenes],
        np.concatenate([part.labels for part in rounds])[:scenes],
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
    placed = Paddles.nowhere(*shape)
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
    paddles = Paddles(starts + settings.paddle_length / 2 * directions, directions)
    none, first, second = (paddles.take(np.s_[:, part]) for part in np.s_[:0, :1, 1:])
    blocked = is_blocked(settings, first, none) | is_blocked(settings, second, first)
    return paddles.take(~blocked[:, 0])


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
    paddle, fits = extend(settings, random, placed.take(growing), counts - 2)
    placed.put((growing[fits], counts[fits]), paddle.take((fits, 0)))
    counts, stuck = counts + fits, ~fits
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
    return alternating.take(np.s_[:, 0::2]).joined(alternating.take(np.s_[:, 1::2]))


def add_distractors(
    settings: PathfinderSettings, random: np.random.Generator, targets: Paddles
) -> tuple[Paddles, Integers]:
    """Add the distractors to scenes; each has a few tries where it is blocked.

    Returns all paddles of the scenes that are complete, and the indices of these scenes.
    """
    placed, scene_numbers = targets, np.arange(len(targets.middles))
    for _ in range(settings.distractors):
        chains = Paddles.nowhere(len(placed.middles), settings.distractor_length)
        missing = np.arange(len(placed.middles))
        for _ in range(DISTRACTORS_TRIED):
            chain, grown = _grow_distractor(settings, random, placed.take(missing))
            chains.put(missing[grown], chain)
            missing = missing[~grown]
            if not len(missing):
                break
        complete = np.delete(np.arange(len(placed.middles)), missing)
        placed = placed.joined(chains).take(complete)
        scene_numbers = scene_numbers[complete]
    return placed, scene_numbers


def _grow_distractor(
    settings: PathfinderSettings, random: np.random.Generator, placed: Paddles
) -> tuple[Paddles, Bools]:
    """Grow one short contour in each scene; return it where it fits, and whether it fits."""
    first = placed.middles.shape[1]
    position = random.random((2, len(placed.middles), SEEDS_TRIED)) * settings.size
    tries = Paddles(position[0] + 1j * position[1], any_direction(random, position[0].shape))
    paddle, fits = first_fit(tries, is_blocked(settings, tries, placed))
    alive = np.flatnonzero(fits)
    scene = placed.joined(paddle).take(alive)
    for _ in range(settings.distractor_length - 1):
        last = np.full(len(alive), scene.middles.shape[1] - 1)
        paddle, fits = extend(settings, random, scene, last)
        scene, alive = scene.joined(paddle).take(fits), alive[fits]
    grown = np.zeros(len(placed.middles), dtype=np.bool_)
    grown[alive] = True
    return scene.take(np.s_[:, first:]), grown


def extend(
    settings: PathfinderSettings, random: np.random.Generator, placed: Paddles, last: Integers
) -> tuple[Paddles, Bools]:
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
) -> Floats:
    """Draw turns δ of density ∝ cos²(cδ): sin(cδ) is then a coordinate of a point of the disc."""
    radius, angle = random.random((2, *shape))
    height = np.sqrt(radius) * np.cos(2 * np.pi * angle)
    return np.asarray(np.arcsin(height) / settings.continuity)


def any_direction(random: np.random.Generator, shape: tuple[int, ...]) -> Points:
    """Draw directions of absolute value 1, uniformly."""
    return np.asarray(np.exp(2j * np.pi * random.random(shape)))


def first_fit(tries: Paddles, blocked: Bools) -> tuple[Paddles, Bools]:
    """Return the first try of each scene that is not blocked, (scenes, 1), and where one is not.

    Tries and `blocked` have shape (scenes, tries).
    """
    first = np.arange(len(blocked))[:, None], np.argmin(blocked, axis=1)[:, None]
    return tries.take(first), np.asarray(~blocked.all(axis=1))


def place_markers(
    settings: PathfinderSettings, random: np.random.Generator, targets: Paddles
) -> Scenes:
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
    i, j = np.divmod(chances.argmax(axis=1), 2)
    labels = random.integers(0, 2, len(scenes))
    if settings.matched == "places":
        mirrored = np.flatnonzero(random.integers(0, 2, len(scenes)))
        targets.put(mirrored, _mirror(settings, targets.take(mirrored), i[mirrored], j[mirrored]))
    shared, connected, unconnected = _end_pairs(settings, targets)[:, scenes, i, j]
    second = np.where(labels == 1, connected, unconnected)
    if settings.matched == "places":
        # The two pairs differ in length by up to the tolerance: a coin chooses the length.
        lengths = np.abs(np.stack([connected, unconnected]) - shared)
        length = lengths[random.integers(0, 2, len(scenes)), scenes]
        second = shared + (second - shared) / np.abs(second - shared) * length
    return Scenes(targets, np.stack([shared, second], axis=1), labels)


def matches(settings: PathfinderSettings, targets: Paddles) -> Bools:
    """Find the connected and unconnected pairs of ends that have the same distance.

    As in Linsley et al., one disc lies where a contour begins and the other where one ends. So
    there are two connected pairs, i, and two unconnected ones, j, and any i and j share one disc.
    They match where their distances differ by less than the tolerance and the discs do not touch;
    with `matched` places, the mirrored scene must also stay inside the image. Shape (scenes, 2, 2),
    by i and j.
    """
    shared, connected, unconnected = _end_pairs(settings, targets)
    one, other = np.abs(connected - shared), np.abs(unconnected - shared)
    matching = np.abs(one - other) < settings.distance_tolerance
    matching &= np.minimum(one, other) > 2 * settings.marker_radius + 1
    if settings.matched == "places":
        for i, j in np.ndindex(2, 2):
            every = np.full((2, len(targets.middles)), [[i], [j]])
            turned = _mirror(settings, targets, *every)
            matching[:, i, j] &= ~crosses_border(settings, turned).any(axis=1)
    return np.asarray(matching)


def _mirror(settings: PathfinderSettings, targets: Paddles, i: Integers, j: Integers) -> Paddles:
    """Mirror scenes at the line that bisects the angle between the two pairs of ends of a match.

    The shared end is fixed; the directions of the connected and the unconnected end are exchanged.
    """
    rows = np.arange(len(targets.middles))
    shared, connected, unconnected = _end_pairs(settings, targets)[:, rows, i, j]
    turn = ((connected - shared) * (unconnected - shared))[:, None]
    turn /= np.maximum(np.abs(turn), np.finfo(np.float64).tiny)
    middles = shared[:, None] + turn * (targets.middles - shared[:, None]).conj()
    return Paddles(middles, turn * targets.directions.conj())


def _end_pairs(settings: PathfinderSettings, targets: Paddles) -> Points:
    """Return the end that both pairs share, the end connected to it, and the unconnected end.

    The shape is (3, scenes, 2, 2). Index i is the contour that connects; index j is the contour
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
    return np.stack([shared, connected, unconnected])
