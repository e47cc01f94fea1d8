"""The command `plot`: a figure from run directories, by default from the newest that fits it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from overfit_cli.cli import completion
from overfit_cli.cli.options import WHERE, argument, error_as_option, option, with_options
from overfit_cli.core.errors import BadValue, UserError
from overfit_cli.core.figure import Figure, FigureOptions
from overfit_cli.core.files import results_folder
from overfit_cli.core.text import console, suggestion, typed_command

if TYPE_CHECKING:
    from overfit_cli.core.study import AnyStudy
    from overfit_cli.sweeps.store import RunDirectory


def newest_for(figure: str, asked: FigureOptions, where: Sequence[str]) -> RunDirectory:
    """Return the run directory in `results/` written last that has what a figure is drawn from."""
    from overfit_cli.core.registry import figures_of, installed_studies
    from overfit_cli.sweeps.load import usable_directories

    names = {name for study in installed_studies() for name in figures_of(study)}
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
    from overfit_cli.figures.axes import parameter_axis
    from overfit_cli.figures.draw import find_figure
    from overfit_cli.figures.inputs import prepare, read_options, two_axes
    from overfit_cli.sweeps.load import load_run, study_in

    try:
        study = study_in(directory)
        figure = find_figure(study, name)
        if study.identity.function is None:  # the columns of a function are those of its rows
            _check_names(study, figure, asked, where)
        if figure.reads == "trajectories" and not directory.logged_keys():
            return "it has no logged steps; sweep with --trajectories."
        data = load_run(directory).where(*where)
        data, options = prepare(figure, *read_options(figure, data, asked))
        if figure.axes == 2:
            two_axes(data, options)
        elif figure.axes or options.x:
            parameter_axis(data, "x", options.x)
    except UserError as error:
        return error_as_option(error)
    return "" if figure.fits(data) else "it lacks what the figure is drawn from."


def _check_names(
    study: AnyStudy, figure: Figure, asked: FigureOptions, where: Sequence[str]
) -> None:
    """Refuse a name that no cell of a study has, before any is read."""
    from overfit_cli.core.expressions import ANY, read_conditions, read_expression, split
    from overfit_cli.core.study import schema_of, with_logged

    axes = schema_of(study)
    columns = with_logged(study, axes) if figure.reads == "trajectories" else axes
    for condition in where:
        read_conditions(condition, axes.placed)
    for name in ("x", "y", "by", "value", "theory"):
        known = (columns if name in ("value", "theory") else axes).names
        for text in filter(None, split(getattr(asked, name) or "", ",")[::2]):
            named = {text} if text in known else read_expression(text, ANY, name).names
            for unknown in sorted(named - known.keys()):
                hint = suggestion(unknown, known)
                raise BadValue(name, text, f"{unknown!r} is no name here; {hint}")


@with_options(FigureOptions)
def plot(
    figure: str = argument(
        "FIGURE", "Name of a figure; `overfit list figures` shows all.", completion.figures
    ),
    directory: list[Path] | None = option(
        "DIR",
        "Run directory; may be repeated, to overlay runs or draw them side by side.  "
        "[default: the newest that fits]",
        "--from",
        complete=completion.run_directories,
    ),
    minus: Path | None = option(
        "DIR", "Run directory to subtract, cell by cell.", complete=completion.run_directories
    ),
    out: Path | None = option(
        "FILE",
        "PNG, PDF or SVG file, or CSV file of the numbers that the figure shows; a caption is "
        "written beside it, as FILE.txt.  [default: DIR/figures/FIGURE.png]",
    ),
    where: list[str] | None = WHERE,
    size: str | None = option(
        "column|page|WIDTHxHEIGHT",
        "Width of a paper's column or page, or a size in inches (85x65mm: millimetres).",
    ),
    style: Path | None = option(
        "FILE.mplstyle",
        "Matplotlib style sheet: colours (image.cmap), fonts, dots (savefig.dpi).",
        envvar="OVERFIT_STYLE",
    ),
    **options: Any,
) -> int:
    """Draw a figure of a run, or of several, with its caption beside it."""
    from overfit_cli.figures.draw import draw_figure
    from overfit_cli.figures.picture import save
    from overfit_cli.figures.style import read_look
    from overfit_cli.sweeps.store import RunDirectory

    asked = FigureOptions.read(**options | {"law": options["law"] or None})
    look, chosen = read_look(size, style), where or []
    named = [RunDirectory(path) for path in directory or ()]
    directories = named or [newest_for(figure, asked, chosen)]
    path = out or _default_path(figure, directories, minus)
    less = None if minus is None else RunDirectory(minus, "minus")
    command = typed_command()
    picture = draw_figure(figure, directories, asked, chosen, less, look, command, path)
    save(picture, path)
    output = console()
    if not named:
        output.print(f"From {directories[0].path}, the newest run directory that fits.")
    output.print(f"Drawn: {path}, and its caption in {path.with_suffix('.txt').name}")
    return 0


def _default_path(figure: str, directories: Sequence[RunDirectory], minus: Path | None) -> Path:
    others = [f"-with-{directory.path.resolve().name}" for directory in directories[1:]]
    others += [f"-minus-{minus.resolve().name}"] if minus else []
    return directories[0].path / "figures" / f"{figure}{''.join(others)}.png"
