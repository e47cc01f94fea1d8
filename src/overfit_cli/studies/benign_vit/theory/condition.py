"""Condition 4.1 of Jiang et al. 2024, item by item for a cell.

The paper leaves constants open and hides logarithms. Here every constant is 1, a hidden logarithm
is 1, polylog(d) is log d, and the failure probability δ is 1/d, as in the theorems. What is "of
order one" may lie within a factor of ten of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from overfit_cli.analysis.bounds import Bound, tightest_in_words
from overfit_cli.studies.benign_vit.parameters import BenignVitParameters
from overfit_cli.studies.benign_vit.scales import (
    head_variance_window,
    strength_bound,
    value_deviation_bound,
    weight_deviations,
)

ORDER_ONE = 10.0
"""By what factor a number may differ from 1 that the paper wants to be of order one."""


def condition_items(parameters: BenignVitParameters, output_norm: float) -> list[Bound]:
    """Return Condition 4.1's items for a cell, in the paper's order.

    Args:
        parameters: the cell's.
        output_norm: ‖w_O‖.
    """
    n, d, d_h, snr = parameters.n, parameters.d, parameters.d_h, parameters.snr
    epsilon, tokens = parameters.epsilon, parameters.tokens
    sigma_h, sigma_v = weight_deviations(parameters)
    least, most = head_variance_window(parameters)
    ratio = 5 * math.sqrt(tokens)  # σ̃_p/σ_p, up to rounding
    return [
        Bound(1, "d_h", d_h, low=max(snr**4, snr**-4) * n**2 / epsilon**2),
        Bound(2, "d", d, low=n**2 * d_h / epsilon**2),
        Bound(3, "N", n, low=math.log(d)),
        Bound(4, "M", tokens, high=ORDER_ONE),
        Bound(5, "‖w_O‖", output_norm, low=1 / ORDER_ONE, high=ORDER_ONE),
        Bound(6, "η", parameters.learning_rate, high=strength_bound(parameters)),
        Bound(7, "σ_V", sigma_v, high=value_deviation_bound(parameters, output_norm)),
        Bound(8, "σ_h²", sigma_h**2, low=least, high=most),
        Bound(9, "ε", epsilon, high=1 / math.log(d)),
        Bound(10, "σ̃_p / σ_p", parameters.strong_noise, ratio * (1 - 1e-6), ratio * (1 + 1e-6)),
    ]


def condition_in_words(cells: Sequence[BenignVitParameters]) -> list[str]:
    """Return one line per item: by how many cells it is met, and the cell where it is tightest.

    Args:
        cells: with Gaussian weights, whose ‖w_O‖ is known before they are trained.
    """
    items = [condition_items(one, one.output_scale) for one in cells]
    return tightest_in_words("Condition 4.1, with all constants 1,", items)
