"""Claims of Theorems 1 and 2: linear rates and zero loss, and the selection of cells for claims.

Rates are judged with the paper's constant and with the corrected one.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd

from overfit_cli.claims.cells import Selection, Values, finite_numbers, require_trained
from overfit_cli.claims.rules import (
    FEWEST_SEEDS_OF_THEOREM,
    THEOREM_RULE,
    Margin,
    judge_estimate,
    judge_theorem,
    mark_vacuous,
)
from overfit_cli.core.claim import Claim, Measurement, inconclusive
from overfit_cli.core.text import plural
from overfit_cli.stats.intervals import level_of_each, share_estimate
from overfit_cli.studies.attention_kernel.parameters import KernelName
from overfit_cli.studies.attention_kernel.regression.parameters import KernelRegressionParameters

SOURCE = "Song et al. 2024"

ZERO = 1e-6
"""The share of its start at which a loss counts as having gone to zero."""

BITES = 0.5
"""A bound that ends above this share of the starting loss is met by whatever halves its loss."""

ON_MOST_DRAWS = Margin(least=0.5, because="more draws than not", fewest_seeds=6)
ON_FEW_DRAWS = Margin(most=0.5, because="fewer draws than not", fewest_seeds=7)
AT_BEST = (
    ON_MOST_DRAWS.in_words("the share of seeds at zero, at the best step size,")
    + ", 9 where that is the best of eight"
)
_ALIKE = ("target", "training_steps", "sigma_w", "dtype")
_ANALOGUE = "end of section 4.1, which says of the Gaussian, without stating it, what is similar to"
_HEADS = {"one": (1,), "several": (2, 4)}
_TRAINED = {"value": "W_V alone", "all": "W_Q, W_K and W_V"}
_CONSTANTS = {
    ("paper", "value"): "‖W_O‖² λ_B²",
    ("paper", "all"): "‖W_O‖² λ_B²",
    ("corrected", "value"): "min_h ‖W_O,h‖² λ_B²",
    ("corrected", "all"): "min_h ‖W_O,h‖² λ_B² / 4",
}


def selection(values: Values, preset: str, *, any_target: bool = False) -> Selection:
    """Return which cells have some values; their heads, if not named, are one.

    With `any_target` cells with different targets may be judged together.
    """
    alike = [
        name for name in _ALIKE if name not in values and not (any_target and name == "target")
    ]
    vary = ["learning_rate", "value_gap", *(["target"] if any_target else [])]
    fixed = {"heads": 1, **values}
    return Selection(
        KernelRegressionParameters,
        at=fixed,
        vary=[name for name in vary if name not in fixed],
        alike=alike,
        preset=preset,
    )


def reached_zero(cells: pd.DataFrame) -> pd.Series[bool]:
    """Return which cells' losses went to zero; that of one that diverged did not."""
    zero = pd.Series(False, index=cells.index)
    ended = require_trained(cells)[cells["status"] == "done"]
    zero[ended.index] = finite_numbers(ended, "relative_loss") < ZERO
    return zero


def zero_loss_of(chosen: pd.DataFrame) -> Measurement:
    """Measure on which share of the seeds the loss goes to zero, at the step size that has most.

    It fails only where the best step size lies among those tried: beyond them there may be better.
    """
    reached = _zero_by_seed(chosen)
    count = int(reached.sum(axis=1).max())
    share = share_estimate(count, reached.shape[1], level_of_each(len(reached)))
    measured = judge_estimate(
        share,
        ON_MOST_DRAWS,
        details={
            **zero_by_step_size(chosen),
            "cells whose closed-form floor is above zero": int((chosen["floor"] > 0).sum()),
            "cells": len(chosen),
        },
        note=f"The share of seeds whose loss falls below {ZERO:g} of its start, at the step size "
        "that has most of them; the interval allows for that choice.",
    )
    best = _best_step_size(chosen, reached)
    if measured.verdict != "fails" or best not in (reached.index[0], reached.index[-1]):
        return measured
    edge = f"The best step size, {best:g}, is at the edge of those tried: beyond may be better."
    return replace(measured, verdict="inconclusive", note=f"{measured.note} {edge}")


def _zero_by_seed(cells: pd.DataFrame) -> pd.DataFrame:
    """Which seeds went to zero at which step size, (step sizes, seeds), of those all were run at.

    A seed counts where all of its cells at a step size went to zero.
    """
    by_seed = reached_zero(cells).groupby([cells["learning_rate"], cells["seed"]]).all().unstack()
    complete = by_seed.dropna()
    if complete.empty:
        raise inconclusive("At no step size were all seeds run.")
    return complete.astype(bool)


def _best_step_size(cells: pd.DataFrame, reached: pd.DataFrame) -> float:
    """The step size that most seeds went to zero at; of several, that of the lowest losses."""
    losses = cells["relative_loss"].astype(float).where(cells["status"] == "done", np.inf)
    medians = losses.groupby(cells["learning_rate"]).median().loc[reached.index]
    order = pd.DataFrame({"reached": -reached.sum(axis=1), "loss": medians})
    return float(order.sort_values(["reached", "loss"]).index[0])


def zero_by_step_size(cells: pd.DataFrame) -> dict[str, float]:
    """Return how many seeds went to zero at each step size."""
    counts = reached_zero(cells).groupby(cells["learning_rate"]).sum()
    return {f"seeds at zero, step size {rate:g}": int(count) for rate, count in counts.items()}


_THEOREM_2 = "kernel-theorem2"


def rate_claim(kind: str, trained: str, heads: str, kernel: KernelName = "softmax") -> Claim:
    """Claim that the loss is at most (1 − ηα)^t of its start (Theorem 1, or 2 for all weights).

    Of the Gaussian the paper says the same without a theorem. `kind` is the constant in the rate α.
    """
    theorem = 1 if trained == "value" else 2
    corrected = ", with the constant that its proof carries" if kind == "corrected" else ""
    numbers = _HEADS[heads]
    values: Values = {"kernel": kernel, "trained": trained, "heads": numbers}
    wording, name, subject = _wording(kernel, theorem)
    return Claim(
        name=f"{name}-{kind}-{heads}",
        source=f"{SOURCE}, {wording}{corrected}",
        statement=f"With {_TRAINED[trained]} trained and H = {' or '.join(map(str, numbers))}, "
        f"{subject} is at most (1 − ηα)^t of its start, α = {_CONSTANTS[kind, trained]}.",
        holds_where=f"{THEOREM_RULE} (at step sizes small enough to descend, and where the "
        f"bound ends below {BITES:g} of the start)",
        measure=partial(_bound, kind=kind, values=values, theorem=theorem),
        figure="curves",
        preset=f"kernel-theorem{theorem}",
    )


def _wording(kernel: KernelName, theorem: int) -> tuple[str, str, str]:
    """Where the paper bounds the loss of a kernel, the claims' name, and what is bounded."""
    if kernel == "softmax":
        return f"Theorem {theorem}", f"theorem{theorem}", "the loss"
    return f"{_ANALOGUE}, Theorem {theorem}", f"theorem{theorem}-gaussian", "the Gaussian's loss"


def _bound(cells: pd.DataFrame, kind: str, values: Values, theorem: int) -> Measurement:
    """Measure whether any step of a cell whose step size is stable lies above the bound."""
    chosen = selection(values, f"kernel-theorem{theorem}").of(cells)
    stable = require_trained(chosen)[finite_numbers(chosen, "stability") <= 1]
    if theorem == 2:
        stable = cells_meeting("8", stable)
    if stable.empty:
        raise inconclusive("No cell has a step size small enough to descend.")
    steps, rate = finite_numbers(stable, "steps"), finite_numbers(stable, f"rate_{kind}")
    limit = np.exp(steps * np.log1p(-(stable["learning_rate"] * rate).clip(upper=1 - 1e-16)))
    diverged = stable["status"] != "done"
    steps_above = pd.Series(0.0, index=stable.index)
    steps_above[~diverged] = finite_numbers(stable[~diverged], f"violations_{kind}")
    broken = diverged | (steps_above > 0)
    measured = judge_theorem(
        broken,
        stable["seed"],
        details={
            "cells": len(stable),
            "cells that break it": int(broken.sum()),
            "steps above it": float(steps_above.sum()),
            "cells whose step is too large to descend": len(chosen) - len(stable),
            "bound at the end over the start, least": float(limit.min()),
            "bound at the end over the start, most": float(limit.max()),
            "loss at the end over the start, most": float(stable["relative_loss"].max()),
        },
    )
    if theorem == 2 and finite_numbers(stable, "condition_8").max() > 0:
        return unless_condition("8", stable, measured)
    biting = stable.loc[limit <= BITES, "seed"].nunique()
    if broken.any() or biting >= FEWEST_SEEDS_OF_THEOREM:
        return measured
    why = (
        f"On {plural(biting, 'seed')} the bound falls below {BITES:g} of the start: elsewhere it "
        "can't be broken."
    )
    return mark_vacuous(measured, why, {"seeds on which the bound bites": biting})


def cells_meeting(name: str, cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells that meet condition (8) or (12); all of them where none does."""
    met = finite_numbers(cells, f"condition_{name}") <= 0
    return cells[met] if met.any() else cells


def unless_condition(name: str, cells: pd.DataFrame, measured: Measurement) -> Measurement:
    """Return a theorem's measurement; a vacuous one where the cells miss its condition."""
    decades = finite_numbers(cells, f"condition_{name}")
    if decades.max() <= 0:
        return measured
    return mark_vacuous(
        measured,
        f"Condition ({name}) isn't met, so the theorem says nothing of these cells.",
        {f"decades by which ({name}) is missed, median": float(decades.median())},
    )


def condition_claim(name: str, theorem: int, values: Values, preset: str) -> Claim:
    """Claim that condition (8) or (12) holds at the initial weights of the cells with `values`."""

    def measure(cells: pd.DataFrame) -> Measurement:
        chosen = selection(values, preset, any_target=True).of(cells)
        decades = finite_numbers(chosen, f"condition_{name}")
        return judge_theorem(
            decades > 0,
            chosen["seed"],
            details={
                "decades by which it is missed, least": float(decades.min()),
                "median": float(decades.median()),
                "most": float(decades.max()),
            },
        )

    return Claim(
        name=f"condition-{name}",
        source=f"{SOURCE}, Theorem {theorem}",
        statement=f"The initial weights meet condition ({name}), which Theorem {theorem} requires.",
        holds_where=THEOREM_RULE,
        measure=measure,
        preset=preset,
    )


def zero_loss(
    cells: pd.DataFrame, *, values: Values, preset: str, condition: str = ""
) -> Measurement:
    """Measure how often the loss goes to zero; vacuous where a condition isn't met."""
    chosen = selection(values, preset).of(cells)
    if not condition:
        return zero_loss_of(chosen)
    met = cells_meeting(condition, chosen)
    return unless_condition(condition, met, zero_loss_of(met))


def zero_claims(kernel: KernelName) -> list[Claim]:
    """Return the claims that a kernel reaches zero loss with all weights trained."""
    values: Values = {"kernel": kernel, "trained": "all"}
    wording, name, _ = _wording(kernel, 2)
    subject = "softmax" if kernel == "softmax" else "Gaussian"
    return [
        Claim(
            name=f"{name}-zero",
            source=f"{SOURCE}, {wording}",
            statement="Where condition (8) is met and W_Q, W_K and W_V are trained, "
            f"{subject} attention reaches zero loss.",
            holds_where=AT_BEST,
            measure=partial(zero_loss, values=values, preset=_THEOREM_2, condition="8"),
            figure="curves",
            preset=_THEOREM_2,
        ),
        Claim(
            name=f"zero-{kernel}-all",
            source=f"{SOURCE}, {wording}; without condition (8), ours",
            statement=f"With W_Q, W_K and W_V trained, {subject} attention reaches zero loss.",
            holds_where=AT_BEST,
            measure=partial(zero_loss, values=values, preset=_THEOREM_2),
            figure="curves",
            preset=_THEOREM_2,
        ),
    ]


CLAIMS = (
    *(
        rate_claim(kind, trained, heads)
        for trained in _TRAINED
        for kind in ("paper", "corrected")
        for heads in _HEADS
    ),
    *zero_claims("softmax"),
    condition_claim("8", 2, {"kernel": "softmax", "trained": "all"}, _THEOREM_2),
    *(
        rate_claim(kind, "all", heads, "gaussian")
        for kind in ("paper", "corrected")
        for heads in _HEADS
    ),
    *zero_claims("gaussian"),
)
