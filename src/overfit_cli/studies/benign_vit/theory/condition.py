"""Condition 4.1 of Jiang et al. 2024, item by item for a cell.

The paper leaves constants open and hides logarithms. Here every constant is 1, a hidden logarithm
is 1, polylog(d) is log d, and the failure probability δ is 1/d, as in the theorems. What is "of
order one" may lie within a factor of ten of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from overfit_cli.studies.benign_vit.parameters import BenignVitParameters
from overfit_cli.studies.benign_vit.scales import (
    head_variance_window,
    learning_rate_bound,
    value_deviation_bound,
    weight_deviations,
)

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
    def slack(self) -> float:
        """By how many powers of ten the value lies within its bounds; negative where outside."""
        value = math.log10(self.value)
        above = value - math.log10(self.low) if self.low > 0 else math.inf
        below = math.log10(self.high) - value if math.isfinite(self.high) else math.inf
        return min(above, below)

    @property
    def decades(self) -> float:
        """By how many powers of ten the value lies outside its bounds; 0 within them."""
        return 0.0 if self.low <= self.value <= self.high else -self.slack

    def __str__(self) -> str:
        """Say what is asked for and what there is."""
        sides = [f"{self.low:.3g} ≤ "] if self.low > 0 else [""]
        sides += [self.name, f" ≤ {self.high:.3g}" if math.isfinite(self.high) else ""]
        by = f"{self.decades:.1f}" if self.decades >= 0.05 else f"{self.decades:.1g}"
        missed = f", missed by {by} decades" if self.decades > 0 else ""
        return f"({self.number}) {''.join(sides)}: it is {self.value:.3g}{missed}"


def condition_items(parameters: BenignVitParameters, output_norm: float) -> list[Item]:
    """Return Condition 4.1's items for a cell, in the paper's order.

    Args:
        parameters: the cell's.
        output_norm: ‖w_O‖.
    """
    n, d, d_h, snr = parameters.n, parameters.d, parameters.d_h, parameters.snr
    epsilon, tokens = parameters.epsilon, parameters.tokens
    sigma_h, sigma_v = weight_deviations(parameters)
    window = head_variance_window(parameters)
    return [
        Item(1, "d_h", d_h, low=max(snr**4, snr**-4) * n**2 / epsilon**2),
        Item(2, "d", d, low=n**2 * d_h / epsilon**2),
        Item(3, "N", n, low=math.log(d)),
        Item(4, "M", tokens, high=ORDER_ONE),
        Item(5, "‖w_O‖", output_norm, low=1 / ORDER_ONE, high=ORDER_ONE),
        Item(6, "η", parameters.learning_rate, high=learning_rate_bound(parameters)),
        Item(7, "σ_V", sigma_v, high=value_deviation_bound(parameters, output_norm)),
        Item(8, "σ_h²", sigma_h**2, low=window[0], high=window[1]),
        Item(9, "ε", epsilon, high=1 / math.log(d)),
        _strong_noise(parameters),
    ]


def condition_in_words(cells: Sequence[BenignVitParameters]) -> list[str]:
    """Return a line an item: by how many cells it is met, and the cell where it is tightest.

    Args:
        cells: with Gaussian weights, whose ‖w_O‖ is known before they are trained.
    """
    by_item = list(zip(*(condition_items(one, one.output_scale) for one in cells), strict=True))
    met = sum(all(item.decades == 0 for item in items) for items in zip(*by_item, strict=True))
    of_cells = f"{met} of {len(cells)} cells"
    lines = [f"Condition 4.1, with all constants 1, is met by {of_cells}; where it is tightest:"]
    for items in by_item:
        tightest = min(items, key=lambda item: item.slack)
        short = sum(item.decades > 0 for item in items)
        lines.append(f"  {tightest}" + (f"; {short} cells miss it" if short else ""))
    return lines


def _strong_noise(parameters: BenignVitParameters) -> Item:
    """Item 10: σ̃_p is 5 √M times σ_p, up to rounding."""
    asked = 5 * math.sqrt(parameters.tokens)
    return Item(
        10, "σ̃_p / σ_p", parameters.strong_noise, low=asked * (1 - 1e-6), high=asked * (1 + 1e-6)
    )
