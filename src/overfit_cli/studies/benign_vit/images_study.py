"""The study `benign-vit-images`: figure 2 of Jiang et al. 2024, on digits in a ring of noise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from overfit_cli.core.cell import Batch, Cell, Column
from overfit_cli.core.errors import BadValue
from overfit_cli.core.figure import CURVES, HEATMAP, drawn_in
from overfit_cli.core.parameters import StudyParameters, parameter
from overfit_cli.core.study import Study
from overfit_cli.core.training import BYTES_OF_LIBRARIES
from overfit_cli.studies.benign_vit import PAPER

MOST_SAMPLES = {"digits": 1797, "mnist": 70_000}


class BenignVitImagesParameters(StudyParameters):
    """Section 6's images and model; what the paper leaves open is the second half."""

    n: int = parameter(1000, "training samples", "N", within="[1, 6e4]")
    snr: float = parameter(1.0, "signal-to-noise ratio", r"\mathrm{SNR}", within="(0, 1e6]")
    source: Literal["digits", "mnist"] = parameter(
        "digits", "built-in digits, or MNIST's files from --data", label="source of images"
    )
    test_samples: int = parameter(397, "test samples", within="[1, 6e4]")
    noise_deviation: float = parameter(1.0, "deviation of the ring's noise", within="(0, 1e6]")
    layers: int = parameter(2, "attention layers", within="[1, 100]")
    heads: int = parameter(4, "attention heads of a layer", "H", within="[1, 100]")
    patch: int = parameter(4, "width and height of a patch", unit="pixels", within="[1, 28]")
    d: int = parameter(32, "width of a token", within="[1, 1e4]")
    hidden: int = parameter(64, "width of the MLP", within="[1, 1e5]")
    normalisation: Literal["none", "layer"] = parameter(
        "none", "no normalisation, or layer normalisation of every input"
    )
    learning_rate: float = parameter(0.004, "step size of Adam", r"\eta", within="(0, 1000]")
    batch_size: int = parameter(64, "samples of a gradient step", within="[1, 6e4]")
    epsilon: float = parameter(0.01, "training loss to stop at", r"\epsilon", within="(0, 2.3]")
    max_epochs: int = parameter(
        300,
        "most passes before a cell fails",
        label="most passes over the samples",
        within="[1, 1e6]",
    )
    dtype: Literal["float32", "float64"] = parameter("float32", "floating-point precision")

    @property
    def tokens(self) -> int:
        """The number of patches of an image."""
        return (28 // self.patch) ** 2

    def refusals(self) -> Iterator[BadValue]:
        """Give sentences on sizes that don't divide, and on more images than there are."""
        if self.d % self.heads:
            yield self.refuse("heads", f"heads takes a divisor of d, which is {self.d}.")
        if 28 % self.patch:
            yield self.refuse("patch", "patch takes a divisor of 28, the images' width.")
        available = MOST_SAMPLES[self.source]
        if self.n + self.test_samples > available:
            most = max(0, available - self.test_samples)
            given = f"source={self.source} and test_samples={self.test_samples}"
            accepts = f"n takes a whole number up to {most}: there are {available} images."
            yield self.refuse("n", f"with {given}, {accepts}")


P = BenignVitImagesParameters
_LOGGED = (
    Column("train_loss", "training loss", "L_S", diverges=True),
    Column("test_loss", "test loss", "L_D", diverges=True),
    Column("train_error", "training error", diverges=True),
    Column("test_error", "test error", diverges=True),
)
_PAPER_HAS = "of MNIST's digits, at ratios from 0.2 to 2"


class BenignVitImages(Study[P]):
    """A Vision Transformer on digits in a ring of noise."""

    name, version = "benign-vit-images", 1
    title = (
        "Benign and harmful overfitting of a Vision Transformer on handwritten digits, MNIST's or "
        "others in their place"
    )
    paper, parameters, paper_data = PAPER, BenignVitImagesParameters, "MNIST"
    columns = (*_LOGGED, Column("epochs", "passes over the training samples"))
    trajectory_columns = _LOGGED
    headline = "test_loss"
    trained_in, claims_in = ".images_engine", ".claims.figures:IMAGES"
    shows = (
        "Fitted to a training loss of {train_loss:.4f} in {epochs:.0f} passes ({steps}), with a "
        "test loss of {test_loss:.3f} and a test error of {test_error:.1%}."
    )
    drawn = (
        HEATMAP.showing(
            title="Test loss over samples and signal-to-noise ratio",
            source=f"{PAPER}, figure 2c ({_PAPER_HAS}, with N from 3000 to 8400)",
            x="snr",
            y="n",
            value="test_loss",
        ),
        drawn_in(
            f"{__package__}.figures",
            "images",
            "Training images, a row for each of up to four signal-to-noise ratios",
            source=f"{PAPER}, figures 2a and 2b ({_PAPER_HAS})",
        ),
        CURVES.showing(title="Training and test loss against gradient steps"),
    )

    def stand_in(self, parameters: P) -> str:
        digits = "Digits of 8 × 8 pixels, enlarged to 20 × 20, stand in for MNIST's."
        return "" if parameters.source == "mnist" else digits

    def prepare(self, cells: Batch[P]) -> Mapping[str, str]:
        from overfit_cli.studies.benign_vit.images_data import image_task

        outside = [cell for cell in reversed(cells) if cell.parameters.source == "mnist"]
        first = {(cell.parameters.n, cell.parameters.test_samples): cell for cell in outside}
        fingerprints: dict[str, str] = {}
        for cell in first.values():
            fingerprints |= image_task(cell.parameters, cell.seed).collections
        return fingerprints

    def cost(self, cell: Cell[P]) -> float:
        """Return the multiplications of a cell, roughly: some sixty passes fit it."""
        p = cell.parameters
        layer = p.tokens * p.d * (4 * p.d + 2 * p.tokens)
        return 3.0 * p.n * min(60, p.max_epochs) * p.layers * layer

    def probe(self, cell: Cell[P]) -> Cell[P]:
        return cell.with_at_most(n=200, test_samples=50, max_epochs=2)

    def memory(self, cell: Cell[P]) -> float:
        p = cell.parameters
        wide = p.tokens * (8 * p.d + p.heads * p.tokens)
        states = max(p.batch_size * p.layers, 1000) * wide
        return 8.0 * (states + (p.n + p.test_samples) * 28 * 28) + BYTES_OF_LIBRARIES


study = BenignVitImages()
