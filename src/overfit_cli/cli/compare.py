"""The command `overfit compare`: what changes from one run to another, or to published numbers."""

from __future__ import annotations

import sys
from pathlib import Path

from rich.box import SIMPLE_HEAD

from overfit_cli.cli.completion import run_directories
from overfit_cli.cli.export import write_json
from overfit_cli.cli.options import FIGURE_FILE, JSON_FILE, WHERE, argument, option
from overfit_cli.core.figure import MOST_AXES
from overfit_cli.core.files import json_text
from overfit_cli.core.text import console, print_folded, print_next, text_table, typed_command


def compare(
    a: Path = argument("A", "Run directory.", run_directories),
    b: Path = argument(
        "B",
        "Another run directory, or a CSV or parquet file of published numbers with a "
        "column for each parameter that varies and for each measured column; or the name of a "
        "file that the study has, such as `published.csv`.",
        run_directories,
    ),
    values: list[str] | None = option(
        "COLUMN",
        "Measured column to compare, or an expression; may be repeated.  "
        "[default: all that both have]",
        "--value",
    ),
    where: list[str] | None = WHERE,
    where_a: list[str] | None = option("NAME=RANGE", "As --where, only for A."),
    where_b: list[str] | None = option("NAME=RANGE", "As --where, only for B."),
    tolerance: str | None = option(
        "P%|T",
        "Say by its interval whether each column is equivalent within 5% of the mean of B, or "
        "within 0.01 in its unit, differs, or is open. Exit with code 1 if one differs.",
    ),
    out: Path | None = FIGURE_FILE,
    json_file: Path | None = JSON_FILE,
) -> int:
    """Compare a run with another run, or with published numbers.

    Cells are paired by their parameters and seed; every difference is B − A.
    """
    from overfit_cli.report.compare import compare_sides

    conditions = (where or [], where_a or [], where_b or [])
    comparison = compare_sides(a, b, values or [], *conditions, tolerance=tolerance)
    output = console(quiet=json_file == Path("-"))
    if out is not None:
        from overfit_cli.figures.picture import save
        from overfit_cli.report.pictures import draw_difference

        save(draw_difference(comparison, typed_command(), out), out)
    if json_file is not None:
        write_json(json_file, json_text(comparison.content))
    for line in comparison.above():
        print_folded(output, line)
    rows = comparison.rows()
    means = [heading for heading in rows[0] if heading.startswith("mean")]
    output.print(text_table(rows, box=SIMPLE_HEAD, right=means))
    for line in comparison.below():
        print_folded(output, line)
    if out is not None:
        output.print(f"Drawn: {out}, and its caption in {out.with_suffix('.txt').name}")
    if json_file is not None:
        output.print(f"Written: {json_file}")
    if tolerance is not None:
        return int(comparison.differs)
    if out is None and 0 < len({*comparison.pairs.keys} - {"seed"}) <= MOST_AXES:
        print_next(output, [*sys.argv[1:], "--out", "difference.png"])
    return 0
