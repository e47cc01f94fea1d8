"""The base class of studies: parameters, measurements, how cells are trained, what is drawn."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic

from overfit_cli.core.cell import (
    Batch,
    Batches,
    Cell,
    CellResult,
    Column,
    Identity,
    P,
    Paper,
    Results,
)
from overfit_cli.core.claim import Claim
from overfit_cli.core.figure import Figure, grid_figures
from overfit_cli.core.parameters import map_parameters
from overfit_cli.core.text import plural
from overfit_cli.core.training import Training

if TYPE_CHECKING:
    import pandas as pd


MOST_PROGRESS_COLUMNS = 5


class Study(ABC, Generic[P]):
    """One experiment: an entry point names an instance. Most members have a default that works."""

    title: str = ""
    """What it is, in a line."""

    paper: Paper | None = None
    """The paper whose experiment it is; None where it is of no paper."""

    paper_data: str = ""
    """The data that the paper's experiment reads, such as `IMDb`; empty where it draws its own."""

    trajectory_columns: tuple[Column, ...] = ()
    """What is logged on the way, when asked for."""

    threshold: float | None = None
    """The value of the headline at which a cell changes sides."""

    sides: tuple[str, str] = ("", "")
    """What a cell is called whose headline is up to the threshold, and above it."""

    step: str = "gradient steps"
    """What its steps are, on axes."""

    stop: str = ""
    """What ends a cell's training before its last step, as a sentence without its full stop."""

    seeded: bool = True
    """Whether its cells depend on the seed."""

    identity: Identity = Identity()
    """What a run directory keeps of it beside its name and version."""

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
        """The columns that are measured once per cell."""

    @abstractmethod
    def train(self, batch: Batch[P], training: Training) -> Results[P]:
        """Train a batch and give one result per cell, in any order.

        It runs on one thread. What it raises, and nan among its measurements, become failed cells.
        """

    @property
    def has_steps(self) -> bool:
        """Whether it logs steps, where they are wanted."""
        return bool(self.trajectory_columns)

    @property
    def description(self) -> str:
        """The text of `--help` beside the parameters; empty if none is needed."""
        return ""

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
        return grid_figures(self.threshold)

    def claims(self) -> Sequence[Claim]:
        """Return the claims of the paper that its cells can decide."""
        return ()

    def column_problem(self, name: object, *, logged: bool = False) -> str:
        """Return why a result can't have a column of that name; empty where it can."""
        columns = self.trajectory_columns if logged else self.columns
        if any(column.name == name for column in columns):
            return ""
        return f"the study {'logs' if logged else 'has'} no column {name!r}"

    def prepare(self, cells: Batch[P]) -> Mapping[str, str]:
        """Make ready what cells need from outside, such as data; called before cells are trained.

        A sweep's parent calls it for all cells, and a worker of a cluster for those of a task. It
        returns a fingerprint of each collection of data, by its name: a run directory is held to
        them, so that cells of different data never mix.
        """
        return {}

    def stand_in(self, parameters: P) -> str:
        """Return what stands in for the paper's data or model, as a sentence; empty for nothing."""
        return ""

    def notes(self, cells: Batch[P]) -> Sequence[str]:
        """Return what to say about cells before they are trained, one line each."""
        return ()

    def batches(self, cells: Batch[P], device: str) -> Batches[P]:
        """Split `cells` into lists that are trained together, in the order to start them.

        A sweep with a phase diagram starts the first half of the work coarse to fine instead. By
        default each cell is by itself, the costliest first.
        """
        return [[cell] for cell in sorted(cells, key=lambda cell: (-self.cost(cell), cell.seed))]

    def cost(self, cell: Cell[P]) -> float:
        """Return the work of a cell, in any unit that is the same for all of the study's cells."""
        return 1.0

    def probe(self, cell: Cell[P]) -> Cell[P]:
        """Return a cell like this one that takes seconds, to estimate a sweep's time from."""
        return cell

    def memory(self, cell: Cell[P]) -> float | None:
        """Return about how many bytes training the cell takes; None leaves it to the probe."""
        return None

    def summary(self, result: CellResult[P]) -> str:
        """Say in a sentence what one trained cell shows."""
        numbers = ", ".join(f"{name} {value:.4g}" for name, value in result.measurements.items())
        after = f" after {plural(result.steps, 'step')}" if result.steps else ""
        if result.reason:
            return f"Failed ({result.reason}){after}{': ' if numbers else ''}{numbers}."
        return f"Trained{after}: {numbers}."


AnyStudy = Study[Any]


def stand_ins_of(study: AnyStudy, cells: pd.DataFrame) -> list[str]:
    """Return what stands in for the paper's data in cells, each sentence once."""
    if not study.paper_data:
        return []
    settings = cells[list(study.parameters.model_fields)].drop_duplicates()
    sentences = map_parameters(study.parameters, settings, study.stand_in)
    return sorted({sentence for sentence in sentences if sentence})
