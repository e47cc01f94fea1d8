"""Parameters of the study `in-context-regression`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from overfit_cli.core.errors import BadValue
from overfit_cli.core.parameters import StudyParameters, parameter

MOST_DRAWN = 10**8
"""The most numbers that are kept of the sequences, or of the tasks."""


class Parameters(StudyParameters):
    """Linear attention pretrained on linear regression, as ridge regression on its features.

    A cell has n = τ d² sequences of ℓ = α d examples, and k = κ d tasks, rounded to whole numbers.
    """

    alpha: float = parameter(
        10.0, "context length over features, ℓ / d", r"\alpha", "context over features", "(0, 1e9]"
    )
    tau: float = parameter(
        10.0,
        "pretraining sequences over features squared, n / d²",
        r"\tau",
        "sequences over features²",
        "(0, 1e4]",
    )
    kappa: float = parameter(
        0.4,
        "pretraining tasks over features, k / d; 0: a new task in each sequence",
        r"\kappa",
        "tasks over features",
        "[0, 1e4]",
    )
    rho: float = parameter(0.01, "variance of the labels' noise", r"\rho", within="(0, 100]")
    ridge: float = parameter(
        1e-6, "ridge: the penalty is n/d times it times ‖Γ‖²", r"\lambda", "ridge", "[0, 1e6]"
    )
    task_norm: Literal["fixed", "drawn"] = parameter(
        "fixed",
        "length of pretraining tasks: √d, or as it is drawn",
        label="task length",
        value_labels={"fixed": "‖w‖² = d", "drawn": "w ~ N(0, I)"},
    )
    d: int = parameter(32, "features of a token", "d", within="[4, 128]", shades=(8, 64))
    sampling: Literal["direct", "law", "theory"] = parameter(
        "law",
        "draw every token, or what enters of a context in law; `theory` draws nothing",
    )
    test_contexts: int = parameter(
        1000, "contexts of the posterior mean; 0: it is not measured", within="[0, 1e6]"
    )

    @property
    def n(self) -> int:
        """The number of pretraining sequences."""
        return max(1, round(self.tau * self.d**2))

    @property
    def context(self) -> int:
        """The number ℓ of examples in a context."""
        return max(2, round(self.alpha * self.d))

    @property
    def k(self) -> int:
        """The number of pretraining tasks; 0 for a new one in each sequence."""
        return max(1, round(self.kappa * self.d)) if self.kappa else 0

    def refusals(self) -> Iterator[BadValue]:
        """Give sentences on what is too much to be drawn."""
        if self.sampling == "theory":
            return
        for name, count in (("tau", self.n), ("kappa", self.k)):
            if count * self.d > MOST_DRAWN:
                power = 3 if name == "tau" else 2
                most = f"at most {MOST_DRAWN / self.d**power:.3g}"
                yield self.refuse(name, f"with d={self.d} it takes {most}; set sampling=theory.")
        if self.sampling == "direct" and self.context * self.d > MOST_DRAWN // 100:
            most = f"at most {MOST_DRAWN // 100 / self.d**2:.3g}"
            yield self.refuse("alpha", f"with sampling=direct it takes {most}; set sampling=law.")
