"""The claims of figure 2 of Jiang et al. 2024, on digits that stand in for MNIST, or on MNIST.

The paper's data are MNIST with N from 3000 to 8400. It leaves the step size, the widths and the
optimiser open, and gives the regimes no numbers. So all claims are of kind `ours`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pandas as pd

from overfit_cli.claims.cells import Selection, positive_numbers, require_done
from overfit_cli.claims.rules import (
    FALLS_WHERE,
    LEAST_VALUES,
    Margin,
    exponentiate,
    judge_estimates,
)
from overfit_cli.core.claim import Claim, Measurement, not_run
from overfit_cli.stats.intervals import Estimate, level_of_each, mean_estimate
from overfit_cli.studies.benign_vit.images.parameters import BenignVitImagesParameters
from overfit_cli.studies.benign_vit.vit.claims.figure_1 import (
    every_cell_fitted,
    falls_whatever_failed,
)

_AXES = {"n": LEAST_VALUES, "snr": LEAST_VALUES}
GRID = Selection(
    BenignVitImagesParameters,
    alike=[name for name in BenignVitImagesParameters.model_fields if name not in _AXES],
    fewest=_AXES,
    preset="fig2",
)
"""A grid over N and the signal-to-noise ratio, at one value of everything else."""

FITTED = Margin(least=0.5, because="more draws than not", fewest_seeds=6)

HARMFUL = Margin(least=math.log(10), because="the loss of a guess among ten digits", fewest_seeds=5)
BENIGN = Margin(most=0.2, because="figure 1b's cut between the regimes", fewest_seeds=5)

CORNERS: Mapping[str, tuple[Mapping[str, float], Mapping[str, float]]] = {
    "digits": ({"n": 200, "snr": 0.2}, {"n": 1400, "snr": 2.0}),
    "mnist": ({"n": 3000, "snr": 0.2}, {"n": 8400, "snr": 2.0}),
}
"""N and SNR at the two corners of the grid that the transition must lie in: MNIST's the paper's."""


def _judge_fitted(cells: pd.DataFrame) -> Measurement:
    return every_cell_fitted(GRID.of(cells), FITTED, "epochs", "passes")


def _transition(cells: pd.DataFrame) -> Measurement:
    grid = GRID.of(cells)
    least, largest = (grid[["n", "snr"]].agg(end) for end in ("min", "max"))
    first, last = CORNERS[str(grid["source"].iloc[0])]
    if any(least[axis] > first[axis] or largest[axis] < last[axis] for axis in _AXES):
        ranges = " and ".join(f"{axis} from {first[axis]:g} to {last[axis]:g}" for axis in _AXES)
        raise not_run(f"It needs a grid of {ranges} or beyond, as in `overfit sweep fig2`.")
    return judge_estimates(
        {
            "test loss at the least N and ratio": (_typical_loss(grid, least), HARMFUL),
            "test loss at the largest N and ratio": (_typical_loss(grid, largest), BENIGN),
        },
        note=f"N from {least['n']:g} to {largest['n']:g}, SNR from {least['snr']:g} to "
        f"{largest['snr']:g}. Losses differ by factors: means over seeds are of their logarithms.",
    )


def _typical_loss(grid: pd.DataFrame, end: pd.Series[float]) -> Estimate:
    """The geometric mean over seeds of the test loss at a corner of the grid."""
    corner = require_done(grid[(grid["n"] == end["n"]) & (grid["snr"] == end["snr"])])
    return exponentiate(
        mean_estimate(np.log(positive_numbers(corner, "test_loss")), level_of_each(2))
    )


STAND_IN = (
    "scikit-learn's 1797 digits of 8 × 8 pixels, scaled to 20 × 20, in the place of MNIST (MNIST "
    "itself with --data)"
)

SETTING = (
    f"images in a ring of noise of width 4, of {STAND_IN}; two attention layers of four heads and "
    "an MLP with ReLU; the rest of the model and its training is this tool's"
)


def _falls(axis: str, second_axis: str, words: str) -> Claim:
    return Claim(
        name=f"fig2-falls-with-{axis}",
        kind="ours",
        source="Jiang et al. 2024, section 6 and figure 2c",
        statement=f"The test loss falls as {words} grows. The paper says it of MNIST, with N from "
        f"3000 to 8400; here it is asked of {STAND_IN}.",
        hypotheses=SETTING,
        holds_where=FALLS_WHERE,
        measure=lambda cells: falls_whatever_failed(GRID.of(cells), axis, second_axis),
        figure="heatmap",
        preset="fig2",
    )


CLAIMS = (
    Claim(
        name="fig2-fitted",
        kind="ours",
        source="Jiang et al. 2024, section 6",
        statement="The training images are fitted at every N and every signal-to-noise ratio; here "
        f"those of {STAND_IN}.",
        hypotheses=SETTING,
        holds_where=FITTED.in_words("the share of seeds whose cells are all fitted"),
        measure=_judge_fitted,
        preset="fig2",
    ),
    Claim(
        name="fig2-transition",
        kind="ours",
        source="Jiang et al. 2024, section 6 and figure 2c",
        statement="Within the grid lies a transition: at the least N and signal-to-noise ratio the "
        "test loss is that of a guess or more, and at the largest it is below figure 1b's cut; "
        f"here on {STAND_IN}.",
        hypotheses=SETTING,
        holds_where=f"{HARMFUL.in_words('the test loss at the former')}, and "
        f"{BENIGN.in_words('that at the latter')}",
        measure=_transition,
        figure="heatmap",
        preset="fig2",
    ),
    _falls("n", "snr", "N"),
    _falls("snr", "n", "the signal-to-noise ratio"),
)
