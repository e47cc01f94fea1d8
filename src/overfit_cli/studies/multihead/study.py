"""What the studies of one multi-head attention layer share: figures, batches and training."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from itertools import groupby
from typing import TypeVar

from overfit_cli.core.figure import (
    BOUNDARY,
    CURVES,
    HEATMAP,
    LINES,
    Figure,
    FigureOptions,
    by_name,
    drawn_by,
)
from overfit_cli.core.study import Batches, Cell, CellResult, Cells, Results, Study
from overfit_cli.core.text import plural
from overfit_cli.core.training import Training
from overfit_cli.studies.multihead.paper import PAPER
from overfit_cli.studies.multihead.parameters import MultiheadParameters
from overfit_cli.studies.multihead.problem import Problem

P = TypeVar("P", bound=MultiheadParameters)

APART = frozenset({"heads", "learning_rate", "step_rule", "momentum"})
"""Parameters in which cells that are trained together may differ."""

_LARGEST_BATCH = {"cpu": 1e6, "cuda": 2e8}
"""The most products of tokens, samples and classes in a batch: what is measured of all at once."""

BYTES_OF_LIBRARIES = 3e8
_STEP_OVERHEAD = 1e5
"""A step's fixed cost, in products of two tokens' features."""


class MultiheadStudy(Study[P]):
    """One layer of multi-head attention on one kind of data.

    A study of it has a name, parameters, columns and `draw`.
    """

    paper = PAPER
    progress_columns = ("train_loss", "log10_train_loss", "test_loss", "norm_u", "margin")

    @abstractmethod
    def draw(self, parameters: P, seed: int) -> Problem:
        """Draw the problem of a seed's cells."""

    def figures(self) -> Mapping[str, Figure]:
        """Return the figures by name."""
        return by_name(
            Figure(
                name="heads",
                title="Losses, norms, attention and margins against the step, a line for each H",
                reads="trajectories",
                draw=drawn_by("overfit_cli.studies.multihead.figures.heads:draw_heads"),
                source=self.source_of_heads,
            ),
            Figure(
                name="certificates",
                title="What is measured over each bound, and margins side by side",
                reads="cells",
                draw=drawn_by(
                    "overfit_cli.studies.multihead.figures.certificates:draw_certificates"
                ),
                source="Deora et al. 2024, sections 3 to 5",
            ),
            replace(
                HEATMAP,
                title="Steps until the training loss is below the target, over two parameters",
                options=FigureOptions(x="heads", y="learning_rate", value="steps_to_target"),
            ),
            replace(LINES, options=FigureOptions(x="heads", value="steps_to_target")),
            replace(
                BOUNDARY,
                title="The step size that takes 1000 steps to the target loss, against heads",
                options=FigureOptions(
                    x="learning_rate", y="heads", value="steps_to_target", threshold=1000
                ),
            ),
            CURVES,
        )

    source_of_heads: str = ""
    """The figures of the paper that show its training."""

    def batches(self, cells: Cells[P], device: str) -> Batches[P]:
        """Group cells of a seed that share their draws and shapes; costliest first."""
        found: Batches[P] = []
        for _, group in groupby(sorted(cells, key=_together), key=_together):
            alike = sorted(group, key=lambda cell: cell.parameters.heads)
            most = max(1, int(_LARGEST_BATCH[device] / _pairs(alike[0])))
            found += [alike[at : at + most] for at in range(0, len(alike), most)]
        return sorted(found, key=lambda batch: -self.cost(batch[0]) * len(batch))

    def cost(self, cell: Cell[P]) -> float:
        """Return about how many products of two tokens' features a cell computes."""
        settings = cell.parameters
        return settings.training_steps * (_pairs(cell) + _STEP_OVERHEAD / 10)

    def probe(self, cell: Cell[P]) -> Cell[P]:
        """Return a cell like this one with few steps."""
        few = min(cell.parameters.training_steps, _PROBED_STEPS)
        parameters = cell.parameters.model_copy(update={"training_steps": few, "epsilon": 0.0})
        return replace(cell, parameters=parameters)

    def memory(self, cell: Cell[P]) -> float:
        """Return about how many bytes a batch of such cells takes, PyTorch among them."""
        settings = cell.parameters
        arrays = 3 + 2 * (1 + settings.d) / settings.tokens
        trained = arrays * max(_LARGEST_BATCH["cpu"], _pairs(cell))
        tested = 4 * settings.tokens * settings.d * settings.test_samples
        return BYTES_OF_LIBRARIES + 8.0 * (trained + tested)

    def train(self, batch: Cells[P], training: Training) -> Results[P]:
        """Train cells of one seed together."""
        from overfit_cli.studies.multihead.training import train_batch

        problem = self.draw(batch[0].parameters, batch[0].seed)
        return train_batch(batch, problem, training)

    def summary(self, result: CellResult[P]) -> str:
        """Give the loss, the error and the margin at the end."""
        if result.reason == "diverged":
            return f"The loss diverged at step {result.steps}; a smaller step size may not."
        got, settings = result.measurements, result.cell.parameters
        heads = f"{settings.heads} head{'s' if settings.heads > 1 else ''}"
        loss = (
            f"{got['train_loss']:.3g}" if got["train_loss"] else f"1e{got['log10_train_loss']:.0f}"
        )
        sentence = (
            f"{heads.capitalize()} brought the training loss to {loss} in "
            f"{plural(result.steps, 'step')}, with a test loss of {got['test_loss']:.3g} and a "
            f"test error of {got['test_error']:.1%}."
        )
        if got.get("margin_share", 0) > 0:
            sentence += f" The least margin is {got['margin_share']:.0%} of γ_attn."
        return sentence


_PROBED_STEPS = 200


def _pairs(cell: Cell[P]) -> float:
    """The numbers of an array over pairs of tokens, of all classes of heads of a cell."""
    settings = cell.parameters
    classes = settings.heads if settings.each_head else 2 - (settings.first_phase != "signs")
    return float(classes * settings.n * settings.tokens**2)


def _together(cell: Cell[P]) -> tuple[object, ...]:
    """What cells that are trained together share."""
    values = cell.parameters.model_dump()
    shared = {name: value for name, value in values.items() if name not in APART}
    classes = cell.parameters.heads if cell.parameters.each_head else 1
    return (cell.seed, classes, *map(str, shared.values()))
