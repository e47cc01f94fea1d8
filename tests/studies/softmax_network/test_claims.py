"""Verdicts on doctored cells: of the claims on convergence and on diffusion."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import overfit_cli
from overfit_cli.core.training import named_rng
from overfit_cli.studies.softmax_network.claims.table1 import sufficient_widths, table1_steps
from tests.judged import claims_by_name, measure, true_cells

CLAIMS = claims_by_name("softmax-convergence", "softmax-diffusion")


def test_a_fall_that_turns_at_the_end_is_none() -> None:
    """The error falls tenfold to n = 300, and rises fivefold at n = 1000."""
    cells = true_cells("diffusion-falls")
    noise = np.exp(0.05 * named_rng(0, "noise").standard_normal(len(cells)))
    error: pd.Series[float] = cells["n"].map({100: 1.0, 300: 0.1, 1000: 0.5}) * noise
    turned = cells.assign(score_error=error, denoiser_error=error)
    assert measure("diffusion-falls", turned).verdict == "fails"


def test_the_contradiction_of_the_gradient_is_one_sentence() -> None:
    claim = CLAIMS["softmax-gradient-of-23"]
    cells = true_cells(claim.name)
    far = 0.4 + 0.01 * named_rng(0, "far").standard_normal(cells["seed"].max() + 1)
    gaps = far[cells["seed"].to_numpy()]
    measured = claim.judge(cells.assign(train_gap=0.0, gradient_gap=gaps))
    assert measured.verdict == "fails"
    assert "η/(m λ_max)" in claim.hypotheses
    assert ": The update (24) is gradient descent on the loss (23)" in claim.contradiction(measured)


def test_steps_without_lambda_do_not_collapse() -> None:
    name = "softmax-steps-collapse"
    cells = true_cells(name)
    assert measure(name, cells).verdict == "holds"
    varied = cells.assign(lambda_start=np.where(cells["activation"] == "relu", 0.1, 1.0))
    assert measure(name, varied).verdict == "fails"
    late = varied.assign(steps_to_epsilon=3 * table1_steps(varied))
    lost = (late["seed"] == 0) & (late["n"] == 3)
    late.loc[lost, ["status", "reason"]] = "failed", "step limit"
    late.loc[lost, "steps_to_epsilon"] = np.nan
    assert measure(name, late).verdict == "inconclusive"
    assert measure("softmax-steps-lambda-power", late).verdict == "inconclusive"


def test_powers_are_those_of_widths_at_which_all_cells_meet_the_hypotheses() -> None:
    name = "softmax-drift-tight"
    cells = true_cells(name).assign(rate_ratio=0.5, movement=0.001, lambda_start=1e9)
    broken = cells.assign(rate_ratio=np.where((cells["m"] == 512) & (cells["seed"] == 0), 2.0, 0.5))
    assert measure(name, broken).verdict == measure(name, cells).verdict == "holds"
    few = cells.assign(rate_ratio=np.where(cells["m"] < 4096, 2.0, 0.5))
    assert measure(name, few).verdict == "vacuous"


def test_both_profiles_of_a_preset_decide_its_claims() -> None:
    cells = true_cells("diffusion-falls")
    full = cells.assign(m=1024, training_steps=10_000, samples=10_000)
    assert measure("diffusion-falls", full).verdict == measure("diffusion-falls", cells).verdict


def test_one_output_and_several_are_judged_apart() -> None:
    several = true_cells("softmax-linear-rate-outputs").assign(rate_ratio=2.0)
    both = pd.concat([true_cells("softmax-linear-rate"), several], ignore_index=True)
    assert measure("softmax-linear-rate", both).verdict == "holds"
    assert measure("softmax-linear-rate-outputs", both).verdict == "fails"


def test_networks_that_take_no_step_decide_no_claim(tmp_path: Path) -> None:
    """With a large ε only eigenvalues are measured; a network that hasn't moved tracks anything."""
    values = {"m": 512, "n": 4, "epsilon": 1000.0, "test_samples": 4}
    cells = overfit_cli.sweep(
        "softmax-convergence", seeds=10, parameters=values, out=tmp_path / "run", jobs=1
    )
    assert (cells["steps"] == 0).all()
    verdicts = {found.claim.name: found.measurement for found in overfit_cli.judge(cells)}
    assert "softmax-equation-24" in verdicts
    assert {one.verdict for one in verdicts.values()} == {"not run"}, verdicts


def test_a_width_suffices_from_which_on_training_is_quick_enough() -> None:
    """Ratios of 8, 4, 1 cross two half way from 20 to 40 on a scale of ratios; a limit is slow.

    Each kind of data is measured by itself.
    """
    ratios = [[8.0, 4.0, 1.0], [np.nan, 4.0, 1.0], [9.0, 5.0, 3.0], [1.5, 1.2, 1.0]]
    cells = pd.DataFrame(
        [
            {"m": m, "seed": seed, "steps_over_limit": ratio}
            for seed, of_seed in enumerate(ratios)
            for m, ratio in zip((10, 20, 40), of_seed, strict=True)
        ]
    ).assign(activation="exp", n=4, d=2, data="sphere")
    other = cells.assign(data="digits", steps_over_limit=1.0)
    found = sufficient_widths(pd.concat([cells, other])).set_index(["data", "seed"])["width"]
    assert found["sphere"][0] == found["sphere"][1] == pytest.approx(np.sqrt(20 * 40))
    assert found["sphere"][2] == np.inf
    assert found["sphere"][3] == 0
    assert (found["digits"] == 0).all()
