"""Two kernels side by side: each at its own best step size, seed by seed."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from overfit_cli.analysis.intervals import mean_interval
from overfit_cli.claim import Measurement
from overfit_cli.studies.attention_kernel.step_sizes import RATE, best_rates

LEAST_SEEDS = 3
SPEED = "mean_test_loss"
"""What a best step size is best in, and what "faster" means: the test loss over all steps."""


@dataclass(frozen=True)
class AtBest:
    """A kernel at its best step size.

    Attributes:
        kernel: which.
        rate: the step size at which the mean over seeds of the loss over all steps is lowest.
        rates: all that were tried.
        cells: the cells at that step size, indexed by seed.
    """

    kernel: str
    rate: float
    rates: tuple[float, ...]
    cells: pd.DataFrame

    def column(self, name: str) -> pd.Series[float]:
        """Return a measured column by seed."""
        return self.cells[name].astype(float)

    def in_words(self) -> str:
        """Name the step size, the sweep, and whether the best lies at its edge."""
        edge = ", at the edge of the sweep" if self.rate in (self.rates[0], self.rates[-1]) else ""
        tried = ", ".join(f"{rate:g}" for rate in self.rates)
        return f"{self.kernel} at {self.rate:g} of {tried}{edge if len(self.rates) > 1 else ''}"


def at_best(cells: pd.DataFrame, kernel: str) -> AtBest | None:
    """Return the kernel at its best step size; None where at none all seeds are done."""
    own = cells[cells["kernel"] == kernel]
    if own.empty:
        return None
    rates = tuple(sorted(own["learning_rate"].unique().tolist()))
    best = best_rates(own, [], SPEED)
    if (best["status"] == "failed").any():
        return None
    return AtBest(kernel, float(best[RATE].iloc[0]), rates, best.set_index("seed"))


def pair(
    cells: pd.DataFrame, parameters: list[str], kernels: tuple[str, str]
) -> tuple[AtBest, AtBest] | Measurement:
    """Return both kernels at their best, on the seeds that both have; or why they can't be judged.

    Args:
        cells: one row each.
        parameters: the study's, of which only kernel and learning_rate may vary.
        kernels: the two.
    """
    cells = cells[cells["kernel"].isin(kernels)]
    if cells["kernel"].nunique() < 2:
        return Measurement.without_value(
            "not run", f"It needs cells of kernel={','.join(kernels)}."
        )
    others = [name for name in parameters if name not in ("kernel", "learning_rate")]
    varying = [name for name in others if cells[name].nunique() > 1]
    if varying:
        return Measurement.without_value(
            "not run", f"It needs cells of one value of {', '.join(varying)}."
        )
    first, second = (at_best(cells, kernel) for kernel in kernels)
    if first is None or second is None:
        return Measurement.without_value(
            "inconclusive", "A kernel has no step size at which all seeds are done."
        )
    seeds = first.cells.index.intersection(second.cells.index)
    if len(seeds) < LEAST_SEEDS or min(len(first.rates), len(second.rates)) < 2:
        return Measurement.without_value(
            "inconclusive",
            f"Both kernels have {len(seeds)} seeds and {len(first.rates)} and "
            f"{len(second.rates)} step sizes; at least {LEAST_SEEDS} and 2 are needed, so that the "
            "verdict hangs on no single one.",
        )
    return (
        AtBest(first.kernel, first.rate, first.rates, first.cells.loc[seeds]),
        AtBest(second.kernel, second.rate, second.rates, second.cells.loc[seeds]),
    )


def difference(one: pd.Series[float], other: pd.Series[float]) -> tuple[float, float, float]:
    """Return the mean over seeds of `one` less `other`, both by seed, and its interval."""
    values = one - other
    low, high = mean_interval(values)
    return float(values.mean()), low, high


def same_rate_in_words(cells: pd.DataFrame, kernels: tuple[str, str]) -> str:
    """Say at how many of the shared step sizes the first kernel's loss over all steps is lower."""
    done = cells[cells["status"] == "done"]
    means = done[SPEED].astype(float).groupby([done["learning_rate"], done["kernel"]]).mean()
    table = means.unstack()[list(kernels)].dropna()
    lower = int((table[kernels[0]] < table[kernels[1]]).sum())
    return f"at one step size for both, {kernels[0]} is lower at {lower} of {len(table)}"


def spread(kernel: AtBest, column: str) -> str:
    """Write a column's mean and deviation over seeds: `0.751 ± 0.012`."""
    values = kernel.column(column)
    return f"{values.mean():.3f} ± {values.std():.3f}"
