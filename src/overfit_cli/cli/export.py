"""The command `export`: cells, means over seeds or logged steps, in files of other tools."""

from __future__ import annotations

import io
import shlex
import sys
import warnings
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, get_args

import typer

from overfit_cli.cli import completion
from overfit_cli.cli.options import Where
from overfit_cli.core.console import console, typed_command
from overfit_cli.core.errors import UserError
from overfit_cli.core.text import VERSION, plural, shorten, suggestion, visible
from overfit_cli.core.values import alternatives

if TYPE_CHECKING:
    import pandas as pd

    from overfit_cli.core.study import AnyStudy
    from overfit_cli.sweeps.store import RunDirectory


Format = Literal["csv", "parquet", "latex"]
ENDINGS: Mapping[str, Format] = {".csv": "csv", ".parquet": "parquet", ".tex": "latex"}


def file_format(to: Format | None, out: Path | None) -> Format:
    """Return the format that is asked for, in words or by the file's ending."""
    suffix = "" if out is None else out.suffix.lower()
    ending = ENDINGS.get(suffix)
    if to is None and out is not None and ending is None:
        raise UserError(
            f"--out {out}: add --to {alternatives(get_args(Format))}, or end the name in "
            f"{alternatives(ENDINGS)}."
        )
    form: Format = to or ending or "csv"
    if ending not in (None, form):
        raise UserError(
            f"--to {form} --out {out}: a name that ends in {suffix} is for {ending}; "
            "change one of the two."
        )
    if out is None and form == "parquet":
        raise UserError("--to parquet: it needs a file; add --out FILE.parquet.")
    return form


def in_csv(rows: pd.DataFrame) -> bytes:
    """Return rows as CSV, below their names; every number has all its digits."""
    from overfit_cli.core.spreadsheet import csv_text

    return csv_text(rows).encode()


def in_parquet(study: AnyStudy, rows: pd.DataFrame) -> bytes:
    """Return rows as a parquet file, whose metadata say of which study they are."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from overfit_cli.sweeps.part_file import STUDY_MARK

    table = pa.Table.from_pandas(rows, preserve_index=False)
    marks = {STUDY_MARK: study.name, b"overfit.version": str(study.version)}
    file = io.BytesIO()
    pq.write_table(table.replace_schema_metadata({**table.schema.metadata, **marks}), file)
    return file.getvalue()


def print_content(content: bytes) -> None:
    """Put a file's content on standard output; on a terminal, where nothing in it is obeyed."""
    text = content.decode()
    if sys.stdout.isatty():
        text = "\n".join(visible(line) for line in text.split("\n"))
    elif hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(encoding="utf-8")
    typer.echo(text, nl=False)


def write_content(content: bytes, out: Path) -> None:
    """Write a file whole, or not at all, and say so."""
    from overfit_cli.core.files import write_user_file

    write_user_file(out, content, "out")
    console().print(f"Written: {out}")


def export(
    directory: Annotated[
        Path,
        typer.Argument(
            metavar="DIR", help="Run directory.", autocompletion=completion.run_directories
        ),
    ],
    to: Annotated[
        Format | None,
        typer.Option(
            metavar="csv|parquet|latex",
            help="Format.  [default: by the name after --out, else csv]",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File to write.  [default: standard output]",
        ),
    ] = None,
    means: Annotated[
        bool, typer.Option("--means", help="Means over seeds with intervals, as LaTeX has them.")
    ] = False,
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,...",
            help="Measured columns, and constant parameters; every row has the parameters that "
            "vary.  [default: all; in LaTeX the study's main column]",
            autocompletion=completion.columns,
        ),
    ] = None,
    where: Where = None,
    trajectories: Annotated[
        bool, typer.Option("--trajectories", help="Logged steps instead of cells.")
    ] = False,
) -> int:
    """Write the numbers of a run as CSV, parquet or LaTeX."""
    from overfit_cli.sweeps.load import (
        chosen_cells,
        in_order,
        load_study_and_cells,
        read_selections,
    )
    from overfit_cli.sweeps.store import RunDirectory

    form = file_format(to, out)
    if trajectories and (means or form == "latex"):
        flag = "--means" if means else "--to latex"
        raise UserError(f"{flag}: it applies to cells; leave out --trajectories.")
    run = RunDirectory(directory, "directory")
    study, every = load_study_and_cells(run)
    cells = in_order(study, chosen_cells(every, read_selections(where or [], study)))
    run.warn_of_sources(cells)
    if means or form == "latex":
        rows, measured = _means(study, run, cells, columns, form)
    else:
        rows, measured = _rows(study, run, cells, columns, trajectories=trajectories), []
    if form == "latex":
        content = _latex(study, run, cells, rows, measured).encode()
    else:
        content = in_parquet(study, rows) if form == "parquet" else in_csv(rows)
    if out is None:
        print_content(content)
    else:
        write_content(content, out)
    return 0


def _means(
    study: AnyStudy, run: RunDirectory, cells: pd.DataFrame, columns: str | None, form: Format
) -> tuple[pd.DataFrame, list[str]]:
    from overfit_cli.sweeps.load import means_over_seeds, measured_columns
    from overfit_cli.sweeps.manifest import read_manifest

    numbers = measured_columns(cells)
    settings = list(study.parameters.model_fields)
    chosen = _read_columns(columns, study, [*settings, *numbers, "seeds", "failed"])
    main = [name for name in numbers if name == study.headline and form == "latex"]
    measured = [name for name in chosen if name in numbers] or main or numbers
    parameters = [name for name in chosen if name in settings]
    manifest = read_manifest(run.path)
    if manifest is not None and manifest.refined:
        warnings.warn(
            f"{run.path}: a sweep with --refine chose its cells, so that rows have different "
            "numbers of seeds (column seeds); a mean over few seeds may mislead.",
            UserWarning,
            stacklevel=2,
        )
    return means_over_seeds(study, cells, parameters, measured), measured


def _rows(
    study: AnyStudy,
    run: RunDirectory,
    cells: pd.DataFrame,
    columns: str | None,
    *,
    trajectories: bool,
) -> pd.DataFrame:
    from overfit_cli.sweeps.load import varying_parameters

    rows = _logged_steps(run, cells) if trajectories else cells
    names = [str(name) for name in rows.columns]
    chosen = _read_columns(columns, study, names)
    if not chosen:
        return rows[names]
    # What tells rows apart comes with every choice of columns.
    told_by = [*varying_parameters(study, cells), "seed", *(["step"] if trajectories else [])]
    return rows[[*(name for name in told_by if name not in chosen), *chosen]]


def _logged_steps(run: RunDirectory, cells: pd.DataFrame) -> pd.DataFrame:
    import numpy as np

    from overfit_cli.sweeps.load import NO_STEPS, load_logged_steps

    steps = load_logged_steps(run, cells)
    if steps.empty:
        raise run.error(NO_STEPS)
    places = {key: index for index, key in enumerate(cells["key"])}
    order = np.lexsort([steps["step"], steps["key"].map(places)])
    return steps.iloc[order].reset_index(drop=True)


def _read_columns(text: str | None, study: AnyStudy, known: Collection[str]) -> list[str]:
    from overfit_cli.core.parameters import parameter_named

    names = list[str]()
    for part in () if text is None else text.split(","):
        written = part.strip()
        name = written if written in known else parameter_named(study.parameters, written)
        option = f"--columns {shorten(written)}"
        if not name:
            raise UserError(f"--columns {shorten(text or '')}: write names separated by commas.")
        if name not in known:
            raise UserError(
                f"{option}: there is no column {name!r} here; {suggestion(name, known)}"
            )
        if name in names:
            raise UserError(f"{option}: {name} is named twice; name it once.")
        names.append(name)
    return names


def _latex(
    study: AnyStudy,
    run: RunDirectory,
    cells: pd.DataFrame,
    rows: pd.DataFrame,
    measured: Sequence[str],
) -> str:
    from overfit_cli.report.latex import means_table
    from overfit_cli.sweeps.manifest import read_manifest

    manifest = read_manifest(run.path)
    made = [run.command for run in manifest.runs if run.command] if manifest else []
    counts = f"{plural(len(cells), 'cell')}, {plural(cells['seed'].nunique(), 'seed')}"
    notes = [
        f"{run.path}: {study.name}, version {study.version}, {counts}",
        *dict.fromkeys(shlex.join(command) for command in made),
        typed_command() + f"  (overfit {VERSION})",
        r"a \pm b: the mean over seeds, and half of its 95 % t interval",
    ]
    return means_table(study, rows, measured, notes)
