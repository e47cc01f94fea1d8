"""Linear attention in context: engine and draws against plain ones, and the theory's formulas."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from overfit_cli.studies.linear_attention import engine, reference
from overfit_cli.studies.linear_attention.data import draw_problem
from overfit_cli.studies.linear_attention.parameters import Parameters
from overfit_cli.studies.linear_attention.study import study
from overfit_cli.studies.linear_attention.theory import best_alpha, limit_errors
from tests.training import cell_of, train

SETTINGS: dict[str, dict[str, Any]] = {
    "fewer sequences than features": {"tau": 0.5, "kappa": 0.5, "rho": 0.1},
    "nearly as many": {"tau": 1.5, "kappa": 0, "rho": 0.1, "task_norm": "drawn"},
    "many": {"tau": 5, "kappa": 2, "rho": 0.3, "alpha": 0.5, "task_norm": "drawn"},
    "a ridge": {"tau": 9, "kappa": 0.2, "alpha": 3, "d": 5, "ridge": 0.1},
}


def direct(name: str) -> Parameters:
    small = {"d": 6, "alpha": 2, "sampling": "direct", "test_contexts": 4000}
    return Parameters.model_validate({**small, **SETTINGS[name]})


@pytest.mark.parametrize("name", SETTINGS)
def test_it_solves_as_with_explicit_contexts(name: str) -> None:
    p = direct(name)
    plain = reference.pretrain_plainly(p, 3)
    weights = engine.pretrain(p, draw_problem(p, 3))
    assert np.abs(weights - plain).max() < 1e-7 * np.abs(plain).max()


@pytest.mark.parametrize("name", SETTINGS)
def test_errors_are_those_of_fresh_sequences(name: str) -> None:
    p, draws = direct(name), np.random.default_rng(0)
    problem = draw_problem(p, 3)
    weights, new = engine.pretrain(p, problem), draws.standard_normal((4000, p.d))
    old = problem.tasks[np.arange(4000) % len(problem.tasks)] if p.k else new
    told = (engine.new_tasks(p), engine.pretraining_tasks(p, problem.tasks))
    for tasks, of in zip((new, old), told, strict=True):
        errors = reference.squared_errors(p, weights, tasks, draws)
        spread = 4 * errors.std() / math.sqrt(len(errors))
        assert abs(errors.mean() - engine.error(p, weights, of)) < spread
    if p.k:
        known = problem.tasks
        each = [reference.posterior_errors(p, known, tasks, draws) for tasks in (new, old)]
        spread = 4 * math.hypot(*(errors.std() for errors in each)) / math.sqrt(2000)
        assert abs(each[0].mean() - each[1].mean() - engine.posterior_gap(p, 3, known)) < spread


@pytest.mark.parametrize("name", ["fewer sequences than features", "many"])
def test_contexts_in_law_have_the_moments_of_direct_ones(name: str) -> None:
    def moments(sampling: str, seed: int) -> list[float]:
        p = direct(name).model_copy(update={"sampling": sampling})
        problem = draw_problem(p, seed)
        b, w = problem.b, problem.tasks[np.arange(p.n) % len(problem.tasks)]
        along = (b[:, :-1] * w).sum(1)
        error = engine.error(p, engine.pretrain(p, problem), engine.new_tasks(p))
        means = np.square(b).mean(), along.mean(), along.var(), (b[:, -1] * along).mean()
        return [*map(float, means), error]

    each = (
        np.array([moments(sampling, seed) for seed in range(200)]) for sampling in ("direct", "law")
    )
    drawn, law = each
    spread = np.sqrt((drawn.var(axis=0) + law.var(axis=0)) / len(law))
    assert (np.abs(drawn.mean(0) - law.mean(0)) < 4 * spread).all()


def paper_errors(alpha: float, tau: float, kappa: float, rho: float) -> tuple[float, float]:
    """The paper's ridgeless formulas, in its four cases."""

    def resolvent(x: float, k: float) -> float:
        a = x + 1 - 1 / k
        return 2 / (a + math.sqrt(a * a + 4 * x / k))

    x = (1 + rho) / alpha
    m, mu = resolvent(x, kappa), x * resolvent(x, kappa / tau)
    if tau > 1:
        c = 1 / (1 - kappa * m**2 / (kappa + m) ** 2)
        icl = (c - 1 / (tau - 1)) * (1 + x) * x**2 * m**2 + (3 - 2 * tau) / (tau - 1) * m * x**2
        icl += ((1 + rho) * m / (tau - 1) + 1) * x + rho * m / (tau - 1) + rho
        return icl, tau * (rho + x * (1 - x * m)) / (tau - 1)
    bias = 1 - tau * (1 - mu) ** 2 - mu * (x - rho) / x
    icl = tau * (1 + x) / (1 - tau) * bias - 2 * tau * (1 - mu) + 1 + rho
    e = (1 - tau) * x / (tau * mu)
    c = 1 / (1 - kappa / (1 + kappa * e / (1 - tau)) ** 2)
    noise = (rho + x - 2 * x * (1 - tau) * (x / e + 1)) / (1 - tau - c * (1 - tau) ** 2)
    return icl, tau * ((x + e) ** 2 / e + noise)


@pytest.mark.parametrize("tau", [0.2, 0.7, 1.4, 10.0])
@pytest.mark.parametrize("kappa", [0.2, 0.9, 3.0])
def test_the_limit_is_the_papers_without_a_ridge(tau: float, kappa: float) -> None:
    for alpha, rho in ((0.5, 0.3), (10.0, 0.01)):
        errors = limit_errors(alpha, tau, kappa, rho, 0.0)
        assert errors == pytest.approx(paper_errors(alpha, tau, kappa, rho), rel=1e-9)
        assert limit_errors(alpha, tau, kappa, rho, 1e-9) == pytest.approx(errors, rel=1e-6)


def test_the_limit_has_the_known_gaps_and_a_pole() -> None:
    gaps = {0.2: 0.825, 0.6: 0.438, 1.0: 0.164, 1.6: 0.049, 4.0: 0.009}
    for kappa, gap in gaps.items():
        icl, idg = limit_errors(10.0, 10.0, kappa, 0.01, 0.0)
        assert icl - idg == pytest.approx(gap, abs=5e-4)
    assert limit_errors(2.0, 1.0, 0.5, 0.1, 0.0).icl == math.inf
    assert limit_errors(2.0, 1.0, 0.5, 0.1, 0.01).icl < math.inf


def test_with_a_ridge_cells_come_to_the_limit() -> None:
    values = {"d": 32, "alpha": 4, "tau": 0.5, "kappa": 2, "rho": 0.1, "ridge": 0.3}
    [result] = train(study, cell_of(study, {**values, "test_contexts": 0}, 3))
    for name in ("icl_error", "idg_error"):
        limit = result.measurements[f"theory_{name}"]
        assert result.measurements[name] == pytest.approx(limit, rel=0.2)


@pytest.mark.parametrize("tau", [0.5, 4.0])
def test_errors_turn_where_tasks_are_fewer_than_both_bounds(tau: float) -> None:
    """Below κ = min(τ, 1) with any noise, and above it with much of it alone."""
    border = min(tau, 1.0)
    for kappa in (border / 4, border / 1.3):
        assert best_alpha(tau, kappa, 0.01, 0.0) < 1e4
    for kappa in (border * 1.5, border * 5, 0.0):
        assert best_alpha(tau, kappa, 0.01, 0.0) == math.inf
    assert best_alpha(tau, 1.1, 2.0, 0.0) < 100
