"""Worlds made to fool the claims on figure 1 and the lemmas."""

from __future__ import annotations

import functools

import numpy as np
import pandas as pd
import pytest

from calibration.benign_vit import WORLDS
from calibration.benign_vit_figures import figure_1
from calibration.rates import design
from overfit_cli.core.claim import Verdict
from overfit_cli.core.training import named_rng
from tests.judged import measure
from tests.studies.benign_vit.cells import BY_NAME

FIGURE_1 = [name for name in BY_NAME if name.startswith("fig1-")]


@functools.cache
def grid(power: float = 2.0) -> pd.DataFrame:
    """Figure 1's cells, with a boundary of this power."""
    return figure_1(design("fig1"), named_rng(8, "grid"), power=power)


def failed(cells: pd.DataFrame, share: float) -> pd.DataFrame:
    """The cells, of which a share, at random, ran out of memory."""
    lost = named_rng(4, "failed").random(len(cells)) < share
    nothing = {name: cells[name].mask(lost) for name in ("train_loss", "test_loss", "steps")}
    status = np.where(lost, "failed", "done")
    return cells.assign(**nothing, status=status, reason=np.where(lost, "MemoryError", ""))


@pytest.mark.parametrize(
    "share", [0.02, *(pytest.param(share, marks=pytest.mark.slow) for share in (0.01, 0.05, 0.08))]
)
@pytest.mark.slow
def test_cells_that_ran_out_of_memory_do_not_refute_figure_1(share: float) -> None:
    cells = failed(grid(), share)
    verdicts = {name: measure(name, cells).verdict for name in FIGURE_1}
    assert "fails" not in verdicts.values()
    assert verdicts["fig1-exponent"] == "holds"
    assert verdicts["fig1-fitted"] == "inconclusive"


def test_a_few_lost_cells_leave_the_share_of_sides_as_it_is() -> None:
    measurement = measure("fig1-sides", failed(grid(), 0.01))
    assert measurement.verdict == "holds"
    assert measurement.details["cells that failed or are absent"] > 100


def test_another_power_does_not_pass_for_2() -> None:
    cells = grid(power=1.5)
    assert measure("fig1-exponent", cells).verdict == "fails"
    assert measure("fig1-sides-power", cells).verdict == "fails"
    measurement = measure("fig1-sides-power", grid())
    assert measurement.verdict != "fails"
    assert measurement.details["the best other power"] in (1.5, 2.5)


@pytest.mark.parametrize(
    "changed",
    [
        {"labels": "balanced"},
        *(
            pytest.param(setting, marks=pytest.mark.slow)
            for setting in ({"max_steps": 20_000}, {"d": 2048})
        ),
    ],
)
@pytest.mark.slow
def test_one_row_of_another_setting_changes_no_claim_on_figure_1(
    changed: dict[str, str | int],
) -> None:
    row: pd.DataFrame = grid().iloc[:1].assign(**changed)
    further = pd.concat([grid(), row], ignore_index=True)
    for name in FIGURE_1:
        assert measure(name, further).verdict == measure(name, grid()).verdict


@pytest.mark.slow
def test_a_fall_that_hangs_on_lost_cells_is_left_open() -> None:
    cells = grid()
    flat = cells.assign(test_loss=0.4 + 0.01 * named_rng(5, "flat").random(len(cells)))
    lost = failed(flat, 0.08)
    assert measure("fig1-falls-with-n", lost).verdict != "holds"
    assert measure("fig1-falls-with-n", failed(cells, 0.03)).verdict == "holds"


def steps_of(name: str) -> pd.DataFrame:
    """Logged steps in which the claim is true."""
    return WORLDS[name].true(design(BY_NAME[name].preset), named_rng(6, name))


def verdicts(steps: pd.DataFrame, *names: str) -> list[Verdict]:
    return [measure(name, steps).verdict for name in names]


@pytest.mark.parametrize("name", ["lemma53-values", "lemma54-values"])
def test_a_signal_that_is_never_learned_breaks_its_lemma(name: str) -> None:
    steps = steps_of(name)
    assert verdicts(steps, name) == ["holds"]
    fooled = steps.assign(value_minus=0.0, value_plus=2 * steps["value_plus"])
    assert verdicts(fooled, name) == ["fails"]


def test_without_an_end_of_stage_1_no_later_stage_is_judged() -> None:
    later = ("lemma53-values", "lemma53-every-product", "stage3-attention", "lemma54-values")
    for name in later:
        steps = steps_of(name)
        assert verdicts(steps.assign(signal_lead=1.0), name) == ["inconclusive"]
    never = steps_of("lemma52-lead")
    never = never.assign(signal_lead=1 + never["seed"] / 1e3)
    assert verdicts(never, "lemma52-lead") == ["fails"]


def test_below_the_proofs_constant_every_benign_lemma_is_vacuous() -> None:
    """Where N·SNR² is below 60 M² C_p²; the harmful side's lemma is judged."""
    for name in BY_NAME:
        if name.startswith(("lemma5", "stage3")) and not name.endswith("harmful"):
            steps = steps_of(name).assign(snr=17.0)
            assert verdicts(steps, name) == ["vacuous"], name
    assert verdicts(steps_of("lemma-e3-lead"), "lemma-e3-lead") == ["holds"]


def test_a_lead_that_comes_later_than_t1_breaks_its_lemma() -> None:
    for name, column in (("lemma52-lead", "signal_lead"), ("lemma-e3-lead", "noise_lead")):
        steps = steps_of(name)
        late = steps.assign(**{column: steps[column] * (steps["part"] / 200).clip(upper=1)})
        assert verdicts(late, name) == ["fails"]


def test_a_t1_after_stage_2_leaves_no_step_to_judge() -> None:
    """The lemmas have T₁ in stage 1: where stage 2 ends before it, nothing is in between."""
    for name, column in (("lemma52-lead", "signal_lead"), ("lemma-e3-lead", "noise_lead")):
        steps = steps_of(name)
        early = steps.assign(loss_slope=np.where(steps["part"] < 20, 0.5, 0.1))
        measurement = measure(name, early)
        assert measurement.verdict == "vacuous"
        assert "T₁ comes after stage 2" in measurement.note
        some = early["loss_slope"].where(steps["seed"] < 4, steps["loss_slope"])
        assert verdicts(steps.assign(loss_slope=some), name) == ["holds"], "other seeds are judged"
        assert verdicts(early.assign(**{column: np.nan}), name) == ["vacuous"]
