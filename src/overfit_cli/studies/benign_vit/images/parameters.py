"""The parameters of the `benign-vit-images` study."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from overfit_cli.core.errors import BadValue
from overfit_cli.core.parameters import StudyParameters, parameter

MOST_SAMPLES = {"digits": 1797, "mnist": 70_000}

Source = Literal["digits", "mnist"]


class BenignVitImagesParameters(StudyParameters):
    """Section 6's images and model; what the paper leaves open is the second half."""

    n: int = parameter(1000, "training samples", symbol="N", at_least=1, at_most=60_000)
    snr: float = parameter(
        1.0, "signal-to-noise ratio", symbol=r"\mathrm{SNR}", above=0, at_most=1e6
    )
    source: Source = parameter(
        "digits", "built-in digits, or MNIST's files from --data", label="source of images"
    )
    test_samples: int = parameter(397, "test samples", at_least=1, at_most=60_000)
    noise_deviation: float = parameter(
        1.0,
        "deviation of the ring's noise",
        label="deviation of ring's noise",
        above=0,
        at_most=1e6,
    )
    layers: int = parameter(2, "attention layers", at_least=1, at_most=100)
    heads: int = parameter(4, "attention heads of a layer", symbol="H", at_least=1, at_most=100)
    patch: int = parameter(4, "width and height of a patch", unit="pixels", at_least=1, at_most=28)
    d: int = parameter(32, "width of a token", at_least=1, at_most=10_000)
    hidden: int = parameter(64, "width of the MLP", at_least=1, at_most=100_000)
    normalisation: Literal["none", "layer"] = parameter(
        "none", "no normalisation, or layer normalisation of every input", label="normalisation"
    )
    learning_rate: float = parameter(
        0.004, "step size of Adam", symbol=r"\eta", above=0, at_most=1000
    )
    batch_size: int = parameter(64, "samples of a gradient step", at_least=1, at_most=60_000)
    epsilon: float = parameter(
        0.01, "training loss to stop at", symbol=r"\epsilon", above=0, at_most=2.3
    )
    max_epochs: int = parameter(
        300,
        "most passes before a cell fails",
        label="most passes over the samples",
        at_least=1,
        at_most=10**6,
    )
    dtype: Literal["float32", "float64"] = parameter("float32", "floating-point precision")

    def refusals(self) -> Iterator[BadValue]:
        """Give sentences on sizes that don't divide, and on more images than there are."""
        if self.d % self.heads:
            yield BadValue("heads", self.heads, f"heads takes a divisor of d, which is {self.d}.")
        if 28 % self.patch:
            yield BadValue("patch", self.patch, "patch takes a divisor of 28, the images' width.")
        available = MOST_SAMPLES[self.source]
        if self.n + self.test_samples > available:
            yield BadValue(
                "n",
                self.n,
                f"with source={self.source} and test_samples="
                f"{self.test_samples}, n takes a whole number up to "
                f"{max(0, available - self.test_samples)}: there are {available} images.",
            )
