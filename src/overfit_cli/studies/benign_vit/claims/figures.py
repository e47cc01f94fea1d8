"""Claims on figures 1 to 4, section 6 and appendix A (Jiang et al. 2024).

Those on figure 2 are judged on digits that stand in for MNIST, or on MNIST: with N from 3000 to
8400 in the paper, which leaves the step size, the widths and the optimiser open, and gives the
regimes no numbers. So they are of kind `ours`.
"""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from overfit_cli.claims.cells import ABSENT, finite_numbers, is_unknown, require_done
from overfit_cli.claims.papers import Claims, on
from overfit_cli.claims.parts import Margin, tolerance_margin
from overfit_cli.claims.quantities import LEAST_FOR_POWER
from overfit_cli.claims.rules import judge_estimate
from overfit_cli.core.claim import Measurement, add_remark, inconclusive, not_run
from overfit_cli.core.text import plural
from overfit_cli.stats.boundaries import crossings, fit_power_law
from overfit_cli.stats.intervals import middle
from overfit_cli.studies.benign_vit.images_study import BenignVitImagesParameters
from overfit_cli.studies.benign_vit.parameters import BenignVitParameters
from overfit_cli.studies.benign_vit.stages import outgrown
from overfit_cli.studies.benign_vit.theory import FIGURE_1_CONSTANT, FIGURE_1_THRESHOLD

jiang = Claims("", "Jiang et al. 2024", BenignVitParameters, figure="cutoff")

SETTING = (
    "section 6's values: M 16, d 1024, d_h = d_v = 512, σ_p 0.2, σ̃_p 4, η 0.1, ε 0.01, 100 test "
    "samples, and PyTorch's initial weights divided by 16; one reading is this tool's: the last "
    "layer is not divided (divided, the test loss never reaches 0.2; at d = 10⁶ and 5 seeds the "
    "crossing is at 5590 with half of its norm of 0.577, at 1120 with it, and at 795 with twice)"
)
FIG1: dict[str, Any] = {
    "on": on("fig1", alike=("labels", "max_steps")),
    "hypotheses": SETTING,
}
SMALLEST_N = 5
FALLS = "mean of rank correlation of {} in test_loss < -0.5 on average"
RIVALS = (1.0, 1.5, 2.5, 3.0)
"""Other powers of the signal-to-noise ratio."""


def coarse_grid(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells of a grid without what refinement added, absent ones of its seeds too.

    A refined sweep has many further ratios, each with a few cells near the boundary, and most of
    its seeds have no other cells. In a mean over a grid these would count too much: seeds with less
    than half of the grid are left out.
    """
    there = present_cells(cells)
    values = there.groupby("snr")["n"].transform("nunique")
    grid = cells[cells["snr"].isin(there.loc[values >= values.max() / 2, "snr"])]
    share = (grid["reason"] != ABSENT).groupby(grid["seed"]).transform("mean")
    of_grid: pd.DataFrame = grid[share >= 1 / 2]
    return of_grid


def present_cells(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells that are there, of enough values along both axes."""
    there: pd.DataFrame = cells[cells["reason"] != ABSENT]
    _require_axes(there)
    return there


def _require_axes(cells: pd.DataFrame) -> None:
    for axis in ("n", "snr"):
        if cells[axis].nunique() < LEAST_FOR_POWER:
            raise not_run(f"It needs {LEAST_FOR_POWER} values of {axis}.")


def fitted_cells(grid: pd.DataFrame) -> pd.DataFrame:
    """Return the cells with whether each reaches a training loss of ε; unknown of lost ones."""
    _require_axes(grid)
    ended = grid["status"] == "done"
    finite_numbers(grid[ended], "train_loss")
    fitted = (ended & (grid["train_loss"] <= grid["epsilon"])).astype(float)
    return grid.assign(fitted=fitted, status=grid["status"].where(is_unknown(grid), "done"))


def two_sides(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the grid with whether each cell is fitted, and on the side that figure 1b predicts.

    A cell that failed may lie on either side: `never`, `always`.
    """
    grid = coarse_grid(cells)
    predicted = grid["n"] * grid["snr"] ** 2 > FIGURE_1_CONSTANT
    if predicted.all() or not predicted.any():
        raise inconclusive("All cells lie on one side of N·SNR² = 1000.")
    known = (grid["status"] == "done") & grid["test_loss"].notna()
    benign = (grid["test_loss"] < FIGURE_1_THRESHOLD).where(known)
    right = (predicted == benign).where(benign.notna()).astype(float)
    return fitted_cells(grid).assign(benign=benign, right=right, never=0.0, always=1.0)


def leads(cells: pd.DataFrame) -> pd.DataFrame:
    """Return by how much N·SNR² = 1000 is right where the best N·SNR^p = C is not.

    p is one of `RIVALS`, and C the constant that suits the cells best.
    """
    grid = two_sides(cells)
    done = grid["benign"].notna()
    cuts = {p: _best_cut(grid[done], grid["n"] * grid["snr"] ** p) for p in RIVALS}
    power = max(cuts, key=lambda p: float((cuts[p] == grid["benign"])[done].mean()))
    add_remark(f"The best other power is {power:g}.")
    best = cuts[power]
    other = (best == grid["benign"]).where(done).astype(float)
    differ = (best != (grid["n"] * grid["snr"] ** 2 > FIGURE_1_CONSTANT)).astype(float)
    return grid.assign(lead=grid["right"] - other, never=-differ, always=differ)


def _best_cut(done: pd.DataFrame, products: pd.Series[float]) -> pd.Series[bool]:
    """Which products lie above the constant that puts most cells on their side."""
    order = np.argsort(products[done.index].to_numpy())
    benign = done["benign"].to_numpy(dtype=bool)[order]
    # With C below the k-th smallest product, the cells from there on are predicted benign.
    right = np.cumsum(np.r_[0, ~benign]) + np.cumsum(np.r_[0, benign[::-1]])[::-1]
    ordered = np.append(products[done.index].to_numpy()[order], np.inf)
    above: pd.Series[bool] = products >= ordered[np.argmax(right)]
    return above


def done_cells(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells that are done, if nearly all are."""
    done = require_done(present_cells(cells), 0.1)
    finite_numbers(done, "test_loss")
    return done


def boundary(cells: pd.DataFrame, threshold: float = FIGURE_1_THRESHOLD) -> pd.DataFrame:
    """Return where the test loss of each N and seed crosses a threshold along the ratio."""
    return crossings(done_cells(cells), "snr", "n", "test_loss", threshold)


def with_table(cells: pd.DataFrame, table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of a table, with the parameters of the first cell for those that it lacks."""
    first = cells.iloc[:1].drop(columns=[*table], errors="ignore").assign(status="done", reason="")
    return table.merge(first, how="cross")


def products_at_crossing(cells: pd.DataFrame) -> pd.DataFrame:
    """Return N·SNR² where the test loss crosses figure 1b's cut: a seed's median over N ≥ 5.

    A curve that never crosses has its crossing beyond the grid: between its edge and infinity, or
    between 0 and its edge.
    """
    crossed = boundary(cells).query(f"n >= {SMALLEST_N}")
    if not (crossed["side"] != "unknown").any():
        raise inconclusive(f"There is no curve at n ≥ {SMALLEST_N}.")
    edges = cells.groupby("n")["snr"].agg(["min", "max"]).loc[crossed["n"]]
    ratios = {
        "least": crossed["crossing"].fillna(0.0).clip(0.0, edges["max"].to_numpy()),
        "most": crossed["crossing"].fillna(np.inf).clip(lower=edges["min"].to_numpy()),
    }
    products = {name: crossed["n"] * ratio**2 for name, ratio in ratios.items()}
    table = crossed[["seed"]].assign(**products).groupby("seed").agg(middle).reset_index()
    known = table["least"] == table["most"]
    return with_table(cells, table.assign(product=table["least"].where(known)))


STRAIGHT = 1.25**0.5 - 1
"""How far a median crossing may lie from the fitted power, as a share: 1.25 in N·SNR²."""


def judge_exponent(cells: pd.DataFrame, margin: Margin) -> Measurement:
    """Judge p of N·SNR^p = C through the median crossings.

    A curve that never crosses counts as beyond the grid. Where a median lies further from the
    fitted curve than figure 1b's line may lie from its own, in the ratio, it is no power. Numbers
    that the grid lacks may be any: those that tilt the boundary either way lead to one verdict.
    """
    done, grid = done_cells(cells), coarse_grid(cells)
    measured = _exponent(done, margin)
    if len(lost := grid[grid["status"] != "done"]):
        ends = done["test_loss"].min(), done["test_loss"].max()
        is_large = lost["n"] > grid["n"].median()
        for way in (is_large, ~is_large):
            filled = lost.assign(status="done", test_loss=np.where(way, *ends))
            if _exponent(pd.concat([done, filled]), margin).verdict != measured.verdict:
                raise inconclusive(f"{plural(len(lost), 'cell')} failed or are absent.")
    return measured


def _exponent(cells: pd.DataFrame, margin: Margin) -> Measurement:
    fit = fit_power_law(boundary(cells), "n")
    if fit is None:
        raise inconclusive(
            "No power fits: the median curve crosses the threshold at fewer than three values of "
            "n, or at the same ratio whatever n is."
        )
    left_out = "values of n whose median crosses beyond the grid"
    details = {"values of n": fit.rows, left_out: fit.left_out, "C": fit.constant.value}
    details["the furthest that a median lies from it"] = fit.residual
    if fit.residual > STRAIGHT:
        raise inconclusive(f"Not a power: a median lies {fit.residual:.0%} from the fitted one.")
    return judge_estimate(fit.exponent, margin, details=details)


EXPONENT = tolerance_margin(
    2.0, 0.25, "half the way to the next power that is a multiple of 1/2", 40
)
"""The margin of an exponent that is 2."""
ABOVE_2 = Margin(least=2.0, fewest_seeds=10)

jiang.paper(
    "fig1-fitted",
    "section 6",
    "Training reaches ε in every cell, where overfitting is benign and where it is harmful: on "
    "four draws of five or more, all of a draw's cells do.",
    "share of seeds with fitted > 0 everywhere >= 0.8 with at least 17 seeds",
    cells=two_sides,
    number="the share of seeds whose cells are all fitted",
    because="four draws of five",
    **FIG1,
)
jiang.paper(
    "fig1-contour",
    "figure 1b",
    "The middle of the line between test losses above and below 0.2, over N ≥ 5, lies on N·SNR² = "
    "1000.",
    "product is 1000 within a factor of 1.25",
    cells=products_at_crossing,
    between={"product": ("least", "most")},
    number="the median over seeds of N·SNR² at the crossing, a seed's median over N ≥ 5,",
    **FIG1,
)
jiang.paper(
    "fig1-sides",
    "figure 1b",
    "The curve N·SNR² = 1000 almost follows the line between test losses above and below 0.2: most "
    "cells lie on the side that it predicts.",
    "right >= 0.9 on average",
    cells=two_sides,
    between={"right": ("never", "always")},
    number="the share of a seed's cells on their side, the median over seeds,",
    because="nine cells of ten",
    **FIG1,
)
jiang.sharp(
    "fig1-sides-power",
    "figure 1b",
    "N·SNR² = 1000 tells the side of a cell better than N·SNR^p = C does for p of 1, 1.5, 2.5 and "
    "3, each with the C that suits the cells best.",
    "mean of lead >= 0 on average",
    cells=leads,
    between={"lead": ("never", "always")},
    number="the share of a seed's cells on the predicted side, less that by the best other power,",
    **FIG1,
)
jiang.paper(
    "fig1-exponent",
    "section 6 and figure 1b",
    "The line between test losses above and below 0.2 is N·SNR² = C: the exponent of the "
    "signal-to-noise ratio is 2, with no median crossing off by 1.25 in N·SNR².",
    EXPONENT.in_words("the exponent"),
    measure=partial(judge_exponent, margin=EXPONENT),
    **{**FIG1, "figure": "boundary"},
)
jiang.ours(
    "fig1-balanced-exponent",
    "figure 1b, with labels that the paper does not have",
    "With as many samples of each label as can be the exponent is above 2.",
    ABOVE_2.in_words("the exponent"),
    measure=partial(judge_exponent, margin=ABOVE_2),
    on=on("fig1-balanced", alike=("max_steps",)),
    hypotheses=f"{SETTING}; asked after other seeds were seen",
    figure="boundary",
)
jiang.paper(
    "fig1-falls-with-n",
    "section 6",
    "The test loss tends to fall as N grows, on average over the ratios, and as the "
    "signal-to-noise ratio grows, on average over N.",
    {"N": FALLS.format("n"), "SNR": FALLS.format("snr")},
    cells=coarse_grid,
    because="our reading of a tendency",
    **{**FIG1, "figure": "heatmap"},
)

APPENDIX_A = (
    "appendix A's values: M 4, d 2048, d_h 1024, d_v 256, σ_p 0.05, σ̃_p 1, {}; others are section "
    "6's"
)
for regime, number, point, token, other in (
    ("benign", 3, "n 16, ‖μ‖ 25", "signal", "noise"),
    ("harmful", 4, "n 10, ‖μ‖ 15", "noise", "signal"),
):
    values = {"signal": ("value_plus", "value_minus"), "noise": ("value_noise",)}
    for name, statement, pairs, sign in (
        (
            "products",
            f"the products ⟨q, k⟩ with the key of the {token} grow faster than those with that of "
            f"the {other}, whichever of the two has the query",
            [(f"product_{query}_{token}", f"product_{query}_{other}") for query in values],
            "",
        ),
        (
            "value-growth",
            f"the value x W_V w_O of the {token} grows faster than the {other}'s, with its label's "
            "sign",
            [*itertools.product(values[token], values[other])],
            f" and {token}_lead > 0",
        ),
        (
            "attention-growth",
            f"more and more attention is paid to the {token}, and it grows more than the attention "
            f"to the {other} does",
            [(f"attention_{token}", f"attention_{other}")],
            "",
        ),
    ):
        jiang.paper(
            f"dynamics-{regime}-{name}",
            f"appendix A, figure {number}",
            f"Where overfitting is {regime}, {statement}: on two draws of three or more it has "
            "grown more at the end and at more than half of the logged steps, and never falls by a "
            "tenth of its rise.",
            f"share of seeds with growth > 0 and ahead > 0.5 and fall < 0.1{sign} everywhere "
            ">= 2/3 with at least 10 seeds",
            on=on(f"dynamics-{regime}", alike=("max_steps", "test_samples", "dtype")),
            cells=outgrown(pairs),
            number="the share of seeds on which this is so",
            because="two draws of three",
            hypotheses=APPENDIX_A.format(point),
            figure="dynamics",
            reads="trajectories",
        )


# Figure 2, of the study `benign-vit-images`

STAND_IN = (
    "scikit-learn's 1797 digits of 8 × 8 pixels, scaled to 20 × 20, in the place of MNIST (MNIST "
    "itself with --data)"
)
FIG2: dict[str, Any] = {
    "on": on("fig2", alike=("source", "learning_rate", "test_samples")),
    "hypotheses": f"images in a ring of noise of width 4, of {STAND_IN}; two attention layers of "
    "four heads and an MLP with ReLU; the rest of the model and its training is this tool's",
}

images = Claims("", "Jiang et al. 2024", BenignVitImagesParameters)
images.ours(
    "fig2-fitted",
    "section 6",
    "The training images are fitted at every N and every signal-to-noise ratio; here those of "
    f"{STAND_IN}.",
    "share of seeds with fitted > 0 everywhere >= 0.5 with at least 6 seeds",
    cells=fitted_cells,
    number="the share of seeds whose cells are all fitted",
    because="more draws than not",
    **FIG2,
)
images.ours(
    "fig2-falls-with-n",
    "section 6 and figure 2c",
    "The test loss falls as N grows, and as the signal-to-noise ratio grows, each on average over "
    "the other. The paper says it of "
    f"MNIST, with N from 3000 to 8400; here it is asked of {STAND_IN}.",
    {"N": FALLS.format("n"), "SNR": FALLS.format("snr")},
    figure="heatmap",
    **FIG2,
)
IMAGES = tuple(images.claims)
