"""Claims on figure 1 and the lemmas, on cells that break them, fool them, or tell nothing."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

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


def test_claims_are_open_on_cells_that_cannot_break_them() -> None:
    frame = cells()
    for name in ("fig1-sides", "fig1-contour", "fig1-exponent"):
        assert measure(name, frame.query("snr < 5")).verdict == "inconclusive", name
    for name in FIGURE_1:
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


def test_a_lead_that_never_comes_or_later_than_t1_breaks_its_lemma() -> None:
    for name, column in (("lemma52-lead", "signal_lead"), ("lemma-e3-lead", "noise_lead")):
        steps = true_cells(name)
        late = steps.assign(**{column: steps[column] * (steps["part"] / 200).clip(upper=1)})
        assert measure(name, late).verdict == "fails"
        never = steps.assign(**{column: 1 + steps["seed"] / 1e3})
        assert measure(name, never).verdict == "fails"
