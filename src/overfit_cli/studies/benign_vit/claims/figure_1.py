"""The claims of figure 1 and section 6 of Jiang et al. 2024."""

from __future__ import annotations

import numpy as np
import pandas as pd

from overfit_cli.analysis.boundaries import crossing_products
from overfit_cli.analysis.crossings import crossings
from overfit_cli.analysis.power_law import fit_power_law
from overfit_cli.claim import Claim, Measurement, inconclusive, not_run
from overfit_cli.claims.cells import at_defaults, whole_columns
from overfit_cli.claims.monotone import LEAST_VALUES, Judge, decreasing_claims
from overfit_cli.claims.rules import accepted_exponent, exponent_measurement
from overfit_cli.studies.benign_vit.parameters import BenignVitParameters
from overfit_cli.studies.benign_vit.theory.boundaries import exponent_in_words
from overfit_cli.studies.benign_vit.theory.predictions import (
    FIGURE_1_CONSTANT,
    FIGURE_1_EXPONENT,
    FIGURE_1_THRESHOLD,
    boundary_product,
)

CONTOUR_RANGE = (850.0, 1250.0)
SMALLEST_N = 5
LEAST_SHARE = 0.93
MOST_FAILED = 0.1
_ANALYSED = ("n", "snr", "max_steps")
GRID_AXES = {"n": "N", "snr": "the signal-to-noise ratio"}


def at_paper_values(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells at section 6's values, whatever their N and signal-to-noise ratio."""
    return at_defaults(cells, BenignVitParameters, _ANALYSED, {})


def _on_grid(judge: Judge, *, with_failures: bool = False) -> Judge:
    """Judge the cells that figure 1's claims are about; say why not where these can't decide."""

    def measure(cells: pd.DataFrame) -> Measurement:
        grid = whole_columns(at_paper_values(cells), "snr")
        if grid["n"].nunique() < LEAST_VALUES or grid["snr"].nunique() < LEAST_VALUES:
            return not_run(
                f"It needs a grid of at least {LEAST_VALUES} values of n and of snr at the paper's "
                "values of the other parameters."
            )
        failed = int((grid["status"] == "failed").sum())
        if failed > MOST_FAILED * len(grid) and not with_failures:
            return inconclusive(f"{failed} of {len(grid)} cells failed: too many to tell.")
        return judge(grid if with_failures else grid[grid["status"] == "done"])

    return measure


def _fitted(grid: pd.DataFrame) -> Measurement:
    fitted = (grid["status"] == "done") & (grid["train_loss"] <= grid["epsilon"])
    unfitted = int((~fitted).sum())
    largest = float(grid["train_loss"].max())
    steps = grid.loc[fitted, "steps"]
    return Measurement(
        "holds" if unfitted == 0 else "fails",
        f"{int(fitted.sum())} of {len(grid)} cells fitted, in {steps.min()} to {steps.max()} "
        f"steps; {unfitted} not; the largest training loss is {largest:.5f}.",
        float(fitted.mean()),
    )


def _contour(grid: pd.DataFrame) -> Measurement:
    found = crossings(grid, "snr", "n", "test_loss", FIGURE_1_THRESHOLD)
    found = found[(found["n"] >= SMALLEST_N) & (found["side"] != "unknown")]
    crossed, never = found["side"] == "crosses", int((found["side"] != "crosses").sum())
    rows = found.loc[crossed, "n"].nunique()
    products = crossing_products(found, "n", FIGURE_1_EXPONENT)
    low, value, high = products.quantile([0.25, 0.5, 0.75], interpolation="nearest").tolist()
    if rows < LEAST_VALUES or not 0 < low <= high < np.inf:
        return inconclusive(
            f"The test loss crosses {FIGURE_1_THRESHOLD:g} at {rows} values of "
            f"n ≥ {SMALLEST_N}, on {int(crossed.sum())} of {len(found)} curves: too few to tell."
        )
    return Measurement(
        "holds" if CONTOUR_RANGE[0] <= value <= CONTOUR_RANGE[1] else "fails",
        f"The median of N·SNR² at the crossing is {value:.0f} over {rows} values of "
        f"n ≥ {SMALLEST_N} and {found['seed'].nunique()} seeds; {never} of {len(found)} curves "
        "never cross and count as beyond the grid.",
        value,
        low,
        high,
        "quartiles",
    )


def _sides(grid: pd.DataFrame) -> Measurement:
    predicted = boundary_product(grid["n"], grid["snr"]) > FIGURE_1_CONSTANT
    if predicted.all() or not predicted.any():
        return inconclusive("All cells lie on one side of the predicted curve.")
    agrees = predicted == (grid["test_loss"] < FIGURE_1_THRESHOLD).to_numpy()
    by_seed = pd.Series(agrees).groupby(grid["seed"].to_numpy()).mean()
    share = float(agrees.mean())
    return Measurement(
        "holds" if share >= LEAST_SHARE else "fails",
        f"{share:.1%} of {len(grid)} cells lie on the predicted side: {by_seed.min():.1%} at the "
        f"worst of {len(by_seed)} seeds, {by_seed.max():.1%} at the best.",
        share,
        float(by_seed.min()),
        float(by_seed.max()),
        "worst and best seed",
    )


def _exponent(grid: pd.DataFrame) -> Measurement:
    found = crossings(grid, "snr", "n", "test_loss", FIGURE_1_THRESHOLD)
    return exponent_measurement(
        fit_power_law(found, "n"),
        FIGURE_1_EXPONENT,
        lambda fit: (
            f"{exponent_in_words(fit)} and C = {fit.constant:.0f} [{fit.constant_low:.0f}, "
            f"{fit.constant_high:.0f}], over the {fit.rows} of {found['n'].nunique()} values of n "
            f"where all of {fit.seeds} seeds cross."
        ),
    )


FIGURE_1 = (
    Claim(
        name="fig1-fitted",
        source="Jiang et al. 2024, section 6 and Theorems 4.1.1 and 4.2.1",
        statement="Every cell is fitted to ε, where overfitting is benign and where it is harmful.",
        accepted="all cells reach a training loss of at most ε",
        measure=_on_grid(_fitted, with_failures=True),
    ),
    Claim(
        name="fig1-contour",
        source="Jiang et al. 2024, figure 1b",
        statement="The contour of test loss 0.2 follows N·SNR² = 1000.",
        accepted=f"the median N·SNR² at the crossing, over N ≥ {SMALLEST_N}, is from "
        f"{CONTOUR_RANGE[0]:g} to {CONTOUR_RANGE[1]:g}",
        measure=_on_grid(_contour),
    ),
    Claim(
        name="fig1-sides",
        source="Jiang et al. 2024, figure 1b",
        statement="The test loss is below 0.2 where N·SNR² is above 1000, and above elsewhere.",
        accepted=f"at least {LEAST_SHARE:.0%} of the cells do",
        measure=_on_grid(_sides),
    ),
    Claim(
        name="fig1-exponent",
        source="Jiang et al. 2024, Theorems 4.1 and 4.2",
        statement="The boundary is N·SNR² = C: the exponent of the signal-to-noise ratio is 2.",
        accepted=accepted_exponent(FIGURE_1_EXPONENT),
        measure=_on_grid(_exponent),
    ),
    *decreasing_claims("fig1", "Jiang et al. 2024, section 6", "", GRID_AXES, _on_grid),
)
