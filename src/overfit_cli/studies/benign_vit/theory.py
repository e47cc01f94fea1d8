"""Theory of `benign-vit` (Jiang et al. 2024): what the theorems and lemmas state, for cells.

The paper leaves constants of Condition 4.1 open and hides logarithms. Here every constant is 1, a
hidden logarithm is 1, polylog(d) is log d, and the failure probability δ is 1/d, as in the
theorems. What is "of order one" may lie within a factor of ten of it. `stage_3_error` has the
logarithm that item 1 hides: its cube is about 1.5 · 10⁵. `test_attention_error` is what lemma D.8
takes from item 2 on test data.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from overfit_cli.studies.benign_vit.parameters import (
    BenignVitParameters,
    head_variance_window,
    hidden_logarithm,
    strength_bound,
    value_deviation_bound,
    weight_deviations,
)

if TYPE_CHECKING:
    import pandas as pd


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

T_POWERS: Mapping[Regime, Mapping[str, float]] = {
    "benign": {"snr": -2.0, "epsilon": -1.0, "n": 0.0, "learning_rate": -1.0, "output_scale": -2.0},
    "harmful": {"snr": 0.0, "epsilon": -1.0, "n": 1.0, "learning_rate": -1.0, "output_scale": -2.0},
}
"""The powers of each parameter with which T scales (Theorems 4.1 and 4.2).

‖μ‖ is proportional to the signal-to-noise ratio where σ_p and d stay.
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


def predicted_boundary(strong_noise: ArrayLike, tokens: ArrayLike) -> NDArray[np.float64]:
    """Return the N · SNR² that parts the predicted regimes; the theorems leave it open.

    With figure 1's tokens it is that of the paper's curve, 1000. Elsewhere it is the balance of
    learning, near which overfitting begins to turn benign.
    """
    figure_1 = np.isclose(strong_noise, FIGURE_1_STRONG_NOISE) & np.equal(tokens, FIGURE_1_TOKENS)
    return np.where(figure_1, FIGURE_1_CONSTANT, learning_balance(strong_noise, tokens))


def predicted_regime(parameters: BenignVitParameters) -> Regime:
    """Return the side of `predicted_boundary` on which a cell lies."""
    product = boundary_product(parameters.n, parameters.snr)
    boundary = predicted_boundary(parameters.strong_noise, parameters.tokens)
    return "benign" if product > boundary else "harmful"


def measured_regime(test_loss: float) -> Regime:
    """Return the side of figure 1b's cut on which a test loss lies."""
    return "benign" if test_loss < FIGURE_1_THRESHOLD else "harmful"


def predicted_steps(
    parameters: BenignVitParameters, output_norm: float, regime: Regime | None = None
) -> float:
    """Return T of Theorem 4.1 or 4.2, with a constant of 1.

    Unless the regime is given it is the predicted one.

    η⁻¹ ε⁻¹ ‖w_O‖⁻² times ‖μ‖⁻² in the benign regime, and times N σ_p⁻² d⁻¹ in the harmful one.
    """
    common = parameters.learning_rate * parameters.epsilon * output_norm**2
    if (regime or predicted_regime(parameters)) == "benign":
        return float(1 / (common * parameters.signal_norm**2))
    return float(parameters.n / (common * parameters.noise_norm**2))


ORDER_ONE = 10.0
"""The factor by which a number of order one may differ from 1."""


def condition_items(parameters: BenignVitParameters, output_norm: float) -> list[Bound]:
    """Return Condition 4.1's items for a cell, in the paper's order."""
    n, d, d_h, snr = parameters.n, parameters.d, parameters.d_h, parameters.snr
    epsilon, tokens = parameters.epsilon, parameters.tokens
    sigma_h, sigma_v = weight_deviations(parameters)
    least, largest = head_variance_window(parameters)
    ratio = 5 * math.sqrt(tokens)  # σ̃_p/σ_p, up to rounding
    return [
        Bound(1, "d_h", d_h, low=max(snr**4, snr**-4) * n**2 / epsilon**2),
        Bound(2, "d", d, low=n**2 * d_h / epsilon**2),
        Bound(3, "N", n, low=math.log(d)),
        Bound(4, "M", tokens, high=ORDER_ONE),
        Bound(5, "‖w_O‖", output_norm, low=1 / ORDER_ONE, high=ORDER_ONE),
        Bound(6, "η", parameters.learning_rate, high=strength_bound(parameters)),
        Bound(7, "σ_V", sigma_v, high=value_deviation_bound(parameters, output_norm)),
        Bound(8, "σ_h²", sigma_h**2, low=least, high=largest),
        Bound(9, "ε", epsilon, high=1 / math.log(d)),
        Bound(10, "σ̃_p / σ_p", parameters.strong_noise, ratio * (1 - 1e-6), ratio * (1 + 1e-6)),
    ]


OVERLAP = 0.01
"""The largest share of ε to which noise tokens may overlap where d is as large as it can be."""


def meets_condition(parameters: BenignVitParameters, output_norm: float) -> bool:
    """Return whether a cell meets items 1 and 3 to 10 of Condition 4.1, and item 2 in what it does.

    Item 2 makes noise tokens nearly orthogonal: all others together turn what one learns by about
    NM/√d of it. Its bound of N² d_h/ε² passes 10¹⁸, the largest d that is sampled, where d_h is
    large. So a cell with a smaller d is taken where NM/√d is at most a hundredth of ε. Then N/(ε√d)
    is at most 1/(100M), which lemma E.6 takes from item 2 too. What D.8 takes from it is
    `test_attention_error`.
    """
    items = condition_items(parameters, output_norm)
    overlap = parameters.n * parameters.tokens / math.sqrt(parameters.d)
    is_orthogonal = overlap <= OVERLAP * parameters.epsilon
    return all_met(item for item in items if item.number != 2 or not is_orthogonal)


def stage_3_error(parameters: BenignVitParameters) -> float:
    """Return N·SNR² log(6N²M²/δ)³ / √d_h: what is missing to an attention of 1 in (65), (111)."""
    product = float(boundary_product(parameters.n, parameters.snr))
    return product * hidden_logarithm(parameters) ** 3 / math.sqrt(parameters.d_h)


def harmful_attention_error(parameters: BenignVitParameters) -> float:
    """Return log(6N²M²/δ)³ / (SNR² ‖w_O‖² √d_h): what is missing to an attention of 1 in (169)."""
    scale = (parameters.snr * parameters.output_scale) ** 2
    return hidden_logarithm(parameters) ** 3 / (scale * math.sqrt(parameters.d_h))


def test_attention_error(parameters: BenignVitParameters) -> float:
    """Return ‖μ‖ σ_p σ_h² d_h √(2 log(12N²M/δ)), which lemma D.8 takes to be o(1) by item 2.

    It bounds the scores of a test sample's signal with its noise tokens, up to a constant, which is
    1 here; σ_p is that of an entry. At item 8's bounds it is √(d_h/d) min(SNR, 1/SNR) over a
    logarithm.
    """
    logarithm = math.log(12.0 * parameters.n**2 * parameters.tokens * parameters.d)
    strengths = parameters.signal_norm * parameters.noise_norm / math.sqrt(parameters.d)
    head, _ = weight_deviations(parameters)
    return strengths * head**2 * parameters.d_h * math.sqrt(2 * logarithm)


def proof_constant(parameters: BenignVitParameters) -> float:
    """Return 60 M² C_p², above which N·SNR² makes lemma 5.2's T₁ positive."""
    return 60 * (parameters.tokens * parameters.strong_noise) ** 2


def fitted_value(parameters: BenignVitParameters) -> float:
    """Return −log(e^ε − 1): the margin of each sample where all have the loss ε."""
    return -math.log(math.expm1(parameters.epsilon))


def wide_heads_test_attention(tokens: ArrayLike) -> NDArray[np.float64]:
    """Return (2M − 1)/M², the test attention on the signal as d_h → ∞: new noise pays 1/M."""
    m = np.asarray(tokens, dtype=np.float64)
    return np.asarray((2 * m - 1) / m**2)


def wide_heads_test_loss(parameters: BenignVitParameters) -> float:
    """Return log(1 + (e^ε − 1)^((2M − 1)/M²)), the test loss as d_h → ∞."""
    margin = fitted_value(parameters) * float(wide_heads_test_attention(parameters.tokens))
    return math.log1p(math.exp(-margin))


def class_deficits(parameters: BenignVitParameters) -> tuple[float, float, float]:
    """Return what the attention of the signal, of token 2 and of tokens 3 to M misses of 1.

    It is NM‖w_O‖² / (2 s² σ_h² d_h V²) for a noise token of length s, to leading order, with V the
    `fitted_value`. The signal's query, with s = ‖μ‖, learns from N/2 samples at once: it misses
    2/N of that.
    """
    head, _ = weight_deviations(parameters)
    learned = 2 * head**2 * parameters.d_h * fitted_value(parameters) ** 2
    unit = parameters.n * parameters.tokens * parameters.output_scale**2 / learned
    return (
        2 / parameters.n * unit / parameters.signal_norm**2,
        unit / parameters.strong_noise_norm**2,
        unit / parameters.noise_norm**2,
    )


SMALL_DEFICIT = 0.01
"""The largest deficit at which its leading order is taken: the next one is about a tenth of it."""


def attention_deficit(parameters: BenignVitParameters) -> float:
    """Return what the mean training attention on the signal misses of 1, to leading order."""
    signal, strong, rest = class_deficits(parameters)
    return (signal + strong + (parameters.tokens - 2) * rest) / parameters.tokens


def condition_in_words(cells: Sequence[BenignVitParameters]) -> list[str]:
    """Return one line per item: by how many cells it is met, and the cell where it is tightest."""
    items = [condition_items(cell, cell.output_scale) for cell in cells]
    return tightest_in_words("Condition 4.1, with all constants 1,", items)


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
        sides = [f"{self.low:.3g} ≤ "] if self.low > 0 else [""]
        sides += [self.name, f" ≤ {self.high:.3g}" if math.isfinite(self.high) else ""]
        decades = f"{self.decades:.1f}" if self.decades >= 0.05 else f"{self.decades:.1g}"
        missed = f", missed by {decades} decades" if self.decades > 0 else ""
        return f"({self.number}) {''.join(sides)}: here {self.value:.3g}{missed}"


def all_met(bounds: Iterable[Bound]) -> bool:
    """Return whether every value lies within its bounds."""
    return all(bound.decades == 0 for bound in bounds)


def tightest_in_words(condition: str, cells: Sequence[Sequence[Bound]]) -> list[str]:
    """Return one line per item: where it is tightest, and how many cells miss it."""
    met = f"{sum(map(all_met, cells))} of {len(cells)} cells"
    lines = [f"{condition} is met by {met}; where it is tightest:"]
    for of_item in zip(*cells, strict=True):
        tightest = min(of_item, key=lambda item: item.slack)
        short = sum(item.decades > 0 for item in of_item)
        lines.append(f"  {tightest}" + (f"; {short} cells miss it" if short else ""))
    return lines


STAGE_2_SLOPE = 0.4
"""Stage 2 lasts while −ℓ′ is 1/2 − o(1) (lemma 5.3); here while its mean is above this."""


@dataclass(frozen=True)
class StageEnds:
    """The steps at which stages 1 and 2 end (lemmas 5.2, 5.3 and E.3); nan where one never does."""

    # the first step at which the value of the signal (in the harmful regime, of token 2) is 3M
    # times any other's
    first: float
    second: float  # the first step at which the loss's mean slope is below `STAGE_2_SLOPE`
    lead: float  # the greatest lead reached, to be held against 3M


def stage_ends(trajectory: pd.DataFrame, tokens: int, regime: Regime) -> StageEnds:
    """Return the ends of stages 1 and 2 of one cell."""
    lead = trajectory["signal_lead" if regime == "benign" else "noise_lead"]
    ends = (lead >= 3 * tokens, trajectory["loss_slope"] < STAGE_2_SLOPE)
    first, second = (float(trajectory["step"][reached].min()) for reached in ends)
    return StageEnds(first, second, float(lead.max()))
