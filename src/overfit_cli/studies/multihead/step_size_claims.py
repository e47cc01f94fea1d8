"""Claims on step sizes of both data models: the contour of equal steps, and a second head.

Along which step sizes training takes as many steps for every H; and whether two heads, each number
at its best step size, beat one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np
import pandas as pd

from overfit_cli.claims.cells import STEP_LIMIT, Selection, repeated_seeds, require_trained
from overfit_cli.claims.comparison import BestSetting, Comparison, check_edge
from overfit_cli.claims.rules import (
    Margin,
    exponentiate,
    judge_estimate,
    judge_estimates,
    tolerance_margin,
)
from overfit_cli.core.claim import Claim, Measurement, UndecidedError, inconclusive
from overfit_cli.stats.crossings import crossing_table, crossings
from overfit_cli.stats.intervals import level_of_each, mean_estimate, median_estimate
from overfit_cli.studies.multihead.claims import PAPER_NAME
from overfit_cli.studies.multihead.parameters import MultiheadParameters

QUICKER = Margin(most=1.0, because="1 is no gain", fewest_seeds=10)
BETTER = Margin(most=0.0, because="0 is no gain", fewest_seeds=10)
ROOT = tolerance_margin(
    0.5, 0.25, "half the way to the next power that is a multiple of 1/2", fewest_seeds=10
)

STEPS = 1000
"""The steps to the target loss at which the contour runs.

Where far fewer suffice, steps are so large that losses rise before they fall.
"""

BEST = Comparison("heads", "learning_rate", "step size", best_in="steps_to_target")

_Judge = Callable[[BestSetting, BestSetting, list[BestSetting]], Measurement]
"""From two heads and one, and every H, all at their best, to the measurement."""


def contour_claim(model: type[MultiheadParameters], prefix: str, preset: str) -> Claim:
    """Return the claim that training takes as many steps for every H where η ∝ √H."""
    chosen = Selection(
        model,
        vary={"learning_rate"},
        alike={"n", "training_steps", "epsilon", "test_samples"},
        fewest={"heads": 4},
        preset=preset,
    )
    return Claim(
        name=f"{prefix}-contour-sqrt",
        source=f"a question that the steps of √H in figure 3 of {PAPER_NAME} prompt",
        statement=f"From each H to the next, the step size with which training takes {STEPS} steps "
        "to the target loss grows as √H.",
        holds_where=ROOT.in_words("each power of H, from one H to the next,"),
        measure=partial(_contour, chosen=chosen),
        figure="boundary",
        preset=preset,
    )


def _contour(cells: pd.DataFrame, chosen: Selection) -> Measurement:
    """Measure the power of H in the step size that takes `STEPS` steps, from each H to the next."""
    grid = chosen.of(cells)
    table = crossing_table(
        crossings(grid, "learning_rate", "heads", "steps_to_target", STEPS), "heads"
    )
    logs = table.to_numpy()  # log η, (heads, seeds)
    log_heads = np.log(table.index.to_numpy(float))
    with np.errstate(invalid="ignore"):  # between infinities
        local = np.diff(logs, axis=0) / np.diff(log_heads)[:, None]  # (heads - 1, seeds)
    least, most = (np.where(np.isnan(local), end, local) for end in (-np.inf, np.inf))
    level = level_of_each(len(local))
    finite = np.isfinite(logs).all(axis=0)
    average = np.polyfit(log_heads, logs[:, finite], 1)[0] if finite.any() else np.full(1, np.nan)
    return judge_estimates(
        {
            f"power from H = {low:g} to {high:g}": (
                median_estimate(least[row], level, up_to=most[row]),
                ROOT,
            )
            for row, (low, high) in enumerate(pairwise(table.index))
        },
        details={
            "power over all H, mean": float(average.mean()),
            "seeds that don't pass it for every H": float((~finite).sum()),
            **{
                f"step size, H = {heads}": math.exp(log)
                for heads, log in table.median(axis=1).items()
            },
        },
        note=f"The step size that takes {STEPS} steps to the target loss.",
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
            source=f"{PAPER_NAME}, section 2, which leaves heads of width d/H to future work",
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
    many are missing. Where that favours the verdict, none is given. Nor is there one that changes
    without the best step size of either number of heads.
    """
    settings = {"head_width": "shared", "initialisation": "gaussian"}
    free = {"learning_rate", "heads"}
    alike = set(model.model_fields) - free - set(settings)
    selection = Selection(model, at=settings, vary=free, alike=alike, preset=preset)
    chosen = _count_spent_steps(selection.of(cells))
    if copies := repeated_seeds(chosen, model):
        raise inconclusive(f"The seeds {', '.join(map(str, copies))} repeat others.")
    double, single = BEST.pair(chosen, list(model.model_fields), (2, 1))
    measured = judge(double, single, _all_at_best(chosen))
    for rate in sorted({double.value, single.value}):
        if measured.verdict != "inconclusive":
            others = chosen[chosen["learning_rate"] != rate]
            measured = _unless_changed(measured, _verdict_on(others, model, judge), rate)
    return check_edge(measured, double, single)


def _verdict_on(cells: pd.DataFrame, model: type[MultiheadParameters], judge: _Judge) -> str:
    try:
        double, single = BEST.pair(cells, list(model.model_fields), (2, 1))
        return judge(double, single, []).verdict
    except UndecidedError as undecided:
        return undecided.measurement.verdict


def _unless_changed(measured: Measurement, verdict: str, rate: float) -> Measurement:
    if verdict in (measured.verdict, "not run"):
        return measured
    note = f"{measured.note} Without the step size {rate:g} it would be {verdict}."
    return replace(measured, verdict="inconclusive", note=note)


def _count_spent_steps(cells: pd.DataFrame) -> pd.DataFrame:
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
    estimate = mean_estimate(steps, _level(double, single))
    measured = judge_estimate(
        exponentiate(estimate._replace(seeds=len(steps))),  # whole numbers agree by chance
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
    return level_of_each(max(len(double.tried), len(single.tried)))


def _details(settings: list[BestSetting], column: str) -> dict[str, float]:
    words = column.replace("_", " ")
    details = {f"step size, H = {setting.name}": setting.value for setting in settings}
    return details | {
        f"{words}, H = {setting.name}": float(setting.column(column).mean()) for setting in settings
    }
