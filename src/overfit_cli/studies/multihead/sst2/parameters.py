"""Parameters of the study `multihead-sst2`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from overfit_cli.core.errors import BadValue
from overfit_cli.core.parameters import StudyParameters, parameter


class MultiheadSst2Parameters(StudyParameters):
    """A RoBERTa of equal width for every number of heads, and its training on SST-2."""

    heads: int = parameter(
        4, "attention heads of a layer", symbol="H", at_least=1, at_most=1000, shades=(1, 100)
    )
    weights: Literal["scratch", "pretrained"] = parameter(
        "scratch",
        "initial weights: random, or those of the folder roberta-base in --data",
        label="initial weights",
    )
    learning_rate: float = parameter(
        1e-3, "step size of AdamW", symbol=r"\eta", above=0, at_most=1e3
    )
    batch_size: int = parameter(32, "sentences of a gradient step", at_least=1, at_most=100_000)
    training_steps: int = parameter(
        800,
        "gradient steps of a cell; 2105 of 32 are an epoch of all",
        label="gradient steps of a cell",
        at_least=1,
        at_most=10**7,
    )
    evaluate_every: int = parameter(
        50,
        "steps between two evaluations",
        label="steps between evaluations",
        at_least=1,
        at_most=10**7,
    )
    n: int = parameter(67_349, "training sentences", symbol="n", at_least=2, at_most=10**6)
    test_samples: int = parameter(872, "test sentences", at_least=2, at_most=10**6)
    tokens: int = parameter(
        64,
        "most tokens of a sentence, its two ends among them",
        label="most tokens of a sentence",
        at_least=3,
        at_most=510,
    )
    vocabulary: int = parameter(
        8000,
        "words that are known, the most frequent ones; for weights=scratch",
        label="known words",
        at_least=1,
        at_most=10**5,
    )
    layers: int = parameter(2, "transformer layers", at_least=1, at_most=100)
    d: int = parameter(64, "width of a token", symbol="d", at_least=1, at_most=10_000)
    hidden: int = parameter(128, "width of the hidden layers", at_least=1, at_most=100_000)
    dropout: float = parameter(
        0.1, "chance that an activation is dropped", label="dropout", at_least=0, below=1
    )
    weight_decay: float = parameter(0.01, "decay of the weights", at_least=0, at_most=1)
    dtype: Literal["float32", "float64"] = parameter("float32", "floating-point precision")

    def refusals(self) -> Iterator[BadValue]:
        """Give a sentence where the heads don't share a token's width."""
        yield from super().refusals()
        if self.d % self.heads:
            yield BadValue(
                "heads",
                self.heads,
                f"the heads share a token's width, so heads takes a "
                f"divisor of d, which is {self.d}.",
            )
