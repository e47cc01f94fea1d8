"""Attention on sentences of two tokens: engine, draws in law, and what claims derive."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t

import overfit_cli
from overfit_cli.core.cell import Cell
from overfit_cli.studies.positional_semantic.claims import (
    at_mean_norm,
    beside_means,
    transitions,
)
from overfit_cli.studies.positional_semantic.data import (
    draw_problem,
    teacher_norm,
)
from overfit_cli.studies.positional_semantic.parameters import Parameters
from overfit_cli.studies.positional_semantic.reference import train_plainly
from overfit_cli.studies.positional_semantic.study import study
from tests.judged import design
from tests.training import cell_of, train

SMALL: dict[str, object] = {"d": 60, "alpha": 0.2, "training_steps": 100, "dtype": "float64"}
SMALL |= {"test_samples": 2000}


def cell(seed: int = 0, **settings: object) -> Cell[Parameters]:
    return cell_of(study, Parameters.model_validate({**SMALL, **settings}), seed)


@pytest.fixture(scope="module", autouse=True)
def solved() -> None:
    """The theory of the usual setting, which is solved once in a process."""
    train(study, cell())


@pytest.mark.parametrize(
    "other",
    [
        "start=agnostic",
        "",
        "start=positional",
        pytest.param("alpha=0.02", marks=pytest.mark.slow),
        "rank=2 start=positional alpha=1.4",
        "mixing=cross omega=0.6",
        "sigma=1.3 weight_decay=0.2 learning_rate=0.05",
        "optimiser=adam learning_rate=0.01 rank=2 start=agnostic",
    ],
)
@pytest.mark.one_in(4)
def test_it_trains_as_in_the_autograd_loop(other: str) -> None:
    trained = cell(3, **dict(each.split("=") for each in other.split()))
    [result] = train(study, trained)
    expected = train_plainly(trained.parameters, 3)
    assert (result.status, result.steps) == ("done", 100)
    for name in ("train_loss", "theta", "m"):
        assert result.measurements[name] == pytest.approx(expected[name], rel=1e-8, abs=1e-10), name
    for name in ("test_error", "linear_test_error"):  # of other fresh samples
        assert result.measurements[name] == pytest.approx(expected[name], rel=0.1), name


@pytest.mark.parametrize(("d", "alpha"), [(60, 0.1), (30, 1.5)])
def test_draws_in_law_have_the_moments_of_direct_ones(d: int, alpha: float) -> None:
    """Over seeds: inner products of tokens with each other, with the positions and the teacher."""

    def moments(sampling: str, seed: int) -> list[float]:
        p = cell(d=d, alpha=alpha, sampling=sampling).parameters
        problem = draw_problem(p, seed)
        x, teacher = problem.train.tokens, problem.teacher[:, 0]
        first, second = x[:, 0], x[:, 1]
        products = [first[0] @ second[1], first[0] @ teacher, teacher @ problem.ones]
        products += [problem.noise[:, 0] @ teacher, problem.train.tilt[0]]
        means = [first[0] @ first[0], second[1] @ problem.ones, teacher @ teacher]
        return [*map(float, means), problem.train.gap.mean(), *(float(x) ** 2 for x in products)]

    direct, law = (
        np.array([moments(sampling, seed) for seed in range(300)]) for sampling in ("direct", "law")
    )
    spread = np.sqrt((direct.var(axis=0) + law.var(axis=0)) / len(law))
    assert (np.abs(direct.mean(0) - law.mean(0)) < 4 * spread).all()


def test_more_samples_extend_fewer_with_either_sampling() -> None:
    for sampling in ("direct", "law"):
        cells = (cell(d=80, alpha=alpha, sampling=sampling) for alpha in (0.1, 0.3))
        few, many = (draw_problem(each.parameters, 5).train for each in cells)
        assert np.allclose(few.gap, many.gap[: len(few.gap)])
        assert np.allclose(few.teacher, many.teacher[:, : len(few.gap)])


def test_cells_of_many_features_train_in_law() -> None:
    many: dict[str, Any] = {"d": 10**12, "alpha": 2e-11, "training_steps": 100, "start": "agnostic"}
    [result] = train(study, cell(**many, sampling="law"))
    assert result.status == "done"
    # Beside so few samples the weights decay alone.
    assert result.measurements["q"] == pytest.approx(0.01 * (1 - 0.15 * 0.01) ** 200, rel=1e-3)


# What claims derive from cells

RANDOM = np.random.default_rng(0)


def test_a_seeds_transition_lies_between_the_alphas_where_its_losses_change_places() -> None:
    """And a seed with a failed cell there has none."""
    cells = overfit_cli.load("results/positional-phase-quick")
    table = transitions(cells, "energy").set_index(["omega", "seed"])["alpha"]
    losses = cells.set_index(["omega", "seed", "alpha", "start"])["train_loss"].unstack()
    simple, differences = 0, losses["semantic"] - losses["positional"]
    for omega, seed in table.index:
        gaps = differences.loc[omega].loc[seed]
        turns = np.flatnonzero(np.diff(np.sign(gaps.to_numpy())))
        if len(turns) == 1:
            assert gaps.index[turns[0]] <= table[omega, seed] <= gaps.index[turns[0] + 1]
            simple += 1
    assert simple > 10
    lost = cells["seed"].eq(0) & cells["omega"].eq(0.3) & cells["start"].eq("semantic")
    cells["train_loss"] = cells["train_loss"].mask(lost)
    table = transitions(cells, "energy").set_index(["omega", "seed"])["alpha"]
    assert pd.isna(table[0.3, 0])
    assert table[0.3][1:].notna().all()


def test_errors_at_the_mean_norm_are_those_of_the_regression_on_norms() -> None:
    """The oracle is numpy's line through the errors, with its covariance."""
    cells = design("positional-published").query("alpha == 2 and omega == 0.1")
    norms = np.array([teacher_norm(1000, seed) for seed in cells["seed"]]) - 1
    cells = cells.assign(test_error=3 + 2 * norms + 0.01 * RANDOM.standard_normal(len(cells)))
    moved = at_mean_norm(cells).groupby("start")["test_error"]
    for start, at in cells.assign(norm=norms).groupby("start"):
        line, covariance = np.polyfit(at["norm"], at["test_error"], 1, cov=True)
        assert moved.mean()[start] == pytest.approx(line[1])
        widths = t.isf(1e-4, len(at) - 2) / t.isf(1e-4, len(at) - 1)  # it has n − 2 degrees
        assert moved.sem()[start] == pytest.approx(covariance[1, 1] ** 0.5 * widths)


def test_published_means_are_as_uncertain_as_they_say() -> None:
    cells = design("positional-published").assign(m=0.2)
    cells["m"] += 0.01 * RANDOM.standard_normal(len(cells))
    beside = beside_means("m", cells)
    setting = ["omega", "alpha", "start"]
    own = cells.groupby(setting)["m"].sem()
    both = np.hypot(own.to_numpy(), beside.groupby(setting)["error"].first().to_numpy())
    assert beside.groupby(setting)["m"].sem().to_numpy() == pytest.approx(both)
    assert beside.groupby(setting)["m"].mean().to_numpy() == pytest.approx(
        cells.groupby(setting)["m"].mean().to_numpy()
    )
