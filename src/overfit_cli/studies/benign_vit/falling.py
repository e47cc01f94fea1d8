"""Whether the test loss falls along an axis of a grid: rank correlations, line by line."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from overfit_cli.analysis.intervals import bootstrap_mean
from overfit_cli.claim import Claim, Measurement

LEAST_VALUES = 3
LEAST_SEEDS = 3
Judge = Callable[[pd.DataFrame], Measurement]


def falling_claims(
    figure: str, source: str, where: str, on_grid: Callable[[Judge], Judge]
) -> tuple[Claim, Claim]:
    """Return the claims that the test loss falls with N and with the signal-to-noise ratio.

    Args:
        figure: the start of their names, such as `fig1`.
        source: the place in the paper.
        where: the start of their statements, before "the test loss".
        on_grid: lets a judge see the cells that the claims are about.
    """

    def claim(along: str, across: str, words: str) -> Claim:
        statement = f"{where}the test loss falls as {words} grows."
        return Claim(
            name=f"{figure}-falls-with-{along}",
            source=source,
            statement=statement[0].upper() + statement[1:],
            accepted="the mean rank correlation's 95 % bootstrap interval is below 0",
            measure=on_grid(lambda grid: falls(grid, along, across)),
        )

    return claim("n", "snr", "N"), claim("snr", "n", "the signal-to-noise ratio")


def falls(grid: pd.DataFrame, along: str, across: str) -> Measurement:
    """Measure whether the test loss falls along an axis.

    Args:
        grid: cells that are done.
        along: the parameter along which it would fall.
        across: the other parameter of the grid; with a seed it names a line.

    Returns:
        The mean rank correlation over lines and seeds; it holds where its interval is below 0.
    """
    correlations = (
        grid.groupby([across, "seed"])[[along, "test_loss"]]
        .apply(lambda line: line[along].corr(line["test_loss"], method="spearman"))
        .unstack("seed")
        .dropna()
    )
    lines, seeds = correlations.shape
    if lines < LEAST_VALUES or seeds < LEAST_SEEDS:
        return Measurement.without_value(
            "inconclusive", f"There are {lines} lines along {along} and {seeds} seeds: too few."
        )
    value = float(correlations.to_numpy().mean())
    low, high = bootstrap_mean(correlations)
    return Measurement(
        "holds" if high < 0 else "fails" if low > 0 else "inconclusive",
        value,
        low,
        high,
        f"The rank correlation of test loss with {along}, at one value of {across} and one seed, "
        f"is {value:.3f} in the mean over {lines} values and {seeds} seeds, and negative on "
        f"{(correlations < 0).to_numpy().mean():.0%} of these lines.",
        "95 % bootstrap",
    )
