"""Studies: the base class, its cells and columns, checks, and those that are installed.

Papers: whose experiments studies are.

The base class of studies: parameters, measurements, and how cells are trained.

Checks that a study is whole, made when it is loaded: what is wrong then costs no training.

Installed studies, found by their entry points and loaded with care.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib
import json
import re
import unicodedata
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any, Generic, Literal, Self, TypeAlias

from typing_extensions import TypeVar

from overfit_cli.core.claim import Claim
from overfit_cli.core.figure import Figure, any_grid
from overfit_cli.core.parameters import StudyParameters, as_json, describe, is_finite_number
from overfit_cli.core.text import UserError, nearest, plural

if TYPE_CHECKING:
    from overfit_cli.core.training import Training


@dataclass(frozen=True)
class Paper:
    """A paper whose experiments studies run.

    Attributes:
        authors: as it is cited: `Jiang et al.`
        year: when it appeared.
        title: in full.
        url: where it is read; empty where it is nowhere.
    """

    authors: str
    year: int
    title: str
    url: str = ""

    @property
    def key(self) -> str:
        """Its name on the command line: the first author and the year, `jiang2024`."""
        plain = unicodedata.normalize("NFKD", self.authors).encode("ascii", "ignore").decode()
        first = re.match(r"[\w-]+", plain)
        return f"{first[0].lower() if first else 'paper'}{self.year}"

    def __str__(self) -> str:
        """As it is cited: `Jiang et al. 2024`."""
        return f"{self.authors} {self.year}"


P = TypeVar("P", bound=StudyParameters)
P_co = TypeVar("P_co", bound=StudyParameters, covariant=True, default=StudyParameters)

MOST_PROGRESS_COLUMNS = 5

ROW_COLUMNS = frozenset({"key", "study", "version", "seed", "status", "reason", "steps", "seconds"})
"""Columns that every cell's row has beside its parameters and measurements."""


def taken_columns(parameters: type[StudyParameters]) -> frozenset[str]:
    """Return the columns that rows of cells with these parameters have before any measurement."""
    return ROW_COLUMNS | parameters.model_fields.keys()


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
            f'{{"parameters":{as_json(self.parameters)},"seed":{self.seed},'
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
    `label`, a few words for axes and legends, is empty where the meaning is short enough.
    """

    name: str
    meaning: str
    kind: Literal["float", "int"] = "float"
    symbol: str = ""
    unit: str = ""
    label: str = ""


@dataclass(frozen=True)
class CellResult(Generic[P_co]):
    """What training one cell gave.

    Attributes:
        cell: the cell.
        measurements: values by the names of the study's `columns`; what is absent is null.
        steps: gradient steps taken.
        reason: why it failed (`diverged`, `step limit`, ...); empty when it is done.
        seconds: wall time of the cell; where cells are trained together, its share. The machine
            fills it in.
        trajectory: values by `step` and the names of the study's `trajectory_columns`, equally
            long; empty where none was asked for. The machine fills it in with what was logged.
    """

    cell: Cell[P_co]
    measurements: Mapping[str, float] = field(default_factory=dict)
    steps: int = 0
    reason: str = ""
    seconds: float = 0.0
    trajectory: Mapping[str, Sequence[float]] = field(default_factory=dict)

    @property
    def status(self) -> Literal["done", "failed"]:
        """`failed` where there is a reason for it, else `done`."""
        return "failed" if self.reason else "done"


Cells: TypeAlias = Sequence[Cell[P]]
Batches: TypeAlias = list[list[Cell[P]]]
Results: TypeAlias = Iterator[CellResult[P]]


class Study(ABC, Generic[P]):
    """One experiment. A module-level instance of a subclass is what an entry point names.

    Every study has a name, a version, parameters, columns and `train`. Everything else has a
    default that works.
    """

    title: str = ""
    """What it is, in a line."""

    paper: Paper | None = None
    """The paper whose experiment it is; None where it is nobody's."""

    trajectory_columns: tuple[Column, ...] = ()
    """What is logged on the way, when asked for."""

    threshold: float | None = None
    """The value of the headline at which a cell changes sides."""

    sides: tuple[str, str] = ("", "")
    """What a cell is called whose headline is up to the threshold, and above it."""

    claims_in: str = ""
    """The module that has its `CLAIMS`, which is imported when they are asked for."""

    problem: str = ""
    """Why it can't train in this process; empty where it can."""

    step: str = "gradient steps"
    """What its steps are, on axes."""

    source_digest: str = ""
    """A digest of the code that trains, where the numerical version doesn't tell it apart."""

    open_columns: bool = False
    """Whether results may have other columns too: what a plain function returns isn't declared."""

    def __new__(cls, *args: Any, **options: Any) -> Study[P]:
        """Refuse to make a study that lacks an obligatory member, in a sentence.

        Raises:
            TypeError: naming what it lacks.
        """
        if lacking := sorted(cls.__abstractmethods__):
            raise TypeError(f"{cls.__name__} lacks {', '.join(lacking)}, which every study has")
        return super().__new__(cls)

    @property
    @abstractmethod
    def name(self) -> str:
        """Its name on the command line."""

    @property
    @abstractmethod
    def version(self) -> int:
        """Its numerical version: raised when the same cell would give other numbers."""

    @property
    @abstractmethod
    def parameters(self) -> type[P]:
        """The model of its parameters."""

    @property
    @abstractmethod
    def columns(self) -> tuple[Column, ...]:
        """What is measured once per cell."""

    @abstractmethod
    def train(self, batch: Cells[P], training: Training) -> Results[P]:
        """Train a batch and give one result per cell, in any order.

        It runs on one thread. What it raises, and nan among its measurements, become failed cells.

        Args:
            batch: one of the lists that `batches` made.
            training: the device, and where to log steps.
        """

    @property
    def has_steps(self) -> bool:
        """Whether it logs steps, where they are wanted."""
        return bool(self.trajectory_columns)

    @property
    def label(self) -> str:
        """Its name in the names of run directories."""
        return self.name

    @property
    def headline(self) -> str:
        """The column shown while a sweep runs, and by figures asked for no other."""
        return self.columns[0].name if self.columns else ""

    @property
    def progress_columns(self) -> tuple[str, ...]:
        """The trajectory columns shown while a single cell trains."""
        return tuple(column.name for column in self.trajectory_columns[:MOST_PROGRESS_COLUMNS])

    def figures(self) -> Mapping[str, Figure]:
        """Return its figures by name: by default those that any grid can have."""
        from overfit_cli.core.figure import any_grid

        return any_grid(self.threshold)

    @property
    def has_claims(self) -> bool:
        """Whether it has claims, told without importing what measures them."""
        return bool(self.claims_in) or type(self).claims is not Study.claims

    def claims(self) -> Sequence[Claim]:
        """Return the claims of the paper that its cells can decide."""
        return importlib.import_module(self.claims_in).CLAIMS if self.claims_in else ()

    def prepare(self, cells: Cells[P]) -> Mapping[str, str]:
        """Make ready what cells need from outside, such as data; called before cells are trained.

        A sweep's parent calls it for all cells. A worker of a cluster does so for those of a task,
        where the parent has found data, and its fingerprints must be the same.

        Args:
            cells: those that will run, at least one.

        Returns:
            a fingerprint of each collection of data that they read, by the collection's name. A
            run directory is held to them, so that cells of different data never mix.

        Raises:
            UserError: if something is missing.
        """
        return {}

    def notes(self, cells: Cells[P]) -> Sequence[str]:
        """Return what to say about cells before they are trained, one line each."""
        return ()

    def batches(self, cells: Cells[P], device: str) -> Batches[P]:
        """Split `cells` into lists that are trained together, in the order to start them.

        By default each cell is by itself, the costliest first. How many batches a worker takes at
        a time is the machine's business: about a second's work.
        """
        return [[cell] for cell in sorted(cells, key=lambda cell: (-self.cost(cell), cell.seed))]

    def cost(self, cell: Cell[P]) -> float:
        """Return the work of a cell, in any unit that is the same for all of the study's cells."""
        return 1.0

    def probe(self, cell: Cell[P]) -> Cell[P]:
        """Return a cell like this one that takes seconds, to estimate a sweep's time from."""
        return cell

    def memory(self, cell: Cell[P]) -> float | None:
        """Return about how many bytes training the cell takes, at its peak.

        None, the default, leaves it to the probe.
        """
        return None

    def summary(self, result: CellResult[P]) -> str:
        """Say in a sentence what one trained cell shows."""
        numbers = ", ".join(f"{name} {value:.4g}" for name, value in result.measurements.items())
        after = f" after {plural(result.steps, 'step')}" if result.steps else ""
        if result.reason:
            return f"Failed ({result.reason}){after}{': ' if numbers else ''}{numbers}."
        return f"Trained{after}: {numbers}."


AnyStudy = Study[Any]


LARGEST_VERSION = 2**63 - 1
_VERSION = "it takes a whole number of at least 1"
_KINDS = ("float", "int")


def why_no_study(study: object, name: str) -> str:
    """Return why an object is no study of that name; empty where it is one."""
    if not isinstance(study, Study):
        return "it is not an instance of a class that inherits from Study"
    return next(_problems(study, name), "")


def version_problem(version: object) -> str:
    """Return why nothing can be of that numerical version; empty where it can."""
    if isinstance(version, int) and not isinstance(version, bool):
        return "" if 1 <= version <= LARGEST_VERSION else _VERSION
    return _VERSION


def text_problem(text: object) -> str:
    """Return why nothing can be called so; empty where it can."""
    if not isinstance(text, str):
        return "it takes a text"
    return "" if text.strip() and text.isprintable() else "it takes a line that can be printed"


def threshold_problem(threshold: object) -> str:
    """Return why that is no threshold; empty where it is one, or None."""
    good = threshold is None or is_finite_number(threshold)
    return "" if good else "it takes a finite number"


def sides_problem(sides: object) -> str:
    """Return why these are no names of the two sides of a threshold; empty where they are."""
    if isinstance(sides, tuple) and [isinstance(one, str) for one in sides] == [True, True]:
        return ""
    return "it takes two texts: what is up to the threshold, and what is above"


def _problems(study: Study[StudyParameters], name: str) -> Iterator[str]:
    members: Mapping[str, str] = {
        "name": text_problem(study.name),
        "version": version_problem(study.version),
        "threshold": threshold_problem(study.threshold),
        "sides": sides_problem(study.sides),
    }
    yield from (
        f"its {member} is {getattr(study, member)!r}; {why}"
        for member, why in members.items()
        if why
    )
    model: object = study.parameters
    if not (isinstance(model, type) and issubclass(model, StudyParameters)):
        yield "its parameters must be a class that inherits from StudyParameters"
        return
    describe(model)
    taken = taken_columns(model)
    yield from _columns_problems("columns", study.columns, taken)
    yield from _columns_problems("trajectory_columns", study.trajectory_columns, taken | {"step"})
    if not study.columns:
        yield "its columns are none, so that nothing would be measured"
    known = {column.name for column in study.columns}
    if study.headline not in known:
        yield f"its headline is {study.headline!r}, which is none of its columns"
    if study.name != name:
        yield f"its name is {study.name!r}"


def _columns_problems(
    member: str, columns: Sequence[object], taken: frozenset[str]
) -> Iterator[str]:
    if not isinstance(columns, tuple):
        yield f"its {member} must be of type tuple"
        return
    names = set[str]()
    for column in columns:
        if not isinstance(column, Column):
            yield f"its {member} have {column!r}, which is no Column"
            return
        if why := text_problem(column.name):
            yield f"its {member} have one called {column.name!r}; {why}"
        if column.kind not in _KINDS:
            yield f"the kind of its column {column.name!r} is {column.kind!r}, not float or int"
        if column.name in taken:
            yield f"its column {column.name!r} is one that every row has already"
        if column.name in names:
            yield f"two of its {member} are called {column.name!r}"
        names.add(column.name)


ENTRY_POINT_GROUP = "overfit.studies"


@functools.cache
def _entry_points() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=ENTRY_POINT_GROUP)}


_added: dict[str, AnyStudy] = {}


def add_study(study: AnyStudy) -> None:
    """Have a study be found in this process as if it were installed.

    Raises:
        UserError: if it is no whole study, or another one is installed under its name.
    """
    if reason := why_no_study(study, study.name):
        raise UserError(f"{type(study).__name__} is not a study: {reason}.")
    if study.name in _entry_points() and find_study(study.name) is not study:
        raise UserError(f"A study {study.name!r} is installed; give yours another name.")
    if study.name not in _entry_points():
        _added[study.name] = study


def study_names() -> list[str]:
    """Return the names of all studies that are installed, or were added in this process."""
    return sorted({*_entry_points(), *_added})


def find_study(name: str) -> AnyStudy:
    """Return the study `name`.

    Raises:
        UserError: if there is none of that name, or its package can't be loaded.
    """
    if name in _added:
        return _added[name]
    if name not in _entry_points():
        raise UserError(f"{name!r} is not a study; {nearest(name, study_names())}")
    found = _load(_entry_points()[name])
    if isinstance(found, str):
        source = _entry_points()[name].value
        raise UserError(f"The study {name!r} can't be loaded from {source}: {found}")
    return found


@functools.cache
def _load(point: EntryPoint) -> AnyStudy | str:
    """An installed study, or why it can't be loaded."""
    try:
        study: AnyStudy = point.load()
        return why_no_study(study, point.name) or study
    except BaseException as error:  # a package of somebody else's may even exit
        if isinstance(error, KeyboardInterrupt):
            raise
        return f"{type(error).__name__}: {error}"


def installed_studies() -> Iterator[AnyStudy]:
    """Give every study that can be found; warn of each that can't be loaded."""
    for name in study_names():
        try:
            yield find_study(name)
        except UserError as error:
            warnings.warn(str(error), UserWarning, stacklevel=2)


@contextlib.contextmanager
def blaming(study: AnyStudy, doing: str) -> Iterator[None]:
    """Have what a study raises in here name it, in a sentence.

    Raises:
        UserError: in place of every other exception; one of its own stays as it is.
    """
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
        raise UserError(f"The study {study.name!r} fails at {doing}: {said}.") from error


def figures_of(study: AnyStudy) -> Mapping[str, Figure]:
    """Return a study's figures, and those that any grid can have where it has none of that name.

    A study that can't name its figures has the general ones alone, with a warning.
    """
    own: Mapping[str, Figure] = {}
    try:
        with blaming(study, "its figures"):
            own = study.figures()
    except UserError as error:
        warnings.warn(str(error), UserWarning, stacklevel=2)
    general = any_grid(study.threshold)
    return {**own, **{name: one for name, one in general.items() if name not in own}}


def claims_of(study: AnyStudy) -> Sequence[Claim]:
    """Return a study's claims; none, with a warning, where it can't name them."""
    try:
        with blaming(study, "its claims"):
            return study.claims()
    except UserError as error:
        warnings.warn(str(error), UserWarning, stacklevel=2)
        return ()
