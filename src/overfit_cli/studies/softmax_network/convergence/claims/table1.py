"""Claims after Table 1: the numbers of hidden units and of steps, by activation.

All are ours. The table is about sufficient numbers where λ < 1 and m is as large as it says, and no
sweep has such m; measured are the numbers that networks need.

A cell that doesn't come to ε takes more steps than it was given, so ratios of steps are medians.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from itertools import combinations

import numpy as np
import pandas as pd

from overfit_cli.claims.cells import OUTCOMES, Selection, is_unknown
from overfit_cli.claims.rules import (
    Margin,
    exponentiate,
    factor_margin,
    judge_estimate,
    judge_estimates,
    mark_vacuous,
)
from overfit_cli.core.claim import Claim, Measurement, not_run
from overfit_cli.stats.intervals import Estimate, level_of_each, mean_estimate, median_estimate
from overfit_cli.studies.softmax_network.convergence.claims.kernels import softmax_claim
from overfit_cli.studies.softmax_network.convergence.parameters import SoftmaxConvergenceParameters
from overfit_cli.studies.softmax_network.convergence.widths import (
    ENOUGH,
    LEAST_WIDTH,
    sufficient_widths,
    widest,
)
from overfit_cli.studies.softmax_network.paper import NAMES, Activation

ALMOST_THE_SAME = factor_margin(1.0, 2.0, "a factor of two", fewest_seeds=10)
AT_MOST_SQUARE = Margin(
    most=2.5, because="2, and half the way to 3 for the o(1); logarithms are divided out"
)

PRESETS = {"stability": "softmax-table1", "paper": "softmax-table1-paper"}
DIMENSION = "softmax-dimension"
RULES = {"stability": "1/(m λ_max)", "paper": "Corollary 4.3's, without its e^(16B)"}
LOGARITHMS: Mapping[Activation, int] = {"softmax": 2, "exp": 2, "relu": 1}
"""The power of log(n) in Table 1's m."""

_SWEPT = {"activation", "m", "n"}
_ALIKE = set(SoftmaxConvergenceParameters.model_fields) - _SWEPT - {"step_rule", "dtype"}


def _grid(cells: pd.DataFrame, rule: str, activations: tuple[Activation, ...]) -> pd.DataFrame:
    """The cells of a sweep over m and n with one step rule, failed and absent ones included."""
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


def _median_ratio(
    table: pd.DataFrame, pair: tuple[Activation, Activation], level: float | None = None
) -> Estimate:
    """The median over seeds of the ratio between two activations.

    Args:
        table: `seed`, `activation`, and the least and the most of a number.
        pair: the activations.
        level: of the interval.
    """
    with np.errstate(divide="ignore"):  # of 0
        least, most = (
            np.log(table.pivot(index="seed", columns="activation", values=end).astype(float))
            for end in ("least", "most")
        )
    first, second = pair
    logs = median_estimate(least[first] - most[second], level, up_to=most[first] - least[second])
    # Ratios of whole numbers agree by chance: equal ones are no copies.
    return exponentiate(logs)._replace(seeds=len(least))


def _judge_ratio(
    table: pd.DataFrame, pair: tuple[Activation, Activation], missing: str
) -> Measurement:
    """Judge the ratio between two activations at the largest n, seed by seed."""
    largest = table[table["n"] == table["n"].max()]
    censored = largest["least"] < largest["most"]
    medians = largest[~censored].groupby("activation")["least"].median()
    return judge_estimate(
        _median_ratio(largest, pair),
        ALMOST_THE_SAME,
        details={
            **{f"median, {NAMES[each]}": float(medians.get(each, np.nan)) for each in pair},
            f"seeds on which {missing}": largest.loc[censored, "seed"].nunique(),
        },
        note=f"{NAMES[pair[0]]} over {NAMES[pair[1]]} at n = {largest['n'].iloc[0]}, medians over "
        "seeds.",
    )


_LATE = "one doesn't come to ε within the steps, or has no number"


def _steps(cells: pd.DataFrame, pair: tuple[Activation, Activation], rule: str) -> Measurement:
    return _judge_ratio(step_ranges(widest(_grid(cells, rule, pair))), pair, _LATE)


def _steps_with_lambda(cells: pd.DataFrame, pair: tuple[Activation, Activation]) -> Measurement:
    """Measure the ratio of T λ² between two activations."""
    wide = step_ranges(widest(_grid(cells, "paper", pair)))
    squares = wide["lambda_start"].astype(float) ** 2
    table = wide.assign(
        least=(wide["least"] * squares).fillna(0.0), most=(wide["most"] * squares).fillna(np.inf)
    )
    return _judge_ratio(table, pair, _LATE)


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


def _widths(cells: pd.DataFrame, pair: tuple[Activation, Activation], rule: str) -> Measurement:
    missing = "no m of the sweep suffices, or all do"
    return _judge_ratio(width_range(_grid(cells, rule, pair)), pair, missing)


def _dimension_ratios(cells: pd.DataFrame, pair: tuple[Activation, Activation]) -> Measurement:
    """Measure the ratio of steps between two activations at each d, seed by seed."""
    chosen = Selection(
        SoftmaxConvergenceParameters,
        at={"activation": pair, "dtype": "float64"},
        alike=_ALIKE - {"d"} | {"m", "n", "step_rule"},
        includes={"activation": pair, "d": DIMENSIONS},
        preset=DIMENSION,
    ).of(cells)
    ranges = step_ranges(chosen)
    groups = {d: ranges[ranges["d"] == d] for d in sorted(set(ranges["d"].tolist()))}
    level = level_of_each(len(groups))
    by_dimension = {
        f"d = {d}": (_median_ratio(rows, pair, level), ALMOST_THE_SAME)
        for d, rows in groups.items()
    }
    return judge_estimates(
        by_dimension, note=f"{NAMES[pair[0]]} over {NAMES[pair[1]]}, medians over seeds."
    )


def _slopes(logs: pd.DataFrame) -> pd.DataFrame:
    """The least and the most slope in log n of each seed, of numbers with a least and a most.

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
        first, last: the least and the largest m.
    """
    slopes = []
    for n in sorted(logs["n"].unique())[1:]:
        width = np.log(np.where(logs["n"] < n, first, last)) + logs["scale"]
        slopes.append(_slopes(logs.assign(least=width, most=width))["least"].mean())
    return float(max(slopes))


def _exponent(cells: pd.DataFrame, activation: Activation) -> Measurement:
    """Measure the power of n in λ² m / log(n)^k, of the smallest sufficient m, seed by seed."""
    grid = _grid(cells, "stability", (activation,))
    if grid["n"].nunique() < 3:
        raise not_run(f"It takes three n, as in `overfit sweep {PRESETS['stability']}`.")
    widths = width_range(grid)
    smallest = widest(grid).set_index(["n", "seed"])["lambda_start"].astype(float)
    squares = widths.join(smallest, on=["n", "seed"])["lambda_start"] ** 2
    scale = np.log(squares / np.log(widths["n"]) ** LOGARITHMS[activation])
    logs = pd.DataFrame(
        {
            "n": widths["n"],
            "seed": widths["seed"],
            "least": (np.log(widths["least"]) + scale).fillna(-np.inf),
            "most": (np.log(widths["most"]) + scale).fillna(np.inf),
        }
    )
    slopes = _slopes(logs)
    steepest = _steepest_slope(logs.assign(scale=scale), grid["m"].min(), grid["m"].max())
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


DIMENSIONS = (3, 4, 8, 16, 32)
PAIRS = tuple(combinations(NAMES, 2))
_RATIO = "the median ratio of theirs, at the largest n of the sweep,"


def _claim(
    name: str,
    statement: str,
    holds_where: str,
    measure: Callable[[pd.DataFrame], Measurement],
    preset: str,
    figure: str = "table1",
    hypotheses: str = "",
) -> Claim:
    return softmax_claim(
        name, "ours", "Table 1", statement, holds_where, measure, figure, preset, hypotheses
    )


def _steps_claim(pair: tuple[Activation, Activation]) -> Claim:
    """A claim on T λ² at the paper's step size."""
    first, second = (NAMES[activation] for activation in pair)
    return _claim(
        f"steps-{pair[0]}-{pair[1]}-paper",
        f"At the step size 0.1 λ/(m n²) {first} and {second} networks need almost the same T λ², "
        "where they are wide; T is the number of steps to ε, λ the smallest eigenvalue of "
        "each network's own kernel.",
        ALMOST_THE_SAME.in_words(_RATIO),
        partial(_steps_with_lambda, pair=pair),
        PRESETS["paper"],
        hypotheses="the step size is Corollary 4.3's without its e^(16B); it contains λ, so that "
        "T λ² depends little on anything else; Table 1's m isn't met, and its λ < 1 on every "
        "seed by ReLU alone",
    )


def _exponent_claim(activation: Activation) -> Claim:
    """A claim on the growth of the sufficient width."""
    logarithm = "log²(n)" if LOGARITHMS[activation] == 2 else "log(n)"
    return _claim(
        f"width-exponent-{activation}",
        f"At the step size {RULES['stability']} the smallest width that suffices for "
        f"{NAMES[activation]} grows with n no faster than λ⁻² n^2.5 {logarithm}.",
        AT_MOST_SQUARE.in_words("the power of n in λ² times the smallest sufficient width"),
        partial(_exponent, activation=activation),
        PRESETS["stability"],
        hypotheses=f"a width suffices here where training takes at most {ENOUGH:g} times the steps "
        "of infinite width; Table 1 says of a far larger width that it suffices, at another step "
        "size, and nothing of how the smallest grows",
    )


TABLE_CLAIMS = (
    *map(_steps_claim, PAIRS),
    *(
        _claim(
            f"{kind}-{first}-{second}{suffix}",
            f"{NAMES[first]} and {NAMES[second]} networks need the same number of {words}; step "
            f"size {RULES[rule]}.",
            ALMOST_THE_SAME.in_words(_RATIO),
            partial(measure, pair=(first, second), rule=rule),
            PRESETS[rule],
        )
        for first, second in PAIRS
        for kind, suffix, rule, words, measure in (
            ("steps", "", "stability", "steps, where they are wide", _steps),
            ("steps", "-without-lambda", "paper", "steps, λ left out, where they are wide", _steps),
            ("width", "", "stability", "hidden units", _widths),
            ("width", "-paper", "paper", "hidden units", _widths),
        )
    ),
    *(
        _claim(
            f"steps-{first}-{second}-dimension",
            f"{NAMES[first]} and {NAMES[second]} networks need the same number of steps at d = "
            f"{', '.join(map(str, DIMENSIONS[:-1]))} and {DIMENSIONS[-1]} features; step size "
            f"{RULES['stability']}.",
            ALMOST_THE_SAME.in_words("the median ratio of theirs, at every d,"),
            partial(_dimension_ratios, pair=(first, second)),
            DIMENSION,
            figure="lines",
        )
        for first, second in PAIRS
    ),
    *map(_exponent_claim, NAMES),
)
