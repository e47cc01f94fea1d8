"""Powers of several axes, T, and Condition 4.1 by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from overfit_cli.stats.boundaries import seeds_exponents
from overfit_cli.studies.benign_vit.vit.parameters import BenignVitParameters
from overfit_cli.studies.benign_vit.vit.theory import condition_items, predicted_steps


def test_exponents_are_those_that_made_the_numbers() -> None:
    draws = np.random.default_rng(0)
    rows = [
        {"seed": seed, "a": a, "b": b, "value": a**1.5 * b**-0.5 * np.exp(draws.normal(0, 0.01))}
        for seed in range(6)
        for a in (1.0, 2.0, 5.0)
        for b in (0.1, 0.4, 0.7)
    ]
    actual = seeds_exponents(pd.DataFrame(rows), ["a", "b"], "value")
    assert actual is not None
    for name, truth in (("a", 1.5), ("b", -0.5)):
        assert actual[name].shape == (6,)
        assert actual[name] == pytest.approx(truth, abs=0.05)


def test_axes_that_move_together_have_no_exponents() -> None:
    rows = [{"seed": 0, "a": a, "b": a**2, "value": a} for a in (1.0, 2.0, 3.0)]
    assert seeds_exponents(pd.DataFrame(rows), ["a", "b"], "value") is None


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
