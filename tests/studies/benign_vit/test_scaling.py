"""Powers of steps are found where they are, and the theorems' verdicts follow them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np
import pandas as pd
import pytest

from overfit_cli.stats.boundaries import scaling_exponents
from overfit_cli.studies.benign_vit.vit.claims.dynamics import SETTING
from overfit_cli.studies.benign_vit.vit.parameters import BenignVitParameters
from overfit_cli.studies.benign_vit.vit.theory import (
    STEP_POWERS,
    Regime,
    condition_items,
    predicted_steps,
    step_scaling,
)
from tests.judged import measure

GRIDS: dict[Regime, dict[str, tuple[float, ...]]] = {
    "benign": {"n": (16, 24, 32), "snr": (16, 20, 25)},
    "harmful": {"n": (4, 8, 16), "snr": (0.5, 1, 2)},
}


def cells(
    regime: Regime, *, least: float = 200, seeds: int = 5, bent: Mapping[str, float] | None = None
) -> pd.DataFrame:
    """A sweep whose steps follow the theorem's law, but for the powers in `bent`."""
    draws = np.random.default_rng(1)
    defaults = BenignVitParameters().model_dump() | SETTING
    axes = {**GRIDS[regime], "epsilon": (0.01, 0.003), "learning_rate": (0.001, 0.002, 0.004)}
    powers = {**STEP_POWERS[regime], **(bent or {})}
    rows = []
    for seed, *values in itertools.product(range(seeds), *axes.values()):
        point = dict(zip(axes, values, strict=True))
        size = np.prod([point[name] ** powers[name] for name in point])
        rows.append(
            {**defaults, **point, "seed": seed, "status": "done"}
            | {"steps": size * np.exp(draws.normal(0, 0.02))}
        )
    frame = pd.DataFrame(rows)
    frame["steps"] = (frame["steps"] / frame["steps"].min() * least).round().astype(int)
    return frame


def test_exponents_are_those_that_made_the_numbers() -> None:
    draws = np.random.default_rng(0)
    rows = [
        {"seed": seed, "a": a, "b": b, "value": a**1.5 * b**-0.5 * np.exp(draws.normal(0, 0.01))}
        for seed in range(6)
        for a in (1.0, 2.0, 5.0)
        for b in (0.1, 0.4, 0.7)
    ]
    actual = scaling_exponents(pd.DataFrame(rows), ["a", "b"], "value")
    assert actual is not None
    for name, truth in (("a", 1.5), ("b", -0.5)):
        assert actual[name].value == pytest.approx(truth, abs=0.02)
        assert actual[name].low < truth < actual[name].high
        assert actual[name].seeds == 6


def test_axes_that_move_together_have_no_exponents() -> None:
    rows = [{"seed": 0, "a": a, "b": a**2, "value": a} for a in (1.0, 2.0, 3.0)]
    assert scaling_exponents(pd.DataFrame(rows), ["a", "b"], "value") is None


@pytest.mark.parametrize("regime", ["benign", "harmful"])
def test_steps_that_follow_the_theorem_hold_and_others_fail(regime: Regime) -> None:
    for axis, power in STEP_POWERS[regime].items():
        name = f"steps-{regime}-{axis.replace('_', '-')}"
        if axis == "epsilon":
            continue  # two values of it: too few
        holds = measure(name, cells(regime))
        assert holds.verdict == "holds", holds.note
        assert holds.value == pytest.approx(power, abs=0.02)
        assert measure(name, cells(regime, bent={axis: power + 0.4})).verdict == "fails"
    assert measure(f"steps-{regime}-epsilon", cells(regime)).verdict == "not run"


def test_too_few_steps_are_inconclusive_with_the_reason_and_what_would_tell() -> None:
    measurement = measure("steps-benign-snr", cells("benign", least=12))
    assert measurement.verdict == "inconclusive"
    assert "Some cells take 12 steps" in measurement.note
    assert "overfit sweep scaling-benign" in measurement.note
    assert measure("steps-benign-snr", cells("benign", seeds=4)).verdict == "inconclusive"


def test_a_law_is_not_read_off_the_cells_that_were_quick_enough() -> None:
    frame = cells("benign")
    frame.loc[frame["steps"] > frame["steps"].quantile(0.6), "status"] = "failed"
    frame["reason"] = "step limit"
    measurement = measure("steps-benign-snr", frame)
    assert measurement.verdict == "inconclusive"
    assert "cells of the regime failed" in measurement.note


def test_an_axis_of_two_values_does_not_bend_the_other_powers() -> None:
    frame = cells("benign")
    frame = frame[(frame["epsilon"] == 0.01) | (frame["learning_rate"] != 0.001)]
    measurement = measure("steps-benign-learning-rate", frame)
    assert measurement.verdict == "holds", measurement.note


def test_a_sweep_in_which_something_else_varies_tells_no_law() -> None:
    frame = cells("benign")
    frame.loc[frame["seed"] == 0, "tokens"] = 8
    assert step_scaling(frame, "benign") is None
    assert step_scaling(cells("benign"), "harmful") is None


def test_the_theorems_steps_are_their_formula() -> None:
    benign = BenignVitParameters(n=20, snr=10)
    assert predicted_steps(benign, 0.5) == pytest.approx(
        1 / (0.1 * 0.01 * 0.25 * (10 * 0.2 * 32) ** 2)
    )
    harmful = BenignVitParameters(n=20, snr=1)
    assert predicted_steps(harmful, 0.5) == pytest.approx(20 / (0.1 * 0.01 * 0.25 * 0.2**2 * 1024))


def test_condition_4_1_item_by_item() -> None:
    """By hand, for the paper's own cell: N 20, SNR 10, d 1024, d_h 512, ε 0.01, η 0.1."""
    items = {item.number: item for item in condition_items(BenignVitParameters(), 0.5)}
    assert list(items) == list(range(1, 11))
    assert items[1].low == pytest.approx(10**4 * 20**2 / 0.01**2)
    assert items[1].decades == pytest.approx(np.log10(4e10 / 512))
    assert items[2].low == pytest.approx(20**2 * 512 / 0.01**2)
    assert items[3].decades == 0  # 20 > log 1024
    strength = 1 / 64**2  # ‖μ‖ = 10 · 0.2 · 32 = 64; σ_p √d is 6.4
    assert items[6].high == pytest.approx(strength / np.sqrt(512))
    assert items[7].value == pytest.approx(1 / np.sqrt(3 * 1024) / 16)
    assert items[7].high == pytest.approx(np.sqrt(strength) * 512**-0.25 / 0.5)
    logarithm = np.log(6 * 20**2 * 16**2 * 1024)
    assert items[8].low == pytest.approx(strength / np.sqrt(512) / logarithm**2)
    assert items[8].high == pytest.approx(strength / np.sqrt(512) / logarithm**1.5)
    assert items[10].decades == 0  # 4 / 0.2 = 20 = 5 √16
    assert "missed by 7.9 decades" in str(items[1])
    met = BenignVitParameters(n=20, snr=1, learning_rate=1e-9, epsilon=0.1)
    assert {item.number for item in condition_items(met, 1.0) if item.decades > 0} == {1, 2, 4, 8}


def dynamics(regime: Regime, seeds: int = 10, **ends: float) -> pd.DataFrame:
    """Appendix A's cells with the same measurements on every seed."""
    point = {"n": 16, "snr": 25.0} if regime == "benign" else {"n": 10, "snr": 15.0}
    point["snr"] /= 0.05 * 2048**0.5
    wins, loses = (0.6, 0.1) if regime == "benign" else (0.1, 0.6)
    row = BenignVitParameters().model_dump() | SETTING | point | {"status": "done", "steps": 25}
    row |= {"train_attention_signal": wins, "train_attention_noise": loses}
    row |= {"value_plus": 10 * wins, "value_minus": -10 * wins, "value_noise": 10 * loses, **ends}
    return pd.DataFrame([{**row, "seed": seed} for seed in range(seeds)])


@pytest.mark.parametrize("regime", ["benign", "harmful"])
def test_dynamics_hold_where_every_seed_ends_on_the_right_side(regime: Regime) -> None:
    for what in ("attention", "value"):
        name = f"dynamics-{regime}-{what}"
        holds = measure(name, dynamics(regime))
        assert (holds.verdict, holds.value) == ("holds", 1.0)
        assert holds.details["steps to ε, mean"] == 25
        assert measure(name, dynamics(regime, seeds=3)).verdict == "inconclusive"
        assert measure(name, cells("benign" if regime == "harmful" else "harmful")).verdict == (
            "not run"
        )


def test_one_seed_on_the_wrong_side_breaks_the_claim() -> None:
    frame = dynamics("benign")
    frame.loc[3, "value_minus"] = -0.5  # one signal's value below the noise's
    measurement = measure("dynamics-benign-value", frame)
    assert (measurement.verdict, measurement.value) == ("inconclusive", 0.9)
    frame.loc[:6, "value_minus"] = -0.5
    assert measure("dynamics-benign-value", frame).verdict == "fails"
    failed = dynamics("benign")
    failed.loc[0, "status"] = "failed"
    failed["reason"] = "step limit"
    measurement = measure("dynamics-benign-attention", failed)
    assert (measurement.verdict, measurement.details["cells that aren't fitted"]) == (
        "inconclusive",
        1,
    )
    none = measure("dynamics-benign-attention", failed.assign(status="failed"))
    assert (none.verdict, none.value) == ("fails", 0.0)
    wrong_sign = dynamics("harmful", value_plus=-50.0, value_minus=50.0)
    assert measure("dynamics-harmful-value", wrong_sign).verdict == "fails"
    elsewhere = dynamics("benign").assign(n=17)
    assert measure("dynamics-benign-value", elsewhere).verdict == "not run"
