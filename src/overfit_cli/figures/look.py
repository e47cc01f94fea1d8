"""Look of a figure: its size and a style sheet.

It is read from the user's options, or from a figure's record.
"""

from __future__ import annotations

import logging
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import Any

import matplotlib
from cycler import Cycler, cycler

from overfit_cli.core.errors import BadValue, UserError
from overfit_cli.core.text import shorten
from overfit_cli.figures.picture import Look
from overfit_cli.figures.style import COLUMN, PAGE

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*[x×]\s*(\d+(?:\.\d+)?)\s*(in|cm|mm)?")
_INCHES = {"in": 1.0, "cm": 1 / 2.54, "mm": 1 / 25.4}
_CYCLE = "axes.prop_cycle"

SMALLEST, LARGEST = 0.5, 60.0  # inches
LEAST_DPI, MOST_DPI = 20, 2400
LOG_NAMES = ("x", "y", "value")


def read_look(size: str | None, style: Path | None) -> Look:
    """Return the look that these options describe."""
    width, height = (None, None) if size is None else _read_size(size)
    return Look(width, height, {} if style is None else _read_style(style))


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
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.sentences: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.sentences.append(record.getMessage())


def _flaw(settings: Mapping[str, Any]) -> str:
    cycle, fonts = settings.get(_CYCLE), settings.get("font.family", [])
    colours = settings.get("image.cmap", "viridis")
    if cycle is not None and not len(cycle):
        return f"{_CYCLE} is empty; it takes one colour or more."
    if colours not in matplotlib.colormaps:
        return f"matplotlib has no colour map {colours}, its image.cmap."
    dots = Look(settings=settings).dpi
    if not LEAST_DPI <= dots <= MOST_DPI:
        return f"its dots per inch, savefig.dpi, are {dots:g}; it takes {LEAST_DPI} to {MOST_DPI}."
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
    return replace(recorded, settings=_settings_of_json(recorded.settings))


def _settings_of_json(recorded: Mapping[str, Any]) -> dict[str, Any]:
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


def read_laws(given: Sequence[str] | None) -> tuple[str, ...] | None:
    """Return the equations to draw, none for `none`; None without a choice."""
    if given is not None and "none" in given:
        if len(given) > 1:
            accepts = "none leaves out every equation; give one of the two."
            raise BadValue("law", next(text for text in given if text != "none"), accepts)
        return ()
    return None if given is None else tuple(given)


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
