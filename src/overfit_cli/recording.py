"""The record of a figure: its request, and what its run directories hold."""

from __future__ import annotations

import importlib.metadata
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from overfit_cli import __version__
from overfit_cli.figure import Figure, FigureData, FigureOptions

if TYPE_CHECKING:
    import pandas as pd

    from overfit_cli.drawing import Request
    from overfit_cli.figures.provenance import Provenance, RunRecord
    from overfit_cli.sweeps.store import RunDirectory

PACKAGES = ("matplotlib", "numpy")
"""What draws: with another version of them a picture may differ."""


def record_of(request: Request, figure: Figure, parts: Sequence[FigureData]) -> Provenance:
    """Return the record of a figure.

    Args:
        request: what was asked for.
        figure: the figure that it names.
        parts: what each of the request's sources holds.
    """
    from overfit_cli.figures.picture import Look
    from overfit_cli.figures.provenance import LookRecord, Provenance
    from overfit_cli.figures.settings import settings_as_json

    look = request.look or Look()
    names = request.called() if len(request.sources) > 1 else [""]
    runs = [
        run_record(directory, data, figure, request.options, request.out, name)
        for directory, data, name in zip(request.sources, parts, names, strict=True)
    ]
    minus = runs.pop() if request.minus is not None else None
    return Provenance(
        schema=1,
        overfit=__version__,
        packages=versions(),
        command=as_text(request.command),
        title=look.title or figure.title,
        figure=request.figure,
        options=request.options,
        where=tuple(request.where),
        look=LookRecord(
            title=look.title,
            width=look.width,
            height=look.height,
            dpi=look.dpi,
            settings=settings_as_json(look.settings),
        ),
        runs=tuple(runs),
        minus=minus,
    )


def run_record(
    directory: RunDirectory,
    data: FigureData,
    figure: Figure,
    options: FigureOptions,
    out: Path | None = None,
    name: str = "",
) -> RunRecord:
    """Return what a record says of a run directory: which cells it gives the figure.

    Logged steps count where the figure reads them, and times where it draws them.

    Args:
        directory: the run directory.
        data: what it holds, of the chosen cells.
        figure: the figure.
        options: what the user asked of it.
        out: the figure's file, if it is known.
        name: what the figure calls the directory.
    """
    cells, steps = data.cells, None
    if figure.reads == "trajectories":
        steps = data.trajectories[data.trajectories["key"].isin(cells["key"])]
    timed = "seconds" in (options.value, figure.options.value)
    return record_of_cells(
        directory.path, data.study.name, cells, steps, seconds=timed, out=out, name=name
    )


def record_of_cells(
    path: Path,
    study: str,
    cells: pd.DataFrame,
    steps: pd.DataFrame | None = None,
    *,
    seconds: bool = False,
    out: Path | None = None,
    name: str = "",
) -> RunRecord:
    """Return what a record says of chosen cells of a run directory.

    Args:
        path: the run directory.
        study: whose cells they are.
        cells: one row per cell.
        steps: one row per cell and logged step; None where they don't matter.
        seconds: whether the time that a cell took matters.
        out: the figure's file, if it is known.
        name: what the figure calls the directory.
    """
    from overfit_cli.figures.provenance import RunRecord
    from overfit_cli.sweeps.digests import digest_of_numbers, key_of_cells
    from overfit_cli.sweeps.manifest import read_manifest

    manifest = read_manifest(path)
    commits = [run.git_commit for run in manifest.runs] if manifest is not None else []
    return RunRecord(
        path=as_text(path.as_posix()),
        beside=beside(path, out),
        name=as_text(name),
        study=study,
        version=int(cells["version"].iloc[0]),
        commits=tuple(dict.fromkeys(filter(None, commits))),
        cells=len(cells),
        key=key_of_cells(cells),
        data=digest_of_numbers(cells, steps, seconds=seconds),
    )


def versions() -> dict[str, str]:
    """Return the versions of the packages that draw."""
    return {name: importlib.metadata.version(name) for name in PACKAGES}


def as_text(given: str) -> str:
    """Return what was typed; bytes of it that are no text are written as escapes."""
    return given.encode(errors="backslashreplace").decode()


def beside(source: Path, out: Path | None) -> str:
    """Return a source's path from the figure's folder, if every name in it is one that was typed.

    Args:
        source: a run directory, or another file.
        out: the figure's file, if it is known.
    """
    if out is None:
        return ""
    path = Path(os.path.relpath(source, out.parent))
    typed = {"..", *source.parts, *out.parts}
    return as_text(path.as_posix()) if typed.issuperset(path.parts) else ""
