"""The command `overfit compact`: a run directory's part files joined into few."""

from __future__ import annotations

from typing import Annotated

import typer

from overfit_cli.cli import completion
from overfit_cli.cli.common import console
from overfit_cli.cli.options import read_path
from overfit_cli.errors import UserError
from overfit_cli.words import plural, size


def compact(
    directory: Annotated[
        str,
        typer.Argument(
            metavar="DIR",
            help="Run directory; a sweep may still write to it.",
            autocompletion=completion.run_directories,
        ),
    ],
) -> int:
    """Join the many part files of a run directory into a few."""
    from overfit_cli.files import reason_of
    from overfit_cli.sweeps.compact import compact_directory
    from overfit_cli.sweeps.store import RunDirectory

    path = read_path("DIR", directory)
    assert path is not None
    run_directory = RunDirectory(path, "DIR")
    if not run_directory.cells.names():
        raise UserError(
            f"DIR {path}: it holds no cells; name a directory that `overfit sweep` wrote."
        )
    output = console()
    try:
        for joined in compact_directory(run_directory):
            before = f"{plural(joined.parts_before, 'part')} of {size(joined.bytes_before)}"
            after = f"{plural(joined.parts_after, 'part')} of {size(joined.bytes_after)}"
            said = f"{before} joined into {after}" if joined.rows else f"{before}, nothing to join"
            output.print(f"{joined.folder}: {said}.")
    except OSError as error:
        raise UserError(
            f"DIR {path}: it can't be written to ({reason_of(error)}); every row is still there.",
            exit_code=1,
        ) from error
    return 0
