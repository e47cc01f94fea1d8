"""The claims of section 5.3.2 of Song et al. 2024: which kernel's landscape is rougher.

Networks are what varies by chance; the pairs of directions around one network share it. So a
network's pairs are averaged, and the interval is over networks.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from overfit_cli.claims.cells import one_setting
from overfit_cli.claims.rules import Margin, judge_estimate
from overfit_cli.core.claim import Claim, Measurement, inconclusive, not_run
from overfit_cli.core.text import plural
from overfit_cli.stats.intervals import median_estimate
from overfit_cli.studies.attention_kernel.landscape.parameters import KernelLandscapeParameters

SOURCE = "Song et al. 2024, section 5.3.2, figure 4"
LEAST_PAIRS = 2
ROUGHER = Margin(least=0.0, because="softmax as rough as Gaussian", fewest_seeds=6)
_FREE = ("kernel", "pair")


def _table_by_kernel(cells: pd.DataFrame, column: str) -> pd.DataFrame:
    """A measured column under both kernels, one row per network and pair."""
    cells = cells[cells["kernel"].isin(["softmax", "gaussian"]) & (cells["status"] == "done")]
    others = [name for name in KernelLandscapeParameters.model_fields if name not in _FREE]
    cells = one_setting(cells, others)
    if cells["kernel"].nunique() < 2:
        raise not_run("It needs cells of kernel=softmax,gaussian.")
    values = cells.assign(value=cells[column].astype(float))
    table = values.pivot(index=["seed", "pair"], columns="kernel", values="value").dropna()
    fewest = int(table.groupby("seed").size().min()) if len(table) else 0
    if fewest < LEAST_PAIRS:
        pairs = f"{plural(fewest, 'pair')} of directions"
        raise inconclusive(f"A network has {pairs}: fewer than {LEAST_PAIRS}.")
    return table


def _rougher(
    column: str, meaning: str, compare: Callable[[pd.DataFrame], pd.Series[float]]
) -> Callable[[pd.DataFrame], Measurement]:
    """Return what measures whether softmax has more in a column; `compare` gives 0 for a tie."""

    def measure(cells: pd.DataFrame) -> Measurement:
        table = _table_by_kernel(cells, column)
        differences = compare(table)
        if differences.isna().any():
            raise inconclusive(
                f"In {int(differences.isna().sum())} of {len(differences)} pairs a surface is "
                "flat, and there is no ratio."
            )
        return _judge_networks(differences.groupby("seed").mean(), table, meaning)

    return measure


def _judge_networks(by_network: pd.Series[float], table: pd.DataFrame, meaning: str) -> Measurement:
    means = table.mean()
    return judge_estimate(
        median_estimate(by_network),
        ROUGHER,
        details={
            "pairs of directions": len(table),
            "pairs in which softmax has more": int((table["softmax"] > table["gaussian"]).sum()),
            "pairs in which both have as much": int((table["softmax"] == table["gaussian"]).sum()),
            "softmax, mean": float(means["softmax"]),
            "Gaussian, mean": float(means["gaussian"]),
        },
        note=f"Softmax has {meaning}: the median over networks, each the mean of its pairs of "
        "directions.",
    )


def _log_ratio(table: pd.DataFrame) -> pd.Series[float]:
    positive = table.where(table > 0)
    return (positive["softmax"] / positive["gaussian"]).map(np.log2)


def _log_ratio_of_counts(table: pd.DataFrame) -> pd.Series[float]:
    """Of one more than each: counts may be 0, and a few networks have most of all minima."""
    return _log_ratio(table + 1)


def _claim(
    name: str, statement: str, number: str, measure: Callable[[pd.DataFrame], Measurement]
) -> Claim:
    return Claim(
        name=f"landscape-{name}",
        source=SOURCE,
        statement=statement,
        holds_where=ROUGHER.in_words(number).replace("seeds", "networks"),
        measure=measure,
        figure="landscape",
        preset="kernel-fig4",
    )


CLAIMS = (
    _claim(
        "minima",
        "Softmax attention's landscape has more local minima than Gaussian attention's.",
        "the median log₂ ratio of one more than each",
        _rougher("interior_minima", "more interior minima", _log_ratio_of_counts),
    ),
    _claim(
        "curvature",
        "Gaussian attention's landscape is flatter: softmax's has the larger Laplacian.",
        "the median log₂ ratio",
        _rougher("rms_laplacian", "the larger rms Laplacian", _log_ratio),
    ),
    _claim(
        "quadratic",
        "Softmax attention's landscape is more complicated: a quadratic fits it worse.",
        "the median log₂ ratio of residuals",
        _rougher("quadratic_residual", "the larger quadratic residual", _log_ratio),
    ),
    _claim(
        "sharpness",
        "Gaussian attention's landscape is flatter: softmax's rises more sharply.",
        "the median log₂ ratio of sharpness",
        _rougher("sharpness", "the larger sharpness", _log_ratio),
    ),
)
