"""Claims after Table 1: the numbers of hidden units and of steps, by activation.

All are ours. The table is about sufficient numbers where λ < 1 and m is as large as it says, and no
sweep has such m; measured are the numbers that networks need.

A cell that doesn't come to ε takes more steps than it was given, so ratios of steps are medians.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from overfit_cli.claims.cells import OUTCOMES, Selection, is_unknown
from overfit_cli.claims.python import near, ratio
from overfit_cli.claims.rules import Margin, judge_estimate, mark_vacuous
from overfit_cli.claims.stated import Choose
from overfit_cli.core.claim import Claim, Measurement, not_run
from overfit_cli.stats.intervals import mean_estimate
from overfit_cli.studies.softmax_network.convergence.claims.kernels import (
    softmax_claim,
    softmax_sentence,
)
from overfit_cli.studies.softmax_network.convergence.parameters import SoftmaxConvergenceParameters
from overfit_cli.studies.softmax_network.convergence.widths import (
    ENOUGH,
    LEAST_WIDTH,
    sufficient_widths,
    widest,
)
from overfit_cli.studies.softmax_network.paper import NAMES, Activation

AT_MOST_SQUARE = Margin(
    most=2.5,
    because="2, and half the way to 3 for the o(1); logarithms are divided out",
    target=2.0,
)

PRESETS = {"stability": "softmax-table1", "paper": "softmax-table1-paper"}
RULES = {"stability": "1/(m λ_max)", "paper": "Corollary 4.3's, without its e^(16B)"}
LOGARITHMS: Mapping[Activation, int] = {"softmax": 2, "exp": 2, "relu": 1}
"""The power of log(n) in Table 1's m."""

Pair = tuple[Activation, Activation]
BETWEEN = dict.fromkeys(("steps_to_epsilon", "width"), ("least", "most"))
"""The columns with the ends of numbers that a sweep does not reach."""

STEPS = "steps_to_epsilon{}"
_SWEPT = {"activation", "m", "n"}
_ALIKE = set(SoftmaxConvergenceParameters.model_fields) - _SWEPT - {"step_rule", "dtype"}


def _grid(cells: pd.DataFrame, rule: str, activations: tuple[Activation, ...]) -> pd.DataFrame:
    return Selection(
        SoftmaxConvergenceParameters,
        at={"step_rule": rule, "activation": activations, "dtype": "float64"},
        vary={"n"},
        alike=_ALIKE,
        fewest={"m": 4},
        includes={"activation": activations},
        preset=PRESETS[rule],
    ).of(cells)


def step_ranges(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the least and the most steps to ε that each cell may take, as `least` and `most`."""
    steps = cells["steps_to_epsilon"].astype(float)
    taken = cells["steps"].astype(float).where(cells["reason"].isin(OUTCOMES), 0.0)
    return cells.assign(least=steps.fillna(taken).fillna(0.0), most=steps.fillna(np.inf))


def _wide_steps(cells: pd.DataFrame, pair: Pair, rule: str) -> pd.DataFrame:
    return step_ranges(widest(_grid(cells, rule, pair)))


def width_range(grid: pd.DataFrame) -> pd.DataFrame:
    """Return the least and the most sufficient width of each `activation`, `n` and `seed`.

    A width before the sweep lies between two hidden units and its first m, one beyond it above its
    last m. Cells that failed for other reasons than training, or are absent, may be slow or not.
    """
    ratios = grid["steps_over_limit"].astype(float)
    unknown = is_unknown(grid) | (ratios.isna() & (grid["status"] == "done"))
    slow = sufficient_widths(grid)
    fast = sufficient_widths(grid.assign(steps_over_limit=ratios.mask(unknown, 1.0)))
    ends = pd.concat([slow["width"], fast["width"]], axis=1)
    first, last = grid["m"].min(), grid["m"].max()
    least = ends.min(axis=1).clip(LEAST_WIDTH, last)
    most = ends.max(axis=1).clip(first)
    return slow[["activation", "n", "seed"]].assign(least=least, most=most)


def _widths(cells: pd.DataFrame, pair: Pair, rule: str) -> pd.DataFrame:
    ranges = width_range(_grid(cells, rule, pair))
    known = ranges["least"] == ranges["most"]
    return ranges.assign(width=ranges["least"].where(known), status="done")


def slopes_between(logs: pd.DataFrame) -> pd.DataFrame:
    """Return the least and the most slope in log n of each seed, of logarithms with two ends.

    Args:
        logs: `n`, `seed`, and the ends of a logarithm as `least` and `most`.
    """
    x = np.log(logs["n"].astype(float))
    centred = x - np.log(logs["n"].unique().astype(float)).mean()
    weights = centred / (centred**2).groupby(logs["seed"]).transform("sum")
    rising = weights > 0
    ends = {
        "least": weights * logs["least"].where(rising, logs["most"]),
        "most": weights * logs["most"].where(rising, logs["least"]),
    }
    return pd.DataFrame(ends).groupby(logs["seed"]).sum()


def _steepest_slope(logs: pd.DataFrame, first: float, last: float) -> float:
    """Return the largest mean power of n that widths within the sweep can show.

    It is that of widths which jump from the first m to the last between two n.

    Args:
        logs: `n`, `seed`, and the logarithm of what each width is multiplied by as `scale`.
    """
    slopes = []
    for n in sorted(logs["n"].unique())[1:]:
        width = np.log(np.where(logs["n"] < n, first, last)) + logs["scale"]
        slopes.append(slopes_between(logs.assign(least=width, most=width))["least"].mean())
    return float(max(slopes))


def width_logs(grid: pd.DataFrame, activation: Activation) -> pd.DataFrame:
    """Return the logarithm of λ² m / log(n)^k, of the smallest sufficient m of each n and seed.

    λ is that of the widest networks, k the power of the logarithm in Table 1.

    Args:
        grid: a sweep of one activation over m and n.

    Returns:
        `n`, `seed`, the ends of the logarithm as `least` and `most`, and that of its other factors
        than m as `scale`.
    """
    widths = width_range(grid)
    smallest = widest(grid).set_index(["n", "seed"])["lambda_start"].astype(float)
    squares = widths.join(smallest, on=["n", "seed"])["lambda_start"] ** 2
    scale = np.log(squares / np.log(widths["n"]) ** LOGARITHMS[activation])
    least = (np.log(widths["least"]) + scale).fillna(-np.inf)
    most = (np.log(widths["most"]) + scale).fillna(np.inf)
    return widths[["n", "seed"]].assign(least=least, most=most, scale=scale)


def _exponent(cells: pd.DataFrame, activation: Activation) -> Measurement:
    """Measure the power of n in λ² m / log(n)^k, of the smallest sufficient m, seed by seed."""
    grid = _grid(cells, "stability", (activation,))
    if grid["n"].nunique() < 3:
        raise not_run(f"It takes three n, as in `overfit sweep {PRESETS['stability']}`.")
    widths, logs = width_range(grid), width_logs(grid, activation)
    slopes = slopes_between(logs)
    steepest = _steepest_slope(logs, grid["m"].min(), grid["m"].max())
    middle = ((np.log(widths["least"]) + np.log(widths["most"])) / 2).groupby(widths["n"]).median()
    measured = judge_estimate(
        mean_estimate(slopes["least"], up_to=slopes["most"]),
        AT_MOST_SQUARE,
        details={
            "the largest power that the sweep could show": steepest,
            **{f"median width, n = {n}": float(np.exp(log)) for n, log in middle.items()},
            "seeds with a width before the sweep or beyond it": widths.loc[
                widths["least"] < widths["most"], "seed"
            ].nunique(),
        },
        note="λ is that of the widest networks.",
    )
    if measured.verdict != "holds" or steepest > AT_MOST_SQUARE.most:
        return measured
    words = (
        f"Widths of this sweep show a power of at most {steepest:.2g}: it could not have failed."
    )
    return mark_vacuous(measured, words, {})


PAIRS = tuple(combinations(NAMES, 2))


def _ratio_claim(
    choose: Choose,
    number: str,
    pair: Pair,
    name: str,
    statement: str,
    preset: str,
    **fields: Any,
) -> Claim:
    """Return a claim that two activations have almost the same number, seed by seed.

    Args:
        number: the expression, with `{}` in the place of the activation.
        **fields: further ones of the claim.
    """
    first, second = (number.format(f"[activation={activation}]") for activation in pair)
    return softmax_sentence(
        choose,
        near(ratio(first, second), 1, factor=2, seeds=10, where=["n is largest"]),
        "the median ratio of theirs, at the largest n of the sweep,",
        "a factor of two",
        BETWEEN,
        name=name,
        kind="ours",
        source="Table 1",
        statement=statement,
        figure="table1",
        preset=preset,
        **fields,
    )


def _steps_claim(pair: Pair) -> Claim:
    """A claim on T λ² at the paper's step size."""
    first, second = (NAMES[activation] for activation in pair)
    return _ratio_claim(
        partial(_wide_steps, pair=pair, rule="paper"),
        "steps_to_epsilon{0} * lambda_start{0}**2",
        pair,
        f"steps-{pair[0]}-{pair[1]}-paper",
        f"At the step size 0.1 λ/(m n²) {first} and {second} networks need almost the same T λ², "
        "where they are wide; T is the number of steps to ε, λ the smallest eigenvalue of "
        "each network's own kernel.",
        PRESETS["paper"],
        hypotheses="the step size is Corollary 4.3's without its e^(16B); it contains λ, so that "
        "T λ² depends little on anything else; Table 1's m isn't met, and its λ < 1 on every "
        "seed by ReLU alone",
    )


def _exponent_claim(activation: Activation) -> Claim:
    logarithm = "log²(n)" if LOGARITHMS[activation] == 2 else "log(n)"
    return softmax_claim(
        f"width-exponent-{activation}",
        "ours",
        "Table 1",
        f"At the step size {RULES['stability']} the smallest width that suffices for "
        f"{NAMES[activation]} grows with n no faster than λ⁻² n^2.5 {logarithm}.",
        AT_MOST_SQUARE.in_words("the power of n in λ² times the smallest sufficient width"),
        partial(_exponent, activation=activation),
        "table1",
        PRESETS["stability"],
        f"a width suffices here where training takes at most {ENOUGH:g} times the steps of "
        "infinite width; Table 1 says of a far larger width that it suffices, at another step "
        "size, and nothing of how the smallest grows",
    )


TABLE_CLAIMS = (
    *map(_steps_claim, PAIRS),
    *(
        _ratio_claim(
            partial(choose, pair=pair, rule=rule),
            number,
            pair,
            f"{kind}-{pair[0]}-{pair[1]}{suffix}",
            f"{NAMES[pair[0]]} and {NAMES[pair[1]]} networks need the same number of {words}; step "
            f"size {RULES[rule]}.",
            PRESETS[rule],
        )
        for pair in PAIRS
        for kind, suffix, rule, words, choose, number in (
            ("steps", "", "stability", "steps, where they are wide", _wide_steps, STEPS),
            (
                "steps",
                "-without-lambda",
                "paper",
                "steps, λ left out, where they are wide",
                _wide_steps,
                STEPS,
            ),
            ("width", "", "stability", "hidden units", _widths, "width{}"),
            ("width", "-paper", "paper", "hidden units", _widths, "width{}"),
        )
    ),
    *map(_exponent_claim, NAMES),
)
