"""Claims of both data models: bounds, Theorems 1 and 2, and speed.

Whether Proposition 1 and Corollary 1 hold along trajectories and at random weights, and how the
steps to the target loss scale with H.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from overfit_cli.claims.cells import (
    STEP_LIMIT,
    describe_values,
    repeated_seeds,
)
from overfit_cli.claims.python import Quantity, above, below, median, power
from overfit_cli.claims.rules import (
    OUT_OF_REACH,
    THEOREM_RULE,
    Margin,
    Requirements,
    joint_verdict,
    judge_estimates,
    judge_theorem,
)
from overfit_cli.claims.stated import Choose, stated_claim
from overfit_cli.core.arrays import varying
from overfit_cli.core.claim import Claim, Kind, Measurement, not_run
from overfit_cli.stats.intervals import Estimate, level_of_each, mean_estimate
from overfit_cli.studies.multihead.parameters import STEP_RULES, MultiheadParameters

PAPER_NAME = "Deora et al. 2024"
IN_PRINT = f"{PAPER_NAME} (TMLR, April 2024)"
"""The source of bounds that a later version of the paper corrects: it multiplies β₃ by d."""


def place_in_paper(kind: Kind, source: str) -> str:
    """Return the source of a claim: a place in the paper, or ours on it."""
    return f"{'ours, on ' if kind == 'ours' else ''}{PAPER_NAME}, {source}"


def claim_on(
    prefix: str,
    kind: Kind,
    name: str,
    source: str,
    statement: str,
    hypotheses: str,
    holds_where: str,
    measure: Callable[[pd.DataFrame], Measurement],
    preset: str,
    figure: str,
) -> Claim:
    """Return a claim on a place of the paper; the source of one of ours says that it is."""
    return Claim(
        name=f"{prefix}-{name}",
        kind=kind,
        source=place_in_paper(kind, source),
        statement=statement,
        hypotheses=hypotheses,
        holds_where=holds_where,
        measure=measure,
        figure=figure,
        preset=preset,
    )


BOUNDS = {
    "proposition1": ("model_gradient", "model_hessian"),
    "corollary1-gradient": ("loss_gradient",),
    "corollary1-hessian": ("loss_hessian",),
    "corollary1-concavity": ("loss_concavity",),
}
"""The columns that are at most 1 where each holds."""

_IN_WORDS = {
    "proposition1": "The gradient and the Hessian of a head's output are at most 2 ‖X‖²_{2,∞} "
    "Σ ‖X u_t‖_∞ + √T ‖X‖_{2,∞} and 6d ‖X‖²_{2,∞} ‖X‖²_{1,∞} Σ ‖X u_t‖_∞ + 2 √(Td) ‖X‖²_{2,∞} "
    "‖X‖_{1,∞}",
    "corollary1-gradient": "The norm of the loss's gradient is at most β₁ L̂",
    "corollary1-hessian": "The norm of the loss's Hessian is at most β₂",
    "corollary1-concavity": "The loss's Hessian has no eigenvalue below −β₃ L̂/√H, with β₃ = "
    "2 √(Td) R³ (3 √d R² max ‖U_h‖ + 1)",
}
_SOURCES = {
    "proposition1": "Proposition 1",
    "corollary1-gradient": "Corollary 1 (1)",
    "corollary1-hessian": "Corollary 1 (2)",
    "corollary1-concavity": "Corollary 1 (3)",
}

DRAWS = 1000
"""The number of random draws."""

ROUND_OFF = 1e-9
"""By how much a ratio may lie above 1: a gradient at zero weights can be the bound itself."""


def bound_claims(prefix: str, trajectories: str, at_random: str) -> tuple[Claim, ...]:
    """Return the claims that bounds hold along a preset's trajectories, and at another's start."""
    return tuple(
        Claim(
            name=f"{prefix}-{name}{'' if zero else '-random'}",
            kind="paper",
            source=f"{IN_PRINT}, {_SOURCES[name]}",
            statement=f"{_IN_WORDS[name]}, "
            + ("at every step of training." if zero else "at random weights of any size."),
            hypotheses="R is at least 1 and the length of the longest token that was drawn",
            holds_where=f"{THEOREM_RULE}{'' if zero else f'; {DRAWS} cells or more'}; vacuous "
            f"where one of them is out of reach by {OUT_OF_REACH:g} decades",
            measure=_judge_bound(BOUNDS[name], zero, preset),
            figure="certificates",
            preset=preset,
        )
        for name in BOUNDS
        for zero, preset in ((True, trajectories), (False, at_random))
    )


def _judge_bound(
    columns: tuple[str, ...], zero: bool, preset: str
) -> Callable[[pd.DataFrame], Measurement]:
    initial = "zero" if zero else "gaussian"

    def measure(cells: pd.DataFrame) -> Measurement:
        certified = cells[cells["certify"].astype(bool) & (cells["initialisation"] == initial)]
        if certified.empty:
            raise not_run(
                f"It needs cells with certify=true and initialisation={initial}, as in "
                f"`overfit sweep {preset}`."
            )
        if not zero and len(certified) < DRAWS:
            raise not_run(
                f"It takes {DRAWS} cells with random weights, and there are {len(certified)}."
            )
        parts = {name: _at_most_one(certified, name) for name in columns}
        verdict = joint_verdict(part.verdict for part in parts.values())
        decisive = next(part for part in parts.values() if part.verdict == verdict)
        details = {
            f"{name.replace('_', ' ')} over its bound, most": float(certified[name].max())
            for name in columns
        }
        vacuous = [
            name.replace("_", " ") for name, part in parts.items() if part.verdict == "vacuous"
        ]
        out_of_reach = f" Out of reach: {', '.join(vacuous)}." if vacuous else ""
        return replace(
            decisive,
            details=details | {"cells": len(certified)} | dict(decisive.details),
            note=f"{decisive.note}{out_of_reach} At each logged step of each cell.",
        )

    return measure


def _at_most_one(cells: pd.DataFrame, name: str) -> Measurement:
    """Judge whether a measured quantity over its bound is at most 1 in all cells."""
    ratio = numbers(cells, name)
    decades = pd.Series(np.log10(ratio.clip(lower=np.finfo(float).tiny)), ratio.index).fillna(0.0)
    return judge_theorem(
        ratio > 1 + ROUND_OFF, cells["seed"], unknown=ratio.isna(), decades_over=decades
    )


def numbers(cells: pd.DataFrame, name: str) -> pd.Series[float]:
    """Return a measured column, nan where a cell has no finite number."""
    if name not in cells:
        return pd.Series(np.nan, cells.index)
    return cells[name].astype(float).replace([np.inf, -np.inf], np.nan)


def theorem_claims(prefix: str, preset: str) -> tuple[Claim, ...]:
    """Return the claims of Theorems 1 and 2, with the last step as their target θ."""
    training = (
        "1",
        "The training loss of the last of K steps of gradient descent is at most the mean over "
        "them, and that at most 2 L̂(θ) + 5 ‖θ − θ₀‖² / (4 η K); θ is taken to be the last step, "
        "and K all steps, for which the theorem's bound on ‖θ_K − θ₀‖ is trivial.",
        THEOREM_RULE,
        _theorem1,
    )
    testing = (
        "2",
        "The test loss less the training loss is in expectation at most 4/n E[2 K L̂(θ) + "
        "9 ‖θ − θ₀‖² / (4 η)]; θ is taken to be the last step, and K all steps.",
        WITHIN_BOUND.in_words("the mean over seeds of the gap less its bound"),
        _theorem2,
    )
    return tuple(
        Claim(
            name=f"{prefix}-theorem{number}",
            kind="paper",
            source=f"{PAPER_NAME}, Theorem {number}",
            statement=statement,
            hypotheses="H and η satisfy the appendix's conditions, with its constants and the β₃ "
            "and ρ of the corrected version, which are the larger ones; ρ is taken d³ times as "
            "large as in print, up to d times more than it is",
            holds_where=f"{rule}, on cells whose H and η meet the theorem's requirements",
            measure=partial(measure, preset=preset),
            figure="certificates",
            preset=preset,
        )
        for number, statement, rule, measure in (training, testing)
    )


WITHIN_BOUND = Margin(most=0.0, because="0 is the bound", fewest_seeds=10)


def _descent_from_zero(cells: pd.DataFrame, preset: str) -> pd.DataFrame:
    from_zero = (cells["initialisation"] == "zero") & (cells["trained"] == "all")
    chosen = cells[from_zero & (cells["optimiser"] == "gd")]
    if chosen.empty:
        raise not_run(
            f"It needs cells of gradient descent from zero, as in `overfit sweep {preset}`."
        )
    return chosen


def _requirements(cells: pd.DataFrame, number: str) -> Requirements:
    """The requirements of Theorem 1 or 2 in the corrected version of the paper.

    The columns have those of the print of April 2024. The corrected β₃ is d times as large, so that
    H must be d² times as large, and ρ d² to d³ times as large: it is taken d³ times as large.
    """
    log_d = np.log10(cells["d"].astype(float))
    heads = np.log10(cells["heads"].astype(float))
    largest = numbers(cells, "theorem_step_size") - 3 * log_d
    return Requirements(
        {
            "decades of heads missing": numbers(cells, f"theorem{number}_heads")
            + 2 * log_d
            - heads,
            "decades by which steps are too large": log10_step_sizes(cells) - largest,
        },
        "for θ the last step there are too few heads, or steps are too large",
    )


def _theorem1(cells: pd.DataFrame, preset: str) -> Measurement:
    fitted = _descent_from_zero(cells, preset)
    side, bound = numbers(fitted, "mean_train_loss"), numbers(fitted, "theorem1_bound")
    last = numbers(fitted, "train_loss")
    return judge_theorem(
        (side > bound) | (last > side * (1 + ROUND_OFF)),
        fitted["seed"],
        unknown=side.isna() | bound.isna() | last.isna(),
        requirements=_requirements(fitted, "1"),
        details={"measured over the bound, most": float((side / bound).max())},
    )


def _theorem2(cells: pd.DataFrame, preset: str) -> Measurement:
    fitted = _descent_from_zero(cells, preset)
    gap = numbers(fitted, "test_loss") - numbers(fitted, "train_loss")
    bound = numbers(fitted, "theorem2_bound")
    requirements = _requirements(fitted, "2")
    details = {"measured over the bound, most": float((gap / bound).max())}
    if not requirements.met().any():
        return judge_theorem(
            gap > bound, fitted["seed"], requirements=requirements, details=details
        )
    excess = gap - bound
    judged = requirements.judged(excess.isna())
    excess = excess[judged]
    groups = list(settings_of(fitted[judged], MultiheadParameters.model_fields))
    level = level_of_each(len(groups))
    return judge_estimates(
        {
            name: (
                mean_between(
                    excess[group.index].fillna(-np.inf), excess[group.index].fillna(np.inf), level
                ),
                WITHIN_BOUND,
            )
            for name, group in groups
        },
        details=details | requirements.distances(),
        note="The mean over seeds of the gap less its bound.",
    )


def settings_of(cells: pd.DataFrame, names: Iterable[str]) -> Iterable[tuple[str, pd.DataFrame]]:
    """Give the cells of each setting of parameters, with the setting in words."""
    varied = varying(cells, [name for name in names if name in cells])
    if not varied:
        yield "all", cells
        return
    for values, group in cells.groupby(varied, dropna=False):
        yield describe_values(dict(zip(varied, values, strict=True))), group


def log10_step_sizes(cells: pd.DataFrame) -> pd.Series[float]:
    """Return the decimal logarithm of the step size that each cell's heads take."""
    powers = cells["step_rule"].map(STEP_RULES).astype(float)
    sizes = cells["learning_rate"].astype(float) * cells["heads"].astype(float) ** powers
    return pd.Series(np.log10(sizes), cells.index)


REACHED = Margin(least=0.95, because="within a twentieth of γ_attn", fewest_seeds=10, target=1.0)
FEWEST_HEADS = 4
"""Numbers of heads that tell a trend, and its end."""

ALL_HEADS = {"heads": (1, 50)}
"""Numbers of heads that must be among the cells of a claim on all of them."""

STEPS = "steps_to_target"
BETWEEN = {STEPS: ("least_steps", "most_steps")}
"""The columns with the ends of the steps that a cell takes."""

NO_CHANGE = "0 is no change"


def speed_claim(
    choose: Choose,
    model: type[MultiheadParameters],
    *,
    faster: bool,
    number: str = "the power of H in the steps to the target loss",
    average: Callable[[Quantity], Quantity] = median,
    to_the_end: bool = False,
    **fields: Any,
) -> Claim:
    """Return a claim that training takes fewer steps the more heads there are, or more.

    Args:
        choose: the cells of one setting but for H.
        average: over seeds; a median where some cells never come to the target.
        to_the_end: whether the trend must not turn at the largest H.
    """
    compare = below if faster else above
    steps = average(power(STEPS, "heads", throughout=to_the_end))

    def chosen(cells: pd.DataFrame) -> pd.DataFrame:
        held = choose(cells)
        if held["heads"].nunique() < FEWEST_HEADS:
            raise not_run(f"It needs {FEWEST_HEADS} numbers of heads.")
        return with_step_ends(held)

    return stated_claim(
        chosen,
        model,
        compare(steps, 0, seeds=10),
        number=number,
        because=NO_CHANGE,
        between=BETWEEN,
        **fields,
    )


def with_step_ends(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells with the least and the most steps to the target that each may take.

    A cell that trained and stayed above the target takes at least the steps that it took, and one
    that is absent or failed may take any number.
    """
    arrived, taken = numbers(cells, STEPS).clip(lower=1.0), numbers(cells, "steps")
    ended = (cells["status"] == "done") | (cells["reason"] == STEP_LIMIT)
    above_target = numbers(cells, "train_loss") >= cells["target_loss"].astype(float)
    least = arrived.fillna(taken.where(ended & above_target)).fillna(1.0).clip(lower=1.0)
    ends = {"least_steps": least, "most_steps": arrived.fillna(np.inf)}
    return cells.assign(**{STEPS: arrived, **ends})


def mean_between(least: ArrayLike, most: ArrayLike, level: float) -> Estimate:
    """Return the mean of numbers that lie between two ends."""
    with np.errstate(invalid="ignore"):  # there is no mean between minus infinity and infinity
        return mean_estimate(least, level, up_to=most)


def independent_seeds(
    estimate: Estimate, cells: pd.DataFrame, model: type[MultiheadParameters]
) -> Estimate:
    """Return an estimate with the number of seeds whose cells are no copies of another's.

    Numbers of steps are whole, and agree by chance: the whole cells are compared.
    """
    copies = len(repeated_seeds(cells, model))
    return estimate._replace(seeds=cells["seed"].nunique() - copies)
