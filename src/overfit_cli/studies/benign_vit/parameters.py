"""Parameters of `benign-vit` with section 6's values (Jiang et al. 2024), and strengths they set.

Draws are made at unit scale. The strengths of tokens and initial weights multiply them; some are
bounds of Condition 4.1, because `initialisation=condition` draws weights within these.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from overfit_cli.core.errors import BadValue
from overfit_cli.core.parameters import StudyParameters, parameter

MOST_DRAWN = 10**6
"""The most features, or head coordinates, that are drawn one by one."""

MOST = 9 * 10**18
"""The most features, or head coordinates, with `sampling=law`: integers have 64 bits."""

SMALLEST_CAPACITY = 32
"""The fewest training samples that are drawn for a seed."""

REALISATIONS_KEPT = 4
"""For how many seeds a process keeps what it has drawn."""

NOT_PROJECTED = frozenset(
    {"snr", "sigma_p", "sigma_p_tilde", "noise_per", "sigma_h", "sigma_v", "output_scale"}
    | {"learning_rate", "epsilon", "label_flip", "max_steps", "leap"}
)
"""Parameters that scale or steer projections, or come after them: cells that differ in them share
their projections."""

TOKEN_CLASSES = ("signal", "noise", "rest")
"""Token 1, the signal; token 2, the strong noise; tokens 3 to M."""

_LEAST_SCALE = 1e-33
"""The smallest score of two unit tokens that float32 tells from nothing."""


class BenignVitParameters(StudyParameters):
    """Definition 3.1's data, equation (1)'s model and section 6's training."""

    n: int = parameter(20, "training samples", "N", within="[1, 1e5]")
    snr: float = parameter(10.0, "signal-to-noise ratio", r"\mathrm{SNR}", within="(0, 1e9]")
    tokens: int = parameter(16, "tokens of a sample", "M", within="[2, 1e4]")
    d: int = parameter(1024, "features of a token", "d", within=f"[2, {MOST}]")
    d_h: int = parameter(
        512, "width of the queries and keys", "d_h", "width of queries and keys", f"[1, {MOST}]"
    )
    d_v: int = parameter(512, "width of the values", "d_v", within="[1, 1e6]")
    sigma_p: float = parameter(0.2, "noise of tokens 3 to M", r"\sigma_p", within="(0, 1e6]")
    sigma_p_tilde: float = parameter(
        4.0, "noise of token 2", r"\tilde{\sigma}_p", within="(0, 1e6]"
    )
    noise_per: Literal["feature", "token"] = parameter(
        "feature",
        "unit of σ_p and σ̃_p: a feature, or a whole token, which is √d features",
        label="unit of the noise",
    )
    learning_rate: float = parameter(0.1, "step size", r"\eta", within="(0, 1e6]")
    epsilon: float = parameter(0.01, "training loss to stop at", r"\epsilon", within="(0, 0.69]")
    test_samples: int = parameter(100, "test samples", within="[1, 1e5]")
    initialisation: Literal["pytorch", "gaussian", "condition"] = parameter(
        "pytorch",
        "PyTorch's default, divided; Gaussian; or Gaussian as Condition 4.1 requires it",
        label="initial weights",
        value_labels={"pytorch": "PyTorch's", "gaussian": "Gaussian", "condition": "Condition 4.1"},
    )
    init_divisor: float = parameter(
        16.0,
        "divisor of PyTorch's default initialisation",
        label="divisor of initial weights",
        within="(0, 1e9]",
    )
    sigma_h: float = parameter(
        0.00113,
        "deviation of a Gaussian W_Q and W_K",
        r"\sigma_h",
        "deviation of W_Q and W_K",
        "(0, 1e6]",
    )
    sigma_v: float = parameter(
        0.00113, "deviation of a Gaussian W_V", r"\sigma_V", "deviation of W_V", "(0, 1e6]"
    )
    output_scale: float = parameter(
        0.577,
        "norm of w_O, with Gaussian weights",
        r"\Vert w_O\Vert",
        "norm of the output layer",
        "(0, 1e6]",
    )
    sampling: Literal["direct", "law"] = parameter(
        "direct", "draw every feature, or draw inner products in law, for any d and d_h"
    )
    noise: Literal["isotropic", "orthogonal"] = parameter(
        "isotropic",
        "noise of covariance I, or orthogonal to the signals as in definition 3.1",
        label="kind of noise",
    )
    labels: Literal["coin", "balanced"] = parameter(
        "coin",
        "training labels: each drawn by a coin, or equally many of both",
        label="training labels",
    )
    label_flip: float = parameter(
        0.0,
        "chance that a training label is flipped",
        label="chance of a flipped label",
        within="[0, 0.5]",
    )
    max_steps: int = parameter(
        10_000, "most steps before a cell fails", label="most steps of a cell", within="[1, 1e18]"
    )
    leap: float = parameter(
        0.0,
        "largest change of a score or margin in one stride of many steps; 0 takes single steps",
        label="largest change in a stride",
        within="[0, 1]",
    )
    dtype: Literal["float32", "float64"] = parameter("float32", "floating-point precision")

    @property
    def noise_norm(self) -> float:
        """σ_p √d, about the length of tokens 3 to M."""
        return self.sigma_p * self._token_over_feature

    @property
    def strong_noise_norm(self) -> float:
        """σ̃_p √d, about the length of token 2."""
        return self.sigma_p_tilde * self._token_over_feature

    @property
    def strong_noise(self) -> float:
        """σ̃_p/σ_p, how much stronger token 2 is than the other noise."""
        return self.sigma_p_tilde / self.sigma_p

    @property
    def signal_norm(self) -> float:
        """‖μ‖, from SNR = ‖μ‖ / (σ_p √d) (section 4)."""
        return self.snr * self.noise_norm

    @property
    def noise_tokens(self) -> int:
        """All noise tokens of the cell, of training and of testing."""
        return (self.n + self.test_samples) * (self.tokens - 1)

    @property
    def _token_over_feature(self) -> float:
        return 1.0 if self.noise_per == "token" else math.sqrt(self.d)

    @property
    def capacity(self) -> int:
        """How many training samples are drawn for a seed's cells of this shape: a doubling of 32.

        It depends on the cell alone, so that a cell's numbers don't depend on its neighbours. In
        law it is at most what d has room for.
        """
        capacity = SMALLEST_CAPACITY
        while capacity < self.n:
            capacity *= 2
        if self.sampling == "law":
            capacity = min(capacity, (self.d - 2) // (self.tokens - 1) - self.test_samples)
        return capacity

    def refusals(self) -> Iterator[BadValue]:
        """Give sentences on what can't be drawn or computed, and on values that nothing uses."""
        least = self.noise_tokens + 2
        if self.noise == "orthogonal" and self.d < 3:
            accepts = "d takes a whole number of at least 3, because the signals take two features."
            yield self.refuse("d", f"with noise=orthogonal, {accepts}")
        if self.sampling == "law" and self.initialisation == "pytorch":
            accepts = "initialisation takes gaussian or condition, because only Gaussian weights"
            accepts += " are rotation invariant; set initialisation=gaussian."
            yield self.refuse("initialisation", f"with sampling=law, {accepts}")
        if self.sampling == "law" and self.d < least:
            accepts = f"with sampling=law, d takes a whole number of at least {least}: {self.n} "
            accepts += f"training and {self.test_samples} test samples have {least - 2} noise "
            accepts += "tokens, and there are two signals. sampling=direct draws fewer features."
            yield self.refuse("d", accepts)
        for name, size in (("d", self.d), ("d_h", self.d_h)):
            if self.sampling == "direct" and size > MOST_DRAWN:
                accepts = f"{name} takes a whole number up to {MOST_DRAWN}; with sampling=law, up "
                yield self.refuse(name, f"with sampling=direct, {accepts}to {MOST}.")
        if self.dtype == "float32" and score_scale(self) < _LEAST_SCALE:
            accepts = (
                f"dtype takes float64: the square of both is below float32's {_LEAST_SCALE:g}."
            )
            yield self.refuse("dtype", f"with noise and weights so small {accepts}")
        for name, (needed, kinds) in _USED_WITH.items():
            given, kind = getattr(self, name), getattr(self, needed)
            if kind not in kinds and given != type(self).model_fields[name].default:
                used = f"is used with {needed}={' or '.join(kinds)}; here it is {kind}."
                yield self.refuse(name, f"{name} {used}")


_USED_WITH = {
    "d_v": ("sampling", ("direct",)),
    "init_divisor": ("initialisation", ("pytorch",)),
    "sigma_h": ("initialisation", ("gaussian",)),
    "sigma_v": ("initialisation", ("gaussian",)),
    "output_scale": ("initialisation", ("gaussian", "condition")),
}


class WeightScales(NamedTuple):
    """What multiplies drawn weights."""

    head: float  # W_Q's and W_K's
    value: float  # W_V's
    output: float  # w_O's


def token_scales(parameters: BenignVitParameters) -> NDArray[np.float64]:
    """Return the strength of each token position, shape (tokens,): ‖μ‖, σ̃_p, σ_p, ..., σ_p."""
    shrunk = math.sqrt(parameters.d) if parameters.noise_per == "token" else 1.0
    scales = np.full(parameters.tokens, parameters.sigma_p / shrunk)
    scales[0] = parameters.signal_norm
    scales[1] = parameters.sigma_p_tilde / shrunk
    return scales


def weight_scales(parameters: BenignVitParameters) -> WeightScales:
    """Return what multiplies a cell's drawn weights: PyTorch's are drawn as they are."""
    if parameters.initialisation == "pytorch":
        return WeightScales(1.0, 1.0, 1.0)
    return WeightScales(*weight_deviations(parameters), parameters.output_scale)


def weight_deviations(parameters: BenignVitParameters) -> tuple[float, float]:
    """Return the deviations of an entry of W_Q and W_K, and of W_V, at initialisation."""
    if parameters.initialisation == "pytorch":  # uniform in ±1/√d, divided
        deviation = 1 / (math.sqrt(3 * parameters.d) * parameters.init_divisor)
        return deviation, deviation
    if parameters.initialisation == "gaussian":
        return parameters.sigma_h, parameters.sigma_v
    low, high = head_variance_window(parameters)
    middle = math.sqrt(math.sqrt(low * high))
    return middle, value_deviation_bound(parameters, parameters.output_scale)


def score_scale(parameters: BenignVitParameters) -> float:
    """Return what multiplies the weakest token's score with itself, at unit scale: (σ_h s)²."""
    head = weight_scales(parameters).head
    return float((head * token_scales(parameters).min()) ** 2)


def strength_bound(parameters: BenignVitParameters) -> float:
    """Return min{‖μ‖⁻², (σ_p² d)⁻¹} d_h^(−1/2), which bounds η (Condition 4.1, item 6)."""
    strength = float(min(parameters.signal_norm**-2, parameters.noise_norm**-2))
    return strength / math.sqrt(parameters.d_h)


def hidden_logarithm(parameters: BenignVitParameters) -> float:
    """Return log(6N²M²/δ), with the theorems' failure probability δ = 1/d."""
    return math.log(6.0 * parameters.n**2 * parameters.tokens**2 * parameters.d)


def head_variance_window(parameters: BenignVitParameters) -> tuple[float, float]:
    """Return the bounds of σ_h² (Condition 4.1, item 8; δ is 1/d)."""
    logarithm = hidden_logarithm(parameters)
    bound = strength_bound(parameters)
    return bound * logarithm**-2, bound * logarithm**-1.5


def value_deviation_bound(parameters: BenignVitParameters, output_norm: float) -> float:
    """Return the upper bound of σ_V (Condition 4.1, item 7)."""
    return math.sqrt(strength_bound(parameters)) / output_norm
