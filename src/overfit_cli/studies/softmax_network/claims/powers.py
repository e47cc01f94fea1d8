"""Powers of the width: whether the bounds of Lemmas 5.1 and 5.3 and Theorem F.2 are tight."""

from __future__ import annotations

import pandas as pd

from overfit_cli.claims.papers import Claims, on
from overfit_cli.core.claim import Measurement, UndecidedError, inconclusive
from overfit_cli.studies.softmax_network import NAMES
from overfit_cli.studies.softmax_network.parameters import SoftmaxConvergenceParameters
from overfit_cli.studies.softmax_network.study import COLUMNS

cao = Claims("softmax", "Cao et al. 2024", SoftmaxConvergenceParameters, COLUMNS, "kernel-drift")

TAKEN = (
    "‖F − Y‖² falls by 1 − m η λ/2 at every step, weights move by less than 0.01, and H by at most "
    "λ/2, as the proofs use it; Theorem 4.2's m and η and Lemma C.2's D < R = λ/(2nd e^(10B)) are "
    "not met"
)
SMALL = on("softmax-small-weights")
HALVES = {"to 2048": SMALL.where("m <= 2048"), "from 2048": SMALL.where("m >= 2048")}
HALF = "half the way to the next multiple of 1/2"


def in_the_lemmas(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells of the widths at which all meet what proofs take from Theorem 4.2.

    Of each it must be known. To choose single cells would choose by what is measured.
    """
    names = ["rate_ratio", "movement", "kernel_drift", "lambda_start"]
    numbers = cells[names].astype(float)
    if numbers.isna().any(axis=None):
        raise inconclusive(f"Some cell has no number of {', '.join(names)}.")
    met = (numbers["rate_ratio"] <= 1) & (numbers["movement"] <= 0.01)
    met &= 2 * numbers["kernel_drift"] <= numbers["lambda_start"]
    widths = met.groupby(cells["m"]).all()
    if not met.any():
        raise UndecidedError(Measurement(verdict="vacuous", note="No cell meets its hypotheses."))
    if widths.sum() < 3:
        few = f"All cells meet its hypotheses at {widths.sum()} widths; a power takes three."
        raise inconclusive(few)
    return cells[cells["m"].isin(widths.index[widths])]


def one_over_m(column: str) -> str:
    """Return the sentence that a column falls as 1/m."""
    return f"mean of power of m in {column} is -1 within 0.25 with at least 10 seeds"


for name, column, place, figure, bounded in (
    ("drift", "kernel_drift", "Lemmas 5.1 and 5.3", "kernel-drift", "‖H − H*‖_F"),
    (
        "gap",
        "test_gap",
        "Theorem F.2 with Lemmas 5.1 and 5.3",
        "ntk-gap",
        "the test gap between the network and kernel regression",
    ),
    ("movement", "movement", "Lemma 5.3", "kernel-drift", "max_r ‖w_r − w_r(0)‖"),
):
    cao.sharp(
        f"{name}-tight",
        place,
        f"The bound on {bounded} by 1/m is tight, n = 4 and σ = 0.03: it falls no faster, from m = "
        "512 to 2048 and from 2048 to 8192.",
        one_over_m(column),
        on=HALVES,
        cells=in_the_lemmas,
        because=HALF,
        figure=figure,
        hypotheses=TAKEN,
    )
cao.sharp(
    "theorem-f2-tight",
    "Theorem F.2",
    "The worst test gap over the kernel's change does not fall with the width, n = 4 and σ = 0.03, "
    "from m = 512 to 2048 and from 2048 to 8192.",
    "mean of power of m in test_gap_most / kernel_drift is 0 within 0.1 with at least 10 seeds",
    on=HALVES,
    cells=in_the_lemmas,
    because="a tenth",
    figure="ntk-gap",
    hypotheses=TAKEN,
)

WORDS = {
    "drift": ("kernel_drift", "Lemma 5.1", "kernel-drift", "‖H − H*‖_F falls as 1/m"),
    "gap": ("test_gap", "Theorem F.2", "ntk-gap", "‖F − F_ntk‖ at test inputs falls as 1/m"),
}
for kind, name, way, activations in (
    ("drift", "symmetric", "symmetric", ("softmax", "exp")),
    ("drift", "relu-symmetric", "symmetric", ("relu",)),
    ("gap", "symmetric", "symmetric", ("softmax", "exp")),
    ("gap", "relu-symmetric", "symmetric", ("relu",)),
    ("drift", "independent", "independent", ("softmax", "exp", "relu")),
):
    column, place, figure, falls = WORDS[kind]
    networks = [NAMES[activation] for activation in activations]
    cao.ours(
        f"{kind}-{name}",
        place,
        f"{', '.join(networks)}, {way} initialisation, σ = 1: {falls}.",
        one_over_m(column),
        on={
            NAMES[each]: on("softmax-drift", activation=each, initialisation=way)
            for each in activations
        },
        because=HALF,
        figure=figure,
    )
