"""The command `overfit compare`: what changes from one run to another, or to published numbers."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from overfit_cli.cli.completion import columns, conditions, run_directories
from overfit_cli.cli.export import print_content
from overfit_cli.cli.options import Where
from overfit_cli.core.console import (
    WIDEST,
    console,
    print_folded,
    proposed_command,
    typed_command,
)
from overfit_cli.core.text import visible

if TYPE_CHECKING:
    from rich.console import Console, JustifyMethod

    from overfit_cli.core.claim import Measurement
    from overfit_cli.report.differences import Comparison
    from overfit_cli.report.sides import Side


def _print_comparison(output: Console, comparison: Comparison) -> None:
    from overfit_cli.report.difference_words import (
        closing_lines,
        leading_lines,
        opening_lines,
        verdict_rows,
    )

    for line in leading_lines(comparison):
        print_folded(output, line)
    output.print()
    for line in opening_lines(comparison):
        print_folded(output, line)
    _print_differences(output, comparison)
    for line in closing_lines(comparison):
        print_folded(output, line)
    verdicts = _table(verdict_rows(comparison))
    if verdicts.rows:
        output.print(verdicts)


def _print_differences(output: Console, comparison: Comparison) -> None:
    """Print a row for each column; on a narrow terminal what is largest has a line below."""
    from overfit_cli.report.difference_words import LARGEST, difference_rows, merge_equal

    rows = merge_equal(difference_rows(comparison))
    table, whole = _table(rows), output.options.update(width=WIDEST)
    if not rows:
        return
    if not output.is_terminal or output.measure(table, options=whole).maximum <= output.width:
        output.print(table)
        return
    output.print()
    headings = {name: name for name in rows[0]} | {LARGEST: f"{LARGEST} difference of a pair"}
    lines = [[*map(visible, row.values())] for row in (headings, *rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(3)]
    widths[0] = min(widths[0], WIDEST_NAME)
    for name, mean_a, mean_b, change, largest in lines:
        first = f"  {name:{widths[0]}}  {mean_a:>{widths[1]}}  {mean_b:>{widths[2]}}  "
        if len(name) > widths[0]:
            print_folded(output, name, "  ", "    ")
            first = f"{'':{widths[0] + 4}}{mean_a:>{widths[1]}}  {mean_b:>{widths[2]}}  "
        print_folded(output, change, first, " " * len(first))
        print_folded(
            output, largest if name == "column" else f"{LARGEST} {largest}", "    ", " " * 6
        )
    output.print()


WIDEST_NAME = 26
"""The columns that names of columns have on a narrow terminal."""


def _table(rows: Iterable[dict[str, str]]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for row in rows:
        for heading in () if table.columns else row:
            is_mean = heading.startswith("mean")
            justify: JustifyMethod = "right" if is_mean else "left"
            table.add_column(heading, justify=justify, overflow="fold", no_wrap=is_mean)
        table.add_row(*map(visible, row.values()))
    return table


def as_json(comparison: Comparison) -> str:
    """Return a comparison as JSON; numbers that aren't finite are null."""
    content = {
        "schema": 2,
        "difference": "B - A",
        "a": _side_content(comparison.a),
        "b": _side_content(comparison.b),
        "settings": comparison.settings,
        "notes": comparison.notes,
        "paired_by": comparison.pairs.keys,
        "pairs": comparison.pairs.both,
        "alone": comparison.alone,
        "failed_on_one_side": comparison.failed,
        "means_over_seeds": comparison.pairs.by != "seed",
        "tolerance": None if comparison.tolerance is None else str(comparison.tolerance),
        "columns": comparison.differences,
        "columns_on_one_side": comparison.only_in,
        "verdicts": [
            {
                "claim": claim,
                "changed": claim in comparison.changed,
                "a": _measurement_content(a),
                "b": _measurement_content(b),
            }
            for claim, (a, b) in comparison.verdicts.items()
        ],
    }
    finite = json.loads(json.dumps(content), parse_constant=lambda _: None)
    return json.dumps(finite, indent=2) + "\n"


def _side_content(side: Side) -> dict[str, Any]:
    return {
        "path": str(side.path),
        "where": side.where,
        "published": side.is_published,
        "study": side.study.name,
        "version": side.version,
        "cells": len(side.cells),
        "failed": side.failed,
    }


def _measurement_content(measurement: Measurement) -> dict[str, Any]:
    from overfit_cli.report.judge import interval_or_null

    interval = interval_or_null(measurement.interval)
    return {"verdict": measurement.verdict, "value": measurement.value, "interval": interval}


def _where_of(side: str) -> Any:
    return typer.Option(
        f"--where-{side.lower()}",
        metavar="NAME=RANGE",
        help=f"As --where, only for {side}.",
        autocompletion=conditions,
    )


def compare(
    a: Annotated[
        Path,
        typer.Argument(metavar="A", help="Run directory.", autocompletion=run_directories),
    ],
    b: Annotated[
        Path,
        typer.Argument(
            metavar="B",
            help="Another run directory, or a CSV or parquet file of published numbers with a "
            "column for each parameter that varies and for each measured column; or the name of a "
            "file that the study has, such as `published.csv`.",
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
    tolerance: Annotated[
        str | None,
        typer.Option(
            metavar="P%|T",
            help="Say by its interval whether each column is equivalent within 5% of the mean of "
            "B, or within 0.01 in its unit, differs, or is open. Exit with code 1 if one differs.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="PNG, PDF or SVG file for a figure of the difference in the first column; a "
            "caption is written beside it, as FILE.txt.",
        ),
    ] = None,
    json_file: Annotated[
        Path | None,
        typer.Option(
            "--json", metavar="FILE", help="JSON file for all numbers; - prints only the JSON."
        ),
    ] = None,
) -> int:
    """Compare a run with another run, or with published numbers.

    Cells are paired by their parameters and seed; every difference is B − A.
    """
    from overfit_cli.core.figure import MOST_AXES
    from overfit_cli.core.files import write_user_file
    from overfit_cli.report.differences import compare_sides

    conditions = (where or [], where_a or [], where_b or [])
    comparison = compare_sides(a, b, values or [], *conditions, tolerance=tolerance)
    to_stdout = json_file == Path("-")
    output = console(quiet=to_stdout)
    if out is not None:
        from overfit_cli.figures.picture import save_with_caption
        from overfit_cli.report.difference_figure import draw_difference

        save_with_caption(draw_difference(comparison, typed_command(), out), out)
    if json_file is not None:
        content = as_json(comparison).encode()
        if to_stdout:
            print_content(content)
        else:
            write_user_file(json_file, content, "json_file")
    _print_comparison(output, comparison)
    if out is not None:
        output.print(f"Drawn: {out}, and its caption in {out.with_suffix('.txt').name}")
    if json_file is not None:
        output.print(f"Written: {json_file}")
    if tolerance is not None:
        return int(comparison.differs)
    if out is None and 0 < len(comparison.names) <= MOST_AXES:
        for line in proposed_command([*sys.argv[1:], "--out", "difference.png"]):
            output.print(line)
    return 0
