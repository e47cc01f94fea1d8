"""Claims on what Theorems 4.1 and 4.2 leave open: σ_p² d, M and ‖w_O‖, and the labels of Lemma C.1.

Section 4 of Jiang et al. 2024 says that items 4 and 5 of Condition 4.1, M = Θ(1) and ‖w_O‖ = Θ(1),
are there to simplify and generalise. It states no theorem for other sizes: these claims ask what
happens to the one that is printed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd

from overfit_cli.claims.cells import (
    add_absent,
    finite_numbers,
    one_setting,
    positive_numbers,
    require_done,
)
from overfit_cli.claims.rules import (
    Margin,
    judge_estimate,
    share_of_seeds,
    tolerance_margin,
)
from overfit_cli.core.claim import Claim, Measurement, inconclusive, not_run
from overfit_cli.stats.boundaries import scaling_exponents
from overfit_cli.stats.intervals import mean_estimate
from overfit_cli.studies.benign_vit.vit.claims.condition import (
    CONDITION,
    LARGE,
    MAY_VARY,
    SIDES,
    T_DEPENDS_ON,
    WHERE,
    cells_of_side,
    require_condition,
    whole_design,
)
from overfit_cli.studies.benign_vit.vit.claims.theorem_regime import (
    AT_LEAST,
    GUESS,
    LEAST_FACTORS,
    ORDER_OF_T,
    RATE,
    TOLERANCE,
    near_limit,
    order_of_steps,
)
from overfit_cli.studies.benign_vit.vit.parameters import BenignVitParameters
from overfit_cli.studies.benign_vit.vit.theory import Regime

NOISE_POWERS: dict[Regime, float] = {"benign": 0.0, "harmful": -1.0}
"""The power of σ_p² d in T, at a fixed ‖μ‖."""

FREE = frozenset({"tokens", "output_scale", "epsilon", "sigma_p_tilde"})
"""What cells of several sizes differ in: by item 10 σ̃_p depends on M."""

LEAST_TOKENS, LEAST_OUTPUT = 3.0, 1000.0
"""By which factors M and ‖w_O‖ must vary."""

_NAMES = [name for name in BenignVitParameters.model_fields if name not in MAY_VARY]


def _noise_power(cells: pd.DataFrame, side: Regime) -> Measurement:
    """Measure the power of σ_p² d in the steps at a fixed ‖μ‖, from cells that differ in η.

    Tokens of c times the length train like those of step size c² η, step by step, as weights of
    Condition 4.1 shrink with them. So a cell is also one at the least η, whose tokens are √(η/η₀)
    times as long.
    """
    design = whole_design(require_condition(cells, side, f"theorem-{side}"))
    for name in ("snr", "learning_rate"):
        if design[name].max() / design[name].min() < LEAST_FACTORS[name]:
            raise not_run(
                f"It needs values of {name} that are a factor of {LEAST_FACTORS[name]:g} apart."
            )
    fitted = require_done(design)
    positive_numbers(fitted, "steps")
    noise = fitted["learning_rate"].astype(float) / fitted["learning_rate"].min()  # σ_p² d
    rescaled = fitted.assign(noise=noise, snr=fitted["snr"] * noise.map(math.sqrt))  # ‖μ‖
    axes = ["noise", *(name for name in T_DEPENDS_ON if name != "learning_rate")]
    powers = scaling_exponents(rescaled, axes, "steps")
    if powers is None:
        raise inconclusive("No seed has cells that tell the axes apart.")
    return judge_estimate(
        powers["noise"],
        _noise_margin(side),
        note="Fitted seed by seed with the other powers of T; cells of another η stand for longer "
        "tokens.",
        details={"cells": len(fitted)},
    )


def _noise_margin(side: Regime) -> Margin:
    return tolerance_margin(NOISE_POWERS[side], TOLERANCE, "T hides logarithms")


def _of_sizes(
    cells: pd.DataFrame, side: Regime, judge: Callable[[pd.DataFrame, Regime], Measurement]
) -> Measurement:
    """Judge the cells of several M and ‖w_O‖ on a side, with σ̃_p as item 10 has it."""
    drawn = cells[(cells["initialisation"] == "condition") & (cells["labels"] == "balanced")]
    is_strong = np.isclose(drawn["sigma_p_tilde"], 5 * np.sqrt(drawn["tokens"]) * drawn["sigma_p"])
    chosen = cells_of_side(drawn[is_strong], side)
    if chosen.empty or not _varies(chosen):
        raise not_run(
            f"It needs {side} cells with labels=balanced of several tokens, a factor of "
            f"{LEAST_TOKENS:g} apart, and of several output_scale, a factor of {LEAST_OUTPUT:g}, "
            f"as in `overfit sweep theorem-sizes-{side}`."
        )
    alike = one_setting(chosen, [name for name in _NAMES if name not in FREE])
    whole = add_absent(alike, _NAMES)
    return judge(whole.fillna({name: alike[name].iloc[0] for name in MAY_VARY}), side)


def _varies(cells: pd.DataFrame) -> bool:
    factors = {name: cells[name].max() / cells[name].min() for name in ("tokens", "output_scale")}
    return bool(factors["tokens"] >= LEAST_TOKENS and factors["output_scale"] >= LEAST_OUTPUT)


def _loss_falls(cells: pd.DataFrame, side: Regime) -> Measurement:
    """Measure the least power of ε in the test loss over M and ‖w_O‖, in units of 1/(2M²)."""
    logs = require_done(cells).assign(log=positive_numbers(cells, "test_loss").map(np.log))
    epsilons = np.sort(logs["epsilon"].unique())
    if len(epsilons) < 2:
        raise not_run("It needs two values of epsilon.")
    sizes = ["seed", "tokens", "output_scale"]
    table = logs.pivot_table(index=sizes, columns="epsilon", values="log")
    powers = (table[epsilons[-1]] - table[epsilons[0]]) / np.log(epsilons[-1] / epsilons[0])
    tokens = powers.index.get_level_values("tokens").to_numpy(dtype=np.float64)
    means = logs[logs["epsilon"] == epsilons[0]].groupby(["tokens", "output_scale"])["test_loss"]
    return judge_estimate(
        mean_estimate((powers * 2 * tokens**2).groupby(level="seed").min()),
        RATE,
        note="The power of ε in the test loss times 2M², the least of a seed's M and ‖w_O‖.",
        details={
            f"test loss, M = {m}, ‖w_O‖ = {w:g}, ε = {epsilons[0]:g}": float(mean)
            for (m, w), mean in means.mean().items()
        },
    )


def _loss_stays(cells: pd.DataFrame, side: Regime) -> Measurement:
    """Measure the least test loss over M and ‖w_O‖."""
    losses = finite_numbers(require_done(cells), "test_loss")
    return judge_estimate(
        near_limit(losses.groupby(cells["seed"]).min(), GUESS, least_missing=-np.inf),
        AT_LEAST,
        note="The least of a seed's cells.",
        details={"cells": len(cells)},
    )


FEWEST_LABELS = 10
"""The seeds that the share of lopsided draws takes."""


def _labels(cells: pd.DataFrame) -> Measurement:
    """Measure on which share of seeds a label is had by less than a quarter, or more than 3/4."""
    drawn = cells[(cells["labels"] == "coin") & (cells["label_flip"] == 0)]
    n = drawn["n"].max() if len(drawn) else 0
    delta = 4 * math.exp(-n / 8)
    if delta >= 1:
        raise not_run(
            "It needs cells with labels=coin and n above 8 log 4, as in `overfit sweep fig1`."
        )
    of_seeds = drawn[drawn["n"] == n].groupby("seed")["label_imbalance"].first().astype(float)
    lopsided = of_seeds.abs() > 0.5
    seeds = pd.Series(of_seeds.index, index=of_seeds.index)
    return judge_estimate(
        share_of_seeds(lopsided, seeds, of_seeds.isna()),
        Margin(most=delta, because="δ of the lemma", fewest_seeds=FEWEST_LABELS),
        note=f"At n = {n:g}, for which δ is 4 exp(−n/8) = {delta:.3g} at least.",
        details={"n": float(n), "δ": delta},
    )


def _of_side(side: Regime) -> tuple[Claim, ...]:
    product = LARGE if side == "benign" else SIDES[side]
    losses = {
        "benign": (
            "the test loss goes to zero with ε as ε^(1/(2M²)) or faster",
            RATE.in_words(
                "the power of ε in the test loss times 2M², the least of a seed's sizes,"
            ),
            _loss_falls,
        ),
        "harmful": (
            "the test loss is at least 0.1",
            AT_LEAST.in_words("the least test loss of a seed's sizes"),
            _loss_stays,
        ),
    }
    statement, holds_where, judge = losses[side]
    sizes = {
        "steps": (
            "the number of steps to ε is of the order of T",
            ORDER_OF_T.in_words("steps over T, of the quickest and of the slowest cell of a seed,"),
            order_of_steps,
        ),
        "test-loss": (statement, holds_where, judge),
    }
    symbol = "doesn't depend on σ_p² d" if side == "benign" else "scales as (σ_p² d)⁻¹"
    return (
        Claim(
            name=f"theorem-{side}-noise-power",
            kind="sharp",
            source=f"Jiang et al. 2024, Theorem {'4.1' if side == 'benign' else '4.2'}, its T",
            statement=f"{WHERE}, and overfitting is {side}, the number of steps to ε at a fixed "
            f"‖μ‖ {symbol}, as T does.",
            hypotheses=f"{CONDITION}; {product}",
            holds_where=_noise_margin(side).in_words("the power of σ_p² d"),
            measure=partial(_noise_power, side=side),
            preset=f"theorem-{side}",
        ),
        *(
            Claim(
                name=f"sizes-{side}-{name}",
                kind="ours",
                source="Jiang et al. 2024, after Condition 4.1: items 4 and 5 generalise",
                statement=f"With other M and ‖w_O‖ too, where overfitting is {side}, {what}.",
                hypotheses="weights as Condition 4.1 asks for, equally many labels of both kinds, "
                f"σ̃_p = 5√M σ_p; {product}; M and ‖w_O‖ leave items 4 and 5, and N is below log d",
                holds_where=where,
                measure=partial(_of_sizes, side=side, judge=of_cells),
                preset=f"theorem-sizes-{side}",
            )
            for name, (what, where, of_cells) in sizes.items()
        ),
    )


SIZES = (
    *_of_side("benign"),
    *_of_side("harmful"),
    Claim(
        name="lemma-c1-labels",
        kind="paper",
        source="Jiang et al. 2024, Lemma C.1",
        statement="If n > 8 log(4/δ), then with probability at least 1 − δ each label is had by at "
        "least a quarter and at most three quarters of n samples.",
        hypotheses="labels are fair coins; δ = 4 exp(−n/8) at the largest n",
        holds_where="the share of seeds on which it is not so has its whole interval below δ; at "
        f"least {FEWEST_LABELS} seeds",
        measure=_labels,
        preset="fig1",
    ),
)
