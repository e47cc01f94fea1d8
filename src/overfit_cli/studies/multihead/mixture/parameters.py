"""Parameters of the study `multihead-mixture`."""

from __future__ import annotations

from collections.abc import Iterator

from overfit_cli.core.errors import BadValue
from overfit_cli.core.parameters import parameter
from overfit_cli.studies.multihead.parameters import MultiheadParameters


class MultiheadMixtureParameters(MultiheadParameters):
    """Data model DM1: orthogonal patterns of length S, a share ζ of the tokens relevant."""

    relevant: int = parameter(
        1,
        "relevant tokens of a sample, ζT",
        symbol=r"\zeta T",
        label="relevant tokens of a sample",
        at_least=1,
        at_most=1000,
    )
    patterns: int = parameter(
        2,
        "patterns that say nothing about the label",
        symbol="M",
        label="irrelevant patterns",
        at_least=1,
        at_most=1000,
    )
    strength: float = parameter(2.0, "length of all patterns", symbol="S", above=0, at_most=1000)
    sigma: float = parameter(
        0.1,
        "deviation of the noise on irrelevant tokens",
        symbol=r"\sigma",
        label="deviation of the noise",
        at_least=0,
        at_most=100,
    )

    @property
    def sparsity(self) -> float:
        """The share of tokens that are relevant, ζ."""
        return self.relevant / self.tokens

    def refusals(self) -> Iterator[BadValue]:
        """Give sentences on patterns and tokens for which there is no room."""
        yield from super().refusals()
        if self.d < self.patterns + 2:
            yield BadValue(
                "d",
                self.d,
                f"with patterns={self.patterns}, d takes a whole number of at "
                f"least {self.patterns + 2}: the patterns are orthogonal.",
            )
        if self.relevant >= self.tokens:
            yield BadValue(
                "relevant",
                self.relevant,
                f"with tokens={self.tokens}, relevant takes a "
                f"whole number up to {self.tokens - 1}.",
            )


CHANCE = 0.05
"""δ, with which Definition 1's second property may fail."""


MISSED = 0.01
"""ε of Proposition 3: the softmax that may miss the relevant tokens."""
