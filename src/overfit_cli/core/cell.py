"""Cells: one training run each, what is measured of it, and the paper that it comes from."""

from __future__ import annotations

import functools
import hashlib
import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Generic, Literal, NamedTuple, Self, TypeAlias

from typing_extensions import TypeVar

from overfit_cli.core.claim import Verdict
from overfit_cli.core.parameters import StudyParameters, check_texts, parameters_json
from overfit_cli.core.text import brief, visible


@dataclass(frozen=True)
class Finding:
    """A result on a paper in a sentence or two; `{NAME}` is the measured number of that claim.

    It rests on the verdicts of claims, by name, at the level of all together: where a report has
    another one it does not show the finding.
    """

    text: str
    verdicts: Mapping[str, Verdict] = field(hash=False)

    def stands(self, judged: Mapping[str, Verdict]) -> bool:
        """Whether claims have the verdicts that it rests on."""
        return all(judged.get(name) == verdict for name, verdict in self.verdicts.items())


@dataclass(frozen=True)
class Paper:
    """A paper whose experiments studies run, with authors as it is cited: `Jiang et al.`."""

    authors: str
    year: int
    title: str
    url: str = ""
    findings: tuple[Finding, ...] = ()

    @property
    def key(self) -> str:
        """Its name on the command line: the first author and the year, `jiang2024`."""
        plain = unicodedata.normalize("NFKD", self.authors).encode("ascii", "ignore").decode()
        first = re.match(r"[\w-]+", plain)
        return f"{first[0].lower() if first else 'paper'}{self.year}"

    def __str__(self) -> str:
        return f"{self.authors} {self.year}"


class SourceFile(NamedTuple):
    """A file with code that trains; `name` is its path from the folder that imports find it in.

    The path is None for code that was typed into a notebook.
    """

    name: str
    content: bytes
    path: Path | None = None


class Identity(NamedTuple):
    """The description of a study that isn't installed, as a run directory keeps it.

    Attributes:
        source: a digest of the code that trains; empty where the numerical version tells it apart.
        function: the `FunctionRecord` of a plain function, from which its cells can be read.
        files: the function's file and those of the user's that it imports; else its own text.
    """

    source: str = ""
    function: Any = None
    files: tuple[SourceFile, ...] = ()


P = TypeVar("P", bound=StudyParameters)


P_co = TypeVar("P_co", bound=StudyParameters, covariant=True, default=StudyParameters)


TRACEBACK = "traceback"
"""The column of tracebacks, which a part of cells has where one of them raised."""

ROW_COLUMNS = frozenset(
    {"key", "study", "version", "seed", "status", "reason", TRACEBACK, "steps", "seconds"}
)
"""Columns that cells' rows have beside parameters and measurements."""


def taken_columns(parameters: type[StudyParameters]) -> frozenset[str]:
    """Return the columns that rows of cells with these parameters have before any measurement."""
    return ROW_COLUMNS | parameters.model_fields.keys()


def parameter_columns(columns: Iterable[object]) -> list[str]:
    """Return the names of the parameters among a row's columns, whatever the version of cells."""
    names = list(map(str, columns))
    return names[names.index("seed") + 1 : names.index("status")]


def name_taken(name: str) -> str:
    """Return why no measurement can have the name of one of these columns, and another name."""
    return f"a column can't be called {name!r}, which every row has already; call it my_{name}"


@dataclass(frozen=True)
class Cell(Generic[P_co]):
    """One training run: a study at a numerical version, a value for every parameter, and a seed."""

    study: str
    version: int
    parameters: P_co
    seed: int

    @functools.cached_property
    def key(self) -> str:
        """The cell's name for good: a hash of all four, in 20 hexadecimal digits."""
        # As json.dumps writes it, with sorted names and no blanks.
        text = (
            f'{{"parameters":{parameters_json(self.parameters)},"seed":{self.seed},'
            f'"study":{json.dumps(self.study)},"version":{self.version}}}'
        )
        return hashlib.sha256(text.encode()).hexdigest()[:20]

    def with_at_most(self, **most: float) -> Self:
        """Return the cell with these parameters lowered to what is given, where they are above."""
        lowered = {name: min(value, getattr(self.parameters, name)) for name, value in most.items()}
        return replace(self, parameters=self.parameters.model_copy(update=lowered))


@dataclass(frozen=True)
class Column:
    """A measurement that a study makes: a column of its cell rows or of its trajectories.

    `symbol` is the paper's, in mathtext without the dollar signs; `unit` is empty for pure numbers;
    `label` is a few words for axes and legends, by default the meaning where that is short, else
    the name.

    Attributes:
        kind: what is stored of it; `single` is float32, for what figures alone read.
        decades: whether it is the decimal logarithm of a number over its bound, above 0 beyond it.
        reached: whether every cell that is done reaches it; otherwise an empty place of a cell that
            is done or diverged is beyond all others, as the steps to a target are.
        diverges: whether it is infinite where training diverged or ended above its target, as a
            loss is.
    """

    name: str
    meaning: str
    symbol: str = ""
    label: str = ""
    unit: str = ""
    kind: Literal["float", "single", "int"] = "float"
    decades: bool = False
    reached: bool = True
    diverges: bool = False

    def __post_init__(self) -> None:
        check_texts(self)


@dataclass(frozen=True)
class CellResult(Generic[P_co]):
    """The result of training one cell; the machine fills in seconds, trajectory and traceback.

    Attributes:
        measurements: values by the names of the study's `columns`; what is absent is null.
        reason: why it failed (`diverged`, `step limit`, ...); empty when it is done.
        seconds: wall time of the cell; where cells are trained together, its share.
        trajectory: values by `step` and the names of the study's `trajectory_columns`.
    """

    cell: Cell[P_co]
    measurements: Mapping[str, float] = field(default_factory=dict)
    steps: int = 0
    reason: str = ""
    seconds: float = 0.0
    trajectory: Mapping[str, Sequence[float]] = field(default_factory=dict)
    traceback: str = ""

    def __repr__(self) -> str:
        values, numbers = (
            ", ".join(f"{name} {brief(value)}" for name, value in pairs.items())
            for pairs in (self.cell.parameters.model_dump(), self.measurements)
        )
        setting = f"{self.cell.study}, {values}, seed {self.cell.seed}"
        return visible(f"<CellResult of {setting}: {self.reason or numbers or self.status}>")

    @property
    def status(self) -> Literal["done", "failed"]:
        """`failed` where there is a reason for it, else `done`."""
        return "failed" if self.reason else "done"


Batch: TypeAlias = Sequence[Cell[P]]


Batches: TypeAlias = list[list[Cell[P]]]


Results: TypeAlias = Iterator[CellResult[P]]
