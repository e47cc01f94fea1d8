"""Tables of the documents that are computed from kept cells."""

from __future__ import annotations

from math import exp
from pathlib import Path

import numpy as np
import pandas as pd

import overfit_cli
from overfit_cli.stats.intervals import Estimate, mean_estimate, median_estimate
from overfit_cli.studies.softmax_network.claims.table1 import (
    sufficient_widths,
    table1_steps,
    widest,
)

RESULTS = Path(__file__).parents[1] / "results"
NETWORKS = {  # as in Table 1 of Cao et al. 2024: its steps and its hidden units
    "relu": ("ReLU", "λ⁻² n² log(n/ε)", "λ⁻² n² log(n)"),
    "exp": ("exp", "λ⁻² n^(2+o(1)) log(n/ε)", "λ⁻² n^(2+o(1)) log²(n)"),
    "softmax": ("softmax", "λ⁻² n^(2+o(1)) log(n/ε)", "λ⁻² n^(2+o(1)) log²(n)"),
}
DATA, FEWEST, MOST = "sphere", 8, 64
"""The settings of widths in the table: d = 16, and these n."""


def table1_beside_measured() -> str:
    """Return Table 1 of Cao et al. 2024 beside measured steps and widths, in Markdown."""
    steps = overfit_cli.load(RESULTS / "softmax-lambda-steps-quick")
    widths = overfit_cli.load(RESULTS / "softmax-lambda-widths-quick")
    lines = [
        "| | Table 1: steps, Ω of | measured T | measured T λ²/(n² log(n/ε)) | "
        "Table 1: hidden units, Ω of | sufficient m, n = 8 | n = 64 | the table's number, n = 8 "
        "| n = 64 |",
        "|---|---|---|---|---|--:|--:|--:|--:|",
    ]
    sufficient = sufficient_widths(widths)
    for name, (words, stated_steps, stated_width) in NETWORKS.items():
        own = steps[steps["activation"] == name]
        ratios = own["steps_to_epsilon"].astype(float) / table1_steps(own)
        logs = mean_estimate(ratios.map(np.log).groupby(own["seed"]).mean())
        constant = logs._replace(value=exp(logs.value), low=exp(logs.low), high=exp(logs.high))
        medians = own.groupby(["data", "d", "n"])["steps_to_epsilon"].median()
        spread = f"{medians.min():,.0f} to {medians.max():,.0f}"
        of_widths = [_width(sufficient, name, n) for n in (FEWEST, MOST)]
        stated = (_stated_width(widths, name, n) for n in (FEWEST, MOST))
        numbers = [f"{float(f'{number:.2g}'):,.0f}" for number in stated]
        lines.append(
            f"| {words} | {stated_steps} | {spread} | {_interval(constant)} | {stated_width} | "
            f"{' | '.join(of_widths)} | {' | '.join(numbers)} |"
        )
    return "\n".join(lines) + "\n"


def _at(cells: pd.DataFrame, name: str, n: int) -> pd.DataFrame:
    chosen = (cells["activation"] == name) & (cells["n"] == n)
    rows: pd.DataFrame = cells[chosen & (cells["data"] == DATA) & (cells["d"] == 16)]
    return rows


def _width(sufficient: pd.DataFrame, name: str, n: int) -> str:
    return _interval(median_estimate(_at(sufficient, name, n)["width"]))


def _stated_width(cells: pd.DataFrame, name: str, n: int) -> float:
    """The table's λ⁻² n² log(n), with the square of the logarithm for exp and softmax."""
    smallest = _at(widest(cells), name, n)["lambda_start"].astype(float).median()
    return float(n**2 * np.log(n) ** (1 if name == "relu" else 2) / smallest**2)


def _interval(estimate: Estimate) -> str:
    value, low, high = (
        f"{number:,.0f}" if abs(number) >= 100 else f"{number:.3g}"
        for number in (estimate.value, estimate.low, estimate.high)
    )
    return f"{value} [{low}, {high}]"
