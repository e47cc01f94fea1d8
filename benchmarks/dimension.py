"""The cost of a cell in ever more dimensions, sampled in law; and many steps at a time.

Time and memory: figure 1's cell at N = 20 with 40 test samples, for each d in a process of its own,
which draws the seed's tokens and weights, and trains the cell once more from what it kept of them.
Steps: cells of `theorem-regime` in narrower heads, where single steps can be run too, against the
same cells with `leap`.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import statistics
import time
from typing import Any, NamedTuple

from overfit_cli.core.cell import Cell, CellResult
from overfit_cli.core.registry import find_study
from overfit_cli.core.training import Execution
from overfit_cli.sweeps.worker import train_all

DIMENSIONS = tuple(10**power for power in range(3, 13))
FIGURE_1: dict[str, Any] = {"sampling": "law", "initialisation": "gaussian", "noise_per": "token"}
FIGURE_1 |= {"sigma_p": 6.4, "sigma_p_tilde": 128.0, "test_samples": 40}
REGIME: dict[str, Any] = {"sampling": "law", "initialisation": "condition", "noise_per": "token"}
REGIME |= {"sigma_p": 1.0, "sigma_p_tilde": 10.0, "output_scale": 1.0, "noise": "orthogonal"}
REGIME |= {"tokens": 4, "n": 44, "epsilon": 0.024, "d": 10**12, "d_h": 10**4, "max_steps": 10**9}
REGIME |= {"learning_rate": 6.5e-4}


class Cost(NamedTuple):
    """Of one process."""

    first: float
    again: float
    bytes: float


def train(settings: dict[str, Any], seed: int) -> tuple[float, CellResult]:
    """Train a cell; return the seconds it took and what came of it."""
    study = find_study("benign-vit")
    cell = Cell(study.name, study.version, study.parameters.model_validate(settings), seed)
    began = time.perf_counter()
    [result] = train_all(study, [cell], Execution(device="cpu"))
    return time.perf_counter() - began, result


def cost(settings: dict[str, Any], seed: int) -> Cost:
    """Train a cell twice in this process, the second time from what the first has drawn."""
    first, _ = train(settings, seed)
    again, _ = train(settings, seed)
    return Cost(first, again, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0)


def costs(settings: dict[str, Any], seeds: int) -> Cost:
    """Return the medians over seeds, each in a fresh process."""
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        each = pool.starmap(cost, [(settings, seed) for seed in range(seeds)], chunksize=1)
    return Cost(*(statistics.median(one) for one in zip(*each, strict=True)))


def compare_steps(snr: float, leap: float) -> None:
    """Print single steps against many at a time."""
    alone, single = train(REGIME | {"snr": snr}, 0)
    together, many = train(REGIME | {"snr": snr, "leap": leap}, 0)
    loss = many.measurements["test_loss"] / single.measurements["test_loss"] - 1
    print(
        f"SNR {snr:g}: {single.steps} steps in {alone:.1f} s; {many.steps} "
        f"({many.steps / single.steps - 1:+.2%}) in {many.measurements['updates']:.0f} updates and "
        f"{together:.2f} s, {alone / together:.0f} times; test loss "
        f"{single.measurements['test_loss']:.4f}, {loss:+.2%}",
        flush=True,
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3, help="processes for each d")
    parser.add_argument("--leap", type=float, default=0.05)
    arguments = parser.parse_args()
    print(f"{'d':>6} {'draw and train':>15} {'train again':>12} {'memory':>8}")
    for d in DIMENSIONS:
        found = costs(FIGURE_1 | {"d": d}, arguments.seeds)
        print(
            f"{d:6.0e} {found.first:13.2f} s {found.again:10.3f} s {found.bytes / 1e6:5.0f} MB",
            flush=True,
        )
    for snr in (0.5, 2.3, 3.5):
        compare_steps(snr, arguments.leap)


if __name__ == "__main__":
    main()
