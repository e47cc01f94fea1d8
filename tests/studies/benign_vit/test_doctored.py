"""Claims on figure 1 and the lemmas, on cells that break them, fool them, or tell nothing."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from overfit_cli.core.claim import Verdict
from overfit_cli.studies.benign_vit.vit.parameters import BenignVitParameters
from tests.judged import measure, true_cells
from tests.studies.benign_vit.cells import BY_NAME

FIGURE_1 = [name for name in BY_NAME if name.startswith("fig1-")]


def cells(
    *,
    exponent: float = 2.0,
    constant: float = 1000.0,
    noise: float = 0.1,
    seeds: int = 20,
    **settings: object,
) -> pd.DataFrame:
    """A grid whose test loss is 0.2 where N · SNR^exponent = constant, and falls with both."""
    ns, snrs = np.arange(2, 21), np.linspace(0.16, 15.6, 45)
    shifts = np.random.default_rng(0).normal(0, noise, (seeds, len(ns), 1))
    away = np.log(ns[:, None] * snrs**exponent / constant) + shifts  # (seeds, n, snr)
    seed, n, snr = (each.ravel() for each in np.meshgrid(range(seeds), ns, snrs, indexing="ij"))
    frame = pd.DataFrame({"n": n, "snr": snr, "seed": seed, "status": "done", "steps": 10})
    defaults = BenignVitParameters.model_validate(settings).model_dump()
    return frame.assign(
        **{name: value for name, value in defaults.items() if name not in frame},
        train_loss=0.009,
        test_loss=0.69 / (1 + 2.45 * np.exp(away.ravel())),
    )


@pytest.mark.slow
def test_cells_that_are_not_fitted_are_counted_and_their_seeds_weighed() -> None:
    frame = cells()
    frame.loc[frame.index == 7, ["status", "reason"]] = ["failed", "step limit"]
    frame.loc[7, "train_loss"] = 0.3
    measurement = measure("fig1-fitted", frame)
    assert (measurement.verdict, measurement.value) == ("inconclusive", 19 / 20)
    assert "1 are not fitted; the largest training loss is 0.3." in measurement.note
    frame.loc[(frame["n"] == 3) & (frame["seed"] < 9), "train_loss"] = 0.3
    assert measure("fig1-fitted", frame).verdict == "fails"
    never = frame.assign(status="failed", reason="step limit", train_loss=np.nan)
    assert measure("fig1-fitted", never).verdict == "fails"


@pytest.mark.parametrize("constant", [500.0, 2000.0])
def test_a_boundary_elsewhere_breaks_the_contour_and_the_sides(constant: float) -> None:
    frame = cells(constant=constant)
    contour = measure("fig1-contour", frame)
    assert contour.verdict == "fails"
    assert contour.value == pytest.approx(constant, rel=0.06)
    assert measure("fig1-sides", frame).verdict != "holds"


@pytest.mark.parametrize("exponent", [1.5, 2.5])
def test_another_exponent_is_found_and_named(exponent: float) -> None:
    frame = cells(exponent=exponent, constant=10 * 10**exponent, seeds=40)
    measurement = measure("fig1-exponent", frame)
    assert measurement.verdict == "fails"
    assert measurement.value == pytest.approx(exponent, abs=0.1)
    assert measurement.interval is not None
    assert measurement.interval.low <= exponent <= measurement.interval.high
    sides = measure("fig1-sides-power", frame)
    assert (sides.verdict, sides.details["the best other power"]) == ("fails", exponent)


def test_a_loss_that_never_crosses_leaves_boundary_claims_open() -> None:
    frame = cells()
    frame["test_loss"] += 1
    assert measure("fig1-exponent", frame).verdict == "inconclusive"
    contour = measure("fig1-contour", frame)
    assert (contour.verdict, contour.value) == ("fails", np.inf)
    assert contour.interval is not None
    assert contour.interval.low == pytest.approx(12 * 15.6**2, rel=0.1)  # the grid's edge


def test_curves_that_never_cross_count_as_crossing_beyond_the_grid() -> None:
    frame = cells()
    frame.loc[(frame["seed"] < 4) & (frame["n"] > 8), "test_loss"] = 0.6
    few = measure("fig1-contour", frame)
    assert few.verdict == "holds"
    assert few.details["curves that never cross"] == 4 * 12
    frame.loc[(frame["seed"] < 11) & (frame["n"] > 8), "test_loss"] = 0.6
    contour = measure("fig1-contour", frame)
    assert (contour.verdict, contour.value) == ("inconclusive", np.inf)


def test_claims_are_open_on_cells_that_cannot_break_them() -> None:
    frame = cells()
    for name in ("fig1-sides", "fig1-contour", "fig1-exponent"):
        assert measure(name, frame.query("snr < 5")).verdict == "inconclusive", name
    for name in FIGURE_1:
        assert measure(name, frame.assign(d=512)).verdict == "not run", name
        assert measure(name, frame.query("n == 5")).verdict == "not run", name


@pytest.mark.slow
def test_a_refined_sweep_is_judged_on_its_coarse_grid() -> None:
    """Cells that pile up at the boundary don't outvote the grid."""
    frame = cells()
    near = frame[(frame["snr"] > 6) & (frame["snr"] < 9)]
    piled = [
        near.assign(snr=near["snr"] + 1e-3 * shift, n=n) for shift in range(1, 30) for n in (9,)
    ]
    joined = pd.concat([frame, *(item.drop_duplicates(["seed", "snr"]) for item in piled)])
    assert measure("fig1-sides", joined) == measure("fig1-sides", frame)
    ends = frame[frame["snr"].isin([frame["snr"].min(), frame["snr"].max()])]
    others = ends[ends["n"] < 5]
    more = pd.concat([frame, *(others.assign(seed=others["seed"] + 100 * k) for k in range(1, 9))])
    for name in ("fig1-sides", "fig1-fitted", "fig1-falls-with-n"):
        assert measure(name, more) == measure(name, frame)


def verdicts(steps: pd.DataFrame, *names: str) -> list[Verdict]:
    return [measure(name, steps).verdict for name in names]


def test_without_an_end_of_stage_1_no_later_stage_is_judged() -> None:
    later = ("lemma53-values", "lemma53-every-product", "stage3-attention", "lemma54-values")
    for name in later:
        steps = true_cells(name)
        assert verdicts(steps.assign(signal_lead=1.0), name) == ["inconclusive"]
    never = true_cells("lemma52-lead")
    never = never.assign(signal_lead=1 + never["seed"] / 1e3)
    assert verdicts(never, "lemma52-lead") == ["fails"]


def test_a_lead_that_comes_later_than_t1_breaks_its_lemma() -> None:
    for name, column in (("lemma52-lead", "signal_lead"), ("lemma-e3-lead", "noise_lead")):
        steps = true_cells(name)
        late = steps.assign(**{column: steps[column] * (steps["part"] / 200).clip(upper=1)})
        assert verdicts(late, name) == ["fails"]


def test_a_t1_after_stage_2_leaves_no_step_to_judge() -> None:
    """The lemmas have T₁ in stage 1: where stage 2 ends before it, nothing is in between."""
    for name, column in (("lemma52-lead", "signal_lead"), ("lemma-e3-lead", "noise_lead")):
        steps = true_cells(name)
        early = steps.assign(loss_slope=np.where(steps["part"] < 20, 0.5, 0.1))
        measurement = measure(name, early)
        assert measurement.verdict == "vacuous"
        assert "T₁ comes after stage 2" in measurement.note
        some = early["loss_slope"].where(steps["seed"] < 4, steps["loss_slope"])
        assert verdicts(steps.assign(loss_slope=some), name) == ["holds"], "other seeds are judged"
        assert verdicts(early.assign(**{column: np.nan}), name) == ["vacuous"]
