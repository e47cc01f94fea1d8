"""The replica equations: a plain oracle, identities of the energy, and published solutions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from overfit_cli.core.arrays import Floats
from overfit_cli.studies.positional_semantic import replica
from overfit_cli.studies.positional_semantic.parameters import PositionalSemanticParameters
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

    starts = [h, *([x, y] for x in (-2.0, -0.5, 0.5, 2.0) for y in (-2.0, -0.5, 0.5, 2.0))]
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
    fields = np.random.default_rng(0).standard_normal((60, 4))
    q, theta, m, v = overlaps
    sigma, variance, alpha = setting.sigma, setting.sigma**2, setting.alpha
    omega, diagonal = setting.omega, {"stay": (0.6, 0.6), "cross": (0.3, 0.2)}[setting.mixing]
    spread = sigma * math.sqrt(q - theta**2)
    q_hat = theta_hat = m_hat = slope = 0.0
    for x in fields.tolist():
        chi = [sigma * x[0], sigma * x[1]]
        kept = [
            (1 - omega) * logistic(chi[t] * (chi[t] - chi[1 - t])) + omega * diagonal[t]
            for t in (0, 1)
        ]
        h = [theta * chi[0] + spread * x[2] + m, theta * chi[1] + spread * x[3] - m]
        f = (trained_by_search(h, kept, variance, v) - h) / (variance * v)
        q_hat += alpha * variance * float(f @ f) / len(fields)
        slope += alpha * float(f @ x[2:]) / spread / len(fields)
        theta_hat += alpha * float(f @ chi) / len(fields)
        m_hat += alpha * float(f[0] - f[1]) / len(fields)
    theta_hat -= theta * variance * slope
    new_v = 1 / max(setting.weight_decay - variance * slope, 1e-3)
    expected = [
        (q_hat + theta_hat**2 + m_hat**2) * new_v**2,
        theta_hat * new_v,
        m_hat * new_v,
        new_v,
    ]
    iterated = replica.Equations(setting, fields).iterate(np.array(overlaps))
    assert iterated == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("branch", ["semantic", "positional"])
def test_the_energy_changes_with_the_penalty_by_half_the_squared_length(
    branch: replica.Branch,
) -> None:
    """The energy is a minimum, so that ∂e/∂λ = q/2, whatever the overlaps do."""
    less, more = (
        solve(branch, HALF._replace(alpha=1.6, weight_decay=decay)) for decay in (0.0098, 0.0102)
    )
    slope = (more.energy - less.energy) / 0.0004
    assert slope == pytest.approx((less.q + more.q) / 4, rel=2e-3)


@pytest.mark.parametrize(
    ("alpha", "q", "theta", "m", "energy"),
    [
        (2.0, 0.11415, 0.15856, 0.0, 0.0035994),
        (1.67857, 0.10149, 0.14516, 0.0, 0.0032697),
        (2.0, 0.05001, 0.0, 0.25857, 0.0045153),
        (1.357143, 0.04737, 0.0, 0.25463, 0.0029550),
        (1.016364, 0.04333, 0.0, 0.24904, 0.0021927),
        (0.345455, 0.02420, 0.0, 0.19505, 0.00083359),
    ],
)
def test_it_is_near_the_published_solution_with_many_samples(
    alpha: float, q: float, theta: float, m: float, energy: float
) -> None:
    """Overlaps q and θ are published as those times σ². See the derivations on where they part."""
    branch: replica.Branch = "semantic" if m == 0 else "positional"
    solution = solve(branch, HALF._replace(alpha=alpha), points=13)
    assert solution.q / 4 == pytest.approx(q, abs=1.5e-3)
    assert abs(solution.theta) / 4 == pytest.approx(theta, abs=1.5e-3)
    assert abs(solution.m) == pytest.approx(m, abs=2e-3)
    assert solution.energy == pytest.approx(energy, rel=0.01)


def test_more_points_change_little() -> None:
    few, many = (solve("semantic", HALF, points=points) for points in (11, 13))
    assert few.theta == pytest.approx(many.theta, rel=3e-3)
    assert few.energy == pytest.approx(many.energy, rel=2e-3)


def test_a_cell_has_the_columns_of_its_own_branch() -> None:
    columns = replica.replica_columns(PositionalSemanticParameters(alpha=2.0, d=500))
    solution = solve("semantic", HALF)
    assert columns["replica_theta"] == pytest.approx(solution.theta)
    assert columns["replica_m"] == 0
    assert columns["replica_loss"] == pytest.approx(500 * solution.energy)
    for other in ({"start": "agnostic"}, {"rank": 2}):
        assert replica.replica_columns(PositionalSemanticParameters.model_validate(other)) == {}
