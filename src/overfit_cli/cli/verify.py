"""The command `overfit verify`: figures held to the data that they were drawn from."""

from __future__ import annotations

from typing import Annotated

import typer

from overfit_cli.cli.common import console
from overfit_cli.cli.completion import run_directories
from overfit_cli.cli.options import DataFolder, read_path, use_data
from overfit_cli.errors import UserError
from overfit_cli.plain_text import visible


def verify(
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE", help="PNG, PDF or SVG file that overfit drew."),
    ],
    source: Annotated[
        list[str] | None,
        typer.Option(
            "--from",
            metavar="DIR",
            help="Run directory of the figure, or its CSV file; may be repeated.  "
            "[default: where it was, or the run in results/ with the same cells]",
            autocompletion=run_directories,
        ),
    ] = None,
    data_folder: DataFolder = None,
) -> int:
    """Say whether a figure's data is here, unchanged, and gives the same picture."""
    from overfit_cli.cli.verifying import verify_figure
    from overfit_cli.report.comparison.compare import is_csv

    use_data(data_folder)
    paths = [path for text in files if (path := read_path("FILE", text))]
    named = [path for text in source or [] if (path := read_path("--from", text))]
    for path in named:
        if not path.is_dir() and not (is_csv(path) and path.is_file()):
            raise UserError(
                f"--from {path}: there is no such directory; name the figure's run or its CSV file."
            )
    output, worst = console(), 0
    for path in paths:
        try:
            holds, sentences = verify_figure(path, named)
        except UserError as error:
            if len(paths) == 1:
                raise
            typer.echo(visible(f"overfit: {error}"), err=True)
            worst = max(worst, error.exit_code)
            continue
        worst = max(worst, 0 if holds else 1)
        output.print(f"{path}: {'verified' if holds else 'not verified'}.")
        for sentence in sentences:
            output.print(f"  {sentence}")
    return worst
