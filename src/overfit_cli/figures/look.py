"""Look of a figure: title, size, dots per inch, style sheet, colours.

It is read from the user's options, or from a figure's record.
"""

from __future__ import annotations

import logging
import re
import shutil
from collections.abc import Mapping
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import Any

import matplotlib
from cycler import Cycler, cycler

from overfit_cli.core.errors import BadValue, UserError
from overfit_cli.core.text import is_text, shorten, suggestion
from overfit_cli.core.values import whole_number
from overfit_cli.figures.picture import Look
from overfit_cli.figures.style import COLUMN, PAGE

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*[x×]\s*(\d+(?:\.\d+)?)\s*(in|cm|mm)?")
_INCHES = {"in": 1.0, "cm": 1 / 2.54, "mm": 1 / 25.4}
_CYCLE = "axes.prop_cycle"

SMALLEST, LARGEST = 0.5, 60.0  # inches
LEAST_DPI, MOST_DPI = 20, 2400
LOG_NAMES = ("x", "y", "value")


def read_look(title: str | None, size: str | None, dpi: int | None, style: Path | None) -> Look:
    """Return the look that these options describe."""
    if title is not None:
        _check_title(title)
    width, height = (None, None) if size is None else _read_size(size)
    if dpi is not None:
        dpi = whole_number("dpi", dpi, LEAST_DPI, MOST_DPI)
    settings = {} if style is None else _read_style(style)
    resolution = {} if dpi is None else {"dpi": dpi}
    return Look(title=title or "", width=width, height=height, settings=settings, **resolution)


def _check_title(text: str) -> None:
    from matplotlib.cbook import is_math_text
    from matplotlib.mathtext import MathTextParser

    if not is_text(text):
        raise BadValue("title", None, "it isn't text; it takes a text in UTF-8.")
    try:
        for line in filter(is_math_text, text.split("\n")):
            MathTextParser("path").parse(line)
    except ValueError as error:
        reason = str(error).strip().split("\n")[-1].split(": ", 1)[-1].split("  ")[0]
        accepts = rf"the text between dollar signs is no mathtext: {reason}; write \$ for the sign."
        raise BadValue("title", shorten(text), accepts) from None


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
    log, listener = logging.getLogger("matplotlib"), _Listener()
    log.addHandler(listener)
    try:
        read = matplotlib.rc_params_from_file(
            str(path), fail_on_error=True, use_default_template=False
        )
    except (ValueError, KeyError, OSError, UnicodeDecodeError) as error:
        listener.sentences.insert(0, str(error))
    finally:
        log.removeHandler(listener)
    if listener.sentences:  # matplotlib logs unknown settings, and ignores them
        first = listener.sentences[0].strip().split("\n")[0].removesuffix(".")
        reason = re.sub(r" in file .*?, line", ", line", first)
        raise BadValue("style", str(path), f"it is no matplotlib style sheet: {reason}.")
    settings = {str(name): value for name, value in read.items()}
    if flaw := _flaw(settings):
        raise BadValue("style", str(path), flaw)
    return _drop_missing_fonts(settings)


class _Listener(logging.Handler):
    """A handler that keeps the logged messages."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.sentences: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.sentences.append(record.getMessage())


def _flaw(settings: Mapping[str, Any]) -> str:
    """Return the reason why well-formed settings cannot be drawn here; empty where they can."""
    cycle, fonts = settings.get(_CYCLE), settings.get("font.family", [])
    colours = settings.get("image.cmap", "viridis")
    if cycle is not None and not len(cycle):
        return f"{_CYCLE} is empty; it takes one colour or more."
    if colours not in matplotlib.colormaps:
        return f"matplotlib has no colour map {colours}, its image.cmap."
    if settings.get("text.usetex") and shutil.which("latex") is None:
        return "text.usetex needs LaTeX, which isn't installed here."
    if fonts and not any(map(_is_installed, fonts)):
        return f"no font of font.family is installed: {', '.join(fonts)}."
    return ""


def _drop_missing_fonts(settings: dict[str, Any]) -> dict[str, Any]:
    fonts = [font for font in settings.get("font.family", []) if _is_installed(font)]
    return {**settings, **({"font.family": fonts} if fonts else {})}


def _is_installed(family: str) -> bool:
    from matplotlib.font_manager import font_family_aliases, fontManager

    return family in font_family_aliases or family in fontManager.get_font_names()


def as_recorded(look: Look) -> Look:
    """Return a look with settings as JSON: a cycle of colours is its properties' lists by name."""
    return replace(look, settings={name: _as_json(value) for name, value in look.settings.items()})


def _as_json(value: Any) -> Any:
    if isinstance(value, Cycler):
        return {name: _as_json(values) for name, values in value.by_key().items()}
    if isinstance(value, list | tuple):
        return [_as_json(item) for item in value]
    if isinstance(value, Enum):
        return _as_json(value.value)
    return value if isinstance(value, bool | int | float | None) else str(value)


def look_of_record(recorded: Look) -> Look:
    """Return the look that a figure's record holds; the record may have been edited."""
    sides = [side for side in (recorded.width, recorded.height) if side is not None]
    if not all(SMALLEST <= side <= LARGEST for side in sides):
        raise UserError(f"its record names sides of {sides} inches.")
    read_look(recorded.title, None, recorded.dpi, None)
    return replace(recorded, settings=_settings_of_json(recorded.settings))


def _settings_of_json(recorded: Mapping[str, Any]) -> dict[str, Any]:
    """Return matplotlib's settings; none of them runs code or LaTeX."""
    if not isinstance(recorded.get(_CYCLE, {}), dict):
        raise UserError(f"its style has {_CYCLE} as a text, which some matplotlibs run as code.")
    try:
        given = {
            name: cycler(**value) if name == _CYCLE else value for name, value in recorded.items()
        }
        settings = {str(name): value for name, value in matplotlib.RcParams(given).items()}
    except Exception as error:  # matplotlib expects texts, and fails in many ways on others
        raise UserError(f"its style isn't matplotlib's: {shorten(str(error).strip())}.") from None
    if settings.get("text.usetex"):
        raise UserError("its style has LaTeX set the text, which isn't run for a file's sake.")
    if flaw := _flaw(settings):
        raise UserError(f"its style: {flaw}")
    return _drop_missing_fonts(settings)


def check_colour_map(name: str | None) -> str | None:
    """Return the name of a colour map."""
    if name is None:
        return None
    if name not in matplotlib.colormaps:
        close = suggestion(name, matplotlib.colormaps)
        hint = close if close.startswith("did") else "viridis, cividis and RdBu are some."
        raise BadValue("cmap", shorten(name), f"matplotlib has no such colour map; {hint}")
    return name


def read_log(text: str | None) -> frozenset[str] | None:
    """Return which of x, y and value are logarithmic; None without a choice."""
    if text is None:
        return None
    names = [name.strip() for name in text.split(",")]
    if names == ["none"]:
        return frozenset()
    for name in names:
        if name not in LOG_NAMES:
            accepts = f"it takes some of {', '.join(LOG_NAMES)}, separated by commas, or none."
            raise BadValue("log", shorten(text), accepts)
    return frozenset(names)
