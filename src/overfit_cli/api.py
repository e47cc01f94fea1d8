"""Commands as functions for scripts and notebooks, such as sweep, load, draw and judge.

The command line calls them too, so that what trains, draws or judges is imported where it does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from overfit_cli.core import options as option
from overfit_cli.core.errors import BadValue, UserError
from overfit_cli.core.figure import FigureOptions
from overfit_cli.core.files import DATA_VARIABLE, keeping_variables, results_folder, usable_path
from overfit_cli.core.parameters import Value, describe, parameter_named
from overfit_cli.core.processes import keeping_random
from overfit_cli.core.registry import add_study, find_study
from overfit_cli.core.study import AnyStudy, Study
from overfit_cli.core.text import console
from overfit_cli.functions import function_study
from overfit_cli.functions.program import is_command
from overfit_cli.sweeps.load import conditions, load_run, logged_steps, means_over_seeds, summaries
from overfit_cli.sweeps.manifest import warn_of_sources
from overfit_cli.sweeps.presets import Subject, find_subject
from overfit_cli.sweeps.store import RunDirectory

if TYPE_CHECKING:
    import pandas as pd

    from overfit_cli.core.cell import CellResult
    from overfit_cli.core.options import DeviceChoice
    from overfit_cli.figures.picture import Picture
    from overfit_cli.report.compare import Comparison
    from overfit_cli.report.judge import JudgedClaims
    from overfit_cli.sweeps.plan import Plan


Values = Value | str | Iterable[Any]
"""One value, several, or a range as the command line has it: `"0.1:16:100:log"`."""

Sweepable = Callable[..., Any] | AnyStudy | str | Path
"""A function, a study, or what the command line takes: `benign-vit`, `fig1`, `FILE.py`, or
`python train.py --lr {lr}`."""

Conditions = str | Sequence[str] | Mapping[str, Values]
"""Conditions as texts, such as `"n=5:20"` or `"test_loss<0.1"`, or values by name: `{"n": 5}`."""


@overload
def sweep(study: Sweepable, *, dry_run: Literal[True], **options: Any) -> Plan: ...


@overload
def sweep(study: Sweepable, *, dry_run: Literal[False] = False, **options: Any) -> pd.DataFrame: ...


@option.with_arguments(option.SweepOptions)
@keeping_random()
@keeping_variables(DATA_VARIABLE)
def sweep(
    study: Sweepable,
    *,
    parameters: Mapping[str, Values] | None = None,
    quiet: bool = False,
    **axes: Any,
) -> pd.DataFrame | Plan:
    """Train a grid of cells, as `overfit sweep` does; what is there already is kept.

    Args:
        study: a function, a study, or what the command line takes: `benign-vit`, `fig1`, `FILE.py`.
        seeds: how many, or which; by default 3, or the preset's.
        profile: how much of a preset to run, `quick` or `paper`.
        read: the file with the numbers of a command line, in a cell's folder: `.json` or `.csv`;
            by default they are the last dict that it prints.
        out: the run directory; by default in `results/`, named after what is swept.
        parameters: values of parameters whose names are also those of arguments here.
        together: parameters whose lists go together, such as `n,d`: their first values are a point,
            their second ones, and so on.
        only: conditions that points of the grid must meet, such as `n >= 2*d`.
        jobs: cells trained at a time; -1 is one per core.
        backend: `loky` (processes) or `threading`; `dask` or `ray` for a cluster.
        address: where the cluster of `dask` or `ray` answers.
        shard: the part of the sweep to run, such as `2/8`; None for all of it.
        data: where a study's data lies.
        trajectories: whether to log every step of every cell.
        dry_run: train nothing, print what would be trained with an estimate, and return the plan.
        fresh: run cells again that are there.
        retry_failed: run cells again that failed.
        adopt: `NAME=VALUE` for a parameter that the function got since: cells from before had it.
        fail_fast: stop when a cell fails; cells that are running end.
        time_limit: the seconds that a cell may take; one that takes longer fails. In a thread (the
            backends `threading` and `dask`) it ends at its next logged step, or when it returns; a
            process that is silent for a minute longer counts as killed.
        check: how many finished cells to train a second time at the end, in a new process, to
            compare their numbers; by default up to 3 of your own code, if the sweep takes over
            20 s.
        refine: begin with the grid, and add cells at the uncertain boundary, in so many rounds.
        threshold: with `refine`, the value at the boundary.
        claim: sentences to write into the manifest before the first cell; with `dry_run`, it is
            printed how many seeds would decide them.
        **axes: the values of each parameter: one, several, a range as a text, or an expression in
            other parameters as a text, such as `2*d`.

    Returns:
        One row per cell of the sweep that is there, failed ones too: in the order of the grid, and
        of its seeds at each point. With `dry_run`, the plan: how many cells are there already, and
        how many would run.
    """
    from overfit_cli.sweeps import run

    names = axes.keys() & option.declared(option.SweepOptions).keys()
    how = option.read_options(option.SweepOptions, {name: axes.pop(name) for name in names})
    given = _given(parameters, axes)
    subject = _subject(study, how, dict(given))
    values = _settings(subject.study, given)
    output = console(quiet=option.checked("quiet", quiet, bool))
    with run.open_sweep(subject, values, how, output) as session:
        if how.dry_run:
            from overfit_cli.report.judge import lines_on_claims

            plan = session.outline()
            session.say(*lines_on_claims(session.directory, session.grid, session.sentences))
            return plan
        session.run()
        return session.cells()


@keeping_random()
@keeping_variables(DATA_VARIABLE)
def train(
    study: Sweepable,
    *,
    seed: int = 0,
    out: str | Path | None = None,
    parameters: Mapping[str, Values] | None = None,
    device: DeviceChoice = "auto",
    read: str | None = None,
    data: str | Path | None = None,
    quiet: bool = False,
    **values: Values,
) -> CellResult:
    """Train one cell and print its steps, as `overfit train` does; it is kept with its trajectory.

    Args:
        study: a function, a study, or what the command line takes: `benign-vit`, `fig1`, `FILE.py`.
        out: the run directory; by default in `results/`, named after what is trained.
        parameters: values of parameters whose names are also those of arguments here.
        read: the file with the numbers of a command line.
        data: the folder of a study's data.

    Returns:
        What was measured, and the logged steps in `trajectory`. A run that diverged has a `reason`;
        an exception of a function passes as it is, and its row is kept.
    """
    from overfit_cli.sweeps.run import train_cell

    options = {"out": out, "data": data, "device": device, "read": read}
    how, given = option.read_options(option.SweepOptions, options), _given(parameters, values)
    subject = _subject(study, how, dict(given))
    watch = train_cell(subject, _settings(subject.study, given), seed, how, console(quiet=quiet))
    if isinstance(watch.error, Exception):
        raise watch.error
    return watch.result


def load(
    directory: str | Path,
    *,
    trajectories: bool = False,
    means: bool = False,
    where: Conditions = (),
) -> pd.DataFrame:
    """Return the cells of a run directory, one row each, failed ones too; or their logged steps.

    Args:
        trajectories: whether to return one row per cell and logged step instead, with the
            parameters, the seed and the status of its cell.
        means: whether to return one row per combination of parameters instead, with means over
            seeds, as `overfit export --means` does: see `sweeps.load.means_over_seeds`.
        where: conditions on parameters, the seed or measured columns that choose cells: `n=5:20`,
            `test_loss<0.1`, several such texts, or values by name: `{"n": [5, 10]}`.
    """
    run = RunDirectory(option.checked("directory", directory, Path))
    if option.checked("means", means, bool) and option.checked("trajectories", trajectories, bool):
        raise UserError("means: they are over cells; leave out trajectories.")
    data = load_run(run) if where or means else None
    if data is not None:
        data = data.without_plan().where(*conditions("where", where))
    cells = run.load_cells() if data is None else data.frame
    warn_of_sources(run.path, run.sources(cells), cells)
    if data is not None and means:
        return means_over_seeds(data)
    return logged_steps(run, cells) if trajectories else cells


def runs(folder: str | Path | None = None) -> pd.DataFrame:
    """Return the run directories in a folder, one row each by name, as `overfit runs` lists them.

    Args:
        folder: their folder, by default `results/`; other folders in it are left out.

    Returns:
        `path`, `study`, how many cells are `done`, `failed` and `missing` (missing where what was
        planned isn't known), the values of each of its `axes`, `seeds`, and when it was `written`.
    """
    import pandas as pd

    columns = ("path", "study", "done", "failed", "missing", "axes", "seeds", "written")
    listed = summaries(results_folder() if folder is None else usable_path("folder", folder))
    rows = [{name: getattr(each, name) for name in columns} for each in listed]
    return pd.DataFrame(rows, columns=[*columns]).astype({"missing": "Int64"})


@option.with_arguments(FigureOptions)
def draw(
    figure: str,
    *directories: str | Path,
    minus: str | Path | None = None,
    where: Conditions = (),
    size: str | None = None,
    style: str | Path | None = None,
    out: str | Path | None = None,
    **options: Any,
) -> Picture:
    """Draw a figure of run directories, as `overfit plot` does.

    Args:
        figure: its name, such as `heatmap`.
        *directories: what a sweep or a training wrote; several are overlaid or side by side.
        minus: a run directory to subtract, cell by cell.
        x, y: the parameters across and up, or expressions such as `n / d`.
        value: the column to draw, or an expression such as `test_error - train_error`.
        by: a parameter with a panel for each value; in `boundary`, a colour for each.
        mean: the statistic over seeds: `median` (the default), `arithmetic` or `geometric`.
        band: the band around it: `quartiles` (the default of a median), `interval` (95 %, the
            default of a mean), `sd`, or `seeds` for a line for each seed, which is the default if
            there are fewer than three.
        threshold: where a cell changes sides.
        law: equations to draw as curves, such as `N * SNR**2 = 1000`; `"none"` for none, also where
            the figure has its own.
        theory: a column with a prediction, or an expression, drawn dashed beside the value.
        where: conditions on parameters, the seed or measured columns that choose cells: `n=5:20`,
            `test_loss<0.1`, several such texts, or values by name: `{"n": [5, 10]}`.
        size: `column`, `page`, or width and height, such as `3.4x2.6` in inches or `85x65mm`.
        log: which of `x`, `y` and `value` are logarithmic, separated by commas, or `none`.
        style: a matplotlib style sheet; its `image.cmap` colours maps, its `savefig.dpi` sets dots.
        out: a .png, .pdf or .svg to write, with the caption beside it, or a .csv of the numbers
            that the figure shows; None for none.

    Returns:
        A matplotlib figure, whose attribute `caption` says what it shows and how it was made.
    """
    from overfit_cli.figures.draw import draw_figure
    from overfit_cli.figures.style import read_look

    if not directories:
        raise UserError("draw takes the run directories to draw from, after the figure's name.")
    asked = FigureOptions.read(**options)
    runs = [RunDirectory(usable_path("directory", path)) for path in directories]
    less = None if minus is None else RunDirectory(option.checked("minus", minus, Path), "minus")
    look = read_look(option.checked("size", size, str), option.checked("style", style, Path))
    name, file = option.checked("figure", figure, str), option.checked("out", out, Path)
    return draw_figure(name, runs, asked, conditions("where", where), less, look, file)


def compare(
    a: str | Path,
    b: str | Path,
    *,
    value: str | Sequence[str] = (),
    where: Conditions = (),
    where_a: Conditions = (),
    where_b: Conditions = (),
    tolerance: str | float | None = None,
    out: str | Path | None = None,
) -> Comparison:
    """Compare a run with another run, or with published numbers, as `overfit compare` does.

    Args:
        b: another, or a file whose name ends in `.csv` or `.parquet`, with a column for each
            parameter that varies and for each measured column, and beside these, such as `loss`,
            `loss_sd` and `seeds`, `loss_se`, or `loss_low` and `loss_high`.
        value: the measured columns to compare, or expressions; by default all that both have.
        where: conditions that choose cells of both, as `load` has them.
        tolerance: the margin within which each column is equivalent, or else differs or is open:
            `"5%"` of the mean of B, or a number in the unit of the column.
        out: a .png, .pdf or .svg to write, with a caption beside it; None for none.

    Returns:
        The differences, B − A: `table()` has a row for each column, `places()` one for each column
        and setting with both means, the difference's standard error and z-score, and with a
        tolerance the verdict, and `notes` differences of code or data.
    """
    from overfit_cli.report import compare, sides

    paths, values = (usable_path("a", a), usable_path("b", b)), option.list_of_texts("value", value)
    given = {"where": where, "where_a": where_a, "where_b": where_b}
    chosen = [conditions(name, each) for name, each in given.items()]
    comparison = compare.compare_sides(*paths, values, *chosen, tolerance=tolerance)
    for side in (comparison.a, comparison.b):
        if not sides.is_published(side):
            warn_of_sources(sides.path_of(side), side.run.sources, side.trained)
    if out is not None:
        from overfit_cli.report.pictures import draw_difference

        draw_difference(comparison, usable_path("out", out))
    return comparison


def judge(
    *sources: str | Path | pd.DataFrame,
    study: AnyStudy | Callable[..., Any] | str | None = None,
    out: str | Path | None = None,
) -> JudgedClaims:
    """Judge claims, as `overfit report` and `overfit judge` do.

    Args:
        *sources: the run directories to judge, each by itself; by default those in `results/`:
            the quick run of a claim's preset decides it, else the paper run, else the first run
            by name on which it can be measured. Or one frame of cells, from
            anywhere: a row per cell, with `seed` and the study's columns; parameters that are
            absent have their defaults. With a column `step`, a row per cell and logged step: then
            claims on trajectories are judged. After one directory or frame, claims of your own, as
            sentences: `judge(cells, "test_error < 0.05 where snr > 2")`.
        study: the study, or function, of a frame without a column `study`. Of a run directory, its
            function or the function's file, to judge its claims as they are now: a file that you
            swept is loaded by itself, and another one only if you name it.
        out: a .png, .pdf or .svg to write, for sentences on a run directory: the numbers that
            are judged, and their margins; None for none.

    Returns:
        The claims that these cells test; if they test none, all claims of the study. If sentences
        are given, only those: the note of each measurement says on which cells it is judged, how
        often it would be wrong, and what it lacks. A notebook shows them as a
        table, in which each name unfolds.
    """
    from overfit_cli.report import judge, runs

    texts = [str(source) for source in sources[1:] if _is_sentence(source)]
    named: list[Any] = [*sources[:1], *(each for each in sources[1:] if not _is_sentence(each))]
    is_frame = any(hasattr(source, "columns") for source in named)
    if len(named) != 1 and (is_frame or texts):
        takes = "run directories or one frame, and sentences after one of them."
        raise UserError(f"judge takes {takes}")
    if out is not None and (is_frame or not texts):
        raise BadValue("out", str(out), "a figure takes sentences after one run directory.")
    if is_frame:
        of_cells = _study_of(named[0], study)
        loaded = [runs.run_of_cells(named[0], of_cells)] if texts else []
        every = [] if texts else judge.judge_cells(named[0], of_cells)
    else:
        opened = [RunDirectory(usable_path("directory", path), "run") for path in named]
        loaded = runs.load_runs(opened, study=_function(study))
        every = [] if texts else judge.judge_runs(loaded, on_every_run=bool(opened))
    if not texts:
        return judge.JudgedClaims(judge.relevant_claims(every))
    decided = judge.decide(loaded[0], texts)
    judged = judge.JudgedClaims(one.noted(one.sentences()) for one in decided)
    if out is not None:
        from overfit_cli.report.pictures import draw_claims

        draw_claims(judged, out=usable_path("out", out))
    return judged


def _is_sentence(source: object) -> bool:
    """Whether a text is meant as a claim: it has a sign or a blank, and names no directory."""
    is_text = isinstance(source, str) and re.search(r"[<>=]|\S +\S", source) is not None
    return is_text and not Path(str(source)).exists()


def _function(study: object) -> function_study.FunctionStudy | None:
    """The study of a function, or of a file with one, that is named beside run directories."""
    if study is None or isinstance(study, function_study.FunctionStudy):
        return study
    if callable(study):
        return function_study.study_of_function(study)
    return function_study.study_of_reference(str(study))


def _study_of(cells: pd.DataFrame, study: AnyStudy | Callable[..., Any] | str | None) -> AnyStudy:
    if isinstance(study, Study):
        return study
    if callable(study):
        return function_study.study_of_function(study)
    names = {*cells.get("study", ())} if study is None else {study}
    if len(names) != 1:
        problem = f"the cells have a column `study` of {len(names)} names"
        raise UserError(f"study: {problem}; name one, such as study='benign-vit'.")
    name = str(names.pop())
    is_own = ":" in name or is_command(name)
    return function_study.study_of_rows(name, cells) if is_own else find_study(name)


def _given(parameters: object, axes: Mapping[str, Values]) -> list[tuple[str, Values]]:
    """The values by name, from `parameters` and from arguments of their own."""
    if parameters is not None and not isinstance(parameters, Mapping):
        raise BadValue("parameters", parameters, "it takes values by name.")
    pairs = [*(parameters or {}).items(), *axes.items()]
    return [(name, [*each] if isinstance(each, Iterator) else each) for name, each in pairs]


def _subject(study: object, how: option.SweepOptions, given: Mapping[str, Values]) -> Subject:
    if isinstance(study, str | Path):
        return find_subject(str(study), how.profile, given, how.read)
    if how.profile is not None:
        raise BadValue("profile", how.profile, "only presets have profiles.")
    if how.read is not None:
        raise BadValue("read", how.read, "only a command line has a file to read.")
    if isinstance(study, type):
        raise UserError(f"{study.__name__} is a class; give an object of it: {study.__name__}().")
    if isinstance(study, Study):
        add_study(study)
        return Subject(study, study.name)
    if not callable(study):
        raise UserError(f"{study!r} is neither a function nor a study nor the name of one.")
    own = function_study.study_of_function(study)
    return Subject(own, own.record.label)


def _settings(study: AnyStudy, given: Iterable[tuple[str, Values]]) -> dict[str, Values]:
    """The values of parameters by name.

    A name may be a symbol; a text that is the value of a text names no list.
    """
    infos, settings = describe(study.parameters), dict[str, Values]()
    for written, taken in given:
        name = parameter_named(study.parameters, written)
        if name in settings:
            raise BadValue(written, taken, f"{name} is given twice; give it once.")
        is_one = isinstance(taken, str) and name in infos and infos[name].kind == "text"
        settings[name] = [taken] if is_one else taken
    return settings
