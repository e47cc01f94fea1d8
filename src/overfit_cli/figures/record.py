"""Record of a figure: JSON in the metadata of its PNG, PDF or SVG file.

It holds the request, the digest of the cells that were drawn, and the versions of what drew them.
matplotlib writes it; pillow, pypdf and an XML parser read it. A record may have been edited by
hand, so that its form is checked before anything is done with it.
"""

from __future__ import annotations

import importlib.metadata
import io
import json
import logging
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Self
from xml.etree import ElementTree

import numpy as np
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    ValidationError,
    model_validator,
)

from overfit_cli.core.figure import FigureOptions
from overfit_cli.core.text import UserError, shorten, visible
from overfit_cli.sweeps.manifest import read_manifest
from overfit_cli.sweeps.part_file import digest_of_numbers, key_of_cells

if TYPE_CHECKING:
    import pandas as pd
    from PIL.Image import Image

KEYWORD = "overfit"
"""The keyword of the record in a PNG file; PDF and SVG files have fields of their own."""

PACKAGES = ("matplotlib", "numpy")
"""Packages that draw: with another version of them a picture may differ."""

TOLERANCE = 4
"""Levels of 255 by which a pixel may differ: rounding differs between processors."""

_DESCRIPTION = ".//{http://purl.org/dc/elements/1.1/}description"


def _as_text(given: object) -> object:
    """Text as JSON holds it: bytes of a file's name that are no text become escapes."""
    if not isinstance(given, str):
        return given
    if "\0" in given:
        raise ValueError("it holds a NUL character")
    return given.encode(errors="backslashreplace").decode()


Text = Annotated[str, BeforeValidator(_as_text)]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class RunRecord(_Record):
    """A run directory at the time when the figure was drawn.

    Attributes:
        path: as the user named it.
        beside: the path from the figure's folder; empty where it would reveal folders that the
            user didn't name.
        name: its name in the figure; empty where it is the only one.
        study: the study of its cells.
        version: their numerical version.
        commits: git commits of the code that trained them.
        cells: the number of cells that the figure was drawn from.
        key: a digest of the keys of those cells.
        data: a digest of their numbers.
    """

    path: Text
    beside: Text = ""
    name: Text = ""
    study: Text
    version: int
    commits: tuple[str, ...] = ()
    cells: int
    key: Annotated[str, Field(pattern=r"^[0-9a-f]{20}$")]
    data: Digest


class FileRecord(_Record):
    """A CSV file of published numbers; `data` is the SHA-256 of its content."""

    path: Annotated[Text, Field(pattern=r"\.[cC][sS][vV]$")]
    beside: Text = ""
    name: Text
    data: Digest


class ComparisonRecord(_Record):
    """How the two sides of a figure were compared, B less A.

    Attributes:
        columns: the measured columns that were compared; the first one is drawn.
        where_a, where_b: the conditions on one side alone.
        interpolate: whether A was interpolated at B's points.
        published: B, where it is a file; otherwise it is the second of the runs.
    """

    columns: Annotated[tuple[Text, ...], Field(min_length=1)]
    where_a: tuple[Text, ...] = ()
    where_b: tuple[Text, ...] = ()
    interpolate: bool = False
    published: FileRecord | None = None


class LookRecord(_Record):
    """The look of a figure (see `Look`); the settings are matplotlib's, as JSON."""

    title: Text = ""
    width: float | None = None
    height: float | None = None
    dpi: int = 300
    settings: Mapping[str, JsonValue] = Field(default_factory=dict)


def versions() -> dict[str, str]:
    """Return the versions of the packages that draw."""
    return {name: importlib.metadata.version(name) for name in PACKAGES}


class FigureRecord(_Record):
    """What is needed to draw a figure again, and to recognise its data.

    Attributes:
        schema_version: of the record's own form.
        overfit: the version that drew the figure.
        packages: the versions of the packages that drew it.
        command: the command line; empty from Python.
        title: what the figure shows, in a phrase.
        figure, options, where, look: the request.
        runs: the run directories, in the order of the request.
        minus: the run directory that is subtracted; None for none.
        compared: how `overfit compare` compared its sides; None for a figure of `overfit plot`.
    """

    schema_version: Literal[1] = Field(alias="schema")
    overfit: str
    packages: Mapping[str, str]
    command: Text = ""
    title: Text = ""
    figure: Text
    options: FigureOptions = FigureOptions()
    where: tuple[Text, ...] = ()
    look: LookRecord = LookRecord()
    runs: Annotated[tuple[RunRecord, ...], Field(min_length=1)]
    minus: RunRecord | None = None
    compared: ComparisonRecord | None = None

    @model_validator(mode="after")
    def _check_sides(self) -> Self:
        if self.compared is not None:
            sides = len(self.runs) + (self.compared.published is not None)
            given = (self.minus, self.options, self.look)
            if sides != 2 or given != (None, FigureOptions(), LookRecord()):
                raise ValueError("a comparison has two sides, and no options of a plot")
        return self

    @property
    def sources(self) -> tuple[RunRecord, ...]:
        """All run directories, the subtracted one last."""
        return self.runs if self.minus is None else (*self.runs, self.minus)

    @property
    def published(self) -> FileRecord | None:
        """The file of published numbers that a run was compared with; None for none."""
        return self.compared.published if self.compared is not None else None

    def text(self) -> str:
        """Return the record as JSON in ASCII, the same for the same record, without defaults."""
        held = self.model_dump(by_alias=True, exclude_defaults=True)
        return json.dumps(held, default=sorted)  # the order of a set changes by process

    def metadata(self) -> dict[str, dict[str, str]]:
        """Return matplotlib's metadata of a file with this record, for each kind of file."""
        title = visible(" ".join(self.title.split()))
        maker = f"overfit {self.overfit}"
        package = f"matplotlib {self.packages.get('matplotlib', '')}"
        text = self.text()
        return {
            "png": {"Title": title, "Software": f"{maker}, {package}", KEYWORD: text},
            "pdf": {"Title": title, "Creator": maker, "Producer": package, "Keywords": text},
            "svg": {"Title": title, "Creator": maker, "Description": text},
        }


def record_of_cells(
    path: Path,
    study: str,
    cells: pd.DataFrame,
    steps: pd.DataFrame | None = None,
    *,
    seconds: bool = False,
    out: Path | None = None,
    name: str = "",
) -> RunRecord:
    """Return the record of chosen cells of a run directory.

    Args:
        path: the run directory.
        study: the study's name.
        cells: one row per cell.
        steps: one row per cell and logged step; None where the figure doesn't draw them.
        seconds: whether the figure draws the time that a cell took.
        out: the figure's file; None where it isn't known.
        name: the directory's name in the figure.
    """
    manifest = read_manifest(path)
    commits = [run.git_commit for run in manifest.runs] if manifest is not None else []
    return RunRecord(
        path=path.as_posix(),
        beside=path_beside(path, out),
        name=name,
        study=study,
        version=int(cells["version"].iloc[0]),
        commits=tuple(dict.fromkeys(filter(None, commits))),
        cells=len(cells),
        key=key_of_cells(cells),
        data=digest_of_numbers(cells, steps, seconds=seconds),
    )


def path_beside(source: Path, out: Path | None) -> str:
    """Return a path from the figure's folder; empty where it has a name that wasn't typed.

    Args:
        source: a run directory, or another file.
        out: the figure's file; None where it isn't known.
    """
    if out is None:
        return ""
    path = Path(os.path.relpath(source, out.parent))
    typed = {"..", *source.parts, *out.parts}
    return path.as_posix() if typed.issuperset(path.parts) else ""


def read_record(content: bytes) -> tuple[str, FigureRecord]:
    """Return the kind of a file (png, pdf or svg) and the record in it.

    Raises:
        UserError: if it is no such file, holds no record, or the record can't be read.
    """
    if content.startswith(b"\x89PNG\r\n\x1a\n"):
        kind, text = "png", open_png(content).info.get(KEYWORD)
    elif content.startswith(b"%PDF-"):
        kind, text = "pdf", _pdf_keywords(content)
    elif b"<svg" in content[:4096]:
        kind, text = "svg", _svg_description(content)
    else:
        raise UserError("it is no PNG, PDF or SVG file; it takes a figure that overfit drew.")
    if not isinstance(text, str) or not text.lstrip().startswith("{"):
        raise UserError(
            "it holds no record of overfit's: something else drew it, or an older overfit, or a "
            "program that copied it left its metadata out."
        )
    return kind, parse_record(text)


def open_png(content: bytes) -> Image:
    """Return the image of a PNG file, its pixels read.

    Raises:
        UserError: if the file isn't whole, or has too many pixels for pillow.
    """
    from PIL import Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            image = Image.open(io.BytesIO(content), formats=["PNG"])
            image.load()
    except Image.DecompressionBombError:
        raise UserError("it has too many pixels to read.") from None
    except (OSError, SyntaxError, ValueError) as error:
        raise UserError(f"it isn't a whole PNG file ({visible(str(error))}).") from None
    return image


def _pdf_keywords(content: bytes) -> str | None:
    from pypdf import PdfReader

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it would warn about every flaw
    try:
        facts = PdfReader(io.BytesIO(content)).metadata
        return facts.keywords if facts is not None else None
    except Exception as error:  # a damaged file raises all kinds of them
        said = visible(shorten(str(error).strip())) or type(error).__name__
        raise UserError(f"it isn't a whole PDF file ({said}).") from None


def _svg_description(content: bytes) -> str | None:
    try:
        return ElementTree.fromstring(content).findtext(_DESCRIPTION)
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise UserError(f"it isn't a whole SVG file ({error}).") from None


def parse_record(text: str) -> FigureRecord:
    """Return the record that a text holds.

    Raises:
        UserError: if it holds none, saying what is wrong.
    """
    try:
        return FigureRecord.model_validate_json(text, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    field = shorten(".".join(str(part) for part in first["loc"][:4]))
    said = str(first["msg"]).removeprefix("Value error, ")
    raise UserError(f"its record can't be read ({f'{field}: ' if field else ''}{said}).")


def difference_of(kind: str, kept: bytes, drawn: bytes) -> str:
    """Return how a drawn picture differs from a kept file, in words; empty where it doesn't.

    PNG files are compared by their pixels, PDF and SVG files byte for byte.

    Args:
        kind: png, pdf or svg.
        kept: the content of the file.
        drawn: the content of the file as it is drawn now.

    Raises:
        UserError: if a PNG file can't be read.
    """
    if kind != "png":
        return "" if kept == drawn else "it differs byte for byte"
    before, after = (np.asarray(open_png(file).convert("RGBA")) for file in (kept, drawn))
    if before.shape != after.shape:
        sizes = [f"{width} × {height}" for height, width, _ in (after.shape, before.shape)]
        return f"it has {sizes[0]} pixels and the file {sizes[1]}"
    apart = np.maximum(before, after) - np.minimum(before, after)  # (height, width, 4), of uint8
    share = 100 * (apart > TOLERANCE).any(axis=-1).mean()
    return f"{share:.2g}% of its pixels differ" if share else ""
