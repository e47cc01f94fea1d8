"""Claims on Cui et al. 2024: the two solutions, the limit of many features, and the transitions.

What the paper states of d → ∞ is judged at d = 1000 and by how fluctuations shrink with d; a
transition at each ω whose limit lies among the sampled α, below nine tenths of the largest.
"""

from __future__ import annotations

import functools
import importlib.resources
import io
from collections.abc import Mapping
from functools import partial
from typing import Any, Literal

import pandas as pd
from scipy.interpolate import PchipInterpolator

from overfit_cli.claims.cells import Selection
from overfit_cli.claims.stated import Choose, stated_claim
from overfit_cli.core.claim import Claim, not_run
from overfit_cli.studies.positional_semantic import PAPER
from overfit_cli.studies.positional_semantic.parameters import PositionalSemanticParameters
from overfit_cli.studies.positional_semantic.transition import Transition, transitions

PUBLISHED, SIZES = "positional-published", "positional-sizes"

FEATURES = 1000
"""The features of the published simulations."""

INSIDE = 0.9
"""The share of the largest sampled α below which a transition's limit must lie."""


def _claim(choose: Choose, stated: str, number: str, because: str, **fields: Any) -> Claim:
    return stated_claim(
        choose, PositionalSemanticParameters, stated, number=number, because=because, **fields
    )


def _selection(preset: str, *starts: str, **at: object) -> Selection:
    chosen = starts or ("semantic", "positional")
    fixed = {"start": chosen, **({"d": FEATURES} if preset == PUBLISHED else {}), **at}
    return Selection(
        PositionalSemanticParameters,
        at=fixed,
        vary={"alpha", "d" if preset == SIZES else "omega"} - set(at),
        includes={"start": chosen},
        preset=preset,
    )


_COLUMNS = (
    ("semantic", "theta"),
    ("positional", "m"),
    ("semantic", "test_error"),
    ("positional", "test_error"),
    ("semantic", "train_loss"),
    ("positional", "train_loss"),
)

_MARGINS = (
    ("theta", "overlap θ", 0.03),
    ("m", "overlap m", 0.0125),
    ("test_error", "test error", 0.0),
    ("train_loss", "training loss", 0.0),
)
"""The columns in words, and margins: a twentieth of the largest θ and m; 0 stands for 5 %."""


@functools.cache
def published_means() -> pd.DataFrame:
    """Return the published means and deviations at ω = 0.1, 0.3 and 0.5, a row for each place."""
    return _read_file("published.csv")


@functools.cache
def published_theory() -> pd.DataFrame:
    """Return the authors' solution of the replica equations at ω = 0.3: both branches along α."""
    return _read_file("published_theory.csv")


def _read_file(name: str) -> pd.DataFrame:
    package = importlib.resources.files("overfit_cli.studies.positional_semantic")
    return pd.read_csv(io.StringIO((package / name).read_text("utf-8")))


def beside_means(cells: pd.DataFrame, choose: Choose) -> pd.DataFrame:
    """Return the chosen cells at published places, with the means there as `published_COLUMN`."""
    names = {name: f"published_{name}" for name, *_ in _MARGINS}
    keys = ["omega", "start", "d", "place"]
    means = published_means().rename(columns=names).assign(place=_places)[[*keys, *names.values()]]
    beside: pd.DataFrame = choose(cells).assign(place=_places).merge(means, on=keys, how="left")
    return beside.drop(columns="place")


def beside_theory(cells: pd.DataFrame, choose: Choose) -> pd.DataFrame:
    """Return the chosen cells, with the authors' solution as `published_COLUMN`.

    Between the authors' values of α it is interpolated, by cubics that keep its monotony.
    """
    beside = choose(cells).copy()
    for start, solution in published_theory().groupby("start"):
        chosen = beside["start"] == start
        alphas = beside.loc[chosen, "alpha"].astype(float)
        for name, *_ in _MARGINS:
            curve = PchipInterpolator(solution["alpha"], solution[name])
            beside.loc[chosen, f"published_{name}"] = curve(alphas)
    return beside


def _with_limit(cells: pd.DataFrame, choose: Choose, limit: str) -> pd.DataFrame:
    chosen = choose(cells)
    known = chosen[limit].notna().groupby([chosen["omega"], chosen["alpha"]]).transform("any")
    rows: pd.DataFrame = chosen[known]
    return rows


def _places(cells: pd.DataFrame) -> pd.Series[float]:
    return cells["alpha"].astype(float).round(6)


Against = Literal["theory", "solved", "published"]

_SAID: Mapping[Against, tuple[str, str, str, str]] = {
    "theory": ("", "of the authors' solution", "Result 4.2", "ω = 0.3"),
    "solved": ("-solved", "of our solution", "Result 4.2, a question", "all ω"),
    "published": ("-published", "published", "the simulations", "all ω"),
}
"""The end of a claim's name, whose its other number is, its source, and where it is judged."""


_OF_LIMIT = (
    "d → ∞ at n = α d; the cells have d = 1000, and end where gradient descent does, which need "
    "not be the global minimum of the solution"
)
_HYPOTHESES: Mapping[Against, str] = {
    "theory": f"{_OF_LIMIT}; between the authors' values of α the solution is interpolated",
    "solved": f"{_OF_LIMIT}; α where no solution of the equations is found are left out",
    "published": "n = α d, d = 1000 and 24 seeds, as the published means",
}


def _column_claim(start: str, column: str, words: str, margin: float, against: Against) -> Claim:
    end, whose, source, where = _SAID[against]
    choose: Choose = _selection(PUBLISHED, start, **({"omega": 0.3} if not end else {})).of
    other = f"published_{column}"
    if against == "solved":
        other = f"replica_{'loss' if column == 'train_loss' else column}"
        choose = partial(_with_limit, choose=choose, limit=other)
    else:
        beside = beside_theory if against == "theory" else beside_means
        choose = partial(beside, choose=choose)
    if margin:
        stated = f"mean of {column} - {other} is 0 within {margin} on average"
    else:
        stated = f"mean of ({column}) / ({other}) is 1 within 5% on average"
    return _claim(
        choose,
        stated,
        f"{words} {'less' if margin else 'over'} that {whose}, averaged over α,",
        "a twentieth",
        name=f"{start}-{column.replace('_', '-')}{end}",
        kind="ours" if against == "solved" else "paper",
        source=f"{PAPER}, {source}",
        statement=f"Gradient descent from the {start} start ends with the {words} {whose} for the "
        f"{start} solution, at {where} and α from 0.01 to 2.",
        hypotheses=_HYPOTHESES[against],
        figure="overlaps",
        preset=PUBLISHED,
    )


def _vanishing_claim(start: str, column: str, symbol: str) -> Claim:
    return _claim(
        _selection(SIZES, start).of,
        f"mean of power of d in {column} is -0.5 within 0.25 on average",
        f"the power of d in {symbol}, averaged over α,",
        "half of the power of a fluctuation, 1/√d",
        name=f"{start}-{column}-vanishes",
        kind="paper",
        source=f"{PAPER}, Result 4.2",
        statement=f"In the {start} solution {symbol} is 0: at finite d it falls as 1/√d, as a "
        "fluctuation does.",
        hypotheses="d → ∞ at n = α d; d from 100 to 800, ω = 0.3, α from 0.6 to 2",
        figure="sizes",
        preset=SIZES,
    )


_NEEDED: Mapping[Transition, list[str]] = {
    "energy": ["train_loss", "m", "replica_loss", "replica_m"],
    "linear": [
        "test_error",
        "linear_test_error",
        "replica_test_error",
        "replica_linear_error",
    ],
}


def _has_all(cells: pd.DataFrame, transition: Transition) -> pd.Series[bool]:
    lacking = cells[_NEEDED[transition]].isna()
    point = [cells[name] for name in ("omega", "d", "alpha", "start")]
    alone = (lacking & ~lacking.groupby(point).transform("all")).any(axis=1)
    complete: pd.Series[bool] = ~alone.groupby(cells["seed"]).transform("any")
    return complete


def _transition_rows(cells: pd.DataFrame, transition: Transition) -> pd.DataFrame:
    chosen: pd.DataFrame = _selection(PUBLISHED).of(cells)
    table = transitions(chosen, transition, "omega")
    inside = table[table["limit"] < INSIDE * chosen["alpha"].max()]
    if inside.empty:
        raise not_run("It needs cells on both sides of a transition.")
    rows: pd.DataFrame = inside.drop(columns="alpha").assign(status="done")
    complete = _has_all(chosen, transition).groupby(chosen["seed"]).first()
    is_known = rows["seed"].map(complete) & (rows["ratio"] > 0)  # 0: below the sampled α
    return rows.assign(ratio=rows["ratio"].where(is_known))


def _cells_at_transition(cells: pd.DataFrame) -> pd.DataFrame:
    limits = _transition_rows(cells, "energy").drop_duplicates("omega")
    chosen = _selection(PUBLISHED).of(cells)
    numbers = ["theta", "m", "slope"]
    chosen[numbers] = chosen[numbers].where(_has_all(chosen, "energy"), axis=0)
    chosen = chosen.merge(limits[["omega", "limit"]], on="omega")
    distance = (chosen["alpha"] - chosen["limit"]).abs()
    nearest = distance == distance.groupby(chosen["omega"]).transform("min")
    rows: pd.DataFrame = chosen[nearest].drop(columns="limit")
    return rows


_AT_TRANSITIONS: Mapping[str, Any] = {
    "kind": "paper",
    "hypotheses": f"d → ∞; the cells have d = {FEATURES}",
    "figure": "branches",
    "preset": PUBLISHED,
}


def _transition_claim(transition: Transition, meaning: str, limit: str, **fields: str) -> Claim:
    return _claim(
        partial(_transition_rows, transition=transition),
        "mean of ratio is 1 within 10% on average",
        f"the α at which {meaning} over the {limit} of the replica equations, averaged over ω,",
        "a tenth",
        **fields,
        **_AT_TRANSITIONS,
    )


CLAIMS: tuple[Claim, ...] = (
    *(
        _column_claim(start, column, words, margin, against)
        for against in _SAID
        for start, column in _COLUMNS
        for name, words, margin in _MARGINS
        if name == column and (against != "solved" or column in ("theta", "m"))
    ),
    _vanishing_claim("semantic", "m", "m"),
    _vanishing_claim("positional", "theta", "θ"),
    _transition_claim(
        "energy",
        "both starts have one training loss",
        "α_c",
        name="transition",
        source=f"{PAPER}, the phase transition",
        statement="The positional solution has the smaller training loss below α_c(ω) of the "
        "replica equations, and the semantic solution above it.",
    ),
    _claim(
        _cells_at_transition,
        "mean of theta[start=semantic] - theta[start=positional] > 0.1; "
        "mean of m[start=positional] - m[start=semantic] > 0.1; "
        "mean of slope[start=semantic] < 0.05; mean of slope[start=positional] < 0.05",
        "",
        "",
        name="first-order",
        source=f"{PAPER}, the phase transition",
        statement="The transition is of first order: at α_c both solutions are minima, and between "
        "them θ and m jump, here by 0.1 or more, a fifth and a third of what they are; gradients "
        "are balanced to a twentieth of the penalty's.",
        **_AT_TRANSITIONS,
    ),
    _transition_claim(
        "linear",
        "attention has the test error of the best linear map",
        "α_l",
        name="beats-linear",
        source=f"{PAPER}, the linear baseline",
        statement="From α_l(ω) of the replica equations on, attention of the semantic solution has "
        "a smaller test error than the best linear map of the two tokens.",
    ),
)
