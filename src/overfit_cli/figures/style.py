"""One look for every figure: sizes of a paper's column, colours, ticks, and how to save."""

from __future__ import annotations

import io
import re
import textwrap
from pathlib import Path
from typing import Any

import matplotlib.style
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import AutoLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator

from overfit_cli.errors import UserError
from overfit_cli.files import reason_of, write_whole

COLUMN = 3.4  # inches: one column of a two-column paper
WIDE, HIGH = 54, 34  # about how many letters fit across a column, and along its y axis
COLOUR_MAP = "viridis"
HIGHLIGHT = "#D55E00"  # lies outside the colour map, and is told from it by the colour-blind
# Okabe and Ito's palette, with grey in place of its yellow, which vanishes on white.
PALETTE = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#000000",
    "#999999",
)
Legend = list[tuple[Any, str]]  # an artist, or a container of some, and its text
FORMATS = {".png": "png", ".pdf": "pdf", ".svg": "svg"}
_NO_DATES = {
    "png": {},
    "pdf": {"CreationDate": None},
    "svg": {"Date": None},
}
_RC = {
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

# Decorates whatever draws. It starts from matplotlib's defaults, so that a user's own matplotlibrc
# changes nothing, and it leaves no trace after the call.
styled = matplotlib.style.context(_RC, after_reset=True)


def new_figure(*, width: float = COLUMN, height: float = 2.6) -> tuple[Figure, Axes]:
    """Return an empty figure, in inches, and its axes; call it in a `styled` function."""
    figure = Figure(figsize=(width, height))
    return figure, figure.add_subplot()


def new_panels(
    count: int, *, height: float = 2.6, share_y: bool = True
) -> tuple[Figure, list[Axes]]:
    """Return a figure of `count` axes that share x, two or three in a row; call it `styled`.

    One panel is a column of a paper wide, several are two columns. They share y too unless told
    otherwise.
    """
    if count == 1:
        figure, axes = new_figure(height=height)
        return figure, [axes]
    across = 2 if count == 4 else min(count, 3)
    rows = -(-count // across)
    figure = Figure(figsize=(2 * COLUMN + 0.2, height * (0.9 if rows == 1 else 0.8 * rows)))
    grid = figure.subplots(rows, across, sharex=True, sharey=share_y, squeeze=False)
    for spare in grid.ravel()[count:]:
        spare.remove()
    for axes in grid.ravel()[max(0, count - across) : count]:
        axes.tick_params(labelbottom=True)
    return figure, list(grid.ravel()[:count])


def title_panels(figure: Figure, all_axes: list[Axes], titles: list[str], shared: str) -> None:
    """Give panels their titles, and what holds for all of them once."""
    if len(all_axes) == 1:
        all_axes[0].set_title(wrapped("\n".join(filter(None, [titles[0], shared])), WIDE))
        return
    for axes, title in zip(all_axes, titles, strict=True):
        axes.set_title(wrapped(title, int(0.95 * WIDE * axes.get_position().width * 2)))
    figure.suptitle(wrapped(shared, 2 * WIDE), x=0.01, ha="left", fontsize=7)


def legend_below(figure: Figure, handles: Legend, columns: int = 3) -> None:
    """Put a legend under the axes, in as many columns as fit."""
    if not handles:
        return
    artists = [artist for artist, _ in handles]
    fit = int(WIDE * figure.get_figwidth() / COLUMN)
    texts = [wrapped(text, fit) for _, text in handles]
    while columns > 1 and _letters_across(texts, columns) > fit:
        columns -= 1
    figure.legend(artists, texts, loc="outside lower center", ncols=columns)


def _letters_across(texts: list[str], columns: int) -> int:
    """Return about how many letters wide a legend is; each column's symbol counts as four."""
    widths = [max(map(len, text.split("\n"))) for text in texts]
    parts = np.array_split(widths, min(columns, len(widths)))  # as matplotlib fills columns
    return sum(int(part.max()) + 4 for part in parts)


def wrapped(text: str, letters: int) -> str:
    """Break lines longer than about `letters`, between words and not within mathtext."""
    held = re.sub(r"\$[^$]*\$", lambda math: math[0].replace(" ", "\xa0"), text)
    lines = [textwrap.fill(line, letters, break_long_words=False) for line in held.split("\n")]
    return "\n".join(lines).replace("\xa0", " ")


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


def brief(value: object) -> str:
    """Write a parameter's value for a title or a legend: numbers with up to four digits."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def plain(value: float) -> str:
    """Write a number for a tick: `0.05`, `200`, and the very small and large as powers of ten."""
    if value == 0 or 1e-3 <= abs(value) < 1e5:
        return f"{value:g}"
    return power(value)


def power(value: float) -> str:
    """Write a number other than zero with a power of ten, in mathtext."""
    mantissa, exponent = f"{value:.2e}".split("e")
    factor = "" if float(mantissa) == 1 else rf"{float(mantissa):g} \cdot "
    return f"${factor}10^{{{int(exponent)}}}$"


@styled
def image(figure: Figure, kind: str) -> bytes:
    """Return `figure` as the content of a file of the kind png, pdf or svg."""
    drawn = io.BytesIO()
    figure.savefig(drawn, format=kind, dpi=300, metadata=_NO_DATES[kind])
    return drawn.getvalue()


def save(figure: Figure, path: Path) -> None:
    """Write `figure` to `path`, whole or not at all; the name's ending says in which format.

    Raises:
        UserError: if the ending isn't .png, .pdf or .svg, or the file can't be written.
    """
    kind = FORMATS.get(path.suffix.lower())
    if kind is None:
        raise UserError(f"--out {path}: the file's name must end in .png, .pdf or .svg.")
    content = image(figure, kind)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, content)
    except OSError as error:
        raise UserError(
            f"--out {path}: the figure can't be written there ({reason_of(error)});"
            " name a file in a folder that takes it."
        ) from None
