"""The boundary of figure 1 by `--refine` against the full grid's, as whole commands.

For each of five sets of five seeds: the grid of 19 N × 100 signal-to-noise ratios, and rounds of
refinement from 8 ratios. Compared are training runs, and at each N the mean crossing of test loss
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
from overfit_cli.analysis.crossings import crossings, interval_by_row

LOW, HIGH, POINTS, COARSE = 0.16, 15.6, 100, 8
TOLERANCE = (HIGH - LOW) / (POINTS - 1)
THRESHOLD, SEEDS = 0.2, 5


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
    return interval_by_row(found, "n").set_index("n")


def agreement(full: pd.DataFrame, refined: pd.DataFrame) -> pd.Series:
    """Return by how much the two crossings differ at each N; 0 where neither has one."""
    difference = (full["crossing"] - refined["crossing"]).abs()
    neither = full["crossing"].isna() & refined["crossing"].isna()
    return difference.mask(neither, 0.0).fillna(np.inf)


def repetition(number: int, rounds: int) -> pd.Series:
    """Run and compare both for one set of seeds; print a line."""
    seeds = f"{SEEDS * number}:{SEEDS * number + SEEDS - 1}"
    with tempfile.TemporaryDirectory() as folder:
        full, long = sweep(Path(folder) / "full", seeds, POINTS)
        refine = ("--refine", str(rounds), "--tolerance", str(TOLERANCE))
        refined, short = sweep(Path(folder) / "refined", seeds, COARSE, *refine)
    apart = agreement(boundary(full), boundary(refined))
    runs = f"{len(refined)} of {len(full)} runs ({len(refined) / len(full):.1%})"
    agree = f"within {TOLERANCE:.3f} at {(apart <= TOLERANCE).sum()} of {len(apart)} N"
    sizes = f"median difference {apart.median():.3f}, largest {apart.max():.3f}"
    print(
        f"seeds {seeds}: {runs}, {short:.0f} s against {long:.0f} s; {agree}; {sizes}", flush=True
    )
    return apart


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=8)
    options = parser.parse_args()
    apart = pd.concat([repetition(number, options.rounds) for number in range(options.repetitions)])
    share = (apart <= TOLERANCE).mean()
    print(f"{share:.1%} of {len(apart)} crossings agree within ±{TOLERANCE:.3f}.")


if __name__ == "__main__":
    main()
