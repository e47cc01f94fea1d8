"""Attention on sentences of two tokens, against the loop that its user would write, one thread.

In each round a cell is trained by the study, by itself and beside 15 others that share its samples,
and by a loop in all features by autograd; all start with the same draws and give the same overlaps.
What is printed are medians of a round's ratios of the time per cell.
"""

from __future__ import annotations

import argparse
import statistics
from functools import partial

from benchmarks.timing import timed
from overfit_cli.core.cell import Cell
from overfit_cli.core.training import Execution, Training, training_conditions
from overfit_cli.studies.positional_semantic.parameters import Parameters
from overfit_cli.studies.positional_semantic.reference import train_plainly
from overfit_cli.studies.positional_semantic.study import study

AGREE = 1e-3
"""How far apart the overlaps of both may be, in float32."""

BATCH = 16


def cell_of(d: int, alpha: float, steps: int, omega: float = 0.3) -> Cell[Parameters]:
    """Return a cell of rank 1, without the replica equations, which the loop does not solve."""
    parameters = Parameters(
        d=d, alpha=alpha, training_steps=steps, omega=omega, start="agnostic", test_samples=100
    )
    return Cell(study.name, study.version, parameters, 0)


def trained(cells: list[Cell[Parameters]]) -> list[float]:
    """Train cells as one batch; return their θ."""
    results = study.train(cells, Training(Execution()))
    return [result.measurements["theta"] for result in results]


def main() -> None:
    """Print the ratios at a few sizes."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--steps", type=int, default=5000)
    given = options.parse_args()
    for d, alpha in ((300, 0.2), (300, 1.0), (300, 2.0), (1000, 1.0)):
        alone, batched = [], []
        first = cell_of(d, alpha, given.steps)
        batch = [cell_of(d, alpha, given.steps, omega=0.3 + 0.01 * n) for n in range(BATCH)]
        for _ in range(given.rounds):
            plain_time, plain = timed(partial(train_plainly, first.parameters, 0))
            time, thetas = timed(partial(trained, [first]))
            batch_time, _ = timed(partial(trained, batch))
            assert abs(thetas[0] - plain["theta"]) < AGREE, (thetas, plain)
            alone.append(plain_time / time)
            batched.append(plain_time * BATCH / batch_time)
        print(
            f"d {d}, α {alpha:g}: {statistics.median(alone):.1f} times the loop alone, "
            f"{statistics.median(batched):.0f} times in a batch of {BATCH}",
            flush=True,
        )


if __name__ == "__main__":
    with training_conditions():
        main()
