"""A study made of a function: the signature is its parameters, what it returns its columns."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Generator, Sequence
from typing import Any

from overfit_cli.claim import Claim
from overfit_cli.errors import UserError
from overfit_cli.functions.experiment import Description, description_of
from overfit_cli.functions.numbers import numbers_in, run_generator
from overfit_cli.functions.record import (
    ColumnRecord,
    FunctionParameters,
    FunctionRecord,
    parameter_model,
)
from overfit_cli.functions.signature import SEED, read_signature
from overfit_cli.functions.source import Source, find_function, source_of, state_of
from overfit_cli.study import CellResult, Cells, Column, Results, Study
from overfit_cli.training import Training

Function = Callable[..., Any]


class FunctionStudy(Study[FunctionParameters]):
    """A study that a function describes, or what a run directory remembers of one.

    Args:
        record: the description.
        function: what trains a cell; None where the study is for reading only.
        claims: what its cells can decide.
        source_digest: of the function's code; empty where that isn't known.
        measured, logged: the columns of its cells and trajectories, where they are known.
    """

    open_columns = True
    step = "steps"
    name, version, parameters = "", 1, FunctionParameters
    columns: tuple[Column, ...] = ()

    def __init__(
        self,
        record: FunctionRecord,
        function: Function | None = None,
        *,
        claims: Sequence[Claim] = (),
        source_digest: str = "",
        measured: Sequence[str] = (),
        logged: Sequence[str] = (),
    ) -> None:
        self.record, self.function = record, function
        self.source_digest = source_digest
        self.name, self.version = record.name, record.version
        self.title, self.threshold, self.sides = record.title, record.threshold, record.sides
        self.parameters = parameter_model(record)
        self.columns = _columns(record, measured)
        self.trajectory_columns = _columns(record, logged)
        self._claims = tuple(claims)

    def __reduce__(self) -> tuple[Any, ...]:
        """Send the function by its reference, if it has one: its module may not be importable."""
        if self.function is not None and self.record.reference:
            return _sent, (self.record, self.source_digest)
        made = functools.partial(FunctionStudy, source_digest=self.source_digest)
        return made, (self.record, self.function)

    @property
    def has_steps(self) -> bool:
        """Whether the function is a generator."""
        return inspect.isgeneratorfunction(inspect.unwrap(self.function or _nothing))

    @property
    def label(self) -> str:
        """Its name in the names of run directories."""
        return self.record.label

    @property
    def headline(self) -> str:
        """The column named for it, else the first that was measured; empty while none was."""
        return self.record.headline or (self.columns[0].name if self.columns else "")

    @property
    def has_claims(self) -> bool:
        """Whether `experiment` was given any."""
        return bool(self._claims)

    def claims(self) -> Sequence[Claim]:
        """Return the claims that `experiment` was given."""
        return self._claims

    def train(
        self, batch: Cells[FunctionParameters], training: Training
    ) -> Results[FunctionParameters]:
        """Call the function for each cell.

        Raises:
            UserError: if there is none.
        """
        if self.function is None:
            raise UserError(f"{self.name}: the function isn't known here, only what it measured.")
        for cell in batch:
            seed = {SEED: cell.seed} if self.record.seeded else {}
            returned = self.function(**dict(cell.parameters), **seed)
            steps = 0
            if isinstance(returned, Generator):
                returned, steps = run_generator(cell, returned, training)
            yield CellResult(cell, self._measured(returned), steps)

    def _measured(self, returned: Any) -> dict[str, Any]:
        """The numbers of a cell.

        Raises:
            TypeError, ValueError: if they are none, or the one that matters most isn't among them.
        """
        numbers = numbers_in(returned, "returned")
        if not numbers:
            raise ValueError("it returned no number")
        if self.record.headline and self.record.headline not in numbers:
            raise ValueError(f"it returned no {self.record.headline!r}, which is its headline")
        return numbers


def _nothing() -> None:
    """No function."""


def _columns(record: FunctionRecord, names: Sequence[str]) -> tuple[Column, ...]:
    """Columns by these names in their order, with what was said of them."""
    known = {one.name: one for one in record.columns}
    found = [known.get(name) or ColumnRecord(name=name) for name in names]
    return tuple(
        Column(one.name, one.meaning, "float", one.symbol, one.unit, one.label) for one in found
    )


def study_of_reference(reference: str) -> FunctionStudy:
    """Return the study of the function that `FILE.py:NAME` or `package.module:NAME` names.

    A file is loaded again where it has changed.

    Raises:
        UserError: if there is none, or its signature isn't that of a study.
    """
    return _study_at(reference, *state_of(reference))


@functools.cache
def _study_at(reference: str, *state: object) -> FunctionStudy:
    return study_loaded_from(reference)


def study_loaded_from(reference: str) -> FunctionStudy:
    """Return the study of the function that a reference names, whatever it was before.

    A module that Python has imported already is taken as it is.

    Raises:
        UserError: as `study_of_reference` does.
    """
    return _study_of(*find_function(reference))


_kept: dict[tuple[FunctionRecord, str], FunctionStudy] = {}


def _sent(record: FunctionRecord, source_digest: str) -> FunctionStudy:
    """The study that was sent to this process, with the code that its file had when it was read.

    Where the file has changed since, it has a problem; that isn't kept, since it may change back.
    """
    if (record, source_digest) in _kept:
        return _kept[record, source_digest]
    study = FunctionStudy(record)
    try:
        found = study_of_reference(record.reference)
    except UserError as error:
        study.problem = f"{error} The file has changed since the sweep began."
        return study
    if (found.record, found.source_digest) == (record, source_digest):
        _kept[record, source_digest] = found
        return found
    study.problem = f"{record.name}: its source has changed since the sweep began."
    return study


def study_of_function(function: Function) -> FunctionStudy:
    """Return the study of a function that is given as it is, as in a notebook.

    Raises:
        UserError: if its signature isn't that of a study.
    """
    study = _study_of(function, source_of(function))
    _given[study.name] = study
    return study


_given: dict[str, FunctionStudy] = {}


def study_of_record(record: FunctionRecord) -> FunctionStudy:
    """Return the study that a record is of, with its function and claims.

    Raises:
        UserError: if the function can't be found, and wasn't given in this process.
    """
    given = _given.get(record.name)
    if given is not None and given.record == record:
        return given
    if not record.reference:
        raise UserError(
            f"{record.name} was given by a script or a notebook; in its process overfit_cli.judge "
            "has its claims."
        )
    return study_of_reference(record.reference)


def _study_of(function: Function, source: Source) -> FunctionStudy:
    said = description_of(function) or Description()
    where = f"{source.place}: {source.function}"
    parameters, seeded = read_signature(function, where)
    documented = (inspect.getdoc(function) or "").partition("\n")[0]
    try:
        record = FunctionRecord(
            name=said.name or f"{source.module}:{source.function}",
            label=said.name or source.label,
            version=said.version,
            title=documented if said.title is None else said.title,
            reference=source.reference,
            headline=said.headline,
            threshold=said.threshold,
            sides=said.sides,
            seeded=seeded,
            parameters=tuple(parameters),
            columns=tuple(ColumnRecord(**vars(one)) for one in said.columns),
            claims=bool(said.claims),
        )
    except ValueError as error:
        raise UserError(f"{where}: {_words_of(error)}.") from error
    return FunctionStudy(record, function, claims=said.claims, source_digest=source.digest)


def _words_of(error: ValueError) -> str:
    """What a validation says, without its form."""
    errors: Any = getattr(error, "errors", None)
    said = str(errors()[0]["msg"] if errors else error)
    return said.removeprefix("Value error, ")
