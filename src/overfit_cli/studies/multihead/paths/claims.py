"""Claims on Theorem 1 of Deora et al. 2024 and its lemmas, where their conditions are met.

The conditions on H and η are those of the corrected version of the paper, with θ at a distance that
is chosen so that they can be met ("fix any θ"). Each lemma is held to its own conditions: those of
Lemmas 8 to 10 are met by larger steps than Theorem 1 allows.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from overfit_cli.claims.rules import THEOREM_RULE, Requirements, judge_theorem
from overfit_cli.core.claim import Measurement
from overfit_cli.studies.multihead.claims import numbers
from overfit_cli.studies.multihead.paths.bounds import (
    AND_REACH,
    CONDITIONS,
    DESCENT,
    REGRET,
    ROUND_OFF,
    START_LOSS,
    TARGET,
    THEOREM,
    claim,
    judge_bound,
    judge_telling,
    requirements_of,
    select,
    time_of,
)
from overfit_cli.studies.multihead.paths.stability_claims import STABILITY_CLAIMS


def _judge_loss(
    cells: pd.DataFrame, ratio: pd.Series[float], requirements: Requirements
) -> Measurement:
    bound = numbers(cells, "mean_train_loss") / ratio
    return judge_telling(
        cells,
        ratio,
        requirements,
        {"bound above the loss at the start by": bound - START_LOSS},
        "The bound is above the loss at the start, so that descent alone keeps it.",
    )


def _judge_distance(
    cells: pd.DataFrame, ratio: pd.Series[float], requirements: Requirements
) -> Measurement:
    """Judge a distance over its bound, where steps that descend could pass the bound.

    K steps that each lower the loss by η/2 ‖∇L̂‖² or more lead √(2 η K log 2) away at most, and the
    bound is 2 ‖θ − θ₀‖ away from the start at least.
    """
    reach = (2 * START_LOSS * time_of(cells)) ** 0.5
    far: pd.Series[float] = reach / (2 * cells["target_distance"].astype(float))
    return judge_telling(
        cells,
        ratio,
        requirements,
        {"share of the way to the bound that descending steps can't lead": 1 - far},
        "Steps that descend can't lead as far as the bound.",
    )


def _descends(cells: pd.DataFrame) -> Requirements:
    return Requirements(
        {"descent missing of η/2 ‖∇L̂‖²": 1 - numbers(cells, "descent")},
        "some step descends less than η/2 ‖∇L̂‖²",
    )


def _descent(cells: pd.DataFrame) -> Measurement:
    chosen = select(cells, DESCENT)
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


def _segments(cells: pd.DataFrame) -> Measurement:
    chosen = select(cells, DESCENT)
    return judge_bound(chosen, numbers(chosen, "segment_rise"), None, {})


def _lemma8(cells: pd.DataFrame) -> Measurement:
    chosen = select(cells, DESCENT)
    return _judge_loss(chosen, numbers(chosen, "lemma8"), _descends(chosen))


def _lemma9(cells: pd.DataFrame) -> Measurement:
    chosen = select(cells, REGRET)
    needed = numbers(chosen, "lemma9_heads") + 2 * np.log10(chosen["d"].astype(float))
    requirements = _descends_with_heads(chosen, needed)
    return _judge_loss(chosen, numbers(chosen, "lemma9"), requirements)


def _lemma10(cells: pd.DataFrame) -> Measurement:
    """Judge (75) where (68), (73) and (74) are met."""
    chosen = select(cells, REGRET)
    of_target = time_of(chosen) * numbers(chosen, "target_loss")  # η K L̂(θ)
    of_start = chosen["learning_rate"].astype(float) * START_LOSS  # η L̂(θ₀)
    square = chosen["target_distance"].astype(float) ** 2
    excess = pd.Series(np.log10(np.maximum(of_target, of_start) / square), chosen.index)
    requirements = _descends_with_heads(chosen, numbers(chosen, "theorem1_heads"))
    conditions = Requirements(
        {**requirements.missed, "decades by which steps are too large for (73)": excess},
        requirements.in_words,
    )
    return _judge_distance(chosen, numbers(chosen, "lemma10"), conditions)


def _descends_with_heads(cells: pd.DataFrame, needed: pd.Series[float]) -> Requirements:
    missing = needed - np.log10(cells["heads"].astype(float))
    return Requirements(
        {**_descends(cells).missed, "decades of heads missing": missing},
        "there are too few heads, or a step does not descend enough or is too large",
    )


def _theorem1(cells: pd.DataFrame) -> Measurement:
    chosen = select(cells, THEOREM)
    return _judge_loss(chosen, _loss_over_bound(chosen), requirements_of(chosen, "1"))


def _loss_over_bound(cells: pd.DataFrame) -> pd.Series[float]:
    """The larger of both quotients of (4): of the mean loss to its bound, and of the last to it."""
    mean = numbers(cells, "mean_train_loss")
    ratio = mean / numbers(cells, "theorem1_bound")
    ordered = numbers(cells, "train_loss") <= mean * (1 + ROUND_OFF)
    return ratio.where(ordered, 2.0).mask(numbers(cells, "train_loss").isna() | mean.isna())


_AND_START = f"{AND_REACH}, or no bound is below the loss at the start"

CLAIMS = (
    claim(
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
    claim(
        "paper",
        "quasi-convexity",
        "Propositions 4 and 6",
        "On a segment with 2 (β₃(θ₁) ∨ β₃(θ₂)) ‖θ₁ − θ₂‖² ≤ √H the loss is at most 4/3 of that at "
        "its worse end.",
        "segments as long as that, with the β₃ in print: from steps towards the target, and around "
        "steps in the direction in which the loss is most concave",
        AND_REACH,
        _segments,
        DESCENT,
        "descent",
    ),
    claim(
        "paper",
        "lemma8",
        "Lemma 8",
        "If each step descends by η/2 ‖∇L̂‖², the mean training loss is at most L̂(θ) + ‖θ − θ₀‖² / "
        "(2 η K) + 1/(2K) Σ τ_k ‖θ − θ_k‖².",
        f"{TARGET.format(0.5)}; the largest loss in τ_k is that of nine points",
        f"{_AND_START}, on cells whose steps all descend so and whose bound is below it",
        _lemma8,
        DESCENT,
        "descent",
    ),
    claim(
        "paper",
        "lemma9",
        "Lemma 9",
        "If in addition √H ≥ 2 (β₃(θ) ∨ β₃(θ_k)) ‖θ − θ_k‖² at each step, the mean training loss "
        "is at most 2 L̂(θ) + 3 ‖θ − θ₀‖² / (4 η K) + L̂(θ₀) / (2K).",
        f"{TARGET.format('4 or 6')}; β₃ of the corrected version",
        f"{_AND_START}, on cells that meet its conditions and whose bound is below it",
        _lemma9,
        REGRET,
        "regret",
    ),
    claim(
        "paper",
        "lemma10",
        "Lemma 10",
        "If each step descends by η/2 ‖∇L̂‖², ‖θ − θ₀‖² is at least η K L̂(θ) and η L̂(θ₀), and H "
        "meets (74), no iterate is further from θ than 3 ‖θ − θ₀‖.",
        f"{TARGET.format('4 or 6')}; (74) is that of the corrected version",
        f"{AND_REACH}, or steps that descend can't lead so far, on cells that meet its conditions "
        "and whose steps could lead so far",
        _lemma10,
        REGRET,
        "regret",
    ),
    claim(
        "paper",
        "theorem1",
        "Theorems 1 and 3",
        "The last training loss is at most the mean over all steps, and that at most 2 L̂(θ) + "
        "5 ‖θ − θ₀‖² / (4 η K).",
        CONDITIONS,
        f"{_AND_START}, on cells that meet them",
        _theorem1,
        THEOREM,
        "lines",
    ),
    *STABILITY_CLAIMS,
)
