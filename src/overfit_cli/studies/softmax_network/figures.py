"""Lines over a parameter on logarithmic axes, one for each network: what the figures share."""

from __future__ import annotations

import string
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import matplotlib.axes
import numpy as np
import pandas as pd
from matplotlib.lines import Line2D
from matplotlib.typing import ColorType, LineStyleType

from overfit_cli.core.arrays import Floats
from overfit_cli.core.cells import Cells
from overfit_cli.core.errors import UserError
from overfit_cli.core.parameters import StudyParameters, describe
from overfit_cli.core.text import plural
from overfit_cli.figures.axes import Axis, log_ticks
from overfit_cli.figures.labels import (
    brief,
    is_word,
    short_setting,
    value_label,
)
from overfit_cli.figures.picture import Picture
from overfit_cli.figures.style import COLUMN, MARKERS, PAGE, Legend, band_look, value_colour
from overfit_cli.studies.softmax_network.convergence.parameters import SoftmaxConvergenceParameters
from overfit_cli.studies.softmax_network.powers import fitted_power


@dataclass(frozen=True)
class Look:
    """The style of a line, and its name in a legend."""

    name: str
    colour: ColorType
    marker: str


def looks_of(parameters: type[StudyParameters], name: str) -> Mapping[str, Look]:
    """Return the look of each choice of a parameter, by the choice."""
    info = describe(parameters)[name]
    return {
        choice: Look(
            info.value_labels.get(choice, choice), value_colour(info, choice) or "black", marker
        )
        for choice, marker in zip(info.choices, MARKERS, strict=False)
    }


NETWORKS = looks_of(SoftmaxConvergenceParameters, "activation")


def done_cells(data: Cells, varying: Iterable[str]) -> pd.DataFrame:
    """Return the cells that are done."""
    if undrawn := [name for name in data.varying() if name not in {*varying}]:
        vary, each = ("varies", "it") if len(undrawn) == 1 else ("vary", "each")
        raise UserError(
            f"{' and '.join(undrawn)} {vary} here, and this figure doesn't draw that; choose one "
            f"value of {each}, as by the condition {undrawn[0]}=VALUE."
        )
    done = data.trained[data.trained["status"] == "done"]
    if done.empty:
        raise UserError("No cell is done here.")
    return done


def new_grid(
    rows: int,
    columns: int,
    *,
    one_x: bool = True,
    one_y: bool = True,
    heights: Sequence[float] = (),
    least: float = 1.5,
) -> tuple[Picture, np.ndarray]:
    """Return a figure with a grid of axes.

    Args:
        heights: those of the rows, in inches; by default 1.7 each.
        least: the least width of a column at which it can be read, in inches.
    """
    width = min(COLUMN * max(1.0, 0.8 * columns), PAGE)
    heights = heights or [1.7] * rows
    figure = Picture(width, sum(heights) + 0.7, least=least * columns)
    grid = figure.subplots(
        rows,
        columns,
        sharex="col" if one_x else False,
        sharey="row" if one_y else False,
        squeeze=False,
        gridspec_kw={"height_ratios": heights},
    )
    return figure, grid


def letter_panels(all_axes: Iterable[matplotlib.axes.Axes]) -> None:
    """Begin the titles of panels with letters, in order: `(a) softmax`."""
    for letter, axes in zip(string.ascii_lowercase, all_axes, strict=False):
        axes.set_title(f"({letter}) {axes.get_title(loc='left')}".rstrip())


def quartiles_over_seeds(cells: pd.DataFrame, x: str, value: str) -> pd.DataFrame:
    """Return the median over seeds and the quartiles, as `low`, `middle` and `high` by x.

    Quartiles are numbers of seeds, and the median of an even number is the geometric mean of the
    middle two, so that 0 and infinite numbers count, and stay. Negative numbers count as 0, and a
    cell without a number as beyond all others.
    """
    rows = {}
    for place, numbers in cells[value].astype(float).fillna(np.inf).groupby(cells[x]):
        ordered = np.sort(numbers.clip(lower=0).to_numpy())
        tail, lower, upper = (len(ordered) - 1) // 4, (len(ordered) - 1) // 2, len(ordered) // 2
        median = np.sqrt(ordered[lower] * ordered[upper])  # with 0 or infinity, these
        rows[place] = (ordered[tail], median, ordered[-1 - tail])
    return pd.DataFrame.from_dict(rows, orient="index", columns=["low", "middle", "high"])


def draw_series(
    axes: matplotlib.axes.Axes,
    cells: pd.DataFrame,
    x: str,
    value: str,
    *,
    by: str = "activation",
    looks: Mapping[str, Look] = NETWORKS,
    dash: LineStyleType = "-",
    marker: bool = True,
    joined: bool = True,
    within: tuple[float, float] = (0.0, np.inf),
) -> None:
    """Draw medians over seeds with bands of the middle half, a line per value of `by`.

    Args:
        marker: whether points have markers; then lines that would coincide stand side by side.
        joined: whether there is a line and a band; else points have bars.
        within: the ends of what could be measured. A median beyond has an open marker at the end.
    """
    present = [name for name in looks if (cells[by] == name).any()]
    numbers = np.sort(cells[x].unique()).astype(float)
    for index, name in enumerate(present):
        look = looks[name]
        table = quartiles_over_seeds(cells[cells[by] == name], x, value)
        shift = index - (len(present) - 1) / 2
        beside = (numbers[-1] / numbers[0]) ** ((0.012 if joined else 0.04) * shift)
        across = table.index.to_numpy(float) * (beside if marker else 1.0)
        low, middles, high = (np.clip(table[column], *within) for column in table)
        is_open = ~table["middle"].between(*within)
        drawn = np.isfinite(middles) & (middles > 0)
        if not drawn.any():
            continue
        if joined:
            axes.plot(across[drawn], middles[drawn], linestyle=dash, color=look.colour)
            axes.fill_between(across, low, high, **band_look(look.colour))
        else:
            axes.vlines(across[drawn], low[drawn], high[drawn], colors=[look.colour])
        for hollow in (False, True) if marker else ():
            chosen = drawn & (is_open == hollow)
            if not chosen.any():
                continue
            face = "white" if hollow else look.colour
            axes.plot(
                across[chosen],
                middles[chosen],
                look.marker,
                color=look.colour,
                markersize=3.5,
                mfc=face,
            )
    axes.set_xscale("log")
    axes.set_yscale("log")
    if marker:
        tick_samples(axes, x, numbers, 0.07 if joined else 0.2)
    else:
        log_ticks(axes.xaxis, float(numbers[0]), float(numbers[-1]))
    log_ticks(axes.yaxis, *axes.get_ylim())


def tick_samples(axes: matplotlib.axes.Axes, x: str, numbers: Floats, margin: float) -> None:
    """Put ticks along x at the sampled numbers where they are few, else at round ones."""
    values = tuple(int(number) for number in numbers)
    Axis(x, "", values, "log", whole=True).place_ticks(axes.xaxis, numbers[0], numbers[-1])
    if len(numbers) > 1:
        factor = (numbers[-1] / numbers[0]) ** margin
        axes.set_xlim(numbers[0] / factor, numbers[-1] * factor)


def say_how_averaged(
    figure: Picture, cells: pd.DataFrame, addition: str = "", *, joined: bool = True
) -> None:
    """Put in a figure's caption what its lines and bands are, and what else is to be said."""
    middle, spread = ("Lines", "bands") if joined else ("Markers", "bars")
    seeds = plural(cells["seed"].nunique(), "seed")
    figure.facts.append(f"{middle}: medians of {seeds}, {spread}: the middle half{addition}.")


def misses_in_words(data: Cells) -> str:
    """Write how many cells don't come to ε, at which settings, and how they count; else nothing."""
    missed = data.trained[data.trained["steps_to_epsilon"].isna()]
    if missed.empty:
        return ""
    count, verb = plural(len(missed), "cell"), "doesn't" if len(missed) == 1 else "don't"
    settings = _common_settings(data, missed)
    where = f", at {settings}," if settings else ""
    counts = "counts" if len(missed) == 1 else "count"
    return (
        f"{count}{where} {verb} come to ε within the steps and {counts} as slower than all others"
    )


def _common_settings(data: Cells, cells: pd.DataFrame, most: int = 4) -> str:
    """Write what some of a figure's cells have in common: `exp, d = 3`; empty if nothing.

    Args:
        most: the largest number of values of a parameter that are listed.
    """
    texts = []
    for name, values in data.values.items():
        shared = [value for value in values if value in set(cells[name].tolist())]
        if shared and len(shared) < len(values) and len(shared) <= most:
            first, *others = shared
            word = is_word(data.schema, name)
            write = partial(value_label, data.schema, name) if word else brief
            texts.append(", ".join([short_setting(data.schema, name, first), *map(write, others)]))
    return ("; " if any(", " in text for text in texts) else ", ").join(texts)


def write_powers(
    row: Sequence[matplotlib.axes.Axes],
    parts: Sequence[pd.DataFrame],
    x: str,
    value: str,
    heading: str,
) -> None:
    """Write each network's power of x into the lower left of panels, and make room for it."""
    texts = []
    for cells in parts:
        powers = {
            look.name: fitted_power(cells[cells["activation"] == activation], x, value)
            for activation, look in NETWORKS.items()
        }
        texts.append([f"{name}: {power}" for name, power in powers.items() if power])
    low, high = row[0].get_ylim()
    lines = 1 + max(map(len, texts))
    row[0].set_ylim(low * (low / high) ** (0.09 * lines), high)
    for axes, text in zip(row, texts, strict=True):
        words = "\n".join([heading, *text]) if text else ""
        axes.text(0.03, 0.03, words, transform=axes.transAxes, va="bottom", size=6, linespacing=1.1)


def legend_of(
    cells: pd.DataFrame,
    extra: Sequence[tuple[LineStyleType, str]] = (),
    *,
    by: str = "activation",
    looks: Mapping[str, Look] = NETWORKS,
    colour: ColorType = "0.4",
) -> Legend:
    """Return a legend of the lines that there are, and of what else is drawn in one colour."""
    lines: Legend = [
        (Line2D([], [], color=look.colour, marker=look.marker, markersize=3), look.name)
        for line_value, look in looks.items()
        if (cells[by] == line_value).any()
    ]
    return lines + [(Line2D([], [], color=colour, linestyle=dash), text) for dash, text in extra]
