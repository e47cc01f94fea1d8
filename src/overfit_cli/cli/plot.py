"""`overfit plot`: draw a figure from a run directory."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Annotated

import typer

from overfit_cli.cli.common import (
    RESULTS,
    DataFolder,
    console,
    read_number,
    read_path,
    use_data,
)
from overfit_cli.errors import UserError, nearest

if TYPE_CHECKING:
    from overfit_cli.figure import Figure, FigureData, FigureOptions
    from overfit_cli.sweep.store import RunDirectory


def plot(
    figure: Annotated[
        str, typer.Argument(metavar="FIGURE", help="Which one; `overfit list figures` names them.")
    ],
    source: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="DIR", help="Run directory.  [default: the newest that fits]"
        ),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="A .png, .pdf or .svg.  [default: DIR/figures/FIGURE.png]"
        ),
    ] = None,
    x: Annotated[str | None, typer.Option(metavar="NAME", help="Parameter across.")] = None,
    y: Annotated[str | None, typer.Option(metavar="NAME", help="Parameter up.")] = None,
    value: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Measured column to draw.")
    ] = None,
    threshold: Annotated[
        str | None, typer.Option(metavar="T", help="Where a cell changes sides.")
    ] = None,
    law: Annotated[
        str | None,
        typer.Option(metavar="EQUATION", help="A curve to draw, such as 'n * snr**2 = 1000'."),
    ] = None,
    by: Annotated[
        str | None, typer.Option(metavar="NAME", help="Parameter with a panel for each value.")
    ] = None,
    data_folder: DataFolder = None,
) -> int:
    """Draw a figure from what a sweep or a training wrote."""
    use_data(data_folder)
    from overfit_cli.figure import FigureOptions
    from overfit_cli.figures.choice import settled
    from overfit_cli.figures.style import save
    from overfit_cli.sweep.store import RunDirectory

    cut = None if threshold is None else read_number("--threshold", threshold, "a finite number")
    asked = FigureOptions(x=x, y=y, value=value, threshold=cut, law=law, by=by)
    named = read_path("--from", source)
    path = read_path("--out", out)
    directory = _newest_for(figure, asked) if named is None else RunDirectory(named)
    chosen, data = _figure_and_data(figure, directory)
    _refuse_unheeded(chosen, asked)
    picture = chosen.draw(data, settled(chosen, asked, data))
    path = path or directory.path / "figures" / f"{figure}.png"
    save(picture, path)
    output = console()
    if named is None:
        output.print(f"From {directory.path}, the newest run directory that fits.")
    output.print(f"Drawn: {path}")
    return 0


def _figure_and_data(name: str, directory: RunDirectory) -> tuple[Figure, FigureData]:
    from overfit_cli.figure import FigureData
    from overfit_cli.sweep.current import current_cells
    from overfit_cli.sweep.manifest import read_manifest
    from overfit_cli.sweep.provenance import planned_cells

    study, cells = current_cells(directory)
    figures = study.figures()
    if name not in figures:
        raise UserError(f"{study.name} has no figure {name!r}; {nearest(name, figures)}")
    chosen = figures[name]
    trajectories = directory.load_trajectories()
    if chosen.reads == "trajectories" and trajectories.empty:
        raise UserError(
            f"--from {directory.path}: it holds no trajectories, which {name} is drawn from; "
            "`overfit train` writes them, and `overfit sweep --trajectories` does."
        )
    manifest = read_manifest(directory.path)
    return chosen, FigureData(
        study,
        cells,
        planned_cells(directory.path, study),
        trajectories,
        refined=manifest is not None and any("refine" in run.settings for run in manifest.runs),
        collections={} if manifest is None else manifest.data,
    )


def _refuse_unheeded(figure: Figure, asked: FigureOptions) -> None:
    """Refuse an option that the figure doesn't heed."""
    for field in fields(asked):
        given = getattr(asked, field.name)
        if given is not None and field.name not in figure.accepts:
            accepted = ", ".join(f"--{option}" for option in sorted(figure.accepts)) or "none"
            raise UserError(
                f"--{field.name} {given}: {figure.name} doesn't take it; it takes {accepted}."
            )


def _newest_for(figure: str, asked: FigureOptions) -> RunDirectory:
    """The run directory written last that has what the figure is drawn from."""
    from overfit_cli.study import figures_of, installed_studies
    from overfit_cli.sweep.current import run_directories

    figures = {study.name: figures_of(study) for study in installed_studies()}
    known = {name for of_study in figures.values() for name in of_study}
    if figure not in known:
        raise UserError(f"{figure!r} is no figure; {nearest(figure, known)}")
    for directory in run_directories(RESULTS):
        chosen = figures.get(directory.study_name() or "", {}).get(figure)
        if chosen is not None and _fits(directory, chosen, asked):
            return directory
    raise UserError(
        f"No run directory in {RESULTS}/ fits {figure}; `overfit sweep` or `overfit train` "
        "writes one, or name one with --from DIR."
    )


def _fits(directory: RunDirectory, figure: Figure, asked: FigureOptions) -> bool:
    """Whether it has the trajectories, the axes and whatever else the figure is drawn from."""
    from overfit_cli.figures.axis import parameter_values
    from overfit_cli.figures.choice import settled

    if figure.reads == "trajectories" and not directory.logged_keys():
        return False
    _, data = _figure_and_data(figure.name, directory)
    options = settled(figure, asked, data)
    values = parameter_values(data)
    axes = [name for name in (options.x, options.y) if name is not None]
    varied = {name for name, taken in values.items() if len(taken) > 1}
    if axes and varied - {*axes, options.by}:
        return False  # their values would be mixed
    return varied.issuperset(axes) and figure.fits(data)
