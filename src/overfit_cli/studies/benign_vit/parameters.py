"""The knobs of the `benign-vit` study, with the values of section 6 of Jiang et al. 2024."""

from __future__ import annotations

import math
from typing import Literal

from pydantic import model_validator

from overfit_cli.parameters import StudyParameters, parameter


class BenignVitParameters(StudyParameters):
    """Definition 3.1's data, equation (1)'s model and section 6's training."""

    n: int = parameter(20, "training samples", symbol="N", at_least=1, at_most=100_000)
    snr: float = parameter(
        10.0, "signal-to-noise ratio", symbol=r"\mathrm{SNR}", above=0, at_most=1e9
    )
    tokens: int = parameter(16, "tokens of a sample", symbol="M", at_least=2, at_most=10_000)
    d: int = parameter(1024, "features of a token", symbol="d", at_least=2, at_most=10**6)
    d_h: int = parameter(
        512, "width of the queries and keys", symbol="d_h", at_least=1, at_most=10**6
    )
    d_v: int = parameter(512, "width of the values", symbol="d_v", at_least=1, at_most=10**6)
    sigma_p: float = parameter(
        0.2, "noise of tokens 3 to M", symbol=r"\sigma_p", above=0, at_most=1e6
    )
    sigma_p_tilde: float = parameter(
        4.0, "noise of token 2", symbol=r"\tilde{\sigma}_p", above=0, at_most=1e6
    )
    learning_rate: float = parameter(0.1, "step size", symbol=r"\eta", above=0, at_most=1e6)
    epsilon: float = parameter(
        0.01, "training loss to stop at", symbol=r"\epsilon", above=0, at_most=0.69
    )
    test_samples: int = parameter(100, "test samples", at_least=1, at_most=100_000)
    init_divisor: float = parameter(
        16.0, "what the default initialisation is divided by", above=0, at_most=1e9
    )
    noise: Literal["isotropic", "orthogonal"] = parameter(
        "isotropic", "noise of covariance I, or orthogonal to the signals as in definition 3.1"
    )
    label_flip: float = parameter(
        0.0, "chance that a training label is flipped", at_least=0, at_most=0.5
    )
    max_steps: int = parameter(10_000, "steps after which a cell gives up", at_least=1)
    dtype: Literal["float32", "float64"] = parameter("float32", "floating-point precision")

    @property
    def signal_norm(self) -> float:
        """‖μ‖, from SNR = ‖μ‖ / (σ_p √d) (section 4)."""
        return self.snr * self.sigma_p * math.sqrt(self.d)

    @model_validator(mode="after")
    def _noise_needs_room(self) -> BenignVitParameters:
        if self.noise == "orthogonal" and self.d < 3:
            raise ValueError(
                f"--set d {self.d}: with noise=orthogonal, d takes a whole number of at least 3, "
                "because the two signals take two features."
            )
        return self
