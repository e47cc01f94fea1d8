"""Claims of figure 1 and section 6 of Jiang et al. 2024.

Whether every cell of a grid is fitted, and whether the test loss falls, is judged here for figure 2
too. Cells that failed count at both extremes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd

from overfit_cli.claims.cells import Selection, finite_numbers, is_unknown, require_done
from overfit_cli.claims.parts import Margin, Part, factor_margin, tolerance_margin
from overfit_cli.claims.quantities import LEAST_FOR_POWER
from overfit_cli.claims.rules import judge, judge_estimate
from overfit_cli.claims.stated import joined, stated_claim
from overfit_cli.core.claim import Claim, Measurement, add_remark, inconclusive
from overfit_cli.core.text import plural
from overfit_cli.stats.boundaries import SIDES, crossings, fit_power_law
from overfit_cli.stats.intervals import middle
from overfit_cli.studies.benign_vit.boundary import crossing_products
from overfit_cli.studies.benign_vit.parameters import BenignVitParameters
from overfit_cli.studies.benign_vit.theory import (
    FIGURE_1_CONSTANT,
    FIGURE_1_EXPONENT,
    FIGURE_1_THRESHOLD,
    boundary_product,
)

GRID = Selection(
    BenignVitParameters,
    alike=("labels", "max_steps"),
    fewest={"n": LEAST_FOR_POWER, "snr": LEAST_FOR_POWER},
    preset="fig1",
    balanced=False,
)
"""A grid at section 6's values."""

SMALLEST_N = 5

MOST_FAILED = 0.1

RIVALS = (1.0, 1.5, 2.5, 3.0)
"""Other powers of the signal-to-noise ratio, each with the constant that suits the cells best."""

CONTOUR = factor_margin(
    FIGURE_1_CONSTANT, 1.25, "within a factor of 1.25 of the red curve's 1000", 6
)

SHARE = Margin(least=0.9, because="nine cells of ten", fewest_seeds=6)

BETTER = Margin(least=0.0, because="a better prediction", fewest_seeds=5)

EXPONENT = tolerance_margin(
    FIGURE_1_EXPONENT, 0.25, "half the way to the next power that is a multiple of 1/2", 40
)


def whole_grid(cells: pd.DataFrame, x: str, y: str) -> pd.DataFrame:
    """Return the grid in a refined sweep: the values of `x` with most cells, and complete seeds.

    A refined sweep has many further values of `x`, each with a few cells near the boundary, and
    most of its seeds have no other cells. In a mean over a grid these would count too much.
    """
    values = cells.groupby(x)[y].transform("nunique")
    return complete_seeds(cells[values >= values.max() / 2])


def complete_seeds(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells of the seeds with most cells: those of other seeds may be the easy ones."""
    sizes = cells.groupby("seed")["seed"].transform("size")
    complete: pd.DataFrame = cells[sizes == sizes.max()]
    return complete


def fitted_cells(grid: pd.DataFrame) -> pd.DataFrame:
    """Return the cells with whether each reaches a training loss of ε, as the column `fitted`.

    Seeds that lack cells which others have don't count.
    """
    grid = complete_seeds(grid)
    ended = grid["status"] == "done"
    finite_numbers(grid[ended], "train_loss")
    fitted = ended & (grid["train_loss"] <= grid["epsilon"])
    known = ~is_unknown(grid)
    add_remark(
        f"Of {plural(len(grid), 'cell')} {int((known & ~fitted).sum())} are not fitted; the "
        f"largest training loss is {grid['train_loss'].max():.3g}."
    )
    return grid.assign(fitted=fitted.astype(float), status=grid["status"].mask(known, "done"))


def fitted_share(least: float, seeds: int) -> str:
    """Return that on so large a share of the seeds every cell is fitted."""
    return f"share of seeds with fitted > 0 everywhere >= {least} with at least {seeds} seeds"


def falling(axis: str) -> str:
    """Return that the test loss falls along an axis, in the mean over the grid's lines."""
    return f"mean of test_loss falls along {axis} on average"


def _two_sides(cells: pd.DataFrame) -> pd.DataFrame:
    grid = whole_grid(GRID.of(cells), "snr", "n")
    benign = boundary_product(grid["n"], grid["snr"]) > FIGURE_1_CONSTANT
    if benign.all() or not benign.any():
        raise inconclusive("All cells lie on one side of N·SNR² = 1000.")
    return fitted_cells(grid)


def _contour(cells: pd.DataFrame) -> Measurement:
    crossed = _crossings(cells)
    crossed = crossed[crossed["n"] >= SMALLEST_N]
    known = crossed["side"] != "unknown"
    if not known.any():
        raise inconclusive(f"There is no curve at n ≥ {SMALLEST_N}.")
    products = crossing_products(crossed[known]).reindex(crossed.index)
    products, *ends = products.fillna(FIGURE_1_CONSTANT), *_ends(cells, crossed)
    middles = [values.groupby(crossed["seed"]).agg(middle) for values in (products, *ends)]
    measured = judge(
        [Part.of(middles[1], CONTOUR, "median", up_to=middles[2])],
        details={
            "values of n": crossed["n"].nunique(),
            "curves": len(crossed),
            "curves that never cross": int((crossed["side"].isin(SIDES)).sum()),
            "curves of failed cells": int((~known).sum()),
        },
        note=f"N·SNR² where the test loss crosses {FIGURE_1_THRESHOLD:g}: the median over seeds of "
        f"each seed's median over n ≥ {SMALLEST_N}. Curves that never cross count as beyond the "
        f"grid. {READING}",
    )
    return replace(measured, value=middle(middles[0]))


def _ends(cells: pd.DataFrame, crossed: pd.DataFrame) -> list[pd.Series[float]]:
    """The least and the most that N·SNR² can be at crossings, where they lie beyond the grid."""
    edges = GRID.of(cells).groupby("n")["snr"].agg(["min", "max"]).loc[crossed["n"]]
    least = crossed["crossing"].where(crossed["side"] == "crosses", 0.0)
    least = least.mask(crossed["side"] == "above", edges["max"].to_numpy())
    largest = crossed["crossing"].where(crossed["side"] == "crosses", np.inf)
    largest = largest.mask(crossed["side"] == "below", edges["min"].to_numpy())
    return [crossed["n"] * end**FIGURE_1_EXPONENT for end in (least, largest)]


def _predicted(cells: pd.DataFrame) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    grid = whole_grid(GRID.of(cells), "snr", "n")
    finite_numbers(require_done(grid, MOST_FAILED), "test_loss")
    paper = np.asarray(boundary_product(grid["n"], grid["snr"]) > FIGURE_1_CONSTANT)
    if paper.all() or not paper.any():
        raise inconclusive("All cells lie on one side of the predicted curve.")
    return grid, paper, (grid["status"] == "done").to_numpy()


def _sides(cells: pd.DataFrame) -> Measurement:
    """Measure the share of a seed's cells on the predicted side: the median over seeds.

    Shares near 1 are skewed, so that a mean's interval is too short at its lower end.
    """
    grid, paper, is_done = _predicted(cells)
    is_right = paper == (grid["test_loss"] < FIGURE_1_THRESHOLD).to_numpy()
    by_seed = pd.DataFrame({"least": is_right & is_done, "most": is_right | ~is_done}).groupby(
        grid["seed"].to_numpy()
    )
    shares = by_seed.mean()
    return judge(
        [Part.of(shares["least"], SHARE, "median", up_to=shares["most"])],
        details={"cells": len(grid), "cells that failed or are absent": int((~is_done).sum())},
        note=f"The share of a seed's cells on the predicted side: the median over seeds. {READING}",
    )


def _lead(cells: pd.DataFrame) -> Measurement:
    """Measure the lead over the best other power; where both say the same it is 0."""
    grid, paper, is_done = _predicted(cells)
    benign = (grid["test_loss"] < FIGURE_1_THRESHOLD).to_numpy()
    cuts = {power: _best_cut(grid, benign, is_done, power) for power in RIVALS}
    best = max(cuts, key=lambda power: float(np.mean((cuts[power] == benign)[is_done])))
    differ = paper != cuts[best]
    leads = np.where(differ, np.where(paper == benign, 1.0, -1.0), 0.0)
    ends = pd.DataFrame(
        {"least": np.where(is_done, leads, -1.0 * differ), "most": np.where(is_done, leads, differ)}
    )
    means = ends.groupby(grid["seed"].to_numpy()).mean()
    return judge(
        [Part.of(means["least"], BETTER, up_to=means["most"], within=(-1.0, 1.0))],
        details={"the best other power": best},
        note="The share of a seed's cells on the side that N·SNR² = 1000 predicts, minus that of "
        "the best other power with the constant that suits these cells best.",
    )


def _best_cut(
    grid: pd.DataFrame, benign: np.ndarray, is_done: np.ndarray, power: float
) -> np.ndarray:
    """Return which cells N · SNR^power > C predicts benign, at the C that suits done cells best."""
    product = grid["n"].to_numpy() * grid["snr"].to_numpy() ** power
    order = np.argsort(product)
    order = order[is_done[order]]
    # With C below the k-th smallest product, the cells from there on are predicted benign.
    right = np.cumsum(np.r_[0, ~benign[order]]) + np.cumsum(np.r_[0, benign[order][::-1]])[::-1]
    cut = int(np.argmax(right))
    constant = product[order[cut]] if cut < len(order) else np.inf
    return np.asarray(product >= constant)


def _exponent(cells: pd.DataFrame) -> Measurement:
    crossed = _crossings(cells)
    fit = fit_power_law(crossed, "n")
    if fit is None:
        raise inconclusive(
            "No power fits: the median curve crosses the threshold at fewer than three values of "
            "n, or at the same ratio whatever n is."
        )
    return judge_estimate(
        fit.exponent,
        EXPONENT,
        details={
            "values of n that are fitted": fit.rows,
            "values of n whose median crosses beyond the grid": fit.left_out,
            "C": fit.constant.value,
            "C, from": fit.constant.low,
            "C, to": fit.constant.high,
        },
        note="p of N·SNR^p = C through the median crossings; a curve that never crosses counts as "
        f"beyond the grid. {READING}",
    )


def _crossings(cells: pd.DataFrame) -> pd.DataFrame:
    grid = GRID.of(cells)
    finite_numbers(require_done(grid, MOST_FAILED), "test_loss")
    return crossings(grid, "snr", "n", "test_loss", FIGURE_1_THRESHOLD)


Judge = Callable[[pd.DataFrame], Measurement]


def _falls(axis: str) -> Claim:
    return stated_claim(
        lambda cells: whole_grid(GRID.of(cells), "snr", "n"),
        BenignVitParameters,
        falling(axis),
        name="fig1-falls-with-n",
        kind="paper",
        source="Jiang et al. 2024, section 6",
        statement="The test loss tends to fall as N grows, and as the signal-to-noise ratio grows.",
        hypotheses=SETTING,
        figure="heatmap",
        preset="fig1",
    )


READING = (
    "The last layer is taken as PyTorch draws it, not divided by 16: its norm is 0.577. At d = 10⁶ "
    "and 5 seeds the crossing is at 5590 with half of that norm, 1120 with it, and 795 with twice."
)

SETTING = (
    "section 6's values: M 16, d 1024, d_h = d_v = 512, σ_p 0.2, σ̃_p 4, η 0.1, ε 0.01, 100 test "
    "samples, and PyTorch's initial weights divided by 16; one reading is this tool's: the last "
    "layer is not divided (divided, the test loss never reaches 0.2)"
)


def _claim(
    name: str, source: str, statement: str, holds_where: str, judge: Judge, figure: str = ""
) -> Claim:
    return Claim(
        name=f"fig1-{name}",
        kind="paper",
        source=f"Jiang et al. 2024, {source}",
        statement=statement,
        hypotheses=SETTING,
        holds_where=holds_where,
        measure=judge,
        figure=figure,
        preset="fig1",
    )


FIGURE_1 = (
    stated_claim(
        _two_sides,
        BenignVitParameters,
        fitted_share(0.8, 17),
        number="the share of seeds whose cells are all fitted",
        because="four draws of five",
        name="fig1-fitted",
        kind="paper",
        source="Jiang et al. 2024, section 6",
        statement="Training reaches ε in every cell, where overfitting is benign and where it is "
        "harmful.",
        hypotheses=SETTING,
        preset="fig1",
    ),
    _claim(
        "contour",
        "figure 1b",
        "The curve N·SNR² = 1000 almost follows the line between test losses above and below 0.2: "
        "the middle of that line lies on it.",
        CONTOUR.in_words(f"the median N·SNR² at the crossing, over N ≥ {SMALLEST_N},"),
        _contour,
        "cutoff",
    ),
    _claim(
        "sides",
        "figure 1b",
        "The curve N·SNR² = 1000 almost follows the line between test losses above and below 0.2: "
        "most cells lie on the side that it predicts.",
        SHARE.in_words("the share of a seed's cells on their side, the median over seeds,"),
        _sides,
        "cutoff",
    ),
    replace(
        _claim(
            "sides-power",
            "figure 1b",
            "N·SNR² = 1000 tells the side of a cell better than N·SNR^p does for p of 1, 1.5, 2.5 "
            "and 3.",
            BETTER.in_words("its lead over the best other power"),
            _lead,
            "cutoff",
        ),
        kind="sharp",
    ),
    _claim(
        "exponent",
        "section 6 and figure 1b",
        "The line between test losses above and below 0.2 is N·SNR² = C: the exponent of the "
        "signal-to-noise ratio is 2.",
        EXPONENT.in_words("the exponent"),
        _exponent,
        "boundary",
    ),
    joined({"N": _falls("n"), "SNR": _falls("snr")}),
)
