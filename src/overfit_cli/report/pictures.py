"""The pictures of a report's page: the figures of its runs, inside the page, and their diagrams.

A run has the figures that its preset names, else those that are kept in its directory, else, of a
study without presets, the first general ones. The most important runs are drawn first, until
`MOST_BYTES` are used. A figure that shows nothing is left out.
"""

from __future__ import annotations

import base64
import io
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from jinja2.utils import htmlsafe_json_dumps
from matplotlib.colors import to_hex
from numpy.typing import NDArray
from PIL import Image

from overfit_cli.core.arrays import finite_column
from overfit_cli.core.cells import Cells
from overfit_cli.core.errors import UserError
from overfit_cli.core.figure import Figure, FigureOptions, grid_figures
from overfit_cli.core.registry import figures_of
from overfit_cli.core.text import command_words, round_digits, shell_line, shorten, visible
from overfit_cli.figures.axes import Axis
from overfit_cli.figures.draw import draw_figure
from overfit_cli.figures.inputs import resolve_options
from overfit_cli.figures.labels import brief, typeset
from overfit_cli.figures.map_data import Map, MapPanel, lay_out_map
from overfit_cli.figures.picture import file_content, reduce_colours
from overfit_cli.figures.style import RC, Look
from overfit_cli.report.claim_figure import NAME as CLAIM_FIGURE
from overfit_cli.report.claim_figure import draw_claims
from overfit_cli.report.contents import Entry
from overfit_cli.stats.intervals import MEANS, natural_bounds
from overfit_cli.sweeps.presets import Preset, all_presets, presets_run_into

Diagram = Mapping[str, Any]
"""The numbers of a phase diagram for the page's script, which can be written as JSON."""

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


def draw_all(runs: Sequence[Entry], conditions: Sequence[str]) -> None:
    """Put the figures and the diagram of each run beside its facts, up to `MOST_BYTES` in all.

    Runs that decide claims and reproduce a figure of the paper come before those that do one.
    """
    remaining = MOST_BYTES
    for run in sorted(runs, key=lambda run: -(bool(run["figure"]) + run["decides"])):
        presets = presets_run_into(run["path"].resolve().name)
        run |= {"pictures": [], "not_drawn": [], "diagram": "", "left_out": False}
        run["title"] = presets[0].title if presets else ""
        if remaining > 0:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # loading the runs has shown the warnings
                _illustrate(run, presets, conditions)
        size = len(run["diagram"].encode()) + sum(len(one["address"]) for one in run["pictures"])
        if remaining <= 0 or size > remaining:
            run |= {"pictures": [], "diagram": "", "left_out": True}
            remaining = 0  # no less important run is shown in its place
        remaining -= size


def _illustrate(run: Entry, presets: Sequence[Preset], conditions: Sequence[str]) -> None:
    own, others = figures_of(run["study"]), list[str]()
    named = [name for preset in presets for name in preset.figures]
    if not presets:
        kept = sorted((run["path"] / "figures").glob("*.png"))
        named = [path.stem for path in kept if path.stem in own]
    named = [CLAIM_FIGURE, *named] if run["claims"] else named
    if not any(preset.study == run["study"].name for preset in all_presets()):
        others = [name for name in grid_figures() if name in own]
    for name in dict.fromkeys([*named, *others]):
        if name not in named and len(run["pictures"]) >= MOST_FIGURES:
            break
        try:
            run["pictures"].append(_picture(name, run, conditions))
        except UserError as error:
            if name in named:
                run["not_drawn"].append(f"{name}: {str(error).removeprefix(f'{name}: ')}")
        except Exception as error:  # one figure must not cost the whole report
            run["not_drawn"].append(f"{name}: {_defect(error)}")
    try:
        diagram = make_diagram(run["run"].data, own.get("heatmap"))
        run["diagram"] = htmlsafe_json_dumps(diagram, separators=(",", ":")) if diagram else ""
    except Exception as error:
        run["not_drawn"].append(f"phase diagram: {_defect(error)}")


def _defect(error: Exception) -> str:
    return f"its drawing failed ({type(error).__name__}: {visible(shorten(str(error)))})."


def _picture(name: str, run: Entry, conditions: Sequence[str]) -> Entry:
    """A figure of a run as a `data:` address, with its caption and the command that draws it."""
    judged, path, where = run["run"], run["path"], list(conditions)
    look = Look(settings={"savefig.dpi": DOTS_PER_INCH})
    if name == CLAIM_FIGURE:
        command = command_words("judge", path, out=f"{name}.png", where=where)
        picture = draw_claims(run["claims"], look=look)
    else:
        command = command_words("plot", name, from_=path, where=where)
        picture = draw_figure(name, [judged.directory], FigureOptions(), conditions, look=look)
    if picture.nothing:
        raise UserError(picture.nothing)
    pixels = Image.open(io.BytesIO(file_content(picture, "png"))).convert("RGB")
    small = io.BytesIO()
    reduce_colours(pixels, COLOURS).convert("RGB").save(
        small, "WEBP", lossless=True, quality=100, method=4
    )
    return {
        "name": name,
        "caption": picture.caption.split("\n\n", 1)[0].replace("\n", " "),
        "command": shell_line(command),
        "address": f"data:image/webp;base64,{base64.b64encode(small.getvalue()).decode()}",
        "width": pixels.width,
        "height": pixels.height,
        "is_wide": pixels.width > WIDE * DOTS_PER_INCH,
    }


# Phase diagrams


def make_diagram(data: Cells, heatmap: Figure | None) -> Diagram | None:
    """Return the map that `overfit plot heatmap` draws of these cells, as numbers.

    Each point has the heatmap's statistic with its 95 % interval, the least and the greatest value
    over seeds, and the numbers of seeds with a value and without one. None where these cells make
    no map, or one with too few or too many points, one colour, or no number at half of its points
    or more.
    """
    if heatmap is None:
        return None
    try:
        plan = lay_out_map(data, resolve_options(heatmap, FigureOptions(), data))
    except UserError:
        return None
    lengths, study = (len(plan.x.values), len(plan.y.values)), data.study
    is_sparse = 2 * len(plan.numbers) <= np.prod(lengths) * len(plan.panels)
    if plan.nothing or is_sparse or not FEWEST_VALUES <= max(lengths) <= MOST_VALUES:
        return None
    shown = plan.value == study.headline and study.threshold is not None and all(study.sides)
    threshold = study.threshold if shown else None
    colours = matplotlib.colormaps[RC["image.cmap"]](np.linspace(0, 1, SHADES))
    ends = (plan.norm.vmin, float(plan.norm.inverse(0.5)), plan.norm.vmax)
    return {
        "value": typeset(plan.label),
        "mean": MEANS[plan.mean],
        "why": plan.why,
        "x": _axis(plan.x),
        "y": _axis(plan.y),
        "colours": [to_hex(colour) for colour in colours],
        **dict(zip(("low", "middle", "high"), map(_json_number, ends), strict=True)),
        **({"threshold": threshold, "sides": list(study.sides)} if shown else {}),
        "panels": [
            {"title": typeset(part.title), "points": _points(plan, part, threshold)}
            for part in plan.panels
        ],
    }


def _axis(axis: Axis) -> dict[str, Any]:
    for digits in (2, 3, 4, 17):
        ticks = [
            typeset(brief(round_digits(value, digits) if isinstance(value, float) else value))
            for value in axis.values
        ]
        if len(set(ticks)) == len(axis.values):
            break
    values = [typeset(brief(value)) for value in axis.values]
    return {"label": typeset(axis.label), "values": values, "ticks": ticks}


def _points(plan: Map, part: MapPanel, threshold: float | None) -> dict[str, list[float | None]]:
    """What is known at each point, row by row: a list by name; None where there is no number."""
    every = finite_column(plan.data.trained, plan.value)
    low, high = part.interval(natural_bounds(np.asarray(every, dtype=np.float64)))
    samples = np.where(np.isfinite(part.samples), part.samples, np.nan)
    several = np.isfinite(part.number) & (part.arrived > 1)
    above = np.where(part.arrived > 0, (samples > (threshold or 0.0)).sum(axis=-1), np.nan)
    shades = plan.norm(np.ma.masked_invalid(part.number)).filled(np.nan)
    columns: dict[str, NDArray[Any]] = {
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
    return round_digits(number, 4) if pd.notna(number) and np.isfinite(number) else None
