"""The look of a figure that a user asks for: title, size, dots per inch, style sheet, colours."""

from __future__ import annotations

import logging
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from overfit_cli.core.text import UserError, is_text, nearest, shortened

if TYPE_CHECKING:
    from overfit_cli.figures.picture import Look
    from overfit_cli.figures.record import LookRecord


_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*[x×]\s*(\d+(?:\.\d+)?)\s*(in|cm|mm)?")


_INCHES = {"in": 1.0, "cm": 1 / 2.54, "mm": 1 / 25.4}


SMALLEST, LARGEST = 0.5, 60.0  # inches


LEAST_DPI, MOST_DPI = 20, 2400


LOG_NAMES = ("x", "y", "value")


def read_look(title: str | None, size: str | None, dpi: int | None, style: Path | None) -> Look:
    """Return the look that these options describe.

    Raises:
        UserError: if one of them can't be read.
    """
    from overfit_cli.figures.picture import Look

    if title is not None:
        _check_title(title)
    width, height = (None, None) if size is None else _read_size(size)
    if dpi is not None and not LEAST_DPI <= dpi <= MOST_DPI:
        raise UserError(
            f"--dpi {dpi}: it takes a whole number of at least {LEAST_DPI} and up to {MOST_DPI}."
        )
    settings = {} if style is None else _read_style(style)
    given = {} if dpi is None else {"dpi": dpi}
    return Look(title=title or "", width=width, height=height, settings=settings, **given)


def _check_title(text: str) -> None:
    """Refuse what matplotlib can't draw."""
    from matplotlib.cbook import is_math_text
    from matplotlib.mathtext import MathTextParser

    if not is_text(text):
        raise UserError("--title: it isn't text; it takes a text in UTF-8.")
    try:
        for line in filter(is_math_text, text.split("\n")):
            MathTextParser("path").parse(line)
    except ValueError as error:
        why = str(error).strip().split("\n")[-1].split(": ", 1)[-1].split("  ")[0]
        raise UserError(
            f"--title {shortened(text)}: what stands between dollar signs is no mathtext: {why}; "
            r"write \$ for the sign itself."
        ) from None


def _read_size(text: str) -> tuple[float, float | None]:
    from overfit_cli.figures.style import COLUMN, PAGE

    widths = {"column": COLUMN, "page": PAGE}
    if text in widths:
        return widths[text], None
    found = _SIZE.fullmatch(text.strip().lower())
    if found is None:
        raise UserError(
            f"--size {shortened(text)}: it takes column, page, or WIDTHxHEIGHT in inches, "
            "such as 3.4x2.6, or 85x65mm."
        )
    unit = _INCHES[found[3] or "in"]
    width, height = float(found[1]) * unit, float(found[2]) * unit
    if not all(SMALLEST <= side <= LARGEST for side in (width, height)):
        raise UserError(
            f"--size {shortened(text)}: both sides are at least {SMALLEST:g} and up to "
            f"{LARGEST:g} inches."
        )
    return width, height


def _read_style(path: Path) -> dict[str, Any]:
    """The settings of a style sheet of matplotlib's."""
    import matplotlib

    if not path.is_file():
        raise UserError(f"--style {path}: there is no such file; it takes a .mplstyle file.")
    log, said = logging.getLogger("matplotlib"), _Listener()
    log.addHandler(said)
    try:
        read = matplotlib.rc_params_from_file(
            str(path), fail_on_error=True, use_default_template=False
        )
    except (ValueError, KeyError, OSError, UnicodeDecodeError) as error:
        said.sentences.insert(0, str(error))
    finally:
        log.removeHandler(said)
    if said.sentences:  # what it doesn't know it logs, and passes over
        first = said.sentences[0].strip().split("\n")[0].removesuffix(".")
        why = re.sub(r" in file .*?, line", ", line", first)
        raise UserError(f"--style {path}: it is no style sheet of matplotlib's: {why}.")
    return _usable({str(name): value for name, value in read.items()}, f"--style {path}")


class _Listener(logging.Handler):
    """Keeps what is logged."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.sentences: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.sentences.append(record.getMessage())


def _usable(settings: dict[str, Any], named: str) -> dict[str, Any]:
    """Refuse settings that are well written, and with which nothing could be drawn here."""
    import matplotlib

    cycle, fonts = settings.get("axes.prop_cycle"), settings.get("font.family", [])
    if cycle is not None and not len(cycle):
        raise UserError(f"{named}: axes.prop_cycle is empty; it takes one colour or more.")
    colours = settings.get("image.cmap", "viridis")
    if colours not in matplotlib.colormaps:
        raise UserError(f"{named}: matplotlib has no colour map {colours}, its image.cmap.")
    if settings.get("text.usetex") and shutil.which("latex") is None:
        raise UserError(f"{named}: text.usetex needs LaTeX, which isn't installed here.")
    there = [font for font in fonts if _is_installed(font)]
    if fonts and not there:
        raise UserError(f"{named}: no font of font.family is installed: {', '.join(fonts)}.")
    return {**settings, **({"font.family": there} if fonts else {})}


def _is_installed(family: str) -> bool:
    from matplotlib.font_manager import font_family_aliases, fontManager

    return family in font_family_aliases or family in fontManager.get_font_names()


def look_of_record(record: LookRecord) -> Look:
    """Return the look that a figure's record holds; anybody may have written it.

    Raises:
        UserError: if nothing can be drawn so.
    """
    from overfit_cli.figures.style import settings_of_json

    sides = [side for side in (record.width, record.height) if side is not None]
    if not all(SMALLEST <= side <= LARGEST for side in sides):
        raise UserError(f"its record names sides of {sides} inches.")
    settings = _usable(settings_of_json(record.settings), "its style")
    look = read_look(record.title, None, record.dpi, None)
    return replace(look, width=record.width, height=record.height, settings=settings)


def checked_colour_map(name: str | None) -> str | None:
    """Return the name of a colour map.

    Raises:
        UserError: if matplotlib has none of that name.
    """
    if name is None:
        return None
    import matplotlib

    if name not in matplotlib.colormaps:
        close = nearest(name, matplotlib.colormaps)
        hint = close if close.startswith("did") else "viridis, cividis and RdBu are some."
        raise UserError(f"--cmap {shortened(name)}: matplotlib has no such colour map; {hint}")
    return name


def read_log(text: str | None) -> frozenset[str] | None:
    """Return which of x, y and value are logarithmic; None where nothing is said.

    Raises:
        UserError: if it names something else.
    """
    if text is None:
        return None
    names = [name.strip() for name in text.split(",")]
    if names == ["none"]:
        return frozenset()
    for name in names:
        if name not in LOG_NAMES:
            raise UserError(
                f"--log {shortened(text)}: it takes some of {', '.join(LOG_NAMES)}, "
                "commas between, or none."
            )
    return frozenset(names)
