"""The commands `compact` and `merge`: part files joined into a few, run directories into one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from overfit_cli.cli import completion
from overfit_cli.core.console import console, proposed_command
from overfit_cli.core.errors import UserError
from overfit_cli.core.text import plural, size


def compact(
    directory: Annotated[
        Path,
        typer.Argument(
            metavar="DIR",
            help="Run directory; a sweep may still write to it.",
            autocompletion=completion.run_directories,
        ),
    ],
) -> int:
    """Join the many part files of a run directory into a few."""
    from overfit_cli.core.files import error_text
    from overfit_cli.sweeps.maintain import compact_directory
    from overfit_cli.sweeps.store import RunDirectory

    run_directory = RunDirectory(directory, "directory")
    if not run_directory.cells.names():
        raise run_directory.error(run_directory.why_empty())
    output = console()
    try:
        for joined in compact_directory(run_directory):
            before = f"{plural(joined.parts_before, 'part')} of {size(joined.bytes_before)}"
            after = f"{plural(joined.parts_after, 'part')} of {size(joined.bytes_after)}"
            sentence = (
                f"{before} joined into {after}" if joined.rows else f"{before}, nothing to join"
            )
            output.print(f"{joined.folder}: {sentence}.")
    except OSError as error:
        raise UserError(
            f"DIR {directory}: it can't be written to ({error_text(error)}); "
            "every row is still there.",
            exit_code=1,
        ) from error
    return 0


def merge(
    directories: Annotated[
        list[Path],
        typer.Argument(
            metavar="DIR...",
            help="Run directories of one study; they stay as they are.",
            autocompletion=completion.run_directories,
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(metavar="DIR", help="Output directory; cells already in it are merged too."),
    ],
) -> int:
    """Join run directories of one study, such as those of a sweep's shards.

    The command refuses directories of different studies, versions, code or data, damaged files, and
    two directories with different numbers for one cell.
    """
    from overfit_cli.core.files import error_text
    from overfit_cli.sweeps.load import load_study_and_cells
    from overfit_cli.sweeps.maintain import merge_directories
    from overfit_cli.sweeps.store import RunDirectory

    sources = [RunDirectory(directory, "directories") for directory in directories]
    try:
        merged = merge_directories(sources, RunDirectory(out, "out"))
    except OSError as error:
        raise UserError(
            f"--out {out}: it can't be written to ({error_text(error)}); the directories are as "
            "they were, and the same command goes on from there.",
            exit_code=1,
        ) from error
    output = console()
    for note in merged.notes:
        output.print(note)
    were = "was" if merged.repeated == 1 else "were"
    several = f"; {plural(merged.repeated, 'cell')} {were} in more than one directory"
    output.print(
        f"{plural(len(sources), 'directory')} merged into {out}: "
        f"{plural(merged.cells, 'cell')}{several if merged.repeated else ''}."
    )
    study, _ = load_study_and_cells(RunDirectory(out), any_version=True)
    if study.claims():
        for line in proposed_command(["report", str(out)]):
            output.print(line)
    return 0
