"""The record in a figure: what it was drawn from, read back from its file.

Texts in a PDF file's information dictionary, as far as it isn't compressed.

A figure's record in the metadata of its file, PNG, PDF or SVG: written, and read back.

A figure's record: what it was drawn from, and with what. Anybody may have edited it.

Two files of a figure compared: whether they show the same picture.

The record of a figure: its request, and what its run directories hold.
"""

from __future__ import annotations

import codecs
import importlib.metadata
import io
import json
import os
import re
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Self
from xml.parsers import expat

import numpy as np
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    ValidationError,
    model_validator,
)

from overfit_cli.core.figure import Figure, FigureOptions
from overfit_cli.core.study import FigureData
from overfit_cli.core.text import VERSION, UserError, shortened, visible

if TYPE_CHECKING:
    import pandas as pd
    from PIL.Image import Image

    from overfit_cli.figures.draw import Request
    from overfit_cli.sweeps.store import RunDirectory


_REFERENCE = re.compile(rb"/Info\s+(\d{1,10})\s+(\d{1,5})\s+R")
_STRING = rb"\s*(?:\(([^()\\]*+(?:\\.[^()\\]*+)*+)\)|<([0-9A-Fa-f\s]*+)>)"
_ESCAPE = re.compile(rb"\\(\r\n|[0-7]{1,3}|.)", re.DOTALL)
_CONTROLS = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\b", b"f": b"\f"}
_CONTINUED = (b"\n", b"\r", b"\r\n")
_ENCODINGS = {codecs.BOM_UTF16_BE: "utf-16-be", codecs.BOM_UTF8: "utf-8"}


def info_text(content: bytes, name: str) -> str | None:
    """Return a text such as `Keywords`; None where there is none that can be found.

    Args:
        content: the file.
        name: what the dictionary calls it.
    """
    references = _REFERENCE.findall(content)
    if not references:
        return None
    number, generation = references[-1]  # a file that was added to has several; the last one holds
    objects = [*re.finditer(rb"(?<!\d)%s\s+%s\s+obj\b" % (number, generation), content)]
    if not objects:
        return None
    begin = objects[-1].end()
    end = content.find(b"endobj", begin)
    dictionary = content[begin : len(content) if end < 0 else end]
    found = re.search(rb"/%s%s" % (name.encode(), _STRING), dictionary, re.DOTALL)
    if found is None:
        return None
    return _decoded(_unescaped(found[1]) if found[1] is not None else _from_hex(found[2]))


def _unescaped(literal: bytes) -> bytes:
    return _ESCAPE.sub(lambda found: _meaning(found[1]), literal)


def _meaning(escaped: bytes) -> bytes:
    """What stands for itself after a backslash, or for something else."""
    if escaped in _CONTINUED:
        return b""
    if escaped.isdigit() and escaped < b"8":
        return bytes([int(escaped, 8) & 0xFF])
    return _CONTROLS.get(escaped, escaped)


def _from_hex(digits: bytes) -> bytes:
    text = re.sub(rb"\s", b"", digits).decode()
    return bytes.fromhex(text + "0" * (len(text) % 2))


def _decoded(text: bytes) -> str:
    for mark, encoding in _ENCODINGS.items():
        if text.startswith(mark):
            return text.removeprefix(mark).decode(encoding, errors="replace")
    return text.decode("latin-1")


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


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("it holds a NUL character")
    return text


_Text = Annotated[str, AfterValidator(_without_nul)]
_Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class RunRecord(_Record):
    """A run directory that a figure was drawn from, as it was then.

    Attributes:
        path: as the user named it.
        beside: its path from the figure's folder; empty where that would tell of folders that
            the user didn't name.
        name: what the figure calls it; empty where it is the only one.
        study: whose cells it held.
        version: their numerical version.
        commits: of the code that trained them, where it ran from a checkout.
        cells: how many of them the figure was drawn from.
        key: a digest of the keys of those cells.
        data: a digest of their numbers.
    """

    path: _Text
    beside: _Text = ""
    name: _Text = ""
    study: _Text
    version: int
    commits: tuple[str, ...] = ()
    cells: int
    key: Annotated[str, Field(pattern=r"^[0-9a-f]{20}$")]
    data: _Digest


class FileRecord(_Record):
    """A CSV file of published numbers that a run was compared with, as it was then.

    Attributes:
        path, beside, name: as those of a run directory.
        data: the SHA-256 of its content.
    """

    path: Annotated[_Text, Field(pattern=r"\.[cC][sS][vV]$")]
    beside: _Text = ""
    name: _Text
    data: _Digest


class ComparisonRecord(_Record):
    """How the two sides of a figure were compared, B less A.

    Attributes:
        columns: the measured columns that were compared; the first one is drawn.
        where_a, where_b: the conditions on one side alone.
        interpolate: whether A was interpolated at B's points.
        published: B, where it is a file; otherwise it is the second of the runs.
    """

    columns: Annotated[tuple[_Text, ...], Field(min_length=1)]
    where_a: tuple[_Text, ...] = ()
    where_b: tuple[_Text, ...] = ()
    interpolate: bool = False
    published: FileRecord | None = None


class LookRecord(_Record):
    """How a figure looks; see `Look`. The settings of a style sheet are those that JSON holds."""

    title: _Text = ""
    width: float | None = None
    height: float | None = None
    dpi: int = 300
    settings: Mapping[str, JsonValue] = Field(default_factory=dict)


class Provenance(_Record):
    """Everything that is needed to draw a figure again, and to know its data again.

    Attributes:
        schema_version: of the record's own form.
        overfit: the version that drew the figure.
        packages: the versions of the packages that drew it.
        command: what was typed; empty from Python.
        title: what the figure shows, in a phrase.
        figure, options, where, look: the request.
        runs: the run directories, in the order of the request.
        minus: the one that is subtracted; None for none.
        compared: how `overfit compare` compared its sides; None for a figure of `overfit plot`.
    """

    schema_version: Literal[1] = Field(alias="schema")
    overfit: str
    packages: Mapping[str, str]
    command: str = ""
    title: str = ""
    figure: str
    options: FigureOptions = FigureOptions()
    where: tuple[_Text, ...] = ()
    look: LookRecord = LookRecord()
    runs: Annotated[tuple[RunRecord, ...], Field(min_length=1)]
    minus: RunRecord | None = None
    compared: ComparisonRecord | None = None

    @model_validator(mode="after")
    def _two_sides(self) -> Self:
        compared = self.compared
        if compared is not None:
            sides = len(self.runs) + (compared.published is not None)
            given = (self.minus, self.options, self.look)
            if sides != 2 or given != (None, FigureOptions(), LookRecord()):
                raise ValueError("a comparison has two sides, and no options of a plot")
        return self

    @property
    def sources(self) -> tuple[RunRecord, ...]:
        """All run directories, what is subtracted last."""
        return self.runs if self.minus is None else (*self.runs, self.minus)

    @property
    def published(self) -> FileRecord | None:
        """The file of published numbers, if a run was compared with one."""
        return self.compared.published if self.compared is not None else None

    def text(self) -> str:
        """Return it as JSON in ASCII, the same for the same record; what isn't set is left out."""
        held = self.model_dump(by_alias=True, exclude_defaults=True)
        return json.dumps(held, default=_in_order)


def _in_order(names: frozenset[str]) -> list[str]:
    """A set for JSON; its own order changes from process to process."""
    return sorted(names)


def read_provenance(text: str) -> Provenance:
    """Return the record that `text` holds.

    Raises:
        UserError: if it holds none, saying what is wrong.
    """
    try:
        return Provenance.model_validate_json(text, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    place = shortened(".".join(str(part) for part in first["loc"][:4]))
    said = str(first["msg"]).removeprefix("Value error, ")
    raise UserError(f"its record can't be read ({f'{place}: ' if place else ''}{said}).")


ALIKE = 4
"""Levels of 255 by which a pixel may differ: rounding differs between processors."""


def difference_of(kind: str, one: bytes, other: bytes) -> str:
    """Return how the picture of one file isn't that of the other, in words; empty where it is.

    PNG files are compared by their pixels, PDF and SVG files byte for byte.

    Raises:
        UserError: if a PNG file can't be read.
    """
    if kind != "png":
        return "" if one == other else "it differs byte for byte"
    images = [open_png(content).convert("RGBA") for content in (one, other)]
    sizes = [f"{image.width} × {image.height}" for image in images]
    if sizes[0] != sizes[1]:
        return f"it has {sizes[1]} pixels and the file {sizes[0]}"
    levels = [np.asarray(image) for image in images]
    apart = np.maximum(*levels) - np.minimum(*levels)  # (height, width, 4), of uint8
    count = int((apart > ALIKE).any(axis=-1).sum())
    share = 100 * count / (apart.shape[0] * apart.shape[1])
    return f"{share:.2g}% of its pixels differ" if count else ""


PACKAGES = ("matplotlib", "numpy")
"""What draws: with another version of them a picture may differ."""


def record_of(request: Request, figure: Figure, parts: Sequence[FigureData]) -> Provenance:
    """Return the record of a figure.

    Args:
        request: what was asked for.
        figure: the figure that it names.
        parts: what each of the request's sources holds.
    """
    from overfit_cli.figures.picture import Look
    from overfit_cli.figures.style import settings_as_json

    look = request.look or Look()
    names = request.called() if len(request.sources) > 1 else [""]
    runs = [
        run_record(directory, data, figure, request.options, request.out, name)
        for directory, data, name in zip(request.sources, parts, names, strict=True)
    ]
    minus = runs.pop() if request.minus is not None else None
    return Provenance(
        schema=1,
        overfit=VERSION,
        packages=versions(),
        command=as_text(request.command),
        title=look.title or figure.title,
        figure=request.figure,
        options=request.options,
        where=tuple(request.where),
        look=LookRecord(
            title=look.title,
            width=look.width,
            height=look.height,
            dpi=look.dpi,
            settings=settings_as_json(look.settings),
        ),
        runs=tuple(runs),
        minus=minus,
    )


def run_record(
    directory: RunDirectory,
    data: FigureData,
    figure: Figure,
    options: FigureOptions,
    out: Path | None = None,
    name: str = "",
) -> RunRecord:
    """Return what a record says of a run directory: which cells it gives the figure.

    Logged steps count where the figure reads them, and times where it draws them.

    Args:
        directory: the run directory.
        data: what it holds, of the chosen cells.
        figure: the figure.
        options: what the user asked of it.
        out: the figure's file, if it is known.
        name: what the figure calls the directory.
    """
    cells, steps = data.cells, None
    if figure.reads == "trajectories":
        steps = data.trajectories[data.trajectories["key"].isin(cells["key"])]
    timed = "seconds" in (options.value, figure.options.value)
    return record_of_cells(
        directory.path, data.study.name, cells, steps, seconds=timed, out=out, name=name
    )


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
    """Return what a record says of chosen cells of a run directory.

    Args:
        path: the run directory.
        study: whose cells they are.
        cells: one row per cell.
        steps: one row per cell and logged step; None where they don't matter.
        seconds: whether the time that a cell took matters.
        out: the figure's file, if it is known.
        name: what the figure calls the directory.
    """
    from overfit_cli.sweeps.manifest import read_manifest
    from overfit_cli.sweeps.part_file import digest_of_numbers, key_of_cells

    manifest = read_manifest(path)
    commits = [run.git_commit for run in manifest.runs] if manifest is not None else []
    return RunRecord(
        path=as_text(path.as_posix()),
        beside=beside(path, out),
        name=as_text(name),
        study=study,
        version=int(cells["version"].iloc[0]),
        commits=tuple(dict.fromkeys(filter(None, commits))),
        cells=len(cells),
        key=key_of_cells(cells),
        data=digest_of_numbers(cells, steps, seconds=seconds),
    )


def versions() -> dict[str, str]:
    """Return the versions of the packages that draw."""
    return {name: importlib.metadata.version(name) for name in PACKAGES}


def as_text(given: str) -> str:
    """Return what was typed; bytes of it that are no text are written as escapes."""
    return given.encode(errors="backslashreplace").decode()


def beside(source: Path, out: Path | None) -> str:
    """Return a source's path from the figure's folder, if every name in it is one that was typed.

    Args:
        source: a run directory, or another file.
        out: the figure's file, if it is known.
    """
    if out is None:
        return ""
    path = Path(os.path.relpath(source, out.parent))
    typed = {"..", *source.parts, *out.parts}
    return as_text(path.as_posix()) if typed.issuperset(path.parts) else ""
