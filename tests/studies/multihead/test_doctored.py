"""Claims on worlds in which cells are missing, refuting, irrelevant, turned round or copied."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from calibration.rates import design
from overfit_cli.studies.multihead.claims import with_step_ends
from tests.judged import measure

FOUND = {"alignment_w": 0.99, "alignment_u": 0.99}
MISSED = {"alignment_w": -0.94, "alignment_u": -0.9, "steps_to_target": np.nan, "train_loss": 0.25}
PLANTED = {1: 400.0, 2: 280.0, 5: 176.0, 10: 142.0, 20: 126.0, 50: 115.0}


def trained(preset: str, steps: dict[int, float], **columns: float) -> pd.DataFrame:
    """Cells of a preset that come to the target after these steps, by H, a few by seed."""
    cells = design(preset)
    noise = 1 + 0.002 * np.random.default_rng(0).standard_normal(len(cells))
    arrival = cells["heads"].map(steps).astype(float) * noise
    return cells.assign(steps=1000, train_loss=1e-4, steps_to_target=arrival, **columns)


def planted(preset: str = "heads-fig4") -> pd.DataFrame:
    return trained(preset, PLANTED, **FOUND)


def without(cells: pd.DataFrame, heads: list[int], seeds: int = 10**9) -> pd.DataFrame:
    """The cells, of which these H never find the planted head on the first seeds."""
    lost = cells["heads"].isin(heads) & (cells["seed"] < seeds)
    return cells.assign(**{name: cells[name].mask(lost, to) for name, to in MISSED.items()})


@pytest.mark.parametrize("name", ["planted-gd-faster", "planted-gd-ever-faster"])
def test_many_heads_that_never_arrive_are_not_faster(name: str) -> None:
    cells = planted()
    assert measure(name, cells).verdict == "holds"
    assert measure(name, without(cells, [50])).verdict == "fails"
    assert measure(name, without(cells, [20, 50])).verdict == "fails"


def test_a_speed_that_improves_somewhat_need_not_do_so_up_to_the_largest_number_of_heads() -> None:
    turned = {1: 400.0, 2: 280.0, 5: 176.0, 10: 142.0, 20: 126.0, 50: 180.0}
    cells = trained("heads-fig4", turned, **FOUND)
    assert measure("planted-gd-faster", cells).verdict == "holds"
    assert measure("planted-gd-ever-faster", cells).verdict == "fails"
    slower = trained("heads-fig4", {heads: 100.0 * heads**0.2 for heads in PLANTED}, **FOUND)
    assert measure("planted-gd-faster", slower).verdict == "fails"


def test_some_seeds_on_which_many_heads_never_arrive_are_borne_and_half_of_them_are_not() -> None:
    """Half of the seeds are censored."""
    assert measure("planted-gd-ever-faster", without(planted(), [50], seeds=4)).verdict == "holds"
    half = measure("planted-gd-ever-faster", without(planted(), [50], seeds=10))
    assert half.verdict == "inconclusive"
    assert half.interval is not None
    assert half.interval.high == np.inf


def test_a_censored_cell_lies_between_its_steps_and_infinity() -> None:
    cells = with_step_ends(without(planted(), [50], seeds=1)).set_index(["seed", "heads"])
    least, most = cells["least_steps"], cells["most_steps"]
    assert (least[0, 50], most[0, 50]) == (1000, np.inf)
    assert least[1, 50] == most[1, 50] == cells["steps_to_target"][1, 50]


@pytest.mark.parametrize("seeds", [5, 10])
def test_seeds_on_which_the_mixture_never_arrives_leave_it_open(seeds: int) -> None:
    """A mean has no end then."""
    cells = trained("heads-fig2", {heads: 40.0 * heads**0.5 for heads in PLANTED})
    lost = (cells["heads"] == 50) & (cells["seed"] < seeds)
    cells = cells.assign(
        steps_to_target=cells["steps_to_target"].mask(lost),
        train_loss=cells["train_loss"].mask(lost, 0.3),
    )
    assert measure("mixture-constant-slower", cells).verdict == "inconclusive"


def test_momentum_that_arrives_seldom_is_not_sooner() -> None:
    cells = planted("heads-fig5")
    quick = cells["optimiser"] == "momentum"
    cells["steps_to_target"] = cells["steps_to_target"].mask(quick, cells["steps_to_target"] / 4)
    assert measure("planted-momentum-sooner", cells).verdict == "holds"
    late = without(cells[quick], [2, 5, 10, 20, 50])
    assert measure("planted-momentum-sooner", pd.concat([cells[~quick], late])).verdict == "fails"


def test_the_more_the_slower_sees_heads_that_are_faster_but_for_the_last() -> None:
    """And its mirror for the more the faster."""
    turned = {1: 100.0, 2: 80.0, 5: 65.0, 10: 55.0, 20: 45.0, 50: 900.0}
    assert measure("mixture-constant-slower", trained("heads-fig2", turned)).verdict == "fails"
    faster = {1: 100.0, 2: 60.0, 5: 30.0, 10: 15.0, 20: 10.0, 50: 16.0}
    assert measure("mixture-adam-faster", trained("heads-fig3-adam", faster)).verdict == "fails"
    flat = faster | {50: 10.5}
    assert measure("mixture-adam-faster", trained("heads-fig3-adam", flat)).verdict == "holds"


def test_the_coefficient_at_many_samples_is_not_averaged_with_that_at_few() -> None:
    """About ζ/2, p is as long with many samples as with few."""
    cells = design("heads-first-phase")
    few = cells["first_samples"] == 1000
    coefficient = np.where(few, 0.8, 0.2) + 0.001 * np.random.default_rng(0).random(len(cells))
    size = np.sqrt(2) * 0.5  # ζ ‖u⋆‖
    deviation = np.abs(coefficient - 0.25) * size
    cells = cells.assign(steps=1, first_coefficient=coefficient, first_deviation=deviation)
    assert measure("mixture-lemma2", cells).verdict == "fails"


def test_a_part_of_corollary_1_that_is_out_of_reach_leaves_the_others() -> None:
    cells = design("heads-random").assign(steps=1, loss_gradient=0.03, loss_hessian=5e-4)
    assert measure("mixture-corollary1-gradient-random", cells).verdict == "holds"
    assert measure("mixture-corollary1-hessian-random", cells).verdict == "holds by far"
    trained = design("heads-fig2").assign(steps=1000, loss_concavity=5e-4)
    assert measure("mixture-corollary1-concavity", trained).verdict == "holds by far"
    broken = trained.assign(loss_concavity=trained["loss_concavity"].mask(trained.index == 3, 1.01))
    assert measure("mixture-corollary1-concavity", broken).verdict == "fails"


def test_a_bound_of_several_says_which_is_out_of_reach() -> None:
    cells = design("heads-random").assign(steps=1, model_gradient=0.5, model_hessian=5e-4)
    measured = measure("mixture-proposition1-random", cells)
    assert measured.verdict == "holds"
    assert "Out of reach: model hessian." in measured.note
    far = measure("mixture-proposition1-random", cells.assign(model_gradient=5e-4))
    assert far.verdict == "holds by far"
