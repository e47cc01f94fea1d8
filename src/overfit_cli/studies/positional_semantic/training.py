"""Training of a seed's cells together, and what is measured of their weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch

from overfit_cli.core.arrays import Floats
from overfit_cli.core.cell import Batch, Cell, CellResult, Results
from overfit_cli.core.training import (
    BatchedTraining,
    CellState,
    Row,
    Training,
    failure,
    known_numbers,
)
from overfit_cli.studies.positional_semantic.data import (
    Problem,
    Sentences,
    draw_problem,
    draw_test_sentences,
)
from overfit_cli.studies.positional_semantic.engine import (
    Attention,
    ForwardPass,
    kept_shares,
    targets,
)
from overfit_cli.studies.positional_semantic.parameters import MIXINGS, Parameters
from overfit_cli.studies.positional_semantic.replica import replica_columns

RIDGE = 1e-4


def train_batch(batch: Batch[Parameters], training: Training) -> Results[Parameters]:
    """Train cells of one seed that share their samples."""
    training.say("Drawing the sentences")
    problem = draw_problem(batch[0].parameters, batch[0].seed)
    return CellsInTraining(list(batch), problem, training).train()


class CellsInTraining(BatchedTraining[Parameters, CellState[Parameters], ForwardPass]):
    """Cells of one seed and one shape, which all take all steps."""

    def __init__(self, batch: list[Cell[Parameters]], problem: Problem, training: Training) -> None:
        states, last = [CellState(cell) for cell in batch], batch[0].parameters.training_steps
        super().__init__(states, training, last=last)
        self._problem = problem
        self._attention = Attention(batch, problem, training.device)

    def forward(self, step: int) -> ForwardPass:
        return self._attention.forward()

    def take_step(self, now: ForwardPass) -> None:
        self._attention.step(now)

    def measure(self, step: int, now: ForwardPass, due: Sequence[int]) -> Sequence[Row]:
        losses = self._attention.train_losses(now).double().cpu().numpy()  # (cells,)
        slopes = self._attention.slopes(now).double().cpu().numpy()  # (cells,)
        weights = self._attention.Q.double().cpu().numpy()  # (features, cells, rank)
        return [
            {
                "train_loss": float(losses[index]),
                "slope": float(slopes[index]),
                **measure_weights(self.cells[index].cell, self._problem, weights[:, index]),
            }
            for index in due
        ]

    def results(self, step: int, now: ForwardPass, rows: Mapping[int, Row]) -> Results[Parameters]:
        for index, row in rows.items():
            cell = self.cells[index].cell
            measured = {**row, **replica_columns(cell.parameters)}
            yield CellResult(cell, known_numbers(measured), step, failure(row["train_loss"]))


def measure_weights(cell: Cell[Parameters], problem: Problem, Q: Floats) -> Row:
    """Return the overlaps of a cell's weights, (features, rank), and the errors on fresh samples.

    With rank r, θ is the mean singular value of Q⋆ᵀ Q / d, which no rotation of columns changes,
    and m and q are lengths: ‖1ᵀ Q‖ / d, ‖Q‖² / (r d).
    """
    p = cell.parameters
    if not np.isfinite(Q).all():
        return {}
    overlaps = np.linalg.svd(problem.teacher.T @ Q / p.d, compute_uv=False)  # (rank,)
    fresh, weights = draw_test_sentences(p, cell.seed, problem, Q)
    scores = torch.from_numpy(fresh.tokens @ weights)[:, :, None]  # a, (2, samples, 1, rank)
    target = targets(fresh, [p], scores)
    errors = target.losses(kept_shares(scores))  # (samples, 1)
    return {
        "theta": float(overlaps.mean()),
        "m": float(np.linalg.norm(problem.ones @ Q)) / p.d,
        "q": float(np.square(Q).sum()) / (p.rank * p.d),
        "test_error": float(errors.mean()),
        "linear_test_error": linear_test_error(p, problem.train, fresh),
    }


def linear_test_error(p: Parameters, train: Sentences, fresh: Sentences) -> float:
    """Return the test error of B x with B in R^{2×2} fitted by ridge regression to y = T ξ.

    B = (Σ y xᵀ) (Σ x xᵀ + ridge)⁻¹, all products divided by d.
    """
    inputs, cross, _ = _moments(p, train)
    B = np.linalg.solve(inputs + RIDGE * np.eye(2), cross.T).T  # (2, 2)
    inputs, cross, labels = _moments(p, fresh)
    squared = labels - 2 * np.trace(B @ cross.T) + np.trace(B @ inputs @ B.T)
    return float(squared) / (2 * len(fresh.gap))


def _moments(p: Parameters, sentences: Sentences) -> tuple[Floats, Floats, float]:
    signs = np.array([1.0, -1.0])  # of p₁ and p₂
    A = np.array(MIXINGS[p.mixing])
    kept = (1 - p.omega) * sentences.teacher.T + p.omega * A  # T_ll, (samples, 2)
    T = np.empty((len(kept), 2, 2))  # (samples, 2, 2)
    T[:, [0, 1], [0, 1]], T[:, [0, 1], [1, 0]] = kept, 1 - kept
    # ξ xᵀ / d = ξ ξᵀ / d + ξ pᵀ / d^(3/2), and x xᵀ adds p ξᵀ / d^(3/2) + p pᵀ / d²
    words_by_input = sentences.words + sentences.along[:, :, None] * signs  # (samples, 2, 2)
    positions_by_input = signs[:, None] * sentences.along[:, None, :]  # (samples, 2, 2)
    inputs = words_by_input + positions_by_input + np.outer(signs, signs) / p.d
    cross = T @ words_by_input  # (samples, 2, 2)
    labels = float((T @ sentences.words * T).sum())
    return inputs.sum(0), cross.sum(0), labels
