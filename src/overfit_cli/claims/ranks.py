"""A rule on ranks: whose runs are the worst of all."""

from __future__ import annotations

from math import comb

import numpy as np
from numpy.typing import ArrayLike

from overfit_cli.core.claim import Measurement, Verdict
from overfit_cli.core.text import plural
from overfit_cli.stats.intervals import level_of_each

FEWEST_RUNS = 4
"""Of each sample: with fewer, chance gives every order more often than that."""


def lowest_needed(runs: int) -> int:
    """Return how many of the lowest values must be of one sample so that chance is ruled out.

    Where 2n values come in random order, the k lowest are all of a given half of them with chance
    C(n, k) / C(2n, k), which may be as rare as an interval errs on one side.

    Args:
        runs: n, `FEWEST_RUNS` or more.
    """
    by_chance = (1 - level_of_each(1)) / 2
    rare = (k for k in range(1, runs + 1) if comb(runs, k) <= by_chance * comb(2 * runs, k))
    return next(rare, runs + 1)


def worst_is_lower(one: ArrayLike, other: ArrayLike, *, note: str = "") -> Measurement:
    """Return the measurement of a claim that the worst run of one sample is below the other's.

    A single worst run says little: it is lower than the other's every second time where both
    samples are alike. So the claim holds where the `lowest_needed` values are all of `one`, fails
    where they are all of `other`, and is open otherwise; a tie between the samples there is no
    order. Where runs of both share a seed and are alike for that, an error is rarer still.

    Args:
        one, other: as many runs of each.
        note: what else a reader must know.
    """
    lower, higher = np.sort(np.asarray(one, float)), np.sort(np.asarray(other, float))
    runs, needed = len(lower), 0
    verdict: Verdict = "inconclusive"
    if runs < FEWEST_RUNS:
        note = f"{note} It needs {FEWEST_RUNS} seeds; these cells have {plural(runs, 'seed')}."
        note = note.strip()
    else:
        needed = lowest_needed(runs)
        if needed > runs:
            note = f"{note} So few runs can't rule chance out.".strip()
        elif lower[needed - 1] < higher[0]:
            verdict = "holds"
        elif higher[needed - 1] < lower[0]:
            verdict = "fails"
    return Measurement(
        verdict=verdict,
        value=float(higher[0] - lower[0]),
        decided="ranks",
        details={
            "first, worst": float(lower[0]),
            "second, worst": float(higher[0]),
            "first, runs below the second's worst": int((lower < higher[0]).sum()),
            "second, runs below the first's worst": int((higher < lower[0]).sum()),
            "runs below it that decide": needed,
        },
        note=note,
    )
