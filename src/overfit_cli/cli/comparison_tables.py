"""Tables of a comparison for the terminal: columns that differ, and verdicts that change."""

from __future__ import annotations

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.table import Table

from overfit_cli.plain_text import visible
from overfit_cli.report.comparison.compare import Comparison
from overfit_cli.report.comparison.verdicts import Verdicts
from overfit_cli.report.comparison.words import estimate_in_words, largest_in_words, noun
from overfit_cli.report.words import number_in_words

_WIDEST = 22
"""Letters of a column's name that stay on one line on a narrow terminal."""


def difference_table(found: Comparison) -> Table:
    """Return the columns that differ, with the mean on each side and the differences."""
    shown = [one for one in found.differences if not one.is_none]
    names = [visible(one.column) for one in shown]
    counted = {one.pairs for one in shown} != {found.pairs.both}
    table = Table(box=SIMPLE_HEAD)
    table.add_column("column", overflow="fold", min_width=min(max(map(len, names)), _WIDEST))
    for heading in (*([f"{noun(found)}s"] if counted else []), "mean of A", "mean of B"):
        table.add_column(heading, justify="right")
    for heading in ("B − A", "largest"):
        table.add_column(heading, overflow="fold")
    for name, one in zip(names, shown, strict=True):
        table.add_row(
            name,
            *([str(one.pairs)] if counted else []),
            f"{one.mean_a:.4g}",
            f"{one.mean_b:.4g}",
            estimate_in_words(one.estimate),
            largest_in_words(one),
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
