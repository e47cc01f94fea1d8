"""Claims on Lu et al. 2025: the limit, double descent, the context, tasks, and published means.

Margins were stated on seeds below 1000, which no preset has.
"""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pandas as pd

from overfit_cli.claims.papers import Claims, on
from overfit_cli.core.arrays import finite_column
from overfit_cli.studies.linear_attention import PAPER
from overfit_cli.studies.linear_attention.parameters import Parameters
from overfit_cli.studies.linear_attention.study import COLUMNS

KAPPAS = (0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.6, 2.0, 4.0, 8.0, 16.0, 32.0)
"""The κ of the published simulations."""

GAP = on("icl-gap", kappa=KAPPAS)
CONTEXT = on("icl-context", alpha=tuple(2.0**power for power in range(-1, 9)), tau=(0.5, 4.0))
SIZES = on("icl-sizes", d=(12, 16, 24, 32, 48), tau=(0.5, 4.0), kappa=(0.5, 2.0), ridge=(1e-6, 0.1))

lu = Claims("icl", f"{PAPER}", Parameters, COLUMNS)


# The limit of many features


def with_excess(cells: pd.DataFrame) -> pd.DataFrame:
    """Return cells with how far errors are above their limit: `icl_excess` and `idg_excess`."""
    excess = {
        f"{name}_excess": finite_column(cells, f"{name}_error") / cells[f"theory_{name}_error"] - 1
        for name in ("icl", "idg")
    }
    return cells.assign(**excess)


_PLACES = "α = 4, τ = 1/2 and 4, κ = 1/2 and 2, λ = 10⁻⁶ and 0.1"

for _name, _symbol, _tasks in (("icl", "e_ICL", "new tasks"), ("idg", "e_IDG", "old tasks")):
    lu.paper(
        f"limit-{_name}",
        "the asymptotic errors",
        f"The error on {_tasks}, {_symbol}, comes to that of the theory as d → ∞: what of their "
        f"ratio less 1 does not fall as 1/d is less than a twentieth, at each of 8 places: "
        f"{_PLACES}.",
        f"mean of (3 * {_name}_excess[d=48] - {_name}_excess[d=16]) / 2 is 0 within 0.05",
        on=SIZES,
        cells=with_excess,
        number=f"at each place the part of {_symbol} over its limit, less 1, that stays as d grows",
        because="a twentieth",
        hypotheses="d → ∞ at fixed α, τ and κ; told from d = 16 and 48, at ρ = 0.1",
        figure="sizes",
    )
    lu.ours(
        f"power-{_name}",
        "the asymptotic errors",
        f"What the limit lacks of {_symbol} falls as 1/d: from d = 12 to 48, as a power of d from "
        "−1/2 to −3/2, at each of 4 places: α = 4, τ = 1/2 and 4, κ = 1/2 and 2.",
        f"mean of {_name}_excess[d=12] / 2 - {_name}_excess[d=48] > 0; "
        f"mean of {_name}_excess[d=48] - {_name}_excess[d=12] / 8 > 0",
        on=SIZES.where(ridge=1e-6),
        cells=with_excess,
        because="half the way to the next powers: 4 to the power of 1/2 is 2, and of 3/2 it is 8",
        hypotheses="ρ = 0.1 and λ = 10⁻⁶; with a ridge of 0.1 it is too small to tell",
        figure="sizes",
    )
lu.ours(
    "far-at-32",
    "the asymptotic errors",
    "With half as many tasks as features the limit is far: at d = 32 the error on new tasks is "
    "more than a tenth above it, at α = τ = 4.",
    "mean of icl_excess > 0.1",
    on=SIZES.where(d=32, tau=4.0, kappa=0.5, ridge=1e-6),
    cells=with_excess,
    because="a tenth",
    hypotheses="ρ = 0.1 and λ = 10⁻⁶",
    figure="sizes",
)


# Sequences and context

lu.paper(
    "double-descent",
    "Figure 1",
    "The error on new tasks peaks at τ = 1, at each of three α: there it is twice what it is at "
    "τ = 0.8 and at 1.25, or more, and at τ = 4 it is less than at 0.2.",
    "geometric mean of icl_error[tau=1] / icl_error[tau=0.8] > 2; "
    "geometric mean of icl_error[tau=1] / icl_error[tau=1.25] > 2; "
    "geometric mean of icl_error[tau=4] / icl_error[tau=0.2] < 1",
    on=on("icl-descent", alpha=(1.0, 4.0, 16.0), tau=(0.2, 0.8, 1.0, 1.25, 4.0)),
    because="a factor of 2",
    hypotheses="d = 24, a new task in each sequence, ρ = 0.1, λ = 10⁻⁶",
    figure="descent",
)
_CONTEXT = "d → ∞; d = 24, τ = 1/2 and 4, ρ = 0.1, λ = 10⁻⁶"
lu.paper(
    "context-turns",
    "Figure 2",
    "With fewer tasks than min(τ, 1) d the error on new tasks is not monotone in the context: at "
    "α = 4 it is a twentieth below that at 1/2, or more, and a third below that at 256.",
    "mean of icl_error[alpha=4] / icl_error[alpha=0.5] < 0.95; "
    "mean of icl_error[alpha=4] / icl_error[alpha=256] < 0.67",
    on=CONTEXT.where(kappa=0.375),
    because="a twentieth and a third",
    hypotheses=f"{_CONTEXT}; κ = 3/8",
    figure="context",
)
lu.paper(
    "context-helps",
    "Figure 2",
    "With more tasks it falls as the context grows, at ten α from 1/2 to 256.",
    "icl_error falls along alpha",
    on=CONTEXT.where(kappa=2.0),
    hypotheses=f"{_CONTEXT}; κ = 2: near min(τ, 1) the limit itself rises at this ρ",
    figure="context",
)


# Tasks, and the published means

lu.paper(
    "transition",
    "Figure 4",
    "Linear attention goes from memorising tasks to generalising at κ = 1, where the posterior "
    "mean over the tasks does not: from κ = 0.4 to 2 its task gap falls tenfold or more, and the "
    "posterior mean's by less than a third.",
    "mean of task_gap[kappa=0.4] / task_gap[kappa=2] > 10; "
    "mean of posterior_gap[kappa=0.4] / posterior_gap[kappa=2] < 1.5",
    on=GAP.where(d=32, task_norm="fixed"),
    because="a factor of 10 and one of 1.5",
    hypotheses="α = τ = 10, ρ = 0.01, λ = 10⁻⁶, d = 32",
    figure="gap",
)


@functools.cache
def published() -> pd.DataFrame:
    """Return published means and deviations of both task gaps, a row for each d and κ.

    Those of the posterior mean are of 1,000 draws, and have the deviation of means of 50.
    """
    return pd.read_csv(Path(__file__).with_name("published.csv"))


def over_published(column: str, cells: pd.DataFrame) -> pd.DataFrame:
    """Return cells with a column over its published mean, as `ratio`.

    Ratios spread about their mean as widely as that and the published mean are uncertain together.
    """
    means = published().set_index(["d", "kappa"])
    at = pd.MultiIndex.from_frame(cells[["d", "kappa"]])
    rows = means.reindex(at).set_axis(cells.index)
    ratio = finite_column(cells, column) / rows[column]
    error = rows[f"{column}_sd"] / np.sqrt(rows["seeds"]) / rows[column]
    setting = [cells["d"], cells["kappa"]]
    mean, own = ratio.groupby(setting).transform("mean"), ratio.groupby(setting).transform("sem")
    return cells.assign(ratio=mean + (ratio - mean) * np.hypot(1, error / own))


for _name, _column, _d, _most, _within, _because in (
    ("gap-32", "task_gap", 32, 8.0, 0.25, "a quarter: at κ = 8 runs of the paper deviate by that"),
    ("gap-10", "task_gap", 10, 4.0, 0.5, "a half: at κ = 4 runs of the paper deviate by that"),
    ("posterior-32", "posterior_gap", 32, 32.0, 0.25, "a quarter: four standard errors"),
    ("posterior-10", "posterior_gap", 10, 32.0, 0.25, "a quarter: four standard errors"),
):
    _places = tuple(kappa for kappa in KAPPAS if kappa <= _most)
    lu.paper(
        f"published-{_name}",
        "the published simulations",
        f"{'The posterior mean' if 'post' in _name else 'Linear attention'}'s task gap is that "
        f"published at d = {_d}, at each of {len(_places)} κ from 0.2 to {_most:g}.",
        f"mean of ratio is 1 within {_within}",
        on=GAP.where(d=_d, task_norm="drawn", kappa=_places),
        cells=functools.partial(over_published, _column),
        number="at each κ the task gap over the published mean, whose standard error counts,",
        because=_because,
        hypotheses="α = τ = 10, ρ = 0.01, λ = 10⁻⁶; tasks are as they are drawn: on seeds below "
        "1000 the published means agree with these, and not with tasks of ‖w‖² = d",
        figure="posterior" if "post" in _name else "gap",
    )

CLAIMS = tuple(lu.claims)
