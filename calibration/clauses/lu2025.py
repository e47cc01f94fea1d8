"""Worlds that break one clause of a claim on Lu et al. 2025."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pandas as pd

from calibration.clauses import Broken, Change
from overfit_cli.core.claim import Verdict
from overfit_cli.studies.linear_attention.claims import published

Random = np.random.Generator
Numbers = Callable[[pd.DataFrame], object]
"""From cells to a column's numbers."""

SIZES, GAP = "icl-sizes-quick", "icl-gap-quick"
DESCENT, CONTEXT = "icl-descent-quick", "icl-context-quick"
LIMIT, POWER = "icl-limit-icl icl-limit-idg", "icl-power-icl icl-power-idg"
GAPS = "icl-published-gap-32 icl-published-gap-10"
POSTERIORS = "icl-published-posterior-32 icl-published-posterior-10"
PUBLISHED = f"{GAPS} {POSTERIORS}"

Verdicts = tuple[Verdict, ...]
HOLDS: Verdicts = ("holds",)
FAILS: Verdicts = ("fails",)
OPEN: Verdicts = ("inconclusive",)
NOT_RUN: Verdicts = ("not run",)


def noisy(**of: Numbers) -> Change:
    """Columns as functions of the cells, with noise of a hundredth."""

    def changed(cells: pd.DataFrame, random: Random) -> pd.DataFrame:
        noise = np.exp(0.01 * random.standard_normal((len(of), len(cells))))
        made = zip(of.items(), noise, strict=True)
        return cells.assign(**{name: make(cells) * each for (name, make), each in made})

    return changed


def fewer(condition: str, change: Change = lambda cells, _: cells) -> Change:
    """Fewer of the rows of a world."""
    return lambda cells, random: change(cells, random).query(condition)


def excess(of: Numbers) -> Change:
    """Both errors above their limits by a share, itself with noise of a hundredth."""

    def changed(cells: pd.DataFrame, random: Random) -> pd.DataFrame:
        share = np.asarray(of(cells), float) * np.exp(0.01 * random.standard_normal(len(cells)))
        theory = {name: cells[f"theory_{name}_error"] for name in ("icl", "idg")}
        return cells.assign(**{f"{name}_error": theory[name] * (1 + share) for name in theory})

    return changed


def beside(factor: Numbers) -> Change:
    """Both task gaps as published, times a factor."""

    def gap(column: str) -> Numbers:
        means = published().set_index(["d", "kappa"])[column]

        def numbers(cells: pd.DataFrame) -> object:
            at = pd.MultiIndex.from_frame(cells[["d", "kappa"]])
            return means.reindex(at).to_numpy() * np.asarray(factor(cells), float)

        return numbers

    return noisy(task_gap=gap("task_gap"), posterior_gap=gap("posterior_gap"))


def failed(change: Change, column: str, value: float) -> Change:
    """A world in which every cell of a value has failed."""

    def changed(cells: pd.DataFrame, random: Random) -> pd.DataFrame:
        cells = change(cells, random)
        return cells.assign(status=cells["status"].mask(cells[column] == value, "failed"))

    return changed


def peak(at: float, factor: float = 4.0, end: float = 0.5) -> Change:
    """An error with a peak at a τ, which is `end` beyond all others' at τ = 4."""
    return noisy(
        icl_error=lambda c: np.where(c["tau"] == 4, end, np.where(c["tau"] == at, factor, 1.0))
    )


def along(of: Callable[[pd.Series[float]], object]) -> Change:
    """An error as a function of log₂ α."""
    return noisy(icl_error=lambda c: of(c["alpha"].astype(float).map(math.log2)))


def gaps(linear: float, posterior: float) -> Change:
    """Gaps that fall by these factors from κ = 0.4 to 2."""
    few = 0.4
    return noisy(
        task_gap=lambda c: np.where(c["kappa"] <= few, linear, 1.0),
        posterior_gap=lambda c: np.where(c["kappa"] <= few, posterior, 1.0),
    )


ONE: Change = excess(lambda c: 2 / c["d"])

BROKEN = (
    Broken(f"{LIMIT} {POWER}", "nothing", SIZES, ONE, HOLDS),
    Broken(LIMIT, "comes to: it stays above", SIZES, excess(lambda c: 0.15 + 2 / c["d"])),
    Broken(LIMIT, "comes to: it stays below", SIZES, excess(lambda c: 2 / c["d"] - 0.15)),
    Broken(LIMIT, "as d → ∞: slowly", SIZES, excess(lambda c: 2 / c["d"] ** 0.3)),
    Broken(
        LIMIT,
        "each of 8 places",
        SIZES,
        excess(lambda c: 2 / c["d"] + 0.3 * ((c["tau"] == 4) & (c["kappa"] == 2))),
    ),
    Broken(f"{LIMIT} {POWER}", "places", SIZES, fewer("tau == 4", ONE), NOT_RUN),
    Broken(f"{LIMIT} {POWER}", "d = 48", SIZES, failed(ONE, "d", 48), OPEN),
    Broken(POWER, "as 1/d: slower", SIZES, excess(lambda c: 1 / c["d"] ** 0.3)),
    Broken(POWER, "as 1/d: faster", SIZES, excess(lambda c: 20 / c["d"] ** 2)),
    Broken(
        POWER,
        "each of 4 places",
        SIZES,
        excess(lambda c: 2 / c["d"] ** np.where(c["kappa"] == 2, 0.3, 1.0)),
    ),
    Broken("icl-far-at-32", "nothing", SIZES, excess(lambda c: 4 / c["d"]), HOLDS),
    Broken("icl-far-at-32", "more than a tenth", SIZES, excess(lambda c: 1 / c["d"])),
    Broken("icl-far-at-32", "above", SIZES, excess(lambda c: -4 / c["d"])),
    Broken("icl-far-at-32", "d = 32", SIZES, fewer("d != 32"), NOT_RUN),
    Broken("icl-double-descent", "nothing", DESCENT, peak(1.0), HOLDS),
    Broken("icl-double-descent", "at τ = 1: before", DESCENT, peak(0.8)),
    Broken("icl-double-descent", "at τ = 1: after", DESCENT, peak(1.25)),
    Broken("icl-double-descent", "twice", DESCENT, peak(1.0, 1.5)),
    Broken("icl-double-descent", "less than at 0.2", DESCENT, peak(1.0, end=1.5)),
    Broken("icl-double-descent", "each of three α", DESCENT, fewer("alpha < 16"), NOT_RUN),
    Broken("icl-context-turns", "nothing", CONTEXT, along(lambda a: 1 + (a - 2) ** 2 / 9), HOLDS),
    Broken("icl-context-turns", "not monotone: it falls", CONTEXT, along(lambda a: 9 - a)),
    Broken("icl-context-turns", "not monotone: it rises", CONTEXT, along(lambda a: 2 + a)),
    Broken("icl-context-turns icl-context-helps", "τ", CONTEXT, fewer("tau == 4"), NOT_RUN),
    Broken("icl-context-turns", "fewer tasks", CONTEXT, fewer("kappa == 2"), NOT_RUN),
    Broken("icl-context-helps", "nothing", CONTEXT, along(lambda a: 2 ** (-a / 4)), HOLDS),
    Broken("icl-context-helps", "falls: it rises", CONTEXT, along(lambda a: 2 ** (a / 4))),
    Broken(
        "icl-context-helps", "falls: and rises", CONTEXT, along(lambda a: 1 + (a - 3.5) ** 2 / 9)
    ),
    Broken("icl-context-helps", "ten α", CONTEXT, fewer("alpha > 1"), NOT_RUN),
    Broken("icl-transition", "nothing", GAP, gaps(20.0, 1.1), HOLDS),
    Broken("icl-transition", "tenfold", GAP, gaps(5.0, 1.1)),
    Broken("icl-transition", "the posterior mean's", GAP, gaps(20.0, 3.0)),
    Broken("icl-transition", "the posterior mean", GAP, gaps(20.0, np.nan), OPEN),
    Broken(PUBLISHED, "nothing", GAP, beside(lambda c: 1.02), HOLDS),
    Broken(PUBLISHED, "that published: above", GAP, beside(lambda c: 2.5)),
    Broken(PUBLISHED, "that published: below", GAP, beside(lambda c: 0.3)),
    Broken(PUBLISHED, "each κ", GAP, beside(lambda c: np.where(c["kappa"] == 1.0, 2.0, 1.0))),
    Broken(PUBLISHED, "from 0.2", GAP, fewer("kappa > 0.2"), NOT_RUN),
    Broken(PUBLISHED, "as they are drawn", GAP, fewer("task_norm == 'fixed'"), NOT_RUN),
)
