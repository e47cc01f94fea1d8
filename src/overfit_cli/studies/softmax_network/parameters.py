"""Parameters of the study `softmax-convergence`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from overfit_cli.core.errors import BadValue
from overfit_cli.core.parameters import StudyParameters, parameter
from overfit_cli.studies.softmax_network import DIGITS, PIXELS, Activation, Initialisation

RADII = (0.001, 0.009)
"""The R at which the largest change of H is looked for; Lemma 5.1 has R below 0.01."""


class SoftmaxConvergenceParameters(StudyParameters):
    """A two-layer network, its hidden weights trained by gradient descent on the squared loss."""

    activation: Activation = parameter(
        "softmax", "hidden units; softmax is over all of them", value_labels={"relu": "ReLU"}
    )
    m: int = parameter(512, "hidden units", "m", within="[2, 1000000]", shades=(4, 4096))
    n: int = parameter(16, "training samples", "n", within="[1, 10000]", shades=(2, 512))
    d: int = parameter(8, "features of an input", "d", within="[1, 10000]", shades=(2, 64))
    outputs: int = parameter(
        1, "outputs; the paper has 1 in Table 1, else d", within="[1, 100]", shades=(1, 32)
    )
    sigma: float = parameter(1.0, "deviation of initial weights", r"\sigma", within="(0, 10]")
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
    )
    step_factor: float = parameter(1.0, "factor of the step size", "c", within="(0, 1e6]")
    epsilon: float = parameter(
        0.01,
        "‖F − Y‖² at which training ends",
        r"\epsilon",
        "squared error to stop at",
        within="[0, 1000]",
    )
    training_steps: int = parameter(
        10_000,
        "gradient steps of a cell, at most",
        label="most gradient steps",
        within="[1, 100000000]",
    )
    test_samples: int = parameter(
        64,
        "inputs at which the network is compared with kernel regression",
        label="test inputs",
        within="[1, 100000]",
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
            words = (
                "with initialisation=symmetric hidden units come in pairs: m takes an even number."
            )
            yield self.refuse("m", words)
        if self.data == "digits":
            left = DIGITS - self.test_samples
            if self.d > PIXELS:
                yield self.refuse(
                    "d", f"with data=digits, d takes up to {PIXELS}, as many as pixels."
                )
            if self.n > left:
                words = (
                    f"with data=digits, n takes up to {left}: of {DIGITS}, the others are tests."
                )
                yield self.refuse("n", words)
            if self.outputs != 1:
                words = (
                    "with data=digits, outputs takes 1: even digits have the label 1, others −1."
                )
                yield self.refuse("outputs", words)
