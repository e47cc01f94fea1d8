"""The command `overfit plot`: a figure from a run directory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Annotated

import typer

from overfit_cli.cli.common import RESULTS, console
from overfit_cli.cli.options import DataFolder, Where, read_number, read_path, use_data
from overfit_cli.errors import UserError, nearest

if TYPE_CHECKING:
    import matplotlib.figure

    from overfit_cli.figure import Figure, FigureData, FigureOptions
    from overfit_cli.sweeps.store import RunDirectory


def plot(
    figure: Annotated[
        str,
        typer.Argument(
            metavar="FIGURE", help="Name of a figure; `overfit list figures` shows all."
        ),
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
            metavar="FILE", help="PNG, PDF or SVG file.  [default: DIR/figures/FIGURE.png]"
        ),
    ] = None,
    x: Annotated[
        str | None, typer.Option(metavar="NAME", help="Parameter on the horizontal axis.")
    ] = None,
    y: Annotated[
        str | None, typer.Option(metavar="NAME", help="Parameter on the vertical axis.")
    ] = None,
    value: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Measured column to draw.")
    ] = None,
    threshold: Annotated[
        str | None, typer.Option(metavar="T", help="Value that separates the two sides.")
    ] = None,
    law: Annotated[
        str | None,
        typer.Option(
            metavar="EQUATION", help="Equation of a curve to draw, such as 'n * snr**2 = 1000'."
        ),
    ] = None,
    by: Annotated[
        str | None, typer.Option(metavar="NAME", help="Parameter that gets one panel per value.")
    ] = None,
    where: Where = None,
    data_folder: DataFolder = None,
) -> int:
    """Draw a figure of a run."""
    use_data(data_folder)
    from overfit_cli.figure import FigureOptions
    from overfit_cli.figures.style import save
    from overfit_cli.sweeps.store import RunDirectory

    cut = None if threshold is None else read_number("--threshold", threshold, "a finite number")
    asked = FigureOptions(x=x, y=y, value=value, threshold=cut, law=law, by=by)
    named = read_path("--from", source)
    path = read_path("--out", out)
    chosen = where or []
    directory = _newest_for(figure, asked, chosen) if named is None else RunDirectory(named)
    picture = draw_figure(figure, directory, asked, chosen)
    path = path or directory.path / "figures" / f"{figure}.png"
    save(picture, path)
    output = console()
    if named is None:
        output.print(f"From {directory.path}, the newest run directory that fits.")
    output.print(f"Drawn: {path}")
    return 0


def draw_figure(
    name: str, directory: RunDirectory, asked: FigureOptions, where: Sequence[str] = ()
) -> matplotlib.figure.Figure:
    """Draw a figure of a run directory, or of those of its cells that `where` chooses.

    Raises:
        UserError: if its study has no such figure, the figure doesn't take an option, or the
            directory doesn't hold what it is drawn from.
    """
    from overfit_cli.figures.options import resolved_options

    figure, data = _figure_and_data(name, directory, where)
    _refuse_unheeded(figure, asked)
    return figure.draw(data, resolved_options(figure, asked, data))


def _figure_and_data(
    name: str, directory: RunDirectory, where: Sequence[str]
) -> tuple[Figure, FigureData]:
    from overfit_cli.registry import figures_of
    from overfit_cli.sweeps.loading import load_figure_data
    from overfit_cli.sweeps.selection import chosen_data

    data = chosen_data(load_figure_data(directory), where)
    figures = figures_of(data.study)
    if name not in figures:
        raise UserError(f"{data.study.name} has no figure {name!r}; {nearest(name, figures)}")
    figure = figures[name]
    if figure.reads == "trajectories" and data.trajectories.empty:
        raise UserError(
            f"--from {directory.path}: it holds no trajectories, which {name} is drawn from; "
            "`overfit train` writes them, and `overfit sweep --trajectories` does."
        )
    return figure, data


def _refuse_unheeded(figure: Figure, asked: FigureOptions) -> None:
    """Refuse an option that the figure doesn't take."""
    for field in fields(asked):
        given = getattr(asked, field.name)
        if given is not None and field.name not in figure.accepts:
            accepted = ", ".join(f"--{option}" for option in sorted(figure.accepts)) or "none"
            raise UserError(
                f"--{field.name} {given}: {figure.name} doesn't take it; it takes {accepted}."
            )


def _newest_for(figure: str, asked: FigureOptions, where: Sequence[str]) -> RunDirectory:
    """The run directory written last that has what the figure is drawn from."""
    from overfit_cli.registry import figures_of, installed_studies
    from overfit_cli.standard_figures import any_grid
    from overfit_cli.sweeps.loading import function_of, usable_directories

    figures = {study.name: figures_of(study) for study in installed_studies()}
    known = {name for of_study in figures.values() for name in of_study}
    if figure not in known:
        raise UserError(f"{figure!r} is not a figure; {nearest(figure, known)}")
    for directory in usable_directories(RESULTS):
        function = function_of(directory)
        own = any_grid() if function else figures.get(directory.study_name() or "", {})
        if figure in own and _fits(directory, own[figure], asked, where):
            return directory
    raise UserError(
        f"No run directory in {RESULTS}/ fits {figure}; `overfit sweep` or `overfit train` "
        "writes one, or name one with --from DIR."
    )


def _fits(
    directory: RunDirectory, figure: Figure, asked: FigureOptions, where: Sequence[str]
) -> bool:
    """Whether it has the trajectories, the axes and whatever else the figure is drawn from."""
    from overfit_cli.figures.axis import parameter_values
    from overfit_cli.figures.options import resolved_options

    if figure.reads == "trajectories" and not directory.logged_keys():
        return False
    try:
        _, data = _figure_and_data(figure.name, directory, where)
    except UserError:
        if where:
            return False  # it lacks the parameter, or has no such cell
        raise
    options = resolved_options(figure, asked, data)
    values = parameter_values(data)
    axes = [name for name in (options.x, options.y) if name is not None]
    varied = {name for name, taken in values.items() if len(taken) > 1}
    if len(axes) < figure.axes:
        return False
    if figure.axes == 2 and varied - {*axes, options.by}:
        return False  # their values would be mixed
    return varied.issuperset(axes) and figure.fits(data)
