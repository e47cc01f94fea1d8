"""The claims of Table 1: the three networks need the same number of hidden units and of steps."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import combinations

import numpy as np
import pandas as pd

from overfit_cli.claims.cells import Selection, finite_numbers, require_trained
from overfit_cli.claims.rules import (
    exponentiate,
    factor_margin,
    judge_estimate,
    judge_estimates,
    tolerance_margin,
)
from overfit_cli.core.claim import Claim, Measurement, inconclusive, not_run
from overfit_cli.stats.boundaries import contour
from overfit_cli.stats.intervals import level_of_each, mean_estimate
from overfit_cli.studies.softmax_network.convergence.claims.bounds import (
    ENOUGH,
    keep_slow_cells,
    sufficient_widths,
    widest,
)
from overfit_cli.studies.softmax_network.convergence.claims.kernels import softmax_claim
from overfit_cli.studies.softmax_network.convergence.parameters import SoftmaxConvergenceParameters
from overfit_cli.studies.softmax_network.paper import NAMES, Activation

ALMOST_THE_SAME = factor_margin(1.0, 2.0, "a factor of two", fewest_seeds=10)
SQUARE = tolerance_margin(2.0, 0.5, "half the way to 1 and to 3", fewest_seeds=10)

PRESETS = {"stability": "softmax-table1", "paper": "softmax-table1-paper"}
DIMENSION = "softmax-dimension"
RULES = {"stability": "1/(m λ_max)", "paper": "Theorem 4.2's, without its e^(16B)"}

_SWEPT = {"activation", "m", "n"}
_ALIKE = set(SoftmaxConvergenceParameters.model_fields) - _SWEPT - {"step_rule"}


def _grid(cells: pd.DataFrame, rule: str, activations: tuple[str, ...]) -> pd.DataFrame:
    """The cells of a sweep over m and n with one step rule."""
    grid = require_trained(
        Selection(
            SoftmaxConvergenceParameters,
            at={"step_rule": rule, "activation": activations},
            vary={"n"},
            alike=_ALIKE,
            fewest={"m": 4},
            preset=PRESETS[rule],
        ).of(cells)
    )
    if (present := grid["activation"].nunique()) < len(activations):
        raise not_run(
            f"It takes {' and '.join(activations)}, and there is {present} of them, as in `overfit "
            f"sweep {PRESETS[rule]}`."
        )
    return grid


def _judge_ratio(
    table: pd.DataFrame, column: str, pair: tuple[Activation, Activation], missing: str
) -> Measurement:
    """Measure the ratio of a column between two activations, at the largest n, seed by seed."""
    largest = table[table["n"] == table["n"].max()]
    by_seed = largest.pivot(index="seed", columns="activation", values=column).astype(float)
    finite = by_seed[np.isfinite(by_seed).all(axis=1) & (by_seed > 0).all(axis=1)]
    if finite.empty:
        raise inconclusive(f"On no seed do both have a number: {missing}.")
    ratios = np.log(finite[pair[0]]) - np.log(finite[pair[1]])
    return judge_estimate(
        exponentiate(mean_estimate(ratios)),
        ALMOST_THE_SAME,
        details={
            **{
                f"median, {NAMES[activation]}": float(finite[activation].median())
                for activation in pair
            },
            f"seeds on which {missing}": len(by_seed) - len(finite),
        },
        note=f"{NAMES[pair[0]]} over {NAMES[pair[1]]} at n = {largest['n'].iloc[0]}, geometric "
        "means over seeds.",
    )


def _steps(cells: pd.DataFrame, pair: tuple[Activation, Activation], rule: str) -> Measurement:
    wide = widest(_grid(cells, rule, pair))
    finite_numbers(wide[wide["status"] == "done"], "steps_to_epsilon")
    return _judge_ratio(wide, "steps_to_epsilon", pair, "one doesn't come to ε within the steps")


def _widths(cells: pd.DataFrame, pair: tuple[Activation, Activation], rule: str) -> Measurement:
    grid = _grid(cells, rule, pair)
    finite_numbers(grid[grid["status"] == "done"], "steps_over_limit")
    widths = sufficient_widths(grid)
    return _judge_ratio(widths, "width", pair, "no m of the sweep suffices, or all do")


def _dimension_ratios(cells: pd.DataFrame, pair: tuple[Activation, Activation]) -> Measurement:
    """Measure the ratio of steps between two activations at each d, seed by seed."""
    chosen = require_trained(
        Selection(
            SoftmaxConvergenceParameters,
            at={"activation": pair},
            alike=_ALIKE - {"d"} | {"m", "n", "step_rule"},
            fewest={"d": 3},
            preset=DIMENSION,
        ).of(cells)
    )
    steps = chosen.pivot(index=["d", "seed"], columns="activation", values="steps_to_epsilon")
    if len(steps.columns) < len(pair):
        raise not_run(f"It takes {' and '.join(pair)}, as in `overfit sweep {DIMENSION}`.")
    by_pair = steps.astype(float)
    if (lost := int(by_pair.isna().any(axis=1).sum())) > 0:
        raise inconclusive(f"On {lost} pairs of cells one doesn't come to ε within the steps.")
    ratios = np.log(by_pair[pair[0]]) - np.log(by_pair[pair[1]])
    level = level_of_each(ratios.index.get_level_values("d").nunique())
    by_dimension = {
        f"d = {d}": (exponentiate(mean_estimate(logs.droplevel("d"), level)), ALMOST_THE_SAME)
        for d, logs in ratios.groupby("d")
    }
    return judge_estimates(by_dimension, note=f"{NAMES[pair[0]]} over {NAMES[pair[1]]}.")


def _exponent(cells: pd.DataFrame, activation: Activation) -> Measurement:
    """Measure p of the smallest sufficient width m ∝ n^p, seed by seed."""
    grid = _grid(cells, "stability", (activation,))
    finite_numbers(grid[grid["status"] == "done"], "steps_over_limit")
    slow = keep_slow_cells(grid)
    fitted = (
        contour(slow, "m", "n", "steps_over_limit", ENOUGH) if grid["n"].nunique() > 2 else None
    )
    if fitted is None:
        raise not_run("It takes a seed with a sufficient width for each of three n or more.")
    return judge_estimate(
        mean_estimate(fitted.powers),
        SQUARE,
        details={
            **{f"width, n = {n}": float(np.exp(log)) for n, log in fitted.middle.items()},
            "seeds left out": fitted.left_out,
        },
        note="The power of n in the smallest m with which training takes at most twice the steps "
        "of infinitely many hidden units.",
    )


def _claim(
    name: str,
    statement: str,
    holds_where: str,
    measure: Callable[[pd.DataFrame], Measurement],
    preset: str,
    figure: str = "table1",
) -> Claim:
    return softmax_claim(name, "Table 1", statement, holds_where, measure, figure, preset)


PAIRS = tuple(combinations(NAMES, 2))
_RATIO = "the ratio of theirs, at the largest n of the sweep,"

TABLE_CLAIMS = (
    *(
        _claim(
            f"{kind}-{first}-{second}{'-paper' if rule == 'paper' else ''}",
            f"{NAMES[first]} and {NAMES[second]} networks need the same number of {words}; step "
            f"size {RULES[rule]}.",
            ALMOST_THE_SAME.in_words(_RATIO),
            partial(measure, pair=(first, second), rule=rule),
            PRESETS[rule],
        )
        for rule in RULES
        for first, second in PAIRS
        for kind, words, measure in (
            ("steps", "steps, where they are wide", _steps),
            ("width", "hidden units", _widths),
        )
    ),
    *(
        _claim(
            f"steps-{first}-{second}-dimension",
            f"{NAMES[first]} and {NAMES[second]} networks need the same number of steps, whatever "
            "the dimension of the inputs is.",
            ALMOST_THE_SAME.in_words("the ratio of theirs, at every d of the sweep,"),
            partial(_dimension_ratios, pair=(first, second)),
            DIMENSION,
            figure="lines",
        )
        for first, second in PAIRS
    ),
    *(
        _claim(
            f"width-exponent-{activation}",
            f"The width that a network with {NAMES[activation]} needs grows as n^(2 + o(1)).",
            SQUARE.in_words("the power of n in the smallest sufficient width"),
            partial(_exponent, activation=activation),
            PRESETS["stability"],
        )
        for activation in NAMES
    ),
)
