"""Claims on Cui et al. 2024: the two solutions, the limit of many features, and the transitions.

What the paper states of d → ∞ is judged at d = 1000 and by how fluctuations shrink with d; a
transition at each ω whose limit lies among the sampled α, below nine tenths of the largest.

At α_c both starts have the same training loss; at α_l attention from the semantic start has the
test error of the best linear map. Either is where a curve along α crosses a threshold, on the scale
of log α; the limit's is read off the replica columns in the same way.
"""

from __future__ import annotations

import functools
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy.interpolate import PchipInterpolator

from overfit_cli.claims.papers import Claims, Rows, on
from overfit_cli.core.arrays import finite_column
from overfit_cli.core.claim import not_run
from overfit_cli.stats.boundaries import crossings
from overfit_cli.studies.positional_semantic import PAPER
from overfit_cli.studies.positional_semantic.parameters import Parameters
from overfit_cli.studies.positional_semantic.study import COLUMNS

PUBLISHED, SIZES = on("positional-published"), on("positional-sizes")

cui = Claims("", f"{PAPER}", Parameters, COLUMNS, figure="overlaps")


# Overlaps, errors and losses beside published numbers and the limit


@functools.cache
def published(file: Literal["published", "published_theory"]) -> pd.DataFrame:
    """Return published numbers, a row for each start, ω and α.

    These are means and deviations of simulations at ω = 0.1, 0.3 and 0.5, or both branches of the
    authors' solution of the replica equations at ω = 0.3.
    """
    return pd.read_csv(Path(__file__).with_name(f"{file}.csv"))


_COLUMNS = (
    ("semantic", "theta", "overlap θ", "- {} is 0 within 0.03"),
    ("positional", "m", "overlap m", "- {} is 0 within 0.0125"),
    ("semantic", "test_error", "test error", "/ {} is 1 within 5%"),
    ("positional", "test_error", "test error", "/ {} is 1 within 5%"),
    ("semantic", "train_loss", "training loss", "/ {} is 1 within 5%"),
    ("positional", "train_loss", "training loss", "/ {} is 1 within 5%"),
)
"""Starts and columns with their margins: a twentieth, of the largest θ and m."""


def beside_means(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells at published places, with the means there as `published_COLUMN`."""
    names = {column: f"published_{column}" for _, column, *_ in _COLUMNS}
    keys = ["omega", "start", "d", "place"]
    means = (
        published("published").rename(columns=names).assign(place=_places)[[*keys, *names.values()]]
    )
    return cells.assign(place=_places).merge(means, on=keys, how="left").drop(columns="place")


def _places(cells: pd.DataFrame) -> pd.Series[float]:
    return cells["alpha"].astype(float).round(6)


def beside_theory(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells with the authors' solution as `published_COLUMN`.

    Between the authors' values of α it is interpolated, by cubics that keep its monotony.
    """
    beside = cells.copy()
    for start, solution in published("published_theory").groupby("start"):
        chosen = beside["start"] == start
        alphas = beside.loc[chosen, "alpha"].astype(float)
        for column in {column for _, column, *_ in _COLUMNS}:
            curve = PchipInterpolator(solution["alpha"], solution[column])
            beside.loc[chosen, f"published_{column}"] = curve(alphas)
    return beside


def _with_limit(cells: pd.DataFrame, limit: str) -> pd.DataFrame:
    known = cells[limit].notna().groupby([cells["omega"], cells["alpha"]]).transform("any")
    rows: pd.DataFrame = cells[known]
    return rows


def _claim_beside(
    whose: str, place: str, cells: Rows | None, hypotheses: str, end: str = "", **at: float
) -> None:
    """Claim that columns are near other numbers; without `cells`, that overlaps are our limit's."""
    for start, column, words, within in _COLUMNS if cells else _COLUMNS[:2]:
        other = f"published_{column}" if cells else f"replica_{column}"
        (cui.paper if cells else cui.ours)(
            f"{start}-{column.replace('_', '-')}{end}",
            place,
            f"Gradient descent from the {start} start ends with the {words} {whose} for the "
            f"{start} solution, at {'ω = 0.3' if at else 'all ω'} and α from 0.01 to 2.",
            f"mean of {column} {within.format(other)} on average",
            on=PUBLISHED.where(start=start, **at),
            cells=cells or partial(_with_limit, limit=other),
            number=f"{words} {'less' if within.startswith('-') else 'over'} that {whose}, averaged "
            f"over {'α' if at else 'α and ω'},",
            because="a twentieth",
            hypotheses=hypotheses,
        )


_OF_LIMIT = (
    "d → ∞ at n = α d; the cells have d = 1000, and end where gradient descent does, which need "
    "not be the global minimum of the solution"
)
_claim_beside(
    "of the authors' solution",
    "Result 4.2",
    beside_theory,
    f"{_OF_LIMIT}; between the authors' values of α the solution is interpolated",
    omega=0.3,
)
_claim_beside(
    "of our solution",
    "Result 4.2",
    None,
    f"{_OF_LIMIT}; α where no solution of the equations is found are left out",
    "-solved",
)
_claim_beside(
    "published",
    "the simulations",
    beside_means,
    "n = α d, d = 1000 and 24 seeds, as the published means",
    "-published",
)

for _start, _column, _symbol in (("semantic", "m", "m"), ("positional", "theta", "θ")):
    cui.paper(
        f"{_start}-{_column}-vanishes",
        "Result 4.2",
        f"In the {_start} solution {_symbol} is 0: at finite d it falls as 1/√d, as a fluctuation "
        "does.",
        f"mean of power of d in {_column} is -0.5 within 0.25 on average",
        on=SIZES.where(start=_start),
        number=f"the power of d in {_symbol}, averaged over α,",
        because="half of the power of a fluctuation, 1/√d",
        hypotheses="d → ∞ at n = α d; d from 100 to 800, ω = 0.3, α from 0.6 to 2",
        figure="sizes",
    )


# The transitions

KEYS = ["omega", "d", "alpha", "seed"]
"""What tells the pairs of cells of the two starts apart."""

Transition = Literal["energy", "linear"]

THRESHOLDS = {"energy": 0.0, "linear": 1.0}
"""The loss of the semantic start less the other's, and its test error over the linear one."""

INSIDE = 0.9
"""The share of the largest sampled α below which a transition's limit must lie."""

DISTINCT = 0.05
"""The overlap m of the positional start below which it has found no second solution."""


def loss_gaps(cells: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each pair of cells: by how much the semantic start's loss over d is larger.

    Columns `KEYS`; `gap`, measured, and `limit`, that of many features, nan where a cell of the
    pair has no number, and where both end in one solution, with m below `DISTINCT`; `status`.
    """
    pairs = {}
    for start in ("semantic", "positional"):
        rows = cells[cells["start"] == start]
        by_d = {}
        for name, column, overlap in (
            ("gap", "train_loss", "m"),
            ("limit", "replica_loss", "replica_m"),
        ):
            losses = finite_column(rows, column) / rows["d"]
            is_second = (start == "semantic") | (finite_column(rows, overlap) >= DISTINCT)
            by_d[name] = losses.where(is_second)
        pairs[start] = rows[KEYS].assign(**by_d).set_index(KEYS)
    gaps = pairs["semantic"] - pairs["positional"]
    return gaps.reset_index().assign(status="done")


def linear_ratios(cells: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each cell of the semantic start: its test error over the linear map's.

    The columns are those of `loss_gaps`.
    """
    rows = cells[cells["start"] == "semantic"]
    ratios = {
        "gap": finite_column(rows, "test_error") / finite_column(rows, "linear_test_error"),
        "limit": finite_column(rows, "replica_test_error")
        / finite_column(rows, "replica_linear_error"),
    }
    return rows[KEYS].assign(**ratios, status="done")


def transitions(cells: pd.DataFrame, transition: Transition) -> pd.DataFrame:
    """Return where each seed's curve along α crosses, at each ω.

    Columns `omega` and `seed`; `alpha`, infinite beyond the sampled values, 0 before them, nan
    where it is not known; `limit`, that of many features; and `ratio`, alpha over limit.
    """
    curves = loss_gaps(cells) if transition == "energy" else linear_ratios(cells)
    threshold = THRESHOLDS[transition]
    measured = crossings(curves, "alpha", "omega", "gap", threshold)
    known = curves.dropna(subset="limit").drop_duplicates(["omega", "alpha"]).assign(seed=0)
    limits = crossings(known, "alpha", "omega", "limit", threshold).set_index("omega")["crossing"]
    table = measured[["omega", "seed"]].assign(alpha=measured["crossing"].clip(lower=0))
    limit = table["omega"].map(limits).where(np.isfinite, np.nan)
    return table.assign(limit=limit, ratio=table["alpha"] / limit)


_NEEDED: dict[Transition, list[str]] = {
    "energy": ["train_loss", "m", "replica_loss", "replica_m"],
    "linear": ["test_error", "linear_test_error", "replica_test_error", "replica_linear_error"],
}


def _has_all(cells: pd.DataFrame, transition: Transition) -> pd.Series[bool]:
    """Return of which cells no cell of the seed lacks a number that another seed has there."""
    lacking = cells[_NEEDED[transition]].isna()
    point = [cells[name] for name in ("omega", "d", "alpha", "start")]
    alone = (lacking & ~lacking.groupby(point).transform("all")).any(axis=1)
    complete: pd.Series[bool] = ~alone.groupby(cells["seed"]).transform("any")
    return complete


def _transition_rows(cells: pd.DataFrame, transition: Transition) -> pd.DataFrame:
    table = transitions(cells, transition)
    inside = table[table["limit"] < INSIDE * cells["alpha"].max()]
    if inside.empty:
        raise not_run("It needs cells on both sides of a transition.")
    complete = _has_all(cells, transition).groupby(cells["seed"]).first()
    is_known = inside["seed"].map(complete) & (inside["ratio"] > 0)  # 0: below the sampled α
    ratio = inside["ratio"].where(is_known)
    rows: pd.DataFrame = inside.drop(columns="alpha").assign(status="done", ratio=ratio)
    return rows


def _cells_at_transition(cells: pd.DataFrame) -> pd.DataFrame:
    limits = _transition_rows(cells, "energy").drop_duplicates("omega")[["omega", "limit"]]
    numbers = ["theta", "m", "slope"]
    known = cells[numbers].where(_has_all(cells, "energy"), axis=0)
    chosen = cells.assign(**known).merge(limits, on="omega")
    distance = (chosen["alpha"] - chosen["limit"]).abs()
    nearest = distance == distance.groupby(chosen["omega"]).transform("min")
    rows: pd.DataFrame = chosen[nearest].drop(columns="limit")
    return rows


_AT_TRANSITIONS: dict[str, Any] = {
    "on": PUBLISHED,
    "figure": "branches",
    "hypotheses": "d → ∞; the cells have d = 1000",
}
_NEAR = {"because": "a tenth", "number": "a seed's α over that of the limit, averaged over ω,"}

cui.paper(
    "transition",
    "the phase transition",
    "The positional solution has the smaller training loss below α_c(ω) of the replica equations, "
    "and the semantic solution above it.",
    "mean of ratio is 1 within 10% on average",
    cells=partial(_transition_rows, transition="energy"),
    **_NEAR,
    **_AT_TRANSITIONS,
)
cui.paper(
    "first-order",
    "the phase transition",
    "The transition is of first order: at α_c both solutions are minima, and between them θ and m "
    "jump, here by 0.1 or more, a fifth and a third of what they are; gradients are balanced to a "
    "twentieth of the penalty's.",
    "mean of theta[start=semantic] - theta[start=positional] > 0.1; "
    "mean of m[start=positional] - m[start=semantic] > 0.1; "
    "mean of slope[start=semantic] < 0.05; mean of slope[start=positional] < 0.05",
    cells=_cells_at_transition,
    **_AT_TRANSITIONS,
)
cui.paper(
    "beats-linear",
    "the linear baseline",
    "From α_l(ω) of the replica equations on, attention of the semantic solution has a smaller "
    "test error than the best linear map of the two tokens.",
    "mean of ratio is 1 within 10% on average",
    cells=partial(_transition_rows, transition="linear"),
    **_NEAR,
    **_AT_TRANSITIONS,
)

CLAIMS = tuple(cui.claims)
