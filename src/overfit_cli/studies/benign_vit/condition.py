"""Condition 4.1 of Jiang et al. 2024, item by item for a cell.

The paper leaves constants open and hides logarithms. Here every constant is 1, a hidden logarithm
is 1, polylog(d) is log d, and the failure probability δ is 1/d, as in the theorems. What is "of
order one" may lie within a factor of ten of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from overfit_cli.studies.benign_vit.parameters import BenignVitParameters

ORDER_ONE = 10.0
"""By what factor a number may differ from 1 that the paper wants to be of order one."""


@dataclass(frozen=True)
class Item:
    """One item of the condition: `low` ≤ `value` ≤ `high`.

    Attributes:
        number: as the paper counts them, 1 to 10.
        name: the quantity that is bounded.
        value: what the cell has.
        low, high: the bounds; 0 and infinity where there is none.
    """

    number: int
    name: str
    value: float
    low: float = 0.0
    high: float = math.inf

    @property
    def decades(self) -> float:
        """By how many powers of ten the value lies outside its bounds; 0 within them."""
        if self.value < self.low:
            return math.log10(self.low) - math.log10(self.value)
        if self.value > self.high:
            return math.log10(self.value) - math.log10(self.high)
        return 0.0

    def __str__(self) -> str:
        """Say what is asked for and what there is."""
        sides = [f"{self.low:.3g} ≤ "] if self.low > 0 else [""]
        sides += [self.name, f" ≤ {self.high:.3g}" if math.isfinite(self.high) else ""]
        missed = f", missed by {self.decades:.1f} decades" if self.decades > 0 else ""
        return f"({self.number}) {''.join(sides)}: it is {self.value:.3g}{missed}"


def condition_items(parameters: BenignVitParameters, output_norm: float) -> list[Item]:
    """Return Condition 4.1's items for a cell, in the paper's order.

    Args:
        parameters: the cell's.
        output_norm: ‖w_O‖.
    """
    n, d, d_h, snr = parameters.n, parameters.d, parameters.d_h, parameters.snr
    epsilon, tokens = parameters.epsilon, parameters.tokens
    weight = 1 / (math.sqrt(3 * d) * parameters.init_divisor)  # deviation of a uniform draw
    # min{‖μ‖⁻², (σ_p² d)⁻¹}
    strength = min(parameters.signal_norm**-2, 1 / (parameters.sigma_p**2 * d))
    logarithm = math.log(6 * n**2 * tokens**2 * d)
    query = strength * d_h**-0.5
    return [
        Item(1, "d_h", d_h, low=max(snr**4, snr**-4) * n**2 / epsilon**2),
        Item(2, "d", d, low=n**2 * d_h / epsilon**2),
        Item(3, "N", n, low=math.log(d)),
        Item(4, "M", tokens, high=ORDER_ONE),
        Item(5, "‖w_O‖", output_norm, low=1 / ORDER_ONE, high=ORDER_ONE),
        Item(6, "η", parameters.learning_rate, high=strength * d_h**-0.5),
        Item(7, "σ_V", weight, high=math.sqrt(strength) * d_h**-0.25 / output_norm),
        Item(8, "σ_h²", weight**2, low=query * logarithm**-2, high=query * logarithm**-1.5),
        Item(9, "ε", epsilon, high=1 / math.log(d)),
        _strong_noise(parameters),
    ]


def _strong_noise(parameters: BenignVitParameters) -> Item:
    """Item 10: σ̃_p is 5 √M times σ_p, up to rounding."""
    asked = 5 * math.sqrt(parameters.tokens)
    ratio = parameters.sigma_p_tilde / parameters.sigma_p
    return Item(10, "σ̃_p / σ_p", ratio, low=asked * (1 - 1e-6), high=asked * (1 + 1e-6))
