"""What a study is, what a cell is, and where studies are found."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from typing import Literal, Protocol

from overfit_cli.claim import Claim
from overfit_cli.errors import UserError, nearest
from overfit_cli.figure import Figure
from overfit_cli.parameters import StudyParameters, as_json, describe

ENTRY_POINT_GROUP = "overfit.studies"


@dataclass(frozen=True)
class Cell:
    """One training run: a study at a numerical version, a value for every parameter, and a seed."""

    study: str
    version: int
    parameters: StudyParameters
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


@dataclass(frozen=True)
class Column:
    """A measurement that a study makes: a column of its cell rows or of its trajectories.

    `symbol` is the paper's, in mathtext without the dollar signs; `unit` is empty for pure numbers.
    """

    name: str
    meaning: str
    kind: Literal["float", "int"] = "float"
    symbol: str = ""
    unit: str = ""


@dataclass(frozen=True)
class CellResult:
    """What training one cell gave.

    Attributes:
        cell: the cell.
        status: `done` or `failed`.
        reason: why it failed (`diverged`, `step limit`, ...); empty when done.
        steps: gradient steps taken.
        seconds: wall time of the cell; where cells are trained together, its share.
        measurements: values by the names of the study's `columns`; what is absent is null.
        trajectory: values by `step` and the names of the study's `trajectory_columns`, equally
            long; empty where none was asked for.
    """

    cell: Cell
    status: Literal["done", "failed"]
    reason: str
    steps: int
    seconds: float
    measurements: Mapping[str, float] = field(default_factory=dict)
    trajectory: Mapping[str, Sequence[float]] = field(default_factory=dict)

    @classmethod
    def failure(cls, cell: Cell, reason: str) -> CellResult:
        """Return the result of a cell that ended without a number."""
        return cls(cell, "failed", reason, steps=0, seconds=0.0)


@dataclass(frozen=True)
class Execution:
    """How, not what: nothing in here changes a number.

    Attributes:
        device: `cpu` or `cuda`.
        trajectories: whether to log every step.
        on_step: called with each logged row (`step` and the trajectory columns) as it comes.
    """

    device: str = "cpu"
    trajectories: bool = False
    on_step: Callable[[Mapping[str, float]], None] | None = None


class Study(Protocol):
    """One experiment of a paper. A module-level instance of it is what an entry point names.

    A study inherits from it, and so gets `prepare` and `remarks` where it has nothing to add.
    """

    @property
    def name(self) -> str:
        """Its name on the command line."""

    @property
    def version(self) -> int:
        """Its numerical version: raised when the same cell would give other numbers."""

    @property
    def title(self) -> str:
        """What it is, in a line."""

    @property
    def paper(self) -> str:
        """The paper's authors and year."""

    @property
    def parameters(self) -> type[StudyParameters]:
        """The model of its knobs."""

    @property
    def columns(self) -> tuple[Column, ...]:
        """What is measured once a cell."""

    @property
    def trajectory_columns(self) -> tuple[Column, ...]:
        """What is logged at each step, when asked for."""

    @property
    def headline(self) -> str:
        """The column shown while a sweep runs, and by figures asked for no other."""

    @property
    def watched(self) -> tuple[str, ...]:
        """The trajectory columns shown while a single cell trains, about five."""

    def figures(self) -> Mapping[str, Figure]:
        """Return its figures by name. Heavy imports belong inside."""

    def claims(self) -> Sequence[Claim]:
        """Return the claims of the paper that its cells can decide."""

    def prepare(self, cells: Sequence[Cell]) -> Mapping[str, str]:
        """Make ready what the cells need from outside, such as data; a sweep's parent calls it.

        Returns:
            a fingerprint of each collection of data that they read, by the collection's name. A
            run directory is held to them, so that cells of different data never mix.

        Raises:
            UserError: if something is missing.
        """
        return {}

    def remarks(self, cells: Sequence[Cell]) -> Sequence[str]:
        """Return what is to be said of cells before they are trained, a line each."""
        return ()

    def batches(self, cells: Sequence[Cell], device: str) -> list[list[Cell]]:
        """Split `cells` into lists that are trained together, in the order to start them."""

    def cost(self, cell: Cell) -> float:
        """Return the work of a cell, in any unit that is the same for all of the study's cells."""

    def probe(self, cell: Cell) -> Cell:
        """Return a cell like this one that takes seconds, to estimate a sweep's time from."""

    def memory(self, cell: Cell) -> float:
        """Return about how many bytes training the cell takes, at its peak."""

    def train(self, batch: Sequence[Cell], execution: Execution) -> Iterator[CellResult]:
        """Train a batch and give one result a cell, in any order."""

    def conclusion(self, result: CellResult) -> str:
        """Say in a sentence what one trained cell shows."""


@functools.cache
def _entry_points() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=ENTRY_POINT_GROUP)}


def study_names() -> list[str]:
    """Return the names of all installed studies."""
    return sorted(_entry_points())


def find_study(name: str) -> Study:
    """Return the installed study `name`.

    Raises:
        UserError: if there is none of that name, or its package can't be loaded.
    """
    points = _entry_points()
    if name not in points:
        raise UserError(f"{name!r} is no study; {nearest(name, points)}")
    try:
        study: Study = points[name].load()
        reason = _not_a_study(study, name)
    except BaseException as error:  # a package of somebody else's may even exit
        if isinstance(error, KeyboardInterrupt):
            raise
        reason = f"{type(error).__name__}: {error}"
    if reason:
        source = points[name].value
        raise UserError(f"The study {name!r} can't be loaded from {source}: {reason}")
    return study


def installed_studies() -> Iterator[Study]:
    """Give every installed study; warn of each that can't be loaded."""
    for name in study_names():
        try:
            yield find_study(name)
        except UserError as error:
            warnings.warn(str(error), UserWarning, stacklevel=2)


@contextlib.contextmanager
def blaming(study: Study, doing: str) -> Iterator[None]:
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


def figures_of(study: Study) -> Mapping[str, Figure]:
    """Return a study's figures; none, with a warning, where it can't name them."""
    try:
        with blaming(study, "its figures"):
            return study.figures()
    except UserError as error:
        warnings.warn(str(error), UserWarning, stacklevel=2)
        return {}


def claims_of(study: Study) -> Sequence[Claim]:
    """Return a study's claims; none, with a warning, where it can't name them."""
    try:
        with blaming(study, "its claims"):
            return study.claims()
    except UserError as error:
        warnings.warn(str(error), UserWarning, stacklevel=2)
        return ()


def _not_a_study(study: Study, name: str) -> str:
    """Why what an entry point names is no study of that name; empty where it is one."""
    for member, kind in (("name", str), ("version", int), ("columns", tuple)):
        if not isinstance(getattr(study, member, None), kind):
            return f"its {member} must be of type {kind.__name__}"
    model = getattr(study, "parameters", None)
    if not (isinstance(model, type) and issubclass(model, StudyParameters)):
        return "its parameters must be a class that inherits from StudyParameters"
    describe(model)
    return "" if study.name == name else f"its name is {study.name!r}"


def axis_label(study: Study, name: str) -> str:
    """Return the label of a parameter or column: meaning, symbol and unit, in mathtext.

    Raises:
        UserError: if the study has neither a parameter nor a column of that name.
    """
    parameters = describe(study.parameters)
    columns = {column.name: column for column in (*study.columns, *study.trajectory_columns)}
    if name in {"steps", "step"}:
        return "gradient steps"
    if name not in parameters and name not in columns:
        known = [*parameters, *columns, "steps"]
        raise UserError(f"{study.name} has no column {name!r}; {nearest(name, known)}")
    described = parameters[name] if name in parameters else columns[name]
    symbol = f" ${described.symbol}$" if described.symbol else ""
    unit = f" ({described.unit})" if described.unit else ""
    return f"{described.meaning}{symbol}{unit}"
