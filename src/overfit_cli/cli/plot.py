"""The command `plot`: a figure from run directories, by default from the newest that fits it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from overfit_cli.cli import completion
from overfit_cli.cli.options import Where
from overfit_cli.core.console import console, typed_command
from overfit_cli.core.errors import UserError
from overfit_cli.core.text import suggestion
from overfit_cli.core.values import Band, Mean, finite_number

if TYPE_CHECKING:
    from overfit_cli.core.figure import Figure, FigureOptions
    from overfit_cli.core.study import FigureData
    from overfit_cli.sweeps.store import RunDirectory


def newest_for(figure: str, asked: FigureOptions, where: Sequence[str]) -> RunDirectory:
    """Return the run directory in `results/` written last that has what a figure is drawn from."""
    from overfit_cli.core.files import results_folder
    from overfit_cli.core.registry import figures_of, installed_studies
    from overfit_cli.sweeps.load import usable_directories

    figures = {study.name: figures_of(study) for study in installed_studies()}
    names = {name for of_study in figures.values() for name in of_study}
    if figure not in names:
        raise UserError(f"{figure!r} is not a figure; {suggestion(figure, names)}")
    newest = ""
    for directory in usable_directories(results_folder()):
        if not (why_not := _problem_with(directory, figure, asked, where)):
            return directory
        newest = newest or f" The newest, {directory.path}, doesn't: {why_not}"
    raise UserError(
        f"No run directory in {results_folder()}/ fits {figure}; `overfit sweep` or `overfit "
        f"train` writes one, or name one with --from DIR.{newest}"
    )


def _problem_with(
    directory: RunDirectory, name: str, asked: FigureOptions, where: Sequence[str]
) -> str:
    from overfit_cli.figures.draw import figure_and_data, find_figure
    from overfit_cli.sweeps.load import study_in

    try:
        figure = find_figure(study_in(directory), name)
    except UserError as error:
        return str(error)
    if figure.reads == "trajectories" and not directory.logged_keys():
        return "it has no logged steps; sweep with --trajectories."
    try:
        _, data = figure_and_data(name, directory, where)
    except UserError as error:
        if not where:
            raise
        return str(error)  # it lacks the parameter, or has no such cell
    return _problem_with_axes(figure, data, asked)


def _problem_with_axes(figure: Figure, data: FigureData, asked: FigureOptions) -> str:
    from overfit_cli.figures.expressions import derive_axes, derive_columns
    from overfit_cli.figures.inputs import resolve_options, resolve_symbols
    from overfit_cli.figures.labels import parameter_values

    try:
        asked = resolve_symbols(asked, data.study)
        data = derive_axes(derive_columns(figure, data, asked), asked)
        options = resolve_options(figure, asked, data)
    except UserError as error:
        return str(error)
    values = parameter_values(data)
    axes = [axis for axis in (options.x, options.y) if axis is not None]
    varied = {axis for axis, taken in values.items() if len(taken) > 1}
    mixed = varied - {*axes, options.by} if figure.axes == 2 else set()
    if len(axes) < figure.axes or not varied.issuperset(axes):
        lacking = "".join(f", not {axis}" for axis in axes if axis not in varied)
        return f"it varies {' and '.join(sorted(varied)) or 'nothing'}{lacking}."
    if mixed:
        return f"it varies {', '.join(sorted(mixed))} too, whose values would be mixed."
    return "" if figure.fits(data) else "it lacks what the figure is drawn from."


def plot(
    figure: Annotated[
        str,
        typer.Argument(
            metavar="FIGURE",
            help="Name of a figure; `overfit list figures` shows all.",
            autocompletion=completion.figures,
        ),
    ],
    directory: Annotated[
        list[Path] | None,
        typer.Option(
            "--from",
            metavar="DIR",
            help="Run directory; may be repeated, to overlay runs or draw them side by side.  "
            "[default: the newest that fits]",
            autocompletion=completion.run_directories,
        ),
    ] = None,
    minus: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Run directory to subtract, cell by cell.",
            autocompletion=completion.run_directories,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="PNG, PDF or SVG file, or CSV file of the numbers that the figure shows; a "
            "caption is written beside it, as FILE.txt.  [default: DIR/figures/FIGURE.png]",
        ),
    ] = None,
    x: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Parameter on the horizontal axis, or an expression such as 'n / d'.",
            autocompletion=completion.axes,
        ),
    ] = None,
    y: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Parameter on the vertical axis, or an expression.",
            autocompletion=completion.axes,
        ),
    ] = None,
    value: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Measured column to draw, or an expression such as 'test_error - train_error'.",
            autocompletion=completion.columns,
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Parameter that has a panel for each value; in `boundary`, a colour for each.",
            autocompletion=completion.axes,
        ),
    ] = None,
    mean: Annotated[
        Mean | None,
        typer.Option(help="Statistic over seeds.  [default: the median]"),
    ] = None,
    band: Annotated[
        Band | None,
        typer.Option(
            help="Band around it; seeds draws a line for each seed.  [default: quartiles of a "
            "median, the interval of a mean]"
        ),
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(metavar="T", help="Value that separates the two sides."),
    ] = None,
    law: Annotated[
        list[str] | None,
        typer.Option(
            metavar="EQUATION",
            help="Equation of a curve to draw, such as 'N * SNR**2 = 1000', or with a label "
            "'threshold: m = n'; may be repeated. With none, the study's own are left out.",
        ),
    ] = None,
    theory: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Column with a prediction, drawn dashed beside the value in `lines` and `curves`.",
            autocompletion=completion.columns,
        ),
    ] = None,
    where: Where = None,
    size: Annotated[
        str | None,
        typer.Option(
            metavar="column|page|WIDTHxHEIGHT",
            help="Width of a paper's column or page, or a size in inches (85x65mm: millimetres).",
        ),
    ] = None,
    log: Annotated[
        str | None,
        typer.Option(
            metavar="x,y,value|none",
            help="Which axes are logarithmic; the others are linear.",
        ),
    ] = None,
    style: Annotated[
        Path | None,
        typer.Option(
            envvar="OVERFIT_STYLE",
            metavar="FILE.mplstyle",
            help="Matplotlib style sheet: colours (image.cmap), fonts, dots (savefig.dpi).",
        ),
    ] = None,
) -> int:
    """Draw a figure of a run, or of several, with its caption beside it."""
    from overfit_cli.core.figure import FigureOptions
    from overfit_cli.figures.draw import Request, draw_figure
    from overfit_cli.figures.look import read_laws, read_log, read_look
    from overfit_cli.figures.picture import save_with_caption
    from overfit_cli.sweeps.store import RunDirectory

    asked = FigureOptions(
        x=x,
        y=y,
        value=value,
        threshold=None if threshold is None else finite_number("threshold", threshold),
        law=read_laws(law or None),
        by=by,
        log=read_log(log),
        mean=mean,
        band=band,
        theory=theory,
    )
    look, chosen = read_look(size, style), where or []
    directories = _directories(figure, directory or [], asked, chosen)
    path = out or _default_path(figure, directories, minus)
    picture = draw_figure(
        Request(
            figure,
            directories,
            asked,
            chosen,
            None if minus is None else RunDirectory(minus, "minus"),
            look,
            typed_command(),
            path,
        )
    )
    save_with_caption(picture, path)
    output = console()
    if not directory:
        output.print(f"From {directories[0].path}, the newest run directory that fits.")
    output.print(f"Drawn: {path}, and its caption in {path.with_suffix('.txt').name}")
    return 0


def _directories(
    figure: str, named: Sequence[Path], asked: FigureOptions, where: Sequence[str]
) -> list[RunDirectory]:
    from overfit_cli.sweeps.store import RunDirectory

    if not named:
        return [newest_for(figure, asked, where)]
    return [RunDirectory(path) for path in named]


def _default_path(figure: str, directories: Sequence[RunDirectory], minus: Path | None) -> Path:
    others = [f"-with-{directory.path.resolve().name}" for directory in directories[1:]]
    others += [f"-minus-{minus.resolve().name}"] if minus else []
    return directories[0].path / "figures" / f"{figure}{''.join(others)}.png"
