"""Parameters of the `kernel-regression` study: the theorems' setting at a size that can be run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from pydantic import model_validator

from overfit_cli.core.cell import Cell
from overfit_cli.core.errors import BadValue
from overfit_cli.core.parameters import StudyParameters, parameter
from overfit_cli.studies.attention_kernel.parameters import KERNEL_LABELS, KernelName

EXAMPLE = {"n": 1, "tokens": 2, "d": 2, "d_h": 2, "heads": 1, "target": "below"}
"""Values that section 4.2.2's example fixes: its sizes, and the side on which its labels lie."""

OF_THE_EXAMPLE: dict[str, tuple[object, str]] = {
    "value_gap": (0, "it sets the example's two token values apart."),
    "label": (2, "it is the label of the example's tokens."),
    "weights": ("drawn", "only the example's weights can be told."),
}
"""Parameters that no random instance has: the value they keep there, and their meaning."""

NEAR = 3e-9
"""The distance of labels that are near the outputs at the start: so far, condition (12) is met."""

SUBOPTIMAL = 1e-3
"""A loss that stops so far above its optimum, as a share of its start, has stopped too early."""

LAYERS: Mapping[str, int] = {"layers-1": 1, "layers-2": 2, "layers-4": 4}
"""The number L of linear layers on top of attention, by what is trained."""

LARGEST_SPECTRUM = 4096
"""The most rows of a matrix whose singular values are computed; beyond it they are left out."""


class KernelRegressionParameters(StudyParameters):
    """Problem (4) of Song et al. 2024: one layer of attention, W_O fixed, one label a token."""

    kernel: KernelName = parameter(
        "gaussian", "attention kernel", symbol="S", value_labels=KERNEL_LABELS
    )
    trained: Literal["query", "value", "all", "layers-1", "layers-2", "layers-4"] = parameter(
        "query",
        "what is trained: W_Q alone, W_V alone, all three, or they and linear layers on top",
        label="trained weights",
        value_labels={
            "query": "$W_Q$",
            "value": "$W_V$",
            "all": "$W_Q, W_K, W_V$",
            "layers-1": "these and 1 linear layer",
            "layers-2": "these and 2 linear layers",
            "layers-4": "these and 4 linear layers",
        },
    )
    target: Literal["below", "inside", "mixed-sign", "near"] = parameter(
        "below",
        "labels below the token values' hull, inside it, of random sign, or near the first outputs",
        symbol="y",
        label="labels",
        value_labels={
            "below": "below the hull",
            "inside": "inside the hull",
            "mixed-sign": "of random sign",
            "near": "near the first outputs",
        },
    )
    instance: Literal["random", "example"] = parameter(
        "random",
        "drawn at random, or section 4.2.2's example, which fixes the sizes and target",
        label="instance",
    )
    value_gap: float = parameter(
        0.0,
        "in the example, how far its two token values lie from 3",
        symbol=r"\epsilon",
        label="half the gap of token values",
        at_least=0,
        at_most=2.5,
    )
    label: float = parameter(
        2.0,
        "in the example, the label of both tokens",
        symbol="y",
        label="label of the example",
        at_least=-100,
        at_most=100,
    )
    weights: Literal["drawn", "identity"] = parameter(
        "drawn",
        "in the example, W_Q and W_K: drawn, or both σ_W times the identity",
        label="weights of the example",
    )
    n: int = parameter(4, "training samples", symbol="N", at_least=1, at_most=1000, shades=(1, 512))
    tokens: int = parameter(
        4, "tokens of a sample", symbol="n", at_least=2, at_most=1000, shades=(2, 16)
    )
    d: int = parameter(24, "features of a token", symbol="D", at_least=1, at_most=100_000)
    d_h: int = parameter(
        8, "width of a head", symbol="d", at_least=1, at_most=10_000, shades=(1, 64)
    )
    heads: int = parameter(
        1, "attention heads", symbol="H", at_least=1, at_most=1000, shades=(1, 100)
    )
    sigma_w: float = parameter(
        0.7,
        "deviation of the entries of W_Q and W_K",
        symbol=r"\sigma_W",
        label="deviation of W_Q and W_K",
        above=0,
        at_most=100,
    )
    learning_rate: float = parameter(0.1, "step size", symbol=r"\eta", above=0, at_most=1e6)
    training_steps: int = parameter(3000, "gradient steps of a cell", at_least=1, at_most=10**7)
    balance: float = parameter(
        1.0,
        "factor of W_O and divisor of W_V; the step size is divided by its square",
        symbol="c",
        label="balance of W_O and W_V",
        above=0,
        at_most=1e20,
    )
    distance: float = parameter(
        NEAR,
        "with target=near, the distance of the labels from the outputs at the start",
        symbol=r"\|\mathrm{MH}(M_0) - y\|",
        label="distance of the labels",
        above=0,
        at_most=100,
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
            yield BadValue(
                "distance",
                f"{self.distance:g}",
                f"with target={self.target}, distance takes {NEAR:g}; only near labels have one.",
            )
        if self.trained in LAYERS and self.balance != 1:
            yield BadValue(
                "balance",
                f"{self.balance:g}",
                f"with trained={self.trained}, balance takes 1: W_O is not what multiplies W_V.",
            )
        if self.instance == "example":
            return
        rows = self.n * self.tokens
        # what W_V's training is about needs no hull, and so no values that are as they were drawn
        if self.trained != "value" and self.d < rows:
            yield BadValue(
                "d",
                self.d,
                f"with n={self.n} and tokens={self.tokens}, d takes a whole "
                f"number of at least {rows}, so that token rows are independent (D ≥ N n).",
            )
        for name, (value, meaning) in OF_THE_EXAMPLE.items():
            given = getattr(self, name)
            if given != value:
                words = given if isinstance(given, str) else f"{given:g}"
                yield BadValue(
                    name, words, f"with instance=random, {name} takes {value}; {meaning}"
                )


RegressionCell = Cell[KernelRegressionParameters]
