"""The study `multihead-sst2`: figure 6 of Deora et al. 2024."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from overfit_cli.core.cell import Batch, Cell, CellResult, Column, Results
from overfit_cli.core.claim import Claim
from overfit_cli.core.classification import COLUMNS, TRAJECTORY_COLUMNS
from overfit_cli.core.figure import Figure, learning_figures
from overfit_cli.core.files import require_extra
from overfit_cli.core.study import Study
from overfit_cli.core.text import percent, plural
from overfit_cli.core.training import Training
from overfit_cli.studies.multihead import PAPER
from overfit_cli.studies.multihead.sst2.parameters import MultiheadSst2Parameters

P = MultiheadSst2Parameters


class MultiheadSst2(Study[P]):
    """Sentiment of SST-2's sentences with a RoBERTa of several numbers of heads."""

    name = "multihead-sst2"
    version = 1
    title = "RoBERTa of several numbers of heads on SST-2, or a small network in its place"
    paper_data = "SST-2 and roberta-base"
    paper = PAPER
    parameters = MultiheadSst2Parameters
    headline = "mean_test_loss"
    columns = (
        *COLUMNS,
        Column(
            "mean_train_loss",
            "training loss, averaged over the steps: lower is faster",
            label="mean training loss",
            diverges=True,
        ),
    )
    trajectory_columns = TRAJECTORY_COLUMNS

    def stand_in(self, parameters: P) -> str:
        if parameters.weights == "pretrained":
            return ""
        return (
            f"A network of {plural(parameters.layers, 'layer')} and width {parameters.d}, trained "
            "from random weights, stands in for roberta-base."
        )

    def figures(self) -> Mapping[str, Figure]:
        return learning_figures(
            "each number of heads",
            "Deora et al. 2024, figure 6",
            "train_loss,test_loss,test_accuracy",
        )

    def claims(self) -> Sequence[Claim]:
        from overfit_cli.studies.multihead.sst2.claims import CLAIMS

        return CLAIMS

    def prepare(self, cells: Batch[P]) -> Mapping[str, str]:
        from overfit_cli.studies.multihead.sst2 import data, engine

        require_extra("transformers", "text", self.name)
        folder = data.sst2_folder()
        settings = [cell.parameters for cell in cells]
        pretrained = [parameters for parameters in settings if parameters.weights == "pretrained"]
        fingerprints = dict(data.check_enough(folder, settings))
        if pretrained:
            fingerprints |= engine.check_pretrained(folder, pretrained)
        return fingerprints

    def cost(self, cell: Cell[P]) -> float:
        """Return about how many multiplications a cell's training and evaluations cost."""
        settings = cell.parameters
        evaluations = settings.training_steps / settings.evaluate_every + 2
        steps = 3 * settings.training_steps * settings.batch_size
        of_token = 4 * settings.d**2 + 2 * settings.d * settings.hidden + 8 * settings.heads
        sentences = steps + evaluations * settings.test_samples
        return sentences * settings.tokens * settings.layers * of_token

    def probe(self, cell: Cell[P]) -> Cell[P]:
        return cell.with_at_most(n=256, training_steps=10, test_samples=64)

    def train(self, batch: Batch[P], training: Training) -> Results[P]:
        from overfit_cli.studies.multihead.sst2.data import sst2_task
        from overfit_cli.studies.multihead.sst2.training import train_cell

        for cell in batch:
            yield train_cell(cell, sst2_task(cell.parameters, cell.seed), training)

    def summary(self, result: CellResult[P]) -> str:
        measured = result.measurements
        if result.reason:
            return f"The training {result.reason} at step {result.steps}."
        return (
            f"Test accuracy {percent(measured['test_accuracy'], 1)} after "
            f"{plural(result.steps, 'step')}; "
            f"counting words has {percent(measured['shortcut_accuracy'], 1)}."
        )


study = MultiheadSst2()
