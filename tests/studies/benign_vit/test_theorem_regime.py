"""The theorems in their own regime: Condition 4.1 is met, and verdicts follow the numbers."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from overfit_cli.studies.benign_vit.vit.study import study
from overfit_cli.studies.benign_vit.vit.theory import (
    Regime,
    condition_in_words,
    condition_items,
    predicted_steps,
)
from tests.command import run
from tests.judged import measure
from tests.studies.benign_vit.cells import BY_NAME, preset, settings, small


def test_every_cell_of_the_theorems_regime_meets_condition_4_1() -> None:
    cells = settings(preset("theorem-regime"))
    assert len(cells) == 528
    for cell in cells:
        missed = [
            str(item) for item in condition_items(cell, cell.output_scale) if item.decades > 0
        ]
        assert not missed


def test_weights_drawn_as_the_condition_asks_lie_within_its_bounds() -> None:
    for snr in (0.1, 1.0, 10.0):
        first = small(d=10**12, d_h=10**8, snr=snr, output_scale=2.0)
        items = {item.number: item for item in condition_items(first, 2.0)}
        assert items[7].decades == items[8].decades == 0
        assert items[8].slack > 0.1, "in the middle of the window"


def test_the_condition_is_gone_through_and_shown_where_it_is_tightest() -> None:
    notes = study.notes(preset("theorem-regime"))
    assert "is met by 528 of 528 cells" in notes[0]
    for number, words in ((1, "1.48e+10 ≤ d_h: here 1.5e+10"), (9, "ε ≤ 0.0241: here 0.024")):
        [line] = [line for line in notes if line.startswith(f"  ({number}) ")]
        assert words in line
    narrow = study.notes(preset("theorem-regime", d="1e15"))
    assert "is met by 0 of 528 cells" in narrow[0]
    assert "missed by 3.0 decades; 528 cells miss it" in narrow[2]
    assert not study.notes(preset("fig1"))


def test_the_tightest_cell_is_the_one_that_misses_most() -> None:
    cells = [small(d=10**9, d_h=d_h) for d_h in (10**3, 10**9)]
    [line] = [line for line in condition_in_words(cells) if line.startswith("  (1) ")]
    assert "here 1e+03" in line
    assert "2 cells miss it" in line


@functools.cache
def theorems_cells() -> pd.DataFrame:
    """The preset's cells as the theorems have them: a boundary at 300, a loss that goes with ε."""
    rows = []
    cells = preset("theorem-regime", snr="0.26,0.45,1.3,1.6,1.75,1.9,2.5,2.95,3.2,3.9")
    for setting, cell in zip(settings(cells), cells, strict=True):
        product = setting.n * setting.snr**2
        benign = 0.1 * (setting.epsilon / 0.024) ** 0.5
        regime: Regime = "benign" if product > 300 else "harmful"
        shares = np.interp(np.log(product), np.log([100, 600]), [0, 1])
        rows.append(
            setting.model_dump()
            | {"seed": cell.seed, "status": "done", "reason": ""}
            | {"steps": round(2 * predicted_steps(setting, 1.0, regime))}
            | {"test_loss": 0.69 * (benign / 0.69) ** shares, "test_error": 0.5 * (1 - shares)}
            | {"train_attention_signal": 0.95, "test_margin": np.log(1 / setting.epsilon)}
        )
    return pd.DataFrame(rows)


@functools.cache
def cells_of_the_transition(step: float) -> pd.DataFrame:
    """Cells across the boundary at 300, on ratios that lie a factor apart; twenty seeds."""
    ratios = 1.45 * step ** np.arange(int(np.log(3.4 / 1.45) / np.log(step)) + 1)
    cells = preset("theorem-transition", snr=",".join(f"{item:.6g}" for item in ratios))
    values = [
        item.model_dump() | {"seed": cell.seed}
        for item, cell in zip(settings(cells), cells, strict=True)
    ]
    frame = pd.DataFrame(values).assign(status="done", reason="", steps=1, test_error=0.0)
    products = np.log(frame["n"] * frame["snr"] ** 2)
    shares = np.interp(products, np.log([200, 450]), [0, 1])
    return frame.assign(test_loss=0.69 * (0.1 / 0.69) ** shares)


THEOREM = [name for name in BY_NAME if name.startswith("theorem-") and name != "theorem-transition"]


@pytest.mark.parametrize("name", THEOREM)
def test_the_theorems_hold_on_cells_that_follow_them(name: str) -> None:
    cells = theorems_cells()
    if name == "theorem-harmful-steps-strong-noise":  # σ̃_p is 10 σ_p
        cells = cells.assign(steps=cells["steps"] / 100)
    measurement = measure(name, cells)
    assert measurement.verdict == "holds", measurement.note


@pytest.mark.parametrize("name", THEOREM)
def test_the_theorems_are_not_judged_outside_of_their_condition(name: str) -> None:
    cells = theorems_cells()
    assert measure(name, cells.assign(d=10**12)).verdict == "not run"
    assert measure(name, cells.assign(initialisation="gaussian")).verdict == "not run"
    assert measure(name, cells[cells["snr"] < 1]).verdict == "not run"


def test_the_boundary_is_judged_where_the_condition_is_met_alone() -> None:
    cells = cells_of_the_transition(1.07)
    measurement = measure("theorem-transition", cells)
    assert measurement.verdict == "holds", measurement.note
    assert measurement.value == pytest.approx(2, abs=0.05)
    assert measure("theorem-transition", cells.assign(d=10**12)).verdict == "not run"
    guesses = measure("theorem-transition", cells.assign(test_loss=0.69))
    assert guesses.verdict == "inconclusive", "there is no boundary"


def test_a_boundary_on_a_coarse_grid_is_left_open() -> None:
    measurement = measure("theorem-transition", cells_of_the_transition(1.2))
    assert measurement.verdict == "inconclusive"
    assert "a factor of 1.2 apart" in measurement.note


def with_products(cells: pd.DataFrame, low: float, high: float, **values: object) -> pd.DataFrame:
    """The cells with other values where N · SNR² lies between two numbers."""
    products = cells["n"] * cells["snr"] ** 2
    changed = cells.copy()
    for name, value in values.items():
        changed[name] = changed[name].mask((products > low) & (products < high), value)
    return changed


def test_a_test_loss_that_never_comes_down_breaks_theorem_4_1() -> None:
    cells = theorems_cells().assign(test_loss=0.69)
    assert measure("theorem-benign-test-loss", cells).verdict == "fails"
    assert measure("theorem-harmful-test-loss", cells).verdict == "holds"


def test_the_test_losses_must_go_with_epsilon_as_stated() -> None:
    cells = theorems_cells()
    constant = with_products(cells, 600, np.inf, test_loss=0.15)
    assert measure("theorem-benign-test-loss", constant).verdict == "fails"
    falling = with_products(cells, 0, 60, test_loss=50 * cells["epsilon"])
    assert measure("theorem-harmful-test-loss", falling).verdict == "fails"
    weak = with_products(cells, 600, np.inf, test_loss=cells["epsilon"] ** 0.1 / 10)
    uneven = weak["test_loss"] * weak["epsilon"] ** (0.02 * (weak["seed"] - 4.5))
    assert measure("theorem-benign-test-loss", weak.assign(test_loss=uneven)).verdict == (
        "inconclusive"
    )


def test_holes_in_the_grid_do_not_pass_for_epsilon() -> None:
    """A loss that falls with the signal alone, and small ε that weren't run for weaker ones."""
    cells = theorems_cells()
    signal = with_products(cells, 600, np.inf, test_loss=0.3 / cells["snr"])
    holes = signal[(signal["epsilon"] > 0.02) | (signal["snr"] > 3.4) | (signal["snr"] < 2)]
    measurement = measure("theorem-benign-test-loss", holes)
    assert measurement.verdict == "fails"
    assert measurement.value == pytest.approx(0, abs=0.01)


def test_powers_are_not_judged_by_one_of_three_axes() -> None:
    cells = theorems_cells()
    some = cells[(cells["n"] == 96) & cells["snr"].isin([0.26, 3.2])]
    for side in ("benign", "harmful"):
        measurement = measure(f"theorem-{side}-powers", some)
        assert measurement.verdict == "not run"
        assert "one value of snr and one of n" in measurement.note


def test_steps_of_another_order_than_t_break_the_theorems() -> None:
    cells = theorems_cells()
    for side in ("benign", "harmful"):
        slow = cells.assign(steps=cells["steps"] * 6)
        assert measure(f"theorem-{side}-steps", slow).verdict == "fails"
        bent = cells.assign(steps=cells["steps"] * cells["epsilon"] ** -0.5)
        assert measure(f"theorem-{side}-powers", bent).verdict == "fails"


def test_failed_cells_leave_it_open_unless_they_took_longer_than_the_theorem_allows() -> None:
    cells = theorems_cells()
    stopped = {"status": "failed", "reason": "step limit"}
    early = with_products(cells, 900, np.inf, **stopped, steps=1000)
    assert measure("theorem-benign-steps", early).verdict == "inconclusive"
    for name in ("theorem-benign-powers", "theorem-benign-test-loss"):
        assert measure(name, early).verdict == "inconclusive"
    late = with_products(cells, 900, np.inf, **stopped, steps=cells["steps"] * 20)
    assert measure("theorem-benign-steps", late).verdict == "fails"
    none = cells.assign(status="failed", reason="step limit", steps=10)
    assert measure("theorem-benign-steps", none).note == "96 of 96 cells failed too early to tell."
    diverged = with_products(cells, 900, np.inf, status="failed", reason="diverged")
    assert measure("theorem-benign-steps", diverged).verdict == "inconclusive"


def test_a_probe_takes_seconds_whatever_the_cell_takes() -> None:
    [slow, *_] = preset("theorem-regime", leap="0")
    probed = study.probe(slow)
    assert settings([probed])[0].max_steps <= 10_000
    assert study.cost(probed) < study.cost(slow) / 1000
    [quick, *_] = preset("theorem-regime")
    assert study.probe(quick) is quick


def test_a_resumed_sweep_speaks_of_all_of_its_cells(tmp_path: Path) -> None:
    grid = ["--n=44", "--set=snr=1,3", "--set=epsilon=0.024", "--seeds=1", "--jobs=1", "--out=out"]
    first = run("sweep", "theorem-regime", *grid, "--set=leap=0.3", cwd=tmp_path).stdout
    again = run("sweep", "theorem-regime", *grid, "--set=leap=0.3", cwd=tmp_path).stdout
    assert "2 trained" in first
    assert "0 trained" in again
    for sentence in (first, again):
        assert "is met by 2 of 2 cells" in sentence
        assert "\n  (1) " in sentence
