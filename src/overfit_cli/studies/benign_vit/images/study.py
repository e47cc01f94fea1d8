"""The study `benign-vit-images`: figure 2 of Jiang et al. 2024. Torch is imported to train."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from overfit_cli.core.cell import Batch, Cell, CellResult, Column, Results
from overfit_cli.core.claim import Claim
from overfit_cli.core.figure import CURVES, HEATMAP, Figure, FigureOptions, collect_figures, lazily
from overfit_cli.core.study import Study
from overfit_cli.core.text import percent, plural
from overfit_cli.core.training import BYTES_OF_LIBRARIES, Training
from overfit_cli.studies.benign_vit import PAPER
from overfit_cli.studies.benign_vit.images.parameters import BenignVitImagesParameters

P = BenignVitImagesParameters
_LOGGED = (
    Column("train_loss", "training loss", symbol="L_S", diverges=True),
    Column("test_loss", "test loss", symbol="L_D", diverges=True),
    Column("train_error", "training error", diverges=True),
    Column("test_error", "test error", diverges=True),
)
_PAPER_HAS = "of MNIST's digits, at ratios from 0.2 to 2"
_FIGURES = collect_figures(
    replace(
        HEATMAP,
        title="Test loss over samples and signal-to-noise ratio",
        source=f"Jiang et al. 2024, figure 2c ({_PAPER_HAS}, with N from 3000 to 8400)",
        options=FigureOptions(x="snr", y="n", value="test_loss"),
    ),
    Figure(
        name="images",
        title="Training images, a row for each of up to four signal-to-noise ratios",
        source=f"Jiang et al. 2024, figures 2a and 2b ({_PAPER_HAS})",
        reads="cells",
        draw=lazily("overfit_cli.studies.benign_vit.images.figures:draw_images"),
    ),
    replace(CURVES, title="Training and test loss against gradient steps"),
)


class BenignVitImages(Study[P]):
    """A Vision Transformer on digits in a ring of noise; see `Study` for the members."""

    name = "benign-vit-images"
    version = 1
    title = (
        "Benign and harmful overfitting of a Vision Transformer on handwritten digits, MNIST's or "
        "others in their place"
    )
    paper_data = "MNIST"
    paper = PAPER
    parameters = BenignVitImagesParameters
    columns = (
        *_LOGGED,
        Column("epochs", "passes over the training samples", label="passes over the samples"),
    )
    trajectory_columns = _LOGGED
    headline = "test_loss"

    def stand_in(self, parameters: P) -> str:
        if parameters.source == "mnist":
            return ""
        return "Digits of 8 × 8 pixels, enlarged to 20 × 20, stand in for MNIST's."

    def figures(self) -> Mapping[str, Figure]:
        return _FIGURES

    def claims(self) -> Sequence[Claim]:
        from overfit_cli.studies.benign_vit.images.claims import CLAIMS

        return CLAIMS

    def prepare(self, cells: Batch[P]) -> Mapping[str, str]:
        from overfit_cli.studies.benign_vit.images.data import image_task

        outside = [cell for cell in reversed(cells) if cell.parameters.source == "mnist"]
        first = {(cell.parameters.n, cell.parameters.test_samples): cell for cell in outside}
        fingerprints: dict[str, str] = {}
        for cell in first.values():
            fingerprints |= image_task(cell.parameters, cell.seed).collections
        return fingerprints

    def cost(self, cell: Cell[P]) -> float:
        """Return the multiplications of a cell, roughly: some sixty passes fit it."""
        parameters = cell.parameters
        tokens = (28 // parameters.patch) ** 2
        layer = tokens * parameters.d * (4 * parameters.d + 2 * tokens)
        passes = min(60, parameters.max_epochs)
        return 3.0 * parameters.n * passes * parameters.layers * layer

    def probe(self, cell: Cell[P]) -> Cell[P]:
        return cell.with_at_most(n=200, test_samples=50, max_epochs=2)

    def memory(self, cell: Cell[P]) -> float:
        parameters = cell.parameters
        tokens = (28 // parameters.patch) ** 2
        wide = tokens * (8 * parameters.d + parameters.heads * tokens)
        states = max(parameters.batch_size * parameters.layers, 1000) * wide
        return (
            8.0 * (states + (parameters.n + parameters.test_samples) * 28 * 28) + BYTES_OF_LIBRARIES
        )

    def train(self, batch: Batch[P], training: Training) -> Results[P]:
        from overfit_cli.studies.benign_vit.images.training import train_cell

        for cell in batch:
            yield train_cell(cell, training)

    def summary(self, result: CellResult[P]) -> str:
        measured = result.measurements
        if result.reason:
            return f"Not fitted ({result.reason}) after {plural(result.steps, 'step')}."
        return (
            f"Fitted to a training loss of {measured['train_loss']:.4f} in "
            f"{measured['epochs']:.0f} passes ({plural(result.steps, 'step')}), with a test loss "
            f"of {measured['test_loss']:.3f} and a test error of "
            f"{percent(measured['test_error'], 1)}."
        )


study = BenignVitImages()
