"""Parameters of the studies of Song et al. 2024, and their attention kernels (section 4.2.1).

Besides the paper's two kernels there are controls, which separate the causes of a difference: a
Gaussian whose rows sum to one, a softmax as large as a sum of n terms, and a Gaussian as small as a
mean of them. `attention.py` computes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import model_validator

from overfit_cli.core.cell import Cell
from overfit_cli.core.errors import BadValue
from overfit_cli.core.parameters import StudyParameters, parameter

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


KERNELS: Mapping[str, Kernel] = {
    "softmax": Kernel(distance=None, normalised=True),
    "gaussian": Kernel(distance=0.5, normalised=False),
    "gaussian-eq11": Kernel(distance=1.0, normalised=False),
    "gaussian-normalised": Kernel(distance=0.5, normalised=True),
    "softmax-times-n": Kernel(distance=None, normalised=True, power_of_n=1),
    "gaussian-over-n": Kernel(distance=0.5, normalised=False, power_of_n=-1),
}
"""By name; `gaussian` is section 4.2.1's and the appendix's, `gaussian-eq11` equation (11)'s."""

SOFTMAX, GAUSSIAN = KERNELS["softmax"], KERNELS["gaussian"]


# The theorems' setting at a size that can be run

EXAMPLE = {"n": 1, "tokens": 2, "d": 2, "d_h": 2, "heads": 1, "target": "below"}
"""Values that section 4.2.2's example fixes: its sizes, and the side on which its labels lie."""

OF_THE_EXAMPLE: Mapping[str, tuple[object, str]] = {
    "value_gap": (0, "it sets the example's two token values apart."),
    "label": (2, "it is the label of the example's tokens."),
    "weights": ("drawn", "only the example's weights can be told."),
}
"""Parameters that no random instance has: the value they keep there, and their meaning."""

NEAR = 3e-9
"""The distance of labels that are near the outputs at the start: so far, condition (12) is met."""

LAYERS: Mapping[str, int] = {"layers-1": 1, "layers-2": 2, "layers-4": 4}
"""The number L of linear layers on top of attention, by what is trained."""

_TRAINED = {
    "query": "$W_Q$",
    "value": "$W_V$",
    "all": "$W_Q, W_K, W_V$",
    "layers-1": "these and 1 linear layer",
    "layers-2": "these and 2 linear layers",
    "layers-4": "these and 4 linear layers",
}
_TARGETS = {
    "below": "below the hull",
    "inside": "inside the hull",
    "mixed-sign": "of random sign",
    "near": "near the first outputs",
}


class KernelRegressionParameters(StudyParameters):
    """Problem (4) of Song et al. 2024: one layer of attention, W_O fixed, one label a token."""

    kernel: KernelName = parameter("gaussian", "attention kernel", "S", value_labels=KERNEL_LABELS)
    trained: Literal["query", "value", "all", "layers-1", "layers-2", "layers-4"] = parameter(
        "query",
        "what is trained: W_Q alone, W_V alone, all three, or they and linear layers on top",
        label="trained weights",
        value_labels=_TRAINED,
    )
    target: Literal["below", "inside", "mixed-sign", "near"] = parameter(
        "below",
        "labels below the token values' hull, inside it, of random sign, or near the first outputs",
        "y",
        "labels",
        value_labels=_TARGETS,
    )
    instance: Literal["random", "example"] = parameter(
        "random",
        "drawn at random, or section 4.2.2's example, which fixes the sizes and target",
        label="instance",
    )
    value_gap: float = parameter(
        0.0,
        "in the example, how far its two token values lie from 3",
        r"\epsilon",
        "half the gap of token values",
        "[0, 2.5]",
    )
    label: float = parameter(
        2.0, "in the example, the label of both tokens", "y", "label of the example", "[-100, 100]"
    )
    weights: Literal["drawn", "identity"] = parameter(
        "drawn",
        "in the example, W_Q and W_K: drawn, or both σ_W times the identity",
        label="weights of the example",
    )
    n: int = parameter(4, "training samples", "N", within="[1, 1000]", shades=(1, 512))
    tokens: int = parameter(4, "tokens of a sample", "n", within="[2, 1000]", shades=(2, 16))
    d: int = parameter(24, "features of a token", "D", within="[1, 1e5]")
    d_h: int = parameter(8, "width of a head", "d", within="[1, 1e4]", shades=(1, 64))
    heads: int = parameter(1, "attention heads", "H", within="[1, 1000]", shades=(1, 100))
    sigma_w: float = parameter(
        0.7,
        "deviation of the entries of W_Q and W_K",
        r"\sigma_W",
        "deviation of W_Q and W_K",
        "(0, 100]",
    )
    learning_rate: float = parameter(0.1, "step size", r"\eta", within="(0, 1e6]")
    training_steps: int = parameter(3000, "gradient steps of a cell", within="[1, 1e7]")
    balance: float = parameter(
        1.0,
        "factor of W_O and divisor of W_V; the step size is divided by its square",
        "c",
        "balance of W_O and W_V",
        "(0, 1e20]",
    )
    distance: float = parameter(
        NEAR,
        "with target=near, the distance of the labels from the outputs at the start",
        r"\|\mathrm{MH}(M_0) - y\|",
        "distance of the labels",
        "(0, 100]",
    )
    dtype: Literal["float32", "float64"] = parameter("float64", "floating-point precision")

    @model_validator(mode="before")
    @classmethod
    def _example_has_its_sizes(cls, given: Any) -> Any:
        if given.get("instance") != "example":
            return given
        for name, value in EXAMPLE.items():
            if given.get(name, value) != value:
                accepts = f"with instance=example, {name} takes {value}, which is section 4.2.2's."
                raise ValueError(BadValue(name, given[name], accepts))
        return EXAMPLE | given

    @property
    def step_size(self) -> float:
        """η: a step on W_V then changes the outputs by as much, whatever the balance c is.

        With c W_O and W_V/c the gradient in W_V is c times as large, so a step of η/c² on W_V/c is
        one of η on W_V. The gradients in W_Q and W_K stay, so their steps are c² times as short.
        """
        return self.learning_rate / self.balance**2

    def refusals(self) -> Iterator[BadValue]:
        """Give sentences on dependent token rows, and on what only some instances have."""
        if self.target != "near" and self.distance != NEAR:
            only = f"with target={self.target}, distance takes {NEAR:g}; only near labels have one."
            yield self.refuse("distance", only)
        if self.trained in LAYERS and self.balance != 1:
            why = "balance takes 1: W_O is not what multiplies W_V."
            yield self.refuse("balance", f"with trained={self.trained}, {why}")
        if self.instance == "example":
            return
        rows = self.n * self.tokens
        # what W_V's training is about needs no hull, and so no values that are as they were drawn
        if self.trained != "value" and self.d < rows:
            why = f"of at least {rows}, so that token rows are independent (D ≥ N n)."
            sizes = f"with n={self.n} and tokens={self.tokens}"
            yield self.refuse("d", f"{sizes}, d takes a whole number {why}")
        for name, (value, meaning) in OF_THE_EXAMPLE.items():
            if getattr(self, name) != value:
                yield self.refuse(name, f"with instance=random, {name} takes {value}; {meaning}")


RegressionCell = Cell[KernelRegressionParameters]
