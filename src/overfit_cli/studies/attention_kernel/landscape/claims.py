"""The claims of section 5.3.2 of Song et al. 2024: which kernel's landscape is rougher.

Networks are what varies by chance; the pairs of directions around one network share it. So a
network's pairs are averaged, and the interval is over networks.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from overfit_cli.analysis.intervals import mean_estimate
from overfit_cli.claim import Claim, Measurement, above_zero, inconclusive, not_run
from overfit_cli.claims.cells import unless_one_value
from overfit_cli.studies.attention_kernel.landscape.parameters import KernelLandscapeParameters

SOURCE = "Song et al. 2024, section 5.3.2, figure 4"
LEAST_NETWORKS, LEAST_PAIRS = 3, 2
_FREE = ("kernel", "pair")


def _by_kernel(cells: pd.DataFrame, column: str) -> pd.DataFrame | Measurement:
    """A measured column under both kernels, one row per network and pair; or why none is judged."""
    cells = cells[cells["kernel"].isin(["softmax", "gaussian"]) & (cells["status"] == "done")]
    others = [name for name in KernelLandscapeParameters.model_fields if name not in _FREE]
    if (refusal := unless_one_value(cells, others)) is not None:
        return refusal
    if cells["kernel"].nunique() < 2:
        return not_run("It needs cells of kernel=softmax,gaussian.")
    values = cells.assign(value=cells[column].astype(float))
    table = values.pivot(index=["seed", "pair"], columns="kernel", values="value").dropna()
    networks = table.index.get_level_values("seed").nunique()
    fewest = int(table.groupby("seed").size().min()) if len(table) else 0
    if networks < LEAST_NETWORKS or fewest < LEAST_PAIRS:
        return inconclusive(
            f"There are {networks} networks with at least {fewest} pairs of directions: fewer than "
            f"{LEAST_NETWORKS} with {LEAST_PAIRS}."
        )
    return table


def _rougher(
    column: str, meaning: str, compare: Callable[[pd.DataFrame], pd.Series[float]]
) -> Callable[[pd.DataFrame], Measurement]:
    """Return what measures whether softmax has more in a column.

    Args:
        column: of the cells.
        meaning: "more of it", in words.
        compare: from the column under both kernels to what is averaged, 0 for a tie.
    """

    def measure(cells: pd.DataFrame) -> Measurement:
        table = _by_kernel(cells, column)
        if isinstance(table, Measurement):
            return table
        each = compare(table)
        if each.isna().any():
            return inconclusive(
                f"In {int(each.isna().sum())} of {len(each)} pairs a surface is flat, and there is "
                "no ratio."
            )
        return _over_networks(each.groupby("seed").mean(), table, meaning)

    return measure


def _over_networks(by_network: pd.Series[float], table: pd.DataFrame, meaning: str) -> Measurement:
    found = mean_estimate(by_network)
    more = int((table["softmax"] > table["gaussian"]).sum())
    equal = int((table["softmax"] == table["gaussian"]).sum())
    means = table.mean()
    return Measurement(
        above_zero(found.low, found.high),
        f"Softmax has {meaning} in {more} of {len(table)} pairs"
        f"{f' (and as much in {equal})' if equal else ''}: {means['softmax']:.3g} against the "
        f"Gaussian's {means['gaussian']:.3g} in the mean; {len(by_network)} networks.",
        *found,
        "95 % t over networks",
    )


def _log_ratio(table: pd.DataFrame) -> pd.Series[float]:
    positive = table.where(table > 0)
    return (positive["softmax"] / positive["gaussian"]).map(np.log2)


def _difference(table: pd.DataFrame) -> pd.Series[float]:
    return table["softmax"] - table["gaussian"]


CLAIMS = (
    Claim(
        name="landscape-minima",
        source=SOURCE,
        statement="Softmax attention's landscape has more local minima than Gaussian attention's.",
        accepted="the mean difference's 95 % interval over networks is above 0",
        measure=_rougher("interior_minima", "more interior minima", _difference),
    ),
    Claim(
        name="landscape-curvature",
        source=SOURCE,
        statement="Gaussian attention's landscape is flatter: softmax's has the larger Laplacian.",
        accepted="the mean log₂ ratio's 95 % interval over networks is above 0",
        measure=_rougher("rms_laplacian", "the larger rms Laplacian", _log_ratio),
    ),
    Claim(
        name="landscape-quadratic",
        source=SOURCE,
        statement="Softmax attention's landscape is more complicated: a quadratic fits it worse.",
        accepted="the mean log₂ ratio of residuals has its 95 % interval over networks above 0",
        measure=_rougher("quadratic_residual", "the larger quadratic residual", _log_ratio),
    ),
    Claim(
        name="landscape-sharpness",
        source=SOURCE,
        statement="Gaussian attention's landscape is flatter: softmax's rises more sharply.",
        accepted="the mean log₂ ratio of sharpness has its 95 % interval over networks above 0",
        measure=_rougher("sharpness", "the larger sharpness", _log_ratio),
    ),
)
