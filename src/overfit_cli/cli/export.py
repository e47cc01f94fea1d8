"""The command `overfit export`: cells, or means over seeds, for other programs and for papers."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from overfit_cli import __version__
from overfit_cli.cli import completion
from overfit_cli.cli.common import typed_command
from overfit_cli.cli.formats import (
    Format,
    in_csv,
    in_parquet,
    print_content,
    read_format,
    write_content,
)
from overfit_cli.cli.options import Where, read_path
from overfit_cli.errors import UserError, nearest, shortened
from overfit_cli.words import plural

if TYPE_CHECKING:
    import pandas as pd

    from overfit_cli.study import AnyStudy
    from overfit_cli.sweeps.store import RunDirectory


def export(
    directory: Annotated[
        str,
        typer.Argument(
            metavar="DIR", help="Run directory.", autocompletion=completion.run_directories
        ),
    ],
    to: Annotated[
        str | None,
        typer.Option(
            metavar="csv|latex|parquet",
            help="Format.  [default: by the name after --out, else csv]",
            autocompletion=completion.one_of("csv", "latex", "parquet"),
        ),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="File to write.  [default: standard output]"),
    ] = None,
    means: Annotated[
        bool | None,
        typer.Option(
            "--means/--cells",
            help="Means over seeds with intervals, or single cells.  [default: means in LaTeX, "
            "else cells]",
        ),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,...",
            help="Parameters and measured columns.  [default: all; in LaTeX the parameters that "
            "vary and the study's main column]",
            autocompletion=completion.lists_of_columns,
        ),
    ] = None,
    where: Where = None,
    trajectories: Annotated[
        bool, typer.Option("--trajectories", help="Logged steps instead of cells.")
    ] = False,
) -> int:
    """Write the numbers of a run as CSV, a LaTeX table, or parquet."""
    from overfit_cli.sweeps.loading import load_study_and_cells
    from overfit_cli.sweeps.means import in_order
    from overfit_cli.sweeps.selection import chosen_cells, read_selections
    from overfit_cli.sweeps.store import RunDirectory

    path, target = read_path("DIR", directory), read_path("--out", out)
    assert path is not None
    form = read_format(to, target)
    averaged = form == "latex" if means is None else means
    if trajectories and (averaged or form == "latex"):
        flag = "--means" if means else "--to latex"
        raise UserError(f"{flag}: it is about cells; leave out --trajectories.")
    run = RunDirectory(path, "DIR")
    study, every = load_study_and_cells(run)
    cells = in_order(study, chosen_cells(every, read_selections(where or [], study)))
    if averaged:
        rows, measured = _means(study, run, cells, columns, form)
    else:
        rows, measured = _rows(study, run, cells, columns, form, trajectories=trajectories), []
    if form == "latex":
        content = _latex(study, run, cells, rows, measured).encode()
    else:
        content = in_parquet(study, rows) if form == "parquet" else in_csv(rows)
    if target is None:
        print_content(content)
    else:
        write_content(content, target)
    return 0


def _means(
    study: AnyStudy, run: RunDirectory, cells: pd.DataFrame, columns: str | None, form: Format
) -> tuple[pd.DataFrame, list[str]]:
    """Means over seeds, and the columns that they are of."""
    from overfit_cli.sweeps.manifest import read_manifest
    from overfit_cli.sweeps.means import means_over_seeds, measured_columns

    numbers = measured_columns(cells)
    settings = list(study.parameters.model_fields)
    chosen = _read_columns(columns, study, [*settings, *numbers, "seeds", "failed"])
    main = [name for name in numbers if name == study.headline and form == "latex"]
    measured = [name for name in chosen if name in numbers] or main or numbers
    parameters = [name for name in chosen if name in settings]
    manifest = read_manifest(run.path)
    if manifest is not None and manifest.refined:
        warnings.warn(
            f"{run.path}: a sweep with --refine chose its cells, unevenly; a mean over few seeds "
            "may mislead, and the column seeds says how many there are.",
            UserWarning,
            stacklevel=2,
        )
    return means_over_seeds(study, cells, parameters, measured), measured


def _rows(
    study: AnyStudy,
    run: RunDirectory,
    cells: pd.DataFrame,
    columns: str | None,
    form: Format,
    *,
    trajectories: bool,
) -> pd.DataFrame:
    """A row for each cell, or for each logged step."""
    from overfit_cli.sweeps.means import varying_parameters

    rows = _logged_steps(run, cells) if trajectories else cells
    names = [str(name) for name in rows.columns]
    chosen = _read_columns(columns, study, names)
    if form == "latex" and not chosen:
        failed = ["status"] if (cells["status"] == "failed").any() else []
        main = [study.headline] if study.headline in names else []
        chosen = [*varying_parameters(study, cells), "seed", *main, *failed]
    return rows[chosen or names]


def _logged_steps(run: RunDirectory, cells: pd.DataFrame) -> pd.DataFrame:
    """The logged steps of cells, in their order."""
    import numpy as np

    from overfit_cli.sweeps.loading import load_logged_steps

    steps = load_logged_steps(run, cells)
    if steps.empty:
        raise UserError(
            f"DIR {run.path}: it holds no logged steps of these cells; `overfit train` writes "
            "them, and `overfit sweep --trajectories` does."
        )
    places = {key: place for place, key in enumerate(cells["key"])}
    order = np.lexsort([steps["step"], steps["key"].map(places)])
    return steps.iloc[order].reset_index(drop=True)


def _read_columns(text: str | None, study: AnyStudy, known: Collection[str]) -> list[str]:
    """The names of columns, of which parameters may be called by their symbols; none where none is.

    Raises:
        UserError: if one is empty, unknown, or named twice.
    """
    from overfit_cli.parameters import parameter_named

    found = list[str]()
    for part in () if text is None else text.split(","):
        written = part.strip()
        name = written if written in known else parameter_named(study.parameters, written)
        said = f"--columns {shortened(written)}"
        if not name:
            raise UserError(f"--columns {shortened(text or '')}: write names with commas between.")
        if name not in known:
            raise UserError(f"{said}: there is no column {name!r} here; {nearest(name, known)}")
        if name in found:
            raise UserError(f"{said}: {name} is named twice; name it once.")
        found.append(name)
    return found


def _latex(
    study: AnyStudy,
    run: RunDirectory,
    cells: pd.DataFrame,
    rows: pd.DataFrame,
    measured: Sequence[str],
) -> str:
    """The table, below comments that say what it is of and how it was made."""
    from overfit_cli.report.latex import cells_table, means_table
    from overfit_cli.sweeps.manifest import read_manifest

    manifest = read_manifest(run.path)
    made = [run.command for run in manifest.runs if run.command] if manifest else []
    counts = f"{plural(len(cells), 'cell')}, {plural(cells['seed'].nunique(), 'seed')}"
    notes = [
        f"{run.path}: {study.name}, version {study.version}, {counts}",
        *dict.fromkeys(shlex.join(command) for command in made),
        typed_command() + f"  (overfit {__version__})",
    ]
    if not measured:
        return cells_table(study, rows, notes)
    notes.append(r"a \pm b: the mean over seeds, and half of its 95 % t interval")
    return means_table(study, rows, measured, notes)
