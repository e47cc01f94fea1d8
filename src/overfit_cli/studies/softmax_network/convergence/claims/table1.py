"""Claims after Table 1: the numbers of hidden units and of steps, by activation.

All are ours: the table is about sufficient numbers, and measured are those that networks need. A
cell that doesn't come to ε takes more steps than it was given, so ratios of steps are medians.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import combinations

import numpy as np
import pandas as pd

from overfit_cli.claims.cells import Selection, is_unknown
from overfit_cli.claims.stated import joined
from overfit_cli.core.claim import Claim
from overfit_cli.core.study import MISSES
from overfit_cli.studies.softmax_network.convergence.claims.kernels import softmax_sentence
from overfit_cli.studies.softmax_network.convergence.parameters import SoftmaxConvergenceParameters
from overfit_cli.studies.softmax_network.convergence.widths import (
    LEAST_WIDTH,
    sufficient_widths,
    widest,
)
from overfit_cli.studies.softmax_network.paper import NAMES, Activation

PRESETS = {"stability": "softmax-table1", "paper": "softmax-table1-paper"}
RULES = {"stability": "1/(m λ_max)", "paper": "Corollary 4.3's, without its e^(16B)"}
Pair = tuple[Activation, Activation]
BETWEEN = dict.fromkeys(("steps_to_epsilon", "width"), ("least", "most"))
"""The columns with the ends of numbers that a sweep does not reach."""

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
    taken = cells["steps"].astype(float).where(cells["reason"].isin(MISSES), 0.0)
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


def _same_claim(
    name: str,
    statement: str,
    choose: Callable[..., pd.DataFrame],
    number: str,
    rule: str,
    hypotheses: str = "",
) -> Claim:
    """Return the claim that any two activations have almost the same number, seed by seed.

    Args:
        choose: chooses the cells of a pair of activations at the step rule.
        number: the expression, with `{0}` in the place of the activation.
    """

    def of_pair(pair: Pair) -> Claim:
        first, second = (number.format(f"[activation={activation}]") for activation in pair)
        return softmax_sentence(
            partial(choose, pair=pair, rule=rule),
            f"({first}) / ({second}) is 1 within a factor of 2 with at least 10 seeds "
            "where n is largest",
            "the median ratio of theirs, at the largest n of the sweep,",
            "a factor of two",
            BETWEEN,
            name=name,
            kind="ours",
            source="Table 1",
            statement=statement,
            figure="table1",
            preset=PRESETS[rule],
            hypotheses=hypotheses,
        )

    pairs = combinations(NAMES, 2)
    return joined({f"{NAMES[pair[0]]} over {NAMES[pair[1]]}": of_pair(pair) for pair in pairs})


STEPS = "steps_to_epsilon{0}"

TABLE_CLAIMS = (
    _same_claim(
        "steps-paper",
        "At the step size 0.1 λ/(m n²) softmax, exp and ReLU networks need almost the same T λ², "
        "where they are wide; T is the number of steps to ε, λ the smallest eigenvalue of each "
        "network's own kernel.",
        _wide_steps,
        f"{STEPS} * lambda_start{{0}}**2",
        "paper",
        "the step size is Corollary 4.3's without its e^(16B); it contains λ, so that T λ² depends "
        "little on anything else; Table 1's m isn't met, and its λ < 1 on every seed by ReLU alone",
    ),
    replace(
        _same_claim(
            "steps-without-lambda",
            "Softmax, exp and ReLU networks need the same number of steps, λ left out, where they "
            f"are wide; step size {RULES['paper']}.",
            _wide_steps,
            STEPS,
            "paper",
        ),
        after_selection=True,
    ),
    _same_claim(
        "steps",
        "Softmax, exp and ReLU networks need the same number of steps, where they are wide; step "
        f"size {RULES['stability']}.",
        _wide_steps,
        STEPS,
        "stability",
    ),
    _same_claim(
        "widths",
        "Softmax, exp and ReLU networks need the same number of hidden units; step size "
        f"{RULES['stability']}.",
        _widths,
        "width{0}",
        "stability",
    ),
)
