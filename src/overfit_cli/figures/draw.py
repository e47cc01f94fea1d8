"""A figure from run directories: loaded, chosen, compared, drawn, and captioned."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from overfit_cli.core.figure import Figure, FigureOptions
from overfit_cli.core.study import FigureData
from overfit_cli.core.text import UserError, nearest
from overfit_cli.figures.record import record_of

if TYPE_CHECKING:
    from overfit_cli.figures.picture import Look, Picture
    from overfit_cli.sweeps.store import RunDirectory


@dataclass(frozen=True)
class Request:
    """A request for a figure.

    Attributes:
        figure: its name.
        directories: the run directories that it is drawn from, at least one.
        options: what it shows.
        where: conditions that choose cells.
        minus: the run directory that is subtracted; None for none.
        look: how it looks; None for the usual one.
        command: what the user typed, for the caption; empty where nothing was.
        out: the file that it is drawn for; None where that isn't known.
        names: what the figure calls several run directories; empty for what their paths say.
    """

    figure: str
    directories: Sequence[RunDirectory]
    options: FigureOptions
    where: Sequence[str] = ()
    minus: RunDirectory | None = None
    look: Look | None = None
    command: str = ""
    out: Path | None = None
    names: Sequence[str] = ()

    @property
    def sources(self) -> list[RunDirectory]:
        """All run directories, what is subtracted last."""
        return [*self.directories, *([self.minus] if self.minus is not None else [])]

    def called(self) -> list[str]:
        """Return the sources' names: the last part of their paths, or all of it where two share it.

        Raises:
            UserError: if two are one.
        """
        if self.names:
            return list(self.names)
        paths = [one.path for one in self.sources]
        if len({path.resolve() for path in paths}) < len(paths):
            raise UserError(f"--from {paths[0]}: a run directory is named twice.")
        short = [path.resolve().name for path in paths]
        return short if len(set(short)) == len(short) else [str(path) for path in paths]


def draw_figure(request: Request) -> Picture:
    """Draw a figure, with its caption and its record.

    Raises:
        UserError: if its study has no such figure, the figure doesn't take an option, the
            directories don't hold what it is drawn from, or nothing would be drawn.
    """
    figure, first = figure_and_data(request.figure, request.directories[0], request.where)
    _refuse_unheeded(figure, request)
    others = request.sources[1:]
    parts = [
        first,
        *(figure_and_data(request.figure, one, request.where)[1] for one in others),
    ]
    picture = draw_parts(request, figure, parts)
    picture.record = record_of(request, figure, parts)
    return picture


def draw_parts(request: Request, figure: Figure, parts: Sequence[FigureData]) -> Picture:
    """Draw a figure of what its run directories hold, with its caption.

    Args:
        request: the request.
        figure: the figure that it names.
        parts: what each of the request's sources holds.

    Raises:
        UserError: as `draw_figure` does.
    """
    from overfit_cli.figures.inputs import spelled_out

    asked = spelled_out(request.options, parts[0].study)
    data = _compared(request, parts, asked.value or figure.options.value)
    commands = commands_behind([one.path for one in request.sources], request.command)
    return drawn(figure, data, asked, commands, request.look)


def drawn(
    figure: Figure,
    data: FigureData,
    asked: FigureOptions,
    commands: Sequence[str],
    look: Look | None = None,
) -> Picture:
    """Draw a figure of some data, with its caption.

    Args:
        figure: what to draw.
        data: what it is drawn from.
        asked: the user's options.
        commands: those that made the cells, and the one that draws them.
        look: how it looks; None for the usual one.

    Raises:
        UserError: if the data doesn't hold what it is drawn from, or nothing would be drawn.
    """
    from overfit_cli.figures.caption import caption
    from overfit_cli.figures.inputs import resolved_options
    from overfit_cli.figures.picture import Look, looking

    look = look or Look()
    if asked.cmap is not None:
        look = replace(look, settings={**look.settings, "image.cmap": asked.cmap})
    with looking(look):
        options = resolved_options(figure, asked, data)
        picture: Picture = figure.draw(data, options)
    if picture.is_empty():
        raise UserError(f"{figure.name}: nothing would be drawn; the cells hold no number for it.")
    usual = (options.x, options.y, options.value) == (
        figure.options.x,
        figure.options.y,
        figure.options.value,
    )
    picture.caption = caption(figure, picture, data, commands, usual=usual)
    return picture


def figure_and_data(
    name: str, directory: RunDirectory, where: Sequence[str]
) -> tuple[Figure, FigureData]:
    """Return a figure of a run directory's study, and what it is drawn from.

    Raises:
        UserError: if there is no such figure, nothing that it is drawn from, or no chosen cell.
    """
    from overfit_cli.core.registry import figures_of
    from overfit_cli.sweeps.load import chosen_data, load_figure_data

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


def _refuse_unheeded(figure: Figure, request: Request) -> None:
    """Refuse an option that the figure doesn't take."""
    given = {
        field.name: value
        for field in fields(request.options)
        if (value := getattr(request.options, field.name)) is not None
    }
    if len(request.directories) > 1:
        given["from"] = " ".join(str(one.path) for one in request.directories)
    if request.minus is not None:
        given["minus"] = request.minus.path
        if len(request.directories) > 1:
            raise UserError("--minus: it subtracts from one run directory; name one with --from.")
    for name, value in given.items():
        if name not in figure.accepts:
            options = sorted(f"--{one.replace('_', '-')}" for one in figure.accepts - {"from"})
            if name == "from":
                raise UserError(
                    f"--from {value}: {figure.name} draws one run directory, not "
                    f"{len(request.directories)}."
                )
            raise UserError(
                f"{_as_typed(name, value)}: {figure.name} doesn't take it; it takes "
                f"{', '.join(options) or 'none'}."
            )


def _as_typed(name: str, value: object) -> str:
    """An option of a figure as the command line has it."""
    if name == "each_seed":
        return "--each-seed" if value else "--band"
    if name == "log" and isinstance(value, frozenset):
        return f"--log {','.join(sorted(value)) or 'none'}"
    if isinstance(value, tuple):
        return f"--law {value[0]}" if value else "--no-law"
    return f"--{name} {value}"


def _compared(request: Request, parts: Sequence[FigureData], value: str | None) -> FigureData:
    """The data of all directories, side by side or one less the other."""
    from overfit_cli.figures.panels import difference, side_by_side

    names = request.called()
    if request.minus is None:
        return side_by_side(names, parts)
    data, minus = parts
    less = difference(data, minus, names[-1], value)
    if less.unpaired:
        text = f"--minus {names[-1]}: {less.unpaired}; the others are left out"
        warnings.warn(text, UserWarning, stacklevel=2)
    return less


def commands_behind(directories: Sequence[Path], drawing: str) -> list[str]:
    """Return the commands that made the cells of run directories, and the one that draws them.

    Args:
        directories: the run directories.
        drawing: what the user typed; empty where nothing was.
    """
    from overfit_cli.sweeps.manifest import read_manifest

    made: list[str] = []
    for directory in directories:
        manifest = read_manifest(directory)
        made += [shlex.join(run.command) for run in manifest.runs] if manifest else []
    typed = [command for command in dict.fromkeys(made) if command]  # Python types none
    return [*typed, *([drawing] if drawing else [])]
