"""Made-up worlds for claims that one number of each seed decides: parts for `Worlds`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from calibration.rates import Truth, World, Worlds
from overfit_cli.claims.parts import FEWEST, Margin
from overfit_cli.claims.stated import JointMeasure, Measure
from overfit_cli.core.claim import Claim

Numbers: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]
Random: TypeAlias = np.random.Generator

MakeNumbers: TypeAlias = Callable[[pd.DataFrame, Numbers, Random], pd.DataFrame]
"""From a design and a number for each of its rows, the same for all of a seed, to its cells."""

MakeBools: TypeAlias = Callable[[pd.DataFrame, Bools, Random], pd.DataFrame]
"""The same with a yes or no for each row."""

A_THIRD = 1 / 3
"""The share of draws on which what is claimed without exception is broken where it is false."""


def margins_of(claims: Iterable[Claim]) -> dict[str, Margin]:
    """Return the margin of each claim that is a sentence, of its first number, by its name.

    Of a claim of several parts it is that of the first part.
    """
    measures = {claim.name: claim.measure for claim in claims}
    for name, measure in measures.items():
        if isinstance(measure, JointMeasure):
            measures[name] = next(iter(measure.parts.values())).measure
    sentences = {
        name: measure.sentence for name, measure in measures.items() if isinstance(measure, Measure)
    }
    return {
        name: replace(sentence.clauses[0].quantity.margin, fewest_seeds=sentence.seeds)
        for name, sentence in sentences.items()
    }


def number_worlds_of(claims: Iterable[Claim]) -> Callable[..., Worlds]:
    """Return what makes `number_worlds` of a claim that is a sentence, from its name.

    It takes the claim's name, and what `number_worlds` does but for the margin.
    """
    margins = margins_of(claims)

    def worlds(name: str, make: MakeNumbers, spread: float, *, logs: bool = False) -> Worlds:
        return number_worlds(make, margins[name], spread, logs=logs)

    return worlds


def number_worlds(
    make: MakeNumbers, margin: Margin, spread: float, *, logs: bool = False
) -> Worlds:
    """Return worlds for a claim on the mean over seeds of a number.

    Where the claim is true the number lies in the middle of the margin, or six deviations inside
    its one end. Where it is false it lies at an end, at either one as often. Where nothing tells it
    does too, the deviation is twice as large, and there are half the seeds, or as few as the claim
    takes.

    Args:
        make: what makes cells of the numbers.
        margin: the claim's.
        spread: the standard deviation over seeds, as measured; of the logarithm with `logs`.
        logs: whether the number is positive, and its logarithm what is averaged.
    """
    low, high = ((math.log(end) if logs and end > 0 else end) for end in _ends(margin, logs))
    ends = [end for end in (low, high) if math.isfinite(end)]
    inside = (
        (low + high) / 2 if len(ends) == 2 else ends[0] + 6 * spread * (1 if low == ends[0] else -1)
    )

    def world(
        design: pd.DataFrame, random: Random, centres: list[float], noise: float = 1.0
    ) -> pd.DataFrame:
        noisy = spread * noise * random.standard_normal(_seeds(design))
        of_seeds = random.choice(centres) + noisy
        values = of_seeds[design["seed"].to_numpy()]
        return make(design, np.exp(values) if logs else values, random)

    return Worlds(
        partial(world, centres=[inside]),
        partial(world, centres=ends),
        few_seed_world(partial(world, centres=ends, noise=2.0), margin.fewest_seeds),
    )


def share_worlds(make: MakeBools, margin: Margin) -> Worlds:
    """Return worlds for a claim on the share of seeds on which something is so.

    Where the claim is true it is so on all seeds, or on none. Where it is false the share lies at
    the margin's end. Where nothing tells it does too, and there are half the seeds, or as few as
    the claim takes.

    Args:
        make: what makes cells of whether it is.
        margin: the claim's; one of its ends is finite.
    """
    least = math.isfinite(margin.least)
    end = margin.least if least else margin.most

    def world(design: pd.DataFrame, random: Random, share: float) -> pd.DataFrame:
        of_seeds = random.random(_seeds(design)) < share
        return make(design, of_seeds[design["seed"].to_numpy()], random)

    true, false = partial(world, share=float(least)), partial(world, share=end)
    return worlds_from(true, false, margin.fewest_seeds)


def worlds_from(true: World, false: World, fewest: int) -> Worlds:
    """Return worlds of which the open one is as the false one, with few seeds.

    Args:
        true, false: the other two.
        fewest: how many seeds the claim takes.
    """
    return Worlds(true, false, few_seed_world(false, fewest))


def few_seed_world(world: World, fewest: int) -> World:
    """Return a world with half of its seeds, or with as few as a claim takes.

    Args:
        world: with all of them.
        fewest: how many the claim takes.
    """

    def made(design: pd.DataFrame, random: Random) -> pd.DataFrame:
        seeds = np.sort(design["seed"].unique())
        remaining = seeds[: max(math.ceil(len(seeds) / 2), fewest)]
        return world(design[design["seed"].isin(remaining)], random)

    return made


def exception_worlds(make: MakeBools) -> Worlds:
    """Return worlds for a claim without exception, which is broken on no seed, or on a third.

    Nothing tells where there is one seed too few, and none breaks it.

    Args:
        make: what makes cells of whether a seed breaks it.
    """

    def world(design: pd.DataFrame, random: Random, share: float, limit: int) -> pd.DataFrame:
        design = design[design["seed"] < limit]
        of_seeds = random.random(_seeds(design)) < share
        return make(design, of_seeds[design["seed"].to_numpy()], random)

    unlimited = 2**31
    return Worlds(
        partial(world, share=0.0, limit=unlimited),
        partial(world, share=A_THIRD, limit=unlimited),
        partial(world, share=0.0, limit=FEWEST["no exception"] - 1),
    )


def joined_worlds(parts: Mapping[str, Worlds]) -> Worlds:
    """Return worlds for a claim of several parts; see `overfit_cli.claims.stated`.

    Where it is false one part is, and another one in another run.

    Args:
        parts: the worlds of each part, by a condition on parameters, as pandas reads it, of the
            cells that it is about: `H == 2`; empty texts differ by spaces, and mean all cells.
    """

    def world(design: pd.DataFrame, random: Random, truths: tuple[Truth, Truth]) -> pd.DataFrame:
        false = int(random.integers(len(parts)))
        made = design
        for index, (condition, worlds) in enumerate(parts.items()):
            rows = made.query(condition).index if condition.strip() else made.index
            cells = getattr(worlds, truths[index == false])(made.loc[rows], random)
            made = pd.concat([made.drop(index=rows), cells])
        return made.sort_index()

    return Worlds(
        partial(world, truths=("true", "true")),
        partial(world, truths=("true", "false")),
        partial(world, truths=("open", "open")),
    )


def _ends(margin: Margin, logs: bool) -> tuple[float, float]:
    return (-math.inf if logs and margin.least <= 0 else margin.least), margin.most


def _seeds(design: pd.DataFrame) -> int:
    return int(design["seed"].max()) + 1
