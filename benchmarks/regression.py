"""Cells of `kernel-regression` trained together against the plain autograd loop, one thread.

The demo instance: ten seeds at eight step sizes for each kernel, on the loop a few of them.
"""

from __future__ import annotations

import argparse

import torch

from benchmarks.timing import timed
from overfit_cli.core.cell import Cell, CellResult
from overfit_cli.core.training import Execution
from overfit_cli.studies.attention_kernel.parameters import (
    KernelRegressionParameters,
    RegressionCell,
)
from overfit_cli.studies.attention_kernel.reference import plain_descent
from overfit_cli.studies.attention_kernel.study import study
from overfit_cli.sweeps.worker import train_all

RATES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
SEEDS = range(10)
COMPARED = 3


def cells(kernel: str, steps: int) -> list[RegressionCell]:
    """Return the demo's cells of a kernel, with W_Q alone trained and labels below the hull."""
    settings = [
        KernelRegressionParameters.model_validate(
            {"kernel": kernel, "learning_rate": rate, "training_steps": steps}
        )
        for rate in RATES
    ]
    return [Cell(study.name, study.version, one, seed) for one in settings for seed in SEEDS]


def together(batch: list[RegressionCell]) -> list[CellResult]:
    """Train all cells as the study does."""
    return [
        result
        for part in study.batches(batch, "cpu")
        for result in train_all(study, part, Execution())
    ]


def measure(kernel: str, steps: int) -> str:
    """Train a kernel's cells together and some of them in the loop; say how long each took."""
    batch = cells(kernel, steps)
    compared = [cell for cell in batch if cell.seed == 0][:COMPARED]
    fast, results = timed(lambda: together(batch))
    slow, losses = timed(lambda: [plain_loss(cell) for cell in compared])
    found = {result.cell.key: result.measurements["train_loss"] for result in results}
    apart = max(
        abs(found[cell.key] - loss) / loss for cell, loss in zip(compared, losses, strict=True)
    )
    each, in_loop = 1e3 * fast / len(batch), 1e3 * slow / len(compared)
    return (
        f"{kernel:>10}: {each:6.1f} ms a cell together, {in_loop:7.1f} ms in the loop: "
        f"{in_loop / each:.0f} times; final losses within {apart:.1e}"
    )


def plain_loss(cell: RegressionCell) -> float:
    """Return the final loss of a cell trained by autograd."""
    *_, (loss, _) = plain_descent(cell.parameters, cell.seed)
    return loss


def main() -> None:
    """Print a line a kernel."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1000)
    steps = parser.parse_args().steps
    torch.set_num_threads(1)
    for kernel in ("softmax", "gaussian"):
        print(measure(kernel, steps))


if __name__ == "__main__":
    main()
