"""The limit of many features: overlaps, losses and energies by the replica equations.

As d grows at n = α d, a minimum of the training loss has overlaps q = ‖Q‖² / d, θ = ⟨Q⋆, Q⟩ / d and
m = ⟨1, Q⟩ / d that solve Result 4.2 of Cui et al. 2024 (7, 8), here for one column. Tokens enter
through four Gaussian fields of deviation σ each: the teacher's χ_l, and what the student adds,

    h_l = θ χ_l + (q − θ²)^½ ζ_l ± m          (+ in the first token, − in the second)

A sample moves the student's scores to the minimum a of ℓ(a) + Σ (a_l − h_l)² / 2 σ² V, with

    ℓ(a) = σ² Σ_l (P_l(a) − T_ll(χ))²,   P_l = logistic(a_l (a_l − a_k)),   f_l = (a_l − h_l) / σ² V

and averages over the fields give

    q̂ = α σ² E Σ f_l²,   θ̂ = α E Σ (χ_l f_l) − θ σ² D,   m̂ = α E (f₁ − f₂),   V̂ = −σ² D
    D = α E Σ ∂f_l/∂h_l = α E Σ ζ_l f_l / (σ² (q − θ²)^½)
    V = 1 / (λ + V̂),   θ = θ̂ V,   m = m̂ V,   q = (q̂ + θ̂² + m̂²) V²

D takes Stein's form: where ℓ has two minima f jumps, and the mean of its derivative would miss the
jumps. The energy per feature, e = α E ℓ(a) + λ q / 2, is the training loss over d; of the two
branches, θ > 0 = m and m > 0 = θ, the one of less energy is the global minimum.

The fields are a Sobol sequence, each point with a mirror image.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import fsolve
from scipy.special import expit, logit, ndtri
from scipy.stats import qmc

from overfit_cli.core.arrays import Floats
from overfit_cli.studies.positional_semantic.parameters import MIXINGS, Parameters

Branch = Literal["semantic", "positional"]

POINTS, COARSE = 12, 8
"""Points of the Sobol sequence, as powers of 2, for a solution and on the way to it."""

_STARTS = {"semantic": (0.45, 0.63, 0.0), "positional": (0.2, 0.0, 0.25)}
"""q, θ and m from which a branch is looked for."""

_FREE = {"semantic": [0, 1, 3], "positional": [0, 2, 3]}
"""The overlaps of q, θ, m and V that are not 0 on a branch."""

_SCALES = np.array([0.2, 0.2, 0.2, 50.0])
"""The sizes of q, θ, m and V, in which a solution's residual is measured."""

_TOLERANCE = 2e-2

_NEAR = 1.0
"""How far a root may lie from the coarse solution, in the overlaps' sizes."""

_ITERATIONS, _NEWTON_STEPS = 50, 60
"""Damped iterations of the equations, and the most steps to a sample's minimum."""

_LEAST_STIFFNESS = 1e-3
"""What 1 / V is at least, on the way to a solution."""


class Setting(NamedTuple):
    """The setting on which a solution depends."""

    omega: float
    alpha: float
    sigma: float
    weight_decay: float
    mixing: Literal["stay", "cross"]


@dataclass(frozen=True)
class Solution:
    """A solution of the equations."""

    q: float
    theta: float
    m: float
    V: float  # the variance of a score over that of a token
    energy: float  # the training loss over d
    test_error: float  # ½ ‖f − y‖² / d on fresh samples
    linear_test_error: float  # of the best linear map
    residual: float  # the largest change in another iteration, in the overlaps' sizes


def replica_columns(parameters: Parameters) -> dict[str, float]:
    """Return the columns of a cell's own branch; nan where it has none, or no solution is found.

    An agnostic start has no branch of its own, and the equations here are those of rank 1.
    """
    p = parameters
    if p.rank != 1 or p.start == "agnostic":
        return {}
    solution = solve(p.start, Setting(p.omega, p.alpha, p.sigma, p.weight_decay, p.mixing))
    if solution.residual > _TOLERANCE:
        return {}
    return {
        "replica_theta": abs(solution.theta),
        "replica_m": abs(solution.m),
        "replica_test_error": solution.test_error,
        "replica_linear_error": solution.linear_test_error,
        "replica_loss": p.d * solution.energy,
    }


@functools.lru_cache(maxsize=4096)
def solve(
    branch: Branch, setting: Setting, points: int = POINTS, *, sided: bool = False
) -> Solution:
    """Return the solution on a branch: damped iterations on few points, then a root on many.

    Where scores jump, averages over finitely many points have steps, and a root may be missing, or
    another branch's: then it is the mean of further damped iterations. Points are a power of 2,
    before mirror images. Where it is `sided` each sample keeps the side of its start.
    """
    free = _FREE[branch]
    scale = _SCALES[free]
    make = functools.partial(SidedEquations, branch) if sided else Equations
    few, many = (make(setting, _fields(number)) for number in (COARSE, points))

    def all_overlaps(scaled: Floats) -> Floats:
        overlaps = np.zeros(4)  # q, θ, m, V
        overlaps[free] = scaled * scale
        return overlaps

    def change(scaled: Floats, equations: Equations) -> Floats:
        overlaps = all_overlaps(scaled)
        if overlaps[0] <= 0 or overlaps[3] <= 0:
            return np.full(3, 9.0)
        moved: Floats = equations.iterate(overlaps)[free] / scale - scaled
        return moved

    def iterations(scaled: Floats, equations: Equations, share: float) -> Floats:
        steps = [scaled]
        for _ in range(_ITERATIONS):
            steps.append(steps[-1] + share * change(steps[-1], equations))
        return np.array(steps)  # (iterations + 1, 3)

    def root(near: Floats) -> tuple[Floats, float]:
        best, *_ = fsolve(change, near, (many,), xtol=1e-5, maxfev=20, full_output=True)
        residual = float(np.abs(change(best, many)).max())
        return best, residual if np.abs(best - near).max() < _NEAR else np.inf

    start = np.array([*_STARTS[branch], 12.0 / setting.sigma**2])[free] / scale
    coarse = iterations(start, few, 0.3)[-1]
    best, residual = root(coarse)
    if residual > _TOLERANCE:
        near = iterations(coarse, make(setting, _fields((COARSE + points) // 2)), 0.5)[-1]
        best, residual = root(near)
    if residual > _TOLERANCE:
        best = iterations(near, many, 0.5)[_ITERATIONS // 2 :].mean(0)
        residual = float(np.abs(change(best, many)).max())
    return many.describe(all_overlaps(best), residual)


@functools.cache
def _fields(points: int) -> Floats:
    """Standard normal χ₁, χ₂, ζ₁, ζ₂ with equal weights, (2 · 2^points, 4).

    The image of a point changes the sign of ζ. Other mirror images would add nothing: a sign of
    everything changes no average but those that are 0 on a branch, nor does a swap of the tokens.
    """
    normal = ndtri(qmc.Sobol(4, scramble=True, seed=0).random_base2(points))  # (2^points, 4)
    return np.concatenate([normal, normal * [1, 1, -1, -1]])


class _Samples(NamedTuple):
    h: Floats  # the student's fields, (2, points)
    a: Floats  # the scores of the trained student, (2, points)
    spread: float  # σ (q − θ²)^½


class Equations:
    """The equations of a setting, with averages over fixed fields."""

    def __init__(self, setting: Setting, fields: Floats) -> None:
        self._setting = setting
        self._chi, self._zeta = fields[:, :2].T, fields[:, 2:].T  # (2, points)
        A = np.array(MIXINGS[setting.mixing])[:, None]  # (2, 1)
        kept = _kept(setting.sigma * self._chi)  # (2, points)
        self._T = (1 - setting.omega) * kept + setting.omega * A  # (2, points)

    def _samples(self, overlaps: Floats) -> _Samples:
        q, theta, m, V = overlaps
        sigma = self._setting.sigma
        spread = sigma * np.sqrt(max(q - theta**2, 1e-12))
        positions = m * np.array([[1.0], [-1.0]])
        h = sigma * theta * self._chi + spread * self._zeta + positions  # (2, points)
        return _Samples(h, self._trained(h, V), spread)

    def _trained(self, h: Floats, V: float) -> Floats:
        return _trained_scores(h, self._T, self._setting.sigma**2, V)

    def _slope(self, s: _Samples, f: Floats, V: float) -> float:
        return float(self._setting.alpha * np.mean((self._zeta * f).sum(0)) / s.spread)

    def iterate(self, overlaps: Floats) -> Floats:
        """Return the overlaps q, θ, m, V after one iteration of the equations."""
        _, theta, _, V = overlaps
        alpha, sigma = self._setting.alpha, self._setting.sigma
        s = self._samples(overlaps)
        f = (s.a - s.h) / (sigma**2 * V)  # (2, points)
        D = self._slope(s, f, V)
        q_hat = alpha * sigma**2 * np.mean((f * f).sum(0))
        theta_hat = alpha * sigma * np.mean((self._chi * f).sum(0)) - theta * sigma**2 * D
        m_hat = alpha * np.mean(f[0] - f[1])
        new_V = 1 / max(self._setting.weight_decay - sigma**2 * D, _LEAST_STIFFNESS)
        overlaps_hat = q_hat + theta_hat**2 + m_hat**2
        return np.array([overlaps_hat * new_V**2, theta_hat * new_V, m_hat * new_V, new_V])

    def describe(self, overlaps: Floats, residual: float) -> Solution:
        """Return a solution, with its losses."""
        q, theta, m, V = (float(value) for value in overlaps)
        alpha, variance = self._setting.alpha, self._setting.sigma**2
        s = self._samples(overlaps)
        fitted, fresh = (variance * np.square(_kept(x) - self._T).sum(0).mean() for x in (s.a, s.h))
        return Solution(
            q,
            theta,
            m,
            V,
            energy=float(alpha * fitted + self._setting.weight_decay * q / 2),
            test_error=float(fresh),
            linear_test_error=float(variance * self._T.var(axis=1).sum()),
            residual=residual,
        )


class SidedEquations(Equations):
    """The equations of descent: each sample keeps the side, a or −a, on which its start is.

    The start's scores are those of the teacher, or lie along the positions. No sample jumps, so
    that D is the mean of the derivative, that of the minimum on its side.
    """

    def __init__(self, branch: Branch, setting: Setting, fields: Floats) -> None:
        super().__init__(setting, fields)
        fitting = _fitting_scores(self._T)
        sides = self._chi if branch == "semantic" else np.array([[1.0], [-1.0]])
        self._start = fitting * np.sign((fitting * sides).sum(0))

    def _trained(self, h: Floats, V: float) -> Floats:
        variance = self._setting.sigma**2
        return _newton(self._start.copy(), h, self._T, variance, 1 / (variance * V))[:2]

    def _slope(self, s: _Samples, f: Floats, V: float) -> float:
        variance = self._setting.sigma**2
        *_, H11, H12, H22 = _expand(s.a, s.h, self._T, variance, 1 / (variance * V))
        moved = (H11 + H22) / (H11 * H22 - H12**2) / (variance * V)  # Σ ∂a_l/∂h_l, (points,)
        return float(self._setting.alpha * (moved - 2).mean() / (variance * V))


def _kept(a: Floats) -> Floats:
    kept: Floats = expit(a * (a - a[::-1]))
    return kept


def _trained_scores(h: Floats, T: Floats, variance: float, V: float) -> Floats:
    """Return the global minimum of ℓ(a) + Σ (a_l − h_l)² / 2 σ² V, (2, points).

    ℓ(a) = ℓ(−a), so there may be several: Newton's method starts at h and at both scores that
    give T, or come near.
    """
    stiffness = 1 / (variance * V)
    fitting = _fitting_scores(T)
    starts = np.stack([h, fitting, -fitting], axis=1)  # (2, 3, points)
    h3, T3 = (np.broadcast_to(x[:, None], starts.shape).reshape(2, -1) for x in (h, T))
    minima = _newton(starts.reshape(2, -1), h3, T3, variance, stiffness)
    a1, a2, values = minima.reshape(3, *starts.shape[1:])  # (3, points) each
    least = values.argmin(0), np.arange(starts.shape[2])
    return np.stack([a1[least], a2[least]])


def _fitting_scores(T: Floats) -> Floats:
    """One of the two scores that give T, or come near, (2, points)."""
    logits = logit(np.clip(T, 1e-6, 1 - 1e-6))  # (2, points)
    total = np.sqrt(np.maximum(logits.sum(0), 0.05))  # a₁ − a₂ where P = T
    fitting: Floats = (logits - logits[::-1]) / total / 2 + total * np.array([[0.5], [-0.5]])
    return fitting


def _newton(a: Floats, h: Floats, T: Floats, variance: float, stiffness: float) -> Floats:
    """Minimise the objective from scores a, (2, points), each by itself; return (3, points).

    The last row of what is returned has the objective. A step that does not lower it is taken back
    and damped, and the Hessian is shifted to be positive.
    """
    minima = np.empty((3, a.shape[1]))  # a₁, a₂ and the objective
    open_points: NDArray[np.intp] = np.arange(a.shape[1])
    damping = np.zeros(a.shape[1])
    current = _expand(a, h, T, variance, stiffness)  # (6, points)
    for _ in range(_NEWTON_STEPS):
        value, g1, g2, H11, H12, H22 = current
        least = (H11 + H22) / 2 - np.hypot((H11 - H22) / 2, H12)
        shift = damping + np.maximum(0.05 * stiffness - least - damping, 0)
        H11, H22 = H11 + shift, H22 + shift
        determinant = H11 * H22 - H12 * H12
        moved = np.stack(
            [a[0] + (H12 * g2 - H22 * g1) / determinant, a[1] + (H12 * g1 - H11 * g2) / determinant]
        )
        trial = _expand(moved, h, T, variance, stiffness)
        taken = trial[0] <= value + 1e-16
        if taken.all():
            a, current, damping = moved, trial, damping * 0.2
        else:
            a, current = np.where(taken, moved, a), np.where(taken, trial, current)
            damping = np.where(taken, damping * 0.2, np.maximum(4 * damping, stiffness))
        damping[damping < 1e-6 * stiffness] = 0
        minima[:2, open_points], minima[2, open_points] = a, current[0]
        going = np.hypot(current[1], current[2]) > 1e-6 * stiffness  # (points,)
        if not going.any():
            break
        a, h, T, current = a[:, going], h[:, going], T[:, going], current[:, going]
        damping, open_points = damping[going], open_points[going]
    return minima


def _expand(a: Floats, h: Floats, T: Floats, variance: float, stiffness: float) -> Floats:
    """The objective ℓ(a) + stiffness Σ (a_l − h_l)² / 2 of samples, and its derivatives.

    Its value, the gradient's two entries, and the Hessian's 11, 12 and 22, (6, points).
    """
    P = _kept(a)  # (2, points)
    D, slope = P - T, P * (1 - P)  # slope is ∂P/∂z, z_l = a_l (a_l − a_k)
    by_z = 2 * variance * D * slope  # ∂ℓ/∂z
    by_zz = 2 * variance * (slope + D * (1 - 2 * P)) * slope  # ∂²ℓ/∂z²
    other, pull = a[::-1], a - h
    own_slope = 2 * a - other  # ∂z_l/∂a_l; ∂z_l/∂a_k is −a_l
    value = (variance * D * D + stiffness / 2 * pull * pull).sum(0)
    gradient = by_z * own_slope - by_z[::-1] * other + stiffness * pull
    diagonal = by_zz * own_slope**2 + 2 * by_z + by_zz[::-1] * other**2 + stiffness
    mixed = -(by_zz * own_slope * a + by_z).sum(0)
    return np.stack([value, *gradient, diagonal[0], mixed, diagonal[1]])
