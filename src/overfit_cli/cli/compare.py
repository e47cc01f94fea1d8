"""The command `overfit compare`: what changes from one run to another, or to published numbers."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from overfit_cli.cli.common import console, next_lines, typed_command
from overfit_cli.cli.completion import columns, conditions, run_directories
from overfit_cli.cli.difference import MOST_AXES
from overfit_cli.cli.options import Where, read_number, read_path
from overfit_cli.errors import UserError

if TYPE_CHECKING:
    from rich.console import Console

    from overfit_cli.report.comparison.compare import Comparison


def _where_of(side: str) -> Any:
    """An option that chooses the cells of one side."""
    return typer.Option(
        f"--where-{side.lower()}",
        metavar="NAME=RANGE",
        help=f"The same for {side} alone.",
        autocompletion=conditions,
    )


def compare(
    a: Annotated[
        str,
        typer.Argument(metavar="A", help="Run directory.", autocompletion=run_directories),
    ],
    b: Annotated[
        str,
        typer.Argument(
            metavar="B",
            help="Another run directory, or a CSV file of published numbers with a column for each "
            "parameter that varies and for each measured column.",
            autocompletion=run_directories,
        ),
    ],
    values: Annotated[
        list[str] | None,
        typer.Option(
            "--value",
            metavar="COLUMN",
            help="Measured column to compare; may be repeated.  [default: all that both have]",
            autocompletion=columns,
        ),
    ] = None,
    where: Where = None,
    where_a: Annotated[list[str] | None, _where_of("A")] = None,
    where_b: Annotated[list[str] | None, _where_of("B")] = None,
    interpolate: Annotated[
        bool,
        typer.Option(
            "--interpolate", help="Interpolate A between its cells, where B has other points."
        ),
    ] = False,
    tolerance: Annotated[
        str | None,
        typer.Option(
            metavar="T",
            help="Exit with code 1 if a pair differs by more than T; of two runs, also if a "
            "verdict or a status differs, or a cell has no counterpart.",
        ),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="PNG, PDF or SVG file for a figure of the difference in the first column; a "
            "caption is written beside it, as FILE.txt.",
        ),
    ] = None,
    json_file: Annotated[
        str | None, typer.Option("--json", metavar="FILE", help="JSON file for all numbers.")
    ] = None,
) -> int:
    """Compare a run with another run, or with published numbers.

    Cells are paired by their parameters and seed; every difference is B less A.
    """
    most = None if tolerance is None else _read_tolerance(tolerance)
    picture_path, numbers_path = read_path("--out", out), read_path("--json", json_file)
    from overfit_cli.report.comparison.compare import compare_sides

    found = compare_sides(
        _path("A", a),
        _path("B", b),
        values or [],
        where or [],
        where_a or [],
        where_b or [],
        interpolated=interpolate,
    )
    output = console()
    if picture_path is not None:
        _draw(found, picture_path)
    if numbers_path is not None:
        _write_numbers(found, most, numbers_path)
    _print(found, output)
    if picture_path is not None:
        caption = picture_path.with_suffix(".txt").name
        output.print(f"Drawn: {picture_path}, and its caption in {caption}")
    if numbers_path is not None:
        output.print(f"Written: {numbers_path}")
    if most is not None:
        return _within(found, most, output)
    if picture_path is None and 0 < len(found.names) <= MOST_AXES:
        for line in next_lines([*sys.argv[1:], "--out", "difference.png"]):
            output.print(line)
    return 0


def _path(letter: str, text: str) -> Path:
    path = read_path(letter, text)
    assert path is not None
    return path


def _read_tolerance(text: str) -> float:
    accepts = "a number of at least 0"
    number = read_number("--tolerance", text, accepts)
    if number < 0:
        raise UserError(f"--tolerance {text}: it takes {accepts}.")
    return number


def _print(found: Comparison, output: Console) -> None:
    """Say what was paired and what differs."""
    from overfit_cli.cli.comparison_tables import difference_table, verdict_changes
    from overfit_cli.report.comparison.words import closing_lines, opening_lines

    for line in opening_lines(found):
        output.print(line)
    if not all(one.is_none for one in found.differences):
        output.print(difference_table(found))
    for line in closing_lines(found):
        output.print(line)
    if found.changed:
        output.print(verdict_changes(found.changed))


def _draw(found: Comparison, path: Path) -> None:
    from overfit_cli.cli.difference import draw_difference
    from overfit_cli.figures.picture import save_with_caption

    picture = draw_difference(found, typed_command(), path)
    save_with_caption(picture, path)


def _write_numbers(found: Comparison, tolerance: float | None, path: Path) -> None:
    from overfit_cli.files import write_named
    from overfit_cli.report.comparison.numbers import as_json

    write_named(path, as_json(found, tolerance).encode(), "--json")


def _within(found: Comparison, tolerance: float, output: Console) -> int:
    """Say what is beyond the tolerance, and return the exit code."""
    beyond = found.beyond(tolerance)
    if beyond:
        output.print(f"Beyond the tolerance of {tolerance:g}: {'; '.join(beyond)}.")
        return 1
    output.print(f"Within the tolerance of {tolerance:g}.")
    return 0
