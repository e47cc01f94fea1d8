"""Claims of Cao et al. 2024, section 6, on estimated scores, and ours on the samples.

Measured are powers of n, ratios of two models, and single columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pandas as pd

from overfit_cli.claims.cells import (
    Selection,
    Values,
    finite_numbers,
    positive_numbers,
    require_done,
    require_trained,
)
from overfit_cli.claims.rules import (
    Margin,
    Requirements,
    exponentiate,
    factor_margin,
    judge_estimate,
    judge_estimates,
    judge_theorem,
)
from overfit_cli.core.claim import Claim, Measurement, not_run
from overfit_cli.stats.boundaries import scaling_exponents
from overfit_cli.stats.intervals import level_of_each, mean_estimate
from overfit_cli.studies.softmax_network.diffusion.parameters import SoftmaxDiffusionParameters
from overfit_cli.studies.softmax_network.paper import NAMES, Activation

FALLS = Margin(most=0.0, because="0 is no fall")
ALIKE = factor_margin(1.0, 2.0, "a factor of two")

MIXTURE, DIGITS, DESCENT = ("softmax-scores", "softmax-scores-digits", "softmax-scores-gd")

WEIGHTINGS = ("score_error", "denoiser_error")
"""Squared errors of the score, weighted by 1 and by 4 sinh² t."""

AS_IN_THE_PAPER = {"optimiser": "gd", "output_scale": "paper"}
_OTHERS = set(SoftmaxDiffusionParameters.model_fields) - {"model", "n"}


def _cells(cells: pd.DataFrame, models: Sequence[str], **fixed: object) -> pd.DataFrame:
    """The cells of some models; those of one model differ in n and in the seed alone."""
    values: Values = {"model": tuple(models), "target": "mixture", **fixed}
    preset = DIGITS if values["target"] == "digits" else MIXTURE
    chosen = require_done(
        require_trained(
            Selection(
                SoftmaxDiffusionParameters,
                at=values,
                vary={"n"},
                alike=_OTHERS - set(values),
                preset=preset if "optimiser" not in fixed else DESCENT,
            ).of(cells)
        )
    )
    if missing := set(models) - set(chosen["model"]):
        raise not_run(f"It needs cells of model={', '.join(sorted(missing))} too.")
    return chosen


def power_of_n(cells: pd.DataFrame, model: Activation, target: str) -> Measurement:
    """Measure the power of n in the errors, seed by seed."""
    columns = WEIGHTINGS if target == "mixture" else ("denoising_loss",)
    held = _cells(cells, [model], target=target)
    for column in columns:
        positive_numbers(held, column)
    powers = {
        column: scaling_exponents(held, ["n"], column, level_of_each(len(columns)))
        for column in columns
    }
    exponents = {name: (power["n"], FALLS) for name, power in powers.items() if power is not None}
    if not exponents:
        raise not_run("It takes several n.")
    return judge_estimates(exponents, note="The power of n, seed by seed.")


def _ratios(cells: pd.DataFrame, models: tuple[str, str], column: str) -> pd.Series[float]:
    """Logarithms of a column's ratio between two models at the largest n, by seed."""
    largest = cells[cells["n"] == cells["n"].max()]
    positive_numbers(largest, column)
    table = largest.pivot(index="seed", columns="model", values=column).astype(float)
    ratios: pd.Series[float] = (np.log(table[models[0]]) - np.log(table[models[1]])).dropna()
    if ratios.empty:
        raise not_run(f"No seed has both {models[0]} and {models[1]} at the largest n.")
    return ratios


def _judge_ratios(
    cells: pd.DataFrame,
    models: tuple[str, str],
    columns: Sequence[str],
    margin: Margin,
    addition: str = "",
) -> Measurement:
    """Judge the ratios of columns between two models at the largest n, all together."""
    level = level_of_each(len(columns))
    ratios = {
        column: (exponentiate(mean_estimate(_ratios(cells, models, column), level)), margin)
        for column in columns
    }
    note = f"{models[0]} over {models[1]} at n = {cells['n'].max()}, geometric means over seeds"
    return judge_estimates(ratios, note=f"{note}{addition}.")


def ratio_of_models(
    cells: pd.DataFrame,
    models: tuple[str, str],
    columns: Sequence[str],
    margin: Margin,
    **fixed: object,
) -> Measurement:
    """Measure the ratios of columns between two models at the largest n, seed by seed."""
    return _judge_ratios(_cells(cells, models, **fixed), models, columns, margin)


def value_at_n(
    cells: pd.DataFrame,
    model: str,
    column: str,
    margin: Margin,
    *,
    fixed: Values,
    smallest: bool = False,
) -> Measurement:
    """Measure a column at the largest n of a sweep, or at the smallest."""
    held = _cells(cells, [model], **fixed)
    n = held["n"].min() if smallest else held["n"].max()
    values = finite_numbers(held[held["n"] == n], column)
    return judge_estimate(mean_estimate(values), margin, note=f"At n = {n}.")


def optimisers(cells: pd.DataFrame) -> Measurement:
    """Measure gradient descent at the paper's scale over Adam at its own, seed by seed."""
    scales = {"gd": "paper", "adam": "root"}
    each = [
        _cells(cells, ["softmax"], optimiser=optimiser, output_scale=scale)
        for optimiser, scale in scales.items()
    ]
    if each[0]["n"].max() != each[1]["n"].max():
        raise not_run("It takes one largest n of both optimisers.")
    pooled = pd.concat(each).assign(model=lambda rows: rows["optimiser"])
    steps = pooled[pooled["n"] == pooled["n"].max()].groupby("model")["best_step"].median()
    words = f"; the best step is {steps['gd']:g} with gd and {steps['adam']:g} with adam (medians)"
    return _judge_ratios(pooled, ("gd", "adam"), WEIGHTINGS, ALIKE, words)


def theorem(cells: pd.DataFrame) -> Measurement:
    """Measure by how many decades Theorem 6.6's requirements and its bound are missed."""
    held = _cells(cells, ["softmax"], **AS_IN_THE_PAPER)
    excess, missing = (
        finite_numbers(held, "bound_over_error"),
        finite_numbers(held, "width_missing"),
    )
    return judge_theorem(
        excess < 0,
        held["seed"],
        requirements=Requirements(
            {
                "decades of hidden units missing": missing,
                "decades by which steps are too large": finite_numbers(held, "step_size_beyond"),
            },
            "there are too few hidden units, or steps are too large",
        ),
        details={"decades of 1/(λ√n) over the error, least": excess.min()},
    )


BETTER = Margin(most=1.0, because="1 is no better")
LEARNS = Margin(most=1.0, because="that of a score of zero")
A_TENTH = Margin(most=0.1, because="a tenth")
NO_COPIES = Margin(most=0.1, because="fresh draws have 0, and a tenth")
COPIES = Margin(least=0.5, because="half the way from fresh draws to copies")

Measure = Callable[[pd.DataFrame], Measurement]


def _claim(
    name: str,
    statement: str,
    holds_where: str,
    measure: Measure,
    figure: str = "score",
    preset: str = MIXTURE,
) -> Claim:
    return Claim(
        name=f"diffusion-{name}",
        source="Cao et al. 2024, Theorem 6.6" + ("" if name == "theorem66" else "; ours"),
        statement=statement,
        holds_where=holds_where,
        measure=measure,
        figure=figure,
        preset=preset,
    )


_BOTH = "both squared score errors, weighted by 1 and by 4 sinh² t, at the largest n:"


def _errors_claim(name: str, statement: str, models: tuple[str, str], margin: Margin) -> Claim:
    """Return a claim on the score errors of two models."""
    words = margin.in_words(f"{_BOTH} the ratio of {models[0]} over {models[1]}")
    return _claim(
        name,
        statement,
        words,
        partial(ratio_of_models, models=models, columns=WEIGHTINGS, margin=margin),
    )


def _sample_claim(name: str, statement: str, model: str, margin: Margin) -> Claim:
    """Return a claim on how near samples lie to training points."""
    number = "what samples have memorised, 0 as fresh draws and 1 as noised copies,"
    return _claim(
        name,
        statement,
        margin.in_words(f"at the smallest n, {number}"),
        partial(
            value_at_n,
            model=model,
            column="memorised",
            margin=margin,
            fixed={"target": "digits"},
            smallest=True,
        ),
        "samples",
        DIGITS,
    )


CLAIMS = (
    *(
        _claim(
            f"falls-{model}",
            f"The score error of a network with {NAMES[model]} falls with n.",
            FALLS.in_words("for both weightings, the power of n in the squared score error"),
            partial(power_of_n, model=model, target="mixture"),
        )
        for model in NAMES
    ),
    *(
        _errors_claim(
            f"constant-{model}",
            f"A fitted {NAMES[model]} network's score is nearer to the true one than that of the "
            "constant denoiser.",
            (model, "constant"),
            BETTER,
        )
        for model in NAMES
    ),
    *(
        _claim(
            f"truth-{model}",
            f"A fitted {NAMES[model]} network has the score up to a tenth of its square.",
            A_TENTH.in_words("the squared score error over the squared score, at the largest n,"),
            partial(
                value_at_n,
                model=model,
                column="score_share",
                margin=A_TENTH,
                fixed={"target": "mixture"},
            ),
        )
        for model in NAMES
    ),
    *(
        _errors_claim(
            f"softmax-{rival}",
            f"Softmax and {NAMES[rival]} networks learn the score alike.",
            ("softmax", rival),
            ALIKE,
        )
        for rival in ("exp", "relu")
    ),
    _errors_claim(
        "posterior",
        "A fitted softmax network's score is nearer to the true one than that of the exact "
        "posterior over the training points.",
        ("softmax", "posterior"),
        BETTER,
    ),
    _claim(
        "samples",
        "Samples drawn with a fitted softmax network are as near to the target as those drawn "
        "with the true score.",
        ALIKE.in_words("the ratio of their sliced Wasserstein distances, at the largest n,"),
        partial(
            ratio_of_models,
            models=("softmax", "true"),
            columns=["sliced_wasserstein"],
            margin=ALIKE,
        ),
        "samples",
    ),
    _claim(
        "gd",
        "Gradient descent at the paper's scale learns the score as well as Adam with outputs over "
        "√m does.",
        ALIKE.in_words("for both weightings, the ratio of squared score errors"),
        optimisers,
        "curves",
        DESCENT,
    ),
    _claim(
        "gd-learns",
        "The score that gradient descent at the paper's scale learns is nearer to the true one "
        "than a score of zero.",
        LEARNS.in_words("the squared score error over the squared score, at the largest n,"),
        partial(
            value_at_n, model="softmax", column="score_share", margin=LEARNS, fixed=AS_IN_THE_PAPER
        ),
        "curves",
        DESCENT,
    ),
    *(
        _claim(
            f"digits-{rival}",
            f"On handwritten digits a fitted softmax network denoises better than {words}.",
            BETTER.in_words("the ratio of ‖F − x(0)‖² on test digits, at the largest n,"),
            partial(
                ratio_of_models,
                models=("softmax", rival),
                columns=["denoising_loss"],
                margin=BETTER,
                target="digits",
            ),
            preset=DIGITS,
        )
        for rival, words in (
            ("constant", "the constant denoiser"),
            ("posterior", "the exact posterior over the training digits"),
        )
    ),
    _claim(
        "digits-falls",
        "On handwritten digits a softmax network's loss on test digits falls with n.",
        FALLS.in_words("the power of n in ‖F − x(0)‖²"),
        partial(power_of_n, model="softmax", target="digits"),
        preset=DIGITS,
    ),
    _sample_claim(
        "copies-posterior",
        "Samples drawn with the exact posterior over few training digits are copies of them.",
        "posterior",
        COPIES,
    ),
    _sample_claim(
        "copies-softmax",
        "Samples drawn with a softmax network lie no nearer to its training digits than fresh "
        "draws do.",
        "softmax",
        NO_COPIES,
    ),
    _claim(
        "theorem66",
        "With m and η as stated, ‖F − E[x(0) | x(t)]‖² is O(1/(λ√n)) and more.",
        "m and η are as stated (C = 10, δ = 0.05), and no cell's error is above 1/(λ√n)",
        theorem,
        "curves",
        DESCENT,
    ),
)

__all__ = ["CLAIMS"]
