"""Verdicts on doctored cells: of the claims on convergence and on diffusion."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import overfit_cli
from overfit_cli.core.training import named_rng
from overfit_cli.studies.softmax_network.convergence.widths import (
    by_data,
    median_width,
    sufficient_widths,
    table1_steps,
)
from overfit_cli.studies.softmax_network.figures import quartiles_over_seeds
from overfit_cli.studies.softmax_network.powers import fitted_power, largest_residual
from overfit_cli.studies.softmax_network.theory import CHANCE
from tests.judged import claims_by_name, measure, true_cells

CLAIMS = claims_by_name("softmax-convergence", "softmax-diffusion")


def verdict(name: str, cells: pd.DataFrame) -> str:
    return measure(name, cells).verdict


def test_a_statement_with_a_probability_bears_a_seed_that_breaks_it() -> None:
    cells = true_cells("softmax-lemma51-bound")
    seeds = cells["seed"].nunique()
    few, many = round(CHANCE * seeds), round(4 * CHANCE * seeds)
    doctored = cells.assign(drift_over_bound=np.where(cells["seed"] < few, 0.1, -0.5))
    assert verdict("softmax-lemma51-bound", doctored) == "inconclusive"
    doctored["drift_over_bound"] = np.where(cells["seed"] < many, 0.1, -0.5)
    assert verdict("softmax-lemma51-bound", doctored) == "fails"
    broken = cells.assign(drift_over_bound=20.0)
    missed = cells["seed"] % 2 == 0
    some = broken.assign(width_missing=broken["width_missing"].astype(float).mask(missed, 3.0))
    assert verdict("softmax-lemma51-bound", some) == "fails", "half meet its hypotheses"


def test_the_kernel_may_move_less_where_weights_move_more() -> None:
    """Movement grows with m and drift falls: drift over R falls too, and Lemma 5.1 isn't broken."""
    cells = true_cells("softmax-lemma51")
    growing = cells.assign(movement=0.001 * cells["m"], kernel_drift=1.0 / cells["m"])
    shares = growing["kernel_drift"] / (growing["movement"] * growing["n"])
    assert (
        verdict("softmax-lemma51", growing.assign(drift_share=shares.clip(lower=0.01))) == "holds"
    )
    drift_a_million_times = cells.assign(drift_share=0.005 * 1e6)
    assert verdict("softmax-lemma51", drift_a_million_times) == "fails"


def test_a_fall_that_turns_at_the_end_is_none() -> None:
    """The error falls tenfold to n = 300, and rises fivefold at n = 1000."""
    cells = true_cells("diffusion-falls")
    noise = np.exp(0.05 * named_rng(0, "noise").standard_normal(len(cells)))
    error: pd.Series[float] = cells["n"].map({100: 1.0, 300: 0.1, 1000: 0.5}) * noise
    turned = cells.assign(score_error=error, denoiser_error=error)
    assert verdict("diffusion-falls", turned) == "fails"


def test_the_contradiction_of_the_gradient_is_one_sentence() -> None:
    claim = CLAIMS["softmax-gradient-of-23"]
    cells = true_cells(claim.name)
    far = 0.4 + 0.01 * named_rng(0, "far").standard_normal(cells["seed"].max() + 1)
    measured = claim.judge(cells.assign(gradient_gap=far[cells["seed"].to_numpy()]))
    assert measured.verdict == "fails"
    assert "η/(m λ_max)" in measured.note
    assert "No theorem of the paper uses ∇_γ" in measured.note
    assert ": The update (24) is gradient descent on the loss (23)" in claim.contradiction(measured)


def test_steps_without_lambda_do_not_collapse() -> None:
    cells = true_cells("softmax-steps-collapse")
    assert measure("softmax-steps-collapse", cells).verdict == "holds"
    varied = cells.assign(lambda_start=np.where(cells["activation"] == "relu", 0.1, 1.0))
    assert measure("softmax-steps-collapse", varied).verdict == "fails"
    late = varied.assign(steps_to_epsilon=3 * table1_steps(varied))
    lost = (late["seed"] == 0) & (late["n"] == 3)
    late.loc[lost, ["status", "reason"]] = "failed", "step limit"
    late.loc[lost, "steps_to_epsilon"] = np.nan
    assert measure("softmax-steps-collapse", late).verdict == "inconclusive"
    assert measure("softmax-steps-lambda-power", late).verdict == "inconclusive"


def test_widths_are_measured_for_each_kind_of_data_by_itself() -> None:
    cells = pd.DataFrame({"data": ["sphere", "sphere", "digits"], "d": [2, 4, 2], "m": 8})
    table = by_data(cells, lambda part: pd.DataFrame({"count": [len(part)]}))
    assert table[["count", "data", "d"]].to_numpy().tolist() == [
        [1, "sphere", 2],
        [1, "sphere", 4],
        [1, "digits", 2],
    ]


def test_one_output_and_several_are_judged_apart() -> None:
    several = true_cells("softmax-linear-rate-outputs").assign(rate_ratio=2.0)
    one = true_cells("softmax-linear-rate")
    both = pd.concat([one, several], ignore_index=True)
    assert measure("softmax-linear-rate", both).verdict == "holds"
    assert measure("softmax-linear-rate-outputs", both).verdict == "fails"


# What claims and figures are made of


def test_quartiles_count_seeds_that_have_no_number() -> None:
    cells = pd.DataFrame(
        {"n": [4] * 4 + [8] * 4, "steps": [1.0, 4.0, 9.0, np.nan, 5.0, np.nan, np.nan, np.nan]}
    )
    beyond = quartiles_over_seeds(cells, "n", "steps")
    assert beyond.loc[[4]].to_numpy()[0].tolist() == [1.0, 6.0, np.inf]
    assert beyond.loc[8, "middle"] == np.inf


def test_a_power_has_its_largest_residual_beside_it() -> None:
    """Medians 1, 4, 4 over 1, 2, 4 are a factor off a line of slope 1 through their middle."""
    x, medians = np.array([1.0, 2.0, 4.0]), np.array([1.0, 4.0, 4.0])
    off = np.log(medians / x)
    expected = float(np.exp(np.abs(off - off.mean()).max()) - 1)
    assert largest_residual(x, medians, 1.0) == pytest.approx(expected)
    assert math.isnan(largest_residual(x[:2], medians[:2], 1.0))
    cells = pd.DataFrame(
        {"m": [1.0, 2.0, 4.0] * 3, "seed": [0] * 3 + [1] * 3 + [2] * 3, "gap": [1.0, 4.0, 4.0] * 3}
    )
    power = fitted_power(cells, "m", "gap")
    assert power is not None
    assert str(power).startswith("1.00")
    assert str(power).endswith(f"{100 * expected:.0f} %")


def test_networks_that_take_no_step_decide_no_claim(tmp_path: Path) -> None:
    """With a large ε only eigenvalues are measured; a network that hasn't moved tracks anything."""
    cells = overfit_cli.sweep(
        "softmax-convergence",
        seeds=10,
        parameters={"m": 512, "n": 4, "epsilon": 1000.0, "test_samples": 4},
        out=tmp_path / "run",
        jobs=1,
    )
    assert (cells["steps"] == 0).all()
    verdicts = {found.claim.name: found.measurement for found in overfit_cli.judge(cells)}
    assert "softmax-equation-24" in verdicts
    assert {one.verdict for one in verdicts.values()} == {"not run"}, verdicts
    assert "that take a step" in verdicts["softmax-lemma51-bound"].note


def test_a_width_suffices_from_which_on_training_is_quick_enough() -> None:
    """Ratios of 8, 4, 1 cross two half way from 20 to 40 on a scale of ratios; a limit is slow."""
    ratios = [[8.0, 4.0, 1.0], [np.nan, 4.0, 1.0], [9.0, 5.0, 3.0], [1.5, 1.2, 1.0]]
    cells = pd.DataFrame(
        [
            {"m": m, "seed": seed, "steps_over_limit": ratio}
            for seed, of_seed in enumerate(ratios)
            for m, ratio in zip((10, 20, 40), of_seed, strict=True)
        ]
    ).assign(activation="exp", n=4)
    cells["status"] = np.where(cells["steps_over_limit"].isna(), "failed", "done")
    found = sufficient_widths(cells).set_index("seed")["width"]
    assert found[0] == found[1] == pytest.approx(np.sqrt(20 * 40))
    assert found[2] == np.inf
    assert found[3] == 0


def test_a_median_between_below_the_sweep_and_a_width_lies_below_the_sweep() -> None:
    """A mean of 0, which stands for below, and 13 would be a width where none was measured."""
    assert median_width(pd.Series([0.0, 0.0, 13.0, 20.0])) == 0
    assert median_width(pd.Series([0.0, 11.0, 13.0, 20.0])) == 12
    assert median_width(pd.Series([11.0, 13.0, np.inf, np.inf])) == np.inf
    assert np.isnan(median_width(pd.Series([np.nan])))
