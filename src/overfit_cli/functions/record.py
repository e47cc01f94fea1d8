"""Descriptions of functions, which a run directory keeps: figures need not load the function."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias, cast

from pydantic import BaseModel, ConfigDict, ValidationError, create_model, model_validator

from overfit_cli.parameters import Parameter, StudyParameters, Value
from overfit_cli.study import ROW_COLUMNS

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
    model = cast(Model, made)
    _RECORDS[model] = record
    return model


def _rebuilt(record: FunctionRecord, values: Mapping[str, Value]) -> FunctionParameters:
    return parameter_model(record).model_construct(None, **values)
