"""The study `positional-semantic`: Cui et al. 2024."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from overfit_cli.core.cell import Batch, Batches, CellResult, Column, Results
from overfit_cli.core.claim import Claim
from overfit_cli.core.figure import (
    CURVES,
    HEATMAP,
    LINES,
    Figure,
    FigureOptions,
    collect_figures,
    lazily,
)
from overfit_cli.core.study import Study
from overfit_cli.core.text import plural
from overfit_cli.core.training import BYTES_OF_LIBRARIES, Training, group_cells, shared_values
from overfit_cli.studies.positional_semantic import PAPER
from overfit_cli.studies.positional_semantic.parameters import (
    PositionalSemanticCell,
    PositionalSemanticParameters,
)

P = PositionalSemanticParameters

_AT_STEPS = (
    Column(
        "theta",
        "overlap with the teacher, |⟨Q⋆, Q⟩| / d",
        symbol=r"\theta",
        label="overlap with the teacher",
    ),
    Column(
        "m",
        "overlap with the positions, |⟨1, Q⟩| / d",
        symbol="m",
        label="overlap with the positions",
    ),
    Column(
        "test_error", "error on fresh samples, ½ ‖f − y‖² / d", label="test error", diverges=True
    ),
    Column("train_loss", "training loss with the penalty", label="training loss", diverges=True),
    Column("linear_test_error", "test error of the best linear map", label="linear test error"),
    Column(
        "slope",
        "length of the gradient over that of the penalty's, ‖∇‖ / λ‖Q‖",
        label="gradient over the penalty's",
    ),
    Column(
        "q",
        "squared length of the weights, ‖Q‖² / d",
        symbol="q",
        label="squared length of weights",
    ),
)
_REPLICA = (
    Column("replica_theta", "θ for many features", symbol=r"\theta_\infty"),
    Column("replica_m", "m for many features", symbol=r"m_\infty"),
    Column("replica_test_error", "test error for many features", label="limit of the test error"),
    Column(
        "replica_linear_error",
        "linear test error for many features and samples",
        label="limit of the linear error",
    ),
    Column("replica_loss", "training loss for many features", label="limit of the training loss"),
)

_APART = frozenset({"omega", "start", "weight_decay", "learning_rate", "mixing"})
"""Parameters in which cells that are trained together may differ."""

_LARGEST_BATCH = {"cpu": 2e6, "cuda": 2e8}
"""The most scores in a batch."""


class PositionalSemantic(Study[P]):
    """Tied dot-product attention that fits a teacher of positions and meaning."""

    name = "positional-semantic"
    version = 1
    title = "Positional and semantic learning in tied dot-product attention"
    paper = PAPER
    parameters = PositionalSemanticParameters
    headline = "test_error"
    columns = (*_AT_STEPS, *_REPLICA)
    trajectory_columns = _AT_STEPS
    progress_columns = ("train_loss", "theta", "m", "test_error")

    def figures(self) -> Mapping[str, Figure]:
        folder = "overfit_cli.studies.positional_semantic.figures"
        named = (
            (
                "phase",
                "The plane of ω and α: the solution with less loss, overlaps, error",
                "plane",
            ),
            ("overlaps", "θ, m and test error against α, with the limit, by ω", "lines"),
            ("branches", "Training losses of both starts against α, and where they cross", "lines"),
            ("sizes", "Overlaps that vanish, and the transition, against d", "sizes"),
        )
        return collect_figures(
            *(
                Figure(
                    name=name,
                    title=title,
                    reads="cells",
                    draw=lazily(f"{folder}:draw_{name}"),
                    fits=lazily(f"{folder}:has_{needed}"),
                    source=f"{PAPER}",
                )
                for name, title, needed in named
            ),
            replace(HEATMAP, options=FigureOptions(x="alpha", y="omega", by="start")),
            replace(LINES, options=FigureOptions(x="alpha", value="theta")),
            CURVES,
        )

    def claims(self) -> Sequence[Claim]:
        from overfit_cli.studies.positional_semantic.claims import CLAIMS

        return CLAIMS

    def batches(self, cells: Batch[P], device: str) -> Batches[P]:
        return group_cells(cells, _shape, _scores, _LARGEST_BATCH[device], self.cost)

    def cost(self, cell: PositionalSemanticCell) -> float:
        settings = cell.parameters
        return settings.training_steps * (_scores(cell) * _features(settings) + 1e5)

    def probe(self, cell: PositionalSemanticCell) -> PositionalSemanticCell:
        return cell.with_at_most(training_steps=200)

    def memory(self, cell: PositionalSemanticCell) -> float:
        settings = cell.parameters
        drawn = settings.d if settings.sampling == "direct" else _features(settings)
        numbers = 4 * 2 * settings.n * drawn + 60 * settings.test_samples
        return BYTES_OF_LIBRARIES + 8.0 * numbers

    def train(self, batch: Batch[P], training: Training) -> Results[P]:
        from overfit_cli.studies.positional_semantic.training import train_batch

        return train_batch(batch, training)

    def summary(self, result: CellResult[P]) -> str:
        if result.reason:
            return f"The loss diverged at step {result.steps}; a smaller step size may not."
        measured = result.measurements
        kind = "positions" if measured["m"] > measured["theta"] else "meaning"
        side = "below" if measured["test_error"] < measured["linear_test_error"] else "above"
        return (
            f"Attention learned {kind}: θ is {measured['theta']:.3g} and m {measured['m']:.3g} "
            f"after {plural(result.steps, 'step')}. The test error, {measured['test_error']:.3g}, "
            f"is {side} the best linear map's, {measured['linear_test_error']:.3g}."
        )


def _shape(cell: PositionalSemanticCell) -> tuple[object, ...]:
    return (cell.seed, *shared_values(cell, _APART))


def _features(settings: P) -> float:
    return min(settings.d, 2 * settings.n + 2 * settings.rank + 1)


def _scores(cell: PositionalSemanticCell) -> float:
    return float(2 * cell.parameters.n * cell.parameters.rank)


study = PositionalSemantic()
