"""The claims of section 5.3.2 of Song et al. 2024: which kernel's landscape is rougher.

The paper draws it for IMDb and Pathfinder after 8000 and 500 steps. Generated data, and fewer
steps, stand in for that: what is measured there is a question of this tool.
Networks are what varies by chance; the pairs of directions around one network share it. So a
network's pairs are averaged, and the interval is over networks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd

from overfit_cli.claims.cells import (
    Values,
    add_absent,
    describe_values,
    one_setting,
    select_values,
)
from overfit_cli.claims.rules import Margin, judge_estimate
from overfit_cli.core.claim import Claim, Measurement, inconclusive, not_run
from overfit_cli.core.parameters import Value
from overfit_cli.core.text import plural
from overfit_cli.stats.intervals import median_estimate
from overfit_cli.studies.attention_kernel.landscape.parameters import KernelLandscapeParameters
from overfit_cli.studies.attention_kernel.parameters import PAPER_RATES, PAPER_TRAINING

SOURCE = "Song et al. 2024, section 5.3.2, figure 4"
LEAST_PAIRS = 2
ROUGHER = Margin(least=0.0, because="softmax as rough as Gaussian", fewest_seeds=6)
_FREE = ("kernel", "pair")


def _table_by_kernel(cells: pd.DataFrame, column: str, settings: Sequence[Values]) -> pd.DataFrame:
    """A measured column under both kernels, one row per network and pair; nan where it failed."""
    kernels: Values = {"kernel": ("softmax", "gaussian")}
    cells = pd.concat([select_values(cells, {**values, **kernels}) for values in settings])
    if cells.empty:
        raise not_run(f"It needs cells of {'; or of '.join(map(describe_values, settings))}.")
    names = list(KernelLandscapeParameters.model_fields)
    cells = one_setting(cells, [name for name in names if name not in _FREE])
    if cells["kernel"].nunique() < 2:
        raise not_run("It needs cells of kernel=softmax,gaussian.")
    cells = add_absent(cells, names)
    numbers = cells[column].astype(float).where(cells["status"] == "done")
    table = cells.assign(value=numbers).pivot(
        index=["seed", "pair"], columns="kernel", values="value"
    )
    fewest = int(table.groupby("seed").size().min())
    if fewest < LEAST_PAIRS:
        pairs = f"{plural(fewest, 'pair')} of directions"
        raise inconclusive(f"A network has {pairs}: fewer than {LEAST_PAIRS}.")
    return table


def _judge_rougher(
    cells: pd.DataFrame,
    column: str,
    meaning: str,
    compare: Callable[[pd.DataFrame], pd.Series[float]],
    settings: Sequence[Values],
) -> Measurement:
    """Measure whether softmax has more in a column; `compare` gives 0 for a tie, nan if unknown.

    A network of which a pair has no ratio, for a cell failed or a surface is flat, may have any.
    """
    table = _table_by_kernel(cells, column, settings)
    differences = compare(table)
    by_network = differences.groupby("seed").mean()
    unknown = differences.isna().groupby("seed").any()
    means = table.mean()
    return judge_estimate(
        median_estimate(
            by_network.mask(unknown, -math.inf), up_to=by_network.mask(unknown, math.inf)
        ),
        ROUGHER,
        details={
            "pairs of directions": len(table),
            "pairs without a ratio": int(differences.isna().sum()),
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


REAL: tuple[Mapping[str, Value], ...] = tuple(
    {
        "task": task,
        **training,
        "learning_rate": PAPER_RATES[task],
        "training_steps": 8000,
        "second_steps": 500,
        "points": 50,
        "spacing": 0.02,
    }
    for task, training in PAPER_TRAINING.items()
)
"""The two settings of section 5.2's second experiment."""


@dataclass(frozen=True)
class Networks:
    """The networks that claims are about.

    Attributes:
        name: of the claims' names; empty for generated reviews.
        words: how they were trained, after "around networks".
        settings: values of the cells' parameters, in any of several settings.
        preset: one that has such cells.
    """

    name: str
    words: str
    settings: Sequence[Values]
    preset: str


_REAL = Networks(
    "real",
    "trained as in section 5.2 on IMDb or on LRA's Pathfinder images, for 8000 and 500 steps",
    REAL,
    "kernel-fig4",
)
_REVIEWS = Networks(
    "",
    "trained on generated reviews, which stand in for IMDb",
    ({"source": "generated", "task": "text"},),
    "kernel-fig4",
)
_IMAGES = Networks(
    "pathfinder",
    "trained on tiny generated images, which stand in for LRA's Pathfinder",
    ({"source": "generated", "task": "pathfinder"},),
    "kernel-fig4-pathfinder",
)


Measure = Callable[..., Measurement]
Question = tuple[str, str, str, Measure]
"""A claim's name, its statement and number in words, and its measure, on any networks."""


def _claim(question: Question, networks: Networks) -> Claim:
    name, statement, number, measure = question
    real = networks is _REAL
    return Claim(
        name="-".join(filter(None, ("landscape", networks.name, name))),
        kind="paper" if real else "ours",
        source=SOURCE,
        statement=f"{statement}, around networks {networks.words}.",
        hypotheses="both kernels go on from the same network, with one step size and batch"
        if real
        else "",
        holds_where=ROUGHER.in_words(number).replace("seeds", "networks"),
        measure=partial(measure, settings=networks.settings),
        figure="landscape",
        preset=networks.preset,
        profile="paper" if real else "quick",
    )


def _measure_of(
    column: str, meaning: str, compare: Callable[[pd.DataFrame], pd.Series[float]] = _log_ratio
) -> Measure:
    return partial(_judge_rougher, column=column, meaning=meaning, compare=compare)


_MINIMA: Question = (
    "minima",
    "Softmax attention's landscape has more local minima than Gaussian attention's",
    "the median log₂ ratio of one more than each",
    _measure_of("interior_minima", "more interior minima", _log_ratio_of_counts),
)
_FLATTER: Question = (
    "curvature",
    "Gaussian attention's landscape is flatter",
    "the median log₂ ratio of Laplacians",
    _measure_of("rms_laplacian", "the larger rms Laplacian"),
)
_COMPLICATED: Question = (
    "quadratic",
    "Softmax attention's landscape is more complicated: a quadratic fits it worse",
    "the median log₂ ratio of residuals",
    _measure_of("quadratic_residual", "the larger quadratic residual"),
)
_SHARPER: Question = (
    "sharpness",
    "Gaussian attention's landscape is flatter: softmax's rises more sharply",
    "the median log₂ ratio of sharpness",
    _measure_of("sharpness", "the larger sharpness"),
)

CLAIMS = (
    _claim(_MINIMA, _REAL),
    _claim(_FLATTER, _REAL),
    *(
        _claim(question, networks)
        for networks in (_REVIEWS, _IMAGES)
        for question in (_MINIMA, _FLATTER, _COMPLICATED, _SHARPER)
    ),
)
