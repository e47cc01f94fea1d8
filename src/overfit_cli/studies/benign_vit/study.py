"""The study `benign-vit` of Jiang et al. 2024. Training is imported when it trains."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from overfit_cli.claim import Claim
from overfit_cli.figure import Figure
from overfit_cli.studies.benign_vit import batching
from overfit_cli.studies.benign_vit.columns import MEASUREMENTS, TRAJECTORY
from overfit_cli.studies.benign_vit.figures import FIGURES
from overfit_cli.studies.benign_vit.parameters import BenignVitParameters
from overfit_cli.studies.benign_vit.theory import predictions as theory
from overfit_cli.studies.benign_vit.theory.condition import condition_in_words, condition_items
from overfit_cli.study import Batches, Cell, CellResult, Cells, Results, Study
from overfit_cli.training import Training


class BenignVit(Study[BenignVitParameters]):
    """A two-layer Vision Transformer on signal and noise tokens; see `Study` for the members."""

    name = "benign-vit"
    version = 3
    title = "Benign and harmful overfitting of a two-layer Vision Transformer"
    paper = "Jiang et al. 2024"
    parameters = BenignVitParameters
    columns = MEASUREMENTS
    trajectory_columns = TRAJECTORY
    headline = "test_loss"
    threshold = theory.FIGURE_1_THRESHOLD
    progress_columns = (
        "train_loss",
        "test_loss",
        "train_margin_min",
        "attention_signal",
        "attention_noise",
    )

    def figures(self) -> Mapping[str, Figure]:
        """Return the figures by name."""
        return FIGURES

    def claims(self) -> Sequence[Claim]:
        """Return the claims on figures 1, 3 and 4, and on the theorems, in their regime too."""
        from overfit_cli.studies.benign_vit.claims import CLAIMS

        return CLAIMS

    def notes(self, cells: Cells[BenignVitParameters]) -> Sequence[str]:
        """Go through Condition 4.1 where the weights are drawn as it asks for."""
        settings = [cell.parameters for cell in cells]
        asked = [one for one in settings if one.initialisation == "condition"]
        return condition_in_words(asked) if asked else ()

    def batches(
        self, cells: Cells[BenignVitParameters], device: str
    ) -> Batches[BenignVitParameters]:
        """Group cells that share their draws."""
        return batching.batches(cells, device)

    def cost(self, cell: Cell[BenignVitParameters]) -> float:
        """Return the multiplications of a cell, roughly."""
        return batching.cost(cell)

    def probe(self, cell: Cell[BenignVitParameters]) -> Cell[BenignVitParameters]:
        """Return the cell, with no more steps than take seconds."""
        return batching.probe(cell)

    def memory(self, cell: Cell[BenignVitParameters]) -> float:
        """Return the bytes that a cell takes, roughly."""
        return batching.memory(cell)

    def train(
        self, batch: Cells[BenignVitParameters], training: Training
    ) -> Results[BenignVitParameters]:
        """Train a batch in token space."""
        from overfit_cli.studies.benign_vit.engine.training import train_batch

        return train_batch(batch, training)

    def summary(self, result: CellResult[BenignVitParameters]) -> str:
        """Say which regime the cell is in, measured and predicted, and go through Condition 4.1."""
        settings = result.cell.parameters
        got = result.measurements
        if result.status == "failed":
            loss = got.get("train_loss", math.nan)
            return (
                f"Not fitted ({result.reason}): training loss {loss:.3g} "
                f"after {result.steps} steps."
            )
        regime = theory.measured_regime(got["test_loss"])
        product = theory.boundary_product(settings.n, settings.snr)
        predicted = theory.predicted_regime(settings)
        return (
            f"{regime.capitalize()} overfitting: fitted to a training loss of "
            f"{got['train_loss']:.4f} in {result.steps} steps, with a test loss of "
            f"{got['test_loss']:.3f} and a test error of {got['test_error']:.0%} on "
            f"{settings.test_samples} samples. N·SNR² = {product:.4g}; "
            f"{_boundary_in_words(settings)}, which predicts {predicted} overfitting. "
            f"{_theory_in_words(settings, got['output_norm'])}"
        )


def _boundary_in_words(parameters: BenignVitParameters) -> str:
    """Where a regime is predicted to begin, and why."""
    boundary = float(theory.predicted_boundary(parameters.strong_noise, parameters.tokens))
    if boundary == theory.FIGURE_1_CONSTANT:
        return f"figure 1's curve is N·SNR² = {boundary:.4g}"
    return f"signal and noise are learned equally fast where it is {boundary:.4g}"


def _theory_in_words(parameters: BenignVitParameters, output_norm: float) -> str:
    """The theorem's number of steps, and Condition 4.1 a line an item."""
    items = condition_items(parameters, output_norm)
    met = sum(item.decades == 0 for item in items)
    theorem = theory.THEOREMS[theory.predicted_regime(parameters)]
    lines = [
        f"Theorem {theorem}'s T, with a constant of 1, is "
        f"{theory.predicted_steps(parameters, output_norm):.3g} steps.",
        f"Condition 4.1, with all constants 1: {met} of {len(items)} items are met.",
        *(f"  {item}" for item in items),
    ]
    return "\n".join(lines)


study = BenignVit()
