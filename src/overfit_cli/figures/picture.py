"""Picture that a figure is drawn on: its size and look, its panels, its file and its numbers."""

from __future__ import annotations

import contextvars
import io
import itertools
import re
import string
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib.style
import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection, PolyCollection, QuadMesh
from matplotlib.contour import ContourSet
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from PIL import Image, PngImagePlugin

from overfit_cli.core.arrays import Floats
from overfit_cli.core.errors import BadValue
from overfit_cli.core.files import write_user_file
from overfit_cli.core.text import in_latex, set_inside
from overfit_cli.figures import labels, style

FORMATS = ("png", "pdf", "svg", "csv")
NARROWEST_PANEL = 1.6  # inches
_NO_DATES = {"png": {}, "pdf": {"CreationDate": None}, "svg": {"Date": None}}
_note: contextvars.ContextVar[str] = contextvars.ContextVar("note", default="")


@contextmanager
def looking(look: style.Look, note: str | None = None) -> Iterator[None]:
    """Give every picture that is made inside this look, and a sentence in small letters above.

    All figures are drawn inside; it leaves no trace after. None keeps the sentence from outside.
    """
    above = set_inside(_note, _note.get() if note is None else note)
    with set_inside(style.current_look, look), above, _style(look):
        yield


def _style(look: style.Look) -> Any:
    """Our settings and the user's, on matplotlib's defaults: a matplotlibrc changes nothing.

    Where the user sets a size of fonts, all of ours grow with it.
    """
    factor = look.settings.get("font.size", style.RC["font.size"]) / style.RC["font.size"]
    sizes = {name: factor * style.RC[name] for name in style.SIZES}
    # Legends stand outside of the axes, which this layout alone makes room for.
    ours = {"figure.constrained_layout.use": True, "figure.autolayout": False}
    return matplotlib.style.context([style.RC, sizes, {**look.settings, **ours}], after_reset=True)


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
        surfaces: the points of surfaces in three dimensions, (points, 3), by their axes: matplotlib
            keeps them to itself.
        table: the numbers that a CSV file has in place of what is drawn; None for those.
        maps: the points that a map's cells stand for, (points, 2), by the cells' artist.
    """

    def __init__(self, width: float, height: float, *, least: float = 0.0) -> None:
        self.look = style.current_look.get()
        if self.look.width is not None and self.look.width < least:
            accepts = f"this figure needs {least:g} inches or more, such as page."
            raise BadValue("size", None, accepts)
        self.facts: list[str] = []
        self.caption = self.nothing = ""
        self.metadata: Mapping[str, Mapping[str, str]] = {}
        self.table: pd.DataFrame | None = None
        self.surfaces: dict[Axes, Floats] = {}
        self.maps: dict[Artist, Floats] = {}
        size = (self.look.width or min(width, style.PAGE), self.look.height or height)
        super().__init__(figsize=size)
        if _note.get():
            self.suptitle(_note.get(), x=0.01, ha="left", fontsize="small", wrap=True)

    def draw(self, renderer: Any) -> None:
        """Draw it in its own style."""
        with _style(self.look):
            super().draw(renderer)

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
            super().savefig(fname, transparent=transparent, **options)

    def is_empty(self) -> bool:
        """Whether there is nothing in any of its axes."""
        points = [line.get_xydata() for axes in self.axes for line in axes.lines]
        is_seen = any(np.isfinite(np.asarray(xy, float)).all(axis=1).any() for xy in points)
        others = [axes.collections or axes.images or axes.patches for axes in self.axes]
        return not is_seen and not any(others)

    def _repr_png_(self) -> bytes:
        # What a notebook looks for: without pyplot it would show the figure's name only.
        return file_content(self, "png")


def lay_out(figure: Figure) -> None:
    """Give axes the sizes that they have in the picture, for what is placed by them."""
    if engine := figure.get_layout_engine():
        engine.execute(figure)


def new_panels(
    count: int, *, height: float = 2.6, sharey: bool = True
) -> tuple[Picture, list[Axes]]:
    """Return a picture of `count` axes that share x, two or three in a row.

    One panel is a column of a paper wide, several are two columns. They share y too unless told
    otherwise.
    """
    if count == 1:
        single = Picture(style.COLUMN, height)
        return single, [single.add_subplot()]
    width = style.current_look.get().width or style.PAGE
    across = 2 if count == 4 else min(count, 3)
    across = max(1, min(across, int(width / NARROWEST_PANEL)))
    rows = -(-count // across)
    high = min(height, 1.1 * width / across)
    figure = Picture(width, high * (0.95 if rows == 1 else 0.85 * rows))
    grid = figure.subplots(rows, across, sharex=True, sharey=sharey, squeeze=False)
    for spare in grid.ravel()[count:]:
        spare.remove()
    for axes in grid.ravel()[max(0, count - across) : count]:
        axes.tick_params(labelbottom=True)
    return figure, list(grid.ravel()[:count])


def label_outer(all_axes: Sequence[Axes]) -> None:
    """Leave ticks and labels to panels with none below them, and with none to their left."""
    specs = [spec for axes in all_axes if (spec := axes.get_subplotspec()) is not None]
    places = [(spec.rowspan.start, spec.colspan.start) for spec in specs]
    for axes, (row, column) in zip(all_axes, places, strict=False):
        below, left = (row + 1, column) in places, (row, column - 1) in places
        axes.tick_params(labelbottom=not below, labelleft=not left)
        axes.set_xlabel("" if below else axes.get_xlabel())
        axes.set_ylabel("" if left else axes.get_ylabel())


def title_panels(all_axes: Sequence[Axes], titles: Sequence[str]) -> None:
    """Give panels their titles, with letters where there are several: `(a) H = 1`.

    One that is too long for its panel is wrapped.
    """
    if len(titles) > 1:
        letters = itertools.cycle(string.ascii_lowercase)
        titles = [f"({next(letters)}) {title}".rstrip() for title in titles]
    for axes, title in zip(all_axes, titles, strict=True):
        axes.set_title(labels.wrap_text(title, style.letters_across(axes, "axes.titlesize")))


def file_content(figure: Picture, kind: str) -> bytes:
    """Return `figure` as the content of a png, pdf or svg file, or its numbers as that of a csv."""
    if kind == "csv":
        table = drawn_numbers(figure) if figure.table is None else figure.table
        return table.to_csv(index=False, lineterminator="\n").encode()
    drawn = io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*layout not applied.*")
        try:
            figure.savefig(drawn, format=kind)
        except UserWarning:
            width, height = figure.get_size_inches()
            accepts = "the figure needs more room, such as page."
            raise BadValue("size", f"{width:g}x{height:g}", accepts) from None
    return in_palette(drawn.getvalue()) if kind == "png" else drawn.getvalue()


def in_palette(content: bytes) -> bytes:
    """Return a PNG in 256 colours, with its texts: a third as large; with transparency, as is."""
    image, small = PngImagePlugin.PngImageFile(io.BytesIO(content)), io.BytesIO()
    if image.mode == "RGBA" and image.getchannel("A").getextrema() != (255, 255):
        return content
    texts = PngImagePlugin.PngInfo()
    for name, text in image.text.items():
        texts.add_text(name, text)
    reduced = reduce_colours(image.convert("RGB"), 256)
    reduced.save(small, "PNG", optimize=True, dpi=image.info["dpi"], pnginfo=texts)
    return small.getvalue()


def reduce_colours(image: Image.Image, colours: int) -> Image.Image:
    """Return an image in so many colours: smaller, without a visible change.

    The choice covers rare colours too, such as that of a thin line, and `kmeans` keeps frequent
    ones, such as that of a band.
    """
    return image.quantize(colours, Image.Quantize.MAXCOVERAGE, kmeans=1, dither=Image.Dither.NONE)


def save(picture: Picture, path: Path) -> None:
    """Write a picture in the format of the name's ending, and its caption beside it in a .txt."""
    kind = path.suffix.lower().removeprefix(".")
    if kind not in FORMATS:
        raise BadValue("out", str(path), "the file's name must end in .png, .pdf, .svg or .csv.")
    write_user_file(path, file_content(picture, kind), "out", "the figure")
    write_user_file(path.with_suffix(".txt"), picture.caption.encode(), "out", "the caption")
    if kind == "pdf":  # of a paper: \caption{\input{NAME.caption}}
        shown = re.split(r"\n\n(?:Commands:|overfit )", picture.caption)[0]
        content = in_latex(re.sub(r"\n+", " ", shown)).encode()
        write_user_file(path.with_suffix(".caption.tex"), content, "out", "the caption")


# The numbers that it shows

COLUMNS = ("panel", "element", "label", "x", "y", "value")
"""A row is a point of an element of a panel, in the order in which it is drawn: a band's outline,
a map's cell at its parameters with its value, a contour with its level, a bar's two corners. A
value without a meaning, such as that of a line, is empty."""


def drawn_numbers(figure: Picture) -> pd.DataFrame:
    """Return what a figure shows, a row for each point; see `COLUMNS`."""
    panels = [axes for axes in figure.axes if axes.get_label() != "<colorbar>" and axes.axison]
    rows = [pd.DataFrame(columns=list(COLUMNS))]
    for number, axes in enumerate(panels, start=1):
        named = axes.get_title() or axes.get_title(loc="left") or axes.get_ylabel()
        panel = f"{number}: {' '.join(named.split())}" if named else str(number)
        for element, label, points, value in _elements(axes, figure):
            x, y = np.asarray(points, dtype=np.float64).T
            row = (panel, element, label, x, y, value)
            rows.append(pd.DataFrame(dict(zip(COLUMNS, row, strict=True))))
    return pd.concat(rows[1:] or rows, ignore_index=True)


def _elements(axes: Axes, figure: Picture) -> Iterator[tuple[str, str, Any, Any]]:
    if axes in figure.surfaces:
        yield "surface", "", figure.surfaces[axes][:, :2], figure.surfaces[axes][:, 2]
    for artist in (*axes.lines, *axes.collections, *axes.images, *axes.patches):
        label = " ".join(str(artist.get_label()).split())
        if artist.get_visible():
            for element, points, value in _points(artist, figure.maps.get(artist)):
                yield element, "" if label.startswith("_") else label, points, value


def _points(artist: Artist, cells: Floats | None) -> Iterator[tuple[str, Any, Any]]:
    """Yield an element's name, its points, (points, 2), and their values, nan where none has one.

    Args:
        cells: what the cells of a map stand for, (points, 2), where it isn't where they are.
    """
    if isinstance(artist, Line2D):
        yield "line", artist.get_xydata(), np.nan
    elif isinstance(artist, ContourSet):
        for level, path in zip(artist.levels, artist.get_paths(), strict=False):
            yield "contour", path.vertices, float(level)
    elif isinstance(artist, QuadMesh):
        corners = np.asarray(artist.get_coordinates(), np.float64)  # (rows + 1, columns + 1, 2)
        middles = ((corners[:-1, :-1] + corners[1:, 1:]) / 2).reshape(-1, 2)
        yield "map", middles if cells is None else cells, _known(artist.get_array()).ravel()
    elif isinstance(artist, AxesImage):
        yield "map", *_of_image(artist)
    elif isinstance(artist, PathCollection):
        values = artist.get_array()
        yield "points", _known(artist.get_offsets()), np.nan if values is None else _known(values)
    elif isinstance(artist, PolyCollection | LineCollection):
        element = "band" if isinstance(artist, PolyCollection) else "segments"
        for path in artist.get_paths():
            yield element, path.vertices, np.nan
    elif isinstance(artist, Rectangle):
        yield "bar", artist.get_bbox().get_points(), np.nan


def _known(values: object) -> Floats:
    """An array as numbers, nan where it is masked."""
    return np.asarray(np.ma.filled(np.ma.asarray(values, np.float64), np.nan))


def _of_image(image: AxesImage) -> tuple[Floats, Floats]:
    """The middles of an image's pixels and their values; of colours the mean of the channels."""
    values = _known(image.get_array())
    values = values if values.ndim == 2 else values.mean(axis=2)
    left, right, bottom, top = image.get_extent()
    rows, columns = values.shape
    row, column = np.indices(values.shape).reshape(2, -1) + 0.5
    row = row if image.origin == "lower" else rows - row
    xy = [left + (right - left) * column / columns, bottom + (top - bottom) * row / rows]
    return np.column_stack(xy), values.ravel()
