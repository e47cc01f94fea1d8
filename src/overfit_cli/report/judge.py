"""Claims set against what was run: each by the run directory that bears on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from overfit_cli.claim import Claim, Measurement
from overfit_cli.study import find_study, study_names
from overfit_cli.sweep.store import RunDirectory, run_directories


@dataclass(frozen=True)
class Judged:
    """A claim with its measurement.

    Attributes:
        study: name of the study that makes the claim.
        claim: the claim.
        measurement: what was measured, and the verdict.
        directory: the run directory that it was measured on; None where there was none.
    """

    study: str
    claim: Claim
    measurement: Measurement
    directory: Path | None


def judge_all(sources: Sequence[Path], root: Path) -> list[Judged]:
    """Judge every claim of every study.

    Args:
        sources: the run directories to judge by; empty for all of those in `root`.
        root: where run directories lie. The newest on which a claim can be measured decides it.

    Raises:
        UserError: if a named directory holds no cells.
    """
    directories = [RunDirectory(path) for path in sources] or run_directories(root)
    frames = [(directory.path, directory.load_cells()) for directory in directories]
    return [
        _judge(name, claim, [frame for frame in frames if _is_of(frame[1], name)])
        for name in study_names()
        for claim in find_study(name).claims()
    ]


def _is_of(cells: pd.DataFrame, study: str) -> bool:
    return bool((cells["study"] == study).all())


def _judge(study: str, claim: Claim, frames: Sequence[tuple[Path, pd.DataFrame]]) -> Judged:
    reason = f"There are no cells of {study}."
    for path, cells in frames:
        measurement = claim.measure(cells)
        if measurement.verdict != "not run":
            return Judged(study, claim, measurement, path)
        reason = measurement.sentence
    return Judged(study, claim, Measurement.without_value("not run", reason), None)
