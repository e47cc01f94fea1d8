"""Claims of Cao et al. 2024, section 6, on estimated scores, and ours on the samples.

Measured are powers of n, ratios of two models, and single columns. Ratios are averaged on
logarithms, and shares of the squared score are medians: both have heavy tails. Where regression
with the tangent kernel may diverge, seeds are counted: no mean says what a seed is like there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal

import numpy as np
import pandas as pd

from overfit_cli.claims.cells import (
    Selection,
    Values,
    finite_numbers,
    is_unknown,
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
    share_of_seeds,
    tolerance_margin,
)
from overfit_cli.core.claim import Claim, Kind, Measurement, not_run
from overfit_cli.stats.intervals import Estimate, level_of_each, mean_estimate, median_estimate
from overfit_cli.studies.softmax_network.diffusion.parameters import SoftmaxDiffusionParameters
from overfit_cli.studies.softmax_network.paper import NAMES, Activation

FALLS = Margin(most=0.0, because="0 is no fall")
NO_RISE = Margin(most=0.0, because="0 is a rise half as fast as the fall")
ALIKE = factor_margin(1.0, 2.0, "a factor of two")

MIXTURE, DIGITS, DESCENT = ("softmax-scores", "softmax-scores-digits", "softmax-scores-gd")

WEIGHTINGS = ("score_error", "denoiser_error")
"""Squared errors of the score, weighted by 1 and by 4 sinh² t."""

AS_IN_THE_PAPER = {"optimiser": "gd", "output_scale": "paper"}
_OTHERS = set(SoftmaxDiffusionParameters.model_fields) - {"model", "n"}

End = Literal["all", "largest", "smallest"]
"""The values of n at which a claim is judged."""


def _selected(cells: pd.DataFrame, models: Sequence[str], **fixed: object) -> pd.DataFrame:
    """The cells of some models, failed ones too; those of one model differ in n and the seed."""
    values: Values = {"model": tuple(models), "target": "mixture", **fixed}
    preset = DIGITS if values["target"] == "digits" else MIXTURE
    return Selection(
        SoftmaxDiffusionParameters,
        at=values,
        vary={"n"},
        alike=_OTHERS - set(values),
        includes={"model": tuple(models)},
        preset=preset if "optimiser" not in fixed else DESCENT,
    ).of(cells)


def _cells(
    cells: pd.DataFrame, models: Sequence[str], end: End = "all", **fixed: object
) -> pd.DataFrame:
    """The cells of some models at some n, all of them trained."""
    chosen = _selected(cells, models, **fixed)
    if end != "all":
        n = chosen["n"].max() if end == "largest" else chosen["n"].min()
        chosen = chosen[chosen["n"] == n]
    return require_done(require_trained(chosen))


def power_of_n(
    cells: pd.DataFrame, model: Activation, columns: Sequence[str], rival: str = "", **fixed: object
) -> Measurement:
    """Measure the power of n in columns, and between the last two n, seed by seed.

    Args:
        cells: one row per cell.
        model: the network.
        columns: the measured columns.
        rival: another model, over whose column that of the network is taken.
        **fixed: values of parameters.
    """
    held = _cells(cells, [model, *filter(None, [rival])], "all", **fixed)
    if held["n"].nunique() < 3:
        raise not_run("It takes three n.")
    level = level_of_each(2 * len(columns))
    numbers: dict[str, tuple[Estimate, Margin]] = {}
    for column in columns:
        logs = np.log(positive_numbers(held, column))
        table = held.assign(log=logs).pivot(index="n", columns=["model", "seed"], values="log")
        of_model = table[model] - table[rival] if rival else table[model]
        powers, ends = (
            np.polyfit(np.log(part.index.to_numpy(float)), part.to_numpy(), 1)[0]
            for part in (of_model, of_model.iloc[-2:])
        )
        last = f"{column} from n = {of_model.index[-2]} on, and half of the whole"
        numbers[column] = (mean_estimate(powers, level), FALLS)
        numbers[last] = (mean_estimate(ends + powers / 2, level), NO_RISE)
    return judge_estimates(numbers, note="The power of n, seed by seed.")


def _judge_ratios(
    cells: pd.DataFrame,
    models: tuple[str, str],
    columns: Sequence[str],
    margin: Margin,
    addition: str = "",
) -> Measurement:
    """Judge the ratios of columns between two models at one n, all together."""
    level = level_of_each(len(columns))
    ratios = {}
    for column in columns:
        logs = np.log(positive_numbers(cells, column))
        table = cells.assign(log=logs).pivot(index="seed", columns="model", values="log")
        difference = table[models[0]] - table[models[1]]
        ratios[column] = (exponentiate(mean_estimate(difference, level)), margin)
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
    return _judge_ratios(_cells(cells, models, "largest", **fixed), models, columns, margin)


def value_at_n(
    cells: pd.DataFrame,
    model: str,
    column: str,
    margin: Margin,
    *,
    fixed: Values,
    end: End = "largest",
    average: Literal["median", "mean"] = "median",
) -> Measurement:
    """Measure a column at the largest n of a sweep, or at the smallest."""
    held = _cells(cells, [model], end, **fixed)
    values = finite_numbers(held, column)
    estimate = median_estimate(values) if average == "median" else mean_estimate(values)
    return judge_estimate(estimate, margin, note=f"The {average}, at n = {held['n'].iloc[0]}.")


def optimisers(cells: pd.DataFrame) -> Measurement:
    """Measure gradient descent at the paper's scale over Adam at its own, seed by seed."""
    scales = {"gd": "paper", "adam": "root"}
    each = [
        _cells(cells, ["softmax"], "largest", optimiser=optimiser, output_scale=scale)
        for optimiser, scale in scales.items()
    ]
    if each[0]["n"].max() != each[1]["n"].max():
        raise not_run("It takes one largest n of both optimisers.")
    pooled = pd.concat(each).assign(model=lambda rows: rows["optimiser"])
    steps = pooled.groupby("model")["best_step"].median()
    words = f"; the best step is {steps['gd']:g} with gd and {steps['adam']:g} with adam (medians)"
    return _judge_ratios(pooled, ("gd", "adam"), WEIGHTINGS, ALIKE, words)


def ratio_of_columns(cells: pd.DataFrame, columns: tuple[str, str], margin: Margin) -> Measurement:
    """Measure the ratio of two columns of softmax networks trained as in the paper, at one n."""
    held = _cells(cells, ["softmax"], "largest", **AS_IN_THE_PAPER)
    first, second = (np.log(positive_numbers(held, name)) for name in columns)
    estimate = exponentiate(mean_estimate(first - second))
    details = {name: float(held[name].astype(float).mean()) for name in columns}
    note = f"Geometric mean over seeds, n = {held['n'].iloc[0]}."
    return judge_estimate(estimate, margin, details=details, note=note)


def couples(cells: pd.DataFrame) -> Measurement:
    """Measure on which share of seeds Z₁ is a tenth of the squared error at most, at one n."""
    held = _cells(cells, ["softmax"], "largest", **AS_IN_THE_PAPER)
    coupling, error = (positive_numbers(held, name) for name in ("coupling", "denoiser_error"))
    ratios = coupling / error
    return judge_estimate(
        share_of_seeds(ratios <= MOST_COUPLING, held["seed"]),
        MOST_SEEDS,
        details={"Z₁ over the error, median": float(ratios.median()), "most": float(ratios.max())},
        note=f"The share of seeds, n = {held['n'].iloc[0]}.",
    )


def regression_falls(cells: pd.DataFrame) -> Measurement:
    """Measure on which share of seeds kernel regression's error falls from the least n."""
    held = _cells(cells, ["softmax"], "all", **AS_IN_THE_PAPER)
    errors = held.assign(error=positive_numbers(held, "ntk_error"))
    table = errors.pivot(index="seed", columns="n", values="error")
    if len(table.columns) < 2:
        raise not_run(f"It takes two n, as in `overfit sweep {DESCENT}`.")
    first, last = min(table.columns), max(table.columns)
    ratios = table[last] / table[first]
    seeds = pd.Series(table.index, table.index)
    return judge_estimate(
        share_of_seeds(ratios < 1, seeds),
        MOST_SEEDS,
        details={"ratio of the errors, median": float(ratios.median()), "most": ratios.max()},
        note=f"The share of seeds, n = {last} against {first}.",
    )


def theorem(cells: pd.DataFrame) -> Measurement:
    """Measure by how many decades Theorem 6.6's requirements are missed, and the term 1/(λ√n).

    An error above that term breaks nothing: five other terms of the bound, and the constant of its
    O(·), have no number.
    """
    held = _selected(cells, ["softmax"], **AS_IN_THE_PAPER)
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


BETTER = Margin(most=1.0, because="1 is no better")
LARGER = Margin(least=1.0, because="1 is as large")
LEARNS = Margin(most=1.0, because="that of a score of zero")
A_TENTH = Margin(most=0.1, because="a tenth")
MOST_COUPLING = 0.1
MOST_SEEDS = Margin(
    least=2 / 3, because="as the rule of a theorem without exception", fewest_seeds=10
)
AS_FRESH = tolerance_margin(0.0, 0.1, "fresh draws have 0, and a tenth")
COPIES = Margin(least=0.5, because="half the way from fresh draws to copies")

Measure = Callable[[pd.DataFrame], Measurement]


def _claim(
    name: str,
    statement: str,
    holds_where: str,
    measure: Measure,
    figure: str = "score",
    preset: str = MIXTURE,
    kind: Kind = "ours",
    hypotheses: str = "",
) -> Claim:
    return Claim(
        name=f"diffusion-{name}",
        kind=kind,
        source="Cao et al. 2024, Theorem 6.6"
        if kind == "paper"
        else "after Cao et al. 2024, section 6",
        statement=statement,
        hypotheses=hypotheses,
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
    number = "the mean of what samples have memorised, 0 as fresh draws and 1 as noised copies,"
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
            end="smallest",
            average="mean",
        ),
        "samples",
        DIGITS,
    )


_descent_claim = partial(_claim, figure="curves", preset=DESCENT)

_SHARE = "the median of the squared score error over the squared score, at the largest n,"
_END = "between the last two n that power and half of the whole are below 0: no rise half as fast"

CLAIMS = (
    *(
        _claim(
            f"falls-{model}",
            f"The score error of a network with {NAMES[model]} falls with n, up to the largest n.",
            FALLS.in_words("for both weightings, the power of n in the squared score error")
            + f"; {_END}",
            partial(power_of_n, model=model, columns=WEIGHTINGS),
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
            f"On the median draw a fitted {NAMES[model]} network has the score up to a tenth of "
            "its square.",
            A_TENTH.in_words(_SHARE),
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
    _descent_claim(
        "gd",
        "Gradient descent at the paper's scale learns the score as well as Adam with outputs over "
        "√m does.",
        ALIKE.in_words("for both weightings, the ratio of squared score errors"),
        optimisers,
    ),
    _descent_claim(
        "gd-learns",
        "On the median draw the score that gradient descent at the paper's scale learns is nearer "
        "to the true one than a score of zero.",
        LEARNS.in_words(_SHARE),
        partial(
            value_at_n, model="softmax", column="score_share", margin=LEARNS, fixed=AS_IN_THE_PAPER
        ),
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
        "On handwritten digits a softmax network's loss on test digits falls with n, over that of "
        "the constant denoiser.",
        FALLS.in_words("the power of n in the ratio of ‖F − x(0)‖²") + f"; {_END}",
        partial(
            power_of_n,
            model="softmax",
            columns=["denoising_loss"],
            rival="constant",
            target="digits",
        ),
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
        "Samples drawn with a softmax network lie as near to its training digits as fresh draws "
        "do.",
        "softmax",
        AS_FRESH,
    ),
    _descent_claim(
        "coupling",
        "On two draws of three or more gradient descent on a network parts from regression with "
        "its tangent kernel, Z₁ of Claim G.1, by at most a tenth of its error.",
        MOST_SEEDS.in_words(
            "at the largest n, the share of seeds with Z₁ at most a tenth of the squared error, "
            "both weighted,"
        ),
        couples,
    ),
    _descent_claim(
        "label-noise",
        "Noise in the labels moves the regression by more than early stopping does: the two parts "
        "of its error.",
        LARGER.in_words("at the largest n, the ratio of the two squared distances"),
        partial(ratio_of_columns, columns=("label_noise", "early_stopping"), margin=LARGER),
    ),
    _descent_claim(
        "assumption65",
        "On two draws of three or more the error of kernel regression with the network's steps "
        "falls with n, as Assumption 6.5 has it in the limit.",
        MOST_SEEDS.in_words(
            "the share of seeds with a smaller error at the largest n than at the smallest"
        ),
        regression_falls,
    ),
    _descent_claim(
        "theorem66",
        "The score error, weighted by λ(t), is O(1/(λ√n) + ε(n, T̂) + d A² + d A + √(d A Γ) + Γ).",
        "no cell's error, weighted by 4 sinh² t, is above 1/(λ√n), the one term that has a number; "
        "an error above it is inconclusive",
        theorem,
        kind="paper",
        hypotheses="m and η are as stated, with 1 for the constant of Ω(·), C at 10, the end of C "
        "> 10, and δ = 0.05. Of the assumptions, 6.1 is met but for the tails of the points, 6.3 "
        "and 6.4 are met, and 6.2 isn't where n times the outputs is above (m/2)(d + 1), the "
        "largest rank that H* can have, as from n = 300 on: there λ is 0, and that of infinitely "
        "many units stands in for it. Networks stop early by a validation draw; whether that meets "
        "6.5, and whether R_H is large enough, isn't known",
    ),
)

__all__ = ["CLAIMS"]
