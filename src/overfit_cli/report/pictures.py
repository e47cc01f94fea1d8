"""Pictures of comparisons, of claims, and of a report's page.

A comparison is drawn as B less A over the parameters that vary. Of claims the numbers are drawn on
which each is judged, with intervals, against their margins: a clause of a claim has a panel, in
which its parts stand below each other. These two have a record, with which they are drawn again.

A page holds the figures of its runs, and their phase diagrams as numbers. A run has the figures
that its preset names, else those that are kept in its directory, else, of a study without presets,
the first general ones. The most important runs are drawn first, until `MOST_BYTES` are used. A
figure that shows nothing is left out.
"""

from __future__ import annotations

import base64
import hashlib
import io
import re
import textwrap
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from jinja2.utils import htmlsafe_json_dumps
from matplotlib import colormaps, colors
from matplotlib.axes import Axes
from matplotlib.patches import Patch
from PIL import Image

from overfit_cli.claims import quantities, sentences, stated
from overfit_cli.claims.parts import Part, Worlds
from overfit_cli.core import arrays, files, registry
from overfit_cli.core.cells import Cells
from overfit_cli.core.claim import UndecidedError
from overfit_cli.core.errors import BadValue, UserError
from overfit_cli.core.figure import Figure, FigureOptions, grid_figures
from overfit_cli.core.text import command_words, plural, round_digits, shell_line, shorten, visible
from overfit_cli.figures import draw, inputs, labels, map_data, picture, style
from overfit_cli.figures.axes import Axis, legend_below, log_ticks
from overfit_cli.report import compare, contents, judge, sides
from overfit_cli.stats import intervals, pairs
from overfit_cli.sweeps.presets import all_presets

CLAIMS, _DIAGRAM = "claim", "phase diagram"
"""The names of the figure of claims, in its record and its file, and of a page's diagrams."""

MOST_ROWS = 12
"""The most intervals of a panel; of more those nearest to their margin's end."""

_NAME_LETTERS = 24
"""About the longest line of a row's name."""

_SHADE = "#DCE9F2"  # of margins: text and points are legible on it
_DECADES = 1.5  # from which on numbers have a logarithmic axis

# Comparisons


def draw_difference(
    comparison: compare.Comparison, out: Path | None = None, names: Sequence[str] = ()
) -> picture.Picture:
    """Draw the difference in the first compared column: lines over one number, a map over two."""
    columns = tuple(each["column"] for each in comparison.columns)
    column, (first, second) = columns[0], names or comparison.names
    less = inputs.difference(comparison.b, comparison.a, (second, first), column)
    named = [(first, comparison.a), (second, comparison.b)]  # both may have one name
    runs = [(name, side) for name, side in named if not sides.is_published(side)]
    less = replace(less, parts=dict(runs[::-1]))
    figure, options = _figure_of_difference(less, column)
    drawing = draw.drawn(figure, less, options)
    for axes in drawing.axes if figure.axes == 1 else ():
        axes.axhline(0, **style.THRESHOLD)
    called = textwrap.fill(f"B less A: B is {second}, A is {first}.", labels.WIDTH)
    drawing.caption = f"{called}\n\n{drawing.caption}"
    how = {"seconds": column == "seconds", "out": out}
    where, where_a, where_b = comparison.where
    published = None if runs[1:] else record_of_file(sides.path_of(comparison.b), out, second)
    chosen: Any = {"where_a": where_a, "where_b": where_b, "published": published}
    return draw.finish(
        drawing,
        out,
        title=f"{column}: {second} less {first}",
        figure="difference",
        where=where,
        runs=tuple(draw.record_of_cells(side, name=name, **how) for name, side in runs),
        compared=draw.ComparisonRecord(columns=columns, **chosen),
    )


def _figure_of_difference(data: Cells, column: str) -> tuple[Figure, FigureOptions]:
    varying = data.varying()
    numbers = [name for name in varying if name in data.number_parameters]
    if not varying:
        nothing = "no parameter varies in the pairs, so there is nothing to draw."
        raise BadValue("out", None, nothing)
    if len(numbers) < 2:
        along = (numbers or varying)[0]
        # A difference is never drawn on a logarithmic axis.
        log = frozenset({"x"} if numbers and pairs.is_log_spaced(data.values[along]) else ())
        return grid_figures()["lines"], FigureOptions(value=column, x=along, log=log)
    own = registry.figures_of(data.study)["heatmap"].options
    x, y = (own.x, own.y) if {own.x, own.y} <= {*numbers} else (numbers[1], numbers[0])
    by = next((name for name in varying if name not in (x, y)), None)
    return grid_figures()["heatmap"], FigureOptions(value=column, x=x, y=y, by=by)


def record_of_file(path: Path, out: Path | None = None, name: str = "") -> draw.SourceRecord:
    """Return the record of a file of published numbers, with the SHA-256 of its content."""
    data, beside = hashlib.sha256(files.read_bounded(path)).hexdigest(), draw.path_beside(path, out)
    return draw.SourceRecord(path=path.as_posix(), beside=beside, name=name, data=data)


# Claims

_Panel = tuple[str, sentences.Clause, list[Part]]
"""A title, and a clause of a claim with what it is judged on."""


def draw_claims(
    judged: Sequence[judge.Judged], *, out: Path | None = None, look: style.Look | None = None
) -> picture.Picture:
    """Draw sentences on the cells that they are judged on, with a caption and a record.

    Those that do not bear on these cells have no panel; the caption has the verdicts of all.
    """
    panels, run = list[_Panel](), judged[0].run
    assert run is not None
    with run.looks_level(), picture.looking(look or style.Look()):
        for each in judged:
            with suppress(UndecidedError):
                panels += _panels(each)
        if not panels:
            raise UserError(" ".join(f"{each.name}: {each.measurement.note}" for each in judged))
        drawing = _draw(panels)
    for each in judged:
        measure, called = each.claim.measure, each.name
        if isinstance(measure, stated.Measure) and each.is_stated:
            called = str(measure.sentence)
        drawing.facts.append(f"{called}: {each.headline}, {each.measurement.number}.")
    drawing.caption = labels.caption(" ".join(drawing.facts), run.data)
    known = {claim.name for claim in run.claims()}
    texts = [
        each.claim.name if each.claim.name in known else str(each.claim.measure.sentence)
        for each in judged
        if isinstance(each.claim.measure, stated.Measure)
    ]
    return draw.finish(
        drawing,
        out,
        title=f"Claims: {'; '.join(each.claim.name for each in judged)}",
        figure=CLAIMS,
        where=run.conditions,
        claims=tuple(texts),
        runs=(draw.record_of_cells(run.data, out=out),),
    )


def _panels(judged: judge.Judged) -> list[_Panel]:
    measure, run = judged.claim.measure, judged.run
    if not isinstance(measure, stated.Measure) or run is None or not run.study.seeded:
        raise UserError(f"{judged.name} is no sentence about seeds, and has no drawing.")
    sentence = measure.sentence
    cells = sentences.chosen(measure.cells(run.rows(judged.claim)), sentence.where)
    several, panels = len(sentence.clauses) > 1, list[_Panel]()
    called = judged.claim.name if judged.claim.source or several else sentence.text
    for clause in sentence.clauses:
        title = f"{called}, {clause.quantity}" if several else called
        panels.append((f"{title}: {judged.headline}", clause, clause.parts(cells, sentence.seeds)))
    return panels


def _draw(panels: Sequence[_Panel]) -> picture.Picture:
    most = max(len(parts) for *_, parts in panels)
    shown = [_nearest(parts) for *_, parts in panels]
    names = [list(map(_row_name, parts)) for parts in shown]
    lines = [max((name.count("\n") + 1 for name in each), default=1) for each in names]
    heights = [1.0 + 0.17 * len(each) * high for each, high in zip(shown, lines, strict=True)]
    figure = picture.Picture(style.COLUMN, sum(heights) + 0.5)
    grid = figure.add_gridspec(len(panels), 1, height_ratios=heights)
    for row, (_, clause, _) in enumerate(panels):
        axes = figure.add_subplot(grid[row, 0])
        axes.set_xlabel(_what_is_shown(clause).replace("`", ""))
        _draw_panel(axes, shown[row], names[row])
    picture.lay_out(figure)
    for axes, (title, *_) in zip(figure.axes, panels, strict=True):
        letters = 4 * style.letters_across(axes, "axes.titlesize") // 5  # names of columns are wide
        axes.set_title(_wrapped(title, letters))
        axes.set_xlabel(_wrapped(axes.get_xlabel(), letters))
    legend_below(figure, [(Patch(color=_SHADE), "where the claim holds")])
    points = f"Points: over seeds, with {100 * intervals.level_of_each(1):.4g} % intervals"
    ends = "a bar without an end reaches beyond what was measured."
    figure.facts.append(f"{points}; {ends} Shaded: where the claim's interval must lie.")
    if most > MOST_ROWS:
        nearest = f"{MOST_ROWS} nearest to their margin's end"
        figure.facts.append(f"Of {plural(most, 'interval')} the {nearest} are drawn.")
    return figure


def _nearest(parts: Sequence[Part]) -> list[Part]:
    """The parts that are drawn, in their order."""
    slacks = [*map(Part.slack, parts, Worlds.of(parts).value[0])]
    return [parts[index] for index in sorted(np.argsort(slacks, kind="stable")[:MOST_ROWS])]


def _row_name(part: Part) -> str:
    name = str(replace(part, quantity="")).removeprefix("at ")
    name = re.sub(r"\d+\.\d{5,}", lambda number: f"{float(number[0]):.4g}", name)
    return _wrapped(name, _NAME_LETTERS)


def _wrapped(words: str, letters: int) -> str:
    """Break a text without formulas into lines, a word only where it is longer than a line."""
    return "\n".join(map(labels.literal, textwrap.wrap(words, letters, break_on_hyphens=False)))


def _draw_panel(axes: Axes, parts: Sequence[Part], names: Sequence[str]) -> None:
    worlds = Worlds.of(parts)
    margins = [(part.margin.least, part.margin.most) for part in parts]
    low_ends, high_ends = worlds.ends(intervals.error_of_each(1))
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
    axes.hlines(rows, start, end, color=style.PALETTE[0], linewidth=0.9)
    axes.plot(value, rows, "o", color=style.PALETTE[0])
    axes.set_yticks(rows if any(names) else [], names if any(names) else [])
    axes.set(xlim=(low, high), ylim=(len(parts) - 0.5, -0.5))


def _what_is_shown(clause: sentences.Clause) -> str:
    quantity = clause.quantity
    if isinstance(quantity, quantities.Trend):
        return "rank correlation; of its end and turn, a share"
    if isinstance(quantity, quantities.Power):
        return str(quantity)
    return "share of seeds" if str(quantity) == "the share" else f"{clause.statistic} of {quantity}"


# The page

MOST_BYTES = 3_600_000
"""The limit of all figures and diagrams of a page, which has 5 MB in all."""

MOST_FIGURES = 3
"""The limit of figures for a run whose figures nobody chose."""

DOTS_PER_INCH, WIDE = 155, 4.5
"""The resolution of a figure, and the inches from which on it is wider than a paper's column."""

COLOURS, SHADES = 96, 32
"""The colours of a figure, and those of a diagram's scale."""

FEWEST_VALUES, MOST_VALUES = 3, 100
"""The limits of the values along a diagram's longer axis: smaller points can't be pointed at."""

Diagram = Mapping[str, Any]
"""The numbers of a phase diagram for the page's script, which can be written as JSON."""


def draw_all(runs: Sequence[contents.Entry], conditions: Sequence[str]) -> None:
    """Put the figures and the diagram of each run beside its facts, up to `MOST_BYTES` in all.

    Runs that decide claims and reproduce a figure of the paper come before those that do one.
    """
    remaining = MOST_BYTES
    for run in sorted(runs, key=lambda run: -(bool(run["figure"]) + run["decides"])):
        run |= {"pictures": [], "not_drawn": [], "diagram": "", "left_out": False}
        if remaining > 0:
            # Loading the runs has shown the warnings.
            with warnings.catch_warnings(action="ignore"):
                _illustrate(run, conditions)
        size = len(run["diagram"].encode()) + sum(len(one["address"]) for one in run["pictures"])
        if remaining <= 0 or size > remaining:
            run |= {"pictures": [], "diagram": "", "left_out": True}
            remaining = 0  # no less important run is shown in its place
        remaining -= size


def _illustrate(run: contents.Entry, conditions: Sequence[str]) -> None:
    own, others, study = registry.figures_of(run["study"]), list[str](), run["study"]
    named = [name for preset in run["presets"] for name in preset.figures]
    if not run["presets"]:
        kept = sorted((run["path"] / "figures").glob("*.png"))
        named = [path.stem for path in kept if path.stem in own]
    named = [CLAIMS, *named] if run["claims"] else named
    if not any(preset.study == study.name for preset in all_presets()):
        others = [name for name in grid_figures() if name in own]
    for name in dict.fromkeys([*named, *others, _DIAGRAM]):
        if name in others and name not in named and len(run["pictures"]) >= MOST_FIGURES:
            continue
        try:
            if name == _DIAGRAM:
                if diagram := make_diagram(run["run"].data):
                    run["diagram"] = htmlsafe_json_dumps(diagram, separators=(",", ":"))
            else:
                run["pictures"].append(_picture(name, run, conditions))
        except UserError as error:
            if name in named:
                run["not_drawn"].append(f"{name}: {str(error).removeprefix(f'{name}: ')}")
        except Exception as error:  # one figure must not cost the whole report
            defect = f"{type(error).__name__}: {visible(shorten(str(error)))}"
            run["not_drawn"].append(f"{name}: its drawing failed ({defect}).")


def _picture(name: str, run: contents.Entry, conditions: Sequence[str]) -> contents.Entry:
    """A figure of a run as a `data:` address, with its caption and the command that draws it."""
    judged, path, where = run["run"], run["path"], list(conditions)
    look = style.Look(settings={"savefig.dpi": DOTS_PER_INCH})
    if name == CLAIMS:
        command = command_words("judge", path, out=f"{name}.png", where=where)
        drawing = draw_claims(run["claims"], look=look)
    else:
        command = command_words("plot", name, from_=path, where=where)
        drawing = draw.draw_figure(name, [judged.directory], FigureOptions(), conditions, look=look)
    if drawing.nothing:
        raise UserError(drawing.nothing)
    pixels = Image.open(io.BytesIO(picture.file_content(drawing, "png"))).convert("RGB")
    small, reduced = io.BytesIO(), picture.reduce_colours(pixels, COLOURS).convert("RGB")
    reduced.save(small, "WEBP", lossless=True, quality=100, method=4)
    return {
        "name": name,
        "caption": drawing.caption.split("\n\n", 1)[0].replace("\n", " "),
        "command": shell_line(command),
        "address": f"data:image/webp;base64,{base64.b64encode(small.getvalue()).decode()}",
        "width": pixels.width,
        "height": pixels.height,
        "is_wide": pixels.width > WIDE * DOTS_PER_INCH,
    }


def make_diagram(data: Cells) -> Diagram | None:
    """Return the map that `overfit plot heatmap` draws of these cells, as numbers.

    Each point has the heatmap's statistic with its 95 % interval, the least and the greatest value
    over seeds, and the numbers of seeds with a value and without one. None where these cells make
    no map, or one with too few or too many points, one colour, or no number at half of its points
    or more.
    """
    heatmap = registry.figures_of(data.study)["heatmap"]
    try:
        plan = map_data.lay_out_map(data, inputs.resolve_options(heatmap, FigureOptions(), data))
    except UserError:
        return None
    lengths, study = (len(plan.x.values), len(plan.y.values)), data.study
    is_sparse = 2 * len(plan.numbers) <= np.prod(lengths) * len(plan.panels)
    if plan.nothing or is_sparse or not FEWEST_VALUES <= max(lengths) <= MOST_VALUES:
        return None
    shown = plan.value == study.headline and study.threshold is not None and all(study.sides)
    threshold = study.threshold if shown else None
    shades = colormaps[style.RC["image.cmap"]](np.linspace(0, 1, SHADES))
    ends = (plan.norm.vmin, float(plan.norm.inverse(0.5)), plan.norm.vmax)
    return {
        "value": labels.typeset(plan.label),
        "mean": intervals.MEANS[plan.mean],
        "why": plan.why,
        "x": _axis(plan.x),
        "y": _axis(plan.y),
        "colours": [colors.to_hex(shade) for shade in shades],
        **dict(zip(("low", "middle", "high"), map(_json_number, ends), strict=True)),
        **({"threshold": threshold, "sides": list(study.sides)} if shown else {}),
        "panels": [
            {"title": labels.typeset(part.title), "points": _points(plan, part, threshold)}
            for part in plan.panels
        ],
    }


def _axis(axis: Axis) -> dict[str, Any]:
    for digits in (2, 3, 4, 17):  # as few as tell the values apart
        rounded = [
            round_digits(one, digits) if isinstance(one, float) else one for one in axis.values
        ]
        ticks = [labels.typeset(labels.brief(value)) for value in rounded]
        if len({*ticks}) == len(ticks):
            break
    values = [labels.typeset(labels.brief(value)) for value in axis.values]
    return {"label": labels.typeset(axis.label), "values": values, "ticks": ticks}


def _points(plan: map_data.Map, part: map_data.MapPanel, threshold: float | None) -> dict[str, Any]:
    """What is known at each point, row by row: a list by name; None where there is no number."""
    every = arrays.finite_column(plan.data.trained, plan.value)
    low, high = part.interval(intervals.natural_bounds(np.asarray(every, dtype=np.float64)))
    samples = np.where(np.isfinite(part.samples), part.samples, np.nan)
    several = np.isfinite(part.number) & (part.arrived > 1)
    above = np.where(part.arrived > 0, (samples > (threshold or 0.0)).sum(axis=-1), np.nan)
    shades = plan.norm(np.ma.masked_invalid(part.number)).filled(np.nan)
    columns: dict[str, Any] = {
        "seeds": part.arrived,
        "lost": part.seeds - part.arrived,
        "middle": part.number,
        "colour": np.round(shades * (SHADES - 1)),
        "least": np.where(several, np.fmin.reduce(samples, axis=-1), np.nan),
        "most": np.where(several, np.fmax.reduce(samples, axis=-1), np.nan),
        "from": np.where(several, low, np.nan),
        "to": np.where(several, high, np.nan),
        **({} if threshold is None else {"above": above}),
    }
    rows = [plan.y.values.index(value) for value in part.y.values]
    places = np.ix_(rows, [plan.x.values.index(value) for value in part.x.values])
    points = {}
    for name, column in columns.items():
        whole = np.full((len(plan.y.values), len(plan.x.values)), np.nan)
        whole[places] = np.where(part.seeds > 0, column, np.nan)
        points[name] = [_json_number(number) for number in whole.ravel().tolist()]
    return points


def _json_number(number: Any) -> float | None:
    return round_digits(number, 4) if np.isfinite(number) else None
