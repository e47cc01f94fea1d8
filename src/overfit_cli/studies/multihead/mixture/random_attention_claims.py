"""Claims on section 7's first question: with what margin does random attention separate?

That it separates 100 samples is no claim: from 10 heads on gradients have 400 dimensions or more,
so that any labels are separated.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd

from overfit_cli.claims.cells import Selection
from overfit_cli.claims.rules import Margin, exponentiate, judge_estimates
from overfit_cli.core.claim import Claim, Measurement
from overfit_cli.stats.intervals import level_of_each
from overfit_cli.studies.multihead.claims import (
    PAPER_NAME,
    independent_seeds,
    median_of_seeds,
    numbers,
)
from overfit_cli.studies.multihead.mixture.parameters import MultiheadMixtureParameters

PRESET = "heads-random-attention"
MANY = (10, 100, 500)
"""Numbers of heads of which the claims speak."""

SIGMA = 1.0
"""The deviation of W's entries of which they speak."""

TWICE = Margin(least=2.0, because="twice as large", fewest_seeds=10)
AT_MOST = Margin(most=1.0, because="1 is γ_attn", fewest_seeds=10)
SETTLED = Margin(least=0.8, most=1.25, because="a quarter more or less", fewest_seeds=10)


def _select(cells: pd.DataFrame) -> pd.DataFrame:
    return Selection(
        MultiheadMixtureParameters,
        at={"initialisation": "attention", "sigma_init": SIGMA, "heads": MANY, "training_steps": 1},
        vary={"heads"},
        alike={"certify", "test_samples", "learning_rate", "step_rule", "optimiser"},
        includes={"heads": MANY},
        preset=PRESET,
    ).of(cells)


def _ratios(cells: pd.DataFrame, column: str, margin: Margin) -> Measurement:
    """Measure the margin of random attention over another one of the same seed, for each H."""
    chosen = _select(cells)
    ratio = numbers(chosen, "ntk_margin") / numbers(chosen, column)
    logs = pd.Series(np.log(ratio), ratio.index)
    return _judge(
        chosen,
        {f"ratio, H = {heads}": logs[chosen["heads"] == heads] for heads in MANY},
        margin,
        {
            f"{name.replace('_', ' ')}, median": float(numbers(chosen, name).median())
            for name in ("ntk_margin_zero", "ntk_margin_first", "gamma_attention")
        },
    )


def _settles(cells: pd.DataFrame) -> Measurement:
    """Measure the margin with 500 heads over that with 100."""
    chosen = _select(cells)
    logs = pd.Series(np.log(numbers(chosen, "ntk_margin")), chosen.index)
    few, many = (
        logs[chosen["heads"] == heads].set_axis(chosen["seed"][chosen["heads"] == heads])
        for heads in MANY[1:]
    )
    return _judge(chosen, {"500 heads over 100": many - few}, SETTLED, {})


def _judge(
    cells: pd.DataFrame,
    logs: dict[str, pd.Series[float]],
    margin: Margin,
    details: dict[str, float],
) -> Measurement:
    level = level_of_each(len(logs))
    return judge_estimates(
        {
            name: (
                independent_seeds(
                    exponentiate(median_of_seeds(values, level)),
                    cells,
                    MultiheadMixtureParameters,
                ),
                margin,
            )
            for name, values in logs.items()
        },
        details=details,
        note="Of the tangent kernel's largest margin, the median over seeds.",
    )


def _claim(
    name: str,
    statement: str,
    holds_where: str,
    measure: Callable[[pd.DataFrame], Measurement],
) -> Claim:
    return Claim(
        name=f"mixture-random-attention-{name}",
        kind="ours",
        source=f"ours, on the first question of section 7 of {PAPER_NAME}",
        statement=statement,
        holds_where=holds_where,
        measure=measure,
        figure="random-attention",
        preset=PRESET,
    )


_START = "U = 0 and W ~ N(0, 1), with 10, 100 and 500 heads and 100 samples,"
_RATIO = "for each H the median ratio"

RANDOM_ATTENTION_CLAIMS = (
    _claim(
        "over-zero",
        f"At {_START} the tangent kernel's margin is at least twice that at zero.",
        TWICE.in_words(_RATIO),
        partial(_ratios, column="ntk_margin_zero", margin=TWICE),
    ),
    _claim(
        "over-first-phase",
        f"At {_START} the tangent kernel's margin is at least twice that after the first phase of "
        "section 5.1.",
        TWICE.in_words(_RATIO),
        partial(_ratios, column="ntk_margin_first", margin=TWICE),
    ),
    _claim(
        "below-attention",
        f"At {_START} the tangent kernel's margin stays below γ_attn.",
        AT_MOST.in_words(_RATIO),
        partial(_ratios, column="gamma_attention", margin=AT_MOST),
    ),
    _claim(
        "settles",
        "At U = 0 and W ~ N(0, 1) the tangent kernel's margin on 100 samples changes by at most a "
        "quarter from 100 to 500 heads.",
        SETTLED.in_words("the median ratio"),
        _settles,
    ),
)
