"""Choice of the run directory that a figure is drawn from, where the user names none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from overfit_cli.cli.common import RESULTS
from overfit_cli.drawing import figure_and_data
from overfit_cli.errors import UserError, nearest
from overfit_cli.figure import Figure, FigureOptions

if TYPE_CHECKING:
    from overfit_cli.sweeps.store import RunDirectory


def newest_for(figure: str, asked: FigureOptions, where: Sequence[str]) -> RunDirectory:
    """Return the run directory in `results/` written last that has what a figure is drawn from.

    Args:
        figure: its name.
        asked: the user's options.
        where: the conditions that choose cells.

    Raises:
        UserError: if no figure has the name, or no directory fits.
    """
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
    from overfit_cli.figures.options import resolved_options, spelled_out

    if figure.reads == "trajectories" and not directory.logged_keys():
        return False
    try:
        _, data = figure_and_data(figure.name, directory, where)
    except UserError:
        if where:
            return False  # it lacks the parameter, or has no such cell
        raise
    options = resolved_options(figure, spelled_out(asked, data.study), data)
    values = parameter_values(data)
    axes = [name for name in (options.x, options.y) if name is not None]
    varied = {name for name, taken in values.items() if len(taken) > 1}
    if len(axes) < figure.axes:
        return False
    if figure.axes == 2 and varied - {*axes, options.by}:
        return False  # their values would be mixed
    return varied.issuperset(axes) and figure.fits(data)
