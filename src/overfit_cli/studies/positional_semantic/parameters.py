"""Parameters of the study `positional-semantic`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from overfit_cli.core.cell import Cell
from overfit_cli.core.errors import BadValue
from overfit_cli.core.parameters import StudyParameters, parameter

Start = Literal["semantic", "positional", "agnostic"]

MIXINGS = {"stay": (0.6, 0.6), "cross": (0.3, 0.2)}
"""A₁₁ and A₂₂ of the positional map A, whose rows sum to 1: [[.6, .4], [.4, .6]] and [[.3, .7],
[.8, .2]]."""

MOST_FEATURES = 10**15
"""The most features with `sampling=law`: float64 tells them from one less."""

MOST_SAMPLES = 20_000


class PositionalSemanticParameters(StudyParameters):
    """One layer of tied dot-product attention on sentences of two tokens."""

    omega: float = parameter(
        0.3,
        "share of the positional map in the labels",
        symbol=r"\omega",
        label="positional share",
        at_least=0,
        at_most=1,
        shades=(0.02, 0.7),
    )
    alpha: float = parameter(
        1.0,
        "training samples over features, n / d",
        symbol=r"\alpha",
        label="samples over features",
        above=0,
        at_most=1000,
    )
    start: Start = parameter(
        "semantic",
        "first weights: the teacher's, along the positions, or small random ones",
        label="start",
        value_labels={
            "semantic": "semantic start",
            "positional": "positional start",
            "agnostic": "random start",
        },
    )
    d: int = parameter(
        1000,
        "features of a token",
        symbol="d",
        at_least=8,
        at_most=MOST_FEATURES,
        shades=(50, 4000),
    )
    sigma: float = parameter(
        0.5,
        "deviation of a token's features",
        symbol=r"\sigma",
        label="deviation of features",
        above=0,
        at_most=100,
    )
    weight_decay: float = parameter(
        0.01,
        "weight decay: the penalty is half of it times ‖Q‖²",
        symbol=r"\lambda",
        label="weight decay",
        at_least=0,
        at_most=100,
    )
    mixing: Literal["stay", "cross"] = parameter(
        "stay",
        "positional map A: [[.6, .4], [.4, .6]], or the second example [[.3, .7], [.8, .2]]",
        label="positional map",
        value_labels={"stay": "A = [.6 .4; .4 .6]", "cross": "A = [.3 .7; .8 .2]"},
    )
    rank: int = parameter(
        1, "columns of Q and of the teacher's", symbol="r", label="rank", at_least=1, at_most=2
    )
    optimiser: Literal["gd", "adam"] = parameter(
        "gd",
        "gradient descent, or Adam",
        label="optimiser",
        value_labels={"gd": "gradient descent", "adam": "Adam"},
    )
    learning_rate: float = parameter(
        0.15, "step size", symbol=r"\eta", label="step size", above=0, at_most=100
    )
    training_steps: int = parameter(
        5000, "steps of a cell", label="steps", at_least=1, at_most=10**7
    )
    sampling: Literal["direct", "law"] = parameter(
        "direct",
        "draw every feature of training samples, or their inner products in law, for any d",
        label="sampling",
    )
    test_samples: int = parameter(
        10_000, "fresh samples, drawn in law", label="test samples", at_least=1, at_most=10**7
    )
    dtype: Literal["float32", "float64"] = parameter(
        "float32", "floating-point precision of training", label="floating-point precision"
    )

    @property
    def n(self) -> int:
        """The number of training samples: α d, rounded, at least one."""
        return max(1, round(self.alpha * self.d))

    def refusals(self) -> Iterator[BadValue]:
        """Give sentences on what can't be drawn, and on an Adam that sees no features."""
        if self.n > MOST_SAMPLES:
            yield BadValue(
                "alpha",
                self.alpha,
                f"with d={self.d} these are {self.n:,} samples; it takes at most "
                f"{MOST_SAMPLES / self.d:.3g}, which are {MOST_SAMPLES:,}.",
            )
        if self.sampling == "direct" and self.n * self.d > 10**9:
            yield BadValue(
                "d",
                self.d,
                f"with sampling=direct and {self.n:,} samples, d takes at most "
                f"{10**9 // self.n:,}; set sampling=law.",
            )
        if self.sampling == "law" and self.optimiser == "adam":
            yield BadValue(
                "optimiser",
                self.optimiser,
                "with sampling=law it takes gd: Adam's steps depend on the features' axes.",
            )


PositionalSemanticCell = Cell[PositionalSemanticParameters]
