"""Claims after Table 1: the numbers of hidden units and of steps, by activation and by λ.

All are ours: the table is about sufficient numbers, and measured are those that networks need. A
width suffices from which on training takes at most twice the steps of infinitely many units.
"""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd

from overfit_cli.claims.papers import Claims, on
from overfit_cli.core.claim import inconclusive
from overfit_cli.core.study import has_missed
from overfit_cli.stats.boundaries import crossings
from overfit_cli.studies.softmax_network import NAMES
from overfit_cli.studies.softmax_network.parameters import SoftmaxConvergenceParameters
from overfit_cli.studies.softmax_network.study import COLUMNS

SETTING = ["activation", "data", "d", "n"]

LEAST_WIDTH = 2.0
"""The least width of a network of pairs of hidden units."""


def widest(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells of the largest m."""
    chosen: pd.DataFrame = cells[cells["m"] == cells["m"].max()]
    return chosen


def table1_steps(cells: pd.DataFrame) -> pd.Series[float]:
    """Return λ⁻² n² log(n/ε) of each cell, Table 1's steps without their constant and n^o(1)."""
    n = cells["n"].astype(float)
    logarithm = np.log(n / cells["epsilon"].astype(float))
    steps: pd.Series[float] = n**2 * logarithm / cells["lambda_start"].astype(float) ** 2
    return steps


def sufficient_widths(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the smallest sufficient width of each setting and seed, as `width`.

    A cell that doesn't come to ε within its steps, or failed, isn't wide enough. The width is
    infinite where no m of the sweep suffices, and 0 where all do.
    """
    each, slow = [], cells["steps_over_limit"].astype(float).fillna(1e100)
    for _, group in cells.assign(steps_over_limit=slow, status="done").groupby(SETTING[:-1]):
        crossed = crossings(group, "m", "n", "steps_over_limit", 2.0)
        width = crossed["crossing"].where(crossed["side"] != "above", np.inf)
        width = width.where(crossed["side"] != "below", 0.0)
        setting = group[SETTING[:-1]].head(1)
        each.append(crossed[["n", "seed"]].assign(width=width).merge(setting, how="cross"))
    return pd.concat(each, ignore_index=True)


def width_range(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the least and the most sufficient width of each setting and seed, and λ.

    A width before the sweep lies between two hidden units and its first m, one beyond it above its
    last m. Cells that failed for other reasons than training, or are absent, may be slow or not.
    λ is that of the widest networks.
    """
    ratios = cells["steps_over_limit"].astype(float)
    unknown = ratios.isna() & ~has_missed(cells)
    slow = sufficient_widths(cells)
    fast = sufficient_widths(cells.assign(steps_over_limit=ratios.mask(unknown, 1.0)))
    ends = pd.concat([slow["width"], fast["width"]], axis=1)
    first, last = cells["m"].min(), cells["m"].max()
    least = ends.min(axis=1).clip(LEAST_WIDTH, last)
    most = ends.max(axis=1).clip(first)
    ranges = slow.assign(least=least, most=most, width=least.where(least == most))
    return ranges.merge(widest(cells)[[*SETTING, "seed", "lambda_start"]], on=[*SETTING, "seed"])


cao = Claims("softmax", "Cao et al. 2024", SoftmaxConvergenceParameters, COLUMNS, "boundary")

BETWEEN = {"width": ("least", "most")}
AT_PAPERS = "step size 0.1 λ/(m n²), Corollary 4.3's without its e^(16B)"
AT_LAMBDA_MAX = "step size 1/(m λ_max)"


def the_same(number: str) -> dict[str, str]:
    """Return the sentences that a number is the same for any two activations, at the largest n."""
    of = {each: f"({number.format(f'[activation={each}]')})" for each in NAMES}
    alike = "is 1 within a factor of 2 with at least 10 seeds where n is largest"
    return {
        f"{NAMES[first]} over {NAMES[second]}": f"{of[first]} / {of[second]} {alike}"
        for first, second in itertools.combinations(NAMES, 2)
    }


cao.ours(
    "steps-paper",
    "Table 1",
    f"At the {AT_PAPERS}, softmax, exp and ReLU networks need almost the same T λ², at the largest "
    "m of the sweep: nearly by construction, as the step size contains λ. T is the number of steps "
    "to ε, λ the smallest eigenvalue of each network's own kernel.",
    the_same("steps_to_epsilon{0} * lambda_start{0}**2"),
    on=on("softmax-table1-paper", "m is largest"),
    figure="lines",
    hypotheses="Table 1's m isn't met, so that T may still fall with m, and its λ < 1 on every "
    "seed by ReLU alone",
)
cao.ours(
    "steps-without-lambda",
    "Table 1",
    f"Softmax, exp and ReLU networks need the same number of steps, λ left out, at the largest m "
    f"of the sweep; {AT_PAPERS}.",
    the_same("steps_to_epsilon{0}"),
    on=on("softmax-table1-paper", "m is largest"),
    figure="lines",
)
cao.ours(
    "steps",
    "Table 1",
    f"Softmax, exp and ReLU networks need the same number of steps, at the largest m of the sweep; "
    f"{AT_LAMBDA_MAX}.",
    the_same("steps_to_epsilon{0}"),
    on=on("softmax-table1", "m is largest"),
    figure="lines",
)
cao.ours(
    "widths",
    "Table 1",
    f"Softmax, exp and ReLU networks need the same number of hidden units; {AT_LAMBDA_MAX}.",
    the_same("width{0}"),
    on=on("softmax-table1"),
    cells=width_range,
    between=BETWEEN,
)

OVER = "three activations, the sphere and digits, d = 16 and 64 and all n of the sweep"
STATED = (
    "the step size is Theorem 4.2's without its e^(−16B), which Table 1 writes as n^o(1); Table "
    "1's λ < 1 is not required, and a third of the settings have a larger one"
)
HALF = "half the way to the next multiple of 1/2"


def over_their_mean(cells: pd.DataFrame) -> pd.DataFrame:
    """Return T over λ⁻² n² log(n/ε), over its geometric mean in all settings of a seed."""
    ratios = cells["steps_to_epsilon"].astype(float) / table1_steps(cells)
    logs = pd.Series(np.log(ratios.where(ratios > 0)), cells.index)
    unknown = logs.isna().groupby(cells["seed"]).transform("any")
    means = logs.groupby(cells["seed"]).transform("mean")
    return cells.assign(ratio=np.exp((logs - means).mask(unknown)))


cao.ours(
    "steps-collapse",
    "Table 1",
    f"At the step size 0.1 λ/(m n²), T is one constant times λ⁻² n² log(n/ε), over {OVER}.",
    "geometric mean of ratio is 1 within a factor of 2 with at least 10 seeds",
    on=on("softmax-lambda-steps"),
    cells=over_their_mean,
    number="in each setting the ratio of T λ²/(n² log(n/ε)) to its geometric mean in all",
    figure="lambda",
    hypotheses=STATED,
)
cao.ours(
    "steps-lambda-power",
    "Table 1",
    f"At the step size 0.1 λ/(m n²), T ∝ λ⁻² at given n, over {OVER}: one power is that of the "
    "step size, the other is the rate's.",
    "mean of powers of (1 / lambda_start, n) in steps_to_epsilon are (2, any) within 0.25 "
    "with at least 10 seeds",
    on=on("softmax-lambda-steps"),
    because=HALF,
    figure="lambda",
    hypotheses=STATED,
)
cao.ours(
    "steps-condition-power",
    "Table 1",
    f"At the {AT_LAMBDA_MAX}, which has no λ, T ∝ κ = λ_max/λ: one power of λ is left.",
    "mean of powers of (kappa) in steps_to_epsilon are (1) within 0.25 with at least 10 seeds",
    on=on("softmax-lambda-widths", "m is largest"),
    because=HALF,
    figure="lambda",
)


def below_one(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the sufficient widths of settings and seeds with λ < 1."""
    ranges = width_range(cells)
    if ranges["lambda_start"].isna().any():
        raise inconclusive("Of some setting and seed λ is not known.")
    kept = ranges[ranges["lambda_start"] < 1]
    if kept.groupby("seed").size().reindex(cells["seed"].unique(), fill_value=0).min() < 12:
        raise inconclusive("On some seed fewer than 12 of 48 settings have λ < 1.")
    return kept


cao.ours(
    "width-lambda-power",
    "Table 1",
    f"At the {AT_LAMBDA_MAX} the smallest width that suffices scales as λ⁻² at given n, as Table "
    f"1's does, over {OVER}, where λ < 1.",
    "mean of powers of (1 / lambda_start, n) in width are (2, any) within 0.5 "
    "with at least 10 seeds",
    on=on("softmax-lambda-widths"),
    cells=below_one,
    between=BETWEEN,
    because="half the way to the next power",
    figure="lambda",
    hypotheses="λ < 1, as Table 1's caption has it, for each setting and seed; λ isn't varied by "
    "itself: settings differ in their data and activations too",
)
