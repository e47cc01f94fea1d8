"""A figure's record in the metadata of its file, PNG, PDF or SVG: written, and read back."""

from __future__ import annotations

import io
import warnings
from typing import TYPE_CHECKING
from xml.parsers import expat

from overfit_cli.errors import UserError
from overfit_cli.figures.pdf_info import info_text
from overfit_cli.figures.provenance import Provenance, read_provenance
from overfit_cli.plain_text import visible

if TYPE_CHECKING:
    from PIL.Image import Image

KEYWORD = "overfit"
"""Of the record in a PNG file. PDF and SVG know no keywords but their own."""

MOST_PIXELS = 150_000_000
_DESCRIPTION = "http://purl.org/dc/elements/1.1/ description"


def metadata_of(record: Provenance, kind: str) -> dict[str, str]:
    """Return the fields that matplotlib writes into a file of the kind png, pdf or svg.

    They depend on the record alone, so that a figure that is drawn again has the same ones.
    """
    maker = f"overfit {record.overfit}"
    matplotlib = f"matplotlib {record.packages.get('matplotlib', '')}"
    title = visible(" ".join(record.title.split()))
    if kind == "png":
        return {"Title": title, "Software": f"{maker}, {matplotlib}", KEYWORD: record.text()}
    if kind == "pdf":
        own = {"Creator": maker, "Producer": matplotlib, "Keywords": record.text()}
        return {"Title": title, **own}
    return {"Title": title, "Creator": maker, "Description": record.text()}


def read_record(content: bytes) -> tuple[str, Provenance]:
    """Return a file's kind, png, pdf or svg, and the record in it.

    Raises:
        UserError: if it is no such file, holds no record, or one that can't be read.
    """
    if content.startswith(b"\x89PNG\r\n\x1a\n"):
        kind, text = "png", _png_text(content)
    elif content.startswith(b"%PDF-"):
        kind, text = "pdf", info_text(content, "Keywords")
    elif b"<svg" in content[:4096]:
        kind, text = "svg", _svg_description(content)
    else:
        raise UserError("it is no PNG, PDF or SVG file; it takes a figure that overfit drew.")
    if text is None or not text.lstrip().startswith("{"):
        raise UserError(
            "it holds no record of overfit's: something else drew it, or an older overfit, or a "
            "program that copied it left its metadata out."
        )
    return kind, read_provenance(text)


def open_png(content: bytes) -> Image:
    """Return the image of a PNG file, its pixels read.

    Raises:
        UserError: if the file isn't whole, or has more pixels than any figure.
    """
    from PIL import Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            image = Image.open(io.BytesIO(content), formats=["PNG"])
            if image.width * image.height > MOST_PIXELS:
                raise UserError(f"it has {image.width} × {image.height} pixels, too many to read.")
            image.load()
    except Image.DecompressionBombError:
        raise UserError("it has too many pixels to read.") from None
    except (OSError, SyntaxError, ValueError) as error:
        raise UserError(f"it isn't a whole PNG file ({visible(str(error))}).") from None
    return image


def _png_text(content: bytes) -> str | None:
    found = open_png(content).info.get(KEYWORD)
    return found if isinstance(found, str) else None


def _svg_description(content: bytes) -> str | None:
    """The description in an SVG file's metadata; entities, which may grow without end, are refused.

    Raises:
        UserError: if the file isn't whole.
    """
    texts: list[str] = []
    inside = False

    def begin(name: str, attributes: object) -> None:
        nonlocal inside
        inside = name == _DESCRIPTION

    def end(name: str) -> None:
        nonlocal inside
        inside = False

    def refuse(*declaration: object) -> None:
        raise ValueError("it declares entities")

    parser = expat.ParserCreate(namespace_separator=" ")
    parser.StartElementHandler, parser.EndElementHandler = begin, end
    parser.CharacterDataHandler = lambda text: texts.append(text) if inside else None
    parser.EntityDeclHandler = refuse
    try:
        parser.Parse(content, True)
    except (expat.ExpatError, ValueError, LookupError) as error:
        raise UserError(f"it isn't a whole SVG file ({error}).") from None
    return "".join(texts) or None
