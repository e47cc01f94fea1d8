"""Claims on the proofs of Theorems 1 and 2 of Deora et al. 2024, where their conditions are met.

The conditions on H and η are those of the corrected version of the paper, with θ at a distance that
is chosen so that they can be met ("fix any θ").
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd

from overfit_cli.claims.cells import Selection, Values
from overfit_cli.claims.rules import (
    OUT_OF_REACH,
    THEOREM_RULE,
    Margin,
    Requirements,
    judge_estimate,
    judge_estimates,
    judge_theorem,
    mark_vacuous,
)
from overfit_cli.core.claim import Claim, Kind, Measurement
from overfit_cli.stats.intervals import level_of_each, median_estimate
from overfit_cli.studies.multihead.claims import (
    PAPER_NAME,
    WITHIN_BOUND,
    mean_between,
    numbers,
    settings_of,
)
from overfit_cli.studies.multihead.paths.parameters import MultiheadPathsParameters

THEOREM, DESCENT, STABILITY = "heads-theorem1", "heads-descent", "heads-stability"

ROUND_OFF = 1e-6
"""By how much a quotient of rounded numbers may pass its bound."""

START_LOSS = math.log(2)
"""The training loss at zero, which no step that descends exceeds."""

SIXTEEN_FIFTEENTHS = 1 / 5
"""A rise of 1/15 over Proposition 4's, which is 1/3."""

TEN_TIMES = Margin(most=1.0, because="steps ten times as large as allowed", fewest_seeds=10)
LOOKS = 2
"""Looks at the stability's power: 12 seeds from n = 10 on had left it open."""

AS_ONE_OVER_N = Margin(
    least=-1.25, most=-0.75, because="a quarter around the power of 1/n", fewest_seeds=10
)


_SETTINGS: dict[str, Values] = {
    THEOREM: {
        "leave_one_out": True,
        "training_steps": 10_000,
        "target_distance": 0.4,
        "sigma": 0.03,
    },
    DESCENT: {"sigma": 0.05},
    STABILITY: {
        "leave_one_out": True,
        "tokens": 10,
        "d": 4,
        "patterns": 2,
        "strength": 2.0,
        "sigma": 0.1,
    },
}
"""Where each preset's parameters are not the defaults, besides H, η and n."""


def _select(cells: pd.DataFrame, preset: str) -> pd.DataFrame:
    vary = {STABILITY: {"heads", "n"}, DESCENT: {"heads", "learning_rate"}, THEOREM: {"heads"}}
    alike = {"test_samples"} | ({"learning_rate"} if preset == THEOREM else set())
    return Selection(
        MultiheadPathsParameters,
        at=_SETTINGS[preset],
        vary=vary[preset],
        alike=alike,
        preset=preset,
    ).of(cells)


def _judge(
    cells: pd.DataFrame,
    ratio: pd.Series[float],
    requirements: Requirements | None,
    details: dict[str, float],
) -> Measurement:
    """Judge whether a measured quantity over its bound is at most 1, without exception.

    It is vacuous where all lie `OUT_OF_REACH` decades or more below the bound.
    """
    decades = pd.Series(np.log10(ratio.clip(lower=1e-300)), ratio.index)
    met = requirements.met() if requirements else pd.Series(True, ratio.index)
    if met.any():
        details |= {"measured over the bound, most": float(ratio[met].max())}
    return judge_theorem(
        ratio > 1 + ROUND_OFF,
        cells["seed"],
        unknown=ratio.isna(),
        requirements=requirements,
        decades_over=decades,
        details=details,
    )


def _judge_loss(
    cells: pd.DataFrame, ratio: pd.Series[float], requirements: Requirements
) -> Measurement:
    """Judge the mean training loss over its bound; vacuous where all bounds are above the start."""
    measured = _judge(cells, ratio, requirements, {})
    bound = (numbers(cells, "mean_train_loss") / ratio)[requirements.met()]
    if measured.verdict != "holds" or not (bound >= START_LOSS).all():
        return measured
    reason = "The bound is above the loss at the start, so that descent alone keeps it."
    return mark_vacuous(measured, reason, {"least bound": float(bound.min())})


def _judge_distance(
    cells: pd.DataFrame, ratio: pd.Series[float], allowed: float, requirements: Requirements
) -> Measurement:
    """Judge a distance over its bound; vacuous where no steps that descend could reach it.

    K steps that each lower the loss by η/2 ‖∇L̂‖² or more lead √(2 η K log 2) away at most.

    Args:
        cells: the cells.
        ratio: the distance over its bound, of each cell.
        allowed: how far from the start the bound is at least, over ‖θ − θ₀‖.
        requirements: the conditions.
    """
    measured = _judge(cells, ratio, requirements, {})
    time = cells["learning_rate"].astype(float) * cells["training_steps"].astype(float)  # η K
    reach = np.sqrt(2 * START_LOSS * time) / (allowed * cells["target_distance"].astype(float))
    if measured.verdict != "holds" or not (reach[requirements.met()] < 1).all():
        return measured
    reason = "Steps that descend can't lead as far as the bound."
    return mark_vacuous(measured, reason, {"reach over the bound, most": float(reach.max())})


def _requirements(cells: pd.DataFrame, number: str) -> Requirements:
    """The conditions of Theorem 1 or 2 on H and η, in the corrected version of the paper."""
    needed, allowed = numbers(cells, f"theorem{number}_heads"), numbers(cells, "theorem_step_size")
    return Requirements(
        {
            "decades of heads missing": needed - np.log10(cells["heads"].astype(float)),
            "decades by which steps are too large": -(
                allowed - np.log10(cells["learning_rate"].astype(float))
            ),
        },
        "there are too few heads, or steps are too large",
    )


def _descends(cells: pd.DataFrame) -> Requirements:
    return Requirements(
        {"descent missing of η/2 ‖∇L̂‖²": 1 - numbers(cells, "descent")},
        "some step descends less than η/2 ‖∇L̂‖²",
    )


def _descent(cells: pd.DataFrame) -> Measurement:
    chosen = _select(cells, DESCENT)
    share = numbers(chosen, "descent_share")
    requirements = Requirements({"no step of the cell meets it": 1e-12 - share}, "η is above 1/ρ_k")
    least = numbers(chosen, "descent_allowed")
    return judge_theorem(
        least < 1 - ROUND_OFF,
        chosen["seed"],
        unknown=least.isna() & ~(share == 0),
        requirements=requirements,
        details={"descent over η/2 ‖∇L̂‖², least": float(least.min())},
    )


def _descent_needed(cells: pd.DataFrame) -> Measurement:
    """Measure the least η ρ_k at which a step descends less, seed by seed."""
    chosen = _select(cells, DESCENT)
    broken = numbers(chosen, "descent_broken")
    unknown = broken.isna() & (numbers(chosen, "descent").isna())
    least = broken.fillna(np.inf).mask(unknown, -np.inf).groupby(chosen["seed"]).min()
    most = broken.fillna(np.inf).groupby(chosen["seed"]).min()
    by_heads = broken.groupby(chosen["heads"]).min()
    return judge_estimate(
        median_estimate(least, up_to=most),
        TEN_TIMES,
        details={f"least, H = {heads}": float(value) for heads, value in by_heads.items()},
        note="log₁₀ of the least η ρ_k at which (68) is broken: the median over seeds.",
    )


def _segments(cells: pd.DataFrame, allowed: float) -> Measurement:
    chosen = _select(cells, DESCENT)
    return _judge(chosen, numbers(chosen, "segment_rise") / allowed, None, {})


def _lemma8(cells: pd.DataFrame) -> Measurement:
    chosen = _select(cells, THEOREM)
    return _judge_loss(chosen, numbers(chosen, "lemma8"), _descends(chosen))


def _lemma9(cells: pd.DataFrame) -> Measurement:
    chosen = _select(cells, THEOREM)
    log_d = np.log10(chosen["d"].astype(float))
    missing = numbers(chosen, "lemma9_heads") + 2 * log_d
    missing -= np.log10(chosen["heads"].astype(float))
    requirements = Requirements(
        {**_descends(chosen).missed, "decades of heads missing": missing},
        "there are too few heads, or a step does not descend",
    )
    return _judge_loss(chosen, numbers(chosen, "lemma9"), requirements)


def _theorem1(cells: pd.DataFrame) -> Measurement:
    """Judge (4) where its conditions are met."""
    chosen = _select(cells, THEOREM)
    return _judge_loss(chosen, _loss_over_bound(chosen), _requirements(chosen, "1"))


def _distance(cells: pd.DataFrame, column: str, allowed: float) -> Measurement:
    """Judge Lemma 10, or Theorem 1's distance from the start, where its conditions are met."""
    chosen = _select(cells, THEOREM)
    requirements = _requirements(chosen, "1")
    return _judge_distance(chosen, numbers(chosen, column), allowed, requirements)


def _loss_over_bound(cells: pd.DataFrame) -> pd.Series[float]:
    """The larger of both quotients of (4): of the mean loss to its bound, and of the last to it."""
    mean = numbers(cells, "mean_train_loss")
    ratio = mean / numbers(cells, "theorem1_bound")
    ordered = numbers(cells, "train_loss") <= mean * (1 + ROUND_OFF)
    return ratio.where(ordered, 2.0).mask(numbers(cells, "train_loss").isna() | mean.isna())


def _lemma11(cells: pd.DataFrame) -> Measurement:
    chosen = _select(cells, THEOREM)
    ratio = numbers(chosen, "stability") / numbers(chosen, "lemma11_bound")
    return _judge(chosen, ratio, _requirements(chosen, "2"), {})


def _expected_gap(cells: pd.DataFrame, column: str) -> Measurement:
    """Measure the mean over seeds of the gap less its bound, at each H."""
    chosen = _select(cells, THEOREM)
    gap = numbers(chosen, "test_loss") - numbers(chosen, "train_loss")
    bound = numbers(chosen, column)
    judged, details = chosen, {}
    if column == "theorem2_bound":
        requirements = _requirements(chosen, "2")
        details = requirements.distances()
        judged = chosen[requirements.judged(gap.isna() | bound.isna())]
        if judged.empty:
            return judge_theorem(gap > bound, chosen["seed"], requirements=requirements)
    excess = (gap - bound)[judged.index]
    groups = list(settings_of(judged, MultiheadPathsParameters.model_fields))
    level = level_of_each(len(groups))
    largest = float((gap.abs() / bound)[judged.index].max())
    measured = judge_estimates(
        {
            name: (
                mean_between(
                    excess[group.index].fillna(-np.inf), excess[group.index].fillna(np.inf), level
                ),
                WITHIN_BOUND,
            )
            for name, group in groups
        },
        details={**details, "a cell's gap over its bound, most in size": largest},
        note="The mean over seeds of the gap less its bound.",
    )
    below = -float(np.log10(largest)) if largest > 0 else np.nan
    if measured.verdict == "fails" or not below >= OUT_OF_REACH:
        return measured
    reason = f"No cell's gap comes within {below:.1f} decades of the bound."
    return mark_vacuous(measured, reason, {})


def _stability_power(cells: pd.DataFrame) -> Measurement:
    """Measure the power of n in the distance of leave-one-out copies, at each H."""
    chosen = _select(cells, STABILITY)
    distance = numbers(chosen, "stability")
    estimates = {}
    groups = list(chosen.assign(distance=distance).groupby("heads"))
    level = level_of_each(LOOKS * len(groups))
    sizes = int(chosen["n"].nunique())
    for heads, group in groups:
        known = group[group["distance"] > 0]
        whole = known.groupby("seed").size().reindex(group["seed"].unique(), fill_value=0) == sizes
        powers = _powers(known[known["seed"].map(whole)])
        least = powers.reindex(whole.index, fill_value=-np.inf)
        most = powers.reindex(whole.index, fill_value=np.inf)
        estimates[f"power of n, H = {heads}"] = (
            median_estimate(least, level, up_to=most),
            AS_ONE_OVER_N,
        )
    return judge_estimates(
        estimates,
        details={
            f"median distance, n = {n}": float(value)
            for n, value in distance.groupby(chosen["n"]).median().items()
        },
        note="The median over seeds.",
    )


def _powers(cells: pd.DataFrame) -> pd.Series[float]:
    """The least-squares power of n in the distance, (seeds,)."""
    logs = cells.assign(x=np.log(cells["n"].astype(float)), y=np.log(cells["distance"]))
    centred = logs[["x", "y"]] - logs.groupby("seed")[["x", "y"]].transform("mean")
    products = (centred["x"] * centred["y"]).groupby(logs["seed"]).sum()
    power: pd.Series[float] = products / (centred["x"] ** 2).groupby(logs["seed"]).sum()
    return power


def _claim(
    kind: Kind,
    name: str,
    source: str,
    statement: str,
    hypotheses: str,
    holds_where: str,
    measure: Callable[[pd.DataFrame], Measurement],
    preset: str = THEOREM,
    figure: str = "lines",
) -> Claim:
    return Claim(
        name=f"paths-{name}",
        kind=kind,
        source=f"{'ours, on ' if kind == 'ours' else ''}{PAPER_NAME}, {source}",
        statement=statement,
        hypotheses=hypotheses,
        holds_where=holds_where,
        measure=measure,
        figure=figure,
        preset=preset,
    )


_TARGET = "θ is W = 0 with the linear part's widest margin, at a distance of 0.4 from zero"
_CONDITIONS = f"the appendix's on H and η, with the β₃ and ρ of the corrected version; {_TARGET}"
_AND_REACH = f"{THEOREM_RULE}; vacuous where all are {OUT_OF_REACH:g} decades below the bound"

_AND_START = f"{_AND_REACH}, or all bounds are above the loss at the start"
_AND_STEPS = f"{_AND_REACH}, or steps that descend can't lead so far"

CLAIMS = (
    _claim(
        "paper",
        "descent",
        "Lemma 7",
        "Each step of gradient descent with η ≤ 1/ρ_k, ρ_k = β₂(θ_k) ∨ β₂(θ_{k+1}), lowers the "
        "training loss by η/2 ‖∇L̂(θ_k)‖² or more.",
        "β₂ of the print of April 2024 with the norm of U, the smaller one: more steps meet it",
        f"{THEOREM_RULE}, on steps that meet it",
        _descent,
        DESCENT,
        "descent",
    ),
    _claim(
        "sharp",
        "descent-needed",
        "Lemma 7",
        "The condition η ≤ 1/ρ_k is within a factor of ten of what descent takes: some step with "
        "η ρ_k of at most 10 lowers the loss by less than η/2 ‖∇L̂‖².",
        "H from 1 to 10⁶ and η from 0.01 to 100",
        TEN_TIMES.in_words("log₁₀ of the least η ρ_k of such a step"),
        _descent_needed,
        DESCENT,
        "descent",
    ),
    _claim(
        "paper",
        "quasi-convexity",
        "Propositions 4 and 6",
        "On a segment with 2 (β₃(θ₁) ∨ β₃(θ₂)) ‖θ₁ − θ₂‖² ≤ √H the loss is at most 4/3 of that at "
        "its worse end.",
        "segments as long as that, with the β₃ in print: from steps towards the target, and around "
        "steps in the direction in which the loss is most concave",
        _AND_REACH,
        partial(_segments, allowed=1.0),
        DESCENT,
        "descent",
    ),
    _claim(
        "ours",
        "quasi-convexity-tight",
        "Propositions 4 and 6",
        "On these segments the loss is at most 16/15 of that at its worse end.",
        "the same segments",
        _AND_REACH,
        partial(_segments, allowed=SIXTEEN_FIFTEENTHS),
        DESCENT,
        "descent",
    ),
    _claim(
        "paper",
        "lemma8",
        "Lemma 8",
        "If each step descends by η/2 ‖∇L̂‖², the mean training loss is at most L̂(θ) + ‖θ − θ₀‖² / "
        "(2 η K) + 1/(2K) Σ τ_k ‖θ − θ_k‖².",
        f"{_TARGET}; the largest loss in τ_k is that of nine points",
        f"{_AND_START}, on cells whose steps all descend so",
        _lemma8,
    ),
    _claim(
        "paper",
        "lemma9",
        "Lemma 9",
        "If in addition √H ≥ 2 (β₃(θ) ∨ β₃(θ_k)) ‖θ − θ_k‖² at each step, the mean training loss "
        "is at most 2 L̂(θ) + 3 ‖θ − θ₀‖² / (4 η K) + L̂(θ₀) / (2K).",
        f"{_TARGET}; β₃ of the corrected version",
        f"{_AND_START}, on cells that meet its conditions",
        _lemma9,
    ),
    _claim(
        "paper",
        "lemma10",
        "Lemma 10",
        "No iterate is further from θ than 3 ‖θ − θ₀‖.",
        _CONDITIONS,
        f"{_AND_STEPS}, on cells that meet them",
        partial(_distance, column="lemma10", allowed=2.0),
    ),
    _claim(
        "paper",
        "theorem1",
        "Theorems 1 and 3",
        "The last training loss is at most the mean over all steps, and that at most 2 L̂(θ) + "
        "5 ‖θ − θ₀‖² / (4 η K).",
        _CONDITIONS,
        f"{_AND_START}, on cells that meet them",
        _theorem1,
    ),
    _claim(
        "paper",
        "theorem1-distance",
        "Theorems 1 and 3, second half",
        "No iterate is further from the start than 4 ‖θ − θ₀‖.",
        _CONDITIONS,
        f"{_AND_STEPS}, on cells that meet them",
        partial(_distance, column="theorem1_distance", allowed=4.0),
    ),
    _claim(
        "paper",
        "theorem2",
        "Theorems 2 and 4",
        "The test loss less the training loss is in expectation at most 4/n E[2 K L̂(θ) + 9 ‖θ − "
        "θ₀‖² / (4 η)].",
        _CONDITIONS,
        f"{WITHIN_BOUND.in_words('the mean over seeds of the gap less its bound')}; vacuous where "
        f"all gaps are {OUT_OF_REACH:g} decades below it",
        partial(_expected_gap, column="theorem2_bound"),
    ),
    _claim(
        "paper",
        "lemma11",
        "Lemma 11",
        "The mean distance of the leave-one-out copies is at most 2η/n β̃₁(θ) (2 K L̂(θ) + 9 ‖θ − "
        "θ₀‖² / (4 η)).",
        _CONDITIONS,
        f"{_AND_REACH}, on cells that meet them",
        _lemma11,
    ),
    _claim(
        "paper",
        "lemma3",
        "Lemma 3",
        "The test loss less the training loss is in expectation at most 2 G times the mean "
        "distance of the leave-one-out copies.",
        "G is β₁ at the largest ‖U_h‖ of the model and its copies",
        f"{WITHIN_BOUND.in_words('the mean over seeds of the gap less its bound, at each H,')}; "
        f"vacuous where all gaps are {OUT_OF_REACH:g} decades below it",
        partial(_expected_gap, column="lemma3_bound"),
    ),
    _claim(
        "sharp",
        "stability-power",
        "Lemma 11, its power of n",
        "Outside the lemma's conditions too, with appendix G's data and η = 1, the mean distance "
        "of the leave-one-out copies falls as 1/n, for 1 and 50 heads.",
        "n from 20 to 80, after 200 steps",
        AS_ONE_OVER_N.in_words("the power of n at each H"),
        _stability_power,
        STABILITY,
        "stability",
    ),
)
