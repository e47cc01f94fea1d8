"""Style of figures: fonts, sizes, colours, numbers.

One style for every figure: sizes of a paper's column, colours, ticks, numbers, legends.

Settings of matplotlib's as JSON, for a figure's record; anybody may have edited that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, cast

import matplotlib
import numpy as np
from cycler import Cycler, cycler
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.ticker import AutoLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator
from matplotlib.typing import ColorType
from pydantic import JsonValue

from overfit_cli.core.text import UserError, shortened
from overfit_cli.figures.labels import plain, power, typeset, wrapped

COLUMN = 3.4  # inches: one column of a two-column paper
PAGE = 7.0  # and both
WIDE, HIGH = 54, 34  # about how many letters fit across a column, and along its y axis
HIGHLIGHT = "#D55E00"  # lies outside the colour map, and is told from it by the colour-blind
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
PALETTE = tuple(f"C{place}" for place in range(len(_COLOURS)))  # a user's style may name others
DIVERGING = "RdBu_r"  # blue below, red above
MUTED = ("#BFD7EA", "#F6D5B8")  # two sides, on which black text can be read
THRESHOLD: dict[str, Any] = {"color": "0.4", "linestyle": (0, (4, 2)), "linewidth": 0.8}
_NAMED = 6
Legend = list[tuple[Any, str]]  # an artist, or a container of some, and its text
RC: dict[str, Any] = {
    "axes.prop_cycle": cycler(color=_COLOURS),
    "image.cmap": "viridis",
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
"""Sizes of fonts that grow with `font.size`."""


def points(name: str) -> float:
    """Return a size of fonts in use, by the name of its setting."""
    settings: Any = matplotlib.rcParams
    size: float = FontProperties(size=settings[name]).get_size_in_points()
    return size


def colours_of_map(shares: Sequence[float]) -> list[ColorType]:
    """Return colours of the colour map in use, at shares from 0 to 1 of it."""
    return [tuple(rgb) for rgb in matplotlib.colormaps[matplotlib.rcParams["image.cmap"]](shares)]


def named_of(count: int) -> list[int]:
    """Return which of so many lines a legend names: all, or a few of more than have colours."""
    few = count if count <= len(PALETTE) else _NAMED
    return [int(place) for place in np.unique(np.linspace(0, count - 1, few).round())]


def legend_below(figure: Figure, handles: Legend, columns: int = 3, heading: str = "") -> None:
    """Put a legend under the axes, in as many columns as fit, with a heading if there is one."""
    if not handles:
        return
    artists = [artist for artist, _ in handles]
    size = points("legend.fontsize")
    fit = int(WIDE * figure.get_figwidth() / COLUMN * 7 / size)
    texts = [wrapped(text, fit) for _, text in handles]
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
    """Return about how many letters wide a legend is; each column's symbol counts as four."""
    widths = [max(len(typeset(line)) for line in text.split("\n")) for text in texts]
    parts = np.array_split(widths, min(columns, len(widths)))  # as matplotlib fills columns
    return sum(int(part.max()) + 4 for part in parts)


def log_ticks(axis: Axis, low: float, high: float) -> None:
    """Give a logarithmic axis from `low` to `high` ticks, as plain numbers where short."""
    short = low >= 1e-3 and high < 1e5
    axis.set_minor_locator(NullLocator())
    axis.set_minor_formatter(NullFormatter())
    write = plain if short else power
    axis.set_major_formatter(FuncFormatter(lambda value, _: write(value)))
    if high / low < 4:
        axis.set_major_locator(AutoLocator())
    else:
        subs = (1.0, 2.0, 5.0) if high / low < 300 else (1.0,)
        axis.set_major_locator(LogLocator(subs=subs))


_CYCLE = "axes.prop_cycle"


def settings_as_json(settings: Mapping[str, Any]) -> dict[str, JsonValue]:
    """Return settings as JSON has them; a cycle is the lists of its properties."""
    return {name: _as_json(value) for name, value in settings.items()}


def _as_json(value: Any) -> JsonValue:
    if isinstance(value, Cycler):
        return {name: _as_json(values) for name, values in value.by_key().items()}
    if isinstance(value, list | tuple):
        return [_as_json(one) for one in value]
    if isinstance(value, Enum):
        return _as_json(value.value)
    return value if isinstance(value, bool | int | float | None) else str(value)


def settings_of_json(recorded: Mapping[str, JsonValue]) -> dict[str, Any]:
    """Return settings again, as `settings_as_json` gave them.

    Raises:
        UserError: if matplotlib doesn't take them, or would run code for them: it evaluates a cycle
            that is a text, and LaTeX can do more than set text.
    """
    if not isinstance(recorded.get(_CYCLE, {}), dict):
        raise UserError(f"its style has {_CYCLE} as a text, which some matplotlibs run as code.")
    try:
        settings = {name: _from_json(value) for name, value in recorded.items()}
        read = dict(matplotlib.RcParams(settings))
    except Exception as error:  # matplotlib expects texts, and trips over what else there may be
        said = shortened(str(error).strip())
        raise UserError(f"its style is none of matplotlib's: {said}.") from None
    if read.get("text.usetex"):
        raise UserError("its style has LaTeX set the text, which isn't run for a file's sake.")
    return {str(name): value for name, value in read.items()}


def _from_json(value: JsonValue) -> Any:
    return cycler(**cast("dict[str, list[Any]]", value)) if isinstance(value, dict) else value
