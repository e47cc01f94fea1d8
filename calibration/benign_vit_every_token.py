"""Made-up worlds for `benign-vit`: propositions for every token."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from calibration.benign_vit_figures import STAGE_2, STAGE_3, logged
from calibration.rates import Worlds
from calibration.worlds import exception_worlds, number_worlds
from overfit_cli.claims.parts import Margin
from overfit_cli.core.parameters import parameters_from_row
from overfit_cli.studies.benign_vit.claims import every_token, lemmas
from overfit_cli.studies.benign_vit.lemma_numbers import WINS, values_until_t0
from overfit_cli.studies.benign_vit.parameters import BenignVitParameters
from overfit_cli.studies.benign_vit.theory import Regime

Numbers = NDArray[np.float64]
Bools = NDArray[np.bool_]
Random = np.random.Generator


def _since(steps: pd.DataFrame, stage: float) -> pd.Series[float]:
    """The logged steps since a stage began, in lengths of stage 2."""
    return (steps["part"] - stage).clip(lower=0) / STAGE_3


def _gaps(design: pd.DataFrame, powers: Numbers, random: Random, side: Regime) -> pd.DataFrame:
    """Logged steps in which the gap of tokens 3 to M grows with a power, and the others faster."""
    steps = logged(design, powers)
    since = _since(steps, STAGE_2)
    slow, fast = (np.log1p(since ** (steps["number"] + more)) for more in (0, 1))
    gaps = {"signal": fast, "noise": fast, "rest": slow}
    means = {
        f"product_{query}_{key}": fast if key == WINS[side] else 0.0
        for query in ("signal", "noise")
        for key in ("signal", "noise")
    }
    return steps.assign(**{f"{WINS[side]}_gap_{name}": gap for name, gap in gaps.items()}, **means)


def _rises(design: pd.DataFrame, falls: Bools, random: Random, side: Regime) -> pd.DataFrame:
    """Logged steps in which one score moves the wrong way where stage 3 begins."""
    steps = logged(design, falls.astype(np.float64))
    wrong = steps["number"] * (steps["part"] == STAGE_3)
    rise = np.abs(random.standard_normal(len(steps))) + 1e-3
    rises = np.where(wrong > 0, -0.01, rise)
    return steps.assign(score_most=20.0, **{f"{WINS[side]}_score_rise": rises})


def _norms(design: pd.DataFrame, breaks: Bools, random: Random) -> pd.DataFrame:
    """Logged steps in which a norm's square grows to three times its first, or by a tenth."""
    steps = logged(design, breaks.astype(np.float64))
    share = steps["part"] / steps["part"].max()
    return steps.assign(
        head_norm_most=1 + share * np.where(steps["number"] > 0, 2, 0.1),
        head_norm_least=1 - 0.1 * share,
    )


def _stray(design: pd.DataFrame, breaks: Bools, random: Random) -> pd.DataFrame:
    """Logged steps in which training moves a product by 2, or by a fiftieth."""
    steps = logged(design, breaks.astype(np.float64))
    share = steps["part"] / steps["part"].max()
    return steps.assign(stray_product_move=share * np.where(steps["number"] > 0, 2, 0.02))


def _scores(design: pd.DataFrame, breaks: Bools, random: Random) -> pd.DataFrame:
    """Logged steps whose largest score ends at 0.7 or at 1.2 of the propositions' bound."""
    steps = logged(design, breaks.astype(np.float64))
    bound = np.log(steps["d_h"].astype(float)) / 2 - np.log(steps["epsilon"])
    largest = bound * np.where(steps["number"] > 0, 1.2, 0.7) * steps["part"] / steps["part"].max()
    return steps.assign(score_most=largest, score_range_most=largest)


def _leads(design: pd.DataFrame, leads: Numbers, random: Random) -> pd.DataFrame:
    """Logged steps whose lead in stage 3 is so many times 3M."""
    steps = logged(design, leads)
    lead = steps["signal_lead"].where(
        steps["part"] < STAGE_3, 3 * steps["tokens"] * steps["number"]
    )
    return steps.assign(signal_lead=lead, noise_lead=lead)


def _values(design: pd.DataFrame, powers: Numbers, random: Random) -> pd.DataFrame:
    """Logged steps in which what wins grows with a power in stage 2."""
    steps = logged(design, powers)
    grown = _since(steps, STAGE_2) ** steps["number"]
    return steps.assign(value_plus=grown, value_minus=-0.9 * grown, value_noise=grown)


def _stage_3_values(design: pd.DataFrame, powers: Numbers, random: Random) -> pd.DataFrame:
    """Logged steps in which the exponential of token 2's value grows with a power in stage 3."""
    steps = logged(design, powers)
    return steps.assign(strong_value_least=np.log1p(_since(steps, STAGE_3) ** steps["number"]))


def _first_values(
    design: pd.DataFrame, shares: Numbers, random: Random, side: Regime
) -> pd.DataFrame:
    """Logged steps whose largest value is such a share of its bound up to T₀."""
    steps = logged(design, shares)
    first = steps.iloc[:1].assign(noise_value_most=1.0, rest_value_most=0.0, step=0)
    parameters = parameters_from_row(BenignVitParameters, first.iloc[0])
    bound = 1 / values_until_t0(first, parameters, side)
    return steps.assign(noise_value_most=bound * steps["number"], rest_value_most=0.0)


def _largest_values(design: pd.DataFrame, breaks: Bools, random: Random) -> pd.DataFrame:
    """Logged steps whose largest value ends at log(1/ε), or at three times that."""
    steps = logged(design, breaks.astype(np.float64))
    most = -np.log(steps["epsilon"]) * np.where(steps["number"] > 0, 3, 1)
    return steps.assign(noise_value_most=most * steps["part"] / steps["part"].max())


LINEAR = Margin(lemmas.LINEAR.least, every_token.AT_MOST_LINEAR.most)


def _of_side(side: Regime) -> dict[str, Worlds]:
    prefix = "lemma53" if side == "benign" else "harmful"
    return {
        f"{prefix}-every-product": number_worlds(partial(_gaps, side=side), lemmas.QUADRATIC, 0.03),
        f"scores-rise-{side}": exception_worlds(partial(_rises, side=side)),
        f"norms-stay-{side}": exception_worlds(_norms),
        f"stray-products-{side}": exception_worlds(_stray),
        f"largest-scores-{side}": exception_worlds(_scores),
        f"stage3-lead-{side}": number_worlds(_leads, lemmas.LEAD, 0.2, logs=True),
        f"{prefix}-values": number_worlds(_values, LINEAR, 0.01),
        f"values-until-t0-{side}": number_worlds(
            partial(_first_values, side=side), every_token.WITHIN_TAIL, 0.05
        ),
    }


EVERY_TOKEN: Mapping[str, Worlds] = {
    **_of_side("benign"),
    **_of_side("harmful"),
    "harmful-values-stage3": number_worlds(_stage_3_values, lemmas.LINEAR, 0.003),
    "harmful-largest-values": exception_worlds(_largest_values),
}
