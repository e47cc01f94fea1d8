"""A cell's numbers beside those that Theorem 4.2 and Lemmas 5.1 and 5.3 state."""

from __future__ import annotations

import math
from collections.abc import Mapping

from overfit_cli.studies.softmax_network.convergence.parameters import SoftmaxConvergenceParameters
from overfit_cli.studies.softmax_network.theory import Statement

ROUND_OFF = 1e-14
"""The share of the starting ‖F − Y‖² below which what is left is round-off."""


def columns(
    parameters: SoftmaxConvergenceParameters, measured: Mapping[str, float], residual: float
) -> dict[str, float]:
    """Return the decades by which a cell misses requirements and stays below bounds."""
    smallest, movement = measured["lambda_start"], measured["movement"]
    if smallest <= 0 or movement <= 0:
        return {}
    n, outputs, m = parameters.n, parameters.outputs, parameters.m
    stated = Statement(n, parameters.d, outputs, parameters.sigma, smallest, m)
    drift, bound = measured["kernel_drift"], math.nan
    if drift > 0:
        bound = math.log10(drift) - stated.log10_drift(movement)
    return {
        "width_missing": stated.log10_width() - math.log10(m),
        "step_size_beyond": math.log10(measured["step_size"]) - stated.log10_step_size(),
        "drift_share": drift / (movement * n * outputs),
        "drift_over_bound": bound,
        "movement_over_bound": math.log10(movement) - stated.log10_movement(residual),
        "gap_over_bound": measured["test_gap_most"]
        / stated.gap_bound(measured["test_drift"], drift),
    }
