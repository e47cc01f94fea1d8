"""Parameters of the study `softmax-convergence`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from overfit_cli.core.cell import Cell
from overfit_cli.core.errors import BadValue
from overfit_cli.core.parameters import StudyParameters, parameter
from overfit_cli.studies.softmax_network.paper import (
    DIGITS,
    NAMES,
    PIXELS,
    Activation,
    Initialisation,
)

RADII = (0.001, 0.009)
"""The R at which the largest change of H is looked for; Lemma 5.1 has R below 0.01."""


class SoftmaxConvergenceParameters(StudyParameters):
    """A two-layer network, its hidden weights trained by gradient descent on the squared loss."""

    activation: Activation = parameter(
        "softmax",
        "hidden units; softmax is over all of them",
        label="activation",
        value_labels={"relu": NAMES["relu"]},
    )
    m: int = parameter(512, "hidden units", symbol="m", at_least=2, at_most=10**6, shades=(4, 4096))
    n: int = parameter(
        16, "training samples", symbol="n", at_least=1, at_most=10_000, shades=(2, 512)
    )
    d: int = parameter(
        8, "features of an input", symbol="d", at_least=1, at_most=10_000, shades=(2, 64)
    )
    outputs: int = parameter(
        1,
        "outputs; the paper has 1 in Table 1, else d",
        label="outputs",
        at_least=1,
        at_most=100,
        shades=(1, 32),
    )
    sigma: float = parameter(
        1.0,
        "deviation of the initial weights",
        symbol=r"\sigma",
        label="deviation of initial weights",
        above=0,
        at_most=10,
    )
    data: Literal["sphere", "ball", "digits"] = parameter(
        "sphere",
        "inputs: on the unit sphere, in the unit ball, or principal components of digits",
        label="inputs",
    )
    initialisation: Initialisation = parameter(
        "symmetric",
        "pairs of opposite hidden units, or independent ones, whose F(0) is subtracted",
        label="initial weights",
    )
    step_rule: Literal["stability", "paper"] = parameter(
        "stability",
        "step size: 1/(m λ_max), or Theorem 4.2's 0.1 λ/(m n² outputs²) without e^(16B)",
        label="step rule",
    )
    step_factor: float = parameter(
        1.0,
        "what multiplies the step size",
        symbol="c",
        label="factor of the step size",
        above=0,
        at_most=1e6,
    )
    epsilon: float = parameter(
        0.01,
        "‖F − Y‖² at which training ends",
        symbol=r"\epsilon",
        label="squared error to stop at",
        at_least=0,
        at_most=1000,
    )
    training_steps: int = parameter(
        10_000,
        "gradient steps of a cell, at most",
        label="most gradient steps",
        at_least=1,
        at_most=10**8,
    )
    test_samples: int = parameter(
        64,
        "inputs at which the network is compared with kernel regression",
        label="test inputs",
        at_least=1,
        at_most=10**5,
    )
    verify: bool = parameter(
        False,
        "look for the largest change of the Gram matrix, before the first step",
        label="search for largest change",
    )
    dtype: Literal["float32", "float64"] = parameter(
        "float64",
        "floating-point precision; claims take float64 alone, for their small differences",
        label="floating-point precision",
    )

    def refusals(self) -> Iterator[BadValue]:
        """Give sentences on what can't be drawn."""
        if self.initialisation == "symmetric" and self.m % 2:
            yield BadValue(
                "m",
                self.m,
                "with initialisation=symmetric hidden units come in pairs, so m "
                "takes an even number.",
            )
        if self.data == "digits" and self.d > PIXELS:
            yield BadValue(
                "d",
                self.d,
                f"with data=digits, d takes a whole number of up to {PIXELS}, "
                "the pixels of a digit.",
            )
        if self.data == "digits" and self.n + self.test_samples > DIGITS:
            yield BadValue(
                "n",
                self.n,
                f"with data=digits and test_samples={self.test_samples}, n takes "
                f"a whole number of up to {DIGITS - self.test_samples}: there are {DIGITS} digits.",
            )
        if self.data == "digits" and self.outputs != 1:
            yield BadValue(
                "outputs",
                self.outputs,
                "with data=digits, outputs takes 1: a label "
                "is 1 for an even digit, and −1 for an odd one.",
            )


ConvergenceCell = Cell[SoftmaxConvergenceParameters]
