"""The claims of figure 1 and section 6 of Jiang et al. 2024, as measurements."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy import stats

from overfit_cli.analysis.crossings import crossings
from overfit_cli.analysis.intervals import bootstrap_mean
from overfit_cli.analysis.power_law import fit_power_law
from overfit_cli.claim import Claim, Measurement
from overfit_cli.studies.benign_vit import theory
from overfit_cli.studies.benign_vit.parameters import BenignVitParameters

CONTOUR_RANGE = (850.0, 1250.0)
SMALLEST_N = 5
LEAST_SHARE = 0.93
_ANALYSED = ("n", "snr", "max_steps")


def at_paper_values(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells at section 6's values, whatever their N and signal-to-noise ratio."""
    defaults = BenignVitParameters().model_dump()
    fixed = [name for name in defaults if name not in _ANALYSED]
    keep = np.logical_and.reduce([cells[name] == defaults[name] for name in fixed])
    return cells[keep]


def _grid(cells: pd.DataFrame) -> pd.DataFrame | Measurement:
    """The cells that figure 1's claims are about, or why they can't be judged by these."""
    cells = at_paper_values(cells)
    if cells["n"].nunique() < 3 or cells["snr"].nunique() < 3:
        return Measurement.without_value(
            "not run",
            "It needs a grid of at least 3 values of n and 3 of snr at the paper's values of the "
            "other parameters.",
        )
    return cells


def _fitted(cells: pd.DataFrame) -> Measurement:
    grid = _grid(cells)
    if isinstance(grid, Measurement):
        return grid
    fitted = (grid["status"] == "done") & (grid["train_loss"] <= grid["epsilon"])
    unfitted = int((~fitted).sum())
    largest = float(grid["train_loss"].max())
    steps = grid.loc[fitted, "steps"]
    return Measurement(
        "holds" if unfitted == 0 else "fails",
        float(fitted.mean()),
        None,
        None,
        f"{int(fitted.sum())} of {len(grid)} cells fitted, in {steps.min()} to {steps.max()} "
        f"steps; {unfitted} not; the largest training loss is {largest:.5f}.",
    )


def _contour(cells: pd.DataFrame) -> Measurement:
    grid = _grid(cells)
    if isinstance(grid, Measurement):
        return grid
    found = crossings(grid, "snr", "n", "test_loss", theory.FIGURE_1_THRESHOLD)
    found = found[found["n"] >= SMALLEST_N]
    crossed = found[found["side"] == "crosses"]
    rows, never = crossed["n"].nunique(), len(found) - len(crossed)
    if rows < 3:
        return Measurement.without_value(
            "inconclusive",
            f"The test loss crosses {theory.FIGURE_1_THRESHOLD:g} at {rows} values of "
            f"n ≥ {SMALLEST_N}; 3 are needed.",
        )
    products = theory.boundary_product(crossed["n"], crossed["crossing"])
    value = float(np.median(products))
    low, high = (float(np.quantile(products, q)) for q in (0.25, 0.75))
    holds = CONTOUR_RANGE[0] <= value <= CONTOUR_RANGE[1]
    return Measurement(
        "holds" if holds else "fails",
        value,
        low,
        high,
        f"The median of N·SNR² at the crossing is {value:.0f} (quartiles {low:.0f} and {high:.0f}) "
        f"over {rows} values of n ≥ {SMALLEST_N} and {crossed['seed'].nunique()} seeds; {never} of "
        f"{len(found)} curves never cross.",
    )


def _sides(cells: pd.DataFrame) -> Measurement:
    grid = _grid(cells)
    if isinstance(grid, Measurement):
        return grid
    done = grid[grid["status"] == "done"]
    if done.empty:
        return Measurement.without_value("inconclusive", "No cell is done.")
    predicted = theory.boundary_product(done["n"], done["snr"]) > theory.FIGURE_1_CONSTANT
    agrees = predicted == (done["test_loss"] < theory.FIGURE_1_THRESHOLD).to_numpy()
    by_seed = pd.Series(agrees).groupby(done["seed"].to_numpy()).mean()
    share = float(agrees.mean())
    return Measurement(
        "holds" if share >= LEAST_SHARE else "fails",
        share,
        float(by_seed.min()),
        float(by_seed.max()),
        f"{share:.1%} of {len(done)} cells lie on the predicted side ({by_seed.min():.1%} to "
        f"{by_seed.max():.1%} by seed); {len(grid) - len(done)} cells failed and don't count.",
    )


def _exponent(cells: pd.DataFrame) -> Measurement:
    grid = _grid(cells)
    if isinstance(grid, Measurement):
        return grid
    found = crossings(grid, "snr", "n", "test_loss", theory.FIGURE_1_THRESHOLD)
    law = fit_power_law(found, "n")
    if law is None:
        return Measurement.without_value(
            "inconclusive", "The test loss crosses the threshold at fewer than 3 values of n."
        )
    holds = law.exponent_low <= theory.FIGURE_1_EXPONENT <= law.exponent_high
    return Measurement(
        "holds" if holds else "fails",
        law.exponent,
        law.exponent_low,
        law.exponent_high,
        f"N·SNR^p = C with p = {law.exponent:.2f} [{law.exponent_low:.2f}, "
        f"{law.exponent_high:.2f}] and C = {law.constant:.0f} [{law.constant_low:.0f}, "
        f"{law.constant_high:.0f}], over {law.rows} values of n and {law.seeds} seeds.",
    )


def _falls(cells: pd.DataFrame, along: str, across: str) -> Measurement:
    """Whether the test loss falls along an axis: mean rank correlation, with its 95 % interval."""
    grid = _grid(cells)
    if isinstance(grid, Measurement):
        return grid
    done = grid[grid["status"] == "done"]
    mean = done.groupby([across, along])["test_loss"].mean().reset_index()
    correlations = np.array(
        [
            stats.spearmanr(line[along], line["test_loss"]).statistic
            for _, line in mean.groupby(across)
            if len(line) >= 3 and line["test_loss"].nunique() > 1
        ]
    )
    if len(correlations) < 2:
        return Measurement.without_value("inconclusive", f"Fewer than 2 lines along {along}.")
    value = float(correlations.mean())
    low, high = bootstrap_mean(correlations)
    holds = high < 0
    return Measurement(
        "holds" if holds else "fails",
        value,
        low,
        high,
        f"The rank correlation of test loss with {along} is {value:.3f} on the mean of "
        f"{len(correlations)} values of {across} [{low:.3f}, {high:.3f}]; it is "
        f"negative at {int((correlations < 0).sum())} of them, on means of "
        f"{done['seed'].nunique()} seeds.",
    )


CLAIMS = (
    Claim(
        name="fig1-fitted",
        source="Jiang et al. 2024, section 6 and Theorems 4.1.1 and 4.2.1",
        statement="Every cell is fitted to ε, where overfitting is benign and where it is harmful.",
        accepted="all cells reach a training loss of at most ε",
        measure=_fitted,
    ),
    Claim(
        name="fig1-contour",
        source="Jiang et al. 2024, figure 1b",
        statement="The contour of test loss 0.2 follows N·SNR² = 1000.",
        accepted=f"the median N·SNR² at the crossing, over N ≥ {SMALLEST_N}, is from "
        f"{CONTOUR_RANGE[0]:g} to {CONTOUR_RANGE[1]:g}",
        measure=_contour,
    ),
    Claim(
        name="fig1-sides",
        source="Jiang et al. 2024, figure 1b",
        statement="The test loss is below 0.2 where N·SNR² is above 1000, and above elsewhere.",
        accepted=f"at least {LEAST_SHARE:.0%} of the cells do",
        measure=_sides,
    ),
    Claim(
        name="fig1-exponent",
        source="Jiang et al. 2024, Theorems 4.1 and 4.2",
        statement="The boundary is N·SNR² = C: the exponent of the signal-to-noise ratio is 2.",
        accepted="2 lies in the fitted exponent's 95 % bootstrap interval",
        measure=_exponent,
    ),
    Claim(
        name="fig1-falls-with-n",
        source="Jiang et al. 2024, section 6",
        statement="The test loss falls as N grows.",
        accepted="the mean rank correlation's 95 % bootstrap interval is below 0",
        measure=lambda cells: _falls(cells, "n", "snr"),
    ),
    Claim(
        name="fig1-falls-with-snr",
        source="Jiang et al. 2024, section 6",
        statement="The test loss falls as the signal-to-noise ratio grows.",
        accepted="the mean rank correlation's 95 % bootstrap interval is below 0",
        measure=lambda cells: _falls(cells, "snr", "n"),
    ),
)
