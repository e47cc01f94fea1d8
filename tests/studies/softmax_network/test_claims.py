"""Verdicts on doctored cells: of the claims on convergence and on diffusion."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
import pytest

from calibration.rates import design, worlds_of
from overfit_cli import Claim
from overfit_cli.core.registry import find_study
from overfit_cli.core.training import named_rng
from overfit_cli.studies.softmax_network.theory import CHANCE
from tests.judged import claims_by_name, measure

STUDIES = ("softmax-convergence", "softmax-diffusion")
CLAIMS: Mapping[str, Claim] = claims_by_name(*STUDIES)
WORLDS = {
    name: worlds for study in STUDIES for name, worlds in worlds_of(find_study(study)).items()
}


def true_cells(name: str) -> pd.DataFrame:
    """Cells of the claim's preset in which it is true."""
    return WORLDS[name].true(design(CLAIMS[name].preset), named_rng(0, "doctored", name))


def verdict(name: str, cells: pd.DataFrame) -> str:
    return measure(name, cells).verdict


def failed(cells: pd.DataFrame, rows: pd.Series[bool], reason: str) -> pd.DataFrame:
    """The cells, of which some failed and have no steps to ε."""
    missing = [name for name in ("steps_to_epsilon", "steps_over_limit") if name in cells]
    doctored = cells.copy()
    doctored.loc[rows, "status"] = "failed"
    doctored.loc[rows, "reason"] = reason
    doctored.loc[rows, missing] = np.nan
    return doctored


@pytest.mark.parametrize("name", ["softmax-theorem42", "softmax-steps", "softmax-lemma51-bound"])
def test_float32_decides_nothing(name: str) -> None:
    assert verdict(name, true_cells(name).assign(dtype="float32")) == "not run"


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("softmax-theorem42", "rate_ratio"),
        ("softmax-lemma51-bound", "drift_over_bound"),
        ("softmax-lemma53-bound", "movement_over_bound"),
        ("softmax-theorem-f2-bound", "gap_over_bound"),
        ("softmax-lemma53-bound-outputs", "movement_over_bound"),
    ],
)
def test_a_bound_broken_everywhere_fails_though_some_cells_miss_its_hypotheses(
    name: str, column: str
) -> None:
    broken = true_cells(name).assign(**{column: 20.0})
    assert verdict(name, broken) == "fails"
    missing = {"width_missing": 3.0, "movement": 0.02, "kernel_drift": 0.9}
    missed = broken.assign(**{key: broken[key].astype(float) for key in missing})
    missed.loc[missed["seed"] % 2 == 0, list(missing)] = list(missing.values())
    assert verdict(name, missed) == "fails"
    none_meets = broken.assign(**missing)
    assert verdict(name, none_meets) == "vacuous"


def test_a_statement_with_a_probability_bears_a_seed_that_breaks_it() -> None:
    cells = true_cells("softmax-lemma51-bound")
    seeds = cells["seed"].nunique()
    few, many = round(CHANCE * seeds), round(4 * CHANCE * seeds)
    doctored = cells.assign(drift_over_bound=np.where(cells["seed"] < few, 0.1, -0.5))
    assert verdict("softmax-lemma51-bound", doctored) == "inconclusive"
    doctored["drift_over_bound"] = np.where(cells["seed"] < many, 0.1, -0.5)
    assert verdict("softmax-lemma51-bound", doctored) == "fails"
    for decades, expected in ((-3.1, "holds by far"), (-2.9, "holds")):
        assert verdict("softmax-lemma51-bound", cells.assign(drift_over_bound=decades)) == expected


def test_the_constant_of_an_order_is_no_reason_to_fail() -> None:
    cells = true_cells("softmax-theorem-f2-bound")
    assert verdict("softmax-theorem-f2-bound", cells.assign(gap_over_bound=1.01)) == "holds"
    assert verdict("softmax-theorem-f2-bound", cells.assign(gap_over_bound=11.0)) == "fails"
    descent = true_cells("diffusion-theorem66")
    two_per_cent = descent.assign(bound_over_error=-np.log10(1.02))
    assert verdict("diffusion-theorem66", two_per_cent) == "inconclusive"
    far = descent.assign(bound_over_error=3.1)
    assert verdict("diffusion-theorem66", far) == "holds by far"
    missed = two_per_cent.assign(width_missing=np.where(descent["seed"] == 0, 1.0, -1.0))
    assert verdict("diffusion-theorem66", missed) == "inconclusive"


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


def test_networks_that_never_converge_are_censored_not_left_out() -> None:
    for name in ("softmax-steps", "softmax-steps-paper"):
        cells = true_cells(name)
        half = cells["seed"] < cells["seed"].nunique() / 2
        never = (cells["activation"] == "softmax") & (cells["m"] == cells["m"].max()) & half
        assert verdict(name, failed(cells, never, "step limit")) == "inconclusive"
        unknown = (cells["seed"] == 0) & (cells["m"] == cells["m"].max())
        assert verdict(name, failed(cells, unknown, "worker killed")) == "holds", (
            "a median bears it"
        )
        most = never | ((cells["activation"] == "softmax") & (cells["m"] == cells["m"].max()))
        assert verdict(name, failed(cells, most, "absent")) == "inconclusive"


def test_a_fall_that_turns_at_the_end_is_none() -> None:
    """The error falls tenfold to n = 300, and rises fivefold at n = 1000."""
    cells = true_cells("diffusion-falls")
    turned = cells["n"].map({100: 1.0, 300: 0.1, 1000: 0.5})
    noise = np.exp(0.05 * named_rng(0, "noise").standard_normal(len(cells)))
    columns = ("score_error", "denoiser_error")
    doctored = cells.assign(**dict.fromkeys(columns, turned * noise))
    assert verdict("diffusion-falls", doctored) == "fails"


def test_the_contradiction_of_the_gradient_is_one_sentence() -> None:
    claim = CLAIMS["softmax-gradient-of-23"]
    cells = true_cells(claim.name)
    far = 0.4 + 0.01 * named_rng(0, "far").standard_normal(cells["seed"].max() + 1)
    measured = claim.judge(cells.assign(gradient_gap=far[cells["seed"].to_numpy()]))
    assert measured.verdict == "fails"
    assert "η/(m λ_max)" in measured.note
    assert "No theorem of the paper uses ∇_γ" in measured.note
    assert ": The update (24) is gradient descent on the loss (23)" in claim.contradiction(measured)
