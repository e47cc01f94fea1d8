"""What runs in a worker: it trains a batch, writes its own part, and returns a small record."""

from __future__ import annotations

import functools
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from overfit_cli.files import reason_of
from overfit_cli.study import Cell, CellResult, Execution, Study, find_study
from overfit_cli.sweep.store import RunDirectory


@dataclass(frozen=True)
class BatchRecord:
    """What the parent needs to know of a finished batch.

    Attributes:
        index: which batch.
        headlines: for each cell, its key and its headline measurement; None where it failed.
        reasons: why cells failed, counted.
        problem: a sentence, if the part couldn't be written; empty otherwise.
    """

    index: int
    headlines: tuple[tuple[str, float | None], ...]
    reasons: Counter[str]
    problem: str = ""

    @property
    def trained(self) -> int:
        """The number of cells that are done."""
        return sum(value is not None for _, value in self.headlines)


def run_batch(
    index: int, batch: Sequence[Cell], directory: Path, execution: Execution, again: Collection[str]
) -> BatchRecord:
    """Train a batch and write its part. Errors in training become failed cells.

    Args:
        index: which batch.
        batch: its cells.
        directory: the run directory.
        execution: device and logging.
        again: keys whose new rows replace the ones that are there.
    """
    study = find_study(batch[0].study)
    results: list[CellResult] = []
    try:
        for result in train_all(study, batch, execution):
            results.append(result)
    except KeyboardInterrupt:
        # In the parent itself (one job): keep what is finished.
        write_results(index, study.name, results, directory, again)
        raise
    return write_results(index, study.name, results, directory, again)


def write_results(
    index: int,
    study_name: str,
    results: Sequence[CellResult],
    directory: Path,
    again: Collection[str],
) -> BatchRecord:
    """Write results as a part file and return their record; say so where it can't be written."""
    study = find_study(study_name)
    problem = ""
    try:
        _store(directory).write(study, results, again)
    except OSError as error:
        problem = (
            f"{directory} can't be written to ({reason_of(error)}); "
            "what was written is kept, and the same command goes on from there."
        )
    return BatchRecord(
        index=index,
        headlines=tuple((result.cell.key, _headline(study, result)) for result in results),
        reasons=Counter(result.reason for result in results if result.status == "failed"),
        problem=problem,
    )


@functools.cache
def _store(directory: Path) -> RunDirectory:
    """The process's own view of a directory: it remembers the parts that it has read."""
    return RunDirectory(directory)


def train_all(study: Study, batch: Sequence[Cell], execution: Execution) -> Iterator[CellResult]:
    """Train together; if that fails, train what is left one by one, to find the culprit."""
    left = {cell.key: cell for cell in batch}
    try:
        for result in study.train(batch, execution):
            del left[result.cell.key]
            yield result
    except Exception as error:
        if len(batch) == 1:
            yield CellResult.failure(batch[0], f"error: {_in_one_line(error)}")
            return
        for cell in left.values():
            yield from train_all(study, [cell], execution)


def _in_one_line(error: Exception) -> str:
    words = " ".join(str(error).split())
    return f"{type(error).__name__}: {words[:200]}" if words else type(error).__name__


def _headline(study: Study, result: CellResult) -> float | None:
    return result.measurements.get(study.headline) if result.status == "done" else None


def leave_with_parent(parent: int) -> None:
    """Start a worker process: it doesn't answer Ctrl-C, and ends soon after its parent is gone.

    It must come before the first batch: a worker whose parent is killed while it waits for one
    would wait for good.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
