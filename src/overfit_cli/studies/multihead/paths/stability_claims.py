"""Claims on leave-one-out copies and the generalisation gap: Theorem 2 and Lemma 3."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import numpy as np
import pandas as pd

from overfit_cli.claims.bounds import OUT_OF_REACH
from overfit_cli.claims.cells import describe_values
from overfit_cli.claims.parts import Margin, Part
from overfit_cli.claims.rules import judge, judge_theorem, mark_by_far
from overfit_cli.core.arrays import varying
from overfit_cli.core.claim import Measurement
from overfit_cli.studies.multihead.claims import numbers
from overfit_cli.studies.multihead.paths.bounds import (
    CONDITIONS,
    THEOREM,
    claim,
    requirements_of,
    select,
)
from overfit_cli.studies.multihead.paths.parameters import MultiheadPathsParameters

WITHIN_BOUND = Margin(most=0.0, because="0 is the bound", fewest_seeds=10)


def _settings_of(cells: pd.DataFrame) -> Iterable[tuple[str, pd.DataFrame]]:
    varied = varying(cells, list(MultiheadPathsParameters.model_fields))
    if not varied:
        yield "all", cells
        return
    for values, group in cells.groupby(varied, dropna=False):
        yield describe_values(dict(zip(varied, values, strict=True))), group


def _expected_gap(cells: pd.DataFrame, column: str) -> Measurement:
    chosen = select(cells, THEOREM)
    gap = numbers(chosen, "test_loss") - numbers(chosen, "train_loss")
    bound = numbers(chosen, column)
    judged, details = chosen, {}
    if column == "theorem2_bound":
        requirements = requirements_of(chosen, "2")
        details = requirements.distances()
        judged = chosen[requirements.judged(gap.isna() | bound.isna())]
        if judged.empty:
            return judge_theorem(gap > bound, chosen["seed"], requirements=requirements)
    excess = (gap - bound)[judged.index]
    groups = list(_settings_of(judged))
    largest = float((gap.abs() / bound)[judged.index].max())
    parts = [
        Part.of(
            excess[group.index].fillna(-np.inf),
            WITHIN_BOUND,
            up_to=excess[group.index].fillna(np.inf),
            called=name,
        )
        for name, group in groups
    ]
    measured = judge(
        parts,
        details={**details, "a cell's gap over its bound, most in size": largest},
        note="The mean over seeds of the gap less its bound.",
    )
    return mark_by_far(measured, -float(np.log10(largest)) if largest > 0 else np.nan)


STABILITY_CLAIMS = (
    claim(
        "paper",
        "theorem2",
        "Theorems 2 and 4",
        "The test loss less the training loss is in expectation at most 4/n E[2 K L̂(θ) + 9 ‖θ − "
        "θ₀‖² / (4 η)].",
        CONDITIONS,
        f"{WITHIN_BOUND.in_words('the mean over seeds of the gap less its bound')}; vacuous where "
        f"all gaps are {OUT_OF_REACH:g} decades below it",
        partial(_expected_gap, column="theorem2_bound"),
        THEOREM,
        "lines",
    ),
    claim(
        "paper",
        "lemma3",
        "Lemma 3",
        "The test loss less the training loss is in expectation at most 2 G times the mean "
        "distance of the leave-one-out copies.",
        "G is β₁ at the largest ‖U_h‖ of the model and its copies",
        f"{WITHIN_BOUND.in_words('the mean over seeds of the gap less its bound, at each H,')}; "
        f"vacuous where all gaps are {OUT_OF_REACH:g} decades below it",
        partial(_expected_gap, column="lemma3_bound"),
        THEOREM,
        "lines",
    ),
)
