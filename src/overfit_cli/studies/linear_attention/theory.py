"""Errors of ridge regression on H in the limit d → ∞ at fixed α, τ and κ.

H = x ⊗ b has the covariance I/d ⊗ R, where R = E b bᵀ = F + x I on d of its d + 1 coordinates; the
last one counts for O(1/d). F = Σ w_j w_jᵀ / k, of the tasks, has a Marchenko–Pastur law of ratio
r = 1/κ, and x = (1 + ρ)/α is the noise of a context. Ridge regression acts as if its penalty were
ξ/d and there were no noise, Γ ≈ F (F + z)⁻¹ with z = x + ξ, where

    τ = 1 − ξ m(z) + τ λ / ξ,    m(z) = tr (F + z)⁻¹ / d,    −m'(z) = tr (F + z)⁻² / d,

and ξ = 0 for λ = 0 and τ ≥ 1. Of the n sequences there are (1 − 2 ξ m − ξ² m')/τ degrees of freedom
per sequence, so that the errors are

    e_IDG = (ρ + x + z (2 ξ − z) m + ξ z² m') / (1 − (1 − 2 ξ m − ξ² m') / τ)
    e_ICL = ρ + 1 − 2 (1 − z m) + (1 + x) (1 − 2 z m − z² m' + (m + ξ m') e_IDG / τ).

For λ = 0 these are the paper's four formulas, which have a case for τ < 1 and one for τ > 1.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq, minimize_scalar

MOST_CONTEXT = 1e6
"""The largest α up to which the least error is looked for."""


class Errors(NamedTuple):
    """Errors on new tasks and on those of pretraining."""

    icl: float
    idg: float


def resolvent(z: float, r: float) -> tuple[float, float]:
    """Return m(z) = tr (F + z)⁻¹ / d and m'(z) of the Marchenko–Pastur law of ratio r.

    It is the positive root of r z m² + (z + 1 − r) m = 1.
    """
    a = z + 1 - r
    root = math.sqrt(a * a + 4 * r * z)
    m = 2 / (a + root) if a > 0 else (root - a) / (2 * r * z)
    return m, -(r * m * m + m) / root


@functools.cache
def limit_errors(alpha: float, tau: float, kappa: float, rho: float, ridge: float) -> Errors:
    """Return e_ICL and e_IDG; κ = 0 stands for a new task in each sequence.

    Without a ridge they are infinite at τ = 1.
    """
    x, r = (1 + rho) / alpha, 1 / kappa if kappa else 0.0
    xi = _effective_ridge(x, r, tau, ridge)
    z = x + xi
    m, slope = resolvent(z, r)
    freedom = (1 - 2 * xi * m - xi * xi * slope) / tau
    if freedom >= 1:
        return Errors(math.inf, math.inf)
    idg = (rho + x + z * (2 * xi - z) * m + xi * z * z * slope) / (1 - freedom)
    variance = (m + xi * slope) * idg / tau
    icl = rho + 1 - 2 * (1 - z * m) + (1 + x) * (1 - 2 * z * m - z * z * slope + variance)
    return Errors(icl, idg)


def _effective_ridge(x: float, r: float, tau: float, ridge: float) -> float:
    """The root ξ of τ = 1 − ξ m(x + ξ) + τ λ / ξ, whose right side falls."""
    if ridge == 0 and tau >= 1:
        return 0.0

    def excess(log_xi: float) -> float:
        xi = math.exp(log_xi)
        return 1 - xi * resolvent(x + xi, r)[0] + tau * ridge / xi - tau

    return math.exp(brentq(excess, -80.0, 80.0, xtol=1e-14))


@functools.cache
def best_alpha(tau: float, kappa: float, rho: float, ridge: float) -> float:
    """Return the α of the least e_ICL; infinite where e_ICL falls up to `MOST_CONTEXT`."""

    def error(log_alpha: float) -> float:
        return limit_errors(math.exp(log_alpha), tau, kappa, rho, ridge).icl

    logs = np.linspace(math.log(0.01), math.log(MOST_CONTEXT), 100)
    least = int(np.argmin([error(each) for each in logs]))
    if least == len(logs) - 1:
        return math.inf
    ends = (logs[max(least - 1, 0)], logs[least + 1])
    return math.exp(minimize_scalar(error, bounds=ends, method="bounded").x)
