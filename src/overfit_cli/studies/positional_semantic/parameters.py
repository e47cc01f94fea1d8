"""Parameters of the study `positional-semantic`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from overfit_cli.core.errors import BadValue
from overfit_cli.core.parameters import StudyParameters, parameter

MIXINGS = {"stay": (0.6, 0.6), "cross": (0.3, 0.2)}
"""A₁₁ and A₂₂ of the positional map A, whose rows sum to 1: [[.6, .4], [.4, .6]] and [[.3, .7],
[.8, .2]]."""

STARTS = {
    "semantic": "semantic start",
    "positional": "positional start",
    "agnostic": "random start",
}

OPTIMISERS = {"gd": "gradient descent", "adam": "Adam"}
MOST_SAMPLES, MOST_DRAWN = 20_000, 10**9
"""The most training samples, and the most of their numbers that are drawn one by one."""


class Parameters(StudyParameters):
    """One layer of tied dot-product attention on sentences of two tokens.

    With `sampling=law` float64 tells as many as 10¹⁵ features from one less.
    """

    omega: float = parameter(
        0.3,
        "share of the positional map in the labels",
        r"\omega",
        "positional share",
        "[0, 1]",
        shades=(0.02, 0.7),
    )
    alpha: float = parameter(
        1.0, "training samples over features, n / d", r"\alpha", "samples over features", "(0, 1e3]"
    )
    start: Literal["semantic", "positional", "agnostic"] = parameter(
        "semantic",
        "first weights: the teacher's, along the positions, or small random ones",
        value_labels=STARTS,
    )
    d: int = parameter(1000, "features of a token", "d", within="[8, 1e15]", shades=(50, 4000))
    sigma: float = parameter(
        0.5, "deviation of a token's features", r"\sigma", "deviation of features", "(0, 100]"
    )
    weight_decay: float = parameter(
        0.01, "weight decay: the penalty is half of it times ‖Q‖²", r"\lambda", within="[0, 100]"
    )
    mixing: Literal["stay", "cross"] = parameter(
        "stay",
        "positional map A: [[.6, .4], [.4, .6]], or the second example [[.3, .7], [.8, .2]]",
        label="positional map",
        value_labels={"stay": "A = [.6 .4; .4 .6]", "cross": "A = [.3 .7; .8 .2]"},
    )
    rank: int = parameter(1, "columns of Q and of the teacher's", "r", within="[1, 2]")
    optimiser: Literal["gd", "adam"] = parameter(
        "gd", "gradient descent, or Adam", label="optimiser", value_labels=OPTIMISERS
    )
    learning_rate: float = parameter(0.15, "step size", r"\eta", within="(0, 100]")
    training_steps: int = parameter(5000, "steps of a cell", label="steps", within="[1, 1e7]")
    sampling: Literal["direct", "law"] = parameter(
        "direct",
        "draw every feature of training samples, or their inner products in law, for any d",
    )
    test_samples: int = parameter(
        10_000, "fresh samples, drawn in law", label="test samples", within="[1, 1e7]"
    )
    dtype: Literal["float32", "float64"] = parameter("float32", "floating-point precision")

    @property
    def n(self) -> int:
        """The number of training samples: α d, rounded, at least one."""
        return max(1, round(self.alpha * self.d))

    def refusals(self) -> Iterator[BadValue]:
        """Give sentences on what can't be drawn, and on an Adam that sees no features."""
        if self.n > MOST_SAMPLES:
            most = f"{MOST_SAMPLES / self.d:.3g}, which are {MOST_SAMPLES:,}"
            yield self.refuse(
                "alpha", f"with d={self.d} these are {self.n:,} samples; it takes at most {most}."
            )
        if self.sampling == "direct" and self.n * self.d > MOST_DRAWN:
            most = f"{self.n:,} samples, d takes at most {MOST_DRAWN // self.n:,}"
            yield self.refuse("d", f"with sampling=direct and {most}; set sampling=law.")
        if self.sampling == "law" and self.optimiser == "adam":
            takes = "takes gd: Adam's steps depend on the features' axes."
            yield self.refuse("optimiser", f"with sampling=law it {takes}")
