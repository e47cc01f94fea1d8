"""Parameters of the study `softmax-diffusion`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Literal

from overfit_cli.core.cell import Cell
from overfit_cli.core.errors import BadValue
from overfit_cli.core.parameters import StudyParameters, parameter
from overfit_cli.studies.softmax_network.paper import DIGITS, NAMES, PIXELS

Model = Literal["softmax", "exp", "relu", "true", "posterior", "constant"]

MODEL_LABELS: Mapping[str, str] = {
    "relu": NAMES["relu"],
    "true": "true score",
    "posterior": "exact posterior",
}
"""What figures call the denoisers whose value isn't their name."""

TEST_DIGITS = 500
"""The number of test digits."""


LEAST_STEPS, PATIENCE = 100, 2
"""Training ends after so many steps, where the best network is from less than half of them."""


class SoftmaxDiffusionParameters(StudyParameters):
    """A denoiser learned from noisy points, and the samples that it makes."""

    model: Model = parameter(
        "softmax",
        "what denoises: a network, the truth, the exact posterior over the training points, or "
        "their mean",
        label="denoiser",
        value_labels=MODEL_LABELS,
    )
    target: Literal["mixture", "digits"] = parameter(
        "mixture",
        "what is learned: Gaussians on a circle, or principal components of digits",
        label="target distribution",
    )
    modes: int = parameter(6, "Gaussians of the mixture", at_least=1, at_most=1000)
    radius: float = parameter(
        0.7,
        "distance of the mixture's modes from 0",
        symbol="r",
        label="radius of the modes",
        at_least=0,
        at_most=1,
    )
    deviation: float = parameter(
        0.08,
        "deviation of each mode, in every coordinate",
        label="deviation of a mode",
        at_least=0,
        at_most=1,
    )
    d: int = parameter(2, "dimension of the points", symbol="d", at_least=1, at_most=64)
    n: int = parameter(
        400, "training points", symbol="n", at_least=2, at_most=100_000, shades=(30, 30_000)
    )
    noisings: int = parameter(
        1,
        "noisy copies of each training point",
        label="noisy copies of a point",
        at_least=1,
        at_most=1000,
    )
    validation: int = parameter(
        800,
        "points on which networks are tuned",
        label="validation points",
        at_least=10,
        at_most=100_000,
    )
    m: int = parameter(256, "hidden units", symbol="m", at_least=2, at_most=10**6)
    sigma: float = parameter(
        1.0,
        "deviation of the initial weights",
        symbol=r"\sigma",
        label="deviation of initial weights",
        above=0,
        at_most=100,
    )
    optimiser: Literal["adam", "gd"] = parameter(
        "adam",
        "how networks are trained",
        label="optimiser",
        value_labels={"adam": "Adam", "gd": "gradient descent"},
    )
    output_scale: Literal["root", "paper"] = parameter(
        "root",
        "outputs: as in the paper, m ⟨a, softmax⟩, or these over √m",
        label="scale of the outputs",
        value_labels={"root": r"over $\sqrt{m}$", "paper": "the paper's"},
    )
    training_steps: int = parameter(
        1000,
        "gradient steps with each step size, at most",
        label="most gradient steps",
        at_least=1,
        at_most=10**7,
    )
    first_time: float = parameter(
        0.02, "time at which noising begins", symbol="T_0", above=0, at_most=10
    )
    last_time: float = parameter(1.0, "time at which noising ends", symbol="T", above=0, at_most=10)
    sampling_steps: int = parameter(
        100, "steps of the backward process", label="backward steps", at_least=2, at_most=10**5
    )
    samples: int = parameter(1000, "samples drawn", at_least=10, at_most=10**6)
    dtype: Literal["float32", "float64"] = parameter("float32", "networks' precision")

    @property
    def is_network(self) -> bool:
        """Whether the denoiser is trained."""
        return self.model in ("softmax", "exp", "relu")

    def refusals(self) -> Iterator[BadValue]:
        """Give sentences on what can't be drawn, trained or known."""
        if self.m % 2:
            yield BadValue(
                "m",
                self.m,
                "hidden units come in pairs of opposite signs, so m takes an even number.",
            )
        if self.first_time >= self.last_time:
            yield BadValue(
                "first_time",
                self.first_time,
                f"with last_time={self.last_time:g}, first_time takes a number below it.",
            )
        if self.target == "digits":
            yield from self._refused_of_digits()
        elif self.deviation > (limit := (1 - self.radius) / (2 * math.sqrt(self.d))):
            yield BadValue(
                "deviation",
                self.deviation,
                f"with radius={self.radius:g} and d={self.d}, "
                f"deviation takes a number of up to {limit:.3g}, so that the points lie in the "
                "unit ball, as the paper assumes.",
            )

    def _refused_of_digits(self) -> Iterator[BadValue]:
        if self.model == "true":
            yield BadValue(
                "model",
                "true",
                "with target=digits the true score is unknown; model takes "
                "softmax, exp, relu, posterior or constant.",
            )
        available = DIGITS - TEST_DIGITS
        if self.n + self.validation > available:
            yield BadValue(
                "n",
                self.n,
                f"with target=digits, n and validation={self.validation} take up "
                f"to {available} digits together: of {DIGITS}, {TEST_DIGITS} are tested on.",
            )
        if self.d > PIXELS:
            yield BadValue(
                "d", self.d, f"with target=digits, d takes a whole number of up to {PIXELS}."
            )


DiffusionCell = Cell[SoftmaxDiffusionParameters]
