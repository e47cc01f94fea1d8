"""Comparison of two checkouts, bit by bit: does a change of the code leave every number alone?

`python -m benchmarks.same_numbers OTHER` sweeps a small part of every preset with this code and
with the checkout in the folder OTHER, on this machine, and compares cells and logged steps. Unlike
`benchmarks.reproduce` it can be exact: the last bits of a number differ from machine to machine.
It exits with 1 if a number differs.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pandas as pd

SWEEPS = {
    "fig1": "--seeds 2",
    "dynamics-benign": "--seeds 2",
    "dynamics-harmful": "--seeds 2",
    "dimension": "--seeds 1",
    "strong-noise": "--seeds 1",
    "theorem-regime": "--seeds 1 --set n=44",
    "fig2": "--seeds 1 --set n=40,60 --set max_epochs=40",
    "heads-fig2": "--seeds 2 --set training_steps=200",
    "heads-fig4": "--seeds 2 --set training_steps=200",
    "heads-fig5-adam": "--seeds 1 --set training_steps=200",
    "heads-normalised": "--seeds 2 --set training_steps=300",
    "kernel-theorem1": "--seeds 1",
    "kernel-theorem2": "--seeds 1",
    "kernel-theorem3": "--seeds 2",
    "kernel-fig2": "--seeds 1 --set training_steps=30",
    "kernel-fig3": "--seeds 1 --set training_steps=30 --set n=256 --set test_samples=64",
    "kernel-fig4": "--seeds 1 --set pair=0 --set training_steps=60 --set second_steps=20 "
    "--set points=10",
}
"""A part of each preset that takes a minute at most."""

_KINDS = {"cells": ["key"], "trajectories": ["key", "step"]}
_OWN = ["seconds"]
"""What is no number of the training."""


def sweep(checkout: Path, preset: str, folder: Path) -> Path:
    """Run a preset's part with a checkout's code and a cache of its own; return its directory."""
    out = folder / preset
    environment = os.environ | {
        "PYTHONPATH": str(checkout / "src"),
        "OVERFIT_CACHE": str(folder / "cache"),
    }
    command = [sys.executable, "-m", "overfit_cli", "sweep", preset, *SWEEPS[preset].split()]
    subprocess.run(
        [*command, "--trajectories", "--out", str(out)],
        env=environment,
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,  # a preset may have cells that fail
    )
    return out


def read(directory: Path, kind: str) -> pd.DataFrame:
    """Return the rows of a run directory as they lie in its files, by what names them."""
    parts = [pd.read_parquet(path) for path in sorted((directory / kind).glob("*.parquet"))]
    if not parts:
        return pd.DataFrame()
    return pd.concat(parts).set_index(_KINDS[kind]).sort_index().drop(columns=_OWN, errors="ignore")


def compare(one: pd.DataFrame, other: pd.DataFrame) -> tuple[int, int]:
    """Return how many rows there are, and how many of them are the same in both."""
    rows = len(one.index.union(other.index))
    both = one.index.intersection(other.index)
    columns = one.columns.union(other.columns)
    left, right = (table.reindex(index=both, columns=columns) for table in (one, other))
    same = (left == right) | (left.isna() & right.isna())
    return rows, int(same.all(axis=1).sum())


def main(other: Path) -> int:
    """Compare all presets, and say a line for each."""
    different = 0
    for preset in SWEEPS:
        with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
            own, its = sweep(Path.cwd(), preset, Path(first)), sweep(other, preset, Path(second))
            counts = [compare(read(own, kind), read(its, kind)) for kind in _KINDS]
        words = [
            f"{same} of {rows} {kind}" for kind, (rows, same) in zip(_KINDS, counts, strict=True)
        ]
        print(f"{preset}: identical {', '.join(words)}", flush=True)
        different += sum(rows - same for rows, same in counts) + (counts[0][0] == 0)
    return int(different > 0)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
