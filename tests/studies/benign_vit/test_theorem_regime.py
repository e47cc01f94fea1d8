"""The theorems in their own regime: Condition 4.1 is met, and verdicts follow the numbers."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from overfit_cli.core.arrays import Floats
from overfit_cli.core.cell import Cell, CellResult
from overfit_cli.studies.benign_vit.vit.parameters import BenignVitParameters
from overfit_cli.studies.benign_vit.vit.study import study
from overfit_cli.studies.benign_vit.vit.theory import (
    Regime,
    condition_in_words,
    condition_items,
    meets_condition,
    predicted_steps,
    stage_3_error,
)
from overfit_cli.studies.benign_vit.vit.theory import test_attention_error as attention_error
from tests.command import run
from tests.judged import measure
from tests.studies.benign_vit.cells import BY_NAME, preset, settings, small

REGIMES: tuple[Regime, ...] = ("benign", "harmful")


def test_weights_drawn_as_the_condition_asks_lie_within_its_bounds() -> None:
    for snr in (0.1, 1.0, 10.0):
        first = small(d=10**12, d_h=10**8, snr=snr, output_scale=2.0)
        items = {item.number: item for item in condition_items(first, 2.0)}
        assert items[7].decades == items[8].decades == 0
        assert items[8].slack > 0.1, "in the middle of the window"


def test_the_condition_is_gone_through_and_shown_where_it_is_tightest() -> None:
    notes = study.notes(preset("theorem-regime"))
    assert "is met by 264 of 264 cells" in notes[0]
    for number, words in ((1, "1.48e+10 ≤ d_h: here 1.5e+10"), (9, "ε ≤ 0.0241: here 0.012")):
        [line] = [line for line in notes if line.startswith(f"  ({number}) ")]
        assert words in line
    narrow = study.notes(preset("theorem-regime", d="1e15"))
    assert "is met by 0 of 264 cells" in narrow[0]
    assert "missed by 3.0 decades; 264 cells miss it" in narrow[2]
    assert not study.notes(preset("fig1"))


def test_the_tightest_cell_is_the_one_that_misses_most() -> None:
    cells = [small(d=10**9, d_h=d_h) for d_h in (10**3, 10**9)]
    [line] = [line for line in condition_in_words(cells) if line.startswith("  (1) ")]
    assert "here 1e+03" in line
    assert "2 cells miss it" in line


@functools.cache
def theorems_cells() -> pd.DataFrame:
    """Both theorems' cells as the theorems have them: benign losses go with ε."""
    rows, noise = [], np.random.default_rng(0)
    for name in ("theorem-benign", "theorem-benign-stage3", "theorem-harmful"):
        cells, regime = preset(name), side_of(name)
        for setting, cell in zip(settings(cells), cells, strict=True):
            scatter = 1 + 0.001 * ((cell.seed + 1) * (1 + setting.n / 1000) + noise.normal())
            steps = predicted_steps(setting, setting.output_scale, regime)
            benign = regime == "benign"
            rows.append(
                setting.model_dump()
                | {"seed": cell.seed, "status": "done", "reason": "", "steps": 2 * scatter * steps}
                | {"test_loss": (setting.epsilon**0.4 if benign else 0.69) * scatter}
                | {"test_margin": -0.4 * scatter * np.log(setting.epsilon), "test_error": 0.1}
            )
    return pd.DataFrame(rows)


def around(number: float, cells: pd.DataFrame) -> Floats:
    """A number for each cell, which scatters by a thousandth of itself."""
    return number * (1 + 0.001 * np.random.default_rng(1).normal(size=len(cells)))


def cells_of_stage_3() -> pd.DataFrame:
    """Cells whose errors (65) and of lemma D.8 are below 1."""
    cells = theorems_cells()
    return cells[cells["tokens"] == 3]


def is_on_stage_3(name: str) -> bool:
    """Whether the claim rests on the error of stage 3."""
    return "benign" in name and BY_NAME[name].kind == "paper"


def cells_for(name: str) -> pd.DataFrame:
    """Cells on which the claim is judged."""
    cells = theorems_cells()
    if name.startswith("theorem-harmful-steps"):  # σ̃_p is 10 σ_p
        return cells.assign(steps=cells["steps"] / 100)
    return cells


def side_of(name: str) -> Regime:
    """The side that a claim or a preset is about."""
    return "benign" if "benign" in name else "harmful"


def of_side(cells: pd.DataFrame, side: Regime) -> pd.Series[bool]:
    return cells["snr"] > 1 if side == "benign" else cells["snr"] < 1


def with_changes(cells: pd.DataFrame, changed: pd.Series[bool], **values: object) -> pd.DataFrame:
    """The cells with other values where they are to be changed."""
    result = cells.copy()
    for name, value in values.items():
        result[name] = result[name].mask(changed, value)
    return result


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
OF_BENIGN = [name for name in THEOREM if "benign" in name]


@pytest.mark.parametrize("name", THEOREM)
def test_the_theorems_are_not_judged_outside_of_their_condition(name: str) -> None:
    cells, side = cells_for(name), side_of(name)
    assert measure(name, cells.assign(d=10**6)).verdict == "not run"
    assert measure(name, cells.assign(initialisation="gaussian", sigma_h=1.0)).verdict == "not run"
    assert measure(name, cells[~of_side(cells, side)]).verdict == "not run"


@pytest.mark.parametrize("name", OF_BENIGN)
def test_below_the_proofs_constant_every_benign_claim_of_the_paper_is_vacuous(name: str) -> None:
    """Lemma 5.2's N·SNR² > 60 M² C_p² stands under all of them."""
    cells = theorems_cells()
    cells = cells[cells["snr"] < 36]
    measurement = measure(name, cells)
    if BY_NAME[name].kind == "sharp":
        assert measurement.verdict == "not run", "the range is too small"
        return
    assert measurement.verdict == "vacuous"
    assert "below 60 M² C_p²" in measurement.note


@pytest.mark.parametrize("name", [name for name in OF_BENIGN if is_on_stage_3(name)])
def test_what_rests_on_stage_3_is_judged_where_the_papers_own_error_is_below_1(name: str) -> None:
    """With its log³ of 10⁵ it is 24 and more at 60 M² C_p² and a d_h of 10¹⁸."""
    cells = theorems_cells()
    measurement = measure(name, cells[cells["snr"] == 60])
    assert measurement.verdict == "vacuous"
    assert "which is 24.4 or more" in measurement.note
    [cell, *_] = settings(preset("theorem-benign-stage3"))
    assert stage_3_error(cell) == pytest.approx(
        30 * 36.8**2 * np.log(6 * 30**2 * 3**2 * 1e13) ** 3 / 3e9
    )


def test_a_claim_on_test_data_takes_a_d_that_lemma_d_8_can_do_with() -> None:
    """The error is √(d_h/d) min(SNR, 1/SNR) √2/log at item 8's upper bound, where √log cancels."""
    [cell, *_] = settings(preset("theorem-benign-stage3"))
    assert attention_error(cell) < 0.36
    upper = np.sqrt(2 * 9e18 / 1e13) / 36.8 / np.log(6 * 30**2 * 3**2 * 1e13)
    assert attention_error(cell) < upper
    cells = cells_of_stage_3()
    low = cells[cells["epsilon"] == 0.033].assign(d=10**12, n=28, snr=41.0, learning_rate=1.9e-13)
    assert measure("theorem-benign-steps", low).verdict == "holds"
    for name in ("theorem-benign-test-loss", "theorem-benign-test-margin"):
        measurement = measure(name, low)
        assert measurement.verdict == "vacuous"
        assert "by lemma D.8, which is 1.08" in measurement.note


def test_item_2_is_met_where_noise_tokens_are_as_good_as_orthogonal() -> None:
    [cell, *_] = settings(preset("theorem-benign"))
    items = {item.number: item for item in condition_items(cell, cell.output_scale)}
    assert items[2].decades > 6
    assert meets_condition(cell, cell.output_scale)
    crowded = cell.model_copy(update={"d": 10**10})
    assert not meets_condition(crowded, cell.output_scale)


def test_the_boundary_is_judged_where_the_condition_is_met_alone() -> None:
    cells = cells_of_the_transition(1.07)
    measurement = measure("theorem-transition", cells)
    assert measurement.verdict == "holds", measurement.note
    assert measurement.value == pytest.approx(2, abs=0.05)
    assert measure("theorem-transition", cells.assign(d=10**6)).verdict == "not run"
    guesses = measure("theorem-transition", cells.assign(test_loss=0.69))
    assert guesses.verdict == "inconclusive", "there is no boundary"
    coarse = measure("theorem-transition", cells_of_the_transition(1.2))
    assert coarse.verdict == "inconclusive"
    assert "a factor of 1.2 apart" in coarse.note


def test_there_is_a_t_where_training_takes_fewer_steps_than_t() -> None:
    """A hundredth of T refutes nothing: at T the loss is lower still."""
    cells = theorems_cells()
    for side in REGIMES:
        quick = cells.assign(steps=cells["steps"] / 200)
        assert measure(f"theorem-{side}-steps", quick).verdict == "holds"
        assert measure(f"theorem-{side}-powers", quick).verdict == "holds"
        slow = cells.assign(steps=cells["steps"] * 6)
        assert measure(f"theorem-{side}-steps", slow).verdict == "fails"
        bent = cells.assign(steps=cells["steps"] * cells["epsilon"] ** -0.5)
        assert measure(f"theorem-{side}-powers", bent).verdict == "fails"


def test_a_test_loss_of_order_one_is_not_o_of_1_and_the_other_way_round() -> None:
    cells = theorems_cells()
    flat = cells.assign(test_loss=around(0.15, cells))
    assert measure("theorem-benign-test-loss", flat).verdict == "fails"
    assert measure("theorem-harmful-test-loss", flat).verdict == "holds", "Θ(1) is at least 0.1"
    half = cells.assign(test_loss=around(0.45, cells))
    assert measure("theorem-harmful-test-loss", half).verdict == "holds"
    falling = cells.assign(test_loss=cells["epsilon"] * around(50, cells))
    assert measure("theorem-harmful-test-loss", falling).verdict == "fails"
    assert measure("theorem-benign-test-loss", falling).verdict == "holds"


def test_a_test_loss_that_stops_falling_is_no_o_of_1() -> None:
    """It falls as ε does at first, and rises again at the smallest ε."""
    cells = theorems_cells()
    rising = with_changes(cells, cells["epsilon"] < 0.003, test_loss=0.2 + cells["seed"] / 1e4)
    assert measure("theorem-benign-test-loss", rising).verdict == "fails"


def test_failed_cells_leave_it_open_unless_they_took_longer_than_the_theorem_allows() -> None:
    cells = theorems_cells()
    strong = cells["snr"].isin([36.8, 60])
    stopped = {"status": "failed", "reason": "step limit"}
    early = with_changes(cells, strong, **stopped, steps=1000)
    assert measure("theorem-benign-steps", early).verdict == "inconclusive"
    for name in ("theorem-benign-powers", "theorem-benign-test-loss"):
        assert measure(name, early).verdict == "inconclusive"
    late = with_changes(cells, strong, **stopped, steps=cells["steps"] * 20)
    assert measure("theorem-benign-steps", late).verdict == "fails"
    diverged = with_changes(cells, strong, status="failed", reason="diverged")
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


def test_a_conclusion_names_the_regime_and_its_numbers() -> None:
    cell = Cell("benign-vit", 1, BenignVitParameters(n=20, snr=10), 0)
    numbers = {"train_loss": 0.0094, "test_loss": 0.107, "test_error": 0.01}
    numbers["output_norm"] = 0.562
    benign = study.summary(CellResult(cell, numbers, 21))
    by_cut = "overfitting by figure 1b's cut (test loss"
    fitted = "fitted to a training loss of 0.0094 in 21 steps"
    assert benign.startswith(f"Benign {by_cut} up to 0.2): {fitted}")
    assert "test loss of 0.107" in benign
    assert "N·SNR² = 2000" in benign
    assert "Theorem 4.1's T, with a constant of 1, is 0.773 steps." in benign
    assert "5 of 10 items are met; missed:\n" in benign
    assert "(1) 4e+10 ≤ d_h: here 512, missed by 7.9 decades" in benign
    assert benign.count("missed by") == len(benign.splitlines()) - 2 == 5, "what is met is counted"
    harmful = study.summary(CellResult(cell, numbers | {"test_loss": 0.5}, 21))
    assert harmful.startswith(f"Harmful {by_cut} above 0.2): {fitted}")
    failed = study.summary(CellResult(cell, numbers, 9, "step limit"))
    assert failed.startswith("Not fitted (step limit)")
