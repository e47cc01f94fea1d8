"""Claims of both data models: bounds, Theorems 1 and 2, speed, step sizes, and a second head.

Whether Proposition 1 and Corollary 1 hold along trajectories; how the steps to the target loss
scale with H; along which step sizes training takes as many steps for every H; and whether two
heads, each number at its best step size, beat one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd

from overfit_cli.claims.cells import (
    STEP_LIMIT,
    Selection,
    finite_numbers,
    require_done,
    require_trained,
)
from overfit_cli.claims.comparison import BestSetting, Comparison, check_edge
from overfit_cli.claims.rules import (
    THEOREM_RULE,
    Margin,
    Requirements,
    exponentiate,
    judge_estimate,
    judge_theorem,
    tolerance_margin,
)
from overfit_cli.core.claim import Claim, Measurement, inconclusive, not_run
from overfit_cli.core.text import plural
from overfit_cli.stats.boundaries import contour, scaling_exponents
from overfit_cli.stats.intervals import level_of_each, mean_estimate
from overfit_cli.studies.multihead.parameters import STEP_RULES, MultiheadParameters

BOUNDS = {
    "proposition1": ("model_gradient", "model_hessian"),
    "corollary1": ("loss_gradient", "loss_hessian", "loss_concavity"),
}
"""The columns that are at most 1 where each holds."""

_IN_WORDS = {
    "proposition1": "The gradient and the Hessian of a head's output are as small as stated",
    "corollary1": "The loss's gradient, Hessian and concavity are as small as stated",
}
_SOURCES = {"proposition1": "Proposition 1", "corollary1": "Corollary 1"}

DRAWS = 1000
"""The number of random draws."""

ROUND_OFF = 1e-9
"""By how much a ratio may lie above 1: a gradient at zero weights can be the bound itself."""


def bound_claims(prefix: str, trajectories: str, at_random: str) -> tuple[Claim, ...]:
    """Return the claims that bounds hold along a preset's trajectories, and at another's start."""
    return tuple(
        Claim(
            name=f"{prefix}-{name}{'' if zero else '-random'}",
            source=f"Deora et al. 2024, {_SOURCES[name]}",
            statement=f"{_IN_WORDS[name]}, "
            + ("at every step of training." if zero else "at random weights of any size."),
            holds_where=f"{THEOREM_RULE}{'' if zero else f'; {DRAWS} cells or more'}",
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
        certified = cells["certify"].astype(bool) & (cells["initialisation"] == initial)
        ended = require_done(require_trained(cells[certified]), 1.0)
        if ended.empty:
            raise not_run(
                f"It needs cells with certify=true and initialisation={initial}, as in "
                f"`overfit sweep {preset}`."
            )
        if not zero and len(ended) < DRAWS:
            raise not_run(
                f"It takes {DRAWS} cells with random weights, and there are {len(ended)}."
            )
        ratios = pd.DataFrame({name: finite_numbers(ended, name) for name in columns})
        return judge_theorem(
            (ratios > 1 + ROUND_OFF).any(axis=1),
            ended["seed"],
            details={
                **{
                    f"{name.replace('_', ' ')} over its bound, most": float(ratios[name].max())
                    for name in columns
                },
                "cells": len(ended),
            },
            note="At each logged step of each cell.",
        )

    return measure


def theorem_claims(prefix: str, preset: str) -> tuple[Claim, ...]:
    """Return the claims of Theorems 1 and 2, with the last step as their target θ."""
    training = (
        "1",
        "The mean training loss over K steps of gradient descent is at most 2 L(θ) + 5 ‖θ − θ₀‖² / "
        "(4 η K), with θ the last step.",
        "mean_train_loss",
    )
    testing = (
        "2",
        "The test loss is above the training loss by at most 4/n (2 K L(θ) + 9 ‖θ − θ₀‖² / (4 η)), "
        "with θ the last step.",
        "test_loss",
    )
    return tuple(
        Claim(
            name=f"{prefix}-theorem{number}",
            source=f"Deora et al. 2024, Theorem {number}",
            statement=statement,
            holds_where=f"H and η meet the theorem's requirements, and {THEOREM_RULE}",
            measure=_theorem(number, column, preset),
            figure="certificates",
            preset=preset,
        )
        for number, statement, column in (training, testing)
    )


def _theorem(number: str, column: str, preset: str) -> Callable[[pd.DataFrame], Measurement]:
    bound_column, heads_column = f"theorem{number}_bound", f"theorem{number}_heads"

    def measure(cells: pd.DataFrame) -> Measurement:
        from_zero = (cells["initialisation"] == "zero") & (cells["trained"] == "all")
        of_descent = cells[from_zero & (cells["optimiser"] == "gd")]
        fitted = require_done(require_trained(of_descent), 1.0)
        if fitted.empty:
            raise not_run(
                f"It needs cells of gradient descent from zero, as in `overfit sweep {preset}`."
            )
        side = finite_numbers(fitted, column)
        if column == "test_loss":
            side = side - finite_numbers(fitted, "train_loss")
        bound = finite_numbers(fitted, bound_column)
        lacking = finite_numbers(fitted, heads_column) - np.log10(fitted["heads"].astype(float))
        too_large = log10_step_sizes(fitted) - finite_numbers(fitted, "theorem_step_size")
        return judge_theorem(
            side > bound,
            fitted["seed"],
            requirements=Requirements(
                {
                    "decades of heads missing": lacking,
                    "decades by which steps are too large": too_large,
                },
                "there are too few heads, or steps are too large",
            ),
            details={"measured over the bound, most": float((side / bound).max())},
        )

    return measure


def log10_step_sizes(cells: pd.DataFrame) -> pd.Series[float]:
    """Return the decimal logarithm of the step size that each cell's heads take."""
    powers = cells["step_rule"].map(STEP_RULES).astype(float)
    sizes = cells["learning_rate"].astype(float) * cells["heads"].astype(float) ** powers
    return sizes.map(math.log10)


SLOWER = Margin(least=0.1, because="a factor of 1.5 from 1 head to 50", fewest_seeds=10)
FASTER = Margin(most=-0.1, because=SLOWER.because, fewest_seeds=10)
REACHED = Margin(least=0.95, because="within a twentieth of γ_attn", fewest_seeds=10)
QUICKER = Margin(most=1.0, because="1 is no gain", fewest_seeds=10)
BETTER = Margin(most=0.0, because="0 is no gain", fewest_seeds=10)
_HALF_THE_WAY = "half the way to the next power that is a multiple of 1/2"
ROOT = tolerance_margin(0.5, 0.25, _HALF_THE_WAY, fewest_seeds=10)
LINEAR = tolerance_margin(1.0, 0.25, _HALF_THE_WAY, fewest_seeds=10)

LEAST_SPAN = 10
"""By which factor the numbers of heads must be apart, at least."""

STEPS = 1000
"""The steps to the target loss at which the contour runs.

Where far fewer suffice, steps are so large that losses rise before they fall.
"""

BEST = Comparison("heads", "learning_rate", "step size", best_in="steps_to_target")

_Judge = Callable[[BestSetting, BestSetting, list[BestSetting]], Measurement]
"""From two heads and one, and every H, all at their best, to the measurement."""


def power_of_heads(cells: pd.DataFrame, margin: Margin) -> Measurement:
    """Measure the power of H in the steps to the target loss, seed by seed, of one setting.

    A seed counts where all its cells come to the target: of the others it isn't known when they
    would.
    """
    span = cells["heads"].max() / cells["heads"].min()
    if span < LEAST_SPAN:
        raise not_run(
            f"It needs numbers of heads that are a factor of {LEAST_SPAN} apart, and here they are "
            f"{span:g}."
        )
    complete = complete_seeds(cells)
    powers = scaling_exponents(complete, ["heads"], "steps_to_target") if len(complete) else None
    if powers is None:
        raise inconclusive("No seed has cells that all come to the target loss.")
    middle = complete.groupby("heads")["steps_to_target"].median()
    return judge_estimate(
        powers["heads"],
        margin,
        details={
            **{f"median steps, H = {heads}": float(steps) for heads, steps in middle.items()},
            "seeds on which some H never comes to the target": cells["seed"].nunique()
            - complete["seed"].nunique(),
        },
        note="The power of H in the steps to the target loss.",
    )


def complete_seeds(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells of the seeds of which all come to the target loss."""
    ended = cells_with_steps(cells)
    reached = ended["steps_to_target"].notna().groupby(ended["seed"]).agg(["all", "size"])
    seeds = reached.index[reached["all"] & (reached["size"] == reached["size"].max())]
    chosen: pd.DataFrame = ended[ended["seed"].isin(seeds)]
    return chosen


def cells_with_steps(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells that are done, whose steps to the target are known or never were taken.

    Raises:
        UndecidedError: `inconclusive` where something else than training ended a cell, or one has
            no number of steps though its loss isn't above the target.
    """
    ended = require_done(require_trained(cells), 1.0)
    without = ended["steps_to_target"].isna()
    above_target = ended["train_loss"].astype(float) >= ended["target_loss"]
    if (lost := int((without & ~above_target).sum())) > 0:
        raise inconclusive(f"{lost} of {plural(len(ended), 'cell')} have no number of steps.")
    return ended


def contour_claims(model: type[MultiheadParameters], prefix: str, preset: str) -> tuple[Claim, ...]:
    """Return the claims that the contour is η ∝ √H, and that it is η ∝ H."""
    chosen = Selection(
        model,
        vary={"learning_rate"},
        alike={"n", "training_steps", "epsilon", "test_samples"},
        fewest={"heads": 4},
        preset=preset,
    )
    return tuple(
        Claim(
            name=f"{prefix}-contour-{name}",
            source=source,
            statement=f"On average over H, training takes as many steps where η ∝ {words}.",
            holds_where=margin.in_words("the power of H in that step size"),
            measure=partial(_contour, chosen=chosen, margin=margin),
            figure="boundary",
            preset=preset,
        )
        for name, words, margin, source in (
            ("sqrt", "√H", ROOT, "Deora et al. 2024, section 6 and figure 3; ours"),
            ("linear", "H", LINEAR, "a rival of η ∝ √H; ours"),
        )
    )


def _contour(cells: pd.DataFrame, chosen: Selection, margin: Margin) -> Measurement:
    """Measure the power of H in the step size that takes `STEPS` steps, seed by seed."""
    grid = require_trained(chosen.of(cells))
    if grid["heads"].max() < LEAST_SPAN * grid["heads"].min():
        raise inconclusive(f"It needs numbers of heads that are a factor of {LEAST_SPAN} apart.")
    crossing = contour(grid, "learning_rate", "heads", "steps_to_target", STEPS)
    if crossing is None:
        raise inconclusive(f"No seed takes {STEPS} steps at some step size for every H.")
    local = crossing.local_powers().items()
    return judge_estimate(
        mean_estimate(crossing.powers),
        margin,
        details={
            **{f"step size, H = {low}": math.exp(log) for low, log in crossing.middle.items()},
            **{f"power from H = {low:g} to {high:g}": power for (low, high), power in local},
            "seeds left out": crossing.left_out,
        },
        note=f"The power of H in the step size that takes {STEPS} steps to the target loss.",
    )


def second_head_claims(
    model: type[MultiheadParameters], prefix: str, preset: str, *, errors: bool
) -> tuple[Claim, ...]:
    """Return the claims that a second head helps at an equal number of parameters.

    `errors` says whether there is one on test errors too; where nothing is got wrong there isn't.
    """
    at_best = "At an equal number of parameters, each at its best step size, a second head"
    quicker = (
        "",
        f"{at_best} shortens training.",
        QUICKER.in_words("steps to the target loss with two heads over those with one"),
        _quicker,
    )
    better = (
        "-error",
        f"{at_best} makes fewer test errors.",
        BETTER.in_words("test error with two heads less that with one"),
        _better,
    )
    return tuple(
        Claim(
            name=f"{prefix}-second-head{kind}",
            source="the title's question; ours",
            statement=statement,
            holds_where=holds_where,
            measure=partial(_second, model=model, preset=preset, judge=judge),
            figure="heatmap",
            preset=preset,
        )
        for kind, statement, holds_where, judge in ([quicker, better] if errors else [quicker])
    )


def _second(
    cells: pd.DataFrame, model: type[MultiheadParameters], preset: str, judge: _Judge
) -> Measurement:
    """Compare two heads with one, and name what every other H comes to.

    Cells that don't come to the target loss count with all the steps that they took: at least as
    many are missing. Where that favours the verdict, none is given.
    """
    settings = {"head_width": "shared", "initialisation": "gaussian"}
    free = {"learning_rate", "heads"}
    alike = set(model.model_fields) - free - set(settings)
    selection = Selection(model, at=settings, vary=free, alike=alike, preset=preset)
    chosen = _count_spent_steps(selection.of(cells))
    double, single = BEST.pair(chosen, list(model.model_fields), (2, 1))
    measured = judge(double, single, _all_at_best(chosen))
    return check_edge(measured, double, single)


def _count_spent_steps(cells: pd.DataFrame) -> pd.DataFrame:
    """Take cells whose steps were spent before the target loss for done, after all their steps."""
    spent = require_trained(cells)["reason"] == STEP_LIMIT
    steps = cells["steps_to_target"].mask(spent, cells["steps"])
    status = cells["status"].mask(spent, "done")
    return cells.assign(steps_to_target=steps, status=status, spent=spent)


def _unless_spent(measured: Measurement, double: BestSetting, single: BestSetting) -> Measurement:
    """Leave open that one is quicker where that very one has cells that didn't get there."""
    quicker = {"holds": double, "fails": single}.get(measured.verdict)
    if quicker is None or not quicker.column("spent").any():
        return measured
    note = f"{measured.note} Some of H = {quicker.name} don't come to the target loss."
    return replace(measured, verdict="inconclusive", note=note)


def _all_at_best(chosen: pd.DataFrame) -> list[BestSetting]:
    settings = (BEST.at_best(chosen, heads) for heads in sorted(chosen["heads"].unique()))
    return [setting for setting in settings if setting is not None]


def _quicker(double: BestSetting, single: BestSetting, settings: list[BestSetting]) -> Measurement:
    steps = np.log(double.column("steps_to_target")) - np.log(single.column("steps_to_target"))
    measured = judge_estimate(
        exponentiate(mean_estimate(steps, _level(double, single))),
        QUICKER,
        details=_details(settings, "steps_to_target") | _spent_counts(settings),
        note=f"Geometric means over seeds; H = {double.in_words()}, H = {single.in_words()}.",
    )
    return _unless_spent(measured, double, single)


def _better(double: BestSetting, single: BestSetting, settings: list[BestSetting]) -> Measurement:
    return judge_estimate(
        mean_estimate(
            double.column("test_error") - single.column("test_error"), _level(double, single)
        ),
        BETTER,
        details=_details(settings, "test_error"),
        note=f"H = {double.in_words()}, H = {single.in_words()}.",
    )


def _spent_counts(settings: list[BestSetting]) -> dict[str, float]:
    return {
        f"not at the target, H = {setting.name}": float(setting.column("spent").sum())
        for setting in settings
    }


def _level(double: BestSetting, single: BestSetting) -> float:
    """Of an interval after the choice of a step size, which favours what is good at many."""
    return level_of_each(max(len(double.tried), len(single.tried)))


def _details(settings: list[BestSetting], column: str) -> dict[str, float]:
    words = column.replace("_", " ")
    details = {f"step size, H = {setting.name}": setting.value for setting in settings}
    return details | {
        f"{words}, H = {setting.name}": float(setting.column(column).mean()) for setting in settings
    }
