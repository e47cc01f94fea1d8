"""Claims on the boundaries of a CNN and a Vision Transformer that train on the same samples.

A seed's boundary at N is the signal-to-noise ratio at which its test loss crosses a threshold.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd

from overfit_cli.claims.papers import Claims, on
from overfit_cli.claims.parts import Margin, Part, tolerance_margin
from overfit_cli.claims.rules import judge, judge_estimate
from overfit_cli.core.claim import Measurement, inconclusive, not_run
from overfit_cli.stats.boundaries import crossing_table, crossings, fit_power_law
from overfit_cli.studies.benign_vit.claims.figures import boundary, done_cells
from overfit_cli.studies.benign_vit.cnn_study import BenignCnnParameters
from overfit_cli.studies.benign_vit.theory import FIGURE_1_EXPONENT, FIGURE_1_THRESHOLD

WHOLE = tolerance_margin(0.0, 0.5, "half the way to the next whole power", 10)

FEWER = Margin(least=1.0, because="at a larger ratio it needs more samples", fewest_seeds=6)

OTHER_LOSSES = (0.4, 0.1, 0.05, 0.03)
"""Test losses, beside figure 1b's, at which boundaries are compared; chosen after cells were seen.
All are above ε."""

jiang = Claims("cnn", "Jiang et al. 2024", BenignCnnParameters, figure="boundary")

BOTH = on("cnn-samples", free=("max_steps",))
HYPOTHESES = (
    "orthogonal noise, one noise token a sample and balanced labels; the setting is this tool's, "
    "as the paper shows no CNN, and does not meet items 1, 3, 8 and 10 of Condition 4.1"
)
SECTION = "section 4, on Cao et al. 2022"


def measure_ratios(cells: pd.DataFrame, thresholds: dict[float, str]) -> Measurement:
    """Measure the CNN's ratio at the boundary over the transformer's, for each N and test loss."""
    rows = [
        _log_ratios(done_cells(cells), threshold, name) for threshold, name in thresholds.items()
    ]
    if any(row.empty for row in rows):
        raise not_run("It needs N at which the CNN's boundary is below a ratio of 1.")
    logs = pd.concat(rows)
    if logs.isna().to_numpy().any():
        raise inconclusive("Some seeds have no boundary of one of the models at some N.")
    # The median where the transformer's boundary lies above the grid on some seed.
    return judge(
        [
            Part.of(
                np.exp(row),
                FEWER,
                "median" if np.isinf(row).any() else "geometric mean",
                called=str(name),
            )
            for name, row in logs.iterrows()
        ],
        note="The signal-to-noise ratio at the CNN's boundary over that at the transformer's, or "
        "at least so much where the latter lies below the grid or the former above it.",
    )


def _log_ratios(cells: pd.DataFrame, threshold: float, name: str) -> pd.DataFrame:
    """The logarithm of the CNN's ratio over the transformer's at a threshold, or a lower bound.

    A boundary beyond the grid is put at the grid's end where that makes the ratio smaller. One row
    for each N at which the CNN's boundary is below 1, one column for each seed.
    """
    curves = cells["model"].str.cat(cells["n"].astype(str), sep=" ")
    # Both models together: one scale, and one direction, for all curves.
    table = crossing_table(
        crossings(cells.assign(curve=curves), "snr", "curve", "test_loss", threshold), "curve"
    )
    sizes = np.sort(cells["n"].unique())
    of_cnn, of_vit = (
        table.loc[[f"{model} {n}" for n in sizes]].set_axis(sizes) for model in ("cnn", "vit")
    )
    below = of_cnn[of_cnn.median(axis=1) < 0]
    beside = of_vit.loc[below.index]
    least, greatest = np.log(cells["snr"].min()), np.log(cells["snr"].max())
    unknown = np.isneginf(below) | (np.isposinf(below) & np.isposinf(beside))
    logs = below.clip(upper=greatest) - beside.clip(lower=least)
    return logs.mask(unknown).rename(lambda n: f"N = {n:g}{name}")


_RATIO = "the CNN's ratio over the transformer's, at every N with the former below 1"

jiang.ours(
    "fewer-samples",
    SECTION,
    "Where the signal-to-noise ratio is below 1, a Vision Transformer needs fewer samples for "
    f"a test loss of {FIGURE_1_THRESHOLD:g} than a CNN with the activation ReLU^q.",
    FEWER.in_words(_RATIO),
    on=BOTH,
    measure=partial(measure_ratios, thresholds={FIGURE_1_THRESHOLD: ""}),
    hypotheses=HYPOTHESES,
)
jiang.ours(
    "fewer-samples-any-loss",
    SECTION,
    "It needs fewer samples whatever the test loss is: at "
    f"{', '.join(f'{loss:g}' for loss in OTHER_LOSSES)} too. These losses were chosen after "
    "cells were seen.",
    FEWER.in_words(f"{_RATIO} and every loss"),
    on=BOTH,
    measure=partial(
        measure_ratios, thresholds={loss: f", test loss {loss:g}" for loss in OTHER_LOSSES}
    ),
    hypotheses=HYPOTHESES,
)


def measure_power(cells: pd.DataFrame) -> Measurement:
    """Measure by how much p of N·SNR^p = C differs from q, for the transformer from 2."""
    fit, is_cnn = fit_power_law(boundary(cells), "n"), cells["model"].iloc[0] == "cnn"
    if fit is None:
        raise inconclusive("Fewer than three medians cross the threshold.")
    q, p = float(cells["power"].iloc[0]) if is_cnn else FIGURE_1_EXPONENT, fit.exponent
    return judge_estimate(
        p._replace(value=p.value - q, low=p.low - q, high=p.high - q),
        WHOLE,
        details={"p": p.value, "C": fit.constant.value, "values of N": fit.rows},
        note=f"p less {q:g}, through the median crossings.",
    )


jiang.ours(
    "power",
    SECTION,
    f"The ratio at which the test loss is {FIGURE_1_THRESHOLD:g} falls with N as N·SNR^q = C "
    "where a CNN is trained, and as N·SNR² = C where a Vision Transformer is on the same samples.",
    WHOLE.in_words("p − q, and for the transformer p − 2, for p of N·SNR^p = C"),
    on={"CNN": BOTH.where(model="cnn"), "Vision Transformer": BOTH.where(model="vit")},
    measure=measure_power,
    hypotheses=HYPOTHESES,
)

CLAIMS = tuple(jiang.claims)
