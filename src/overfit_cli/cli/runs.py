"""The command `overfit runs`: run directories, what they hold and lack, and their commands."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from overfit_cli.cli import completion
from overfit_cli.cli.deciding import continuing_command
from overfit_cli.core.console import console, print_folded
from overfit_cli.core.text import ago, brief, plural

if TYPE_CHECKING:
    from overfit_cli.sweeps.inventory import RunSummary


def runs(
    folder: Annotated[
        Path | None,
        typer.Argument(
            metavar="DIR",
            help="Folder of run directories.  [default: results]",
            autocompletion=completion.folders,
        ),
    ] = None,
    json_file: Annotated[
        Path | None,
        typer.Option(
            "--json", metavar="FILE", help="JSON file for all of it; - is standard output, alone."
        ),
    ] = None,
) -> int:
    """List run directories: study, cells, axes, what is missing, age, and the command.

    The command is the one that was typed; where cells are missing, the one that trains them.
    """
    from overfit_cli.cli.export import print_content
    from overfit_cli.core.files import RESULTS, write_user_file
    from overfit_cli.sweeps.inventory import summaries

    root = folder or RESULTS
    listed = summaries(root)
    if json_file is not None:
        content = f"{json.dumps([as_json(run) for run in listed], indent=2)}\n".encode()
        if json_file == Path("-"):
            print_content(content)
            return 0
        write_user_file(json_file, content, "json_file")
    output = console()
    for run in listed:
        print_folded(output, f"{run.path}  {state_in_words(run)}")
        if words := "; ".join(filter(None, _axes_and_command(run))):
            print_folded(output, words, "  ", "    ")
    if not listed:
        output.print(f"{root} holds no run directory; `overfit sweep` makes them.")
    if json_file is not None:
        output.print(f"Written: {json_file}")
    return 0


def state_in_words(run: RunSummary) -> str:
    """Return the study, the cells and the age: `benign-vit, 12 of 20 cells, 8 missing, 3 h ago`."""
    total = f"{run.done} of " if run.missing or run.failed else ""
    every = run.planned if run.missing and run.planned else run.done + run.failed
    parts = [run.study, f"{total}{plural(every, 'cell')}"]
    if run.failed:
        parts.append(f"{run.failed} failed")
    if run.missing:
        parts.append(f"{run.missing} missing")
    elif run.missing == 0 and not run.failed:
        parts.append("complete")
    elif run.refined:
        parts.append("refined")
    elif run.missing is None:
        parts.append("planned cells unknown")
    if run.outdated:
        parts.append(f"{run.outdated} of another version")
    if run.left_out:
        parts.append(f"{plural(run.left_out, 'file')} left out")
    return ", ".join([*parts, ago((datetime.now(UTC) - run.written).total_seconds())])


def axes_in_words(run: RunSummary) -> str:
    """Return the sizes of the grid: `n 19 × snr 24 × seeds 10`, with commas if it is no product."""
    sizes = {name: len(values) for name, values in run.axes.items()}
    sizes |= {"seeds": len(run.seeds)} if run.seeds else {}
    is_product = run.planned is None or math.prod(sizes.values()) == run.planned
    return (" × " if is_product else ", ").join(f"{name} {size}" for name, size in sizes.items())


def _axes_and_command(run: RunSummary) -> Iterator[str]:
    """The axes; and the command that continues the run, or that made it."""
    yield axes_in_words(run)
    following = continuing_command(run.path, run.manifest) if run.missing else []
    typed = [each.command for each in run.runs if each.command]
    if following:
        yield f"next: {shlex.join(['overfit', *following])}"
    elif typed:
        yield shlex.join(typed[-1])
    elif run.runs:
        yield "made from Python"


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
