"""Picture of claims: the numbers that each is judged on, with intervals, against their margins.

A clause of a claim has a panel, in which its parts stand below each other.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from overfit_cli.claims.parts import Part, Worlds
from overfit_cli.claims.quantities import Power, Trend
from overfit_cli.claims.sentences import Clause, chosen
from overfit_cli.claims.stated import Measure
from overfit_cli.core.claim import UndecidedError
from overfit_cli.core.errors import UserError
from overfit_cli.core.text import plural
from overfit_cli.figures.axes import legend_below, log_ticks
from overfit_cli.figures.draw import new_record, record_of_cells
from overfit_cli.figures.labels import caption, literal
from overfit_cli.figures.picture import Picture, lay_out, looking
from overfit_cli.figures.style import COLUMN, PALETTE, Look, letters_across
from overfit_cli.report.judge import Judged
from overfit_cli.stats.intervals import error_of_each, level_of_each

NAME = "claim"
"""The name of the figure, in its record and its file."""

MOST_ROWS = 12
"""The most intervals of a panel; of more those nearest to their margin's end."""

_NAME_LETTERS = 24
"""About the longest line of a row's name."""

_SHADE = "#DCE9F2"  # of margins: text and points are legible on it
_DECADES = 1.5  # from which on numbers have a logarithmic axis

_Panel = tuple[str, Clause, list[Part]]
"""A title, and a clause of a claim with what it is judged on."""


def draw_claims(
    judged: Sequence[Judged],
    *,
    command: str = "",
    out: Path | None = None,
    look: Look | None = None,
) -> Picture:
    """Draw sentences on the cells that they are judged on, with a caption and a record.

    Those that do not bear on these cells are left out, as the caption says.
    """
    panels, left_out, run = list[_Panel](), list[str](), judged[0].run
    assert run is not None
    with run.looks_level(), looking(look or Look()):
        for each in judged:
            try:
                panels += _panels(each)
            except UndecidedError as error:
                left_out.append(f"{each.name}: {error}")
        if not panels:
            raise UserError(" ".join(left_out) or "There is no claim to draw.")
        picture = _draw(panels)
    picture.facts += [
        f"{each.name}: {each.headline}, {each.measurement.number}." for each in judged
    ]
    picture.facts += [f"Not drawn: {' '.join(left_out)}"] if left_out else []
    picture.caption = caption(" ".join(picture.facts), run.data, command)
    known = {claim.name for claim in run.claims()}
    texts = [
        each.claim.name if each.claim.name in known else str(each.claim.measure.sentence)
        for each in judged
        if isinstance(each.claim.measure, Measure)
    ]
    picture.metadata = new_record(
        command=command,
        title=f"Claims: {'; '.join(each.claim.name for each in judged)}",
        figure=NAME,
        where=run.conditions,
        claims=tuple(texts),
        runs=(record_of_cells(run.data, out=out),),
    ).metadata()
    return picture


def _panels(judged: Judged) -> list[_Panel]:
    measure, run = judged.claim.measure, judged.run
    if not isinstance(measure, Measure) or run is None or not run.study.seeded:
        raise UserError(f"{judged.name} is no sentence about seeds, and has no drawing.")
    sentence = measure.sentence
    cells = chosen(measure.cells(run.rows(judged.claim)), sentence.where)
    several = len(sentence.clauses) > 1
    called = judged.claim.name if judged.claim.source or several else sentence.text
    titles = [f", {clause.quantity}" if several else "" for clause in sentence.clauses]
    return [
        (f"{called}{title}: {judged.headline}", clause, clause.parts(cells, sentence.seeds))
        for title, clause in zip(titles, sentence.clauses, strict=True)
    ]


def _draw(panels: Sequence[_Panel]) -> Picture:
    counts = [len(parts) for *_, parts in panels]
    shown = [_nearest(parts) for *_, parts in panels]
    names = [list(map(_row_name, parts)) for parts in shown]
    lines = [max((name.count("\n") + 1 for name in each), default=1) for each in names]
    heights = [1.0 + 0.17 * len(each) * high for each, high in zip(shown, lines, strict=True)]
    figure = Picture(COLUMN, sum(heights) + 0.5)
    grid = figure.add_gridspec(len(panels), 1, height_ratios=heights)
    for row, (_, clause, _) in enumerate(panels):
        _draw_panel(figure.add_subplot(grid[row, 0]), clause, shown[row], names[row])
    lay_out(figure)
    for axes, (title, *_) in zip(figure.axes, panels, strict=True):
        letters = 4 * letters_across(axes, "axes.titlesize") // 5  # names of columns are wide
        axes.set_title(_wrapped(title, letters))
        axes.set_xlabel(_wrapped(axes.get_xlabel(), letters))
    legend_below(figure, [(Patch(color=_SHADE), "where the claim holds")])
    figure.facts.append(
        f"Points: over seeds, with {100 * level_of_each(1):.4g} % intervals; a bar without an end "
        "reaches beyond what was measured. Shaded: where the claim's interval must lie."
    )
    if max(counts) > MOST_ROWS:
        nearest = f"{MOST_ROWS} nearest to their margin's end"
        figure.facts.append(f"Of {plural(max(counts), 'interval')} the {nearest} are drawn.")
    return figure


def _nearest(parts: Sequence[Part]) -> list[Part]:
    """The parts that are drawn, in their order."""
    slacks = [*map(Part.slack, parts, Worlds.of(parts).value[0])]
    return [parts[index] for index in sorted(np.argsort(slacks, kind="stable")[:MOST_ROWS])]


def _row_name(part: Part) -> str:
    name = str(replace(part, quantity="")).removeprefix("at ")
    name = re.sub(r"\d+\.\d{5,}", lambda number: f"{float(number[0]):.4g}", name)
    return _wrapped(name, _NAME_LETTERS)


def _wrapped(text: str, letters: int) -> str:
    """Break a text without formulas into lines, a word only where it is longer than a line."""
    lines = textwrap.wrap(text, letters, break_on_hyphens=False)
    return "\n".join(map(literal, lines))


def _draw_panel(axes: Axes, clause: Clause, parts: Sequence[Part], names: Sequence[str]) -> None:
    worlds = Worlds.of(parts)
    margins = [(part.margin.least, part.margin.most) for part in parts]
    low_ends, high_ends = worlds.ends(error_of_each(1))
    numbers = np.column_stack([worlds.value[0], low_ends[0], high_ends[0], margins])
    known, shown = (table[np.isfinite(table)] for table in (numbers, numbers[:, :3]))
    is_log = len(shown) > 0 and shown.min() > 0 and shown.max() > 10**_DECADES * shown.min()
    axes.set_xscale("log" if is_log else "linear")
    axes.margins(x=0.08)
    axes.update_datalim([(number, 0) for number in known if number > 0 or not is_log])
    axes.autoscale_view(scaley=False)
    low, high = axes.get_xlim()
    if is_log:
        log_ticks(axes.xaxis, low, high)
    value = np.where(np.isfinite(numbers[:, 0]), numbers[:, 0], np.nan)
    ends = np.where(np.isnan(numbers[:, 1:3]), value[:, None], numbers[:, 1:3])
    start, end, least, most = np.clip([*ends.T, *numbers[:, 3:].T], low, high)
    rows = np.arange(len(parts))
    axes.barh(rows, most - least, height=1, left=least, color=_SHADE, zorder=0)
    axes.hlines(rows, start, end, color=PALETTE[0], linewidth=0.9)
    axes.plot(value, rows, "o", color=PALETTE[0])
    axes.set_yticks(rows if any(names) else [], names if any(names) else [])
    axes.set(xlim=(low, high), ylim=(len(parts) - 0.5, -0.5))
    axes.set_xlabel(_what_is_shown(clause).replace("`", ""))


def _what_is_shown(clause: Clause) -> str:
    quantity = clause.quantity
    if isinstance(quantity, Trend):
        return "rank correlation; of its end and turn, a share"
    if isinstance(quantity, Power):
        return str(quantity)
    return "share of seeds" if str(quantity) == "the share" else f"{clause.statistic} of {quantity}"
