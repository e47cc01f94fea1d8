"""Claims on Corollary 1 and Remark 2, linear layers on top, and on Theorem 2 near the optimum."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd

from overfit_cli.claims.cells import Values, finite_numbers, is_unknown
from overfit_cli.claims.rules import THEOREM_RULE
from overfit_cli.claims.stated import stated_claim
from overfit_cli.core.claim import Claim, Measurement, not_run
from overfit_cli.studies.attention_kernel.regression.claims.rates import (
    ROUND_OFF,
    SOURCE,
    has_stopped,
    judge_bound,
    judge_some_step_size,
    selection,
)
from overfit_cli.studies.attention_kernel.regression.parameters import (
    LAYERS,
    KernelRegressionParameters,
)

PRESET = "kernel-linear-layers"

LINEAR = 30.0
"""Steps to 1e-12 are at most so many times those to 1e-6 where a loss falls linearly.

One mode takes twice as many, and several take more where the slower ones begin low. A power law t⁻ᵖ
takes 10^(6/p) + 1 times as many, which is more than 30 for p up to 4.
"""

_TRILLIONTH = 1e-12

_HEADS = 4
_MANY = tuple(LAYERS)


def _cells(cells: pd.DataFrame, trained: tuple[str, ...]) -> pd.DataFrame:
    values: Values = {"kernel": "softmax", "trained": trained, "heads": _HEADS}
    return selection(values, PRESET).of(cells)


def _judge_linear(cells: pd.DataFrame) -> Measurement:
    chosen = _cells(cells, _MANY)
    if lacking := set(_MANY) - set(chosen["trained"]):
        raise not_run(f"It needs cells of trained={','.join(sorted(lacking))} too.")
    done = chosen["status"] == "done"
    for name in ("lambda_b", "train_loss"):
        finite_numbers(chosen[done], name)
    millionth, trillionth = (
        chosen[f"steps_to_{name}"].astype(float) for name in ("millionth", "trillionth")
    )
    linear = trillionth <= LINEAR * millionth
    above = chosen["relative_loss"].astype(float) > _TRILLIONTH  # else a count may be lost
    least = trillionth.fillna(chosen["steps"].astype(float).where(above))
    stopped = has_stopped(chosen, chosen["train_loss"].astype(float)) & above
    vanishing = ROUND_OFF - chosen["lambda_b"].astype(float)
    problems = ["trained", "seed"]
    over = (trillionth / millionth)[linear].groupby([chosen[name] for name in problems]).min()
    seeds = over.groupby("trained").size()
    return judge_some_step_size(
        chosen,
        linear,
        done & ~linear & (stopped | (least > LINEAR * millionth)),
        {"λ_B below round-off, by": vanishing.mask(is_unknown(chosen), -np.inf)},
        problems,
        {
            **{f"seeds that do, {name}": int(seeds.get(name, 0)) for name in _MANY},
            "steps to 1e-12 over those to 1e-6, most": float(over.max()),
        },
    )


def _with_step_ends(cells: pd.DataFrame) -> pd.DataFrame:
    chosen = _cells(cells, ("all", *_MANY))
    if lacking := {"all", *_MANY} - set(chosen["trained"]):
        raise not_run(f"It needs cells of trained={','.join(sorted(lacking))} too.")
    done = chosen["status"] == "done"
    steps = chosen["steps_to_millionth"].astype(float)
    least = steps.fillna(chosen["steps"].astype(float)).where(done, 1.0)
    return chosen.assign(least=least, most=steps.fillna(np.inf).where(done, np.inf))


def _more_steps(layers: str) -> str:
    steps = f"steps_to_millionth[trained={layers}] / steps_to_millionth[trained=all]"
    return f"log({steps}) / log(2) <= 1 on average"


_POSITIVE = "λ_B is above zero; d = n_0 = ... = n_{L−1} ≥ n_L = 1"

CLAIMS = (
    Claim(
        name="corollary1-linear",
        kind="ours",
        source=f"{SOURCE}, Corollary 1, with drawn weights in place of some weights",
        statement="With W_Q, W_K, W_V and 1, 2 or 4 linear layers W¹ ⋯ W^L on top trained from "
        "drawn weights there is a step size with which the loss converges linearly to zero.",
        hypotheses=f"{_POSITIVE}; the corollary itself can't fail: it lets the initial weights be "
        "chosen, and with λ_B above zero least squares gives some whose loss is zero at once",
        holds_where=f"{THEOREM_RULE}; a seed breaks it where for some L the loss at the smallest "
        f"step size stops above 1e-12 of its start, or takes more than {LINEAR:g} times the steps "
        "to 1e-12 that it takes to 1e-6, and less at no step size; where it still falls, nothing "
        "is decided",
        measure=_judge_linear,
        figure="curves",
        preset=PRESET,
    ),
    stated_claim(
        _with_step_ends,
        KernelRegressionParameters,
        f"{'; '.join(map(_more_steps, _MANY))} with at least 10 seeds",
        number="the median log₂ ratio of steps to 1e-6, for each L,",
        because="the same rate within a factor of two",
        between={"steps_to_millionth": ("least", "most")},
        name="remark2-rate",
        kind="paper",
        source=f"{SOURCE}, Remark 2",
        statement="With 1, 2 or 4 linear layers on top, trained too, the loss converges at the "
        "rate at which it does with W_Q, W_K and W_V alone, or faster.",
        hypotheses=f"{_POSITIVE}; the outputs and the step size are the same",
        figure="curves",
        preset=PRESET,
    ),
    Claim(
        name="theorem2-near-four",
        kind="ours",
        source=f"{SOURCE}, Theorem 2, with Remark 3's first option, where (8) is met and (46) is "
        "not",
        statement="With W_Q, W_K and W_V trained from near the optimum and H = 4, there is a step "
        "size η for which softmax attention's loss is at most (1 − ηβ)^t of its start, β = "
        "‖W_O‖² λ_B².",
        hypotheses="λ_B is above zero; condition (8), the theorem's, is met by labels near the "
        "first outputs; (46), which the proof assumes beside it and which has no residual, is "
        "missed, so that this does not refute the theorem; η times the largest curvature in W_V is "
        "at most 0.5, and a smaller one only takes longer; the proof, (45), has the rate β/4",
        holds_where=f"{THEOREM_RULE}; a seed breaks it where at every step size allowed some step "
        "lies above the bound",
        measure=partial(
            judge_bound,
            constant="paper",
            values={"kernel": "softmax", "trained": "all", "target": "near", "heads": _HEADS},
            theorem=2,
        ),
        figure="curves",
        preset="kernel-theorem2-near",
    ),
)
