"""Tables for the terminal and the documents: parameters, columns, verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from overfit_cli.claim import VERDICTS
from overfit_cli.parameters import ParameterInfo, describe
from overfit_cli.plain_text import visible
from overfit_cli.report.words import number_in_words
from overfit_cli.study import AnyStudy
from overfit_cli.symbols import plain

if TYPE_CHECKING:
    from overfit_cli.report.contents import ReportedPaper
    from overfit_cli.report.judged import Judged

PARAMETER_HEADINGS = ("parameter", "symbol", "default", "takes", "meaning")
COLUMN_HEADINGS = ("column", "symbol", "meaning")


def parameter_rows(study: AnyStudy) -> list[tuple[str, ...]]:
    """Return one row per parameter, under `PARAMETER_HEADINGS`."""
    return [
        (
            info.name,
            plain(info.symbol),
            _default(info),
            info.accepts,
            info.meaning + (f" ({info.unit})" if info.unit else ""),
        )
        for info in describe(study.parameters).values()
    ]


def _default(info: ParameterInfo) -> str:
    if info.default is None:
        return "none"
    return f"{info.default:g}" if info.kind == "float" else str(info.default)


def column_rows(study: AnyStudy, *, trajectories: bool = False) -> list[tuple[str, ...]]:
    """Return one row per measured column, of cells or of trajectories, under `COLUMN_HEADINGS`."""
    columns = study.trajectory_columns if trajectories else study.columns
    return [
        (
            column.name,
            plain(column.symbol),
            column.meaning + (f" ({column.unit})" if column.unit else ""),
        )
        for column in columns
    ]


def parameter_table(study: AnyStudy) -> Table:
    """Return the study's parameters as a table for the terminal."""
    table = Table(title=f"Parameters of {study.name} (--NAME RANGE)", box=SIMPLE_HEAD)
    for heading in PARAMETER_HEADINGS:
        table.add_column(heading, overflow="fold")
    for row in parameter_rows(study):
        table.add_row(*row)
    return table


_COLOURS = {
    "holds": "green",
    "fails": "bold red",
    "inconclusive": "yellow",
    "vacuous": "cyan",
    "not run": "dim",
}


def verdict_table(judged: Sequence[Judged]) -> Table:
    """Return the verdicts as a table for the terminal."""
    table = Table(box=SIMPLE_HEAD)
    table.add_column("claim", no_wrap=True)
    table.add_column("verdict", no_wrap=True, min_width=len("inconclusive"))
    table.add_column("measured")
    for one in judged:
        verdict = one.measurement.verdict
        table.add_row(
            visible(one.name),
            Text(verdict, style=_COLOURS[verdict]),
            number_in_words(one.measurement),
        )
    return table


def count_table(papers: Sequence[ReportedPaper]) -> Table:
    """Return how many claims of each paper have each verdict, as a table for the terminal."""
    rows = [(paper.cited, paper.counts) for paper in papers if paper.judged]
    table = Table(box=SIMPLE_HEAD)
    table.add_column("paper", overflow="fold")
    for verdict in VERDICTS:
        table.add_column(verdict, justify="right", style=_COLOURS[verdict])
    of_all = {verdict: sum(counts[verdict] for _, counts in rows) for verdict in VERDICTS}
    for cited, counts in [*rows, ("all", of_all)]:
        table.add_row(visible(cited), *(str(counts[verdict] or "") for verdict in VERDICTS))
    return table
