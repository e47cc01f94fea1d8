"""The token-space engine against the plain autograd loop, on the paper's grid, one thread.

N 2 to 20, 45 signal-to-noise ratios from 0.16 to 15.6, one seed, test evaluation included. For
each N the engine and the loop train the same cells one after the other, so that a machine whose
speed drifts slows both. The loop is timed with its own draws for each cell, as anyone would write
it, and once more with the draws made for it beforehand.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch

from benchmarks.timing import timed
from overfit_cli.core.cell import Cell, CellResult
from overfit_cli.core.matrix_products import add_product
from overfit_cli.core.training import Execution
from overfit_cli.studies.benign_vit.reference import Trained, train_one_cell
from overfit_cli.studies.benign_vit.vit.data import draw
from overfit_cli.studies.benign_vit.vit.parameters import BenignVitParameters
from overfit_cli.studies.benign_vit.vit.study import study
from overfit_cli.sweeps.worker import train_all

SEED = 1


@dataclass(frozen=True)
class Row:
    """One N: seconds a cell, and how well the two agree."""

    n: int
    cells: int
    engine: float
    loop: float
    loop_given_draws: float
    same_steps: int
    largest_difference: float
    steps: int


def measure(n: int, ratios: list[float], dtype: str, *, with_draws: bool) -> Row:
    """Train all cells of one N with both."""
    settings = [
        BenignVitParameters.model_validate({"n": n, "snr": snr, "dtype": dtype}) for snr in ratios
    ]
    cells = [Cell(study.name, study.version, one, SEED) for one in settings]
    draws = draw(settings[0], SEED)
    engine, results = timed(lambda: list(train_all(study, cells, Execution())))
    given, trained = timed(lambda: [train_one_cell(one, SEED, draws) for one in settings])
    loop = given
    if with_draws:
        loop, _ = timed(lambda: [train_one_cell(one, SEED) for one in settings])
    return Row(n, len(cells), engine, loop, given, *agreement(results, trained))


def agreement(results: list[CellResult], trained: list[Trained]) -> tuple[int, float, int]:
    """Return how many cells took the same steps, the largest test-loss difference, all steps."""
    same = sum(a.steps == b.steps for a, b in zip(results, trained, strict=True))
    differences = [
        abs(a.measurements["test_loss"] - b.test_loss)
        for a, b in zip(results, trained, strict=True)
        if a.steps == b.steps
    ]
    return same, max(differences), sum(result.steps for result in results)


def matrix_product_speed(dtype: torch.dtype) -> float:
    """Return the machine's best matrix-product speed, in operations a second."""
    left, right, initial = (torch.randn(1, 1024, 1024).to(dtype) for _ in range(3))
    products = (torch.baddbmm, add_product)
    times = [timed(partial(one, initial, left, right))[0] for one in products for _ in range(30)]
    return 2 * 1024**3 / min(times)


def share_of_products(n: int, seconds_a_step: float, dtype: torch.dtype) -> float:
    """Return the share of a training step that its two products G C take at full speed."""
    rows, width = n * 16, min(2 * (2 + n * 15), 512)
    return 2 * 2 * rows * rows * width / matrix_product_speed(dtype) / seconds_a_step


def seconds_a_step(n: int, dtype: str) -> float:
    """Return the time of one training step of the engine, from two trainings of unequal length."""
    short, long = (
        min(timed(partial(train_steps, n, dtype, steps))[0] for _ in range(9)) for steps in (1, 41)
    )
    return (long - short) / 40


def train_steps(n: int, dtype: str, steps: int) -> None:
    """Train one cell for exactly so many steps."""
    settings = BenignVitParameters.model_validate(
        {"n": n, "snr": 1.0, "dtype": dtype, "epsilon": 1e-6, "max_steps": steps}
    )
    list(train_all(study, [Cell(study.name, study.version, settings, SEED)], Execution()))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dtype", choices=["float32", "float64"], default="float32")
    parser.add_argument("--ratios", type=int, default=45, help="values of the SNR")
    parser.add_argument("--n", type=int, nargs="+", default=list(range(2, 21)))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    ratios = np.linspace(0.16, 15.6, arguments.ratios).tolist()
    measure(2, ratios[:2], arguments.dtype, with_draws=True)  # Warm up both.
    print(f"{'N':>3} {'engine':>9} {'loop':>9} {'ratio':>6} {'draws given':>12} {'ratio':>6}")
    rows = []
    for n in arguments.n:
        row = measure(n, ratios, arguments.dtype, with_draws=True)
        rows.append(row)
        print(
            f"{n:3d} {row.engine / row.cells * 1e3:6.1f} ms {row.loop / row.cells * 1e3:6.1f} ms "
            f"{row.loop / row.engine:6.1f} {row.loop_given_draws / row.cells * 1e3:9.1f} ms "
            f"{row.loop_given_draws / row.engine:6.1f}",
            flush=True,
        )
    report(rows, arguments.dtype)


def report(rows: list[Row], dtype: str) -> None:
    """Print the sums over the grid."""
    engine = sum(row.engine for row in rows)
    loop, given = sum(row.loop for row in rows), sum(row.loop_given_draws for row in rows)
    cells, same = sum(row.cells for row in rows), sum(row.same_steps for row in rows)
    difference = max(row.largest_difference for row in rows)
    print(f"{cells} cells in {dtype}: engine {engine:.1f} s, loop {loop:.1f} s")
    print(f"the engine is {loop / engine:.1f} times as fast as the loop")
    print(f"and {given / engine:.1f} times where the loop is given its draws")
    print(f"same steps in {same} of {cells} cells, test losses within {difference:.1e}")
    for n in (5, 10, 20):
        step = seconds_a_step(n, dtype)
        share = share_of_products(n, step, getattr(torch, dtype))
        print(f"N {n}: {step * 1e3:.2f} ms a step, {share:.0%} of it matrix products at full speed")


if __name__ == "__main__":
    main()
