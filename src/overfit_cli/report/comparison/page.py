"""A comparison on the terminal: sentences on what was paired, and tables of what differs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.box import SIMPLE_HEAD
from rich.table import Table

from overfit_cli.analysis.intervals import Estimate
from overfit_cli.parameters import Value
from overfit_cli.plain_text import visible
from overfit_cli.report.comparison.between import Interpolated
from overfit_cli.report.comparison.columns import Difference
from overfit_cli.report.comparison.compare import Comparison
from overfit_cli.report.comparison.sides import Side, names_of
from overfit_cli.report.comparison.verdicts import Verdicts, why_not_judged
from overfit_cli.report.words import number_in_words
from overfit_cli.words import plural

_WIDEST = 22
"""Letters of a column's name that stay on one line on a narrow terminal."""

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


def difference_table(found: Comparison) -> Table:
    """Return the columns that differ, with the mean on each side and the differences."""
    shown = [one for one in found.differences if not one.is_none]
    names = [visible(one.column) for one in shown]
    counted = {one.pairs for one in shown} != {found.pairs.both}
    table = Table(box=SIMPLE_HEAD)
    table.add_column("column", overflow="fold", min_width=min(max(map(len, names)), _WIDEST))
    for heading in (*([f"{_noun(found)}s"] if counted else []), "mean of A", "mean of B"):
        table.add_column(heading, justify="right")
    for heading in ("B − A", "largest"):
        table.add_column(heading, overflow="fold")
    for name, one in zip(names, shown, strict=True):
        table.add_row(
            name,
            *([str(one.pairs)] if counted else []),
            f"{one.mean_a:.4g}",
            f"{one.mean_b:.4g}",
            _estimate_in_words(one.estimate),
            _largest_in_words(one),
        )
    return table


def verdict_changes(changed: Sequence[Verdicts]) -> Table:
    """Return the claims whose verdicts differ, with what was measured on each side."""
    table = Table(box=SIMPLE_HEAD)
    table.add_column("claim", overflow="fold")
    for heading in ("in A", "in B"):
        table.add_column(heading, overflow="fold")
    for one in changed:
        sides = (f"{side.verdict}: {number_in_words(side)}" for side in (one.a, one.b))
        table.add_row(visible(one.claim), *sides)
    return table


def closing_lines(found: Comparison) -> list[str]:
    """Return sentences on intervals, columns without a difference, and verdicts."""
    lines, noun = [*_intervals(found.differences)], _noun(found)
    same = [one for one in found.differences if one.is_none]
    for pairs in dict.fromkeys(one.pairs for one in same):
        named = ", ".join(one.column for one in same if one.pairs == pairs)
        every = f"all {pairs} {noun}s" if pairs > 1 else f"the one {noun}"
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
    beyond = f"; {between.unknown} lie beyond A's cells or beside a gap in them"
    return f"{said}, linearly in {_listed(axes)}{beyond if between.unknown else ''}."


def _unlike(found: Comparison) -> Iterator[str]:
    """What else is unlike: cells that failed on one side, and the data."""
    means = found.pairs.by == "means"
    for count, failed, done in ((found.failed_in_b, "B", "A"), (found.failed_in_a, "A", "B")):
        if count:
            are, what = "is" if count == 1 else "are", found.unit if means else "cell"
            yield f"{plural(count, what)} failed in {failed} that {are} done in {done}."
    for name in found.a.data.keys() & found.b.data.keys():
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


def _estimate_in_words(one: Estimate) -> str:
    interval = f" [{one.low:.4g}, {one.high:.4g}]" if one.bounded else ""
    return f"{one.value:.4g}{interval}"


def _largest_in_words(one: Difference) -> str:
    at = f" at {at_in_words(one.at)}" if one.at else ""
    return f"{one.largest:.4g}{at}"


def at_in_words(at: Mapping[str, Value]) -> str:
    """Return the values of some parameters: `n 5, snr 0.1`."""
    return visible(", ".join(f"{name} {_written(value)}" for name, value in at.items()))


def _written(value: Value) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _listed(names: Sequence[str]) -> str:
    """Names with commas and an and: `n, snr and seed`."""
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _noun(found: Comparison) -> str:
    """What is counted of a column."""
    return {"seed": "pair", "means": "place", "point": "point"}[found.pairs.by]
