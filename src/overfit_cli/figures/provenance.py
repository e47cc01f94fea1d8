"""A figure's record: what it was drawn from, and with what. Anybody may have edited it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    ValidationError,
    model_validator,
)

from overfit_cli.errors import UserError, shortened
from overfit_cli.figure import FigureOptions


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
