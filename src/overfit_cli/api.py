"""The commands as functions, for scripts and notebooks: sweep, load, draw, judge."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import joblib
import numpy as np

from overfit_cli.cli.common import RESULTS, console
from overfit_cli.cli.naming import sweep_name
from overfit_cli.cli.plot import draw_figure
from overfit_cli.cli.refining import refine as run_rounds
from overfit_cli.cli.running import Runner
from overfit_cli.cli.subject import Subject, find_subject
from overfit_cli.data_folder import set_data_folder
from overfit_cli.device import Device, resolve_device
from overfit_cli.errors import UserError
from overfit_cli.figure import FigureOptions
from overfit_cli.figures.style import image, save
from overfit_cli.functions.study import FunctionStudy, study_of_function
from overfit_cli.parameters import Value, describe, unknown_parameter
from overfit_cli.report.judge import Judged, judge_all
from overfit_cli.study import AnyStudy, Study
from overfit_cli.sweeps.execute import Backend
from overfit_cli.sweeps.grid import Grid, check_seeds, make_grid
from overfit_cli.sweeps.ranges import parse_range, parse_seeds, rounded
from overfit_cli.sweeps.refine import Refinement, boundary_target
from overfit_cli.sweeps.store import RunDirectory

if TYPE_CHECKING:
    import matplotlib.figure
    import pandas as pd

Values = Value | str | Iterable[Any]
"""One value, several, or a range as the command line has it: `"0.1:16:100:log"`."""


def sweep(
    study: Callable[..., Any] | AnyStudy | str,
    *,
    seeds: int | Iterable[int] | None = None,
    out: str | Path | None = None,
    parameters: Mapping[str, Values] | None = None,
    jobs: int = -1,
    backend: Backend = "loky",
    device: Device = "auto",
    data: str | Path | None = None,
    trajectories: bool = False,
    fresh: bool = False,
    retry_failed: bool = False,
    fail_fast: bool = False,
    refine: int | None = None,
    threshold: float | None = None,
    tolerance: float | None = None,
    quiet: bool = False,
    **axes: Values,
) -> pd.DataFrame:
    """Train a grid of cells, as `overfit sweep` does; what is there already is kept.

    Args:
        study: a function, a study, or what the command line takes: `benign-vit`, `fig1`, `FILE.py`.
        seeds: how many, or which; by default 3, or the preset's.
        out: the run directory; by default in `results/`, named after what is swept.
        parameters: values of parameters whose names are also those of arguments here.
        jobs: cells trained at a time; -1 is one per core.
        backend: the joblib backend, `loky` or `threading`.
        device: `auto`, `cpu` or `cuda`.
        data: where a study's data lies.
        trajectories: whether to log every step of every cell.
        fresh: run cells again that are there.
        retry_failed: run cells again that failed.
        fail_fast: stop when a cell fails; cells that are running end.
        refine: begin with the grid, and go on so many rounds where the boundary is uncertain.
        threshold, tolerance: with `refine`, where a cell changes sides, and how well to know it.
        quiet: whether to print nothing.
        **axes: the values of each parameter: one, several, or a range as a text.

    Returns:
        One row per cell of the sweep, failed ones too.

    Raises:
        UserError: for a value that its parameter doesn't take, or a directory that can't be used.
        KeyboardInterrupt: when interrupted; what is finished is kept.
    """
    if data is not None:
        set_data_folder(Path(data))
    subject = _subject(study)
    grid = _grid(subject, {**(parameters or {}), **axes}, seeds)
    name = sweep_name(subject, grid) + ("" if refine is None else "-refined")
    where = resolve_device(device)
    output = console()
    output.quiet = quiet
    runner = Runner(
        output=output,
        directory=RunDirectory(RESULTS / name if out is None else Path(out), "out"),
        jobs=1 if where == "cuda" and jobs < 0 else max(1, int(joblib.effective_n_jobs(jobs))),
        backend=backend,
        device=where,
        trajectories=trajectories,
        fresh=fresh,
        retry_failed=retry_failed,
        fail_fast=fail_fast,
    )
    if refine is None:
        plan, _ = runner.sweep(grid)
        wanted = {cell.key for cell in plan.cells}
    else:
        refinement = Refinement(grid, boundary_target(grid, threshold), tolerance)
        run_rounds(runner, refinement, refine)
        wanted = {cell.key for cell in refinement.asked_cells()}
    cells = runner.directory.load_cells()
    return cells[cells["key"].isin(wanted)].reset_index(drop=True)


def load(directory: str | Path, *, trajectories: bool = False) -> pd.DataFrame:
    """Return the cells of a run directory, one row each, failed ones too; or their logged steps.

    Args:
        directory: what a sweep or a training wrote.
        trajectories: whether to return one row per cell and logged step instead, with the
            parameters and the seed of its cell.

    Raises:
        UserError: if `directory` holds no cells.
    """
    from overfit_cli.sweeps.schema import CELLS

    run = RunDirectory(Path(directory))
    cells = run.load_cells()
    if not trajectories:
        return cells
    ends = list(cells.columns).index("status")
    own = ["key", "seed", *cells.columns[list(CELLS.columns).index("status") : ends]]
    return run.load_trajectories().merge(cells[own], on="key", suffixes=("", "_parameter"))


def draw(
    figure: str,
    directory: str | Path,
    *,
    x: str | None = None,
    y: str | None = None,
    value: str | None = None,
    threshold: float | None = None,
    law: str | None = None,
    by: str | None = None,
    out: str | Path | None = None,
) -> matplotlib.figure.Figure:
    """Draw a figure of a run directory, as `overfit plot` does.

    Args:
        figure: its name, such as `heatmap`.
        directory: what a sweep or a training wrote.
        x, y: the parameters across and up.
        value: the column to draw.
        threshold: where a cell changes sides.
        law: an equation to draw as a curve, such as `n * snr**2 = 1000`.
        by: a parameter with a panel for each value.
        out: a .png, .pdf or .svg to write; None for none.

    Raises:
        UserError: if there is no such figure, or the directory doesn't hold what it is drawn from.
    """
    asked = FigureOptions(x=x, y=y, value=value, threshold=threshold, law=law, by=by)
    drawn = draw_figure(figure, RunDirectory(Path(directory)), asked)
    if out is not None:
        save(drawn, Path(out))
    # What a notebook looks for: without pyplot it would show the figure's name only.
    drawn._repr_png_ = lambda: image(drawn, "png")  # type: ignore[attr-defined]
    return drawn


def judge(*directories: str | Path) -> list[Judged]:
    """Judge the claims of all studies, as `overfit report` does.

    Args:
        *directories: the run directories to judge by, each for itself; without any, those in
            `results/`: the newest on which a claim can be measured decides it.

    Raises:
        UserError: if a named directory holds no cells.
    """
    return judge_all([Path(directory) for directory in directories], RESULTS)


def _subject(study: Callable[..., Any] | AnyStudy | str) -> Subject:
    """What is swept."""
    if isinstance(study, str):
        return find_subject(study)
    if isinstance(study, Study):
        return Subject(study, study.name)
    if not callable(study):
        raise UserError(f"{study!r} is neither a function nor a study nor the name of one.")
    found: FunctionStudy = study_of_function(study)
    return Subject(found, found.label, seeds="3" if found.record.seeded else "1")


def _grid(subject: Subject, given: Mapping[str, Values], seeds: int | Iterable[int] | None) -> Grid:
    """The grid of what is given; texts are read as on the command line."""
    study = subject.study
    known = describe(study.parameters)
    base = make_grid(study, subject.texts, (0,), subject.places).values
    values: dict[str, tuple[Value, ...]] = dict(base)
    for name, taken in given.items():
        if name not in known:
            raise unknown_parameter(name, known, name)
        info = known[name]
        if isinstance(taken, str) and info.kind not in ("choice", "text"):
            values[name] = parse_range(info, taken, name)
        elif isinstance(taken, str) or not isinstance(taken, Iterable):
            values[name] = (_plain(taken, info.kind),)
        else:
            values[name] = tuple(dict.fromkeys(_plain(one, info.kind) for one in taken))
        if not values[name]:
            raise UserError(f"{name}: no value given; it takes {info.accepts}.")
    if seeds is None or isinstance(seeds, int):
        chosen = parse_seeds(subject.seeds if seeds is None else str(seeds))
    else:
        chosen = tuple(int(seed) for seed in seeds)
    check_seeds(study, chosen, "seeds")
    ordered = {name: values[name] for name in known if name in values}
    return Grid(study, ordered, chosen, {**subject.places, **{name: name for name in given}})


def _plain(value: Any, kind: str) -> Value:
    """A value of any library as Python's, named as the command line would."""
    plain = value.item() if isinstance(value, np.generic) else value
    if kind == "float" and isinstance(plain, int | float) and not isinstance(plain, bool):
        return rounded(float(plain))
    found: Value = plain
    return found
