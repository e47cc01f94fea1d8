"""One style for every figure: a paper's sizes, colours, markers, ticks and legends.

A user's style sheet and size lie above it. A word, and a number with declared shades, has the same
colour and marker in every figure.
"""

from __future__ import annotations

import contextvars
import logging
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb, to_rgba
from matplotlib.font_manager import FontProperties
from matplotlib.typing import ColorType, LineStyleType

from overfit_cli.core.errors import BadValue, UserError
from overfit_cli.core.parameters import ParameterInfo, Value, describe
from overfit_cli.core.study import AnyStudy
from overfit_cli.core.text import shorten

COLUMN = 3.4  # inches: one column of a two-column paper
PAGE = 7.0  # and both
WIDE, HIGH = 54, 34  # letters that fit across a column, and along its y axis, roughly
HIGHLIGHT = "#D55E00"  # not in the colour map, and distinct for colour-blind readers
_SHEET = Path(__file__).parent / "overfit.mplstyle"
RC: Any = matplotlib.rc_params_from_file(str(_SHEET), use_default_template=False)
"""The settings of every figure, as a style sheet of matplotlib's."""
_CYCLE = "axes.prop_cycle"
PALETTE = tuple(f"C{number}" for number in range(len(RC[_CYCLE])))  # of the style in use
MARKERS = "os^Dvp*P"
DASHES: tuple[LineStyleType, ...] = ("-", "--", ":", "-.")
DIVERGING = "RdBu_r"  # blue below, red above
MUTED = ("#BFD7EA", "#F6D5B8")  # two sides; black text is legible on both
BOUND: dict[str, Any] = {"color": "black", "linestyle": (0, (4, 2)), "linewidth": 1.0}
"""The line of a paper's bound; a corrected one is `:`."""
THRESHOLD: dict[str, Any] = {"color": "0.4", "linestyle": (0, (4, 2)), "linewidth": 0.8}
Legend = list[tuple[Any, str]]  # an artist, or a container of artists, and its text
SIZES = [name for name in RC if re.search(r"labelsize|titlesize|fontsize$", name)]
"""The sizes of fonts that scale with `font.size`."""


# The look that the user wants

SMALLEST, LARGEST = 0.5, 60.0  # inches
LEAST_DPI, MOST_DPI = 20, 2400


@dataclass(frozen=True)
class Look:
    """The size and style of a figure.

    Attributes:
        width, height: in inches; None for the figure's own.
        style: the path of a style sheet, with the matplotlib settings in it.
    """

    width: float | None = None
    height: float | None = None
    style: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def dpi(self) -> float:
        """Dots per inch of PNG files, and of what is no line in the others."""
        dots = self.settings.get("savefig.dpi", RC["savefig.dpi"])
        return float(self.settings.get("figure.dpi", 100) if dots == "figure" else dots)


current_look: contextvars.ContextVar[Look] = contextvars.ContextVar("look", default=Look())  # noqa: B039
"""The look of pictures that are made now."""

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*[x×]\s*(\d+(?:\.\d+)?)\s*(in|cm|mm)?")
_INCHES = {"in": 1.0, "cm": 1 / 2.54, "mm": 1 / 25.4}


def read_look(size: str | None, style: Path | None) -> Look:
    """Return the look that these options describe."""
    width, height = (None, None) if size is None else _read_size(size)
    if style is None:
        return Look(width, height)
    path = style.as_posix().encode(errors="backslashreplace").decode()
    return Look(width, height, path, _read_style(style))


def _read_size(text: str) -> tuple[float, float | None]:
    widths = {"column": COLUMN, "page": PAGE}
    if text in widths:
        return widths[text], None
    match = _SIZE.fullmatch(text.strip().lower())
    if match is None:
        accepts = "it takes column, page, or WIDTHxHEIGHT in inches, such as 3.4x2.6, or 85x65mm."
        raise BadValue("size", shorten(text), accepts)
    unit = _INCHES[match[3] or "in"]
    width, height = float(match[1]) * unit, float(match[2]) * unit
    if not all(SMALLEST <= side <= LARGEST for side in (width, height)):
        accepts = f"both sides are at least {SMALLEST:g} and up to {LARGEST:g} inches."
        raise BadValue("size", shorten(text), accepts)
    return width, height


def _read_style(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise BadValue("style", str(path), "there is no such file; it takes a .mplstyle file.")
    log, said, settings = logging.getLogger("matplotlib"), list[str](), dict[str, Any]()

    def hear(record: logging.LogRecord) -> bool:  # unknown settings, which matplotlib ignores
        said.append(record.getMessage())
        return False

    log.addFilter(hear)
    try:
        read = matplotlib.rc_params_from_file(str(path), True, use_default_template=False)
        settings = {str(name): value for name, value in read.items()}
    except (ValueError, KeyError, OSError, UnicodeDecodeError) as error:
        said.insert(0, str(error))
    finally:
        log.removeFilter(hear)
    flaw, dots = "", Look(settings=settings).dpi
    if said:
        reason = re.sub(r" in file .*?, line", ", line", said[0].strip().split("\n")[0])
        flaw = f"it is no matplotlib style sheet: {reason.removesuffix('.')}"
    elif _CYCLE in settings and not len(settings[_CYCLE]):
        flaw = f"{_CYCLE} is empty"
    elif (colours := settings.get("image.cmap", "viridis")) not in matplotlib.colormaps:
        flaw = f"matplotlib has no colour map {colours}, its image.cmap"
    elif not LEAST_DPI <= dots <= MOST_DPI:
        flaw = f"its savefig.dpi is {dots:g}; it takes {LEAST_DPI} to {MOST_DPI} dots per inch"
    elif settings.get("text.usetex") and shutil.which("latex") is None:
        flaw = "text.usetex needs LaTeX, which isn't installed here"
    if flaw:
        raise BadValue("style", str(path), f"{flaw}.")
    return settings


def look_of_record(recorded: Look) -> Look:
    """Return the look that a figure's record holds; its style sheet is read again."""
    sides = [side for side in (recorded.width, recorded.height) if side is not None]
    if not all(SMALLEST <= side <= LARGEST for side in sides):
        raise UserError(f"its record names sides of {sides} inches.")
    settings = _read_style(Path(recorded.style)) if recorded.style else {}
    if settings.get("text.usetex"):  # a record, and a style sheet beside it, may have been sent
        raise UserError(f"{recorded.style} runs LaTeX, which the style of a record may not.")
    return replace(recorded, settings=settings)


def points(name: str) -> float:
    """Return the current font size, in points, of a setting."""
    settings: Any = matplotlib.rcParams
    return float(FontProperties(size=settings[name]).get_size_in_points())


def letters_across(axes: Axes, size: str) -> int:
    """Return about how many letters of a size, such as `axes.titlesize`, fit across axes."""
    figure = axes.get_figure(root=True)
    width = axes.get_position().width * (figure.get_figwidth() if figure else COLUMN)
    return max(1, int(165 * width / points(size)))


# Colours, markers and dashes

LIGHTEST = 0.8
"""The share of the colour map that shades use: above it they vanish on white."""

Settings = Sequence[Mapping[str, Value]]
"""The values of the parameters that vary, of each line; all lines name the same parameters."""


@dataclass(frozen=True)
class LineLook:
    """The look of a line; the marker is empty where there are more lines than markers."""

    colour: ColorType
    marker: str
    dash: LineStyleType


def line_looks(study: AnyStudy, settings: Settings) -> list[LineLook]:
    """Return the look of each line.

    One parameter has colours: the only one, a word, or a number with declared shades. The others
    together have markers and dashes. Without such a parameter each line has a colour.
    """
    name = colour_parameter(study, settings) or ""
    every = [line[name] if name else number for number, line in enumerate(settings)]
    values = list(dict.fromkeys(every))
    colours = dict(zip(values, value_colours(study, name, values), strict=True))
    if len(values) == len(settings):  # the others go with it
        info = describe(study.parameters).get(name)
        order = info.choices if info is not None and info.kind == "literal" else values
        marks = dict(zip(order, MARKERS, strict=False)) if len(values) <= len(MARKERS) else {}
        dashes = DASHES if _are_alike(list(colours.values())) else DASHES[:1] * len(values)
        looks = zip(values, dashes, strict=False)
        return [LineLook(colours[value], marks.get(value, ""), dash) for value, dash in looks]
    others = [tuple(line[key] for key in line if key != name) for line in settings]
    ranks = {other: rank for rank, other in enumerate(dict.fromkeys(others))}
    return [
        LineLook(colours[value], MARKERS[ranks[other]], DASHES[ranks[other]])
        for value, other in zip(every, others, strict=True)
    ]


def _are_alike(colours: Sequence[ColorType]) -> bool:
    """Whether a few colours, as shades of near numbers, are hard to tell apart."""
    steps = np.linalg.norm(np.diff([to_rgb(colour) for colour in colours], axis=0), axis=1)
    return len(colours) <= len(DASHES) and bool((steps < 0.25).any())


def colour_parameter(study: AnyStudy, settings: Settings) -> str | None:
    """Return the parameter whose values have a colour each; None where each line has its own."""
    names, described = list(settings[0]) if settings else [], describe(study.parameters)
    if len(names) == 1:
        return names[0]
    known = [name for name in names if name in described]
    words = [name for name in known if described[name].kind == "literal"]
    for name in [*words, *(name for name in known if described[name].shades)]:
        others = {tuple(line[key] for key in line if key != name) for line in settings}
        if len(others) <= len(DASHES) or len({line[name] for line in settings}) == len(settings):
            return name
    return None


def value_colours(study: AnyStudy, name: str, values: Sequence[Value]) -> list[ColorType]:
    """Return the colours of a parameter's values.

    They are the registered ones where all have one. Other numbers have shades in their order, but
    for the colours of a user's own cycle, if it has enough. Other words, such as names of run
    directories, have the palette.
    """
    info = describe(study.parameters).get(name)
    registered = [None if info is None else value_colour(info, value) for value in values]
    known = [colour for colour in registered if colour is not None]
    if len(known) == len(values):
        return known
    of_user = len(current_look.get().settings.get(_CYCLE, ()))
    is_number = info is not None and info.kind in ("int", "float")
    most = max(1, of_user) if is_number else len(PALETTE)
    if len(values) > min(most, len(PALETTE)):
        return shades(len(values))
    return list(PALETTE[: len(values)])


def shades(count: int) -> list[ColorType]:
    """Return so many colours of the current colour map, in its order."""
    return [_shade(share) for share in np.linspace(0, 1, count)]


def _shade(share: float) -> ColorType:
    return matplotlib.colormaps[matplotlib.rcParams["image.cmap"]](LIGHTEST * float(share))


def value_colour(info: ParameterInfo, value: Value) -> ColorType | None:
    """Return the colour of a parameter's value, the same in every figure; None without one.

    A choice has the palette's colour at its position among all choices, a number with `shades` its
    shade of the colour map, by ratio.
    """
    if info.kind == "literal" and str(value) in info.choices[: len(PALETTE)]:
        return PALETTE[info.choices.index(str(value))]
    if info.shades is None or isinstance(value, str) or value <= 0:
        return None
    low, high = info.shades
    return _shade(np.clip(np.log(value / low) / np.log(high / low), 0, 1))


def band_look(colour: ColorType) -> dict[str, Any]:
    """Return the look of a band: a pale ground, and thin edges that tell bands apart."""
    ground, edge = to_rgba(colour, 0.15), to_rgba(colour, 0.5)
    return {"facecolor": ground, "edgecolor": edge, "linewidth": 0.4}
