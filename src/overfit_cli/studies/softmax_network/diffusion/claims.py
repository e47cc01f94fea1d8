"""Claims of Cao et al. 2024, section 6, on estimated scores, and ours on the samples.

Measured are powers of n, ratios of two models, and a single column. Ratios have heavy tails and are
averaged on logarithms.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd

from overfit_cli.claims.cells import Selection, is_unknown
from overfit_cli.claims.rules import Requirements, judge_theorem
from overfit_cli.claims.stated import joined, stated_claim
from overfit_cli.core.claim import Claim, Measurement
from overfit_cli.studies.softmax_network.diffusion.parameters import SoftmaxDiffusionParameters
from overfit_cli.studies.softmax_network.paper import NAMES

MIXTURE, DIGITS, DESCENT = ("softmax-scores", "softmax-scores-digits", "softmax-scores-gd")

WEIGHTINGS = ("score_error", "denoiser_error")
"""Squared errors of the score, weighted by 1 and by 4 sinh² t."""

AS_IN_THE_PAPER = {"optimiser": "gd", "output_scale": "paper"}
BOTH_WAYS = {"optimiser": ("gd", "adam"), "output_scale": ("paper", "root")}
_BOTH_RATIOS = [
    f"{each}[optimiser=gd, output_scale=paper] / {each}[optimiser=adam, output_scale=root]"
    for each in WEIGHTINGS
]
_OTHERS = set(SoftmaxDiffusionParameters.model_fields) - {"model", "n"}


def _selection(preset: str, models: tuple[str, ...], **fixed: object) -> Selection:
    target = "digits" if preset == DIGITS else "mixture"
    values = {"model": models, "target": target, **fixed}
    return Selection(
        SoftmaxDiffusionParameters,
        at=values,
        vary={"n"},
        alike=_OTHERS - set(values),
        includes={name: value for name, value in values.items() if isinstance(value, tuple)},
        preset=preset,
    )


def _of_models(column: str, over: str, under: str) -> str:
    return f"geometric mean of {column}[model={over}] / {column}[model={under}]"


def theorem(cells: pd.DataFrame) -> Measurement:
    """Measure by how many decades Theorem 6.6's requirements are missed, and the term 1/(λ√n).

    An error above that term breaks nothing: five other terms of the bound, and the constant of its
    O(·), have no number.
    """
    held = _selection(DESCENT, ("softmax",), **AS_IN_THE_PAPER).of(cells)
    excess = held["bound_over_error"].astype(float)
    return judge_theorem(
        pd.Series(False, held.index),
        held["seed"],
        unknown=is_unknown(held) | ~(excess >= 0),
        requirements=Requirements(
            {
                "decades of hidden units missing": held["width_missing"].astype(float),
                "decades by which steps are too large": held["step_size_beyond"].astype(float),
            },
            "there are too few hidden units, or steps are too large",
        ),
        decades_over=-excess,
        details={"decades of 1/(λ√n) over the error, least": float(excess.min())},
        note="An error above 1/(λ√n) leaves open what the other five terms are.",
    )


def _claim(
    name: str,
    statement: str,
    stated: str,
    number: str,
    because: str,
    models: tuple[str, ...] = ("softmax",),
    figure: str = "score",
    preset: str = MIXTURE,
    fixed: dict[str, Any] | None = None,
) -> Claim:
    return stated_claim(
        _selection(preset, models, **(fixed or {})).of,
        SoftmaxDiffusionParameters,
        stated,
        number=number,
        because=because,
        name=f"diffusion-{name}",
        source="after Cao et al. 2024, section 6",
        statement=statement,
        figure=figure,
        preset=preset,
    )


AT_LARGEST = " where n is largest"


def _errors_claim(
    name: str,
    statement: str,
    models: tuple[str, str],
    relation: str,
    because: str,
) -> Claim:
    return _claim(
        name,
        statement,
        "; ".join(f"{_of_models(column, *models)} {relation}" for column in WEIGHTINGS)
        + AT_LARGEST,
        "both squared score errors, weighted by 1 and by 4 sinh² t, at the largest n: the ratio of "
        f"{models[0]} over {models[1]}",
        because,
        models,
    )


CLAIMS = (
    joined(
        {
            NAMES[model]: _claim(
                "falls",
                "The score error of networks with softmax, exp and ReLU falls with n, up to the "
                "largest n.",
                "; ".join(f"mean of power of n in {each} < 0 throughout" for each in WEIGHTINGS),
                "for both weightings, the power of n in the squared score error",
                "0 is no fall",
                (model,),
            )
            for model in NAMES
        },
        after_selection=True,
    ),
    joined(
        {
            NAMES[rival]: _errors_claim(
                "alike",
                "Softmax networks learn the score as exp networks do, and as ReLU networks do.",
                ("softmax", rival),
                "is 1 within a factor of 2",
                "a factor of two",
            )
            for rival in ("exp", "relu")
        },
        after_selection=True,
    ),
    _errors_claim(
        "posterior",
        "A fitted softmax network's score is nearer to the true one than that of the exact "
        "posterior over the training points.",
        ("softmax", "posterior"),
        "< 1",
        "1 is no better",
    ),
    _claim(
        "samples",
        "Samples drawn with a fitted softmax network are as near to the target as those drawn "
        "with the true score.",
        f"{_of_models('sliced_wasserstein', 'softmax', 'true')} is 1 within a factor of 2"
        + AT_LARGEST,
        "the ratio of their sliced Wasserstein distances, at the largest n,",
        "a factor of two",
        ("softmax", "true"),
        "samples",
    ),
    _claim(
        "gd",
        "Gradient descent at the paper's scale learns the score as well as Adam with outputs over "
        "√m does.",
        "; ".join(f"geometric mean of {each} is 1 within a factor of 2" for each in _BOTH_RATIOS)
        + AT_LARGEST,
        "for both weightings, the ratio of squared score errors",
        "a factor of two",
        figure="curves",
        preset=DESCENT,
        fixed=BOTH_WAYS,
    ),
    replace(
        _claim(
            "copies-softmax",
            "Samples drawn with a softmax network lie as near to its training digits as fresh "
            "draws do.",
            "mean of memorised is 0 within 0.1 where n is smallest",
            "at the smallest n, the mean of what samples have memorised, 0 as fresh draws and 1 as "
            "noised copies,",
            "fresh draws have 0, and a tenth",
            ("softmax",),
            "samples",
            DIGITS,
        ),
        after_selection=True,
    ),
    Claim(
        name="diffusion-theorem66",
        kind="paper",
        source="Cao et al. 2024, Theorem 6.6",
        statement="The score error, weighted by λ(t), is O(1/(λ√n) + ε(n, T̂) + d A² + d A + "
        "√(d A Γ) + Γ).",
        holds_where="no cell's error, weighted by 4 sinh² t, is above 1/(λ√n), the one term that "
        "has a number; an error above it is inconclusive",
        measure=theorem,
        figure="curves",
        preset=DESCENT,
        hypotheses="m and η are as stated, with 1 for the constant of Ω(·), C at 10, the end of C "
        "> 10, and δ = 0.05. Of the assumptions, 6.1 is met but for the tails of the points, 6.3 "
        "and 6.4 are met, and 6.2 isn't where n times the outputs is above (m/2)(d + 1), the "
        "largest rank that H* can have, as from n = 300 on: there λ is 0, and that of infinitely "
        "many units stands in for it. Networks stop early by a validation draw; whether that meets "
        "6.5, and whether R_H is large enough, isn't known",
    ),
)
