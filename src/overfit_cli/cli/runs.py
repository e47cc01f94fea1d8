"""The command `overfit runs`: run directories, what they hold and lack, and their commands."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from overfit_cli.cli import completion
from overfit_cli.cli.deciding import continuing_command
from overfit_cli.core.console import console, print_folded
from overfit_cli.core.text import ago, brief, natural_key, plural

if TYPE_CHECKING:
    from rich.console import Console

    from overfit_cli.sweeps.inventory import RunSummary


FEW = 20
"""The number of run directories up to which the axes and the command of each are shown."""

WIDE = 110
"""The columns from which a terminal has room for the axes of each run."""

WIDEST_PATH = 46
"""The columns that paths have beside their cells; a longer path has a line of its own."""


def runs(
    folder: Annotated[
        Path | None,
        typer.Argument(
            metavar="DIR",
            help="Folder of run directories.  [default: results]",
            autocompletion=completion.folders,
        ),
    ] = None,
    details: Annotated[
        bool,
        typer.Option("--details", help="Show the axes and the command of every run."),
    ] = False,
    json_file: Annotated[
        Path | None,
        typer.Option(
            "--json", metavar="FILE", help="JSON file for the whole list; - prints only the JSON."
        ),
    ] = None,
) -> int:
    """List run directories: study, cells, axes, what is missing, age, and the command.

    The command is the one that was typed or, if cells are missing, one that trains them. If there
    are more than 20 directories, each has only a line under its study; --details shows the rest.
    """
    from overfit_cli.cli.export import print_content
    from overfit_cli.core.files import results_folder, write_user_file
    from overfit_cli.sweeps.inventory import summaries

    root = folder or results_folder()
    listed = [] if folder is None and not root.exists() else summaries(root)
    if json_file is not None:
        content = f"{json.dumps([as_json(run) for run in listed], indent=2)}\n".encode()
        if json_file == Path("-"):
            print_content(content)
            return 0
        write_user_file(json_file, content, "json_file")
    output = console()
    if details or 0 < len(listed) <= FEW:
        _print_details(output, listed)
    elif listed:
        _print_by_study(output, listed)
    if not listed:
        output.print(f"{root} holds no run directory; `overfit sweep` makes them.")
    if json_file is not None:
        output.print(f"Written: {json_file}")
    return 0


def _print_details(output: Console, listed: Sequence[RunSummary]) -> None:
    for run in listed:
        print_folded(output, f"{run.path}  {state_in_words(run)}")
        for line in filter(None, (axes_in_words(run), _command(run))):
            print_folded(output, line, "  ", "    ")


def _print_by_study(output: Console, listed: Sequence[RunSummary]) -> None:
    header = ("run directory", "cells", "state", "age", "")
    with_axes = output.is_terminal and output.width >= WIDE
    rows = {run.path: (str(run.path), *_columns(run)) for run in listed}
    widths = [max(len(row[column]) for row in (header, *rows.values())) for column in range(4)]
    widths[0] = min(widths[0], WIDEST_PATH)
    _print_row(output, header, widths)
    for study in sorted({run.study for run in listed}, key=natural_key):
        output.print()
        output.print(study)
        for run in listed:
            if run.study == study:
                axes = axes_in_words(run) if with_axes else ""
                _print_row(output, (*rows[run.path], axes), widths)
    output.print()
    print_folded(
        output,
        f"{plural(len(listed), 'run directory')}; --details shows the axes and the command of each"
        ", and `overfit show DIR` describes one.",
    )


def _print_row(output: Console, row: Sequence[str], widths: Sequence[int]) -> None:
    """Print columns, what does not fit below the third of them."""
    path, cells, state, age, axes = row
    first = f"  {path:{widths[0]}}  {cells:>{widths[1]}}  "
    further = " " * (4 + widths[0] + 2 + widths[1])
    if len(path) > widths[0]:
        output.print(f"  {path}")
        first = f"  {'':{widths[0]}}  {cells:>{widths[1]}}  "
    if axes:
        first += f"{state:{widths[2]}}  {age:{widths[3]}}  "
        print_folded(output, axes, first, " " * len(first))
    else:
        print_folded(output, f"{state:{widths[2]}}  {age}", first, further)


def _columns(run: RunSummary) -> tuple[str, str, str]:
    """The cells that are done, of the planned ones if some lack; the state; and the age."""
    lacks = run.missing or run.failed
    cells = f"{run.done}/{_count_expected(run)}" if lacks else f"{run.done}"
    age = ago((datetime.now(UTC) - run.written).total_seconds())
    return cells, ", ".join(_state(run)), age


def _count_expected(run: RunSummary) -> int:
    return run.planned if run.missing and run.planned else run.done + run.failed


def _state(run: RunSummary) -> Iterator[str]:
    """Yield what is missing in a run; `complete` if nothing is."""
    if run.failed:
        yield f"{run.failed} failed"
    if run.missing:
        yield f"{run.missing} missing"
    elif run.missing == 0 and not run.failed:
        yield "complete"
    elif run.refined:
        yield "refined"
    elif run.missing is None:
        yield "planned cells unknown"
    if run.outdated:
        yield f"{run.outdated} of another version"
    if run.left_out:
        yield f"{plural(run.left_out, 'file')} left out"


def state_in_words(run: RunSummary) -> str:
    """Return the study, the cells and the age: `benign-vit, 12 of 20 cells, 8 missing, 3 h ago`."""
    total = f"{run.done} of " if run.missing or run.failed else ""
    cells = f"{total}{plural(_count_expected(run), 'cell')}"
    return ", ".join([run.study, cells, *_state(run), _columns(run)[-1]])


def axes_in_words(run: RunSummary) -> str:
    """Return the sizes of the grid: `n 19 × snr 24 × seeds 10`, with commas if it is no product."""
    sizes = {name: len(values) for name, values in run.axes.items()}
    sizes |= {"seeds": len(run.seeds)} if run.seeds else {}
    is_product = run.planned is None or math.prod(sizes.values()) == run.planned
    return (" × " if is_product else ", ").join(f"{name} {size}" for name, size in sizes.items())


def _command(run: RunSummary) -> str:
    following = continuing_command(run.path, run.manifest) if run.missing else []
    typed = [each.command for each in run.runs if each.command]
    if following:
        return f"next: {shlex.join(['overfit', *following])}"
    if typed:
        return shlex.join(typed[-1])
    return "made from Python" if run.runs else ""


def as_json(run: RunSummary) -> dict[str, Any]:
    """Return what a run directory holds, for programs."""
    return {
        "path": str(run.path),
        "study": run.study,
        "done": run.done,
        "failed": run.failed,
        "missing": run.missing,
        "planned": run.planned,
        "outdated": run.outdated,
        "files_left_out": run.left_out,
        "axes": {name: list(values) for name, values in run.axes.items()},
        "seeds": list(run.seeds),
        "written": run.written.isoformat(),
        "commands": [shlex.join(each.command) for each in run.runs if each.command],
    }


def values_in_words(values: Iterable[object]) -> str:
    """Return the values of a parameter: `1, 2, 5`, or `19 values from 2 to 20`."""
    several = list(values)
    if len(several) > 6:
        return f"{len(several)} values from {brief(several[0])} to {brief(several[-1])}"
    return ", ".join(map(brief, several))
