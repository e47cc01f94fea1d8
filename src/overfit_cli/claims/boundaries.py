"""Claims on a boundary as another parameter changes: its numbers compared seed by seed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from overfit_cli.analysis.boundaries import Boundary
from overfit_cli.analysis.intervals import mean_estimate, mean_interval
from overfit_cli.claim import Measurement, inconclusive
from overfit_cli.claims.rules import LEAST_SEEDS, between, within, worst

BySeed = Callable[[Boundary], "pd.Series[float]"]
"""A number of a boundary for each seed."""


def stays_the_same(
    found: Sequence[Boundary], of: BySeed, most: float, sentence: str
) -> Measurement:
    """Measure whether a number is the same at every value of the axis as at the first.

    The intervals are 95 % together (Bonferroni); the value is the one farthest from 1.

    Args:
        found: a boundary for each value of the axis, ascending.
        of: the number, positive.
        most: by which factor two numbers may differ and still be called the same.
        sentence: what comes before the change in words, without a full stop.
    """
    logs = seed_logarithms(found, of)
    if isinstance(logs, Measurement):
        return logs
    changes = logs.iloc[:, 1:].sub(logs.iloc[:, 0], axis=0)
    level = 1 - 0.05 / len(changes.columns)
    ends = {at: np.exp(mean_interval(changes[at], level)).tolist() for at in changes}
    at = changes.mean().abs().idxmax()
    ratio, (low, high) = float(np.exp(changes[at].mean())), ends[at]
    return Measurement(
        worst(between(first, last, 1 / most, most) for first, last in ends.values()),
        f"{sentence}. Farthest from the first is that at {at:.3g}: {ratio:.3f} "
        f"[{low:.3f}, {high:.3f}] times as much, seed by seed. {counts_in_words(found)}",
        ratio,
        low,
        high,
        "95 % t over seeds, for all values together",
    )


def is_proportional(
    found: Sequence[Boundary], of: BySeed, to: Sequence[float], tolerance: float, sentence: str
) -> Measurement:
    """Measure whether a number is proportional to another along the axis: its power is 1.

    Args:
        found: a boundary for each value of the axis, ascending.
        of: the number, positive.
        to: the other one, at each value of the axis.
        tolerance: by how much the power may differ from 1.
        sentence: what comes before the power in words.
    """
    logs = seed_logarithms(found, of)
    if isinstance(logs, Measurement):
        return logs
    powers = np.polyfit(np.log(to), logs.to_numpy().T, 1)[0]
    power = mean_estimate(powers)
    return Measurement(
        within(power.low, power.high, 1, tolerance),
        f"{sentence} It scales with that number to the power {power.value:.2f} [{power.low:.2f}, "
        f"{power.high:.2f}]. {counts_in_words(found)}",
        *power,
        "95 % t over seeds",
    )


def seed_logarithms(found: Sequence[Boundary], of: BySeed) -> pd.DataFrame | Measurement:
    """Return logarithms, one row per seed and one column per value of the axis; or why not.

    Seeds without a cell that is done at some value are left out. Where a curve crosses beyond the
    grid there is no number: that is a change of its own if most of the seeds do so at one value of
    the axis and most do not at another, on the same grid.
    """
    with np.errstate(divide="ignore"):
        logs = pd.DataFrame({one.at: of(one) for one in found}).transform(np.log)
    whole = logs.dropna()
    if len(whole) < LEAST_SEEDS:
        return inconclusive(
            f"It needs {LEAST_SEEDS} seeds with numbers at every value of the axis; of "
            f"{len(logs)}, {len(whole)} have them."
        )
    beyond = whole.abs() == np.inf
    if not beyond.to_numpy().any():
        return whole
    share, same_grid = beyond.mean(), len({one.reach for one in found}) == 1
    moved = same_grid and bool(share.max() > 0.5 > share.min())
    return Measurement(
        "fails" if moved else "inconclusive",
        f"{int(beyond.any(axis=1).sum())} of {len(whole)} seeds cross beyond the grid at some "
        f"value of the axis{': at one of them most of the seeds' if moved else ''}.",
    )


def counts_in_words(found: Sequence[Boundary]) -> str:
    """Say how many values, seeds and curves there are."""
    never, curves = sum(one.never for one in found), sum(one.curves for one in found)
    seeds = set.intersection(*(set(one.constants.index) for one in found))
    return (
        f"{len(found)} values of the axis, {len(seeds)} seeds at all of them; {never} of {curves} "
        "curves never cross."
    )
