"""A plain function as a study: its signature is its parameters, what it returns its columns.

A run directory keeps a record of the function, so that figures need not load it. A study that is
sent to another process takes the text of the user's files with it.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import inspect
import math
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import cloudpickle
from pydantic import ValidationError

from overfit_cli.core import cell as rows
from overfit_cli.core.cell import Cell, CellResult, Column, Identity, SourceFile
from overfit_cli.core.claim import Claim
from overfit_cli.core.errors import BadValue, MissingError, UserError, is_installed
from overfit_cli.core.files import error_text
from overfit_cli.core.processes import putting_back
from overfit_cli.core.study import Study
from overfit_cli.core.text import shorten
from overfit_cli.core.training import Training
from overfit_cli.functions import experiment, program, references
from overfit_cli.functions.source import Texts, parse

if TYPE_CHECKING:
    import pandas as pd


class FunctionStudy(Study[experiment.FunctionParameters]):
    """A study that a function defines, or that a run directory describes.

    Args:
        wordings: the texts of its claims by name, as a run directory has them.
        measured, logged: the columns of its cells and trajectories, where they are known.
        texts: the user's files, where the study was sent with them.
        problem: why the function can't be called in this process.
    """

    step = "steps"
    name, version, parameters = "", 1, experiment.FunctionParameters
    columns: tuple[Column, ...] = ()

    def __init__(
        self,
        record: experiment.FunctionRecord,
        function: references.Function | None = None,
        *,
        claims: Sequence[Claim | str] = (),
        wordings: Mapping[str, str] = MappingProxyType({}),
        code: Identity = Identity(),  # noqa: B008 (it is immutable)
        measured: Sequence[str] = (),
        logged: Sequence[str] = (),
        texts: Texts | None = None,
        problem: str = "",
    ) -> None:
        self.record, self.function = record, function
        self.name, self.version, self.seeded = record.name, record.version, record.seeded
        self.title, self.threshold, self.sides = record.title, record.threshold, record.sides
        self.parameters = experiment.parameter_model(record)
        self.columns = _columns(record, measured)
        self.trajectory_columns = _columns(record, logged)
        self.identity = code._replace(function=record)
        self._texts, self._problem = texts or Texts(), problem
        self._claims = list[Claim]()
        if claims or wordings:
            from overfit_cli.claims.stated import claim, recorded_claim

            self._claims = [claim(one, self) if isinstance(one, str) else one for one in claims]
            self._claims += [recorded_claim(*each, self) for each in wordings.items()]

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the text of the user's files, and a function that has no reference by value."""
        files = [file for file in self.identity.files if file.path and not is_installed(file.path)]
        by_text = self.function is not None and self.record.reference and files
        pickled = b"" if by_text else cloudpickle.dumps(self.function)
        return _received, (self.identity._replace(files=tuple(files)), pickled)

    def prepare(self, cells: rows.Batch[experiment.FunctionParameters]) -> Mapping[str, str]:
        """Return fingerprints of the files that `experiment` names as the function's data."""
        own = self.identity.files[0].path if self.identity.files else None
        digests = {}
        for name in self.record.data:
            path = (own.parent if own else Path.cwd()) / name
            try:
                facts = path.stat()
                digests[name] = _digest_of_file(path, facts.st_mtime_ns, facts.st_size)
            except OSError as error:
                reason = f"it can't be read ({error_text(error)})."
                raise MissingError(f"{path}, data of {self.name}: {reason}") from error
        return digests

    @property
    def has_steps(self) -> bool:
        """Whether the function is a generator."""
        function = self.function
        return function is not None and inspect.isgeneratorfunction(inspect.unwrap(function))

    @property
    def description(self) -> str:
        """The function's documentation; its title where `experiment` gives another one."""
        text = _documentation(self.function) if self.function is not None else ""
        return text if text.startswith(self.title) else f"{self.title}\n\n{text}".strip()

    @property
    def headline(self) -> str:
        """The declared column, else the first one measured; empty before anything is measured."""
        return self.record.headline or (self.columns[0].name if self.columns else "")

    def column_problem(self, name: object, *, logged: bool = False) -> str:
        """Accept every name that rows don't have already: a function declares no columns."""
        if not isinstance(name, str) or not name:
            return f"{name!r} is not a column name"
        return rows.name_taken(name) if name in rows.taken_columns(self.parameters) else ""

    def claims(self) -> Sequence[Claim]:
        """The claims of `experiment`; of a study that is only read see `loaded`."""
        study = self if self.function is not None else self.loaded
        return self._claims if study is None else study._claims

    @functools.cached_property
    def loaded(self) -> FunctionStudy | None:
        """The study of a record with its function; None where nobody consented to load that.

        The function was given or named in this process, or this user named the very file: a record
        alone has nothing loaded.
        """
        record, study = self.record, _given.get(self.record.name)
        with contextlib.suppress(UserError):  # its file is gone, or can't be loaded any more
            study = study_of_reference(_named[record.name]) if record.name in _named else study
        if study is not None and study.record.parameters == record.parameters:
            return study
        with contextlib.suppress(UserError):
            if files := references.files_of_own(record.reference, self.identity.source):
                return _study_of_files(record.reference, files)
        return None

    def train(
        self, batch: rows.Batch[experiment.FunctionParameters], training: Training
    ) -> rows.Results[experiment.FunctionParameters]:
        """Call the function for each cell."""
        if self.function is None:
            raise MissingError(self._problem or f"{self.name}: the function isn't loaded.")
        declared = self.record.parameters
        with self._texts.importing():
            for cell in batch:
                seed = {experiment.SEED: cell.seed} if self.seeded else {}
                values = cell.parameters.model_dump()
                named = {item.argument or item.name: values[item.name] for item in declared}
                first = [training] if self.record.command else []
                told = named.get("steps")
                steps = told if type(told) is int else 0  # what yields nothing counts none itself
                with putting_back():
                    returned = self.function(*first, **named, **seed)
                    if isinstance(returned, Generator):
                        with contextlib.closing(returned):
                            returned, steps = run_generator(cell, returned, training)
                    numbers = self._measurements(returned)
                yield CellResult(cell, numbers, steps)

    def _measurements(self, returned: Any) -> dict[str, Any]:
        numbers = numbers_in(returned, "returned")
        if not numbers:
            raise ValueError("it returned no number")
        if self.record.headline and self.record.headline not in numbers:
            raise ValueError(f"it returned no {self.record.headline!r}, which is its headline")
        infinite = [name for name, number in numbers.items() if number and math.isinf(number)]
        return {**numbers, **dict.fromkeys(infinite, math.nan)}  # a cell with nan has diverged


def _documentation(function: references.Function) -> str:
    return inspect.getdoc(experiment.without_arguments(function)) or ""


def _columns(record: experiment.FunctionRecord, names: Sequence[str]) -> tuple[Column, ...]:
    declared = {column.name: column for column in record.columns}
    return tuple(declared.get(name) or Column(name, "") for name in names)


def run_generator(cell: Cell, yields: Iterator[Any], training: Training) -> tuple[Any, int]:
    """Log the rows that a generator yields; return its result and the number of its steps.

    A generator that returns nothing has its last row as its result. Rows are numbered from 0,
    unless they have a `step`.
    """
    row: dict[str, Any] = {}
    columns = rows.taken_columns(type(cell.parameters))
    step, steps = -1, 0
    while True:
        try:
            yielded = next(yields)
        except StopIteration as ended:
            return (row if ended.value is None else ended.value), steps
        row = numbers_in(yielded, "yielded")
        if taken := columns & row.keys():
            raise ValueError(rows.name_taken(min(taken)))
        named = row.pop("step", None)
        if named is not None and (not step < named < 2**63 or named != int(named)):
            problem = f"it yielded step = {named:g} after {step}"
            raise ValueError(f"{problem}; steps are whole numbers that rise")
        step, steps = (step + 1, step + 2) if named is None else (int(named), int(named))
        training.log(cell, step, row)


def numbers_in(row: Any, verb: str) -> dict[str, Any]:
    """Return what a function "returned" or "yielded" as Python's numbers."""
    if not isinstance(row, Mapping):
        raise TypeError(f"it {verb} {row!r}, and not a dict of numbers")
    return {name: _number(value, f"it {verb} {name} = {value!r}") for name, value in row.items()}


def _number(value: Any, description: str) -> float | None:
    """A number of any library; a whole one stays whole where a column of such holds it."""
    if value is None:
        return None
    with contextlib.suppress(TypeError, ValueError, RuntimeError, OverflowError):
        plain = value.item() if hasattr(value, "item") else value  # an array of one element too
        if not isinstance(plain, str | bytes):
            return plain if type(plain) is int and abs(plain) < 2**63 else float(plain)
    raise TypeError(f"{description}, which is not a number")


def study_of_reference(reference: str, given: Mapping[str, Any] = {}) -> FunctionStudy:
    """Return the study of the function that the user names: `FILE.py:NAME`, `package.module:NAME`.

    A file is loaded again after it has changed. A script is not executed: the error names the
    command that sweeps it.

    Args:
        given: the values of parameters that the user gives.
    """
    files = references.files_of_reference(reference)
    where, name = references.split_reference(reference)
    file = files[0] if files else SourceFile("", b"")
    tree, hint = parse(file), program.how_to_sweep(where, file, given)
    if program.trains_by_import(tree, name):
        raise UserError(f"{where}: it has no training function; {hint}")
    try:
        study = _study_of_files(reference, files)
    except UserError as error:
        if not program.is_a_script(tree):
            raise
        raise UserError(f"{error} Or {hint}") from error
    _named[study.name] = study.record.reference
    references.remember(study.record.reference, study.identity)
    return study


@functools.cache
def _study_of_files(reference: str, files: tuple[rows.SourceFile, ...]) -> FunctionStudy:
    return _make_study(*references.find_function(reference, files))


def study_of_function(function: references.Function) -> FunctionStudy:
    """Return the study of a function that Python gives, as in a notebook."""
    study = _make_study(function, references.source_of(function))
    _given[study.name] = study
    return study


def study_of_command(
    command: str, reads: str, given: Mapping[str, Any], folder: Path
) -> FunctionStudy:
    """Return the study of a command line that the user gives; see `program.read_command`."""
    record, function, code = program.read_command(command, reads, given, folder)
    study = FunctionStudy(record, function, code=code)
    _given[study.name] = study
    return study


def study_of_rows(name: str, cells: pd.DataFrame) -> FunctionStudy:
    """Return the study of a function of which only rows are there, or the one that was given.

    Args:
        cells: one row per cell: between `seed` and `status` stand the parameters.
    """
    if name in _given:
        return _given[name]
    if not {"seed", "status"} <= {*cells}:
        raise UserError(f"study: {name} is a function; give the function itself, or all columns.")
    kinds: Mapping[str, Any] = {"i": "int", "f": "float", "b": "bool"}
    parameters = [
        experiment.ParameterRecord(name=each, kind=kinds.get(cells[each].dtype.kind, "text"))
        for each in rows.parameter_columns(cells)
    ]
    columns = [*map(str, cells)]
    after = columns[columns.index("status") :]  # what a CSV file has before them is no measurement
    record = experiment.FunctionRecord(name=name, label=name, parameters=tuple(parameters))
    return FunctionStudy(record, measured=[each for each in after if each not in rows.ROW_COLUMNS])


_named: dict[str, str] = {}
"""References that were named in this process, by the names of their studies."""
_given: dict[str, FunctionStudy] = {}
"""Studies of functions that were given in this process, by name."""


def _make_study(function: references.Function, source: references.Source) -> FunctionStudy:
    described = experiment.description_of(function) or experiment.Experiment()
    where, claims = source.where, described.claims
    is_list = isinstance(claims, list | tuple)
    if not is_list or not all(isinstance(each, Claim | str) for each in claims):
        said = f"experiment(claims={claims!r}): it takes a list of Claim(...) and sentences"
        raise UserError(f"{where}: {said}.")
    parameters, seeded = experiment.read_signature(function, where)
    given: dict[str, Any] = {
        **vars(described),
        "name": described.name or source.name,
        "label": described.name or source.label,
        "reference": source.reference,
        "seeded": seeded,
        "parameters": tuple(parameters),
        "claims": bool(claims),
    }
    if described.title is None:
        given["title"] = _documentation(function).partition("\n")[0]
    try:
        record = experiment.FunctionRecord(**given)
        study = FunctionStudy(record, function, claims=claims, code=source.code)
    except ValidationError as error:
        reason, first = experiment.why_refused(error), error.errors()[0]
        if first["loc"]:
            taken = shorten(repr(first["input"]))
            reason = f"experiment({first['loc'][0]}=...): {reason}, not {taken}"
        raise UserError(f"{where}: {reason}.") from error
    except BadValue as error:
        raise UserError(f"{where}: experiment(claims=...): {error}") from error
    for name, count in Counter(claim.name for claim in study.claims()).items():
        if count > 1:
            raise UserError(f"{where}: two of its claims have one name, {name}.")
    for name in filter(None, [described.headline, *(column.name for column in record.columns)]):
        if problem := study.column_problem(name):
            raise UserError(f"{where}: {problem}.")
    return study


# Studies sent to another process


@functools.lru_cache(maxsize=64)
def _digest_of_file(path: Path, *state: int) -> str:
    """A digest of a file, which a cluster needs for each task; read again at another state."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:24]


@functools.lru_cache(maxsize=16)
def _received(code: Identity, pickled: bytes) -> FunctionStudy:
    """The study that another process sent: its tasks share the modules that are made here.

    They are made of the texts, and know the paths that the files have there.
    """
    record: experiment.FunctionRecord = code.function
    files = () if record.command else code.files
    texts, function, why = references.load_sent(record.name, record.reference, files, pickled)
    return FunctionStudy(record, function, code=code, texts=texts, problem=why)
