"""Condition 4.1, T, and claims on the theorems: verdicts follow the numbers."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from overfit_cli.core.cell import CellResult
from overfit_cli.studies.benign_vit import theory
from overfit_cli.studies.benign_vit.claims.theorems import (
    CONDITION_41,
    LARGE_PRODUCT,
    SMALL_PRODUCT,
)
from overfit_cli.studies.benign_vit.parameters import weight_deviations
from overfit_cli.studies.benign_vit.study import study
from tests.studies.benign_vit.cells import (
    P,
    holds,
    in_law,
    number,
    preset,
    settings,
)
from tests.training import cell_of


def missed(p: P) -> float:
    """The decades by which items 1 and 3 to 10 are missed, and item 2 in what it does.

    Item 2 makes noise tokens nearly orthogonal: all others together turn what one learns by about
    NM/√d of it, which is to be at most a hundredth of ε.
    """
    is_orthogonal = p.n * p.tokens / math.sqrt(p.d) <= 0.01 * p.epsilon
    items = theory.condition_items(p, p.output_scale)
    return sum(item.decades for item in items if item.number != 2 or not is_orthogonal)


def balance(p: P) -> float:
    """N·SNR² over the balance of learning."""
    return p.n * p.snr**2 / float(theory.learning_balance(p.strong_noise, p.tokens))


def on_test_data(p: P) -> float:
    """‖μ‖ σ_p σ_h² d_h √(2 log(12N²M/δ)), which Lemma D.8 takes to be o(1) by item 2."""
    head, _ = weight_deviations(p)
    strengths = p.signal_norm * p.noise_norm / math.sqrt(p.d)
    return strengths * head**2 * p.d_h * math.sqrt(2 * math.log(12.0 * p.n**2 * p.tokens * p.d))


HYPOTHESES: dict[str, Callable[[P], bool]] = {
    "Condition 4.1": lambda p: not missed(p),
    "large N·SNR²": lambda p: balance(p) >= 3,
    "small N·SNR²": lambda p: balance(p) <= 0.25,
    "Lemma 5.2": lambda p: p.n * p.snr**2 > 60 * (p.tokens * p.strong_noise) ** 2,
    "(111)": lambda p: number(theory.STAGE_3_ERROR, p) < 1,
    "Lemma D.8": lambda p: on_test_data(p) < 1,
    "(169)": lambda p: number(theory.STAGE_3_ERROR, p) / (p.n * p.snr**4 * p.output_scale**2) < 1,
}


@pytest.mark.parametrize(
    ("name", "required"),
    [
        ("theorem-benign", "Condition 4.1, large N·SNR²"),
        ("theorem-benign-stage3", "Condition 4.1, Lemma 5.2, (111), Lemma D.8"),
        ("theorem-harmful", "Condition 4.1, small N·SNR²"),
        ("theorem-dynamics-benign", "Condition 4.1, Lemma 5.2, (111)"),
        ("theorem-dynamics-harmful", "Condition 4.1, small N·SNR², (169)"),
        ("theorem-transition", "Condition 4.1"),
        ("theorem-small-values", "Condition 4.1, small N·SNR²"),
        ("theorem-small-products", "Condition 4.1, large N·SNR², (111), Lemma D.8"),
        ("theorem-first-stage", "Condition 4.1"),
        ("wide-heads", "large N·SNR²"),
        ("attention-deficit", "large N·SNR²"),
    ],
)
def test_cells_of_a_preset_meet_the_hypotheses_of_its_claims(name: str, required: str) -> None:
    for cell in settings(name):
        assert all(HYPOTHESES[each](cell) for each in required.split(", ")), cell


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("theorem-benign", {"snr": "0.05,3.8,600"}),
        ("theorem-harmful", {"snr": "0.001,0.05,60"}),
        ("theorem-harmful", {"epsilon": "0.00004,0.003,0.1"}),
        ("theorem-harmful", {"learning_rate": "1e-9,2e-9", "output_scale": "0.05,1,20"}),
        ("theorem-harmful", {"n": "20,44"}),
    ],
)
def test_of_a_users_own_values_those_count_that_meet_the_hypotheses(
    name: str, changed: dict[str, str]
) -> None:
    """A cell on the other side, or that misses an item of Condition 4.1, is not judged."""
    large = name == "theorem-benign"
    side = HYPOTHESES["large N·SNR²" if large else "small N·SNR²"]
    chosen = set()
    cells = preset(name, **changed)
    for cell in (each.parameters for each in cells if each.seed == cells[0].seed):
        conditions = (*CONDITION_41, LARGE_PRODUCT if large else SMALL_PRODUCT)
        meets = all(holds(text, cell) for text in conditions)
        assert meets == (not missed(cell) and side(cell)), cell
        chosen.add(meets)
    assert chosen == {True, False}


def test_hypotheses_are_missed_where_the_derivations_say() -> None:
    """With its log³ of 10⁵ (65) is 24 and more at 60 M² C_p² and a d_h of 10¹⁸."""
    assert missed(settings("theorem-benign", d="1e10")[0]) > 0
    errors = [number(theory.STAGE_3_ERROR, p) for p in settings("theorem-benign", snr="60")]
    assert min(errors) == pytest.approx(24.4, abs=0.1)
    [stage_3, *_], [dynamics, *_] = map(
        settings, ("theorem-benign-stage3", "theorem-dynamics-benign")
    )
    assert number(theory.STAGE_3_ERROR, stage_3) == pytest.approx(0.91, abs=0.01)
    assert on_test_data(stage_3) == pytest.approx(0.35, abs=0.01)
    assert on_test_data(dynamics) == pytest.approx(1.08, abs=0.01)


def test_weights_drawn_as_the_condition_asks_lie_within_its_bounds() -> None:
    for snr in (0.1, 1.0, 10.0):
        first = in_law(d=10**12, d_h=10**8, snr=snr, output_scale=2.0)
        items = {item.number: item for item in theory.condition_items(first, 2.0)}
        assert items[7].decades == items[8].decades == 0
        assert items[8].slack > 0.1, "in the middle of the window"


def test_the_condition_is_gone_through_and_shown_where_it_is_tightest() -> None:
    notes = study.notes(preset("theorem-regime"))
    assert "is met by 264 of 264 cells" in notes[0]
    for item, words in ((1, "1.48e+10 ≤ d_h: here 1.5e+10"), (9, "ε ≤ 0.0241: here 0.012")):
        [line] = [line for line in notes if line.startswith(f"  ({item}) ")]
        assert words in line
    narrow = study.notes(preset("theorem-regime", d="1e15"))
    assert "is met by 0 of 264 cells" in narrow[0]
    assert "missed by 3.0 decades; 264 cells miss it" in narrow[2]
    assert not study.notes(preset("fig1"))


def test_a_probe_takes_seconds_whatever_the_cell_takes() -> None:
    [slow, *_] = preset("theorem-regime", leap="0")
    probed = study.probe(slow)
    assert probed.parameters.max_steps <= 10_000
    assert study.cost(probed) < study.cost(slow) / 1000
    [quick, *_] = preset("theorem-regime")
    assert study.probe(quick) is quick


def test_a_conclusion_names_the_regime_and_its_numbers() -> None:
    cell = cell_of(study, {"n": 20, "snr": 10})
    numbers = {"train_loss": 0.0094, "test_loss": 0.107, "test_error": 0.01, "output_norm": 0.562}
    benign = study.summary(CellResult(cell, numbers, 21))
    said = (
        "Benign overfitting by figure 1b's cut (test loss up to 0.2): fitted to a training loss of "
    )
    assert benign.startswith(f"{said}0.0094 in 21 steps")
    assert "N·SNR² = 2000" in benign and "a constant of 1, is 0.773 steps." in benign
    assert "(1) 4e+10 ≤ d_h: here 512, missed by 7.9 decades" in benign
    assert benign.count("missed by") == len(benign.splitlines()) - 2 == 5, "what is met is counted"
    harmful = study.summary(CellResult(cell, numbers | {"test_loss": 0.5}, 21))
    assert harmful.startswith("Harmful overfitting by figure 1b's cut (test loss above 0.2)")
    weak = study.summary(CellResult(cell_of(study, {"n": 20, "snr": 1}), numbers, 21))
    assert "Theorem 4.2's T, with a constant of 1, is 1.55e+03 steps." in weak
    failed = study.summary(CellResult(cell, numbers, 9, "step limit"))
    assert failed.startswith("Not fitted (step limit)")


def test_condition_4_1_item_by_item() -> None:
    """By hand, for the paper's own cell: N 20, SNR 10, d 1024, d_h 512, ε 0.01, η 0.1."""
    items = {item.number: item for item in theory.condition_items(P(), 0.5)}
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
    met = P(n=20, snr=1, learning_rate=1e-9, epsilon=0.1)
    missed_items = [item.number for item in theory.condition_items(met, 1.0) if item.decades]
    assert missed_items == [1, 2, 4, 8]
