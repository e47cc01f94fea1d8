"""The token-space engine against the plain autograd loop, on the paper's grid, one thread.

N 2 to 20, 45 signal-to-noise ratios from 0.16 to 15.6, one seed, test evaluation included. For
each N the engine and the loop train the same cells one after the other, so that a machine whose
speed drifts slows both. The loop is timed with its own draws for each cell, as anyone would write
it, and once more with the draws made for it beforehand. The engine trains the cells once more one
by one. Then the whole command `overfit sweep` of this grid, start-up included, is set beside the
loop with the start-up of Python and PyTorch, and a step of each N is split into its two products
G C and the rest.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from benchmarks.processes import seconds
from benchmarks.timing import timed
from overfit_cli.core import matrix_products
from overfit_cli.core.cell import Batch, Cell, CellResult
from overfit_cli.core.training import Execution
from overfit_cli.studies.benign_vit.data import draw
from overfit_cli.studies.benign_vit.parameters import BenignVitParameters
from overfit_cli.studies.benign_vit.reference import Trained, train_one_cell
from overfit_cli.studies.benign_vit.study import study
from overfit_cli.sweeps.worker import train_all

SEED = 1
LIBRARIES: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    "PyTorch": torch.baddbmm,
    "oneDNN": matrix_products.add_by_onednn,
}


@dataclass(frozen=True)
class Row:
    """One N: seconds a cell, and how well the two agree."""

    n: int
    cells: int
    engine: float
    alone: float
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
    engine, results = timed(lambda: train_as_a_sweep(cells))
    alone, _ = timed(lambda: [list(train_all(study, [cell], Execution())) for cell in cells])
    given, trained = timed(lambda: [train_one_cell(one, SEED, draws) for one in settings])
    loop = given
    if with_draws:
        loop, _ = timed(lambda: [train_one_cell(one, SEED) for one in settings])
    return Row(n, len(cells), engine, alone, loop, given, *agreement(results, trained))


def train_as_a_sweep(cells: Batch[BenignVitParameters]) -> list[CellResult]:
    """Train cells in the study's batches; the results are in the order of the cells."""
    batches = study.batches(cells, "cpu")
    trained = [result for batch in batches for result in train_all(study, batch, Execution())]
    by_key = {result.cell.key: result for result in trained}
    return [by_key[cell.key] for cell in cells]


def agreement(results: list[CellResult], trained: list[Trained]) -> tuple[int, float, int]:
    """Return how many cells took the same steps, the largest test-loss difference, all steps."""
    same = sum(a.steps == b.steps for a, b in zip(results, trained, strict=True))
    differences = [
        abs(a.measurements["test_loss"] - b.test_loss)
        for a, b in zip(results, trained, strict=True)
        if a.steps == b.steps
    ]
    return same, max(differences), sum(result.steps for result in results)


@dataclass(frozen=True)
class Split:
    """A training step of one N, and its two products G C, in seconds."""

    n: int
    step: float
    products: dict[str, float]  # by library
    chosen: str

    @property
    def operations(self) -> int:
        """Floating-point operations of the two products."""
        rows, width = shape_of(self.n)
        return 2 * 2 * rows * rows * width


def shape_of(n: int) -> tuple[int, int]:
    """Return the rows of G and C, and the columns of C."""
    return n * 16, min(2 * (2 + n * 15), 512)


def split_of(n: int, dtype: str) -> Split:
    """Time a step of N, and its products with each library that the engine may choose."""
    rows, width = shape_of(n)
    precision = getattr(torch, dtype)
    left = torch.randn(1, rows, rows, dtype=precision)  # G
    right, initial = torch.randn(2, 1, rows, width, dtype=precision)  # C, q₀
    products = {
        name: 2 * min(timed(partial(add, initial, left, right))[0] for _ in range(60))
        for name, add in LIBRARIES.items()
    }
    return Split(n, seconds_a_step(n, dtype), products, matrix_products.library_of(left, right))


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
    print(
        f"{'N':>3} {'engine':>9} {'alone':>9} {'loop':>9} {'ratio':>6} {'draws given':>12} "
        f"{'ratio':>6}"
    )
    rows = []
    for n in arguments.n:
        row = measure(n, ratios, arguments.dtype, with_draws=True)
        rows.append(row)
        print(
            f"{n:3d} {row.engine / row.cells * 1e3:6.1f} ms "
            f"{row.alone / row.cells * 1e3:6.1f} ms {row.loop / row.cells * 1e3:6.1f} ms "
            f"{row.loop / row.engine:6.1f} {row.loop_given_draws / row.cells * 1e3:9.1f} ms "
            f"{row.loop_given_draws / row.engine:6.1f}",
            flush=True,
        )
    report(rows, arguments.dtype)
    whole_command(arguments, sum(row.loop for row in rows))


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
    print("a step of the engine, its products G C, and the speed of both libraries there")
    for row in rows:
        part = split_of(row.n, dtype)
        speeds = ", ".join(
            f"{name} {part.operations / time / 1e9:.0f}" for name, time in part.products.items()
        )
        share = part.products[part.chosen] / part.step
        print(
            f"N {row.n:2d}: {part.step * 1e3:.3f} ms a step, {share:.0%} of it products "
            f"({part.chosen}; GFLOP/s: {speeds})"
        )


def whole_command(arguments: argparse.Namespace, loop: float) -> None:
    """Print the time of `overfit sweep` beside the loop's, each with its start-up."""
    grid = (",".join(map(str, arguments.n)), f"0.16:15.6:{arguments.ratios}")
    options = ("--seeds", "1", "--jobs", "1", "--device", "cpu", "--dtype", arguments.dtype)
    command = ("sweep", "benign-vit", "--n", grid[0], "--snr", grid[1], *options)
    start = [sys.executable, "-c", "import torch"]
    imports = statistics.median(timed(partial(subprocess.run, start))[0] for _ in range(3))
    sweep = statistics.median(seconds(*command) for _ in range(3))
    print(
        f"start-up included: overfit sweep {sweep:.1f} s, loop {imports + loop:.1f} s, "
        f"{(imports + loop) / sweep:.1f} times"
    )


if __name__ == "__main__":
    main()
