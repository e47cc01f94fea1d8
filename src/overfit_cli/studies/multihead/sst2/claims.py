"""Claims after figure 6 of Deora et al. 2024: do more heads speed up training, on a stand-in?

The paper fine-tunes roberta-base for five epochs at 5e-6. Here small encoders are trained from
random weights, so that no claim is a sentence of the paper.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd

from overfit_cli.claims.cells import BestSetting, Comparison, check_edge
from overfit_cli.claims.parts import Margin, Part
from overfit_cli.claims.rules import judge
from overfit_cli.claims.stated import joined
from overfit_cli.core.claim import Claim, Measurement, not_run
from overfit_cli.studies.multihead.sst2.parameters import MultiheadSst2Parameters

PRESET = "heads-fig6"

FEWEST_HEADS = 3
"""Numbers of heads that tell a slope from a difference of two."""

ONE_RATE = {"scratch": 1e-3, "pretrained": 5e-6}
"""The step size at which all numbers of heads are compared: the default, and the paper's."""

LOWER = Margin(most=0.0, because="0 is no gain by heads", fewest_seeds=6)
MEANINGS = {
    "mean_train_loss": "training loss averaged over the steps",
    "mean_test_loss": "test loss averaged over the steps",
}


def slope_in_heads(cells: pd.DataFrame, column: str, one_rate: bool) -> Measurement:
    """Measure how a column grows with a doubling of H, each at its best step size or at one."""
    settings = _settings(cells, column, one_rate)
    doublings = np.log2([float(setting.name) for setting in settings])
    centred = doublings - doublings.mean()
    values = pd.concat(
        [setting.column(column) for setting in settings], axis=1
    )  # (seeds, settings)
    slopes = values.to_numpy() @ centred / (centred @ centred)
    details = {
        f"mean, H = {setting.name}": float(setting.column(column).mean()) for setting in settings
    }
    details |= {f"step size, H = {setting.name}": setting.value for setting in settings}
    details["most heads less fewest"] = float((values.iloc[:, -1] - values.iloc[:, 0]).mean())
    # The choice of a step size favours what is as good at many of them.
    tried = max(len(setting.tried) for setting in settings)
    note = f"By how much the {MEANINGS[column]} grows with a doubling of H, seed by seed."
    measured = judge([Part.of(slopes, LOWER)], details=details, note=note, among=tried)
    for fewer in settings[:-1]:
        measured = check_edge(measured, settings[-1], fewer)
    return measured


def _settings(cells: pd.DataFrame, best_in: str, one_rate: bool) -> list[BestSetting]:
    if one_rate:
        cells = cells[cells["learning_rate"] == cells["weights"].map(ONE_RATE)]
    heads = sorted(cells["heads"].unique().tolist())
    if len(heads) < FEWEST_HEADS:
        condition = f" at the step size {ONE_RATE['scratch']:g}" if one_rate else ""
        raise not_run(
            f"It takes {FEWEST_HEADS} numbers of heads{condition}: `overfit sweep {PRESET}`."
        )
    comparison = Comparison("heads", "learning_rate", "step size", best_in)
    fewest = 1 if one_rate else 2
    return comparison.at_best(cells, MultiheadSst2Parameters.model_fields, heads, fewest)


STAND_IN = (
    "on SST-2; in the quick profile encoders of two layers with random first weights stand in for "
    "roberta-base"
)


def _claim(name: str, statement: str, column: str, *, one_rate: bool = False) -> Claim:
    condition = "at one step size" if one_rate else "each H at its best step size"
    number = f"the slope of the {MEANINGS[column]} in doublings of H, {condition},"
    return Claim(
        name=f"sst2-{name}",
        source="Deora et al. 2024, appendix G, figure 6, with another model",
        statement=f"{statement}, {STAND_IN}.",
        holds_where=LOWER.in_words(number),
        measure=partial(slope_in_heads, column=column, one_rate=one_rate),
        figure="curves",
        preset=PRESET,
    )


_FASTER = "More heads speed up the optimisation, each number of heads at its best step size"
_AT_ONE = f"at the step size {ONE_RATE['scratch']:g}, which is this tool's"

CLAIMS = (
    joined(
        {
            "best step size": _claim("faster", _FASTER, "mean_train_loss"),
            "one step size": _claim(
                "faster-one-rate",
                f"More heads speed up the optimisation {_AT_ONE}",
                "mean_train_loss",
                one_rate=True,
            ),
        },
        name="sst2-faster",
        statement=f"{_FASTER} and all {_AT_ONE}, {STAND_IN}.",
        holds_where=LOWER.in_words(
            f"the slope of the {MEANINGS['mean_train_loss']} in doublings of H, each H at its best "
            "step size and all at one,"
        ),
    ),
    _claim(
        "generalises-faster",
        "More heads speed up the generalisation, each number of heads at its best step size",
        "mean_test_loss",
    ),
)
