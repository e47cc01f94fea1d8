"""Verdicts follow the numbers: on cells that agree with a claim, break it, or are silent."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from overfit_cli.core.cell import Cell, CellResult
from overfit_cli.studies.benign_vit.vit.claims.figure_1 import FIGURE_1
from overfit_cli.studies.benign_vit.vit.parameters import BenignVitParameters
from overfit_cli.studies.benign_vit.vit.study import study
from tests.command import run
from tests.judged import measure

BY_NAME = {claim.name: claim for claim in FIGURE_1}


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


@pytest.mark.parametrize("name", BY_NAME)
@pytest.mark.one_in(4)
def test_every_claim_holds_on_cells_that_follow_the_paper(name: str) -> None:
    measurement = measure(name, cells(seeds=40))
    assert measurement.verdict == "holds", measurement.note
    assert measurement.value is not None
    assert measurement.interval is not None
    assert measurement.interval.low <= measurement.value <= measurement.interval.high


@pytest.mark.slow
def test_cells_that_are_not_fitted_are_counted_and_their_seeds_weighed() -> None:
    frame = cells()
    frame.loc[7, "status"] = "failed"
    frame.loc[7, "reason"] = "step limit"
    frame.loc[7, "train_loss"] = 0.3
    measurement = measure("fig1-fitted", frame)
    assert (measurement.verdict, measurement.value) == ("inconclusive", 19 / 20)
    assert "1 are not fitted; the largest training loss is 0.3." in measurement.note
    frame.loc[(frame["n"] == 3) & (frame["seed"] < 9), "train_loss"] = 0.3
    assert measure("fig1-fitted", frame).verdict == "fails"


@pytest.mark.parametrize("constant", [500.0, 2000.0])
def test_a_boundary_elsewhere_breaks_the_contour_and_the_sides(constant: float) -> None:
    frame = cells(constant=constant)
    contour = measure("fig1-contour", frame)
    assert contour.verdict == "fails"
    assert contour.value == pytest.approx(constant, rel=0.06)
    assert measure("fig1-sides", frame).verdict != "holds"


def test_the_sides_of_another_power_are_told_from_those_of_the_second() -> None:
    measurement = measure("fig1-sides-power", cells(exponent=3.0, constant=10 * 10**3.0))
    assert measurement.verdict == "fails"
    assert measurement.details["the best other power"] == 3


def test_lost_cells_do_not_make_the_sides_hold() -> None:
    """Cells on the wrong side that a killed worker lost: without them the rest would hold."""
    frame = cells(noise=0.75)
    wrong = (frame["test_loss"] < 0.2) != (frame["n"] * frame["snr"] ** 2 > 1000)
    whole = measure("fig1-sides", frame)
    assert whole.verdict != "holds"
    lost = frame.index[wrong][: int(0.09 * len(frame))]
    frame.loc[lost, ["status", "reason"]] = ["failed", "worker killed"]
    frame.loc[lost, ["test_loss", "train_loss"]] = np.nan
    measurement = measure("fig1-sides", frame)
    assert measurement.verdict != "holds"
    assert measurement.interval is not None
    assert whole.value is not None
    assert measurement.interval.low < whole.value < measurement.interval.high


@pytest.mark.parametrize("exponent", [1.5, 2.5])
def test_another_exponent_is_found_and_named(exponent: float) -> None:
    frame = cells(exponent=exponent, constant=10 * 10**exponent, seeds=40)
    measurement = measure("fig1-exponent", frame)
    assert measurement.verdict == "fails"
    assert measurement.value == pytest.approx(exponent, abs=0.1)
    assert measurement.interval is not None
    assert measurement.interval.low <= exponent <= measurement.interval.high


@pytest.mark.slow
def test_a_loss_that_rises_breaks_the_claim_that_it_falls() -> None:
    frame = cells()
    frame["test_loss"] = 1 - frame["test_loss"]
    measurement = measure("fig1-falls-with-n", frame)
    assert measurement.verdict == "fails"
    for axis in ("N", "SNR"):
        assert measurement.details[axis] == pytest.approx(1, abs=0.03)


def test_a_loss_that_never_crosses_leaves_boundary_claims_open() -> None:
    frame = cells()
    frame["test_loss"] += 1
    assert measure("fig1-exponent", frame).verdict == "inconclusive"
    contour = measure("fig1-contour", frame)
    assert (contour.verdict, contour.value) == ("fails", np.inf)
    assert contour.interval is not None
    assert contour.interval.low == pytest.approx(12 * 15.6**2, rel=0.1)  # the grid's edge


@pytest.mark.parametrize("name", BY_NAME)
def test_cells_that_say_nothing_of_figure_1_leave_its_claims_not_run(name: str) -> None:
    assert measure(name, cells(d=512)).verdict == "not run"
    assert measure(name, cells().query("n == 5")).verdict == "not run"


@pytest.mark.parametrize("name", BY_NAME)
@pytest.mark.one_in(4)
def test_failed_cells_are_no_crash(name: str) -> None:
    frame = cells()
    frame.loc[frame["seed"] < 9, ["status", "reason"]] = ["failed", "step limit"]
    frame.loc[frame["seed"] < 9, ["test_loss", "train_loss"]] = np.nan
    expected = "fails" if name == "fig1-fitted" else "inconclusive"
    assert measure(name, frame).verdict == expected
    lost = frame.assign(reason="worker killed")
    assert measure(name, lost).verdict == "inconclusive"
    every = frame.assign(status="failed", test_loss=np.nan, train_loss=np.nan)
    assert measure(name, every.assign(reason="step limit")).verdict == expected


@pytest.mark.slow
def test_claims_are_open_on_cells_that_cannot_break_them() -> None:
    harmful = cells().query("snr < 5")
    for name in ("fig1-sides", "fig1-contour", "fig1-exponent"):
        assert measure(name, harmful).verdict == "inconclusive", name
    one_seed = cells().query("seed == 0")
    for name in ("fig1-exponent", "fig1-falls-with-n"):
        assert measure(name, one_seed).verdict == "inconclusive", name
    few = cells(noise=0.8).query("n >= 17")
    assert measure("fig1-exponent", few).verdict == "inconclusive"


def test_curves_that_never_cross_count_as_crossing_beyond_the_grid() -> None:
    frame = cells()
    frame.loc[(frame["seed"] < 4) & (frame["n"] > 8), "test_loss"] = 0.6
    few = measure("fig1-contour", frame)
    assert few.verdict == "holds"
    assert few.details["curves that never cross"] == 4 * 12
    frame.loc[(frame["seed"] < 11) & (frame["n"] > 8), "test_loss"] = 0.6
    contour = measure("fig1-contour", frame)
    assert (contour.verdict, contour.value) == ("inconclusive", np.inf)


def test_the_exponents_rows_do_not_depend_on_how_many_seeds_there_are() -> None:
    """More seeds tell the same number more exactly; none is left out for one that never crosses."""
    frame = cells(noise=0.5, seeds=40)
    late = (frame["n"] < 9) & (frame["seed"] % 4 == 0)
    frame.loc[late, "test_loss"] = 0.6
    few, many = (measure("fig1-exponent", frame[frame["seed"] < limit]) for limit in (12, 40))
    rows = "values of n that are fitted"
    assert few.details[rows] == many.details[rows]
    assert few.interval is not None
    assert many.interval is not None
    width = [item.interval.high - item.interval.low for item in (few, many) if item.interval]
    assert width[1] < width[0]


@pytest.mark.slow
def test_the_report_sets_claims_beside_verdicts_and_strict_makes_an_exit_code(
    tmp_path: Path,
) -> None:
    run(
        "sweep", "toy", "--jobs", "1", "--n", "1:2", "--snr", "1:2:2", "--out", "good", cwd=tmp_path
    )
    run("sweep", "toy", "--jobs", "1", "--n", "9", "--snr", "9:10:2", "--out", "bad", cwd=tmp_path)
    good = run("report", "good", "--out", "r", "--strict", cwd=tmp_path)
    assert "holds" in good.stdout
    content = json.loads((tmp_path / "r" / "claims.json").read_text())
    by_name = {claim["claim"]: claim for claim in content["claims"]}
    assert by_name["toy-claim"]["verdict"] == "holds"
    assert by_name["toy-claim"]["directory"] == "good"
    assert "fig1-contour" not in by_name, "the report is about the studies that have cells"
    page = (tmp_path / "r" / "report.md").read_text()
    assert "| **toy-claim**: Nothing is learned. | ours | holds |" in page
    relaxed = run("report", "bad", "--out", "r", cwd=tmp_path)
    assert re.search(r"^Claims that fail: 1 of \d+: toy-claim\.$", relaxed.stdout, re.MULTILINE)
    run("report", "bad", "--out", "r", "--strict", cwd=tmp_path, expect=1)
    for order in (("good", "bad"), ("bad", "good")):
        each = run("report", *order, "--out", "r", "--strict", cwd=tmp_path, expect=1)
        assert "toy-claim (bad)" in each.stdout
        assert "toy-claim (good)" in each.stdout


@pytest.mark.slow
def test_with_no_directory_named_the_first_by_name_that_bears_on_a_claim_decides(
    tmp_path: Path,
) -> None:
    run("report", cwd=tmp_path)
    assert json.loads((tmp_path / "results" / "report" / "claims.json").read_text())["claims"]
    run("sweep", "toy", "--jobs", "1", "--n", "1:2", "--out", "results/old", cwd=tmp_path)
    run(
        "sweep",
        "toy",
        "--jobs",
        "1",
        "--n",
        "9",
        "--snr",
        "9",
        "--out",
        "results/new",
        cwd=tmp_path,
    )
    done = run("report", "--strict", cwd=tmp_path, expect=1)
    assert "toy-claim" in done.stdout


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
