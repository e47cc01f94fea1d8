"""Claims of Theorems 1 and 2: linear rates and zero loss, and the selection of cells for claims.

Rates are judged with the paper's constant and with one corrected for a block-diagonal W_V. Both
theorems say that a step size exists, so a seed refutes one where it breaks it at every step size
allowed. With one head the recursion of the residual gives Theorem 1 at once, and Theorem 2 where
(8) leaves W_V alone to be trained: unit tests hold that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd

from overfit_cli.claims.cells import (
    Selection,
    Values,
    finite_numbers,
    is_unknown,
    require_trained,
    select_values,
)
from overfit_cli.claims.parts import Margin, Part
from overfit_cli.claims.rules import THEOREM_RULE, Requirements, judge, judge_theorem
from overfit_cli.claims.stated import joined
from overfit_cli.core.claim import Claim, Measurement, inconclusive
from overfit_cli.core.text import plural
from overfit_cli.studies.attention_kernel.parameters import KernelName
from overfit_cli.studies.attention_kernel.regression.parameters import KernelRegressionParameters

SOURCE = "Song et al. 2024"

ZERO = 1e-6
"""The share of its start at which a loss counts as having gone to zero."""

STOPPED = 0.05
"""A loss has stopped where as many steps again, at the last gradient, lower it by less than this
share of its distance to where it could go."""

ROUND_OFF = 1e-10
"""Singular values up to this are zero; the largest ones are near 1."""

MOST_CURVED = 0.5
"""Appendix 1.3 takes η below 1/(2G); so much is η times the largest curvature in W_V at most."""

PROVED = 0.25
"""The share of Theorem 2's β that its proof ends with: μ before equation (46), appendix 1.3."""

ON_MOST_DRAWS = Margin(least=0.5, because="more draws than not", fewest_seeds=6)
AT_BEST = (
    ON_MOST_DRAWS.in_words("the share of seeds at zero, at the best step size,")
    + ", 9 where that is the best of eight"
)
GOES_TO_ZERO = (
    f"{THEOREM_RULE}; a seed breaks it whose loss stops above {ZERO:g} of its start at the "
    "smallest step size, and goes below at none; where it still falls, nothing is decided"
)
_SIZES = ("n", "tokens", "d", "d_h")
_ALIKE = ("target", "training_steps", "sigma_w", "balance", "distance", "dtype", *_SIZES)
_HEADS = {"paper": (2, 4), "corrected": (1, 2, 4)}
"""Numbers of heads, by constant: with one head the paper's is right by algebra."""

_TRAINED = {"value": "W_V alone", "all": "W_Q, W_K and W_V"}
_CONSTANTS = {
    ("paper", "value"): "‖W_O‖² λ_B²",
    ("paper", "all"): "‖W_O‖² λ_B²",
    ("corrected", "value"): "min_h ‖W_O,h‖² λ_B²",
    ("corrected", "all"): "min_h ‖W_O,h‖² λ_B² / 4",
}


def selection(values: Values, preset: str, *, any_target: bool = False) -> Selection:
    """Return which cells have some values; their heads, if not named, are one."""
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


def cells_under(
    condition: str, cells: pd.DataFrame, values: Values, preset: str
) -> tuple[pd.DataFrame, pd.Series[float]]:
    """Return a theorem's cells, and the decades by which each misses condition (8) or (12).

    They are of a setting in which some cell meets it, where there is one. The decades depend on the
    initial weights, so a cell that failed has those of its seed; -inf where nothing is known.
    """
    column = f"condition_{condition}"
    fixed = {"heads": 1, **values}
    candidates = select_values(cells, fixed)
    if len(candidates):
        met = candidates[column].astype(float) <= 0
        reached = met.groupby([candidates[name] for name in _ALIKE]).transform("any")
        cells = candidates[reached] if reached.any() else candidates
    chosen = selection(values, preset).of(cells)
    decades = chosen[column].astype(float)
    if (missing := int((decades.isna() & (chosen["status"] == "done")).sum())) > 0:
        raise inconclusive(f"{missing} cells have no number of {column}.")
    decades = decades.fillna(decades.groupby(chosen["seed"]).transform("max"))
    return chosen, decades.mask(decades.isna() & is_unknown(chosen), -np.inf)


def step_sizes(cells: pd.DataFrame) -> pd.Series[float]:
    """Return η of each cell, which a balance divides."""
    sizes: pd.Series[float] = cells["learning_rate"] / cells["balance"] ** 2
    return sizes


def reached_zero(cells: pd.DataFrame) -> pd.Series[bool]:
    """Return which cells' losses went to zero; that of one that diverged did not."""
    zero = pd.Series(False, index=cells.index)
    ended = cells[cells["status"] == "done"]
    zero[ended.index] = finite_numbers(ended, "relative_loss") < ZERO
    return zero


def has_stopped(cells: pd.DataFrame, above: pd.Series[float]) -> pd.Series[bool]:
    """Return which cells that are done no longer fall; see `STOPPED`."""
    done = cells[cells["status"] == "done"]
    for name in ("steps", "gradient"):
        finite_numbers(done, name)
    fall = step_sizes(cells) * cells["steps"] * cells["gradient"].astype(float) ** 2
    return (cells["status"] == "done") & (fall < STOPPED * above)


def judge_zero(chosen: pd.DataFrame, requirements: dict[str, pd.Series[float]]) -> Measurement:
    """Judge whether every seed's loss goes to zero at some step size; see `GOES_TO_ZERO`."""
    done = chosen[chosen["status"] == "done"]
    finite_numbers(done, "train_loss")
    zero = reached_zero(chosen)
    stopped = has_stopped(chosen, chosen["train_loss"].astype(float)) & ~zero
    lowest = done["relative_loss"].astype(float).groupby(done["seed"]).min()
    return judge_some_step_size(
        chosen,
        zero,
        stopped,
        requirements,
        details={
            **zero_by_step_size(chosen),
            "largest loss over its start of a seed at its best": float(lowest.max()),
        },
    )


def judge_some_step_size(
    chosen: pd.DataFrame,
    reached: pd.Series[bool],
    short: pd.Series[bool],
    requirements: dict[str, pd.Series[float]],
    by: Sequence[str] = ("seed",),
    details: Mapping[str, float] | None = None,
) -> Measurement:
    """Judge whether some step size serves every seed.

    It is broken where the smallest step size falls short and none serves, and all cells are known.
    """
    problems = [chosen[name] for name in by]
    smallest = chosen["learning_rate"] == chosen["learning_rate"].min()
    served = reached.groupby(problems).any()
    lost = is_unknown(chosen).groupby(problems).any()  # it may be the one that comes there
    broken = (short & smallest).groupby(problems).any() & ~served & ~lost
    still_open = ~served & ~broken
    seeds = broken.index.to_frame()["seed"]
    falling = seeds[still_open & ~lost].nunique()
    missed = {name: amounts.groupby(problems).max() for name, amounts in requirements.items()}
    return judge_theorem(
        broken,
        seeds,
        unknown=still_open,
        unknown_because="seeds that have not come down, or lack a cell",
        requirements=Requirements(missed, ", ".join(missed)),
        note=f"On {plural(falling, 'seed')} the loss has not come down yet." if falling else "",
        details=details,
    )


def zero_loss_of(chosen: pd.DataFrame) -> Measurement:
    """Measure on which share of the seeds the loss goes to zero, at the step size that has most."""
    reached = _zero_by_seed(chosen)
    count = int(reached.sum(axis=1).max())
    measured = judge(
        [Part.of(np.arange(reached.shape[1]) < count, ON_MOST_DRAWS, "share")],
        among=len(reached),
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
    zero = reached_zero(require_trained(cells))
    by_seed = zero.groupby([cells["learning_rate"], cells["seed"]]).all().unstack()
    complete = by_seed.dropna()
    if complete.empty:
        raise inconclusive("At no step size were all seeds run.")
    return complete.astype(bool)


def _best_step_size(cells: pd.DataFrame, reached: pd.DataFrame) -> float:
    losses = cells["relative_loss"].astype(float).where(cells["status"] == "done", np.inf)
    medians = losses.groupby(cells["learning_rate"]).median().loc[reached.index]
    order = pd.DataFrame({"reached": -reached.sum(axis=1), "loss": medians})
    return float(order.sort_values(["reached", "loss"]).index[0])


def zero_by_step_size(cells: pd.DataFrame) -> dict[str, float]:
    """Return how many seeds went to zero at each step size."""
    counts = reached_zero(cells).groupby(cells["learning_rate"]).sum()
    return {f"seeds at zero, step size {rate:g}": int(count) for rate, count in counts.items()}


_FREE, _BALANCED = "kernel-theorem2", "kernel-theorem2-balanced"
_HYPOTHESES = {
    1: "λ_B is above zero; W_V is block-diagonal over heads, as in (5), while gradient (27) is "
    "that of an unrestricted matrix, for which the rate is right; η times the largest curvature is "
    f"at most {MOST_CURVED:g}, as appendix 1.3 takes it, and a smaller η only takes longer",
    2: "λ_B is above zero; condition (8) is met by Remark 3's second option, a large W_O and a "
    "small W_V, with which W_Q and W_K keep every bit in float64, so that in effect W_V alone is "
    f"trained; η times the largest curvature in W_V is at most {MOST_CURVED:g}, the proof's η is "
    "smaller still, and a smaller one only takes longer",
}
_PROVED = "; the slip is Theorem 1's, gradient (27); the proof, (45), has the rate β/4"


def rate_claim(constant: str, trained: str, kernel: KernelName = "softmax") -> Claim:
    """Claim that the loss is at most (1 − ηα)^t of its start (Theorem 1, or 2 for all weights)."""
    theorem, rate = (1, "α") if trained == "value" else (2, "β")
    softmax, paper = kernel == "softmax", constant == "paper"
    subject = "softmax attention's loss" if softmax else "Gaussian attention's loss"
    where = f"Theorem {theorem}" if softmax else "end of section 4.1"
    *fewer, most = map(str, _HEADS[constant])

    def part(count: int) -> Claim:
        values: Values = {"kernel": kernel, "trained": trained, "heads": count}
        return Claim(
            name=f"theorem{theorem}{'' if softmax else '-gaussian'}-{constant}-"
            f"{'two' if paper else 'four'}",
            kind="paper" if paper else "ours",
            source=f"{SOURCE}, {where}"
            + ("" if paper else ", with a constant corrected for a block-diagonal W_V"),
            statement=f"With {_TRAINED[trained]} trained there is, for each of H = "
            f"{', '.join(fewer)} and {most}, a step size η for which {subject} is at most "
            f"(1 − η{rate})^t of its start, {rate} = {_CONSTANTS[constant, trained]}.",
            hypotheses=_HYPOTHESES[theorem] + (_PROVED if paper and theorem == 2 else ""),
            holds_where=f"{THEOREM_RULE}; a seed breaks it where at every step size allowed some "
            "step lies above the bound"
            + (
                ", or must later by the exact recursion: its slowest rate, twice the least "
                "curvature, is below that"
                if paper and theorem == 1
                else ""
            ),
            measure=partial(judge_bound, constant=constant, values=values, theorem=theorem),
            figure="curves",
            preset="kernel-theorem1" if theorem == 1 else _BALANCED,
        )

    return joined({f"H = {count}": part(count) for count in _HEADS[constant]})


def judge_bound(cells: pd.DataFrame, constant: str, values: Values, theorem: int) -> Measurement:
    """Judge whether some seed's loss lies above the bound at every step size that is allowed."""
    requirements: dict[str, pd.Series[float]] = {}
    details: dict[str, float] = {}
    if theorem == 1:
        chosen = selection(values, "kernel-theorem1").of(cells)
    else:
        chosen, decades = cells_under("8", cells, values, _BALANCED)
        requirements["decades by which (8) is missed"] = decades
        proof = chosen["condition_46"].astype(float)
        details = {
            "decades by which (46) is missed, least": float(proof.min()),
            "decades by which (46) is missed, most": float(proof.max()),
        }
    unknown = is_unknown(chosen)
    for name in ("lambda_b", "steps"):
        finite_numbers(chosen[~unknown], name)
    stability = finite_numbers(chosen[~unknown], "stability").reindex(chosen.index)
    allowed = chosen[unknown | (stability <= MOST_CURVED)]
    if allowed.empty:
        raise inconclusive("No cell has a step size as small as allowed.")
    told = _tell_bound(allowed, constant, theorem)
    seeds = allowed["seed"]
    vanishing = (ROUND_OFF - allowed["lambda_b"].astype(float)).mask(unknown, -np.inf)
    requirements["λ_B below round-off, by"] = vanishing
    missed = {
        name: amounts[allowed.index].groupby(seeds).max() for name, amounts in requirements.items()
    }
    broken = told["broken"].groupby(seeds).all()
    measured = judge_theorem(
        broken,
        broken.index.to_series(),
        unknown=unknown[allowed.index].groupby(seeds).any() & ~broken,
        requirements=Requirements(missed, ", ".join(missed)),
        decades_over=told["decades"].groupby(seeds).max(),
        note="The decades are those of the bound's rate over the measured one."
        + _compare_slowest(told, seeds, theorem),
        details={
            **details,
            "cells": len(allowed),
            "cells with a step above it": int(told["above"].sum()),
            "cells whose slowest rate is below the paper's": int(told["slow"].sum()),
            "cells whose step size is larger than allowed": len(chosen) - len(allowed),
            "bound at the end over the start, least": float(np.exp(told["log_bound"].min())),
            "loss at the end over the start, most": float(allowed["relative_loss"].max()),
        },
    )
    undecided = int((told["too short"].groupby(seeds).any() & ~broken).sum())
    if measured.verdict != "holds" or not undecided:
        return measured
    note = (
        f"{measured.note} On {plural(undecided, 'seed')} the slowest rate at the start lies below "
        "the paper's, so that the steps taken may be too few to break it."
    )
    return replace(measured, verdict="inconclusive", note=note)


def _compare_slowest(told: pd.DataFrame, seeds: pd.Series[int], theorem: int) -> str:
    if theorem == 2:
        proved = bool((told["margin"].dropna() >= PROVED).all()) and told["margin"].notna().any()
        return " In every cell the slowest rate is above β/4, the proof's." if proved else ""
    slow, above = (int(told[name].groupby(seeds).all().sum()) for name in ("slow", "above"))
    if not slow:
        return ""
    return (
        " By the exact recursion every step size breaks the bound, sooner or later, on "
        f"{slow} of {plural(seeds.nunique(), 'seed')}; the steps taken do so on {above or 'none'}."
    )


def _tell_bound(cells: pd.DataFrame, constant: str, theorem: int) -> pd.DataFrame:
    """What the cells tell of a bound, one row per cell.

    With W_V alone the loss is a sum of decaying modes, and the slowest is below the paper's rate
    exactly where `rate_margin` is below 1: then every step size breaks the bound in the end. With
    all weights trained that says only that the steps taken may be too few.
    """
    done, unknown = cells["status"] == "done", is_unknown(cells)
    violations = finite_numbers(cells[done], f"violations_{constant}").reindex(cells.index)
    above = (violations > 0) | ~(done | unknown)  # one that diverged lies above
    margin = cells["rate_margin"].astype(float)
    if constant != "paper":
        margin = margin * np.nan  # it says nothing of another constant
    slow = margin < 1
    share = step_sizes(cells) * cells[f"rate_{constant}"].astype(float)
    log_bound = cells["steps"] * np.log1p(-share.clip(upper=1 - 1e-16))
    with np.errstate(divide="ignore", invalid="ignore"):
        fall = np.log(cells["relative_loss"].astype(float))
        decades = np.log10((log_bound / fall).where(fall < 0, np.inf))
    return pd.DataFrame(
        {
            "broken": above | (slow & (theorem == 1)),
            "above": above,
            "slow": slow,
            "too short": ~(margin >= 1) & (constant == "paper") & ~above,
            "margin": margin,
            "decades": decades.where(~above, np.inf),
            "log_bound": log_bound,
        }
    )


def zero_loss(cells: pd.DataFrame, *, values: Values, preset: str) -> Measurement:
    """Measure how often the loss goes to zero, whatever a theorem requires."""
    return zero_loss_of(selection(values, preset).of(cells))


def _zero_claim(kernel: KernelName) -> Claim:
    values: Values = {"kernel": kernel, "trained": "all"}
    return Claim(
        name="zero-softmax-all",
        kind="ours",
        source=f"{SOURCE}, Theorem 2 and the end of section 4.1, without condition (8)",
        statement="With W_Q, W_K and W_V trained from drawn weights, softmax attention and "
        "Gaussian attention reach zero loss.",
        holds_where=AT_BEST,
        measure=partial(zero_loss, values=values, preset=_FREE),
        figure="curves",
        preset=_FREE,
    )


CLAIMS = (
    *(rate_claim(constant, trained) for trained in _TRAINED for constant in _HEADS),
    joined({"softmax": _zero_claim("softmax"), "Gaussian": _zero_claim("gaussian")}),
    rate_claim("corrected", "all", "gaussian"),
)
