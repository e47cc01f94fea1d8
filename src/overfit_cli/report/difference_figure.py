"""A difference of two runs: in words, as a figure, and its record.

A comparison in words: what is paired with what, and what differs.

The picture of a comparison: B less A over the parameters that vary, centred at zero.

The record of a comparison's figure: its two sides, and how they were compared.
"""

from __future__ import annotations

import hashlib
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from overfit_cli import __version__
from overfit_cli.core.figure import MOST_PANELS, Figure, FigureData, FigureOptions
from overfit_cli.core.files import read_bounded
from overfit_cli.core.parameters import Value
from overfit_cli.core.text import UserError, plural, visible
from overfit_cli.figures.draw import commands_behind, drawn
from overfit_cli.figures.record import as_text, beside, record_of_cells, versions
from overfit_cli.report.differences import (
    Comparison,
    Difference,
    Interpolated,
    Side,
    names_of,
    why_not_judged,
)
from overfit_cli.report.published import MOST_BYTES
from overfit_cli.stats.intervals import Estimate

if TYPE_CHECKING:
    from overfit_cli.figures.picture import Picture
    from overfit_cli.figures.record import FileRecord, Provenance, RunRecord


_WITHOUT_SEEDS = "means over seeds: no seed is on both sides."


def opening_lines(found: Comparison) -> list[str]:
    """Return sentences on the two sides, and on what is paired with what."""
    names = names_of(found.a, found.b)
    sides = zip((found.a, found.b), names, strict=True)
    lines = [f"{one.letter}: {name}, {_cells_in_words(one)}." for one, name in sides]
    lines += [
        f"{name}: {_written(first)} in A, {_written(second)} in B."
        for name, (first, second) in found.settings.items()
    ]
    return [*lines, _paired_in_words(found), *_unlike(found)]


def closing_lines(found: Comparison) -> list[str]:
    """Return sentences on intervals, columns without a difference, and verdicts."""
    lines = [*_intervals(found.differences)]
    same = [one for one in found.differences if one.is_none]
    for pairs in dict.fromkeys(one.pairs for one in same):
        named = ", ".join(one.column for one in same if one.pairs == pairs)
        every = f"all {pairs} {noun(found)}s" if pairs > 1 else f"the one {noun(found)}"
        lines.append(f"The same in {every}: {named}.")
    for one in found.differences:
        if one.lone:
            said = f"{plural(one.lone, 'pair')} with a number on one side alone; left out."
            lines.append(f"{one.column}: {said}")
        known = [point for point in one.points if point.difference.bounded]
        if known and not one.is_none:
            inside = sum(point.is_inside for point in known)
            said = f"B lies inside the interval of A's mean at {inside} of {len(known)} points."
            lines.append(f"{one.column}: {said}")
    for letter, columns in (("A", found.only_in_a), ("B", found.only_in_b)):
        if columns:
            lines.append(f"Measured in {letter} alone: {', '.join(columns)}.")
    return [*lines, *_verdict_lines(found)]


def _verdict_lines(found: Comparison) -> Iterator[str]:
    if sentence := why_not_judged(found.a, found.b):
        yield sentence
    if found.verdicts:
        judged, changed = len(found.verdicts), len(found.changed)
        on_both = f"{plural(judged, 'claim')} judged on both sides"
        yield f"Verdicts that change: {changed or 'none'} of {on_both}."


def _cells_in_words(side: Side) -> str:
    """How many cells there are, and of what: `40 cells of toy, 2 failed`."""
    failed = int((side.cells["status"] == "failed").sum())
    what = "point" if side.is_published else "cell"
    older = f", of version {side.version}" if side.is_of_another_version else ""
    more = f", {failed} failed" if failed else ""
    published = "published, " if side.is_published else ""
    return f"{published}{plural(len(side.cells), what)} of {side.study.name}{older}{more}"


def _paired_in_words(found: Comparison) -> str:
    """What has a counterpart, by what, and what has none."""
    pairs, axes = found.pairs, [*found.names]
    if pairs.by == "seed":
        said = f"{plural(pairs.both, 'pair')} of cells with the same {_listed([*axes, 'seed'])}."
    else:
        same = f" with the same {_listed(axes)}" if axes else ""
        said = f"Compared at {plural(pairs.both, 'place')}{same}, "
        said += "B beside the mean over A's seeds." if pairs.by == "point" else _WITHOUT_SEEDS
    if found.between is not None:
        said += f" {interpolated_in_words(found.between)}"
    if found.alone_in_a or found.alone_in_b:
        said += (
            f" Without a counterpart: {plural(found.alone_in_a, found.unit)} of A, "
            f"{plural(found.alone_in_b, found.unit)} of B."
        )
    return said


def interpolated_in_words(between: Interpolated) -> str:
    """Say at how many points A is interpolated, along what, and at how many nothing is known."""
    axes = [f"{'log ' if log else ''}{name}" for name, log in between.axes.items()]
    said = f"A is interpolated at {between.between} of {plural(between.points, 'point')} of B"
    lie = f"{between.unknown} {'lies' if between.unknown == 1 else 'lie'}"
    beyond = f"; {lie} beyond A's cells or beside a gap in them" if between.unknown else ""
    return f"{said}, linearly in {_listed(axes)}{beyond}."


def _unlike(found: Comparison) -> Iterator[str]:
    """What else is unlike: cells that failed on one side, and the data."""
    means = found.pairs.by == "means"
    for count, failed, done in ((found.failed_in_b, "B", "A"), (found.failed_in_a, "A", "B")):
        if count:
            are, what = "is" if count == 1 else "are", found.unit if means else "cell"
            yield f"{plural(count, what)} failed in {failed} that {are} done in {done}."
    for name in sorted(found.a.data.keys() & found.b.data.keys()):
        if found.a.data[name] != found.b.data[name]:
            yield f"A and B were trained on different data: {name} held something else."


def _intervals(differences: Sequence[Difference]) -> Iterator[str]:
    """What the intervals are, and of which columns, where they aren't all of one kind."""
    kinds: dict[str, list[str]] = {}
    for one in differences:
        if one.pairs and not one.is_none:
            kind = one.estimate.kind if one.estimate.bounded else "none, of one seed"
            kinds.setdefault(kind, []).append(one.column)
    for kind, columns in kinds.items():
        which = f" ({', '.join(columns)})" if len(kinds) > 1 else ""
        yield f"Intervals of B − A{which}: {kind}."


def estimate_in_words(one: Estimate) -> str:
    """Return a mean difference with its interval, if it has one: `0.05 [0.01, 0.09]`."""
    interval = f" [{one.low:.4g}, {one.high:.4g}]" if one.bounded else ""
    return f"{one.value:.4g}{interval}"


def largest_in_words(one: Difference) -> str:
    """Return the largest difference with its place: `0.3 at n 5, snr 0.1, seed 2`."""
    at = ", ".join(f"{name} {_written(value)}" for name, value in one.at.items())
    return f"{one.largest:.4g} at {visible(at)}" if at else f"{one.largest:.4g}"


def _written(value: Value) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _listed(names: Sequence[str]) -> str:
    """Names with commas and an and: `n, snr and seed`."""
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def noun(found: Comparison) -> str:
    """Return what is counted of a column: a `pair`, a `place` or a `point`."""
    return {"seed": "pair", "means": "place", "point": "point"}[found.pairs.by]


MOST_AXES = 3
"""A map has two axes, and panels."""


def draw_difference(
    found: Comparison, command: str = "", out: Path | None = None, names: Sequence[str] = ()
) -> Picture:
    """Draw the difference in the first compared column, with its caption and its record.

    Over one number it is lines, over two a map; one more parameter has panels.

    Args:
        found: the comparison.
        command: what the user typed, for the caption; empty where nothing was.
        out: the file that it is drawn for; None where that isn't known.
        names: what the figure calls the two sides; empty for what their paths say.

    Raises:
        UserError: if nothing varies, more varies than a figure shows, or no pair has a number.
    """
    from overfit_cli.figures.picture import WIDTH
    from overfit_cli.figures.style import THRESHOLD
    from overfit_cli.report.differences import names_of

    first, second = names or names_of(found.a, found.b)
    column = found.differences[0].column
    data = _data(found, column, first)
    figure, options = _figure(data, column)
    runs = [one.path for one in (found.a, found.b) if not one.is_published]
    picture = drawn(figure, data, options, commands_behind(runs, command))
    if figure.axes == 1:
        for axes in picture.axes:
            axes.axhline(0, **THRESHOLD)
    said = [f"B less A: B is {second}, A is {first}."]
    said += [interpolated_in_words(found.between)] if found.between is not None else []
    picture.caption = f"{textwrap.fill(' '.join(said), WIDTH)}\n\n{picture.caption}"
    picture.record = record_of_comparison(found, (first, second), command, out)
    return picture


def _data(found: Comparison, column: str, less: str) -> FigureData:
    """The pairs as cells whose column is B less A, which is called `less`."""
    import pandas as pd

    from overfit_cli.figures.panels import subtracted
    from overfit_cli.figures.style import brief

    pairs, of_a, of_b = found.pairs, found.alone_in_a, found.alone_in_b
    own = pairs.left.assign(**{column: pairs.right[column]}, status=pairs.right["status"])
    seeds = [one.cells["seed"].nunique() for one in (found.b, found.a) if pairs.by == "means"]
    return FigureData(
        found.a.study,
        subtracted(own, pairs.left, column),
        planned=pd.DataFrame(columns=["seed", *found.a.parameters]),
        trajectories=pd.DataFrame(),
        refined=found.a.refined or found.b.refined,
        less=less,
        averaged="mean of {} seeds less mean of {} seeds".format(*seeds) if seeds else "",
        unpaired=f"{of_a} of A and {of_b} of B without a counterpart" if of_a or of_b else "",
        differs=tuple(
            f"{name} {brief(one)} (A), {brief(other)} (B)"
            for name, (one, other) in found.settings.items()
        ),
    )


def _figure(data: FigureData, column: str) -> tuple[Figure, FigureOptions]:
    """What draws the data, with what lies along which axis.

    Raises:
        UserError: if nothing varies, or more than a figure shows.
    """
    from overfit_cli.core.figure import any_grid
    from overfit_cli.core.parameters import describe
    from overfit_cli.core.study import figures_of
    from overfit_cli.figures.axes import parameter_values, varying_parameters
    from overfit_cli.figures.inputs import resolved_options

    described, varying = describe(data.study.parameters), varying_parameters(data)
    numbers = [name for name in varying if described[name].kind in ("int", "float")]
    if not varying:
        raise UserError("--out: no parameter varies in the pairs, so there is nothing to draw.")
    if len(numbers) < 2:
        return any_grid()["lines"], _over(data, column, (numbers or varying)[0])
    own = figures_of(data.study)["heatmap"]
    if "minus" not in own.accepts or not described.keys() <= set(data.cells):
        own = any_grid()["heatmap"]  # cells of another version may lack what the study's own needs
    options = FigureOptions(value=column)
    if not {own.options.x, own.options.y} <= set(numbers):
        options = FigureOptions(value=column, x=numbers[1], y=numbers[0])
    resolved = resolved_options(own, options, data)
    others = [name for name in varying if name not in (resolved.x, resolved.y)]
    values = parameter_values(data)
    if len(others) > 1 or any(len(values[name]) > MOST_PANELS for name in others):
        raise UserError(_too_many(varying))
    return own, FigureOptions(value=column, x=resolved.x, y=resolved.y, by=next(iter(others), None))


def _over(data: FigureData, column: str, x: str) -> FigureOptions:
    """Lines over a parameter; a difference is never drawn on a logarithmic axis."""
    from overfit_cli.core.parameters import describe
    from overfit_cli.figures.axes import parameter_values
    from overfit_cli.stats.pairs import by_ratio

    number = describe(data.study.parameters)[x].kind in ("int", "float")
    geometric = number and by_ratio(parameter_values(data)[x])
    return FigureOptions(value=column, x=x, log=frozenset({"x"} if geometric else ()))


def _too_many(varying: Sequence[str]) -> str:
    return (
        f"--out: {', '.join(varying)} vary, more than a figure shows; choose values with "
        "--where NAME=VALUE."
    )


FIGURE = "difference"
"""What a record calls the figure."""


def record_of_comparison(
    found: Comparison, names: Sequence[str], command: str = "", out: Path | None = None
) -> Provenance:
    """Return the record of a comparison's figure.

    Args:
        found: the comparison; its first column is drawn.
        names: what the figure calls its sides.
        command: what the user typed; empty where nothing was.
        out: the figure's file, if it is known.
    """
    from overfit_cli.figures.record import ComparisonRecord, Provenance

    a, b = found.a, found.b
    columns = tuple(one.column for one in found.differences)
    runs = [
        record_of_side(side, columns[0], out, name)
        for side, name in zip((a, b), names, strict=True)
        if not side.is_published
    ]
    return Provenance(
        schema=1,
        overfit=__version__,
        packages=versions(),
        command=as_text(command),
        title=as_text(f"{columns[0]}: {names[1]} less {names[0]}"),
        figure=FIGURE,
        where=a.shared,
        runs=tuple(runs),
        compared=ComparisonRecord(
            columns=columns,
            where_a=a.where,
            where_b=b.where,
            interpolate=found.between is not None,
            published=_record_of_file(b, out, names[1]) if b.is_published else None,
        ),
    )


def record_of_side(side: Side, column: str, out: Path | None = None, name: str = "") -> RunRecord:
    """Return what a record says of a side that is a run.

    Args:
        side: the run's chosen cells.
        column: what is drawn.
        out: the figure's file, if it is known.
        name: what the figure calls the side.
    """
    timed = column == "seconds"
    return record_of_cells(
        side.path, side.study.name, side.cells, seconds=timed, out=out, name=name
    )


def _record_of_file(side: Side, out: Path | None, name: str) -> FileRecord:
    from overfit_cli.figures.record import FileRecord

    return FileRecord(
        path=as_text(side.path.as_posix()),
        beside=beside(side.path, out),
        name=as_text(name),
        data=digest_of_file(side.path),
    )


def digest_of_file(path: Path) -> str:
    """Return the SHA-256 of a CSV file's content.

    Raises:
        OSError: if it can't be read.
    """
    return hashlib.sha256(read_bounded(path, MOST_BYTES)).hexdigest()
