"""Made-up worlds for the claims of `benign-vit` on figure 1, its boundaries and its dynamics.

Figure 1's noise is as it was measured on forty seeds; its boundary is moved along other parameters
too. Dynamics are figures 3 and 4, and the lemmas of section 5.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtr
from scipy.stats import binom

from calibration.rates import Worlds
from calibration.worlds import margins_of, number_worlds, share_worlds, worlds_from
from overfit_cli.core.parameters import parameters_from_row
from overfit_cli.studies.benign_vit.claims import CLAIMS, dynamics, lemmas
from overfit_cli.studies.benign_vit.claims.boundaries import PROPORTIONAL, SAME
from overfit_cli.studies.benign_vit.claims.figure_1 import BETTER, CONTOUR, EXPONENT, SHARE
from overfit_cli.studies.benign_vit.lemma_numbers import t1
from overfit_cli.studies.benign_vit.parameters import TOKEN_CLASSES, BenignVitParameters
from overfit_cli.studies.benign_vit.theory import (
    FIGURE_1_CONSTANT,
    FIGURE_1_EXPONENT,
    FIGURE_1_STRONG_NOISE,
    Regime,
    learning_balance,
)


def _curves(
    design: pd.DataFrame,
    random: np.random.Generator,
    *,
    factors: NDArray[np.float64] | float = 1.0,
) -> pd.DataFrame:
    """Cells whose curves cross at N·SNR² = C.

    Args:
        design: parameters and seeds.
        random: the source of its noise, the same seeds' shifts at each value of the axis.
        factors: C over figure 1's, at the middle N, for each cell.
    """
    crossing = np.log(np.sqrt(FIGURE_1_CONSTANT * factors / MIDDLE_N))
    crossing = crossing - np.log(design["n"].to_numpy() / MIDDLE_N) / FIGURE_1_EXPONENT
    crossing = crossing + shifts(design, random)
    away = np.log(design["snr"].to_numpy()) - crossing
    return design.assign(train_loss=0.009, test_loss=test_loss(away))


def _at_largest_dimension(design: pd.DataFrame, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The values where d is largest, and 1 elsewhere."""
    return np.where(design["d"] == design["d"].max(), values, 1.0)


def _constants(
    design: pd.DataFrame, factors: NDArray[np.float64], random: np.random.Generator
) -> pd.DataFrame:
    return _curves(design, random, factors=_at_largest_dimension(design, factors))


def _balance(
    design: pd.DataFrame, powers: NDArray[np.float64], random: np.random.Generator
) -> pd.DataFrame:
    """Both the onset and the crossing scale with a power of the balance of learning."""
    strong = design["sigma_p_tilde"] / design["sigma_p"]
    balance = learning_balance(strong, design["tokens"])
    figure_1 = learning_balance(FIGURE_1_STRONG_NOISE, design["tokens"])
    return _curves(design, random, factors=(balance / figure_1) ** powers)


BOUNDARIES: Mapping[str, Worlds] = {
    "dimension-constant": number_worlds(_constants, SAME, 0.05, logs=True),
    "transition-balance": number_worlds(_balance, PROPORTIONAL, 0.03),
    "constant-balance": number_worlds(_balance, PROPORTIONAL, 0.03),
}


STEPS = np.arange(0.0, 401.0, 8.0)
"""Logged steps of a made-up training, in units of T₁/40."""

STAGE_2, STAGE_3 = 40.0, 200.0
"""The steps at which the stages begin, in these units."""

LEARNED = 5.0
"""What wins grows to, at least."""


def _grown(
    design: pd.DataFrame, right: NDArray[np.bool_], random: np.random.Generator, regime: Regime
) -> pd.DataFrame:
    """Two logged steps of each cell, between which what should grow faster does, where right."""
    start = design.assign(key=np.arange(len(design)).astype(str), step=0, steps=30)
    signal = right if regime == "benign" else ~right
    high = random.uniform(LEARNED, 2 * LEARNED, len(design))
    low = random.uniform(0, LEARNED, len(design))
    of_signal, of_noise = np.where(signal, high, low), np.where(signal, low, high)
    names = {name for pairs in dynamics.GROWN.values() for pair in pairs for name in pair}
    last = start.assign(
        step=30,
        **{
            name: of_signal if name.split("_")[-1] in ("signal", "plus", "minus") else of_noise
            for name in names
        },
    )
    return pd.concat([start.assign(**dict.fromkeys(names, 0.0)), last])


def logged(design: pd.DataFrame, values: NDArray[np.float64]) -> pd.DataFrame:
    """Return logged steps of each cell, with three stages, and its number in a column `number`.

    The leads pass 3M where stage 2 begins, and the loss's slope falls where stage 3 does.
    """
    first = parameters_from_row(BenignVitParameters, design.iloc[0])
    unit = np.ceil(t1(first, "benign" if first.snr > 1 else "harmful") / STAGE_2)
    cells = design.assign(
        key=np.arange(len(design)).astype(str), number=values, steps=unit * STEPS[-1]
    )
    logs = pd.DataFrame({"part": STEPS, "step": unit * STEPS})
    steps = cells.merge(logs, how="cross")
    lead = 3 * steps["tokens"] * steps["part"] / STAGE_2
    return steps.assign(
        signal_lead=lead,
        noise_lead=lead,
        loss_slope=np.where(steps["part"] < STAGE_3, 0.5, 0.1),
        **{
            f"attention_{source}_{target}": 0.25
            for source in TOKEN_CLASSES
            for target in TOKEN_CLASSES
        },
    )


def _leads(
    design: pd.DataFrame, leads: NDArray[np.float64], random: np.random.Generator
) -> pd.DataFrame:
    """Logged steps whose lead grows to so many times 3M by T₁."""
    steps = logged(design, leads)
    lead = 3 * steps["tokens"] * steps["number"] * (steps["part"] / STAGE_2).clip(upper=1)
    return steps.assign(signal_lead=lead, noise_lead=lead)


def _powers(
    design: pd.DataFrame, powers: NDArray[np.float64], random: np.random.Generator
) -> pd.DataFrame:
    """Logged steps in which exponentials of values grow with a power of the steps of stage 3."""
    steps = logged(design, powers)
    since = (steps["part"] - STAGE_3).clip(lower=0) / STAGE_3
    value = np.log1p(since ** steps["number"])
    return steps.assign(value_plus=value, value_minus=-value)


def _attention(
    design: pd.DataFrame, attention: NDArray[np.float64], random: np.random.Generator
) -> pd.DataFrame:
    """Logged steps whose tokens 3 to M pay the signal so much attention, and the others all."""
    steps = logged(design, attention)
    more = 1e-5 * (steps["seed"] % 7)  # equal numbers would bound no mean
    return steps.assign(
        attention_signal_signal=0.999 + more,
        attention_noise_signal=0.99 + more,
        attention_rest_signal=steps["number"],
    )


MARGINS = margins_of(CLAIMS)
FITTED = MARGINS["fig1-fitted"]

_REGIMES: tuple[Regime, ...] = ("benign", "harmful")

DYNAMICS: Mapping[str, Worlds] = {
    **{
        f"dynamics-{regime}-{quantity}": share_worlds(
            partial(_grown, regime=regime), MARGINS[f"dynamics-{regime}-{quantity}"]
        )
        for regime in _REGIMES
        for quantity in dynamics.GROWN
    },
    "lemma52-lead": number_worlds(_leads, lemmas.LEAD, 0.15, logs=True),
    "lemma-e3-lead": number_worlds(_leads, lemmas.LEAD, 0.21, logs=True),
    "lemma54-values": number_worlds(_powers, lemmas.LINEAR, 0.003),
    "stage3-attention": number_worlds(_attention, lemmas.NEAR_ONE, 0.003),
}


GUESS = 0.69
"""The test loss of a guess, which curves come down from."""

SHAPE = (
    (-1.45, -0.95, -0.65, -0.45, -0.35, -0.25, -0.15, -0.05, 0.0, 0.05, 0.15, 0.25, 0.45, 0.75),
    (-3.60, -2.70, -2.10, -1.50, -1.10, -0.60, 0.0, 0.57, 0.896, 1.29, 1.60, 1.72, 1.93, 2.20),
)
"""How curves come down, as measured: log(SNR) beyond the crossing, and log(0.69/loss − 1) there."""

LATE = 0.42
"""The power of N / (2 min(N₊, N₋)) in the SNR at the crossing, as fitted over 40 seeds."""

OF_SEEDS, OF_ROWS = 0.02, 0.04
"""Standard deviations of log(SNR) at the crossing with balanced labels: of seeds, and of curves."""

MIDDLE_N = 10.0
"""Where the boundaries of worlds with other powers meet figure 1's."""


def figure_1(
    design: pd.DataFrame,
    random: np.random.Generator,
    *,
    power: float = FIGURE_1_EXPONENT,
    factor: float = 1.0,
    noise: float = 1.0,
) -> pd.DataFrame:
    """Return cells whose median boundary is N · SNR^p = C.

    Args:
        design: parameters and seeds.
        random: the source of its noise.
        power: p.
        factor: C over figure 1's, at the middle N.
        noise: how many times as strong as measured.
    """
    middle = np.sqrt(factor * FIGURE_1_CONSTANT / MIDDLE_N)
    median = np.log(middle) - np.log(design["n"] / MIDDLE_N) / power
    crossing = median + noise * shifts(design, random)
    away = np.log(design["snr"]) - crossing
    return design.assign(steps=10, train_loss=0.009, test_loss=test_loss(away.to_numpy()))


def test_loss(away: np.ndarray) -> np.ndarray:
    """Return the test loss where log(SNR) is so far beyond the crossing."""
    odds = np.exp(np.interp(away, *SHAPE) + 1.8 * np.minimum(away - SHAPE[0][0], 0))
    return np.asarray(GUESS / (1 + odds))


def shifts(design: pd.DataFrame, random: np.random.Generator) -> np.ndarray:
    """Draw by how much each cell's curve crosses beyond the median one, in log(SNR).

    Labels are fair coins, and a seed's samples come in one order: the rarer label's count decides.
    """
    ns, row = np.unique(design["n"], return_inverse=True)
    seeds, column = np.unique(design["seed"], return_inverse=True)
    ones = np.cumsum(random.random((ns[-1], len(seeds))) < 0.5, axis=0)[ns - 1]  # (n, seeds)
    late = _late(np.minimum(ones, ns[:, None] - ones), ns[:, None])
    late -= np.array([_median_late(n) for n in ns])[:, None]
    noise = OF_SEEDS * random.standard_normal(len(seeds)) + _curve_shifts(
        random, len(ns), len(seeds)
    )
    return np.asarray((late + noise)[row, column])


def _late(rarer: np.ndarray, n: np.ndarray | int) -> np.ndarray:
    """By how much log(SNR) at the crossing grows with lopsided labels; infinite with one label."""
    with np.errstate(divide="ignore"):
        return np.asarray(LATE * np.log(n / (2 * rarer)))


@functools.cache
def _median_late(n: int) -> float:
    """The median of that and the noise, over draws of N labels."""
    ones = np.arange(n + 1)
    late = _late(np.minimum(ones, n - ones), n)
    shift = np.linspace(-0.2, 2.0, 2201)[:, None]
    below = ndtr((shift - late) / np.hypot(OF_SEEDS, OF_ROWS)) @ binom.pmf(ones, n, 0.5)
    return float(np.interp(0.5, below, shift[:, 0]))


def _curve_shifts(random: np.random.Generator, rows: int, seeds: int) -> np.ndarray:
    """Curves' own shifts, (rows, seeds): neighbouring N share samples, and correlate by a half."""
    steps = OF_ROWS * random.standard_normal((rows, seeds))
    for row in range(1, rows):
        steps[row] = 0.5 * steps[row - 1] + np.sqrt(0.75) * steps[row]
    return steps


def unfitted(design: pd.DataFrame, random: np.random.Generator, *, share: float) -> pd.DataFrame:
    """Return cells of which one is not fitted on that share of the seeds."""
    cells = figure_1(design, random)
    seeds = np.sort(cells["seed"].unique())
    missed = seeds[random.random(len(seeds)) < share]
    first = ~cells.duplicated("seed") & cells["seed"].isin(missed)
    return cells.assign(train_loss=np.where(first, 0.5, cells["train_loss"]))


def falling(
    design: pd.DataFrame, random: np.random.Generator, *, n: float, snr: float
) -> pd.DataFrame:
    """Return cells whose losses fall along both axes by these slopes, for the average seed."""
    seeds = design["seed"].to_numpy()
    logs = random.normal(size=seeds.max() + 1)[seeds] + random.normal(size=len(design))
    for axis, slope in (("n", n), ("snr", snr)):
        slopes = 0.1 * random.normal(size=seeds.max() + 1) * np.log(design[axis].max()) - slope
        logs = logs + slopes[seeds] * np.log(design[axis].to_numpy())
    return figure_1(design, random).assign(test_loss=np.exp(logs))


def falling_along_one(design: pd.DataFrame, random: np.random.Generator) -> pd.DataFrame:
    """Return cells whose losses do not fall along one of the axes, either as often."""
    flat = random.random() < 1 / 2
    return falling(design, random, n=float(flat), snr=float(not flat))


AS_WELL = ({"power": 1.7}, {"power": 2.3})
"""Worlds of which a ratio to the power 1.5 or 2.5 tells the side as well as 2."""


def mixed_worlds(
    design: pd.DataFrame, random: np.random.Generator, *, worlds: Sequence[Mapping[str, float]]
) -> pd.DataFrame:
    """Return cells of one of several worlds, each as likely: see `figure_1` for what they set."""
    return figure_1(design, random, **worlds[int(random.integers(len(worlds)))])


_POWERS_AT_THE_ENDS = [{"power": end} for end in (EXPONENT.least, EXPONENT.most)]
_FACTORS_AT_THE_ENDS = [
    {"factor": end / FIGURE_1_CONSTANT} for end in (CONTOUR.least, CONTOUR.most)
]


FIGURE_1: Mapping[str, Worlds] = {
    "fig1-fitted": worlds_from(
        partial(unfitted, share=0.0),
        partial(unfitted, share=1 - FITTED.least),
        FITTED.fewest_seeds,
    ),
    "fig1-contour": worlds_from(
        figure_1, partial(mixed_worlds, worlds=_FACTORS_AT_THE_ENDS), CONTOUR.fewest_seeds
    ),
    "fig1-exponent": worlds_from(
        figure_1, partial(mixed_worlds, worlds=_POWERS_AT_THE_ENDS), EXPONENT.fewest_seeds
    ),
    "fig1-sides": worlds_from(figure_1, partial(figure_1, noise=2.28), SHARE.fewest_seeds),
    "fig1-sides-power": worlds_from(
        figure_1, partial(mixed_worlds, worlds=AS_WELL), BETTER.fewest_seeds
    ),
    "fig1-falls-with-n": worlds_from(partial(falling, n=1.0, snr=1.0), falling_along_one, 5),
}
