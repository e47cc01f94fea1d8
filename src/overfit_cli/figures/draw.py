"""A figure from run directories: loaded, compared, drawn, captioned, and recorded in its file.

The record is JSON in the metadata of a PNG, PDF or SVG file: the request, a digest of the cells
that were drawn, and the versions of what drew them. A file may have been edited by hand, so that
the record's form is checked when it is read.
"""

from __future__ import annotations

import hashlib
import io
import json
import logging
import os
import re
import shlex
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal
from xml.etree import ElementTree

import numpy as np
import pandas as pd
from PIL import Image
from pydantic import BaseModel, BeforeValidator, Field, ValidationError

from overfit_cli.core import files, registry
from overfit_cli.core.cells import Cells
from overfit_cli.core.errors import BadValue, UserError, first_problem
from overfit_cli.core.figure import Figure, FigureOptions
from overfit_cli.core.text import VERSION, most_alike, shorten, typed_command, visible
from overfit_cli.figures import inputs, labels
from overfit_cli.figures.picture import Picture, looking, save
from overfit_cli.figures.style import Look
from overfit_cli.sweeps.load import load_run, study_in
from overfit_cli.sweeps.manifest import count_sources, provenance_in_words
from overfit_cli.sweeps.store import RunDirectory


def draw_figure(
    name: str,
    directories: Sequence[RunDirectory],
    options: FigureOptions,
    where: Sequence[str] = (),
    minus: RunDirectory | None = None,
    look: Look | None = None,
    out: Path | None = None,
    names: Sequence[str] = (),
) -> Picture:
    """Draw a figure of run directories, with its caption and its record.

    Args:
        minus: a run directory to subtract, cell by cell.
        out: the file to write it to, with its caption beside it; None for none.
        names: what it calls several run directories, the subtracted one last; by default what their
            paths say.
    """
    sources = [*directories, *filter(None, [minus])]
    loaded = [figure_and_data(name, each, where) for each in sources]
    figure, paths = loaded[0][0], [source.path for source in sources]
    _refuse_unheeded(figure, directories, options, minus)
    if not names and len({path.resolve() for path in paths}) < len(paths):
        raise BadValue("directory", str(paths[0]), "a run directory is named twice.")
    read = [inputs.read_options(figure, part, options) for _, part in loaded]
    derived, asked = [part for part, _ in read], read[0][1]
    names = names or files.short_names(paths)
    usual = derived[0].study.headline if figure.reads == "cells" else ""
    value = asked.value or figure.options.value or usual
    if minus is None:
        data = inputs.side_by_side(names, derived, re.split("[,;]", value)[0].strip())
    else:
        data = inputs.difference(derived[0], derived[1], ("here", names[-1]), value)
    unpaired = labels.unpaired(data)
    told = [f"{names[-1]}: {unpaired}; the others are left out"] if unpaired else []
    for sentence in [*told, *provenance_in_words(data.parts or {"": data})]:
        warnings.warn(sentence, UserWarning, stacklevel=2)
    picture = drawn(figure, data, asked, look)
    runs = [
        record_of_run(part, figure, options, out=out, name=called)
        for (_, part), called in zip(loaded, names if loaded[1:] else [""], strict=True)
    ]
    return finish(
        picture,
        out,
        title=figure.title,
        figure=name,
        options=options,
        where=tuple(where),
        look=replace(look or Look(), settings={}),
        runs=tuple(runs[: len(directories)]),
        minus=runs[-1] if minus is not None else None,
    )


def finish(picture: Picture, out: Path | None, **request: Any) -> Picture:
    """Return a figure that is drawn now with its record, and write it where it has a file."""
    now: Any = {"overfit": VERSION, "packages": versions(), "command": shlex.join(typed_command())}
    picture.metadata = FigureRecord(schema=1, **now, **request).metadata()
    if out is not None:
        save(picture, out)
    return picture


def record_of_run(data: Cells, figure: Figure, options: FigureOptions, **of: Any) -> SourceRecord:
    """Return the record of a run directory: the cells that it gives the figure.

    Logged steps count where the figure reads them, and times where it draws them.
    """
    steps = data.steps if figure.reads == "trajectories" else None
    columns = " ".join(filter(None, (options.value, options.theory, figure.options.value)))
    return record_of_cells(data, steps, seconds="seconds" in re.findall(r"\w+", columns), **of)


def drawn(figure: Figure, data: Cells, asked: FigureOptions, look: Look | None = None) -> Picture:
    """Draw a figure of some data, with its caption."""
    with looking(look or Look(), " ".join(labels.stand_ins(data))):
        on_axes, options = inputs.prepare(figure, data, asked)
        try:
            picture: Picture = figure.draw(on_axes, options)
        except (KeyError, ValueError) as error:  # of a column or parameter taken for granted
            varies = ", ".join(data.varying()) or "nothing"
            problem = f"here varies {varies} ({type(error).__name__}: {error})."
            raise UserError(f"{figure.name} is no figure of these cells; {problem}") from error
    if picture.is_empty():
        raise UserError(f"{figure.name}: nothing would be drawn; the cells hold no number for it.")
    equation, note = figure.equation_of(on_axes) if figure.equation_of is not None else ("", "")
    picture.facts += [note] if note and options.law == (equation,) else []
    own, facts = figure.options, picture.facts or [f"{figure.title}."]
    usual = (options.x, options.y, options.value) == (own.x, own.y, own.value)
    if figure.source and usual and not data.pairs and figure.reproduces(data):
        facts = [*facts, f"After {figure.source}."]
    picture.caption = labels.caption(" ".join(facts), data)
    return picture


def figure_and_data(
    name: str, directory: RunDirectory, where: Sequence[str]
) -> tuple[Figure, Cells]:
    """Return a figure of a run directory's study, and what it is drawn from."""
    study = study_in(directory)
    figures = registry.figures_of(study)
    if name not in figures:  # before cells are read
        near = most_alike(name, figures, cutoff=0.7)
        hint = f"did you mean {near!r}?" if near else f"it has {', '.join(sorted(figures))}."
        raise UserError(f"{study.name} has no figure {name!r}; {hint}")
    figure, data = figures[name], load_run(directory).where(*where)
    if figure.reads == "trajectories" and data.steps.empty:
        none = f"it holds no trajectories, which {name} requires; `overfit train` writes them."
        raise BadValue("directory", str(directory.path), none)
    return figure, data


def _refuse_unheeded(
    figure: Figure, runs: Sequence[RunDirectory], asked: FigureOptions, minus: RunDirectory | None
) -> None:
    several = len(runs) > 1
    if minus is not None and several:
        raise BadValue("minus", None, "it subtracts from one run directory; name one.")
    if several and "from" not in figure.accepts:
        named = " ".join(str(run.path) for run in runs)
        raise BadValue("directory", named, f"{figure.name} draws one run directory.")
    given = asked.given() | ({"minus": str(minus.path)} if minus is not None else {})
    for name in given.keys() - figure.accepts:
        value = given[name]
        value = ",".join(sorted(value)) or "none" if isinstance(value, frozenset | tuple) else value
        accepted = ", ".join(sorted(figure.accepts - {"from"})) or "none"
        raise BadValue(name, value, f"{figure.name} has no such option; it accepts {accepted}.")


KEYWORD = "overfit"
"""The keyword of the record in a PNG file; PDF and SVG files have fields of their own."""

TOLERANCE = 20
"""Levels of 255 by which a pixel may differ: where rounding differs between processors, another of
a file's 256 colours may be the nearest one."""

_DESCRIPTION = ".//{http://purl.org/dc/elements/1.1/}description"


def _escaped(given: object) -> object:
    return given.encode(errors="backslashreplace").decode() if isinstance(given, str) else given


Text = Annotated[str, BeforeValidator(_escaped)]
"""A text as JSON holds it: bytes of a file's name that are no text become escapes."""


class SourceRecord(BaseModel, frozen=True, extra="forbid"):
    """A run directory, or a CSV file of published numbers, at the time of drawing.

    Attributes:
        path, beside: as the user named it, and from the figure's folder (see `path_beside`).
        name: its name in the figure; empty where it is the only one.
        study, version, commits: of the cells, and of the code that trained them.
        sources: how many of its cells each source of a function trained, by its digest.
        cells, key: the number of cells that were drawn, and a digest of their keys.
        data: a digest of the cells' numbers; of a file, the SHA-256 of its content.
    """

    path: Text
    beside: Text = ""
    name: Text = ""
    study: Text = ""
    version: int = 0
    commits: tuple[Text, ...] = ()
    sources: Mapping[Text, int] = {}
    cells: int = 0
    key: Text = ""
    data: Text


class ComparisonRecord(BaseModel, frozen=True, extra="forbid"):
    """The settings with which `overfit compare` compared A and B; differences are B − A.

    Attributes:
        columns: the measured columns that were compared; the first one is drawn.
        where_a, where_b: conditions on one side alone.
        published: B, where it is a file; otherwise it is the second of the runs.
    """

    columns: Annotated[tuple[Text, ...], Field(min_length=1)]
    where_a: tuple[Text, ...] = ()
    where_b: tuple[Text, ...] = ()
    published: SourceRecord | None = None


class FigureRecord(BaseModel, frozen=True, extra="forbid"):
    """The record that lets a figure be drawn again, and its data be recognised.

    Attributes:
        overfit, packages: the versions that drew the figure.
        command, title: the command line, empty from Python; what the figure shows, in a phrase.
        figure, options, where, look: the request; the look's settings are JSON.
        runs, minus: the run directories, in the order of the request, and the subtracted one.
        compared: how two sides were compared; None for other figures.
        claims: the claims that `overfit judge` drew, as it takes them; empty for other figures.
    """

    schema_version: Literal[1] = Field(alias="schema")
    overfit: Text
    packages: Mapping[str, str]
    command: Text = ""
    title: Text = ""
    figure: Text
    options: FigureOptions = FigureOptions()
    where: tuple[Text, ...] = ()
    look: Look = Look()
    runs: Annotated[tuple[SourceRecord, ...], Field(min_length=1)]
    minus: SourceRecord | None = None
    compared: ComparisonRecord | None = None
    claims: tuple[Text, ...] = ()

    @property
    def sources(self) -> tuple[SourceRecord, ...]:
        """All run directories, then the subtracted one, or the file of published numbers."""
        published = self.compared.published if self.compared is not None else None
        return (*self.runs, *filter(None, (self.minus, published)))

    def text(self) -> str:
        """Return the record as JSON in ASCII, the same for the same record, without defaults."""
        fields = self.model_dump(by_alias=True, exclude_defaults=True)
        return json.dumps(fields, default=sorted)  # the order of a set changes by process

    def metadata(self) -> dict[str, dict[str, str]]:
        """Return matplotlib's metadata of a file with this record, for each kind of file."""
        title, text = visible(" ".join(self.title.split())), self.text()
        maker = f"overfit {self.overfit}"
        package = f"matplotlib {self.packages.get('matplotlib', '')}"
        return {
            "png": {"Title": title, "Software": f"{maker}, {package}", KEYWORD: text},
            "pdf": {"Title": title, "Creator": maker, "Producer": package, "Keywords": text},
            "svg": {"Title": title, "Creator": maker, "Description": text},
        }


def versions() -> dict[str, str]:
    """Return the versions of the packages that draw; with another one a picture may differ."""
    return {name: registry.package_version(name) for name in ("matplotlib", "numpy")}


def record_of_cells(
    cells: Cells,
    steps: pd.DataFrame | None = None,
    *,
    seconds: bool = False,
    out: Path | None = None,
    name: str = "",
) -> SourceRecord:
    """Return the record of a run directory's chosen cells, for the figure in the file `out`.

    Logged steps and the seconds that cells took are part of it where the figure draws them.
    """
    run, trained = cells.runs[0], cells.trained
    path, sources = run.path or Path(), count_sources(run.sources, trained["key"])
    commits = [commit for source, commit in run.commits if not source or source in sources]
    return SourceRecord(
        path=path.as_posix(),
        beside=path_beside(path, out),
        name=name,
        study=cells.study.name,
        version=int(trained["version"].iloc[0]),
        commits=tuple(dict.fromkeys(commits)),
        sources=sources,
        cells=len(trained),
        key=key_of_cells(trained),
        data=digest_of_numbers(trained, steps, seconds=seconds),
    )


def key_of_cells(cells: pd.DataFrame) -> str:
    """Return a name for a choice of cells, in 20 hexadecimal digits, as their own keys have.

    It is the SHA-256 of the cells' keys, sorted, one a line.
    """
    return hashlib.sha256("\n".join(sorted(cells["key"])).encode()).hexdigest()[:20]


def digest_of_numbers(
    cells: pd.DataFrame, steps: pd.DataFrame | None = None, *, seconds: bool = False
) -> str:
    """Return the SHA-256 of everything that cells hold, and of their logged steps.

    Neither the order of rows and columns matters, nor a column that holds nothing, nor whether
    whole numbers are stored as real ones. Of each table it takes the number of rows, and of each
    column, in the order of their names, the name and the values: numbers as float64,
    little-endian, texts as a list in JSON.

    Args:
        steps: one row per cell and logged step; None where they don't matter.
        seconds: whether the time that a cell took matters.
    """
    digest = hashlib.sha256()
    cells = cells if seconds else cells.drop(columns="seconds", errors="ignore")
    for table, order in ((cells, ["key"]), (steps, ["key", "step"])):
        if table is not None:
            digest.update(f"{len(table)} rows\n".encode())
            rows = table.sort_values(order, kind="stable")
            for name in sorted(map(str, rows.columns[rows.notna().any()])):
                digest.update(f"{name}\n".encode() + _values(rows[name]))
    return digest.hexdigest()


def _values(column: pd.Series[Any]) -> bytes:
    if column.dtype.kind in "biuf":
        numbers = column.to_numpy(dtype="<f8", na_value=np.nan)
        return np.where(np.isnan(numbers), np.nan, numbers).astype("<f8").tobytes()
    texts = column.astype(object).where(column.notna(), None).tolist()
    return json.dumps(texts, default=str).encode()


def path_beside(source: Path, out: Path | None) -> str:
    """Return a path from a figure's folder; empty where it has a name that wasn't typed.

    On Windows it is empty too where the two lie on different drives.
    """
    if out is None:
        return ""
    try:
        path = Path(os.path.relpath(source, out.parent))
    except ValueError:
        return ""
    return path.as_posix() if {"..", *source.parts, *out.parts}.issuperset(path.parts) else ""


def read_record(content: bytes) -> tuple[str, FigureRecord]:
    """Return the kind of a file (png, pdf or svg) and the record in it."""
    kind, text = _text_in(content)
    if not isinstance(text, str) or not text.lstrip().startswith("{"):
        raise UserError("it holds no record; it takes a PNG, PDF or SVG file that overfit drew.")
    try:
        return kind, FigureRecord.model_validate_json(text, strict=True)
    except ValidationError as error:
        raise UserError(f"its record can't be read ({first_problem(error)}).") from None


def _text_in(content: bytes) -> tuple[str, str | None]:
    try:
        if content.startswith(b"\x89PNG\r\n\x1a\n"):
            return "png", _open_png(content).info.get(KEYWORD)
        if content.startswith(b"%PDF-"):
            from pypdf import PdfReader

            logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it would warn about every flaw
            facts = PdfReader(io.BytesIO(content)).metadata
            return "pdf", facts.keywords if facts is not None else None
        if b"<svg" in content[:4096]:
            return "svg", ElementTree.fromstring(content).findtext(_DESCRIPTION)
    except Exception as error:  # a damaged file raises all kinds of errors
        reason = visible(shorten(str(error).strip())) or type(error).__name__
        raise UserError(f"it isn't a whole figure ({reason}).") from None
    return "", None


def _open_png(content: bytes) -> Image.Image:
    with warnings.catch_warnings(action="ignore"):
        image = Image.open(io.BytesIO(content), formats=["PNG"])
        image.load()  # metadata may stand behind the pixels
    return image


def same_picture(kind: str, kept: bytes, drawn: bytes) -> bool:
    """Return whether two files of a kind show the same: PNG by pixels, PDF and SVG by bytes."""
    if kind != "png":
        return kept == drawn
    images = [_open_png(content).convert("RGBA") for content in (kept, drawn)]
    before, after = (np.asarray(image, np.int16) for image in images)
    return before.shape == after.shape and bool((abs(before - after) <= TOLERANCE).all())
