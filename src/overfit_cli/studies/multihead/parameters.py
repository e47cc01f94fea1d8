"""Parameters of `multihead-mixture` and `multihead-planted`, and the problem of a cell.

A problem is a cell's samples, with the planted head and the margin where they are given.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from overfit_cli.core.errors import BadValue
from overfit_cli.core.parameters import StudyParameters, parameter

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Optimiser = Literal["gd", "momentum", "adam", "loss-normalised", "gradient-normalised"]
StepRule = Literal["constant", "sqrt-heads", "heads"]

STEP_RULES: dict[StepRule, float] = {"constant": 0.0, "sqrt-heads": 0.5, "heads": 1.0}
"""The power of H by which each rule multiplies the step size."""


MOST_HEADS_APART = 100_000
"""The largest H where heads differ at the start: each has a step size or weights of its own."""

LEVELS = 1000
"""The number of sizes that uniform first steps have beyond: heads of one size are a class."""


class MultiheadParameters(StudyParameters):
    """Logistic regression with one layer of multi-head attention, trained by full batches."""

    heads: int = parameter(
        1, "attention heads", symbol="H", at_least=1, at_most=9 * 10**18, shades=(1, 100)
    )
    optimiser: Optimiser = parameter(
        "gd",
        "optimiser; the normalised ones divide by the loss, or by the gradient's norm",
        label="optimiser",
        value_labels={"gd": "gradient descent", "adam": "Adam"},
    )
    learning_rate: float = parameter(
        1.0,
        "step size, before the step rule",
        symbol=r"\eta",
        label="base step size",
        above=0,
        at_most=1e6,
    )
    step_rule: StepRule = parameter(
        "constant",
        "what multiplies the step size: 1, the root of heads, or heads",
        label="step rule",
        value_labels={"sqrt-heads": "times √H", "heads": "times H"},
    )
    momentum: float = parameter(
        0.9, "momentum, for optimiser=momentum", label="momentum", at_least=0, below=1
    )
    training_steps: int = parameter(1000, "gradient steps of a cell", at_least=1, at_most=10**8)
    target_loss: float = parameter(
        1e-3,
        "training loss up to which steps are counted",
        label="target training loss",
        above=0,
        at_most=10,
    )
    epsilon: float = parameter(
        0.0,
        "training loss at which training ends",
        symbol=r"\epsilon",
        label="training loss to stop at",
        at_least=0,
        at_most=10,
    )
    trained: Literal["all", "attention"] = parameter(
        "all", "what is trained: U and W, or W alone", label="trained weights"
    )
    first_phase: Literal["none", "signs", "positive", "uniform"] = parameter(
        "none",
        "section 5.1's first step from zero: none, or with a step size of ±1 for each head, of 1, "
        "or uniform on [−1, 1] for each head, as the factor 1/2 of (116) suggests (1000 sizes "
        f"above {MOST_HEADS_APART} heads)",
        label="first phase",
    )
    first_samples: int = parameter(
        100,
        "samples of the first phase, in addition to n",
        symbol="n_1",
        label="samples of the first phase",
        at_least=1,
        at_most=10**6,
    )
    initialisation: Literal["zero", "gaussian", "attention"] = parameter(
        "zero",
        "initial weights, before the first phase: zero, Gaussian, or Gaussian W and U of zero",
        label="initial weights",
        value_labels={"gaussian": "Gaussian"},
    )
    sigma_init: float = parameter(
        0.1,
        "deviation of Gaussian initial weights",
        symbol=r"\sigma_0",
        label="deviation of initial weights",
        above=0,
        at_most=100,
    )
    head_width: Literal["full", "shared"] = parameter(
        "full",
        "whether W and U are full matrices, or products of factors of width d/H, so that any "
        "number of heads has as many parameters",
        label="head width",
    )
    separate_heads: bool = parameter(
        False,
        "train every head by itself, even those that begin alike and stay so",
        label="separate training of heads",
    )
    n: int = parameter(100, "training samples", symbol="n", at_least=1, at_most=10**6)
    test_samples: int = parameter(300, "test samples", at_least=1, at_most=10**6)
    tokens: int = parameter(10, "tokens of a sample", symbol="T", at_least=2, at_most=1000)
    d: int = parameter(4, "features of a token", symbol="d", at_least=1, at_most=1000)
    certify: bool = parameter(
        False,
        "check the bounds of Proposition 1 and Corollary 1 at every logged step",
        label="check of the bounds",
    )
    machine: bool = parameter(
        False,
        "false: W is no longer compared with the attention support vector machine's solution",
        label="attention SVM comparison",
    )
    dtype: Literal["float32", "float64"] = parameter("float64", "floating-point precision")

    @property
    def step_size(self) -> float:
        """The step size that each head takes."""
        return float(self.learning_rate * math.pow(self.heads, STEP_RULES[self.step_rule]))

    @property
    def has_levels(self) -> bool:
        """Whether uniform first steps are of `LEVELS` sizes, as heads are too many for their own.

        They are the middles of as many parts of [−1, 1]: their mean square is 1/3 to a millionth.
        """
        return self.first_phase == "uniform" and self.heads > MOST_HEADS_APART

    @property
    def each_head(self) -> bool:
        """Whether heads begin apart, or are to be trained one by one."""
        drawn = self.first_phase == "uniform" and not self.has_levels
        return self.separate_heads or drawn or self.initialisation != "zero"

    @property
    def classes(self) -> int:
        """How many classes of heads there are: those of a class begin alike, and stay so."""
        if self.each_head:
            return self.heads
        if self.has_levels:
            return LEVELS
        return 2 if self.first_phase == "signs" else 1

    def refusals(self) -> Iterator[BadValue]:
        """Give sentences on initial weights from which nothing is learned."""
        if self.machine:
            yield BadValue("machine", True, "it takes false: the comparison is no longer made.")
        if self.head_width == "shared":
            yield from self._refusals_of_factors()
        begins_apart = self.each_head or self.first_phase in ("signs", "positive")
        if begins_apart and self.heads > MOST_HEADS_APART:
            yield BadValue(
                "heads",
                self.heads,
                f"above {MOST_HEADS_APART} all heads begin alike: initialisation takes zero, "
                "first_phase none or uniform, and separate_heads false.",
            )
        from_zero = self.initialisation != "gaussian" and self.first_phase == "none"
        if self.trained == "attention" and from_zero:
            yield BadValue(
                "trained",
                "attention",
                f"with initialisation={self.initialisation} and first_phase=none, trained "
                "takes all: where U is zero W has no gradient.",
            )
        if self.initialisation != "zero" and self.first_phase != "none":
            yield BadValue(
                "first_phase",
                self.first_phase,
                f"with initialisation={self.initialisation}, first_phase takes none: "
                "section 5.1 begins at zero.",
            )

    def _refusals_of_factors(self) -> Iterator[BadValue]:
        if self.d % self.heads:
            yield BadValue(
                "heads",
                self.heads,
                f"with head_width=shared the heads share a token's "
                f"features, so heads takes a divisor of d, which is {self.d}.",
            )
        if self.initialisation != "gaussian":
            yield BadValue(
                "head_width",
                "shared",
                f"with initialisation={self.initialisation}, head_width takes full: "
                "products of two factors that are zero have no gradient.",
            )
        if self.trained == "attention":
            yield BadValue(
                "trained",
                "attention",
                "with head_width=shared, trained takes all: only whole "
                "matrices are trained by themselves.",
            )


@dataclass(frozen=True)
class Samples:
    """Labelled samples."""

    inputs: Floats  # X, (samples, tokens, features)
    labels: Floats  # y, ±1, (samples,)
    # which tokens carry the label, (samples, tokens); None where none does alone
    relevant: Bools | None = None


@dataclass(frozen=True)
class Head:
    """The weights of one attention head."""

    projection: Floats  # U, (tokens, features)
    attention: Floats  # W, (features, features)


@dataclass(frozen=True)
class Problem:
    """The samples of a cell, and what is known of their labels."""

    train: Samples
    test: Samples
    first: Samples  # those of the first phase
    planted: Head | None  # the head that gave the labels; None where none did
    margin: float  # the margin that attention can reach, γ_attn; nan where it isn't known
    patterns: Floats | None = None  # μ₊, μ₋ and ν₁ to ν_M as rows; None where there are none
