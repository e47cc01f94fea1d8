"""Studies and the schema of their cells.

A study says how cells are trained and what is measured and drawn. A field of the schema says what a
number means that a cell lacks, so that no function guesses it from a name.
"""

from __future__ import annotations

import functools
import importlib
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, Literal, cast

import numpy as np

from overfit_cli.core import parameters
from overfit_cli.core.arrays import finite_column
from overfit_cli.core.cell import ROW_COLUMNS, Batch, Cell, CellResult, Column, Identity, P, Paper
from overfit_cli.core.claim import Claim
from overfit_cli.core.expressions import Names
from overfit_cli.core.figure import Figure, collect_figures, grid_figures
from overfit_cli.core.text import plural
from overfit_cli.core.training import Together, Training

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

    trained_in: str = ".training"
    """The module with `train_batch(batch, training)` or `train_cell(cell, training)`.

    It is imported when it is first used; a leading dot is the package of the study's own module.
    """

    claims_in: str = ""
    """The module with its `CLAIMS`, spelled likewise, or `module:NAME`; empty for none."""

    drawn: Sequence[Figure] = ()
    """Its figures; without any, those that any grid can have."""

    together: Together[P] | None = None
    """Which cells are trained as one tensor; by default each is trained by itself."""

    shows: str = ""
    """What a trained cell shows, as a sentence: see `summary`."""

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

    def train(self, batch: Batch[P], training: Training) -> Iterator[CellResult[P]]:
        """Train a batch and give one result per cell, in any order.

        It runs on one thread. What it raises, and nan among its measurements, become failed cells.
        By default the module `trained_in` has the function.
        """
        module = self._module(self.trained_in)
        if hasattr(module, "train_batch"):
            yield from module.train_batch(batch, training)
        else:
            for cell in batch:
                yield module.train_cell(cell, training)

    def _module(self, name: str) -> Any:
        return importlib.import_module(name, type(self).__module__.rpartition(".")[0])

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
        """Return its figures by name."""
        return collect_figures(*self.drawn) if self.drawn else grid_figures(self.threshold)

    def claims(self) -> Sequence[Claim]:
        """Return the claims of the paper that its cells can decide."""
        module, _, name = self.claims_in.partition(":")
        claims: Sequence[Claim] = getattr(self._module(module), name or "CLAIMS") if module else ()
        return claims

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

    def batches(self, cells: Batch[P], device: str) -> list[list[Cell[P]]]:
        """Split `cells` into lists that are trained together, in the order to start them.

        A sweep with a phase diagram starts the first half of the work coarse to fine instead. By
        default `together` says so; the costliest come first.
        """
        if self.together is not None:
            return self.together.batches(cells, device, self.cost)
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
        """Say in a sentence what one trained cell shows.

        Braces in `shows` have parameters, measurements, and `steps`, which is a text: `5 steps`.
        """
        steps = plural(result.steps, "step")
        if self.shows and not result.reason:
            known = {name: math.nan if n is None else n for name, n in result.measurements.items()}
            measured = {name: _Number(value) for name, value in known.items()}
            names = result.cell.parameters.model_dump() | measured
            return self.shows.format_map(names | {"steps": steps})
        given: Mapping[str, float | None] = result.measurements
        told = {name: "none" if n is None else f"{n:.4g}" for name, n in given.items()}
        numbers = ", ".join(f"{name} {number}" for name, number in told.items())
        after = f" after {steps}" if result.steps else ""
        if result.reason:
            return f"Failed ({result.reason}){after}{': ' if numbers else ''}{numbers}."
        return f"Trained{after}: {numbers}."


class _Number(float):
    def __format__(self, spec: str) -> str:
        return super().__format__(spec).replace("%", " %")


AnyStudy = Study[Any]


def stand_ins_of(study: AnyStudy, cells: pd.DataFrame) -> list[str]:
    """Return what stands in for the paper's data in cells, each sentence once."""
    if not study.paper_data:
        return []
    settings = cells[list(study.parameters.model_fields)].drop_duplicates()
    sentences = parameters.map_parameters(study.parameters, settings, study.stand_in)
    return sorted({sentence for sentence in sentences if sentence})


Role = Literal["cell", "parameter", "replaced", "measured", "logged"]

MISSES = ("diverged", "step limit")
"""The reasons of failed cells whose training went on until it missed; more may follow a colon."""

RUN = "run directory"
"""The column of cells of several run directories that says whose a row is."""


@dataclass(frozen=True)
class Field(parameters.ParameterInfo):
    """A column of cells, with what is declared of a parameter or a measured column.

    Attributes:
        label: a few words, or mathtext, for axes and legends.
        role: a `replaced` parameter has an expression in its place on an axis; a `logged` column is
            one that was derived of logged ones.
        decades, reached, diverges: see `core.cell.Column`.
        between: the columns with the least and the most that a number may be which is not known.
        declared: whether it is known what it measures, and so what a number means that lacks.
    """

    role: Role = "measured"
    decades: bool = False
    reached: bool = True
    diverges: bool = False
    between: tuple[str, str] | None = None
    declared: bool = True

    @property
    def words(self) -> tuple[str, ...]:
        """The values of a word, in their declared order."""
        return self.choices if self.kind == "literal" else ()

    def numbers(self, rows: pd.DataFrame, *, missed: bool = True) -> pd.Series[float]:
        """Return the column in rows of cells as numbers, nan where one is not known.

        A cell that missed its number counts as infinite; with `missed` false it is not known. The
        numbers of a parameter are its values.
        """
        if self.role in ("cell", "parameter", "replaced"):
            return rows[self.name].astype(np.float64)
        known = finite_column(rows, self.name)
        if not missed or (self.reached and not self.diverges):
            return known
        beyond = has_missed(rows)
        if not self.reached:
            beyond |= (rows["status"] == "done") & rows[self.name].isna()
        return known.mask(beyond, np.inf)

    def shown(self, rows: pd.DataFrame) -> pd.Series[float]:
        """Return the numbers of figures: what lacks of an undeclared column is infinite too.

        A median of the seeds that have a number flatters: what never arrives is late, and a
        function says so by None, an exception or infinity alike.
        """
        numbers = self.numbers(rows)
        return numbers if self.declared else numbers.fillna(np.inf)


def missed_by(rows: pd.DataFrame) -> pd.Series[str]:
    """Return the reasons of failed cells without what follows a colon, such as a column's name."""
    return rows["reason"].astype(str).str.extract("([^:]*)", expand=False)


def has_missed(rows: pd.DataFrame) -> pd.Series[bool]:
    """Return which cells failed as their training went on until it missed."""
    return (rows["status"] == "failed") & missed_by(rows).isin(MISSES)


@dataclass(frozen=True)
class Schema:
    """The fields of cells; parameters stand in the order of the study."""

    fields: tuple[Field, ...]
    headline: str = ""
    threshold: float | None = None

    @functools.cached_property
    def names(self) -> Names:
        """Each field by its name, and by its symbol where no name and no other field has that.

        Of a parameter and a column with one symbol it is the parameter's.
        """
        fields = {field.name: field for field in self.fields}
        return Names(self.placed | fields).with_brackets(self.placed)

    @functools.cached_property
    def placed(self) -> Names:
        """The names in conditions and along axes, where `steps` may be a parameter's."""
        fields, spelled = {field.name: field for field in self.fields}, dict[str, str]()
        for role in ("measured", "parameter"):
            of_role = {name: field for name, field in fields.items() if field.role == role}
            spelled |= parameters.spellings(of_role)
        names = Names({text: fields[name] for text, name in spelled.items()} | fields)
        if limit := fields.get(parameters.TRAINING_STEPS):
            names["steps"] = limit
        return names.with_brackets(names)

    def __getitem__(self, name: str) -> Field:
        return cast("Field", self.names.of(name))

    def named(self, role: Role) -> list[str]:
        """Return the names of the fields of a role."""
        return [field.name for field in self.fields if field.role == role]

    def with_field(self, field: Field) -> Schema:
        """Return the schema with a field in the place of one of its name, or at the end."""
        return replace(self, fields=(*(f for f in self.fields if f.name != field.name), field))


def schema_of(study: AnyStudy, rows: pd.DataFrame | None = None) -> Schema:
    """Return the schema of a study's cells, some of whose rows may have further columns."""
    steps = replace(STEPS, label=study.step)
    fields = fields_of(study.parameters, (steps, SECONDS, *study.columns), rows)
    return Schema(fields, study.headline, study.threshold)


def fields_of(
    model: type[P], columns: Iterable[Column], rows: pd.DataFrame | None = None
) -> tuple[Field, ...]:
    """Return the fields of cells with these parameters and declared columns; see `schema_of`."""
    described, declared = parameters.describe(model), {column.name: column for column in columns}
    texts = sorted(ROW_COLUMNS - {"seed", "steps", "seconds", *described})
    fields = [Field(name, "text", role="cell") for name in texts]
    fields.append(Field(**vars(parameters.SEED), role="cell"))
    fields += (Field(**vars(info), role="parameter") for info in described.values())
    here = {} if rows is None else {str(name): rows[name].dtype.kind for name in rows}
    known = {field.name for field in fields}
    for name in dict.fromkeys([*declared, *here]):
        if name not in known:
            is_text = here.get(name, "f") not in "iufb"
            column = declared.get(name, Column(name, name))
            fields.append(_measured(column, "text" if is_text else "float"))
    return tuple(fields)


def with_logged(study: AnyStudy, schema: Schema) -> Schema:
    """Return the schema with the study's logged columns in the place of those of cells."""
    others = [field for field in schema.fields if field.role not in ("measured", "logged")]
    logged = [_measured(column) for column in (STEP, *study.trajectory_columns)]
    derived = [replace(each, role="measured") for each in schema.fields if each.role == "logged"]
    return replace(schema, fields=(*others, *logged, *derived))


STEP = Column("step", "step of training", kind="int")
STEPS = Column("steps", "steps of training", label="steps", kind="int", diverges=True)
SECONDS = Column("seconds", "wall time", unit="s", label="time")


def _measured(column: Column, kind: parameters.Kind = "float") -> Field:
    label = parameters.short_label(column.name, column.meaning, column.label)
    return Field(**vars(column) | {"kind": kind, "label": label, "declared": bool(column.meaning)})
