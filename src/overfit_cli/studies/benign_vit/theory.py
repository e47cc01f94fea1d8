"""Theory of `benign-vit` (Jiang et al. 2024): what the theorems and lemmas state, for cells.

The paper leaves constants of Condition 4.1 open and hides logarithms. Here every constant is 1, a
hidden logarithm is 1, polylog(d) is log d, and the failure probability δ is 1/d, as in the
theorems. What is "of order one" may lie within a factor of ten of it. `STAGE_3_ERROR` has the
logarithm that item 1 hides: its cube is about 1.5 · 10⁵.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from overfit_cli.studies.benign_vit.parameters import (
    BenignVitParameters,
    head_variance_window,
    strength_bound,
    value_deviation_bound,
    weight_deviations,
)

FIGURE_1_CONSTANT = 1000.0
"""N · SNR² on the red curve of figure 1; the theorems leave the constant open."""

FIGURE_1_STRONG_NOISE = 20.0
"""σ̃_p/σ_p in figure 1, and in figures 3 and 4."""

FIGURE_1_TOKENS = 16

FIGURE_1_THRESHOLD = 0.2
"""The test loss at which figure 1b cuts."""

HARMFUL_LOSS = 0.5
"""The test loss at which the transition begins; ln 2 = 0.69 is that of a guess."""

FIGURE_1_EXPONENT = 2.0

Regime = Literal["benign", "harmful"]

THEOREMS: Mapping[Regime, str] = {"benign": "4.1", "harmful": "4.2"}

BALANCE = "2 * ((sigma_p_tilde / sigma_p)**2 + tokens - 2)"
"""The value of `learning_balance` as users write it."""

BALANCE_IN_WORDS = "2 ((σ̃_p/σ_p)² + M − 2)"

WIDE_HEADS_LOSS = "log(1 + (exp(epsilon) - 1)**((2 * tokens - 1) / tokens**2))"
"""The test loss as d_h → ∞."""

HIDDEN_LOGARITHM = "log(6 * n**2 * tokens**2 * d)"
"""log(6N²M²/δ), with the theorems' failure probability δ = 1/d."""

STAGE_3_ERROR = f"n * snr**2 * {HIDDEN_LOGARITHM}**3 / sqrt(d_h)"
"""What is missing to an attention of 1 in (65) and (111)."""

DEFICIT = (
    f"n * output_scale**2 * snr**2 * {HIDDEN_LOGARITHM}**1.75 / (2 * sqrt(d_h))"
    " / log(exp(epsilon) - 1)**2"
    " * (2 / (n * snr**2) + (sigma_p / sigma_p_tilde)**2 + tokens - 2)"
)
"""What the mean training attention on the signal misses of 1, to leading order, where SNR > 1.

It is NM‖w_O‖²/(2 s² σ_h² d_h V²) for a noise token of length s, averaged over the M tokens, with
V = −log(e^ε − 1), the margin of each sample where all have the loss ε. The signal's query, with s =
‖μ‖, learns from N/2 samples at once: it misses 2/N of that. σ_h² is in the middle of item 8's
window.
"""


def boundary_product(n: ArrayLike, snr: ArrayLike) -> NDArray[np.float64]:
    """Return N · SNR², on which all depends by Theorems 4.1 and 4.2; broadcasts."""
    return np.asarray(n) * np.asarray(snr, dtype=np.float64) ** FIGURE_1_EXPONENT


def learning_balance(strong_noise: ArrayLike, tokens: ArrayLike) -> NDArray[np.float64]:
    """Return the N · SNR² at which a first step fits samples as much by signal as by noise.

    Attention is even at first, so that a step adds to W_V w_O the mean of y x over all tokens. A
    training sample's margin then grows by its signal token's ‖μ‖² times the N/2 samples that share
    it, and by its own noise tokens' (σ̃_p² + (M − 2) σ_p²) d. These are equal where N · SNR² is
    2 ((σ̃_p/σ_p)² + M − 2).
    """
    squared = np.asarray(strong_noise, dtype=np.float64) ** 2
    return np.asarray(2 * (squared + np.asarray(tokens) - 2))


def learned_signal(p: BenignVitParameters) -> float:
    """Return what a signal's value gains, of N/2 samples, until token 2 has all attention.

    A sample's token 2 takes over the queries of its M tokens as its value v grows. Let u = v σ_h
    √d_h/‖w_O‖. The query of a token of length s pays it a = 1/(1 + (M − 1) e^−Λ), and Λ, its score
    above the others', grows by dΛ = (2/M) a (1 − a) s² u du/A, where A is the mean of a over the
    queries. The signal is paid (1 − a)/(M − 1), and learns from N/2 samples by ‖μ‖² where token 2
    learns from one by σ̃_p² d. What is left out falls with d, d_h and σ_V.
    """
    lengths = np.array([p.signal_norm, p.strong_noise_norm] + [p.noise_norm] * (p.tokens - 2))
    # (steps,): from where no score has moved until the weakest token's are fitted
    u = np.geomspace(1e-3 / lengths.max(), 1e4 / lengths.min(), 4000)
    scores, gained = np.zeros(p.tokens), 0.0  # scores (tokens,)
    for before, after in itertools.pairwise(u):
        a = 1 / (1 + (p.tokens - 1) * np.exp(-scores))  # (tokens,)
        scores += 2 / p.tokens * a * (1 - a) * lengths**2 * (after**2 - before**2) / (2 * a.mean())
        gained += (after - before) * (1 - a).mean() / (p.tokens - 1) / a.mean()
    sigma_h, _ = weight_deviations(p)
    one = p.output_scale / (sigma_h * math.sqrt(p.d_h))
    return float(p.n / 2 * (p.signal_norm / p.strong_noise_norm) ** 2 * one * gained)


def predicted_boundary(strong_noise: ArrayLike, tokens: ArrayLike) -> NDArray[np.float64]:
    """Return the N · SNR² that parts the predicted regimes; the theorems leave it open.

    With figure 1's tokens it is that of the paper's curve, 1000. Elsewhere it is the balance of
    learning, near which overfitting begins to turn benign.
    """
    figure_1 = np.isclose(strong_noise, FIGURE_1_STRONG_NOISE) & np.equal(tokens, FIGURE_1_TOKENS)
    return np.where(figure_1, FIGURE_1_CONSTANT, learning_balance(strong_noise, tokens))


def predicted_regime(p: BenignVitParameters) -> Regime:
    """Return the side of `predicted_boundary` on which a cell lies."""
    boundary = predicted_boundary(p.strong_noise, p.tokens)
    return "benign" if boundary_product(p.n, p.snr) > boundary else "harmful"


def measured_regime(test_loss: float) -> Regime:
    """Return the side of figure 1b's cut on which a test loss lies."""
    return "benign" if test_loss < FIGURE_1_THRESHOLD else "harmful"


def predicted_steps(p: BenignVitParameters, output_norm: float) -> float:
    """Return T of Theorem 4.1 or 4.2, as the regime is predicted, with a constant of 1.

    η⁻¹ ε⁻¹ ‖w_O‖⁻² times ‖μ‖⁻² in the benign regime, and times N σ_p⁻² d⁻¹ in the harmful one.
    """
    benign = predicted_regime(p) == "benign"
    learned = p.signal_norm**2 if benign else p.noise_norm**2 / p.n
    return float(1 / (p.learning_rate * p.epsilon * output_norm**2 * learned))


@dataclass(frozen=True)
class Bound:
    """One item of a theorem's condition: `low` ≤ `value` ≤ `high`."""

    number: int  # as the paper counts its items
    name: str  # the quantity that is bounded
    value: float  # its value in a cell
    # low, high: the bounds; 0 and infinity where there is none
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
        """Give the bounds, the value, and by how much it misses them."""
        below = f"{self.low:.3g} ≤ " if self.low > 0 else ""
        above = f" ≤ {self.high:.3g}" if math.isfinite(self.high) else ""
        decades = f"{self.decades:.1f}" if self.decades >= 0.05 else f"{self.decades:.1g}"
        missed = f", missed by {decades} decades" if self.decades > 0 else ""
        return f"({self.number}) {below}{self.name}{above}: here {self.value:.3g}{missed}"


ORDER_ONE = 10.0
"""The factor by which a number of order one may differ from 1."""


def condition_items(p: BenignVitParameters, output_norm: float) -> list[Bound]:
    """Return Condition 4.1's items for a cell, in the paper's order."""
    sigma_h, sigma_v = weight_deviations(p)
    least, largest = head_variance_window(p)
    ratio = 5 * math.sqrt(p.tokens)  # σ̃_p/σ_p, up to rounding
    return [
        Bound(1, "d_h", p.d_h, low=max(p.snr**4, p.snr**-4) * p.n**2 / p.epsilon**2),
        Bound(2, "d", p.d, low=p.n**2 * p.d_h / p.epsilon**2),
        Bound(3, "N", p.n, low=math.log(p.d)),
        Bound(4, "M", p.tokens, high=ORDER_ONE),
        Bound(5, "‖w_O‖", output_norm, low=1 / ORDER_ONE, high=ORDER_ONE),
        Bound(6, "η", p.learning_rate, high=strength_bound(p)),
        Bound(7, "σ_V", sigma_v, high=value_deviation_bound(p, output_norm)),
        Bound(8, "σ_h²", sigma_h**2, low=least, high=largest),
        Bound(9, "ε", p.epsilon, high=1 / math.log(p.d)),
        Bound(10, "σ̃_p / σ_p", p.strong_noise, ratio * (1 - 1e-6), ratio * (1 + 1e-6)),
    ]


def condition_in_words(cells: Sequence[BenignVitParameters]) -> list[str]:
    """Return one line per item: where it is tightest, and how many cells miss it."""
    items = [condition_items(cell, cell.output_scale) for cell in cells]
    met = sum(not any(item.decades for item in of_cell) for of_cell in items)
    lines = [
        f"Condition 4.1, with all constants 1, is met by {met} of {len(cells)} cells; where it is "
        "tightest:"
    ]
    for of_item in zip(*items, strict=True):
        short = sum(item.decades > 0 for item in of_item)
        tightest = min(of_item, key=lambda item: item.slack)
        lines.append(f"  {tightest}" + (f"; {short} cells miss it" if short else ""))
    return lines


def in_words(p: BenignVitParameters, output_norm: float) -> str:
    """Return T of a cell, and the items of Condition 4.1 that it misses, a line each."""
    items, regime = condition_items(p, output_norm), predicted_regime(p)
    missed = [f"\n  {item}" for item in items if item.decades]
    return (
        f"Theorem {THEOREMS[regime]}'s T, with a constant of 1, is "
        f"{predicted_steps(p, output_norm):.3g} steps.\n"
        f"Condition 4.1, with all constants 1: {len(items) - len(missed)} of {len(items)} items "
        f"are met{'; missed:' if missed else '.'}{''.join(missed)}"
    )
