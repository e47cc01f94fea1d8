"""The boundary of figure 1 by `--refine` against the full grid's, as whole commands.

For each of five sets of five seeds: the grid of 19 N × 100 signal-to-noise ratios, and rounds of
refinement from 8 ratios. Compared are training runs, and at each N the median crossing of test loss
0.2 over the seeds that cross, and how many seeds cross.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

import overfit_cli
from overfit_cli.stats.boundaries import crossings, medians_by_row

LOW, HIGH, POINTS, COARSE = 0.16, 15.6, 100, 8
SPACING = (HIGH - LOW) / (POINTS - 1)
THRESHOLD, SEEDS = 0.2, 5
PRECISION = 1.96 * SPACING / (12 * SEEDS) ** 0.5
"""To what the full grid knows a mean crossing: five of them, each anywhere between two points."""

MOST_RUNS, LEAST_AGREEMENT = 0.2, 0.95


def sweep(out: Path, seeds: str, points: int, *more: str) -> tuple[pd.DataFrame, float]:
    """Run a sweep into `out`; return its cells and the seconds it took."""
    asked = ["--n", "2:20", "--snr", f"{LOW}:{HIGH}:{points}", "--seeds", seeds, "--out", str(out)]
    began = time.perf_counter()
    command = [sys.executable, "-m", "overfit_cli", "sweep", *asked, *more]
    subprocess.run(command, check=True, capture_output=True)
    return overfit_cli.load(out), time.perf_counter() - began


def boundary(cells: pd.DataFrame) -> pd.DataFrame:
    """Return crossings by N."""
    found = crossings(cells, "snr", "n", "test_loss", THRESHOLD)
    return medians_by_row(found, "n").set_index("n")


def differences(full: pd.DataFrame, refined: pd.DataFrame) -> pd.Series:
    """Return by how much the crossings differ at each N: infinite where other seeds cross."""
    apart = (full["crossing"] - refined["crossing"]).abs()
    neither = full["crossing"].isna() & refined["crossing"].isna()
    same_seeds = full["seeds"] == refined["seeds"]
    return apart.mask(neither, 0.0).fillna(np.inf).where(same_seeds, np.inf)


def repetition(number: int, rounds: int) -> tuple[pd.Series, float]:
    """Run and compare both for one set of seeds; return differences and the share of runs."""
    seeds = f"{SEEDS * number}:{SEEDS * number + SEEDS - 1}"
    with tempfile.TemporaryDirectory() as folder:
        full, long = sweep(Path(folder) / "full", seeds, POINTS)
        refine = ("--refine", str(rounds))
        refined, short = sweep(Path(folder) / "refined", seeds, COARSE, *refine)
    apart = differences(boundary(full), boundary(refined))
    share = len(refined) / len(full)
    runs = f"{len(refined)} of {len(full)} runs ({share:.1%}), {short:.0f} s against {long:.0f} s"
    within = f"{(apart <= SPACING).sum()} of {len(apart)} N"
    sizes = f"median {apart.median():.3f}, largest {apart.max():.3f}"
    print(f"seeds {seeds}: {runs}; within ±{SPACING:.3f} at {within}; {sizes}")
    return apart, share


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=12)
    options = parser.parse_args()
    done = [repetition(number, options.rounds) for number in range(options.repetitions)]
    apart = pd.concat([one for one, _ in done])
    agreement, share = float((apart <= SPACING).mean()), max(share for _, share in done)
    print(f"{agreement:.1%} of {len(apart)} crossings agree within ±{SPACING:.3f}.")
    print(f"The full grid knows each to ±{PRECISION:.3f}, if curves are smooth.")
    if agreement < LEAST_AGREEMENT or share > MOST_RUNS:
        sys.exit(f"Asked for are {LEAST_AGREEMENT:.0%}, with {MOST_RUNS:.0%} of the runs at most.")


if __name__ == "__main__":
    main()
