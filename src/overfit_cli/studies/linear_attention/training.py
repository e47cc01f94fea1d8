"""Pretraining of a cell: its ridge regression, its errors, and those of the limit."""

from __future__ import annotations

from overfit_cli.core.cell import Cell, CellResult
from overfit_cli.core.training import Row, Training, known_numbers
from overfit_cli.studies.linear_attention.data import draw_problem
from overfit_cli.studies.linear_attention.engine import (
    error,
    new_tasks,
    posterior_gap,
    pretrain,
    pretraining_tasks,
)
from overfit_cli.studies.linear_attention.parameters import Parameters
from overfit_cli.studies.linear_attention.theory import best_alpha, limit_errors


def train_cell(cell: Cell[Parameters], training: Training) -> CellResult[Parameters]:
    """Pretrain a cell, or give the theory alone."""
    p = cell.parameters
    row = _measured(cell, training) if p.sampling != "theory" else {}
    return CellResult(cell, known_numbers({**row, **theory_columns(p)}))


def _measured(cell: Cell[Parameters], training: Training) -> Row:
    p = cell.parameters
    training.say("Drawing the sequences")
    problem = draw_problem(p, cell.seed)
    training.say("Solving the ridge regression")
    Gamma = pretrain(p, problem)  # Γ, (d, d + 1)
    icl, idg = (error(p, Gamma, of) for of in (new_tasks(p), pretraining_tasks(p, problem.tasks)))
    row = {"icl_error": icl, "idg_error": idg, "task_gap": icl - idg}
    if p.k and p.test_contexts:
        training.say("Testing the posterior mean")
        row["posterior_gap"] = posterior_gap(p, cell.seed, problem.tasks)
    return row


def theory_columns(p: Parameters) -> Row:
    """Return the numbers of the limit, at the α, τ and κ of the rounded ℓ, n and k."""
    alpha, tau, kappa = p.alpha, p.tau, p.kappa
    if p.sampling != "theory":
        alpha, tau, kappa = p.context / p.d, p.n / p.d**2, p.k / p.d
    icl, idg = limit_errors(alpha, tau, kappa, p.rho, p.ridge)
    return {
        "theory_icl_error": icl,
        "theory_idg_error": idg,
        "theory_task_gap": icl - idg,
        "best_alpha": best_alpha(tau, kappa, p.rho, p.ridge),
    }
