"""One style for every figure: sizes of a paper's column, colours, ticks, numbers, legends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib
import numpy as np
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.axis import Axis, XAxis
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.ticker import (
    AutoLocator,
    FixedLocator,
    FuncFormatter,
    LogLocator,
    NullFormatter,
    NullLocator,
)
from matplotlib.typing import ColorType

from overfit_cli.core.arrays import Floats
from overfit_cli.core.parameters import ParameterInfo, Value
from overfit_cli.figures.labels import power, tick_number, typeset, wrap_text

COLUMN = 3.4  # inches: one column of a two-column paper
PAGE = 7.0  # and both
WIDE, HIGH = 54, 34  # letters that fit across a column, and along its y axis, roughly
HIGHLIGHT = "#D55E00"  # not in the colour map, and distinct for colour-blind readers
# Okabe and Ito's palette, with grey in place of its yellow, which vanishes on white.
_COLOURS = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#000000",
    "#999999",
)
PALETTE = tuple(f"C{number}" for number in range(len(_COLOURS)))  # the colours of the style in use
DIVERGING = "RdBu_r"  # blue below, red above
MUTED = ("#BFD7EA", "#F6D5B8")  # two sides; black text is legible on both
BOUND: dict[str, Any] = {"color": "black", "linestyle": (0, (4, 2)), "linewidth": 1.0}
"""The line of a paper's bound; a corrected one is `:`."""
THRESHOLD: dict[str, Any] = {"color": "0.4", "linestyle": (0, (4, 2)), "linewidth": 0.8}
_NAMED = 5
Legend = list[tuple[Any, str]]  # an artist, or a container of artists, and its text
RC: dict[str, Any] = {
    "axes.prop_cycle": cycler(color=_COLOURS),
    "image.cmap": "viridis",
    "savefig.dpi": 200,
    "font.size": 8,
    "axes.labelsize": 8,
    "axes.titlesize": 8,
    "axes.titlelocation": "left",
    "axes.titlepad": 4,
    "axes.linewidth": 0.6,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "legend.handlelength": 1.4,
    "legend.columnspacing": 1.2,
    "lines.linewidth": 1.2,
    "lines.markersize": 3.5,
    "hatch.linewidth": 0.5,
    "figure.constrained_layout.use": True,
    "figure.constrained_layout.w_pad": 0.03,
    "figure.constrained_layout.h_pad": 0.03,
    "pdf.fonttype": 42,  # TrueType: journals refuse matplotlib's default, type 3
    "svg.fonttype": "none",  # text stays text: searchable, and editable in a drawing program
    "svg.hashsalt": "overfit",  # the same figure gives the same bytes
}


SIZES = (
    "axes.labelsize",
    "axes.titlesize",
    "xtick.labelsize",
    "ytick.labelsize",
    "legend.fontsize",
)
"""The sizes of fonts that scale with `font.size`."""


def points(name: str) -> float:
    """Return the current font size, in points, of a setting."""
    settings: Any = matplotlib.rcParams
    size: float = FontProperties(size=settings[name]).get_size_in_points()
    return size


LIGHTEST = 0.8
"""The share of the colour map that shades use: above it they vanish on white."""


def shades(count: int) -> list[ColorType]:
    """Return so many colours of the current colour map, in its order."""
    return [_shade(share) for share in np.linspace(0, 1, count)]


def _shade(share: float) -> ColorType:
    colours = matplotlib.colormaps[matplotlib.rcParams["image.cmap"]]
    return colours(LIGHTEST * float(share))


def value_colour(info: ParameterInfo, value: Value) -> ColorType | None:
    """Return the colour of a parameter's value, the same in every figure; None without one.

    A choice has the palette's colour at its position among all choices, a number with `shades` its
    shade of the colour map, by ratio. A parameter of the model thereby fixes names and colours.
    """
    if str(value) in info.choices[: len(PALETTE)] and info.kind == "literal":
        return PALETTE[info.choices.index(str(value))]
    if info.shades is None or isinstance(value, str) or value <= 0:
        return None
    low, high = info.shades
    share = np.clip(np.log(value / low) / np.log(high / low), 0, 1)
    return _shade(share)


def band_look(colour: ColorType, *, ground: float = 0.15) -> dict[str, Any]:
    """Return the look of a band: a pale ground, and thin edges that tell bands apart.

    Args:
        ground: the share of the colour in the ground.
    """
    return {
        "facecolor": to_rgba(colour, ground),
        "edgecolor": to_rgba(colour, 0.5),
        "linewidth": 0.4,
    }


def named_lines(count: int) -> list[int]:
    """Return the indices of the lines in a legend: all, or a few if there are more than colours."""
    count_named = count if count <= len(PALETTE) else _NAMED
    return [int(index) for index in np.unique(np.linspace(0, count - 1, count_named).round())]


def legend_below(figure: Figure, handles: Legend, columns: int = 3, heading: str = "") -> None:
    """Put a legend under the axes, in as many columns as fit."""
    if not handles:
        return
    artists = [artist for artist, _ in handles]
    size = points("legend.fontsize")
    fit = int(WIDE * figure.get_figwidth() / COLUMN * 7 / size)
    texts = [wrap_text(text, fit) for _, text in handles]
    while columns > 1 and _letters_across(texts, columns) > fit:
        columns -= 1
    figure.legend(
        artists,
        texts,
        loc="outside lower center",
        ncols=columns,
        title=heading or None,
        title_fontsize=size,
    )


def _letters_across(texts: list[str], columns: int) -> int:
    widths = [max(len(typeset(line)) for line in text.split("\n")) for text in texts]
    parts = np.array_split(widths, min(columns, len(widths)))  # as matplotlib fills columns
    return sum(int(part.max()) + 4 for part in parts)


def log_ticks(axis: Axis, low: float, high: float) -> None:
    """Set the ticks of a logarithmic axis from `low` to `high`, as plain numbers where short."""
    short = low >= 1e-3 and high < 1e5
    axis.set_minor_locator(NullLocator())
    axis.set_minor_formatter(NullFormatter())
    write = tick_number if short else power
    axis.set_major_formatter(FuncFormatter(lambda value, _: write(value)))
    with np.errstate(over="ignore"):
        ratio = np.float64(high) / low
    if ratio < 4:
        axis.set_major_locator(AutoLocator())
        return
    locator = LogLocator(subs=(1.0,))
    for subs in ((1.0, 2.0, 5.0), (1.0, 2.0, 3.0, 5.0, 7.0)) if ratio < 300 else ():
        finer = LogLocator(subs=subs)
        ticks = _ticks_within(finer, low, high)
        shares = np.log(ticks) / np.log(ratio)
        if not _fit_along(axis, shares, [len(typeset(write(tick))) for tick in ticks]):
            break
        locator = finer
        if ticks.size >= _LEAST_TICKS:
            break
    axis.set_major_locator(locator)


def _ticks_within(locator: LogLocator, low: float, high: float) -> Floats:
    ticks = np.asarray(locator.tick_values(low, high))
    return ticks[(ticks >= low) & (ticks <= high)]


_LEAST_TICKS = 3
"""The number of ticks from which a logarithmic axis needs no finer ones."""


def log_steps(axes: Axes, last: float) -> None:
    """Scale the steps along x as log(t + 1), with ticks at 0 and at powers of ten."""
    axes.set_xscale("function", functions=(_log_from_zero, _exp_from_zero))
    decades = int(np.log10(max(last, 1.0)))
    stride = 1 + decades // _MOST_DECADES
    ticks = [0.0, *(10.0**decade for decade in range(0, decades + 1, stride))]
    texts = [power(tick) if tick >= 1e4 else tick_number(tick) for tick in ticks]
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda tick, _: texts[ticks.index(tick)]))
    axes.xaxis.set_minor_locator(NullLocator())


_MOST_DECADES = 5
"""The number of powers of ten from which some have no tick."""


def _log_from_zero(step: Floats) -> Floats:
    return np.log1p(np.maximum(step, -0.999))  # margins reach below step 0


def _exp_from_zero(scaled: Floats) -> Floats:
    return np.expm1(scaled)


def _fit_along(axis: Axis, shares: Floats, letters: Sequence[int]) -> bool:
    figure = axis.get_figure(root=True)
    if figure is None or not isinstance(axis, XAxis):
        return True
    room = axis.axes.get_position().width * figure.get_figwidth()
    needed = np.convolve(letters, [0.5, 0.5], "valid") + 0.5
    return bool((np.diff(shares) * room >= needed * points("xtick.labelsize") * 0.56 / 72).all())
