"""Cells of the claims on `kernel-regression`: which loss has gone to zero, and at which step size.

The theorems say that a step size exists, so a seed refutes one where it breaks it at every one.
Where a loss must come to zero, and all step sizes diverge, a smaller one may serve: such cells
refute nothing, and are taken as done, without a number.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from overfit_cli.claims.cells import is_unknown
from overfit_cli.claims.papers import Claims
from overfit_cli.core.arrays import varying
from overfit_cli.studies.attention_kernel.parameters import KernelRegressionParameters
from overfit_cli.studies.attention_kernel.study import COLUMNS

song = Claims("", "Song et al. 2024", KernelRegressionParameters, COLUMNS, "curves")

NO_RANK = 1e-10
"""Smallest singular values up to this one count as 0."""

THE_GAUSSIAN = (
    "the Gaussian is that of section 4.2.1 and the appendix, exp(−‖q − k‖²/(2√d)); (11) prints 1/√d"
)

SIZES = {"heads": (1, 2, 4), "d": (4, 8, 16, 32), "d_h": (2, 4, 8)}
"""Those of `kernel-sizes`, on both sides of what Remarks 1 and 4 require."""

ZERO = 1e-6
"""The share of its start at which a loss counts as having gone to zero."""

STOPPED = 0.05
"""A loss has stopped where its gradient is 0; or where it took all of its steps, and as many again,
at the last gradient, lower it by less than this share of its distance to where it could go, and of
what it has lost so far: that of a run that has hardly begun has not stopped."""

SUBOPTIMAL = 1e-3
"""A loss that stops so far above its optimum, as a share of its start, has stopped too early."""

LINEAR = 30.0
"""Steps to 1e-12 are at most so many times those to 1e-6 where a loss falls linearly.

One mode takes twice as many, and several take more where the slower ones begin low. A power law t⁻ᵖ
takes 10^(6/p) + 1 times as many, which is more than 30 for p up to 4.
"""


def _done(cells: pd.DataFrame, column: str) -> pd.Series[float]:
    """Return a column; of a cell that failed its number counts as not known."""
    return cells[column].astype(float).where(cells["status"] == "done")


def at_some_step_size(cells: pd.DataFrame, column: str, most: float = 0.0) -> pd.DataFrame:
    """Return of each setting and seed the cell at whose step size a column is least.

    A cell of which it is not known comes behind those at most `most`, and before all others.
    """
    numbers = _done(cells, column)
    cells = cells.assign(**{column: numbers})
    diverged = cells["reason"] == "diverged"
    rank = numbers.mask(diverged & numbers.isna(), np.inf).fillna(np.nextafter(most, np.inf))
    names = varying(cells, [*KernelRegressionParameters.model_fields])
    keys = [cells[name] for name in names if name != "learning_rate"]
    chosen: pd.DataFrame = cells.loc[rank.groupby([*keys, cells["seed"]]).idxmin()]
    return chosen.assign(learning_rate=cells["learning_rate"].min())


def has_stopped(cells: pd.DataFrame, above: pd.Series[float]) -> pd.Series[bool]:
    """Return which losses no longer fall, so far `above` where they could go; see `STOPPED`."""
    step_size, gradient = cells["learning_rate"] / cells["balance"] ** 2, _done(cells, "gradient")
    fall = step_size * cells["steps"] * gradient**2
    lost = (cells["start_loss"] - cells["train_loss"]).astype(float)
    went_on = cells["steps"] >= cells["training_steps"]
    is_small = (fall < STOPPED * above) & (fall < STOPPED * lost)
    return (gradient == 0) | (went_on & is_small)


def stops_above_zero(cells: pd.DataFrame) -> pd.DataFrame:
    """Return whether a loss stops above `ZERO`, 0 or 1; not known of one that still falls."""
    loss = _done(cells, "relative_loss")
    falls = (loss >= ZERO) & ~has_stopped(cells, cells["train_loss"].astype(float))
    stops = (loss >= ZERO).astype(float).mask(loss.isna() | falls)
    shown = cells.assign(stops_above_zero=stops, status="done")
    return at_some_step_size(shown, "stops_above_zero")


def above_bound(cells: pd.DataFrame) -> pd.DataFrame:
    """Count a cell's steps above the paper's bound, and one more that comes sooner or later.

    With W_V alone the loss is a sum of decaying modes, and the slowest is below the paper's rate
    exactly where `rate_margin` is below 1: then every step size breaks the bound in the end.
    """
    margin = cells["rate_margin"].astype(float)
    later = (margin < 1).astype(float).mask(margin.isna())
    above = cells["violations_paper"].astype(float) + later
    return at_some_step_size(cells.assign(steps_above_bound=above), "steps_above_bound")


def above_so_far(cells: pd.DataFrame) -> pd.DataFrame:
    """Count a cell's steps above the paper's bound, with all weights trained.

    Where no seed that meets (8) has one at every step size, the steps may be too few on those whose
    `rate_margin` is not at least 1: of them it is not known.
    """
    best = at_some_step_size(cells, "violations_paper")
    count, margin = (best[name].astype(float) for name in ("violations_paper", "rate_margin"))
    if ((count > 0) & (best["condition_8"].astype(float) <= 0)).any():
        return best
    return best.assign(violations_paper=count.where(margin >= 1))


def slowdown(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the steps to 1e-12 over those to 1e-6, infinite of a loss that stops or falls slower.

    It is not known of one that falls on.
    """
    first, second = (_done(cells, f"steps_to_{name}") for name in ("millionth", "trillionth"))
    above = _done(cells, "relative_loss") > 1e-12  # else a count may be lost
    stopped = has_stopped(cells, cells["train_loss"].astype(float))
    short = second.isna() & above & (stopped | (cells["steps"] > LINEAR * first))
    over = (second / first).mask(short, np.inf)
    return at_some_step_size(cells.assign(slowdown=over, status="done"), "slowdown", LINEAR)


def stops_above_optimum(cells: pd.DataFrame) -> pd.DataFrame:
    """Return one row per seed: whether, for some labels, its loss stops above its optimum.

    It is the lowest loss of all step sizes. The optimum over W_Q is ½ Σ dist(y, hull)²: a loss that
    comes down to it has found a global optimum, however far above zero that is. Of one that is
    above it and still falls it is not known.
    """
    problems = [cells["target"], cells["seed"]]
    loss = _done(cells, "train_loss")
    best = cells.loc[loss.fillna(np.inf).groupby(problems).idxmin()]
    above = _done(best, "train_loss") - best["floor"].astype(float)
    is_above = above > SUBOPTIMAL * best["start_loss"].astype(float)
    falls = is_above & ~has_stopped(best, above)
    lost = is_unknown(cells).groupby(problems).any().to_numpy()  # it may have served better
    known = is_above.astype(float).mask(lost | (above.isna() | falls).to_numpy())
    by_seed = known.groupby(best["seed"])
    trapped = by_seed.max().mask(by_seed.max().ne(1) & known.isna().groupby(best["seed"]).any())
    rows = best.drop_duplicates("seed").set_index("seed").assign(learning_rate=0.0, target="")
    return rows.assign(stops_above_optimum=trapped, status="done", reason="").reset_index()


def lost_rank(cells: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return whether a smallest singular value is zero, 0 or 1."""
    number = cells[column].astype(float)
    return cells.assign(lost_rank=(number <= NO_RANK).astype(float).mask(number.isna()))
