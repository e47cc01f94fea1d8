"""Picture that a figure is drawn on: its size and look, its panels, and its file."""

from __future__ import annotations

import contextvars
import functools
import io
import itertools
import string
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import matplotlib.style
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from overfit_cli.core.arrays import Floats
from overfit_cli.core.errors import BadValue
from overfit_cli.core.files import write_user_file
from overfit_cli.core.spreadsheet import csv_text
from overfit_cli.figures.fit import fit_labels, titles_collide
from overfit_cli.figures.labels import typeset, wrap_text
from overfit_cli.figures.numbers import drawn_numbers
from overfit_cli.figures.style import COLUMN, PAGE, RC, SIZES, WIDE, points

P = ParamSpec("P")
R = TypeVar("R")

FORMATS = {".png": "png", ".pdf": "pdf", ".svg": "svg", ".csv": "csv"}
NARROWEST_PANEL = 1.6  # inches
_LEAST_SIDE = 0.4  # inches, of axes
MOST_FITS = 4  # times that labels are wrapped: each makes the axes a little smaller
_NO_DATES = {
    "png": {},
    "pdf": {"CreationDate": None},
    "svg": {"Date": None},
}


@dataclass(frozen=True)
class Look:
    """The size and style of a figure.

    Attributes:
        width, height: in inches; None for the figure's own.
    """

    width: float | None = None
    height: float | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def dpi(self) -> float:
        """Dots per inch of PNG files, and of what is no line in the others."""
        dots = self.settings.get("savefig.dpi", RC["savefig.dpi"])
        return float(self.settings.get("figure.dpi", 100) if dots == "figure" else dots)


_look: contextvars.ContextVar[Look] = contextvars.ContextVar("look", default=Look())  # noqa: B039
_note: contextvars.ContextVar[str] = contextvars.ContextVar("note", default="")


@contextmanager
def looking(look: Look, note: str = "") -> Iterator[None]:
    """Give every picture that is made inside this look, and a sentence in small letters above."""
    before, note_before = _look.set(look), _note.set(note)
    try:
        yield
    finally:
        _look.reset(before)
        _note.reset(note_before)


@contextmanager
def with_settings(settings: Mapping[str, Any]) -> Iterator[None]:
    """Give every picture that is made inside these settings of matplotlib, below the user's."""
    look = _look.get()
    before = _look.set(replace(look, settings={**settings, **look.settings}))
    try:
        yield
    finally:
        _look.reset(before)


def _style(look: Look) -> Any:
    """Our settings and the user's, on matplotlib's defaults: a matplotlibrc changes nothing.

    Where the user sets a size of fonts, all of ours grow with it.
    """
    given = look.settings
    factor = given.get("font.size", RC["font.size"]) / RC["font.size"]
    sizes = {name: factor * RC[name] for name in SIZES}
    # Legends stand outside of the axes, which this layout alone makes room for.
    ours = {"figure.constrained_layout.use": True, "figure.autolayout": False}
    return matplotlib.style.context([RC, sizes, {**given, **ours}], after_reset=True)


def styled(draw: Callable[P, R]) -> Callable[P, R]:
    """Decorate what draws: our style holds inside, and leaves no trace after the call."""

    @functools.wraps(draw)
    def drawing(*args: P.args, **options: P.kwargs) -> R:
        with _style(_look.get()):
            return draw(*args, **options)

    return drawing


class Picture(Figure):
    """A matplotlib figure that keeps its look.

    Args:
        width, height: in inches, where the user names no size; it is at most as wide as a page.
        least: the least width at which everything on it can be read.

    Attributes:
        facts: sentences of the drawing function for the caption.
        caption: a text for beside it; empty until it is whole.
        nothing: why it says nothing, such as `all of it has one colour`; empty where it says
            something. A page leaves such a picture out.
        is_crowded: whether panels' titles collide at a width that the user names, once it is saved.
        surfaces: the points of surfaces in three dimensions, (points, 3), by their axes.
        maps: the points that a map's cells stand for, (points, 2), by the cells' artist.
    """

    @property
    def is_wide(self) -> bool:
        """Whether it needs the full width of a page, beyond a column."""
        return bool(self.get_figwidth() > 1.2 * COLUMN)

    def __init__(self, width: float, height: float, *, least: float = 0.0) -> None:
        self.look = _look.get()
        if self.look.width is not None and self.look.width < least:
            raise BadValue(
                "size", None, f"this figure needs {least:g} inches or more, such as page."
            )
        self.facts: list[str] = []
        self.caption = self.nothing = ""
        self.metadata: Mapping[str, Mapping[str, str]] = {}
        self.surfaces: dict[Axes, Floats] = {}
        self.maps: dict[Artist, Floats] = {}
        self._is_saved = False
        self.is_crowded = False
        size = (self.look.width or min(width, PAGE), self.look.height or height)
        super().__init__(figsize=size)
        if _note.get():
            note = wrap_text(_note.get(), int(WIDE * size[0] / COLUMN))
            self.suptitle(note, x=0.01, ha="left", fontsize="small")

    def draw(self, renderer: Any) -> None:
        """Draw it in its own style; before it is saved, wrap what doesn't fit."""
        with _style(self.look):
            super().draw(renderer)
            # A figure is laid out in a pass without ink, which lays it out again.
            if self._is_saved and isinstance(self.get_layout_engine(), ConstrainedLayoutEngine):
                for _ in range(MOST_FITS):
                    if not fit_labels(self, renderer):
                        break
                    super().draw(renderer)
                if _move_title(self, renderer):
                    super().draw(renderer)
                self.is_crowded = self.look.width is not None and titles_collide(self, renderer)

    def savefig(self, fname: Any, *, transparent: bool | None = None, **options: Any) -> None:
        """Write it in its own style and dots per inch, with its metadata."""
        kind = options.get("format") or matplotlib.rcParams["savefig.format"]
        if "format" not in options and isinstance(fname, str | Path):
            kind = Path(fname).suffix.removeprefix(".").lower() or kind
        if kind in _NO_DATES:
            given = options.get("metadata") or {}
            options["metadata"] = {**_NO_DATES[kind], **self.metadata.get(kind, {}), **given}
        with _style(self.look):
            options.setdefault("dpi", self.look.dpi)
            self._is_saved = True
            try:
                super().savefig(fname, transparent=transparent, **options)
            finally:
                self._is_saved = False

    def is_empty(self) -> bool:
        """Whether there is nothing in any of its axes."""
        return not any(
            np.isfinite(np.asarray(line.get_xydata(), dtype=np.float64)).all(axis=1).any()
            for axes in self.axes
            for line in axes.lines
        ) and not any(axes.collections or axes.images or axes.patches for axes in self.axes)

    def _repr_png_(self) -> bytes:
        # What a notebook looks for: without pyplot it would show the figure's name only.
        return file_content(self, "png")


def lay_out(figure: Figure) -> None:
    """Give axes the sizes that they have in the picture, for what is placed by them."""
    if engine := figure.get_layout_engine():
        engine.execute(figure)


def _move_title(figure: Figure, renderer: Any) -> bool:
    title = getattr(figure, "_suptitle", None)
    if title is None or not figure.axes:
        return False
    edge = min(axes.get_position().x0 for axes in figure.axes)
    width = title.get_window_extent(renderer).width / figure.bbox.width
    moves = edge + width <= 1 and title.get_position()[0] != edge
    if moves:
        title.set_x(edge)
    return bool(moves)


def is_narrow() -> bool:
    """Return whether the user wants a picture in which few panels fit side by side."""
    width = _look.get().width
    return width is not None and width < 3 * NARROWEST_PANEL


def colours_of_user() -> int:
    """Return how many colours the cycle of the user's style sheet has; 0 where it sets none."""
    return len(_look.get().settings.get("axes.prop_cycle", ()))


def new_figure(*, width: float = COLUMN, height: float = 2.6) -> tuple[Picture, Axes]:
    """Return an empty picture, in inches, and its axes; call it in a `styled` function."""
    figure = Picture(width, height)
    return figure, figure.add_subplot()


def new_panels(
    count: int, *, height: float = 2.6, share_y: bool = True
) -> tuple[Picture, list[Axes]]:
    """Return a picture of `count` axes that share x, two or three in a row; call it `styled`.

    One panel is a column of a paper wide, several are two columns. They share y too unless told
    otherwise.
    """
    if count == 1:
        figure, axes = new_figure(height=height)
        return figure, [axes]
    width = _look.get().width or PAGE
    across = 2 if count == 4 else min(count, 3)
    across = max(1, min(across, int(width / NARROWEST_PANEL)))
    rows = -(-count // across)
    high = min(height, 1.1 * width / across)
    figure = Picture(width, high * (0.95 if rows == 1 else 0.85 * rows))
    grid = figure.subplots(rows, across, sharex=True, sharey=share_y, squeeze=False)
    for spare in grid.ravel()[count:]:
        spare.remove()
    for axes in grid.ravel()[max(0, count - across) : count]:
        axes.tick_params(labelbottom=True)
    return figure, list(grid.ravel()[:count])


def label_outer(all_axes: Sequence[Axes]) -> None:
    """Leave ticks and labels to panels with none below them, and with none to their left."""
    specs = [axes.get_subplotspec() for axes in all_axes]
    places = [(spec.rowspan.start, spec.colspan.start) for spec in specs if spec is not None]
    if len(places) < len(all_axes):
        return
    for axes, (row, column) in zip(all_axes, places, strict=True):
        below, left = (row + 1, column) in places, (row, column - 1) in places
        axes.tick_params(labelbottom=not below, labelleft=not left)
        axes.set_xlabel("" if below else axes.get_xlabel())
        axes.set_ylabel("" if left else axes.get_ylabel())


def title_panels(all_axes: Sequence[Axes], titles: Sequence[str]) -> None:
    """Give panels their titles, with letters where there are several: `(a) H = 1`.

    Titles are smaller where one is too long for its panel, and then wrapped.
    """
    if len(titles) > 1:
        letters = itertools.cycle(string.ascii_lowercase)
        titles = [
            f"({letter}) {title}".rstrip() for letter, title in zip(letters, titles, strict=False)
        ]
    longest = max((len(typeset(title)) for title in titles), default=0)
    size = points("axes.titlesize")
    for axes, title in zip(all_axes, titles, strict=True):
        figure = axes.get_figure(root=True)
        room = axes.get_position().width * (figure.get_figwidth() if figure else PAGE)
        fits = 136 * room / size  # letters of this size
        smaller = size * min(1.0, max(_SMALLEST_TITLE, fits / max(longest, 1)))
        axes.set_title(wrap_text(title, max(1, int(fits / _SMALLEST_TITLE))), fontsize=smaller)


_SMALLEST_TITLE = 0.7
"""The share of its size to which a title is made smaller."""


def file_content(figure: Figure, kind: str) -> bytes:
    """Return `figure` as the content of a png, pdf or svg file, or its numbers as that of a csv."""
    if kind == "csv":
        surfaces, maps = (getattr(figure, name, {}) for name in ("surfaces", "maps"))
        return csv_text(drawn_numbers(figure, surfaces, maps)).encode()
    look = figure.look if isinstance(figure, Picture) else Look()
    drawn = io.BytesIO()
    with _style(look), warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*layout not applied.*")
        try:
            figure.savefig(drawn, format=kind, dpi=look.dpi, metadata=_NO_DATES[kind])
            fits = not any(_is_squeezed(axes, figure) for axes in figure.axes)
            fits &= not (isinstance(figure, Picture) and figure.is_crowded)
        except UserWarning:
            fits = False
    if not fits:
        width, height = figure.get_size_inches()
        size = f"{width:g}x{height:g}"
        raise BadValue("size", size, "the figure needs more room, such as --size page.")
    return in_palette(drawn.getvalue()) if kind == "png" else drawn.getvalue()


def in_palette(content: bytes) -> bytes:
    """Return a PNG in 256 colours, with its texts: a third as large, without a visible change.

    The choice covers rare colours too, such as that of a thin line, and `kmeans` keeps frequent
    ones, such as that of a band. What is transparent stays as it is.
    """
    from PIL import Image, PngImagePlugin

    image, small = PngImagePlugin.PngImageFile(io.BytesIO(content)), io.BytesIO()
    if image.mode == "RGBA" and image.getchannel("A").getextrema() != (255, 255):
        return content
    texts = PngImagePlugin.PngInfo()
    for name, text in image.text.items():
        texts.add_text(name, text)
    covering, plain = Image.Quantize.MAXCOVERAGE, Image.Dither.NONE
    reduced = image.convert("RGB").quantize(256, covering, kmeans=1, dither=plain)
    reduced.save(small, "PNG", optimize=True, dpi=image.info["dpi"], pnginfo=texts)
    return small.getvalue()


def _is_squeezed(axes: Axes, figure: Figure) -> bool:
    box, (width, height) = axes.get_position(), figure.get_size_inches()
    is_bar = axes.get_label() == "<colorbar>"
    high, wide = box.height * height, box.width * width
    return axes.axison and (high < _LEAST_SIDE or (wide < _LEAST_SIDE and not is_bar))


def save(figure: Figure, path: Path) -> None:
    """Write `figure` to `path`, whole or not at all; the name's ending says in which format."""
    kind = FORMATS.get(path.suffix.lower())
    if kind is None:
        raise BadValue("out", str(path), "the file's name must end in .png, .pdf, .svg or .csv.")
    write_user_file(path, file_content(figure, kind), "out", "the figure")


def save_with_caption(picture: Picture, path: Path) -> None:
    """Write a picture, and its caption beside it with the ending .txt."""
    save(picture, path)
    write_user_file(path.with_suffix(".txt"), picture.caption.encode(), "out", "the caption")
