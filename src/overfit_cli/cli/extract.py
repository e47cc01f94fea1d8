"""The command `extract`: the numbers in a figure that `overfit plot --embed` drew."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from overfit_cli.cli.export import print_content, write_content
from overfit_cli.cli.verify import MOST_BYTES
from overfit_cli.core.errors import BadValue, UserError
from overfit_cli.core.files import error_text, read_bounded


def extract(
    figure: Annotated[
        Path,
        typer.Argument(metavar="FIGURE", help="PNG, PDF or SVG file of `overfit plot --embed`."),
    ],
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="CSV file to write.  [default: standard output]"),
    ] = None,
) -> int:
    """Take the numbers out of a figure, as CSV: a row for each cell, or for each logged step."""
    from overfit_cli.core.spreadsheet import without_formulas
    from overfit_cli.figures.record import read_numbers

    if out is not None and out.suffix.lower() != ".csv":
        raise BadValue("out", str(out), "the numbers are written as CSV; end the name in .csv.")
    try:
        numbers = without_formulas(read_numbers(read_bounded(figure, MOST_BYTES)))
    except OSError as error:
        accepts = f"it can't be read ({error_text(error)}); name a figure that overfit drew."
        raise BadValue("figure", str(figure), accepts) from None
    except UserError as error:
        raise BadValue("figure", str(figure), str(error)) from None
    if out is None:
        print_content(numbers)
    else:
        write_content(numbers, out)
    return 0
