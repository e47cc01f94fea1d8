"""Claims that a measured column falls along the axes of a grid: rank correlations, line by line."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pandas as pd

from overfit_cli.analysis.intervals import bootstrap_mean
from overfit_cli.claim import Claim, Measurement, inconclusive
from overfit_cli.claims.rules import LEAST_SEEDS

LEAST_VALUES = 3
"""The fewest values of an axis that tell a trend."""

Judge = Callable[[pd.DataFrame], Measurement]


def decreasing_claims(
    figure: str, source: str, where: str, axes: Mapping[str, str], on_grid: Callable[[Judge], Judge]
) -> tuple[Claim, ...]:
    """Return the claims that the test loss falls as each of the two axes of a grid grows.

    Args:
        figure: the start of their names, such as `fig1`.
        source: the place in the paper.
        where: the start of their statements, before "the test loss".
        axes: the parameters' names, each with its own in words.
        on_grid: lets a judge see the cells that the claims are about.
    """

    def claim(axis: str, other: str) -> Claim:
        statement = f"{where}the test loss falls as {axes[axis]} grows."
        return Claim(
            name=f"{figure}-falls-with-{axis}",
            source=source,
            statement=statement[0].upper() + statement[1:],
            accepted="the mean rank correlation's 95 % bootstrap interval is below 0",
            measure=on_grid(lambda grid: decreases(grid, "test_loss", axis, other)),
        )

    first, second = axes
    return claim(first, second), claim(second, first)


def decreases(grid: pd.DataFrame, value: str, axis: str, other: str) -> Measurement:
    """Measure whether a column falls along an axis.

    Args:
        grid: cells that are done.
        value: the column.
        axis: the parameter with whose growth it would fall.
        other: the other parameter of the grid; with a seed it names a line.

    Returns:
        The mean rank correlation over lines and seeds; it holds where its interval is below 0.
    """
    correlations = (
        grid.groupby([other, "seed"])[[axis, value]]
        .apply(lambda line: line[axis].corr(line[value], method="spearman"))
        .unstack("seed")
        .dropna()
    )
    lines, seeds = correlations.shape
    if lines < LEAST_VALUES or seeds < LEAST_SEEDS:
        return inconclusive(f"There are {lines} lines along {axis} and {seeds} seeds: too few.")
    mean = float(correlations.to_numpy().mean())
    low, high = bootstrap_mean(correlations)
    return Measurement(
        "holds" if high < 0 else "fails" if low > 0 else "inconclusive",
        f"The rank correlation of {value.replace('_', ' ')} with {axis}, at one value of {other} "
        f"and one seed, is {mean:.3f} in the mean over {lines} values and {seeds} seeds, and "
        f"negative on {(correlations < 0).to_numpy().mean():.0%} of these lines.",
        mean,
        low,
        high,
        "95 % bootstrap",
    )
