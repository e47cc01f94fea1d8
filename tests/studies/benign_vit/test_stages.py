"""The numbers of the proofs' stages, on logged steps that are written by hand."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import pytest

from overfit_cli.studies.benign_vit.parameters import TOKEN_CLASSES
from overfit_cli.studies.benign_vit.stages import Stages, numbers, outgrown, until_stage_2_ends
from overfit_cli.studies.benign_vit.theory import Regime
from tests.judged import check_undecided
from tests.studies.benign_vit.cells import frame

PART = np.arange(0.0, 401.0, 8.0)
"""Logged steps, in units of T₁/40."""

STAGE_2, STAGE_3 = 40.0, 200.0
SINCE_2, SINCE_3 = ((PART - start).clip(0) / STAGE_3 for start in (STAGE_2, STAGE_3))
BEFORE = PART <= STAGE_2


@functools.cache
def cell(side: Regime) -> pd.DataFrame:
    """A cell of a preset, with a key."""
    return frame(f"theorem-dynamics-{side}")[:1].assign(key="k")


def steps_of(side: Regime, **columns: Any) -> pd.DataFrame:
    """Logged steps with three stages, even attention over M tokens, and what is given.

    The lead passes 3M at T₁, where stage 2 begins, and the loss's slope falls where stage 3 does.
    """
    first = cell(side)
    m = float(first["tokens"].iloc[0])
    even = {"signal": 1 / m, "noise": 1 / m, "rest": (m - 2) / m}
    unknown = pd.DataFrame({"step": [0], "loss_slope": [0.5], "signal_lead": 0, "noise_lead": 0})
    t1 = Stages.of(first.drop(columns="steps").merge(unknown, how="cross")).t1()
    logs = pd.DataFrame({"part": PART, "step": t1 * (PART / STAGE_2)}).assign(
        signal_lead=3 * m * PART / STAGE_2,
        noise_lead=3 * m * PART / STAGE_2,
        loss_slope=np.where(PART < STAGE_3, 0.5, 0.1),
        **{f"attention_{a}_{b}": even[b] for a in TOKEN_CLASSES for b in TOKEN_CLASSES},
    )
    last = logs["step"].iloc[-1]
    return first.assign(steps=last).merge(logs, how="cross").assign(**columns)


def gaps(wins: str, *powers: float) -> Mapping[str, Any]:
    return {
        f"{wins}_gap_{name}": np.log1p(SINCE_2**power)
        for name, power in zip(TOKEN_CLASSES, powers, strict=True)
    }


def late(power: float) -> np.ndarray:
    """What grows as the logarithm of a power of the steps of stage 3."""
    return np.log1p(SINCE_3**power)


SIGNAL, NOISE, PRODUCT = "product_signal", "product_noise", np.log1p(SINCE_2**3)
VALUES = {"value_plus": SINCE_2**2, "value_minus": -(SINCE_2**1.5)}
NORMS = {"head_norm_most": 1.3, "head_norm_least": np.where(PART > 300, 0.5, 1)}
MORE = np.where(BEFORE, 0.4, 0.9)


@pytest.mark.parametrize(
    ("side", "name", "columns", "expected"),
    [
        ("benign", "lead", {}, 1),
        ("harmful", "lead", {}, 1),
        ("benign", "stage_3_lead", {}, STAGE_3 / STAGE_2),
        ("benign", "stage_3_lead", {"signal_lead": np.where(PART < 300, 99, -1)}, 1e-12 / 9),
        ("benign", "slower_value", VALUES, 1.5),
        ("benign", "faster_value", VALUES, 2),
        ("benign", "slower_value", {**VALUES, "value_minus": -1.0}, 0),
        ("harmful", "slower_value", {"value_noise": SINCE_2**3}, 3),
        ("benign", "stage_3_value", {"value_plus": late(2), "value_minus": -late(1.5)}, 1.5),
        ("harmful", "stage_3_value", {"strong_value_least": late(2)}, 2),
        ("benign", "signal_query", {f"{SIGNAL}_signal": PRODUCT, f"{SIGNAL}_noise": 0}, 3),
        ("harmful", "noise_query", {f"{NOISE}_signal": 0, f"{NOISE}_noise": PRODUCT}, 3),
        ("benign", "every_query", gaps("signal", 4, 2, 3), 2),
        ("harmful", "every_query", gaps("noise", 4, 3, 2), 2),
        ("benign", "attention_off", {"attention_noise_signal": MORE}, 3 * 0.4 - 1),
        ("harmful", "attention_off", {"attention_rest_rest": 0.9}, 4 * 0.45 - 1),
        (
            "benign",
            "stage_3_attention",
            {"attention_rest_signal": np.where(PART > 300, 0.2, 1)},
            0.2,
        ),
        (
            "harmful",
            "stage_3_attention",
            {"attention_rest_noise": np.where(PART < 200, 0, 1)},
            0.25,
        ),
        ("benign", "rise", {"signal_score_rise": np.where(BEFORE, 1, 2), "score_most": 4}, 0.25),
        ("harmful", "rise", {"noise_score_rise": np.where(PART < 40, -1, 2), "score_most": 4}, 0.5),
        ("benign", "norm_change", NORMS, 1),
        ("benign", "move", {"stray_product_move": PART / 400}, 1),
        ("benign", "score_over_bound", {"score_most": math.log(9e18) * PART / 400}, 1.708),
        ("harmful", "score_over_bound", {"score_range_most": 2 * math.log(1e18) / 4}, 1),
        ("harmful", "value_over_bound", {"noise_value_most": -math.log(0.024) * PART / 400}, 0.5),
    ],
)
def test_a_number_is_that_which_made_the_steps(
    side: Regime, name: str, columns: dict[str, Any], expected: float
) -> None:
    [found] = numbers(name)(steps_of(side, **columns))[name]
    assert found == pytest.approx(expected, rel=2e-3)


def test_the_first_values_are_held_to_their_tail_and_what_is_learned() -> None:
    """By hand: 2σ_V‖w_O‖s √(log(2NM/δ)) + d_h^(−1/4), the longest token the signal."""
    steps = steps_of("benign", noise_value_most=0.5, rest_value_most=np.where(PART > 0, 99, 2.0))
    sigma_v = math.sqrt(41.0**-2 * 9e18**-0.5)
    tail = 2 * sigma_v * 41 * math.sqrt(math.log(2 * 28 * 3 * 1e12))
    [found] = numbers("first_value")(steps)["first_value"]
    assert found == pytest.approx(2 / (tail + 9e18**-0.25), rel=1e-6)


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("lead", {"loss_slope": 0.5}),
        ("lead", {"signal_lead": np.where(PART > 100, np.nan, 99)}),
        ("slower_value", {"signal_lead": 1.0, **VALUES}),
        ("slower_value", {"loss_slope": np.where(PART < 80, 0.5, 0.1), **VALUES}),
        ("stage_3_lead", {"loss_slope": 0.5}),
        ("lead", {"steps": 1e30}),
    ],
)
def test_a_number_is_unknown_where_the_steps_do_not_tell(
    name: str, changed: dict[str, Any]
) -> None:
    assert numbers(name)(steps_of("benign", **changed))[name].isna().all()


@pytest.mark.parametrize("side", ["benign", "harmful"])
def test_a_lead_is_judged_where_t1_comes_before_stage_2_ends(side: Regime) -> None:
    early = steps_of(side, loss_slope=np.where(PART < 20, 0.5, 0.1))
    check_undecided("vacuous", "T₁ comes after stage 2", lambda: until_stage_2_ends(early))
    at_once = steps_of(side, loss_slope=0.1)
    check_undecided("vacuous", "T₁ comes after stage 2", lambda: until_stage_2_ends(at_once))
    both = pd.concat([steps_of(side), early.assign(key="other", seed=1)])
    assert until_stage_2_ends(both)["key"].tolist() == ["k"]


def test_what_outgrows_another_is_told_of_all_logged_steps() -> None:
    """Of each pair: how much more it has grown, where it is ahead, and how far it falls."""
    part = PART / 400
    columns = {
        "value_plus": 2 * part,
        "value_minus": -part,
        "value_noise": np.where(part < 1, 9, 0),
    }
    pairs = [("value_plus", "value_noise"), ("value_minus", "value_noise")]

    def found(**changed: Any) -> tuple[float, float, float]:
        [row] = outgrown(pairs)(steps_of("benign", **{**columns, **changed})).to_dict("records")
        assert row["status"] == "done"
        return row["growth"], row["ahead"], row["fall"]

    assert found() == pytest.approx((1, 1, 0))
    assert found(value_minus=part) == pytest.approx((-1, 0.02, 1e12)), "wrong sign"
    late = np.where(part < 1, 3 * part, 0.5)
    assert found(value_noise=late) == pytest.approx((0.5, 0.02, 0)), "ahead at the end alone"
    hump = {"value_plus": np.where(part < 0.5, 4 * part, 2 - part)}
    assert found(**hump) == pytest.approx((1, 1, 0.5), abs=0.03)
    failed = {"status": "failed", "reason": "step limit"}
    assert found(**failed)[0] == 0, "a cell that isn't fitted"
    late_start = steps_of("benign", **columns).iloc[1:]
    killed = steps_of("benign", **columns, status="failed", reason="worker killed")
    no_step = steps_of("benign", **columns).iloc[:1].assign(steps=0)
    for unknown in (late_start, killed, no_step):
        assert outgrown(pairs)(unknown)[["growth", "ahead", "fall"]].isna().to_numpy().all()
    assert outgrown(pairs)(killed)["status"].eq("failed").all(), "its last lead decides nothing"


def test_attention_leaves_where_a_class_is_half_of_1_over_m_off() -> None:
    """Between logged steps, at 50/40 T₁; and never where it stays even."""
    found = [
        numbers("leaving")(steps_of("benign", attention_signal_signal=paid))["leaving"].item()
        for paid in ((1 + PART / 100) / 3, 1 / 3)
    ]
    assert found == [pytest.approx(1.25), pytest.approx(math.nan, nan_ok=True)]
