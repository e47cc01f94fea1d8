"""The replica equations: a plain oracle, identities of the energy, and published solutions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from overfit_cli.core.arrays import Floats
from overfit_cli.studies.positional_semantic import replica
from overfit_cli.studies.positional_semantic.claims import published
from overfit_cli.studies.positional_semantic.parameters import Parameters
from overfit_cli.studies.positional_semantic.replica import Setting, solve

HALF = Setting(omega=0.3, alpha=2.0, sigma=0.5, weight_decay=0.01, mixing="stay")


def logistic(z: float) -> float:
    return 1 / (1 + math.exp(-z))


def trained_by_search(h: list[float], kept: list[float], variance: float, v: float) -> Floats:
    """The scores of least loss, from a grid of starts."""

    def objective(a: Floats) -> float:
        shares = logistic(a[0] * (a[0] - a[1])), logistic(a[1] * (a[1] - a[0]))
        loss = variance * sum((p - t) ** 2 for p, t in zip(shares, kept, strict=True))
        return float(loss + ((a[0] - h[0]) ** 2 + (a[1] - h[1]) ** 2) / (2 * variance * v))

    starts = [h, *([x, y] for x in (-1.5, 1.5) for y in (-1.5, 1.5))]
    found = [minimize(objective, start, method="BFGS", tol=1e-9) for start in starts]
    return np.asarray(min(found, key=lambda result: float(result.fun)).x)


@pytest.mark.parametrize(
    ("overlaps", "setting"),
    [
        ((0.45, 0.6, 0.0, 50.0), HALF),
        ((0.2, 0.0, 0.26, 44.0), HALF),
        ((0.3, 0.2, 0.1, 20.0), HALF._replace(omega=0.6, mixing="cross", sigma=0.8)),
    ],
)
def test_an_iteration_is_that_of_a_plain_loop_over_samples(
    overlaps: tuple[float, float, float, float], setting: Setting
) -> None:
    """The oracle minimises each sample's loss by search, and averages as the equations stand."""
    fields = np.random.default_rng(0).standard_normal((6, 4))
    q, theta, m, v = overlaps
    sigma, variance, alpha = setting.sigma, setting.sigma**2, setting.alpha
    omega, diagonal = setting.omega, {"stay": (0.6, 0.6), "cross": (0.3, 0.2)}[setting.mixing]
    spread = sigma * math.sqrt(q - theta**2)
    q_hat = theta_hat = m_hat = slope = 0.0
    for x in fields.tolist():
        chi = [sigma * x[0], sigma * x[1]]
        own = [logistic(chi[t] * (chi[t] - chi[1 - t])) for t in (0, 1)]
        kept = [(1 - omega) * own[t] + omega * diagonal[t] for t in (0, 1)]
        h = [theta * chi[0] + spread * x[2] + m, theta * chi[1] + spread * x[3] - m]
        f = (trained_by_search(h, kept, variance, v) - h) / (variance * v)
        q_hat += alpha * variance * float(f @ f) / len(fields)
        slope += alpha * float(f @ x[2:]) / spread / len(fields)
        theta_hat += alpha * float(f @ chi) / len(fields)
        m_hat += alpha * float(f[0] - f[1]) / len(fields)
    theta_hat -= theta * variance * slope
    new_v = 1 / max(setting.weight_decay - variance * slope, 1e-3)
    q_new = (q_hat + theta_hat**2 + m_hat**2) * new_v**2
    expected = [q_new, theta_hat * new_v, m_hat * new_v, new_v]
    iterated = replica.Equations(setting, fields).iterate(np.array(overlaps))
    assert iterated == pytest.approx(expected, rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(("branch", "sided"), [("semantic", False), ("positional", True)])
def test_the_energy_changes_with_the_penalty_by_half_of_q(
    branch: replica.Branch, sided: bool
) -> None:
    """The energy is a minimum, so that ∂e/∂λ = q/2, whatever the overlaps do.

    Where samples keep their sides some have no minimum there on the positional branch, and jump.
    """
    less, more = (
        solve(branch, HALF._replace(alpha=1.6, weight_decay=w), sided=sided)
        for w in (0.0098, 0.0102)
    )
    assert (more.energy - less.energy) / 0.0004 == pytest.approx(
        (less.q + more.q) / 4, rel=0.04 if sided else 2e-3
    )


SOLUTIONS = [
    pytest.param(row["start"], row, id=f"{row['start']} {row['alpha']:.3g}")
    for row in published("published_theory").to_dict("records")
]


@pytest.mark.slow
@pytest.mark.parametrize(("start", "row"), SOLUTIONS[::8])
def test_it_is_near_the_published_solution(start: replica.Branch, row: dict[str, Any]) -> None:
    """The derivations say what their integration leaves, and where θ parts below α = 1."""
    solution = solve(start, HALF._replace(alpha=row["alpha"]))
    assert solution.q == pytest.approx(row["q"], abs=0.006)
    assert abs(solution.m) == pytest.approx(row["m"], abs=0.008)
    assert 1000 * solution.energy == pytest.approx(row["train_loss"], rel=0.025)
    if start == "positional" or row["alpha"] > 1:
        assert solution.test_error == pytest.approx(row["test_error"], rel=0.07)
        assert abs(solution.theta) == pytest.approx(row["theta"], abs=0.03)


@pytest.mark.parametrize(("start", "row"), SOLUTIONS[::12])
def test_published_errors_are_above_the_integral_at_their_own_overlaps(
    start: replica.Branch, row: dict[str, Any]
) -> None:
    """No equation is solved for this one: it is what the authors' integration leaves."""
    equations = replica.Equations(HALF, replica._fields(14))
    at_theirs = equations.describe(np.array([row["q"], row["theta"], row["m"], 1.0]), 0)
    assert 1.004 < row["test_error"] / at_theirs.test_error < 1.012


@pytest.mark.parametrize("index", [40, 85, 110])
@pytest.mark.one_in(3)
def test_the_kept_table_is_of_the_solution_in_which_samples_keep_their_sides(index: int) -> None:
    row = published("sided").iloc[index]
    setting = HALF._replace(alpha=row["alpha"], omega=row["omega"])
    solution = solve(row["start"], setting, sided=True)
    for name in ("theta", "m", "q", "test_error"):
        assert abs(getattr(solution, name)) == pytest.approx(row[name], rel=1e-3, abs=1e-9)
    assert 1000 * solution.energy == pytest.approx(row["train_loss"], rel=1e-3)


def test_published_simulations_end_where_samples_keep_their_sides() -> None:
    """At all 150 places, by the largest of each curve; θ of the authors' solution does not."""
    means, sided = published("published"), published("sided")
    curves = ["omega", "start"]
    for start, names in {"semantic": ["theta"], "positional": ["m"]}.items():
        for name in [*names, "test_error", "train_loss"]:
            off = (means[name] - sided[name]) / means.groupby(curves)[name].transform("max")
            assert off[means["start"] == start].abs().max() < (0.065 if name == "m" else 0.045)
    assert np.allclose(means["alpha"], sided["alpha"])
    assert (means[curves] == sided[curves]).all(axis=None)


@pytest.mark.slow
def test_more_points_change_little() -> None:
    few, many = (solve("semantic", HALF, points=points) for points in (11, 13))
    assert few.theta == pytest.approx(many.theta, rel=3e-3)
    assert few.energy == pytest.approx(many.energy, rel=2e-3)


def test_of_other_starts_and_ranks_no_solution_is_known() -> None:
    for other in ({"start": "agnostic"}, {"rank": 2}):
        assert replica.replica_columns(Parameters.model_validate(other)) == {}
