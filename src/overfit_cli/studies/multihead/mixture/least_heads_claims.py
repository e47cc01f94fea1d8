"""Claims on the least H: that from which Theorem 1's bound is met, and that which it requires.

Heads that begin alike are one class, in which H is a factor. So H is scanned over 19 decades.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from overfit_cli.claims.cells import Selection, select_values
from overfit_cli.claims.parts import Margin, Part
from overfit_cli.claims.rules import judge
from overfit_cli.core.arrays import Floats
from overfit_cli.core.claim import Claim, Measurement
from overfit_cli.stats.boundaries import crossing
from overfit_cli.studies.multihead.claims import PAPER_NAME, numbers
from overfit_cli.studies.multihead.mixture.parameters import MultiheadMixtureParameters

PRESET = "heads-least"
FEW, MANY, MOST = 1, 10**6, 9 * 10**18
LARGE_STEPS = 4.0
"""The step size at which the condition requires more heads than 64 bits count."""

DECADES = Margin(least=9.5, because="half of the decades that are scanned", fewest_seeds=10)


def _select(cells: pd.DataFrame) -> pd.DataFrame:
    return Selection(
        MultiheadMixtureParameters,
        vary={"heads"},
        alike={"certify", "test_samples"},
        includes={"heads": (FEW, MANY, MOST)},
        preset=PRESET,
    ).of(cells)


def least_heads(allowed: pd.Series[bool], cells: pd.DataFrame) -> pd.Series[float]:
    """Return of each seed log₁₀ of the least H from which on all are; ∞ where the last isn't."""
    grid = allowed.groupby([cells["seed"], cells["heads"]]).all().unstack()
    from_here = grid.iloc[:, ::-1].cummin(axis=1).iloc[:, ::-1]
    logs = np.log10(grid.columns.to_numpy(float))
    least = np.where(from_here, logs, np.inf).min(axis=1)
    return pd.Series(least, grid.index)


def _required_heads(missing: pd.Series[float], cells: pd.DataFrame) -> pd.Series[float]:
    """Return of each seed log₁₀ of the H that is as large as the condition asks; ∞ beyond all."""
    grid = missing.groupby([cells["seed"], cells["heads"]]).mean().unstack()
    heads = grid.columns.to_numpy(float)

    def crossed(row: pd.Series[float]) -> float:
        values: Floats = np.asarray(row, np.float64)
        if np.isnan(values).any():
            return math.nan
        if values[-1] > 0:
            return math.inf
        return 0.0 if values.max() <= 0 else math.log10(crossing(heads, values, 0.0))

    by_seed: pd.Series[float] = grid.apply(crossed, axis=1)
    return by_seed


def _condition(cells: pd.DataFrame) -> Measurement:
    chosen = _select(cells)
    heads = np.log10(chosen["heads"].astype(float))
    missing = numbers(chosen, "theorem1_heads") + 2 * np.log10(chosen["d"].astype(float)) - heads
    ratio = numbers(chosen, "mean_train_loss") / numbers(chosen, "theorem1_bound")
    required = _required_heads(missing, chosen)
    reached = [least_heads(flags, chosen) for flags in (ratio.fillna(0) <= 1, ratio <= 1)]
    with np.errstate(invalid="ignore"):
        low, high = required.fillna(0.0) - reached[1], required.fillna(np.inf) - reached[0]
    least, most = low.fillna(-np.inf), high.fillna(np.inf)
    return judge(
        [Part.of(least, DECADES, "median", up_to=most)],
        details={
            "log₁₀ of the least H of the conclusion, median": float(reached[1].median()),
            "log₁₀ of the least H of the condition, median": float(required.median()),
        },
        note=f"Decades between both.{_beyond_the_scan(cells, chosen)}",
    )


def _beyond_the_scan(cells: pd.DataFrame, chosen: pd.DataFrame) -> str:
    names = [name for name in MultiheadMixtureParameters.model_fields if name != "heads"]
    alike = {name: chosen[name].iloc[0] for name in names}
    large = select_values(cells, {**alike, "learning_rate": LARGE_STEPS, "heads": MOST})
    asked = numbers(large, "theorem1_heads") + 2 * np.log10(large["d"].astype(float))
    if asked.dropna().empty:
        return ""
    return (
        f" With steps of {LARGE_STEPS:g} the condition requires 10^{asked.median():.1f} heads, "
        f"beyond the 10^{math.log10(MOST):.1f} that are scanned, so that nothing is judged there."
    )


LEAST_HEADS_CLAIMS = (
    Claim(
        name="mixture-least-heads-condition",
        kind="ours",
        source=f"ours, on {PAPER_NAME}, Theorem 1",
        statement="With figure 2's steps and θ the last of 1000, the condition of Theorem 1 on H "
        "requires at least 9.5 decades more heads than the second inequality of (4) takes.",
        hypotheses="steps of 1, as in figure 2; with steps of 4 the H of the condition lies beyond "
        "the scan, whose end is the largest H that 64 bits count",
        holds_where=DECADES.in_words("the median number of decades"),
        measure=_condition,
        figure="least-heads",
        preset=PRESET,
    ),
)
