"""Claims of figure 1 and section 6 of Jiang et al. 2024.

Whether every cell of a grid is fitted is judged here for figure 2 too.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from overfit_cli.claims.cells import (
    Selection,
    complete_seeds,
    finite_numbers,
    require_done,
    require_trained,
    whole_grid,
)
from overfit_cli.claims.rules import (
    FALLS_WHERE,
    LEAST_VALUES,
    Margin,
    factor_margin,
    falls,
    judge_estimate,
    judge_estimates,
    share_of_seeds,
    tolerance_margin,
)
from overfit_cli.core.claim import Claim, Measurement, inconclusive
from overfit_cli.stats.boundaries import crossing_products, fit_power_law
from overfit_cli.stats.crossings import crossings
from overfit_cli.stats.intervals import level_of_each, mean_estimate, median_estimate, middle
from overfit_cli.studies.benign_vit.vit.parameters import BenignVitParameters
from overfit_cli.studies.benign_vit.vit.theory import (
    FIGURE_1_CONSTANT,
    FIGURE_1_EXPONENT,
    FIGURE_1_THRESHOLD,
    boundary_product,
)

GRID = Selection(
    BenignVitParameters,
    alike=("labels", "max_steps"),
    fewest={"n": LEAST_VALUES, "snr": LEAST_VALUES},
    preset="fig1",
    balanced=False,
)
"""A grid at section 6's values."""

SMALLEST_N = 5

MOST_FAILED = 0.1

RIVALS = (1.0, 3.0)
"""Other powers of the signal-to-noise ratio, each with the constant that suits the cells best."""

FITTED = Margin(least=0.8, because="four draws of five", fewest_seeds=17)

CONTOUR = factor_margin(
    FIGURE_1_CONSTANT, 1.25, "within a factor of 1.25 of the red curve's 1000", 6
)

SHARE = Margin(least=0.9, because="nine cells of ten", fewest_seeds=5)

BETTER = Margin(least=0.0, because="a better prediction", fewest_seeds=5)

EXPONENT = tolerance_margin(
    FIGURE_1_EXPONENT, 0.25, "half the way to the next power that is a multiple of 1/2", 40
)


def every_cell_fitted(
    grid: pd.DataFrame, margin: Margin, counted: str, in_words: str = "steps"
) -> Measurement:
    """Measure on which share of the seeds every cell reaches a training loss of ε.

    Seeds that lack cells which others have don't count. `counted` is the column of how long it
    took, and `in_words` what that counts.
    """
    grid = require_trained(complete_seeds(grid))
    ended = grid["status"] == "done"
    finite_numbers(grid[ended], "train_loss")
    fitted = ended & (grid["train_loss"] <= grid["epsilon"])
    took = grid.loc[fitted, counted]
    return judge_estimate(
        share_of_seeds(fitted, grid["seed"]),
        margin,
        details={
            "cells": len(grid),
            "cells that aren't fitted": int((~fitted).sum()),
            "largest training loss": float(grid["train_loss"].max()),
            f"fewest {in_words}": float(took.min()),
            f"most {in_words}": float(took.max()),
        },
        note="The share of seeds on which every cell is fitted.",
    )


def _grid(cells: pd.DataFrame) -> pd.DataFrame:
    """The cells of a whole grid that are done, if few failed."""
    return require_done(whole_grid(GRID.of(cells), "snr", "n"), MOST_FAILED)


def _judge_fitted(cells: pd.DataFrame) -> Measurement:
    grid = whole_grid(GRID.of(cells), "snr", "n")
    benign = boundary_product(grid["n"], grid["snr"]) > FIGURE_1_CONSTANT
    if benign.all() or not benign.any():
        raise inconclusive("All cells lie on one side of N·SNR² = 1000.")
    return every_cell_fitted(grid, FITTED, "steps")


def _contour(cells: pd.DataFrame) -> Measurement:
    crossed = _crossings(cells)
    crossed = crossed[(crossed["n"] >= SMALLEST_N) & (crossed["side"] != "unknown")]
    if crossed.empty:
        raise inconclusive(f"There is no curve at n ≥ {SMALLEST_N}.")
    products, *ends = crossing_products(crossed, "n", FIGURE_1_EXPONENT), *_ends(cells, crossed)
    middles = [values.groupby(crossed["seed"]).agg(middle) for values in (products, *ends)]
    of_products, of_least, of_most = map(median_estimate, middles)
    return judge_estimate(
        of_products._replace(low=of_least.low, high=of_most.high),
        CONTOUR,
        details={
            "values of n": crossed["n"].nunique(),
            "curves": len(crossed),
            "curves that never cross": int((crossed["side"] != "crosses").sum()),
        },
        note=f"N·SNR² where the test loss crosses {FIGURE_1_THRESHOLD:g}: the median over seeds of "
        f"each seed's median over n ≥ {SMALLEST_N}. Curves that never cross count as beyond the "
        "grid.",
    )


def _ends(cells: pd.DataFrame, crossed: pd.DataFrame) -> list[pd.Series[float]]:
    """The least and the most that N·SNR² can be at crossings, where they lie beyond the grid."""
    edges = GRID.of(cells).groupby("n")["snr"].agg(["min", "max"]).loc[crossed["n"]]
    least = crossed["crossing"].where(crossed["side"] == "crosses", 0.0)
    least = least.mask(crossed["side"] == "above", edges["max"].to_numpy())
    largest = crossed["crossing"].where(crossed["side"] == "crosses", np.inf)
    largest = largest.mask(crossed["side"] == "below", edges["min"].to_numpy())
    return [crossed["n"] * end**FIGURE_1_EXPONENT for end in (least, largest)]


def _sides(cells: pd.DataFrame) -> Measurement:
    grid = whole_grid(GRID.of(cells), "snr", "n")
    finite_numbers(require_done(grid, MOST_FAILED), "test_loss")
    is_done = (grid["status"] == "done").to_numpy()
    benign = (grid["test_loss"] < FIGURE_1_THRESHOLD).to_numpy()
    paper = boundary_product(grid["n"], grid["snr"]) > FIGURE_1_CONSTANT
    if paper.all() or not paper.any():
        raise inconclusive("All cells lie on one side of the predicted curve.")
    # A cell that failed might have been on either side: it counts against the claim.
    right = np.asarray(paper == benign) & is_done
    rival = max((_best_cut(grid, benign, power) | ~is_done for power in RIVALS), key=np.mean)
    by_seed = pd.DataFrame({"paper": right, "rival": rival}).groupby(grid["seed"].to_numpy())
    shares = by_seed.mean()
    level = level_of_each(2)
    return judge_estimates(
        {
            "share of cells on the predicted side": (
                mean_estimate(shares["paper"], level, within=(0.0, 1.0)),
                SHARE,
            ),
            "lead over the best other power": (
                mean_estimate(shares["paper"] - shares["rival"], level),
                BETTER,
            ),
        },
        note="Shares are per seed; failed cells count as misses. The other power is the "
        "better of N·SNR and N·SNR³, with the constant that suits these cells best.",
    )


def _best_cut(grid: pd.DataFrame, benign: np.ndarray, power: float) -> np.ndarray:
    """Return which cells lie on the side that N · SNR^power > C predicts, at the best C."""
    product = grid["n"].to_numpy() * grid["snr"].to_numpy() ** power
    order = np.argsort(product)
    # With C below the k-th smallest product, the cells from there on are predicted benign.
    right = np.cumsum(np.r_[0, ~benign[order]]) + np.cumsum(np.r_[0, benign[order][::-1]])[::-1]
    cut = int(np.argmax(right))
    predicted = np.zeros(len(grid), dtype=bool)
    predicted[order[cut:]] = True
    return np.asarray(predicted == benign)


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
        "beyond the grid.",
    )


def _crossings(cells: pd.DataFrame) -> pd.DataFrame:
    grid = GRID.of(cells)
    finite_numbers(require_done(grid, MOST_FAILED), "test_loss")
    return crossings(grid, "snr", "n", "test_loss", FIGURE_1_THRESHOLD)


def _falls(axis: str, second_axis: str, words: str) -> Claim:
    return Claim(
        name=f"fig1-falls-with-{axis}",
        source="Jiang et al. 2024, section 6",
        statement=f"The test loss falls as {words} grows.",
        holds_where=FALLS_WHERE,
        measure=lambda cells: falls(_grid(cells), "test_loss", axis, second_axis),
        figure="heatmap",
        preset="fig1",
    )


FIGURE_1 = (
    Claim(
        name="fig1-fitted",
        source="Jiang et al. 2024, section 6 and Theorems 4.1.1 and 4.2.1",
        statement="Every cell is fitted to ε, where overfitting is benign and where it is harmful.",
        holds_where=FITTED.in_words("the share of seeds whose cells are all fitted"),
        measure=_judge_fitted,
        preset="fig1",
    ),
    Claim(
        name="fig1-contour",
        source="Jiang et al. 2024, figure 1b",
        statement="The middle of the contour of test loss 0.2 lies on N·SNR² = 1000.",
        holds_where=CONTOUR.in_words(f"the median N·SNR² at the crossing, over N ≥ {SMALLEST_N},"),
        measure=_contour,
        figure="cutoff",
        preset="fig1",
    ),
    Claim(
        name="fig1-sides",
        source="Jiang et al. 2024, figure 1b",
        statement="The test loss is below 0.2 where N·SNR² is above 1000, and above elsewhere; "
        "neither N·SNR nor N·SNR³ tells that as well.",
        holds_where=f"{SHARE.in_words('the share of cells on their side')}; and "
        f"{BETTER.in_words('its lead over the share by N·SNR or N·SNR³')}",
        measure=_sides,
        figure="cutoff",
        preset="fig1",
    ),
    Claim(
        name="fig1-exponent",
        source="Jiang et al. 2024, Theorems 4.1 and 4.2",
        statement="The boundary is N·SNR² = C: the exponent of the signal-to-noise ratio is 2.",
        holds_where=EXPONENT.in_words("the exponent"),
        measure=_exponent,
        figure="boundary",
        preset="fig1",
    ),
    _falls("n", "snr", "N"),
    _falls("snr", "n", "the signal-to-noise ratio"),
)
