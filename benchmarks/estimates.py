"""Estimates of a dry run, beside the time that the sweep then takes.

`python -m benchmarks.estimates [PRESET ...]` prints, for the quick profile of each preset, what
`overfit sweep PRESET --jobs 1 --dry-run` estimates, how long the sweep takes, and the ratio of the
two, which should lie between 2/3 and 3/2. Without names it takes every preset of up to a minute and
a half. A machine that does other things meanwhile shifts both: the processor's time tells by how
much.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import resource
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

from overfit_cli.core.text import console
from overfit_cli.sweeps.executors import Local
from overfit_cli.sweeps.plan import estimate
from overfit_cli.sweeps.presets import find_preset, find_subject, preset_names
from overfit_cli.sweeps.run import LONGEST_DRY_RUN, Session, grid_of
from overfit_cli.sweeps.store import RunDirectory

MOST_MINUTES = 1.5


class Measured(NamedTuple):
    """The seconds that a sweep was said to take, those that it took, and those of a processor."""

    estimate: float
    seconds: float
    processor: float


def main() -> None:
    """Print a row for each preset."""
    print("| preset | study | estimate | measured | processor | ratio |")
    print("|---|---|---|---|---|---|", flush=True)
    for name in sys.argv[1:] or short_presets():
        study = find_subject(name).study.name
        taken = measured(name)
        ratio = taken.estimate / taken.seconds
        times = " | ".join(f"{seconds:.1f} s" for seconds in taken)
        print(f"| {name} | {study} | {times} | {ratio:.2f} |", flush=True)


def short_presets() -> list[str]:
    """The presets whose quick profile takes little time."""
    presets = [(name, find_preset(name)) for name in preset_names()]
    minutes = {name: preset.profile("quick").minutes for name, preset in presets if preset}
    return [name for name, taken in minutes.items() if taken and taken <= MOST_MINUTES]


def measured(name: str) -> Measured:
    """Estimate a preset in one job, then sweep it; each in a process of its own, as a user does."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as fresh:
        estimate = fresh.submit(estimate_of, name).result()
    with tempfile.TemporaryDirectory() as folder:
        out = str(Path(folder) / "run")
        sweep = [sys.executable, "-m", "overfit_cli", "sweep", name, "--jobs", "1", "--out", out]
        began, computed = time.perf_counter(), _seconds_of_children()
        subprocess.run(sweep, check=True, stdout=subprocess.DEVNULL)
        return Measured(estimate, time.perf_counter() - began, _seconds_of_children() - computed)


def estimate_of(name: str) -> float:
    """Return the seconds that `overfit sweep NAME --jobs 1 --dry-run` estimates."""
    subject = find_subject(name)
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(sys.stderr):
        directory = RunDirectory(Path(folder) / "run")
        session = Session(subject, grid_of(subject), console(), directory, Local(1))
        now = session.prepare()
        return estimate(now.plan, 1, now.work.execution, LONGEST_DRY_RUN).seconds or 0.0


def _seconds_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
