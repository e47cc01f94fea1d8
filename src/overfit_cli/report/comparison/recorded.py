"""The record of a comparison's figure: its two sides, and how they were compared."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from overfit_cli import __version__
from overfit_cli.files import read_bounded
from overfit_cli.recording import as_text, beside, record_of_cells, versions
from overfit_cli.report.comparison.compare import Comparison
from overfit_cli.report.comparison.published import MOST_BYTES
from overfit_cli.report.comparison.sides import Side

if TYPE_CHECKING:
    from overfit_cli.figures.provenance import FileRecord, Provenance, RunRecord

FIGURE = "difference"
"""What a record calls the figure."""


def record_of_comparison(
    found: Comparison, names: Sequence[str], command: str = "", out: Path | None = None
) -> Provenance:
    """Return the record of a comparison's figure.

    Args:
        found: the comparison; its first column is drawn.
        names: what the figure calls its sides.
        command: what the user typed; empty where nothing was.
        out: the figure's file, if it is known.
    """
    from overfit_cli.figures.provenance import ComparisonRecord, Provenance

    a, b = found.a, found.b
    columns = tuple(one.column for one in found.differences)
    runs = [
        record_of_side(side, columns[0], out, name)
        for side, name in zip((a, b), names, strict=True)
        if not side.is_published
    ]
    return Provenance(
        schema=1,
        overfit=__version__,
        packages=versions(),
        command=as_text(command),
        title=as_text(f"{columns[0]}: {names[1]} less {names[0]}"),
        figure=FIGURE,
        where=a.shared,
        runs=tuple(runs),
        compared=ComparisonRecord(
            columns=columns,
            where_a=a.where,
            where_b=b.where,
            interpolate=found.between is not None,
            published=_record_of_file(b, out, names[1]) if b.is_published else None,
        ),
    )


def record_of_side(side: Side, column: str, out: Path | None = None, name: str = "") -> RunRecord:
    """Return what a record says of a side that is a run.

    Args:
        side: the run's chosen cells.
        column: what is drawn.
        out: the figure's file, if it is known.
        name: what the figure calls the side.
    """
    timed = column == "seconds"
    return record_of_cells(
        side.path, side.study.name, side.cells, seconds=timed, out=out, name=name
    )


def _record_of_file(side: Side, out: Path | None, name: str) -> FileRecord:
    from overfit_cli.figures.provenance import FileRecord

    return FileRecord(
        path=as_text(side.path.as_posix()),
        beside=beside(side.path, out),
        name=as_text(name),
        data=digest_of_file(side.path),
    )


def digest_of_file(path: Path) -> str:
    """Return the SHA-256 of a CSV file's content.

    Raises:
        OSError: if it can't be read.
    """
    return hashlib.sha256(read_bounded(path, MOST_BYTES)).hexdigest()
