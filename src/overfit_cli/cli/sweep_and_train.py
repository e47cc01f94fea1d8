"""The commands `sweep` and `train`: a grid of cells, and one cell that is seen learning."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from overfit_cli.cli import options as cli
from overfit_cli.cli.list import parameter_table
from overfit_cli.cli.proposals import plot_words, train_words
from overfit_cli.core.errors import UserError
from overfit_cli.core.options import SweepOptions
from overfit_cli.core.text import command_words, console, duration, print_next, visible

if TYPE_CHECKING:
    from overfit_cli.sweeps.grid import Grid
    from overfit_cli.sweeps.presets import Subject
    from overfit_cli.sweeps.run import Session
    from overfit_cli.sweeps.worker import Summary


@cli.with_options(SweepOptions)
def sweep(
    context: typer.Context,
    words: list[str] | None = cli.SUBJECT_AND_PARAMETERS,
    settings: list[str] | None = cli.SETTINGS,
    *,
    show_help: bool = cli.flag("Show this message and the study's parameters.", "--help", "-h"),
    **options: Any,
) -> int:
    """Train a grid of cells in parallel, and reuse finished cells.

    The argument is a study or a preset (see `overfit list`), or a function: FILE.py, FILE.py:NAME
    or package.module:NAME. Without one, the default study is swept.

    Every parameter of the study is an option: --n 2:20 --snr 0.1:16. A range is 2:20, 2:20:3,
    0.1:16 (40 points), 0.1:16:100:log (of whole numbers too), a,b,c, one value, or an expression
    in other parameters: --n '2*d'.

    With --dry-run it says how many seeds would decide the claims.
    """
    from overfit_cli.sweeps.presets import find_subject

    typed, given = cli.read_words(words, settings)
    how, output = SweepOptions(**options), console()
    subject = find_subject(typed, how.profile)
    study = subject.study
    if show_help:
        about = ["", *study.description.splitlines()] if study.description else []
        heading = f"Parameters of {study.name} (--NAME RANGE)"
        for line in [*context.get_help().splitlines(), *about, "", heading]:
            output.print(line)
        output.print(parameter_table(study))
        return 0
    from overfit_cli.report import judge
    from overfit_cli.sweeps.run import open_sweep

    texts = cli.texts_by_name(context, given, study)
    subject.take_data_folder(how.data)
    with open_sweep(subject, texts, how, output) as session:
        if how.dry_run:
            session.outline()
            session.say(*judge.lines_on_claims(session.directory, session.grid, session.sentences))
            return 0
        total = session.run()
        if study.identity.function and total.trained and (session.stated or study.claims()):
            session.say(judge.problem_with_claims(session.directory))
        print_next(output, _following(session, total))
    return 1 if total.failed or total.earlier else 0


def _following(session: Session, total: Summary) -> list[str]:
    """The command that comes next: a picture, or verdicts; or a cell that failed, alone."""
    path, refined, failed = session.directory.path, session.refinement, total.example
    if not total.trained + total.reused:  # of failed cells alone nothing can be drawn
        study = session.subject.study
        return train_words(study, failed.parameters.model_dump(), failed.seed) if failed else []
    if refined is not None:
        level = f"{refined.search.threshold:g}"
        return command_words("plot", refined.figure, from_=path, threshold=level)
    if session.stated:
        return ["judge", str(path)]
    return next_command(session.grid, path, session.subject)


def next_command(grid: Grid, path: Path, chosen: Subject) -> list[str]:
    """Return a command for what was swept: the preset's figure, one over its axes, a report.

    Empty where none makes sense.
    """
    wanted = chosen.preset.figures if chosen.preset else ()
    count, logged = len(grid.free_axes), chosen.trajectories
    words = plot_words(chosen.study, path, wanted, grid.axes, count, logged=logged)
    return words or (["report", str(path)] if chosen.study.claims() else [])


@cli.with_options(SweepOptions, "data", "device")
def train(
    context: typer.Context,
    words: list[str] | None = cli.SUBJECT_AND_PARAMETERS,
    settings: list[str] | None = cli.SETTINGS,
    seed: int = cli.option("SEED", "The cell's seed.", default=0),
    out: Path | None = cli.option("DIR", "Run directory.  [default: results/NAME-SETTINGS]"),
    **options: Any,
) -> int:
    """Train one cell, show some of its steps, and save all of them.

    The argument is a study or a preset (see `overfit list`), or a function: FILE.py, FILE.py:NAME
    or package.module:NAME; without one, it is the default study. Every parameter of the study is an
    option: --n 20 --snr 10.

    `python -m pdb -m overfit_cli train ...` opens Python's debugger where a function raises.
    """
    from overfit_cli.core.registry import figures_of
    from overfit_cli.sweeps.presets import find_subject
    from overfit_cli.sweeps.run import train_cell
    from overfit_cli.sweeps.worker import FAILURE_PREFIXES

    named, given = cli.read_words(words, settings)
    subject = find_subject(named)
    texts = cli.texts_by_name(context, given, subject.study)
    how, output = SweepOptions(out=out, **options), console()
    subject.take_data_folder(how.data)
    watch = train_cell(subject, texts, seed, how, output)
    result, error = watch.result, watch.error
    for line in result.traceback.splitlines():
        output.print(line, soft_wrap=True)
    failed = f"The cell failed: {result.reason}."
    if isinstance(error, Exception):
        # It passes as it is, so that Python's debugger opens where it was raised.
        sys.excepthook = lambda *_: typer.echo(visible(f"overfit: {failed}"), err=True)
        raise error
    if result.reason and (result.reason.startswith(FAILURE_PREFIXES) or not result.measurements):
        raise UserError(failed, exit_code=1)
    for line in subject.study.summary(result).splitlines():
        output.print(line)
    output.print(f"Took {duration(result.seconds)}.")
    figures = figures_of(subject.study).values()
    of_steps = [figure.name for figure in figures if figure.reads == "trajectories"]
    if result.trajectory and of_steps:
        print_next(output, command_words("plot", of_steps[0], from_=watch.path))
    elif subject.study.claims():
        print_next(output, ["report", str(watch.path)])
    return 1 if result.reason else 0
