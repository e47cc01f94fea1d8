"""The claims of figure 2 of Jiang et al. 2024, on digits that stand in for MNIST, or on MNIST.

The paper's data are MNIST with N from 3000 to 8400. It leaves the step size, the widths and the
optimiser open, and gives the regimes no numbers. So all claims are of kind `ours`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from overfit_cli.claims.cells import Selection
from overfit_cli.claims.python import above, below, geometric_mean, together
from overfit_cli.claims.rules import LEAST_VALUES
from overfit_cli.claims.sentences import Sentence
from overfit_cli.claims.stated import Choose, stated_claim
from overfit_cli.core.claim import Claim, add_remark, not_run
from overfit_cli.studies.benign_vit.images.parameters import BenignVitImagesParameters
from overfit_cli.studies.benign_vit.vit.claims.figure_1 import (
    falling,
    fitted_cells,
    fitted_share,
)

_AXES = {"n": LEAST_VALUES, "snr": LEAST_VALUES}
GRID = Selection(
    BenignVitImagesParameters,
    alike=[name for name in BenignVitImagesParameters.model_fields if name not in _AXES],
    fewest=_AXES,
    preset="fig2",
)
"""A grid over N and the signal-to-noise ratio, at one value of everything else."""

CORNERS: Mapping[str, tuple[Mapping[str, float], Mapping[str, float]]] = {
    "digits": ({"n": 200, "snr": 0.2}, {"n": 1400, "snr": 2.0}),
    "mnist": ({"n": 3000, "snr": 0.2}, {"n": 8400, "snr": 2.0}),
}
"""N and SNR at the two corners of the grid that the transition must lie in: MNIST's the paper's."""


def _with_corners(cells: pd.DataFrame) -> pd.DataFrame:
    grid = GRID.of(cells)
    least, largest = (grid[["n", "snr"]].agg(end) for end in ("min", "max"))
    first, last = CORNERS[str(grid["source"].iloc[0])]
    if any(least[axis] > first[axis] or largest[axis] < last[axis] for axis in _AXES):
        ranges = " and ".join(f"{axis} from {first[axis]:g} to {last[axis]:g}" for axis in _AXES)
        raise not_run(f"It needs a grid of {ranges} or beyond, as in `overfit sweep fig2`.")
    add_remark(
        f"N from {least['n']:g} to {largest['n']:g}, SNR from {least['snr']:g} to "
        f"{largest['snr']:g}. Losses differ by factors: means over seeds are of their logarithms."
    )
    return grid


STAND_IN = (
    "scikit-learn's 1797 digits of 8 × 8 pixels, scaled to 20 × 20, in the place of MNIST (MNIST "
    "itself with --data)"
)

SETTING = (
    f"images in a ring of noise of width 4, of {STAND_IN}; two attention layers of four heads and "
    "an MLP with ReLU; the rest of the model and its training is this tool's"
)


def _claim(
    choose: Choose, stated: Sentence, name: str, source: str, statement: str, **fields: Any
) -> Claim:
    return stated_claim(
        choose,
        BenignVitImagesParameters,
        stated,
        name=f"fig2-{name}",
        kind="ours",
        source=f"Jiang et al. 2024, {source}",
        statement=statement,
        hypotheses=SETTING,
        preset="fig2",
        **fields,
    )


def _falls(axis: str, words: str) -> Claim:
    return _claim(
        GRID.of,
        falling(axis),
        f"falls-with-{axis}",
        "section 6 and figure 2c",
        f"The test loss falls as {words} grows. The paper says it of MNIST, with N from 3000 to "
        f"8400; here it is asked of {STAND_IN}.",
        figure="heatmap",
    )


HARMFUL, BENIGN = math.log(10), 0.2
"""The test loss of a guess among ten digits, and figure 1b's cut between the regimes."""

CLAIMS = (
    _claim(
        lambda cells: fitted_cells(GRID.of(cells)),
        fitted_share(0.5, 6),
        "fitted",
        "section 6",
        "The training images are fitted at every N and every signal-to-noise ratio; here those of "
        f"{STAND_IN}.",
        number="the share of seeds whose cells are all fitted",
        because="more draws than not",
    ),
    _claim(
        _with_corners,
        together(
            above(
                geometric_mean("test_loss[n is smallest, snr is smallest]"), HARMFUL, strictly=False
            ),
            below(
                geometric_mean("test_loss[n is largest, snr is largest]"), BENIGN, strictly=False
            ),
        ),
        "transition",
        "section 6 and figure 2c",
        "Within the grid lies a transition: at the least N and signal-to-noise ratio the test loss "
        "is that of a guess or more, and at the largest it is below figure 1b's cut; here on "
        f"{STAND_IN}.",
        holds_where="the test loss at the former has its whole interval above 2.30259 (the loss of "
        "a guess among ten digits); at least 5 seeds, and that at the latter has its whole "
        "interval below 0.2 (figure 1b's cut between the regimes); at least 5 seeds",
        figure="heatmap",
    ),
    _falls("n", "N"),
    _falls("snr", "the signal-to-noise ratio"),
)
