"""Numbers inside a figure's file: the cells as drawn, as CSV, which any program can take out.

A PNG file has them in text chunks, a PDF file as an attachment, an SVG file in its metadata.
"""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from overfit_cli.core.errors import BadValue
from overfit_cli.core.figure import BOUNDARY, CURVES, CUTOFF, HEATMAP, LINES, Figure, FigureOptions
from overfit_cli.core.spreadsheet import csv_text
from overfit_cli.core.study import FigureData
from overfit_cli.core.text import size, visible
from overfit_cli.figures.labels import RUN, varying_parameters

if TYPE_CHECKING:
    from PIL.Image import Image
    from pypdf import PdfReader

MOST_BYTES = 16_000_000
"""The largest size of embedded numbers."""

NAME = "overfit-cells"
"""The keyword of text chunks in a PNG file: the first one, and then `overfit-cells-2`, ..."""

ATTACHMENT = "cells.csv"
"""The name of the attachment of a PDF file."""

SVG_CELLS = "urn:overfit:cells"
"""The namespace of the element `cells` in an SVG file."""

_PIECE = 250_000
"""Letters of a text chunk: Pillow reads a compressed one of up to 1 MiB."""

_BEFORE_CHUNKS = 33
"""Bytes of a PNG file before its second chunk: the signature and the header."""


def drawn_numbers(figure: Figure, data: FigureData, options: FigureOptions) -> bytes:
    """Return the cells that a figure is drawn from, or their logged steps, as CSV.

    A row has the parameters that vary, the seed, whether the cell is done, and the columns that the
    figure draws; a figure of a study's own may draw any, and has all that were measured.

    Args:
        data: what it is drawn from, with a column for each expression.
        options: the user's options; the figure's count where they leave one out.
    """
    of_run = [RUN] if data.runs else []
    told_by = [*of_run, *_told_by(data), "seed"]
    rows = data.cells
    if figure.reads == "trajectories":
        settings = rows[["key", *told_by, "status"]]
        cell = ["key", *of_run]
        others = [name for name in data.trajectories if name in cell or name not in settings]
        rows = settings.merge(data.trajectories[others], on=cell)
        told_by.append("step")
    names = dict.fromkeys([*told_by, "status", *_drawn_columns(figure, data, options)])
    rows = rows.sort_values(told_by, kind="stable")[[name for name in names if name in rows]]
    words = [str(name) for name in rows if rows[name].dtype.kind not in "iufb"]
    rows = rows.assign(**{name: rows[name].map(visible, na_action="ignore") for name in words})
    numbers = csv_text(rows.rename(columns=visible)).encode()
    if len(numbers) > MOST_BYTES:
        accepts = (
            f"the numbers have {size(len(numbers))}, and a figure takes up to {size(MOST_BYTES)}; "
            "choose fewer cells."
        )
        raise BadValue("embed", True, accepts)
    return numbers


def _told_by(data: FigureData) -> list[str]:
    replaced = [name for name in data.study.parameters.model_fields if name in data.replaced]
    return [name for name in [*replaced, *varying_parameters(data)] if name != RUN]


def _drawn_columns(figure: Figure, data: FigureData, options: FigureOptions) -> list[str]:
    """The measured columns that a figure draws; of a drawing of a study's own, all."""
    logged = figure.reads == "trajectories"
    declared = data.study.trajectory_columns if logged else data.study.columns
    every = [column.name for column in declared]
    ours = {each.draw for each in (HEATMAP, CUTOFF, BOUNDARY, LINES, CURVES)}
    value = options.value or figure.options.value or ("" if logged else data.study.headline)
    if figure.draw not in ours or not value:
        return every
    theory = options.theory or figure.options.theory or ""
    return [part.strip() for part in f"{value},{theory}".split(",")] if logged else [value, theory]


def with_numbers(kind: str, content: bytes, numbers: bytes) -> bytes:
    """Return the content of a figure's file with numbers in it.

    Args:
        kind: `png`, `pdf` or `svg`.
        content: the file, as matplotlib writes it.
        numbers: CSV in UTF-8.
    """
    writers: Mapping[str, Callable[[bytes, str], bytes]] = {
        "png": _into_png,
        "pdf": _into_pdf,
        "svg": _into_svg,
    }
    return writers[kind](content, numbers.decode())


def _into_png(content: bytes, text: str) -> bytes:
    pieces = [text[start : start + _PIECE] for start in range(0, len(text), _PIECE)]
    chunks = b"".join(
        _text_chunk(_keyword(number), piece) for number, piece in enumerate(pieces, start=1)
    )
    return content[:_BEFORE_CHUNKS] + chunks + content[_BEFORE_CHUNKS:]


def _keyword(number: int) -> str:
    return NAME if number == 1 else f"{NAME}-{number}"


def _text_chunk(keyword: str, text: str) -> bytes:
    """A chunk of compressed text in UTF-8, without a language."""
    body = b"iTXt" + keyword.encode() + b"\0\1\0\0\0" + zlib.compress(text.encode(), 9)
    return struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body))


def _into_pdf(content: bytes, text: str) -> bytes:
    from pypdf import PdfWriter
    from pypdf.generic import NameObject

    writer = PdfWriter(clone_from=io.BytesIO(content))
    writer.pdf_header = content[:8].decode()
    writer.add_attachment(ATTACHMENT, text.encode())
    # pypdf leaves attachments uncompressed.
    names = writer.root_object["/Names"]["/EmbeddedFiles"]["/Names"]  # type: ignore[index]
    stream = names[1].get_object()["/EF"]["/F"]
    stream.set_data(zlib.compress(text.encode(), 9))
    stream[NameObject("/Filter")] = NameObject("/FlateDecode")
    file = io.BytesIO()
    writer.write(file)
    return file.getvalue()


def _into_svg(content: bytes, text: str) -> bytes:
    element = f'<cells xmlns="{SVG_CELLS}" type="text/csv">{escape(text)}</cells>'
    return content.replace(b"</metadata>", element.encode() + b"</metadata>", 1)


def numbers_in_png(image: Image) -> bytes:
    """Return the numbers in a PNG file that is open; empty without any."""
    pieces = list[str]()
    while isinstance(piece := image.info.get(_keyword(len(pieces) + 1)), str):
        pieces.append(piece)
    return "".join(pieces).encode()


def numbers_in_pdf(file: PdfReader) -> bytes:
    """Return the numbers in a PDF file that is open; empty without any."""
    attached = file.attachments
    return attached[ATTACHMENT][0] if ATTACHMENT in attached else b""


def numbers_in_svg(drawing: ElementTree.Element) -> bytes:
    """Return the numbers in an SVG file that is parsed; empty without any."""
    return (drawing.findtext(f".//{{{SVG_CELLS}}}cells") or "").encode()
