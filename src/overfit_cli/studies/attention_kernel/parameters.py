"""Attention kernels by name (Song et al. 2024, section 4.2.1), and parameters of a classifier.

Besides the paper's two there are controls, which separate the causes of a difference: a Gaussian
whose rows sum to one, a softmax as large as a sum of n terms, and a Gaussian as small as a mean of
them. Naming them needs no torch; `attention.py` computes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from overfit_cli.core.errors import BadValue
from overfit_cli.core.parameters import StudyParameters, Value, parameter

KernelName = Literal[
    "softmax",
    "gaussian",
    "gaussian-eq11",
    "gaussian-normalised",
    "softmax-times-n",
    "gaussian-over-n",
]


KERNEL_LABELS: Mapping[str, str] = {
    "gaussian": "Gaussian",
    "gaussian-eq11": "Gaussian of (11)",
    "gaussian-normalised": "Gaussian, normalised",
    "softmax-times-n": "softmax times n",
    "gaussian-over-n": "Gaussian over n",
}


@dataclass(frozen=True)
class Kernel:
    """The properties of a kernel."""

    # the c of scores C = −c ‖q − k‖² / √d; None for inner products, C = q·k / √d
    distance: float | None
    normalised: bool  # whether exp(C) is divided by its sum over keys
    power_of_n: int = 0  # the power of the number of tokens that multiplies the result

    def scale(self, tokens: int) -> float:
        """Return what multiplies the attention to `tokens` tokens."""
        return float(tokens) ** self.power_of_n


KERNELS: dict[str, Kernel] = {
    "softmax": Kernel(distance=None, normalised=True),
    "gaussian": Kernel(distance=0.5, normalised=False),
    "gaussian-eq11": Kernel(distance=1.0, normalised=False),
    "gaussian-normalised": Kernel(distance=0.5, normalised=True),
    "softmax-times-n": Kernel(distance=None, normalised=True, power_of_n=1),
    "gaussian-over-n": Kernel(distance=0.5, normalised=False, power_of_n=-1),
}
"""By name; `gaussian` is section 4.2.1's and the appendix's, `gaussian-eq11` equation (11)'s."""


_MODEL: Mapping[str, Value] = {"layers": 2, "heads": 2, "d": 64, "hidden": 128}

PAPER_TRAINING: Mapping[str, Mapping[str, Value]] = {
    "text": {
        "source": "imdb",
        "tokens": 4000,
        "n": 25_000,
        "optimiser": "sgd",
        "batch_size": 16,
        **_MODEL,
    },
    "pathfinder": {
        "source": "lra",
        "size": 32,
        "n": 160_000,
        "optimiser": "adam",
        "batch_size": 128,
        **_MODEL,
    },
}
"""Data, model and training of section 5.2, by task; lengths and counts are the Long Range Arena's,
whose setting the paper follows."""

PAPER_RATES: Mapping[str, float] = {"text": 1e-4, "pathfinder": 2e-4}
"""The step sizes of section 5.2, the same for both kernels."""

PAPER_STEPS = 20_000
"""Steps of the first experiment, by section 5.3.1."""


class ClassifierParameters(StudyParameters):
    """A transformer of two layers, as in Song et al. 2024, section 5.2, and its training."""

    kernel: KernelName = parameter(
        "softmax", "attention kernel", symbol="S", value_labels=KERNEL_LABELS
    )
    optimiser: Literal["adamw", "adam", "sgd"] = parameter(
        "adamw", "optimiser", value_labels={"adamw": "AdamW", "adam": "Adam", "sgd": "SGD"}
    )
    learning_rate: float = parameter(1e-3, "step size", symbol=r"\eta", above=0, at_most=1e3)
    batch_size: int = parameter(32, "samples of a gradient step", at_least=1, at_most=100_000)
    training_steps: int = parameter(600, "gradient steps of a cell", at_least=1, at_most=10**7)
    evaluate_every: int = parameter(
        50,
        "steps between two evaluations",
        label="steps between evaluations",
        at_least=1,
        at_most=10**7,
    )
    n: int = parameter(20_000, "training samples", symbol="N", at_least=2, at_most=10**6)
    test_samples: int = parameter(1000, "test samples", at_least=2, at_most=10**6)
    layers: int = parameter(2, "transformer layers", at_least=1, at_most=100)
    heads: int = parameter(2, "attention heads", symbol="H", at_least=1, at_most=100)
    d: int = parameter(64, "width of a token", symbol="D", at_least=1, at_most=10_000)
    hidden: int = parameter(128, "width of the hidden layers", at_least=1, at_most=100_000)
    dropout: float = parameter(
        0.1, "chance that an activation is dropped", label="dropout", at_least=0, below=1
    )
    weight_decay: float = parameter(
        0.01,
        "decay of the weights, for adamw alone",
        label="decay of the weights",
        at_least=0,
        at_most=1,
    )
    dtype: Literal["float32", "float64"] = parameter("float32", "floating-point precision")

    def refusals(self) -> Iterator[BadValue]:
        """Give a sentence where the heads don't share a token's width."""
        yield from super().refusals()
        if self.d % self.heads:
            yield BadValue(
                "heads",
                self.heads,
                f"the heads share a token's width, so heads takes a "
                f"divisor of d, which is {self.d}.",
            )
