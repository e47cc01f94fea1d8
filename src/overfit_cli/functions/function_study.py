"""A plain function as a study: its signature is its parameters, what it returns its columns.

A run directory keeps a record of the function, so that figures need not load it. A study that is
sent to another process takes the user's files with it.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import inspect
import math
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from overfit_cli.core.cell import (
    ROW_COLUMNS,
    Cell,
    CellResult,
    Cells,
    Column,
    Identity,
    Results,
    SourceFile,
    name_taken,
    taken_columns,
)
from overfit_cli.core.claim import Claim
from overfit_cli.core.errors import MissingError, UserError
from overfit_cli.core.files import error_text
from overfit_cli.core.study import Study
from overfit_cli.core.training import Training
from overfit_cli.functions.experiment import (
    ColumnRecord,
    Description,
    FunctionParameters,
    FunctionRecord,
    ParameterRecord,
    description_of,
    parameter_model,
)
from overfit_cli.functions.references import (
    Source,
    find_function,
    folder_of_function,
    forget,
    read_files,
    refuse_sent_code,
    source_of,
    split_reference,
    state_of,
)
from overfit_cli.functions.signature import SEED, columns_written, read_signature

if TYPE_CHECKING:
    import pandas as pd

Function = Callable[..., Any]
Files = tuple[tuple[str, bytes], ...]
"""The content of files by their path from the folder that imports find them in."""

MOST_STEPS = 2**63


class FunctionStudy(Study[FunctionParameters]):
    """A study that a function defines, or that a run directory describes.

    Args:
        measured, logged: the columns of its cells and trajectories, where they are known.
        folder: a folder with the user's files, where the study came with them.
        problem: why the function can't be called in this process.
    """

    step = "steps"
    name, version, parameters = "", 1, FunctionParameters
    columns: tuple[Column, ...] = ()

    def __init__(
        self,
        record: FunctionRecord,
        function: Function | None = None,
        *,
        claims: Sequence[Claim | str] = (),
        source_digest: str = "",
        measured: Sequence[str] = (),
        logged: Sequence[str] = (),
        folder: Path | None = None,
        problem: str = "",
    ) -> None:
        self.record, self.function = record, function
        self.name, self.version, self.seeded = record.name, record.version, record.seeded
        self.title, self.threshold, self.sides = record.title, record.threshold, record.sides
        self.parameters = parameter_model(record)
        self.columns = _columns(record, measured)
        self.trajectory_columns = _columns(record, logged)
        self.identity = Identity(source_digest, record)
        self._claims = self._stated(claims)
        self._folder, self._problem = folder, problem

    def _stated(self, claims: Sequence[Claim | str]) -> tuple[Claim, ...]:
        if not claims:
            return ()
        from overfit_cli.claims.stated import claims_of_study

        return tuple(claims_of_study(claims, self))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the study with the user's files, where its function can be loaded from them."""
        source_digest = self.identity.source
        if self.function is not None and self.record.reference:
            return _received, (self.record, source_digest, self._files, os.getpid())
        made = functools.partial(FunctionStudy, source_digest=source_digest)
        return made, (self.record, self.function)

    def source_files(self) -> Sequence[SourceFile]:
        """Return the function's file and those of the user's that it imports; else its own text."""
        return read_files(self.record.reference, self.function)

    @functools.cached_property
    def _files(self) -> Files:
        return tuple((file.name, file.content) for file in self.source_files() if file.path)

    def prepare(self, cells: Cells[FunctionParameters]) -> Mapping[str, str]:
        """Return fingerprints of the files that `experiment` names as the function's data."""
        folder = folder_of_function(self.record.reference, self.function)
        return {name: _fingerprint(folder / name, self.name) for name in self.record.data}

    @property
    def has_steps(self) -> bool:
        """Whether the function is a generator."""
        return inspect.isgeneratorfunction(inspect.unwrap(self.function or _no_function))

    @property
    def description(self) -> str:
        """The function's documentation; its title where `experiment` gives another one."""
        text = _documentation(self.function)
        return text if text.startswith(self.title) else f"{self.title}\n\n{text}".strip()

    @property
    def headline(self) -> str:
        """The declared column, else the first one measured; empty before anything is measured."""
        return self.record.headline or (self.columns[0].name if self.columns else "")

    def column_problem(self, name: object, *, logged: bool = False) -> str:
        """Accept every name that rows don't have already: a function declares no columns."""
        if not isinstance(name, str) or not name:
            return f"{name!r} is not a column name"
        if name in taken_columns(self.parameters):
            return name_taken(name)
        return ""

    def claims(self) -> Sequence[Claim]:
        """The claims of `experiment`: of a study that is only read, those of the file now."""
        if self.function is not None:
            return self._claims
        try:
            return study_of_record(self.record).claims()
        except UserError as error:
            if not self.record.claims:
                return ()
            raise UserError(f"The claims of {self.name} can't be judged: {error}") from error

    def train(
        self, batch: Cells[FunctionParameters], training: Training
    ) -> Results[FunctionParameters]:
        """Call the function for each cell."""
        if self.function is None:
            raise MissingError(self._problem or f"{self.name}: the function isn't loaded.")
        declared = self.record.parameters
        with _importing_from(self._folder):
            for cell in batch:
                seed = {SEED: cell.seed} if self.seeded else {}
                values = cell.parameters.model_dump()
                named = {item.argument or item.name: values[item.name] for item in declared}
                returned = self.function(**named, **seed)
                told = named.get("steps")
                steps = told if type(told) is int else 0  # what yields nothing counts none itself
                if isinstance(returned, Generator):
                    returned, steps = run_generator(cell, returned, training)
                yield _result(cell, self._measurements(returned), steps)

    def _measurements(self, returned: Any) -> dict[str, Any]:
        numbers = numbers_in(returned, "returned")
        if not numbers:
            raise ValueError("it returned no number")
        if self.record.headline and self.record.headline not in numbers:
            raise ValueError(f"it returned no {self.record.headline!r}, which is its headline")
        return numbers


def _documentation(function: Function | None) -> str:
    if isinstance(function, functools.partial):
        return _documentation(function.func)
    return (inspect.getdoc(function) or "") if function is not None else ""


def _no_function() -> None:
    """Stand in for a function that isn't loaded."""


def _columns(record: FunctionRecord, names: Sequence[str]) -> tuple[Column, ...]:
    declared = {column.name: column for column in record.columns}
    columns = [declared.get(name) or ColumnRecord(name=name) for name in names]
    return tuple(
        Column(column.name, column.meaning, "float", column.symbol, column.unit, column.label)
        for column in columns
    )


def _result(
    cell: Cell[FunctionParameters], numbers: dict[str, Any], steps: int
) -> CellResult[FunctionParameters]:
    """A cell's result; diverged where a number isn't finite, with the others kept."""
    wrong = [name for name, value in numbers.items() if not math.isfinite(value or 0.0)]
    if not wrong:
        return CellResult(cell, numbers, steps)
    kept: Any = {name: None if name in wrong else value for name, value in numbers.items()}
    return CellResult(cell, kept, steps, reason=f"diverged: {wrong[0]} isn't finite")


def run_generator(
    cell: Cell, rows: Generator[Any, None, Any], training: Training
) -> tuple[Any, int]:
    """Log the rows that a generator yields; return its result and the number of its steps.

    A generator that returns nothing has its last row as its result. Rows are numbered from 0,
    unless they have a `step`.
    """
    row: dict[str, Any] = {}
    columns = taken_columns(type(cell.parameters))
    step, steps = -1, 0
    while True:
        try:
            yielded = next(rows)
        except StopIteration as ended:
            return (row if ended.value is None else ended.value), steps
        row = numbers_in(yielded, "yielded")
        if taken := columns & row.keys():
            raise ValueError(name_taken(min(taken)))
        step, steps = _next_step(row.pop("step", None), step)
        training.log(cell, step, row)


def _next_step(named: float | None, last: int) -> tuple[int, int]:
    if named is None:
        return last + 1, last + 2
    if not last < named < MOST_STEPS or named != int(named):
        raise ValueError(
            f"it yielded step = {named:g} after {last}; steps are whole numbers that rise"
        )
    return int(named), int(named)


def numbers_in(row: Any, verb: str) -> dict[str, Any]:
    """Return what a function "returned" or "yielded" as Python's numbers."""
    if not isinstance(row, Mapping):
        raise TypeError(f"it {verb} {row!r}, and not a dict of numbers")
    return {name: _number(value, f"it {verb} {name} = {value!r}") for name, value in row.items()}


def _number(value: Any, description: str) -> float | None:
    if value is None:
        return None
    try:
        plain = value.item() if hasattr(value, "item") else value  # an array of one element too
        number = math.nan if isinstance(plain, str | bytes) else float(plain)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        plain, number = value, math.nan
    if math.isnan(number) and not isinstance(plain, float):
        raise TypeError(f"{description}, which is not a number")
    return number


def study_of_reference(reference: str) -> FunctionStudy:
    """Return the study of the function that `FILE.py:NAME` or `package.module:NAME` names.

    A file is loaded again after it has changed.
    """
    return _study_at(reference, *state_of(reference))


@functools.cache
def _study_at(reference: str, *state: object) -> FunctionStudy:
    return _make_study(*find_function(reference))


def study_of_function(function: Function) -> FunctionStudy:
    """Return the study of a function that Python gives, as in a notebook."""
    study = _make_study(function, source_of(function))
    _given[study.name] = study
    return study


def study_of_rows(name: str, cells: pd.DataFrame) -> FunctionStudy:
    """Return the study of a function of which only rows are there, or the one that was given.

    Args:
        cells: one row per cell: between `seed` and `status` stand the parameters.
    """
    if name in _given:
        return _given[name]
    columns = [str(column) for column in cells.columns]
    if not {"seed", "status"} <= set(columns):
        raise UserError(f"study: {name} is a function; give the function itself, or all columns.")
    names = columns[columns.index("seed") + 1 : columns.index("status")]
    kinds: Mapping[str, Any] = {"i": "int", "f": "float", "b": "bool"}
    parameters = tuple(
        ParameterRecord(name=each, kind=kinds.get(cells[each].dtype.kind, "text")) for each in names
    )
    after = columns[columns.index("status") + 1 :]
    measured = [name for name in after if name not in ROW_COLUMNS]
    return FunctionStudy(
        FunctionRecord(name=name, label=name, parameters=parameters), measured=measured
    )


_given: dict[str, FunctionStudy] = {}
"""Studies of functions that were given in this process, by name."""


def study_of_record(record: FunctionRecord) -> FunctionStudy:
    """Return the study of a record, with its function and claims."""
    given = _given.get(record.name)
    if given is not None and given.record.model_copy(update={"claims": record.claims}) == record:
        return given
    if not record.reference:
        raise UserError(
            f"{record.name} comes from a script or a notebook; only in that process "
            "overfit_cli.judge has its claims."
        )
    refuse_sent_code(record.reference)
    return study_of_reference(record.reference)


def _make_study(function: Function, source: Source) -> FunctionStudy:
    described = description_of(function) or Description()
    where = f"{source.file}: {source.function}"
    parameters, seeded = read_signature(function, where)
    first_line = _documentation(function).partition("\n")[0]
    try:
        record = FunctionRecord(
            name=described.name or f"{source.module}:{source.function}",
            label=described.name or source.label,
            version=described.version,
            title=first_line if described.title is None else described.title,
            reference=source.reference,
            headline=described.headline,
            threshold=described.threshold,
            sides=described.sides,
            seeded=seeded,
            parameters=tuple(parameters),
            columns=tuple(ColumnRecord(**vars(column)) for column in described.columns),
            claims=bool(described.claims),
            data=described.data,
        )
    except ValueError as error:
        raise UserError(f"{where}: {_validation_text(error)}.") from error
    stated = {*columns_written(function), *(column.name for column in described.columns)}
    stated |= {described.headline} - {""}
    if taken := stated & taken_columns(parameter_model(record)):
        raise UserError(f"{where}: {name_taken(min(taken))}.")
    return FunctionStudy(record, function, claims=described.claims, source_digest=source.digest)


def _validation_text(error: ValueError) -> str:
    errors: Any = getattr(error, "errors", None)
    text = str(errors()[0]["msg"] if errors else error)
    return text.removeprefix("Value error, ")


# Studies sent to another process


def _fingerprint(path: Path, study: str) -> str:
    try:
        facts = path.stat()
        return _digest_of_file(path, facts.st_mtime_ns, facts.st_size)
    except OSError as error:
        reason = error_text(error)
        raise MissingError(f"{path}, data of {study}: it can't be read ({reason}).") from error


@functools.lru_cache(maxsize=64)
def _digest_of_file(path: Path, *state: int) -> str:
    """A digest of a file's content; the state, its time and size, says when to read it again."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:24]


@functools.lru_cache(maxsize=16)
def _received(
    record: FunctionRecord, source_digest: str, files: Files, sender: int
) -> FunctionStudy:
    """The study that another process sent, loaded from its files.

    A child of the sender shares its disk and loads the files where they are, as long as they are
    unchanged. A worker of a cluster loads copies, so that those of two sweeps don't mix.
    """
    is_child = sender in (os.getpid(), os.getppid())
    where, name = split_reference(record.reference)
    problem = f"{record.name}: its source isn't the same here."
    for copied in [False] * (is_child or not files) + [True] * bool(files):
        folder = _write_folder(files) if copied else None
        reference = record.reference
        if folder is not None and where.endswith(".py"):
            reference = f"{folder / files[0][0]}:{name}"
        try:
            with _importing_from(folder):
                # A module's reference stays the same when its files change: it is loaded anew.
                if copied:
                    loaded = _make_study(*find_function(reference))
                else:
                    loaded = study_of_reference(reference)
        except UserError as error:
            problem = str(error)
            continue
        if loaded.identity.source == source_digest:
            return FunctionStudy(
                record,
                loaded.function,
                claims=loaded.claims(),
                source_digest=source_digest,
                folder=folder,
            )
    return FunctionStudy(record, source_digest=source_digest, problem=problem)


_FOLDER_PREFIX = "overfit-function-"


def _write_folder(files: Files) -> Path:
    folder = Path(tempfile.mkdtemp(prefix=_FOLDER_PREFIX))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for name, content in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


_IMPORTS = threading.RLock()
"""Held while imports find a sent function's files: the search path is the whole process's."""


@contextlib.contextmanager
def _importing_from(folder: Path | None) -> Iterator[None]:
    if folder is None:
        yield
        return
    with _IMPORTS:
        earlier = [path for path in sys.path if Path(path).name.startswith(_FOLDER_PREFIX)]
        if earlier != [str(folder)]:
            forget({str(file) for path in earlier for file in Path(path).rglob("*.py")})
            sys.path[:] = [*(path for path in sys.path if path not in earlier), str(folder)]
        yield
