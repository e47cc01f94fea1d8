"""Record of a function that is a study, and the decorator `experiment`.

The decorator states what a signature can't. A run directory keeps the record, so that its cells can
be read without the function: the record rebuilds the model of the parameters.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, TypeAlias, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    ValidationError,
    create_model,
    model_validator,
)

from overfit_cli.core.cell import ROW_COLUMNS, Column
from overfit_cli.core.claim import Claim
from overfit_cli.core.errors import BadValue
from overfit_cli.core.mathtext import TEXTS, typesetting_problem
from overfit_cli.core.parameters import Parameter, StudyParameters, Value
from overfit_cli.core.registry import (
    sides_problem,
    text_problem,
    threshold_problem,
    version_problem,
)

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

_ATTRIBUTE = "__overfit__"
_HOLDS: dict[str, Any] = {"columns": Column, "claims": Claim, "data": str}


@dataclass(frozen=True)
class Description:
    """The arguments of `experiment`; see there."""

    name: str | None = None
    version: int = 1
    title: str | None = None
    headline: str = ""
    threshold: float | None = None
    sides: tuple[str, str] = ("", "")
    columns: tuple[Column, ...] = ()
    claims: tuple[Claim | str, ...] = ()
    data: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what is of another type."""
        problems = {
            "name": self.name is not None and text_problem(self.name),
            "version": version_problem(self.version),
            "title": not isinstance(self.title, str | None) and "it takes a text",
            "headline": not isinstance(self.headline, str) and "it takes the name of a column",
            "threshold": threshold_problem(self.threshold),
            "sides": sides_problem(self.sides),
        }
        for name, why in problems.items():
            if why:
                raise TypeError(f"experiment({name}={getattr(self, name)!r}): {why}")
        for name, kind in _HOLDS.items():
            for item in getattr(self, name):
                if not isinstance(item, kind) and not (name == "claims" and isinstance(item, str)):
                    called = "names of files" if kind is str else f"{kind.__name__}(...)"
                    called += " and sentences" if name == "claims" else ""
                    words = f"it takes a list of {called}"
                    raise TypeError(f"experiment({name}=[{item!r}]): {words}")
            names = [_name_of(item) for item in getattr(self, name)]
            if len(set(names)) < len(names):
                repeated = next(item for item in names if names.count(item) > 1)
                raise TypeError(f"experiment({name}=...): two are called {repeated!r}; rename one")


def _name_of(item: Column | Claim | str) -> str:
    if not isinstance(item, str):
        return item.name
    if " " not in item:  # a file, or no claim
        return item
    from overfit_cli.claims.grammar import read

    try:
        return read(item).name
    except BadValue as error:
        raise TypeError(f"experiment(claims=...): {error}") from None


def experiment(
    *without_names: object,
    name: str | None = None,
    version: int = 1,
    title: str | None = None,
    headline: str = "",
    threshold: float | None = None,
    sides: tuple[str, str] = ("", ""),
    columns: Sequence[Column] = (),
    claims: Sequence[Claim | str] = (),
    data: Sequence[str] = (),
) -> Callable[[Decorated], Decorated]:
    """Decorate a function that is a study, to say what its signature doesn't.

    Args:
        name: the study's name; by default the module's and the function's.
        version: raised when the same cell would give other numbers; cells of two aren't mixed.
        title: what it is, in a line; by default the first line of its documentation.
        headline: the column shown while a sweep runs; by default the first that it returns.
        threshold: the value of the headline at which a cell changes sides.
        sides: what a cell is called whose headline is up to the threshold, and above it.
        columns: meaning, symbol, unit and label of columns that it returns or yields.
        claims: what its cells can decide, as sentences: `"test_error < 0.05 where snr > 2"`, see
            `claims.grammar`. `overfit report` judges them.
        data: files that it reads, as seen from the folder of its file: a run directory is held to
            their content.
    """
    if without_names:
        raise TypeError("write @experiment(NAME=...), with parentheses and named arguments")
    for argument, value in (("columns", columns), ("claims", claims), ("data", data)):
        if not isinstance(value, Iterable) or isinstance(value, str):
            raise TypeError(f"experiment({argument}={value!r}): it takes a list")
    description = Description(
        name,
        version,
        title,
        headline,
        threshold,
        sides,
        tuple(columns),
        tuple(claims),
        tuple(data),
    )

    def mark(function: Decorated) -> Decorated:
        setattr(function, _ATTRIBUTE, description)
        return function

    return mark


def description_of(function: Callable[..., Any]) -> Description | None:
    """Return what `experiment` says of a function; None of one that it doesn't decorate."""
    description: Description | None = getattr(function, _ATTRIBUTE, None)
    return description


TYPES = {"int": int, "float": float, "bool": bool, "text": str}


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


def _without_bad_texts(given: Any) -> Any:
    """What a run directory keeps of a declaration, without texts that figures can't typeset."""
    if not isinstance(given, dict):
        return given
    bad = {
        name
        for name in TEXTS
        if isinstance(text := given.get(name), str) and typesetting_problem(name, text)
    }
    return {name: value for name, value in given.items() if name not in bad}


class ParameterRecord(_Record):
    """A parameter of a function: its type and its declaration.

    `default` is None where the parameter must be given; `choices` are those of a `Literal`;
    `argument` is its name in the signature, where that is another one.
    """

    name: str
    kind: Literal["int", "float", "bool", "text"]
    choices: tuple[str | int, ...] = ()
    default: int | float | bool | str | None = None
    about: Annotated[Parameter, BeforeValidator(_without_bad_texts)] = Parameter()
    argument: str = ""

    def field(self) -> tuple[Any, Any]:
        """Return the type and the field that pydantic's `create_model` takes."""
        kind: Any = Literal[self.choices] if self.choices else TYPES[self.kind]
        return kind, self.about.field(self.default, real=self.kind == "float")


class ColumnRecord(_Record):
    """A column that a function returns or yields; see `Column`."""

    name: str
    meaning: str = ""
    symbol: str = ""
    unit: str = ""
    label: str = ""

    @model_validator(mode="before")
    @classmethod
    def _leave_out_bad_texts(cls, given: Any) -> Any:
        return _without_bad_texts(given)


class FunctionRecord(_Record):
    """A function that is a study, as a run directory keeps it.

    Attributes:
        label: the study's name in the names of run directories.
        reference: `FILE.py:NAME` or `package.module:NAME`; empty where the function has neither.
        columns: those that `experiment` declares; the cells may have more.
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
    data: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _check_parameters(self) -> FunctionRecord:
        names = [parameter.name for parameter in self.parameters]
        if len(set(names)) < len(names):
            raise ValueError("two of its parameters have one name")
        for parameter in self.parameters:
            if why := name_problem(parameter.name):
                raise ValueError(f"the parameter {parameter.name!r}: {why}")
            if parameter.default is not None:
                _check_default(parameter)
        return self


def name_problem(name: str) -> str:
    """Return why no parameter can have this name; empty where one can."""
    if not name.isidentifier() or name.startswith("_"):
        return "a name begins with a letter"
    if name in ROW_COLUMNS or name == "step":
        return "every row has a column of that name"
    return "the name is taken" if hasattr(StudyParameters, name) else ""


def _check_default(parameter: ParameterRecord) -> None:
    try:
        kind, field = parameter.field()
        model: Any = create_model("Default", __base__=StudyParameters, value=(kind, field))
        model()
    except (ValidationError, TypeError) as error:
        words = error.errors()[0]["msg"] if isinstance(error, ValidationError) else error
        default = f"the default of {parameter.name}, {parameter.default!r}"
        raise ValueError(f"{default}: {words}") from None


class FunctionParameters(StudyParameters):
    """Base of the models of functions' parameters.

    A model is made at run time, so that its instances are pickled with its record.
    """

    _record: ClassVar[FunctionRecord]

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the record and the values."""
        return _parameters_of, (self._record, self.model_dump())


Model: TypeAlias = type[FunctionParameters]


@functools.cache
def parameter_model(record: FunctionRecord) -> Model:
    """Return the model of a function's parameters."""
    fields: dict[str, Any] = {item.name: item.field() for item in record.parameters}
    model = create_model("FunctionParameters", __base__=FunctionParameters, **fields)
    model._record = record
    return model


def _parameters_of(record: FunctionRecord, values: Mapping[str, Value]) -> FunctionParameters:
    return parameter_model(record).model_construct(None, **values)
