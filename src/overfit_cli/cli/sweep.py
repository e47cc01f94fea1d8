"""The command `overfit sweep`: a grid of cells."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from overfit_cli.cli.list import parameter_table
from overfit_cli.cli.options import (
    SETTINGS,
    SUBJECT_AND_PARAMETERS,
    declared_options,
    flag,
    read_words,
    texts_by_name,
    with_options,
)
from overfit_cli.cli.proposals import plot_words, train_words
from overfit_cli.core.figure import MOST_PANELS, Figure
from overfit_cli.core.options import SweepOptions
from overfit_cli.core.text import command_words, console, print_next, spelled

if TYPE_CHECKING:
    from overfit_cli.sweeps.grid import Grid
    from overfit_cli.sweeps.presets import Subject
    from overfit_cli.sweeps.run import Session
    from overfit_cli.sweeps.worker import Summary


@with_options(SweepOptions)
def sweep(
    context: typer.Context,
    words: list[str] | None = SUBJECT_AND_PARAMETERS,
    settings: list[str] | None = SETTINGS,
    *,
    show_help: bool = flag("Show this message and the study's parameters.", "--help", "-h"),
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

    typed, given = read_words(words, settings)
    how = SweepOptions(**options)
    subject = find_subject(typed, how.profile)
    if show_help:
        _print_help(context, subject)
        return 0
    from overfit_cli.report.judge import lines_on_claims
    from overfit_cli.sweeps.run import open_sweep

    texts = texts_by_name(context, given, subject.study)
    subject.take_data_folder(how.data)
    with open_sweep(subject, texts, how, console(), spelled) as session:
        if how.dry_run:
            session.outline()
            session.say(*lines_on_claims(session.directory, session.grid, session.sentences))
            return 0
        total = session.run()
        session.say(_problem_with_claims(session, total))
        print_next(session.output, _following(session, total))
    return 1 if total.failed or total.earlier else 0


def _print_help(context: typer.Context, chosen: Subject) -> None:
    study, output, declared = chosen.study, console(), declared_options(context)
    about = ["", *study.description.splitlines()] if study.description else []
    heading = f"Parameters of {study.name} (--NAME RANGE)"
    for line in [*context.get_help().splitlines(), *about, "", heading]:
        output.print(line)
    output.print(parameter_table(study))
    for name in study.parameters.model_fields:
        if (own := spelled(name)) in declared:
            way = f"write --set {name}=RANGE"
            output.print(f"For the parameter {name} {way}: {own} is an option of overfit.")


def _problem_with_claims(session: Session, total: Summary) -> str:
    """What a claim names that a function's cells do not have, now that they say what they have."""
    study = session.subject.study
    has_claims = study.identity.function is not None and (session.stated or study.claims())
    if not has_claims or not total.trained:
        return ""
    from overfit_cli.report.judge import problem_with_claims

    return problem_with_claims(session.directory)


def _following(session: Session, total: Summary) -> list[str]:
    """The command that comes next: a picture, or verdicts; or a cell that failed, alone."""
    path, refined = session.directory.path, session.refinement
    if not total.trained + total.reused:  # of failed cells alone nothing can be drawn
        if total.example is None:
            return []
        values = total.example.parameters.model_dump()
        return train_words(session.subject.study, values, total.example.seed)
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
    from overfit_cli.core.registry import figures_of

    wanted = chosen.preset.figures if chosen.preset else ()
    count, logged = len(grid.free_axes), chosen.trajectories
    words = plot_words(chosen.study, path, wanted, grid.axes, count, logged=logged)
    if not words and len(grid.free_axes) > 2:
        heatmap = figures_of(chosen.study)["heatmap"]
        return command_words("plot", "heatmap", **_of_more_axes(heatmap, grid), from_=path)
    return words or (["report", str(path)] if chosen.study.claims() else [])


def _of_more_axes(heatmap: Figure, grid: Grid) -> dict[str, Any]:
    """Options for a heatmap of more than two axes: panels for one, and one value of each other.

    Those with the most values are the map's, unless the study's own figure says which. Of each
    other axis it is the value with most cells, the middle one where all have as many.
    """
    axes = grid.axes
    by_size = sorted(axes, key=lambda name: -len(axes[name]))
    drawn = [name for name in (heatmap.options.x, heatmap.options.y) if name in axes]
    mapped = drawn if len(drawn) == 2 else by_size[:2]
    others = [name for name in by_size if name not in mapped]
    panels, where = others.pop() if len(axes[others[-1]]) <= MOST_PANELS else None, list[str]()
    for name, column in zip(grid.given, zip(*grid.rows(), strict=True), strict=True):
        if name in others:
            values, counts = axes[name], Counter(column)
            most = max((values[len(values) // 2], *values), key=counts.__getitem__)
            where.append(f"{name}={most}")
    return {"by": panels, "where": where}
