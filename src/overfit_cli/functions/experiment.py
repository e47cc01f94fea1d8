"""Descriptions of functions that are studies: their signature, and the decorator `experiment`.

The decorator states what a signature can't. A run directory keeps the record, so that its cells can
be read without the function: the record rebuilds the model of the parameters.
"""

from __future__ import annotations

import functools
import inspect
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, TypeVar, get_args, get_origin

import pydantic

from overfit_cli.core import parameters, text
from overfit_cli.core.cell import ROW_COLUMNS, Column
from overfit_cli.core.claim import Claim
from overfit_cli.core.errors import UserError
from overfit_cli.core.parameters import Parameter, StudyParameters

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

_ATTRIBUTE = "__overfit__"


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """Decorator of a function that is a study, which says what its signature doesn't.

    Attributes:
        name: the study's name; by default the module's and the function's.
        version: raised when the same cell would give other numbers; cells of two aren't mixed.
        title: what it is, in a line; by default the first line of its documentation.
        headline: the column shown while a sweep runs; by default the first that it returns.
        threshold: the value of the headline at which a cell changes sides.
        sides: what a cell is called whose headline is up to the threshold, and above it.
        columns: meaning, symbol, unit and label of columns that it returns or yields.
        claims: what its cells can decide, as sentences: `"test_error < 0.05 where snr > 2"`, see
            `claims.sentences`. `overfit report` judges them.
        data: files that it reads, as seen from the folder of its file: a run directory is held to
            their content.
    """

    name: str | None = None
    version: int = 1
    title: str | None = None
    headline: str = ""
    threshold: float | None = None
    sides: tuple[str, str] = ("", "")
    columns: Sequence[Column] = ()
    claims: Sequence[Claim | str] = ()
    data: Sequence[str] = ()

    def __call__(self, function: Decorated) -> Decorated:
        """Mark a function."""
        setattr(function, _ATTRIBUTE, self)
        return function


experiment = Experiment


def description_of(function: Callable[..., Any]) -> Experiment | None:
    """Return what `experiment` says of a function; None of one that it doesn't decorate."""
    description: Experiment | None = getattr(function, _ATTRIBUTE, None)
    return description


def without_arguments(function: Callable[..., Any]) -> Any:
    """Return the function of a `functools.partial`; another one as it is."""
    return function.func if isinstance(function, functools.partial) else function


# Records


Kind = Literal["int", "float", "bool", "text"]
_KEPT = pydantic.BeforeValidator(parameters.without_bad_texts)
TYPES: Mapping[Kind, type] = {"int": int, "float": float, "bool": bool, "text": str}


class ParameterRecord(pydantic.BaseModel):
    """A parameter of a function: its type and its declaration.

    `default` is None where the parameter must be given; `choices` are those of a `Literal`;
    `argument` is its name in the signature, where that is another one.
    """

    model_config = pydantic.ConfigDict(frozen=True, extra="ignore")

    name: str
    kind: Kind
    choices: tuple[str | int, ...] = ()
    default: int | float | bool | str | None = None
    about: Annotated[Parameter, _KEPT] = Parameter()
    argument: str = ""

    def field(self) -> tuple[Any, Any]:
        """Return the type and the field that pydantic's `create_model` takes."""
        kind: Any = Literal[self.choices] if self.choices else TYPES[self.kind]
        return kind, self.about.field(self.default, real=self.kind == "float")

    @pydantic.model_validator(mode="after")
    def _check(self) -> ParameterRecord:
        is_taken = self.name in (*ROW_COLUMNS, "step") or hasattr(StudyParameters, self.name)
        if is_taken or not self.name.isidentifier() or self.name.startswith("_"):
            problem = "the name is taken, or doesn't begin with a letter"
            raise ValueError(f"{problem}; call it something else, such as my_{self.name}")
        if self.default is not None:
            try:
                kind, field = self.field()
                accepted: Any = Annotated[kind, field]
                pydantic.TypeAdapter(accepted).validate_python(self.default, strict=True)
            except (pydantic.ValidationError, TypeError) as error:  # bounds may have no order
                refused = f"the default of {self.name}, {text.shorten(repr(self.default))}"
                raise ValueError(f"{refused}: {why_refused(error)}") from None
        return self


LONGEST_NAME = 200
"""The most letters of a study's name, which stands in sentences and in names of folders."""


class FunctionRecord(pydantic.BaseModel):
    """A function that is a study, as a run directory keeps it.

    Attributes:
        label: the study's name in the names of run directories.
        reference: `FILE.py:NAME` or `package.module:NAME`; empty where the function has neither.
        columns: those that `experiment` declares; the cells may have more.
        command, reads: of a program its command line, with whole paths and to be shown only, and
            the file with its numbers.
    """

    model_config = pydantic.ConfigDict(frozen=True, extra="ignore")

    name: str = pydantic.Field(max_length=LONGEST_NAME)
    label: str = pydantic.Field(max_length=LONGEST_NAME)
    version: int = pydantic.Field(default=1, ge=1, lt=2**63)
    title: str = ""
    reference: str = ""
    headline: str = ""
    threshold: pydantic.FiniteFloat | None = None
    sides: tuple[str, str] = ("", "")
    seeded: bool = True
    parameters: tuple[ParameterRecord, ...] = ()
    columns: tuple[Annotated[Column, _KEPT], ...] = ()
    claims: bool = False
    data: tuple[str, ...] = ()
    command: str = ""
    reads: str = ""

    @pydantic.model_validator(mode="after")
    def _check(self) -> FunctionRecord:
        if not self.name.strip() or not self.name.isprintable():
            raise ValueError(f"its name is {self.name!r}, and no line that can be printed")
        for kind in ("parameters", "columns"):
            for name, count in Counter(item.name for item in getattr(self, kind)).items():
                if count > 1:
                    raise ValueError(f"two of its {kind} have one name, {name}")
        return self


def why_refused(error: Exception) -> str:
    """Return why a value is refused, by pydantic or by a check of ours."""
    if isinstance(error, pydantic.ValidationError):
        return error.errors()[0]["msg"].removeprefix("Value error, ")
    return str(error)


class FunctionParameters(StudyParameters):
    """Base of the models of functions' parameters.

    A model is made at run time, so that its instances are pickled with its record.
    """

    _record: ClassVar[FunctionRecord]

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the record and the values."""
        return _parameters_of, (self._record, self.model_dump())


@functools.cache
def parameter_model(record: FunctionRecord) -> type[FunctionParameters]:
    """Return the model of a function's parameters."""
    fields: dict[str, Any] = {item.name: item.field() for item in record.parameters}
    model = pydantic.create_model("FunctionParameters", __base__=FunctionParameters, **fields)
    model._record = record
    return model


def _parameters_of(record: FunctionRecord, values: Mapping[str, Any]) -> FunctionParameters:
    return parameter_model(record).model_construct(None, **values)


# Signatures


SEED = "seed"
"""The parameter that takes the cell's seed."""

_ACCEPTED = (
    "it has a name, without * or /, and takes int, float, bool, str, or a Literal of texts or of "
    "whole numbers below 2**63, with one Parameter(...) at most, and bounds of numbers only; a "
    "list can be a text, such as '64-64'"
)


def read_signature(function: Callable[..., Any], where: str) -> tuple[list[ParameterRecord], bool]:
    """Return a function's parameters, and whether it takes a seed."""
    inner = inspect.unwrap(without_arguments(function))
    called = inner if hasattr(inner, "__globals__") else type(inner).__call__
    try:
        given = {
            name: each.replace(annotation=eval(each.annotation, called.__globals__))
            if isinstance(each.annotation, str)
            else each
            for name, each in inspect.signature(function).parameters.items()
        }
    except Exception as error:  # annotations may be anything, even names that don't exist
        raise UserError(f"{where}: its annotations can't be read: {error}.") from error
    seed = given.pop(SEED, None)
    is_own = not seed or seed.default is seed.empty or type(seed.default) in (int, type(None))
    if seed and not (is_own and seed.annotation in (int, int | None, seed.empty)):
        accepts = "it receives the cell's seed, an int; call anything else my_seed"
        raise UserError(f"{where}, parameter {SEED}: {accepts}.")
    records = list[ParameterRecord]()
    for name, each in given.items():
        try:
            records.append(_read_parameter(each))
        except (ValueError, TypeError) as error:
            raise UserError(f"{where}, parameter {name}: {why_refused(error)}.") from error
    return records, seed is not None


def _read_parameter(given: inspect.Parameter) -> ParameterRecord:
    default = None if given.default is given.empty else given.default
    hint: Any = type(default) if given.annotation is given.empty else given.annotation
    hint, *extras = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    declared = [extra for extra in extras if isinstance(extra, Parameter)]
    about, (kind, _) = (declared or [Parameter()])[0], parameters.kind_of(hint)
    choices = get_args(hint) if get_origin(hint) is Literal else ()
    bounds = {about.at_least, about.above, about.at_most, about.below}
    values = [*choices] if given.default is given.empty else [default, *choices]
    if (
        kind is None
        or given.kind not in (given.POSITIONAL_OR_KEYWORD, given.KEYWORD_ONLY)
        or given.default is None
        or len(declared) > 1
        or Parameter in extras
        or (bounds != {None} and (choices or kind in ("bool", "literal", "text")))
        or not all(text.is_text(value) for value in values if isinstance(value, str))
        or (kind == "int" and any(isinstance(v, int) and abs(v) >= 2**63 for v in values))
    ):
        raise ValueError(f"`{given}` is no parameter of a study; {_ACCEPTED}")
    is_steps = given.name == "steps"  # every row has a column of that name
    return ParameterRecord(
        name=parameters.TRAINING_STEPS if is_steps else given.name,
        kind="text" if kind == "literal" else kind,
        choices=choices,
        default=float(default) if kind == "float" and type(default) is int else default,
        about=about,
        argument=given.name if is_steps else "",
    )
