"""A plain function as a study: its signature is its parameters, what it returns its columns.

A run directory keeps a record of the function, so that figures need not load it. A study that goes
to another machine takes the user's files with it.
"""

from __future__ import annotations

import atexit
import functools
import inspect
import math
import shutil
import sys
import tempfile
import types
import typing
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, cast, get_args, get_origin

from pydantic import BaseModel, ConfigDict, ValidationError, create_model, model_validator

from overfit_cli.core.cell import (
    ROW_COLUMNS,
    Cell,
    CellResult,
    Cells,
    Column,
    Results,
    taken_columns,
)
from overfit_cli.core.claim import Claim
from overfit_cli.core.parameters import Parameter, StudyParameters, Value
from overfit_cli.core.study import Study
from overfit_cli.core.text import UserError, is_text
from overfit_cli.core.training import Training
from overfit_cli.functions.source_files import (
    Description,
    OwnFile,
    Source,
    description_of,
    find_function,
    forget,
    parts_of,
    source_of,
    state_of,
    with_imported,
)

TYPES = {"int": int, "float": float, "bool": bool, "text": str}


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class ParameterRecord(_Record):
    """A parameter of a function: its type, and what is said of it.

    `default` is None where it must be given; `choices` are those of a `Literal`.
    """

    name: str
    kind: Literal["int", "float", "bool", "text"]
    choices: tuple[str | int, ...] = ()
    default: int | float | bool | str | None = None
    about: Parameter = Parameter()

    def declaration(self) -> tuple[Any, Any]:
        """Return it as pydantic takes it: a type, and a field."""
        kind: Any = Literal[self.choices] if self.choices else TYPES[self.kind]
        return kind, self.about.field(self.default, real=self.kind == "float")


class ColumnRecord(_Record):
    """A column that a function returns or yields; see `Column`."""

    name: str
    meaning: str = ""
    symbol: str = ""
    unit: str = ""
    label: str = ""


class FunctionRecord(_Record):
    """What is known of a function that is a study.

    Attributes:
        name, version, title, label, headline, threshold, sides: the study's.
        reference: what finds the function again; empty where nothing does.
        seeded: whether it takes a seed.
        parameters: in the order of the signature.
        columns: those that were declared; the others are found in the cells.
        claims: whether it has claims.

    Raises:
        ValueError: if no study can have such parameters.
    """

    name: str
    label: str
    version: int = 1
    title: str = ""
    reference: str = ""
    headline: str = ""
    threshold: float | None = None
    sides: tuple[str, str] = ("", "")
    seeded: bool = True
    parameters: tuple[ParameterRecord, ...] = ()
    columns: tuple[ColumnRecord, ...] = ()
    claims: bool = False

    @model_validator(mode="after")
    def _can_be_a_model(self) -> FunctionRecord:
        names = [one.name for one in self.parameters]
        if len(set(names)) < len(names):
            raise ValueError("two of its parameters have one name")
        for one in self.parameters:
            if why := name_problem(one.name):
                raise ValueError(f"the parameter {one.name!r}: {why}")
            if one.default is not None:
                _check_default(one)
        return self


def name_problem(name: str) -> str:
    """Return why no parameter can be called so; empty where it can."""
    if not name.isidentifier() or name.startswith("_"):
        return "a name begins with a letter"
    if name in ROW_COLUMNS or name == "step":
        return "every row has a column of that name"
    return "the name is taken" if hasattr(StudyParameters, name) else ""


def _check_default(one: ParameterRecord) -> None:
    try:
        kind, field = one.declaration()
        model: Any = create_model("Default", __base__=StudyParameters, value=(kind, field))
        model()
    except (ValidationError, TypeError) as error:
        words = error.errors()[0]["msg"] if isinstance(error, ValidationError) else error
        raise ValueError(f"the default of {one.name}, {one.default!r}: {words}") from None


class FunctionParameters(StudyParameters):
    """Base of functions' parameters. They can be sent to another process, unlike their class."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the values with the record, of which the class is made anew."""
        return _rebuilt, (record_of(type(self)), self.model_dump())


Model: TypeAlias = type[FunctionParameters]
_RECORDS: dict[Model, FunctionRecord] = {}


def record_of(model: Model) -> FunctionRecord:
    """Return the record that `parameter_model` made a class of."""
    return _RECORDS[model]


@functools.cache
def parameter_model(record: FunctionRecord) -> Model:
    """Return the class of a function's parameters."""
    fields: dict[str, Any] = {one.name: one.declaration() for one in record.parameters}
    made: Any = create_model("FunctionParameters", __base__=FunctionParameters, **fields)
    model = cast("Model", made)
    _RECORDS[model] = record
    return model


def _rebuilt(record: FunctionRecord, values: Mapping[str, Value]) -> FunctionParameters:
    return parameter_model(record).model_construct(None, **values)


MOST_STEPS = 2**63


def run_generator(
    cell: Cell,
    rows: Generator[Any, None, Any],
    training: Training,
) -> tuple[Any, int]:
    """Log what a generator yields; return its result, and how many steps it took.

    Without a result of its own, its last row is that. Rows are numbered from 0, unless they have a
    `step`.

    Raises:
        TypeError, ValueError: if it yields no dict of numbers, or steps that don't rise.
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
            raise ValueError(f"it yielded {min(taken)!r}, a column that every row has already")
        step, steps = _next_step(row.pop("step", None), step)
        training.log(cell, step, row)


def _next_step(named: float | None, last: int) -> tuple[int, int]:
    """The number of a logged row, and how many steps were taken until then.

    Raises:
        ValueError: if it is no whole number above the last.
    """
    if named is None:
        return last + 1, last + 2
    if not last < named < MOST_STEPS or named != int(named):
        said = f"it yielded step = {named:g} after {last}"
        raise ValueError(f"{said}; steps are whole numbers that rise")
    return int(named), int(named)


def numbers_in(given: Any, how: str) -> dict[str, Any]:
    """What a function returned or yielded, as Python's numbers.

    Raises:
        TypeError: if it is no dict of numbers.
    """
    if not isinstance(given, Mapping):
        raise TypeError(f"it {how} {given!r}, and not a dict of numbers")
    return {name: _number(value, f"it {how} {name} = {value!r}") for name, value in given.items()}


def _number(value: Any, said: str) -> float | None:
    """A number of any library as Python's; None is a missing one."""
    if value is None:
        return None
    try:
        plain = value.item() if hasattr(value, "item") else value  # an array of one element too
        number = math.nan if isinstance(plain, str | bytes) else float(plain)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        plain, number = value, math.nan
    if math.isnan(number) and not isinstance(plain, float):
        raise TypeError(f"{said}, which is not a number")
    return number


SEED = "seed"
"""The parameter that takes the cell's seed."""

_TYPES = "it takes int, float, bool, str, or a Literal of texts or of whole numbers"


def read_signature(function: Callable[..., Any], where: str) -> tuple[list[ParameterRecord], bool]:
    """Return a function's parameters, and whether it takes a seed.

    Args:
        function: what trains a cell.
        where: what to call it in messages.

    Raises:
        UserError: naming the parameter and what would be accepted.
    """
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise UserError(f"{where}: it is async; a plain function is needed.")
    try:
        hints = typing.get_type_hints(_with_annotations(function), include_extras=True)
        signature = inspect.signature(function)
    except Exception as error:  # annotations may be anything, even names that don't exist
        raise UserError(f"{where}: its annotations can't be read: {error}.") from error
    seeded = SEED in signature.parameters
    found = list(_read_all(signature, hints, where))
    return found, seeded


def _with_annotations(function: Callable[..., Any]) -> Any:
    """A function with a callable's annotations, but for that of what it returns."""
    if isinstance(function, functools.partial):
        return _with_annotations(function.func)
    inner: Any = inspect.unwrap(function)
    if not inspect.isfunction(inner) and not inspect.ismethod(inner):
        inner = type(inner).__call__
    inner = getattr(inner, "__func__", inner)
    if not inspect.isfunction(inner):
        raise TypeError("it isn't written in Python")
    copy = types.FunctionType(inner.__code__, inner.__globals__, closure=inner.__closure__)
    own = inner.__annotations__
    copy.__annotations__ = {name: hint for name, hint in own.items() if name != "return"}
    return copy


def _read_all(
    signature: inspect.Signature, hints: dict[str, Any], where: str
) -> Iterator[ParameterRecord]:
    for name, one in signature.parameters.items():
        place = f"{where}, parameter {name}"
        if one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD, one.POSITIONAL_ONLY):
            raise UserError(f"{place}: each parameter is named in the signature, without * or /.")
        if name == SEED:
            if hints.get(name, int) is not int:
                raise UserError(f"{place}: a seed is an int.")
            continue
        if why := name_problem(name):
            raise UserError(f"{place}: {why}; call it something else, such as my_{name}.")
        default = None if one.default is one.empty else one.default
        if one.default is None:
            raise UserError(f"{place}: its default is None; {_TYPES}.")
        yield _read(name, hints.get(name, type(default)), default, place)


def _read(name: str, hint: Any, default: Any, place: str) -> ParameterRecord:
    """A parameter, from its type, which may carry a `Parameter`, and its default."""
    about = Parameter()
    if get_origin(hint) is Annotated:
        hint, *extras = get_args(hint)
        said = [extra for extra in extras if isinstance(extra, Parameter)]
        if len(said) > 1 or Parameter in extras:
            raise UserError(f"{place}: it takes one Parameter(...), with its parentheses.")
        about = said[0] if said else about
    kind, choices = _kind(hint, place)
    if kind == "float" and isinstance(default, int) and not isinstance(default, bool):
        default = float(default)
    if default is not None and not _has_type(default, kind):
        raise UserError(f"{place}: its default {default!r} is no {TYPES[kind].__name__}.")
    if not all(is_text(one) for one in (default, *choices) if isinstance(one, str)):
        raise UserError(f"{place}: its texts can't be written in UTF-8.")
    if kind == "int" and not all(abs(one) < 2**63 for one in (default or 0, *choices)):
        raise UserError(f"{place}: whole numbers are below 2**63.")
    bounds = (about.at_least, about.above, about.at_most, about.below)
    if (choices or kind in ("bool", "text")) and any(bound is not None for bound in bounds):
        raise UserError(f"{place}: only numbers have bounds.")
    try:
        return ParameterRecord(name=name, kind=kind, choices=choices, default=default, about=about)
    except (ValueError, TypeError) as error:
        raise UserError(f"{place}: {error}.") from error


def _kind(hint: Any, place: str) -> tuple[Literal["int", "float", "bool", "text"], tuple[Any, ...]]:
    """The kind of a type, and what is chosen from.

    Raises:
        UserError: if no parameter can be of it.
    """
    choices = get_args(hint) if get_origin(hint) is Literal else ()
    of = {type(choice) for choice in choices} or {hint}
    for kind, accepted in TYPES.items():
        if of == {accepted} and (not choices or accepted in (int, str)):
            return kind, choices  # type: ignore[return-value]
    if hint is type(None):
        raise UserError(f"{place}: it has neither a type nor a default; {_TYPES}.")
    shown = getattr(hint, "__name__", None) or str(hint)
    raise UserError(f"{place}: its type is {hint if choices else shown}; {_TYPES}.")


def _has_type(default: Any, kind: str) -> bool:
    if isinstance(default, bool):
        return kind == "bool"
    return isinstance(default, TYPES[kind])


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


@dataclass(frozen=True)
class SentFunction:
    """A function's study with the user's files that it imports, as it is sent to a cluster.

    Attributes:
        record, source_digest: of the study.
        file: the function's file among the files; empty for a module, which has its name.
        files: each file's content, by its path from the folder that imports find it in.
    """

    record: FunctionRecord
    source_digest: str
    file: str
    files: tuple[tuple[str, bytes], ...]

    def study(self) -> FunctionStudy:
        """Return the study, made of these files; with a problem where they can't be used here.

        From now on imports find these files, and no more those of another function.
        """
        _import_from(_folder(self))
        return _loaded(self)


def packed(study: FunctionStudy) -> SentFunction | FunctionStudy:
    """Return a study as it travels: with its files, or as it is where it comes from none.

    Raises:
        UserError: if a file can't be read.
    """
    if study.function is None or not study.record.reference:
        return study
    where, _ = parts_of(study.record.reference)
    module = sys.modules.get(study.function.__module__ or "")
    file = Path(where if where.endswith(".py") else getattr(module, "__file__", None) or "")
    if not file.is_file():
        return study  # of an installed package: a worker has it, or says that it hasn't
    package = "" if where.endswith(".py") else getattr(module, "__package__", None) or ""
    try:
        files = tuple(
            (_path_in_root(one).as_posix(), one.path.read_bytes())
            for one in with_imported(OwnFile(file.resolve(), package))
            if one.path.is_file()
        )
    except OSError as error:
        raise UserError(f"{error.filename}: it can't be read ({error.strerror}).") from error
    name = file.name if where.endswith(".py") else ""
    return SentFunction(study.record, study.source_digest, name, files)


def _path_in_root(file: OwnFile) -> Path:
    """The path of a file from the folder that imports find it in: its package's own parent."""
    depth = len(file.package.split(".")) if file.package else 0
    return file.path.relative_to(file.path.parents[depth])


@functools.cache
def _folder(sent: SentFunction) -> Path:
    """A folder of this process with the files."""
    folder = Path(tempfile.mkdtemp(prefix=_FOLDER_PREFIX))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for name, content in sent.files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


@functools.lru_cache(maxsize=16)
def _loaded(sent: SentFunction) -> FunctionStudy:
    folder = _folder(sent)
    where, name = parts_of(sent.record.reference)
    reference = f"{folder / sent.file if sent.file else where}:{name}"
    study = FunctionStudy(sent.record, source_digest=sent.source_digest)
    try:
        loaded = study_loaded_from(reference)
    except UserError as error:
        study.problem = f"{sent.record.name} can't be loaded on a worker: {error}"
        return study
    study.function = loaded.function
    if loaded.source_digest != sent.source_digest:
        study.problem = f"{sent.record.name}: its source isn't the same on a worker."
    return study


def _import_from(folder: Path) -> None:
    earlier = [path for path in sys.path if Path(path).name.startswith(_FOLDER_PREFIX)]
    if earlier == [str(folder)]:
        return
    forget({str(file) for path in earlier for file in Path(path).rglob("*.py")})
    sys.path[:] = [*(path for path in sys.path if path not in earlier), str(folder)]


_FOLDER_PREFIX = "overfit-function-"
