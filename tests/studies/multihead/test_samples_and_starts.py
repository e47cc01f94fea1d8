"""The gap against samples, random attention, and numbers of heads over 19 decades."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
import torch

from calibration.multihead import rate_curves
from calibration.rates import design
from overfit_cli import UserError
from overfit_cli.core.parameters import build
from overfit_cli.studies.multihead import engine, theory
from overfit_cli.studies.multihead.curve_claims import first_steps
from overfit_cli.studies.multihead.mixture.data import draw_problem
from overfit_cli.studies.multihead.mixture.parameters import MultiheadMixtureParameters
from overfit_cli.studies.multihead.mixture.random_attention import random_attention_columns
from overfit_cli.studies.multihead.mixture.study import study as mixture
from overfit_cli.studies.multihead.mixture.theory import largest_margin
from tests.judged import measure
from tests.training import cell_of, train_in_batches


def test_margins_of_random_attention_are_those_of_all_gradients_written_out() -> None:
    """Gradients of 3 heads in U and W side by side, to 1e-6."""
    settings = {"heads": 3, "initialisation": "attention", "sigma_init": 1.0, "n": 12}
    parameters = MultiheadMixtureParameters.model_validate(settings)
    problem = draw_problem(parameters, 0)
    start = engine.initial_heads(
        [parameters], 0, problem.first, dtype=torch.float64, device="cpu"
    ).weights
    projections, attentions = start["projection"][0], start["attention"][0]
    assert not projections.any()
    x, y = torch.tensor(problem.train.inputs), problem.train.labels
    by_head = [theory.derivatives(x, *pair) for pair in zip(projections, attentions, strict=True)]
    features = np.hstack([head.gradients.numpy() for head in by_head]) / math.sqrt(3)
    best = largest_margin(y[:, None] * features)
    got = random_attention_columns(problem, attentions)
    assert got["ntk_margin"] == pytest.approx(math.sqrt(2) * best.margin, rel=1e-6)


def test_heads_of_random_attention_begin_with_no_output_and_a_margin() -> None:
    sample_cell = cell_of(
        mixture,
        {"heads": 4, "initialisation": "attention", "training_steps": 1, "test_samples": 10},
        0,
    )
    [result] = train_in_batches(mixture, sample_cell, trajectories=True)
    assert result.trajectory["train_loss"][0] == pytest.approx(math.log(2))
    assert result.measurements["ntk_margin"] > 0


def test_training_comes_to_a_limit_in_the_number_of_heads() -> None:
    losses = []
    for heads in (10**9, 9 * 10**18):
        sample_cell = cell_of(
            mixture, {"heads": heads, "training_steps": 100, "n": 20, "test_samples": 10}, 0
        )
        [result] = train_in_batches(mixture, sample_cell)
        losses.append(result.measurements["train_loss"])
    assert losses[0] == pytest.approx(losses[1], rel=1e-6)


@pytest.mark.parametrize("values", [{"first_phase": "signs"}, {"initialisation": "gaussian"}])
def test_heads_that_begin_apart_are_no_more_than_can_be_stored(values: dict[str, str]) -> None:
    with pytest.raises(UserError, match="all heads begin alike"):
        build(MultiheadMixtureParameters, {"heads": 10**6, **values})


def gap_cells(power: float) -> pd.DataFrame:
    """Cells whose gap is a power of n."""
    cells = design("heads-gap")
    n = cells["n"].to_numpy(float)
    noise = 1 + 0.01 * np.random.default_rng(0).standard_normal(len(cells))
    return cells.assign(steps=1000, train_loss=0.0, test_loss=noise * n**power)


def test_a_gap_that_falls_faster_than_the_bound_has_its_rate_and_is_not_equal_to_it() -> None:
    assert measure("planted-gap-rate", gap_cells(-2.0)).verdict == "holds"
    assert measure("planted-gap-power", gap_cells(-2.0)).verdict == "fails"
    assert measure("planted-gap-power", gap_cells(-1.0)).verdict == "holds"
    assert measure("planted-gap-rate", gap_cells(-0.5)).verdict == "fails"


def test_a_gap_that_is_not_positive_or_not_known_decides_nothing_by_itself() -> None:
    cells = gap_cells(-2.0)
    lost = cells.assign(test_loss=cells["test_loss"].mask(cells["seed"] < 5))
    assert measure("planted-gap-rate", lost).verdict == "inconclusive"


def test_decades_between_condition_and_conclusion_are_read_off_all_heads() -> None:
    cells = design("heads-least")
    noise = 0.01 * np.random.default_rng(0).standard_normal(len(cells))
    cells = cells.assign(
        steps=1000,
        mean_train_loss=0.5,
        theorem1_bound=1.0,
        theorem1_heads=14.0 + noise - 2 * np.log10(cells["d"]),
    )
    measured = measure("mixture-least-heads-condition", cells)
    assert measured.verdict == "holds"
    assert measured.value == pytest.approx(14, abs=0.5)
    broken = cells.assign(mean_train_loss=np.where(cells["heads"] < 10**6, 2.0, 0.5))
    assert measure("mixture-least-heads-condition", broken).value == pytest.approx(8, abs=0.5)


def test_steps_to_a_test_loss_lie_between_logged_steps() -> None:
    rows = pd.DataFrame(
        {"heads": 1, "seed": 0, "step": [1, 10, 100], "test_loss": [1.0, 0.1, 0.01]}
    )
    assert first_steps(rows, 0.05).steps_to_target.item() == pytest.approx(20)
    assert math.isnan(first_steps(rows, 0.001).steps_to_target.item())


@pytest.mark.parametrize(("power", "verdict"), [(-1.2, "holds"), (-0.5, "fails")])
def test_the_rate_of_late_steps_is_at_least_that_of_the_bound(power: float, verdict: str) -> None:
    cells = design("heads-fig2")
    random = np.random.default_rng(0)
    powers = power + 0.01 * random.standard_normal(20)[cells["seed"].to_numpy()]
    rows = rate_curves(cells, powers, random)
    assert measure("mixture-constant-rate", rows).verdict == verdict
