"""Parameters of the `kernel-text` study."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from overfit_cli.parameters import parameter
from overfit_cli.studies.attention_kernel.classifier.parameters import ClassifierParameters

IMDB_REVIEWS = 25_000
"""IMDb's training reviews, and its test reviews."""


class KernelTextParameters(ClassifierParameters):
    """Text classification: generated reviews, or IMDb's byte by byte."""

    source: Literal["generated", "imdb"] = parameter(
        "generated", "reviews made here, or IMDb's from --data"
    )
    tokens: int = parameter(64, "tokens of a review", symbol="n", at_least=10, at_most=100_000)
    negated: float = parameter(
        0.25, "in generated reviews, chance that a sentiment word is negated", at_least=0, at_most=1
    )

    def refusals(self) -> Iterator[str]:
        """Give sentences on more reviews than IMDb has."""
        yield from super().refusals()
        for name in ("n", "test_samples"):
            if self.source == "imdb" and getattr(self, name) > IMDB_REVIEWS:
                yield (
                    f"--set {name} {getattr(self, name)}: with source=imdb, {name} takes a "
                    f"whole number up to {IMDB_REVIEWS}: IMDb has no more reviews."
                )
