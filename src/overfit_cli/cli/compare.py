"""The command `overfit compare`: what changes from one run to another, or to published numbers."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from overfit_cli.cli.completion import columns, conditions, run_directories
from overfit_cli.cli.options import Where, read_number, read_path
from overfit_cli.core.console import console, next_lines, typed_command
from overfit_cli.core.text import UserError, visible

if TYPE_CHECKING:
    from rich.console import Console

    from overfit_cli.report.differences import Comparison, Verdicts


_WIDEST = 22
"""Letters of a column's name that stay on one line on a narrow terminal."""


def difference_table(found: Comparison) -> Table:
    """Return the columns that differ, with the mean on each side and the differences."""
    from overfit_cli.report.difference_words import estimate_in_words, largest_in_words, noun

    shown = [one for one in found.differences if not one.is_none]
    names = [visible(one.column) for one in shown]
    counted = {one.pairs for one in shown} != {found.pairs.both}
    table = Table(box=SIMPLE_HEAD)
    table.add_column("column", overflow="fold", min_width=min(max(map(len, names)), _WIDEST))
    for heading in (*([f"{noun(found)}s"] if counted else []), "mean of A", "mean of B"):
        table.add_column(heading, justify="right")
    for heading in ("B − A", "largest"):
        table.add_column(heading, overflow="fold")
    for name, one in zip(names, shown, strict=True):
        table.add_row(
            name,
            *([str(one.pairs)] if counted else []),
            f"{one.mean_a:.4g}",
            f"{one.mean_b:.4g}",
            estimate_in_words(one.estimate),
            largest_in_words(one),
        )
    return table


def verdict_changes(changed: Sequence[Verdicts]) -> Table:
    """Return the claims whose verdicts differ, with what was measured on each side."""
    from overfit_cli.report.contents import measured_number

    table = Table(box=SIMPLE_HEAD)
    table.add_column("claim", overflow="fold")
    for heading in ("in A", "in B"):
        table.add_column(heading, overflow="fold")
    for one in changed:
        sides = (f"{side.verdict}: {measured_number(side)}" for side in (one.a, one.b))
        table.add_row(visible(one.claim), *sides)
    return table


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
    from overfit_cli.core.figure import MOST_AXES

    most = None if tolerance is None else _read_tolerance(tolerance)
    picture_path, numbers_path = read_path("--out", out), read_path("--json", json_file)
    from overfit_cli.report.differences import compare_sides

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
    from overfit_cli.report.difference_words import closing_lines, opening_lines

    for line in opening_lines(found):
        output.print(line)
    if not all(one.is_none for one in found.differences):
        output.print(difference_table(found))
    for line in closing_lines(found):
        output.print(line)
    if found.changed:
        output.print(verdict_changes(found.changed))


def _draw(found: Comparison, path: Path) -> None:
    from overfit_cli.figures.picture import save_with_caption
    from overfit_cli.report.difference_figure import draw_difference

    picture = draw_difference(found, typed_command(), path)
    save_with_caption(picture, path)


def _write_numbers(found: Comparison, tolerance: float | None, path: Path) -> None:
    from overfit_cli.core.files import write_named
    from overfit_cli.report.difference_words import as_json

    write_named(path, as_json(found, tolerance).encode(), "json")


def _within(found: Comparison, tolerance: float, output: Console) -> int:
    """Say what is beyond the tolerance, and return the exit code."""
    beyond = found.beyond(tolerance)
    if beyond:
        output.print(f"Beyond the tolerance of {tolerance:g}: {'; '.join(beyond)}.")
        return 1
    output.print(f"Within the tolerance of {tolerance:g}.")
    return 0
