"""Values of parameters: read from texts and rows, checked, and refused in a sentence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from overfit_cli.errors import UserError, is_plain_number, nearest, shortened
from overfit_cli.parameters import ParameterInfo, StudyParameters, Value, describe

if TYPE_CHECKING:
    import pandas as pd

Parameters = TypeVar("Parameters", bound=StudyParameters)
Result = TypeVar("Result")


def parse_value(info: ParameterInfo, text: str, flag: str) -> Value:
    """Turn one `text` into a value of the parameter's kind; bounds are left to `build`.

    Raises:
        UserError: if the text isn't of that kind.
    """
    text = text.strip()
    said = shortened(text)
    refusal = UserError(f"{flag} {said}: {info.name} takes {info.accepts}, not {said!r}.")
    if info.kind == "text":
        return text
    if info.kind == "literal":
        if text not in info.choices:
            raise refusal
        return text
    if info.kind == "bool":
        if text.lower() not in ("true", "false"):
            raise refusal
        return text.lower() == "true"
    try:
        number = Decimal(text if is_plain_number(text) else "")
    except InvalidOperation:
        raise refusal from None
    # The exponent first: arithmetic with a huge one overflows.
    if not number.is_finite() or number.adjusted() > 300 or abs(number) > Decimal("1e300"):
        raise refusal
    if info.kind == "float":
        return float(number) + 0.0  # -0 is 0: the same cell has one name
    if number != number.to_integral_value() or abs(number) >= 2**63:
        raise refusal
    return int(number)


def of_row(model: type[Parameters], row: Mapping[str, Any] | pd.Series[Any]) -> Parameters:
    """Return the parameters of a cell, given its row; the row's other columns are passed over."""
    return model.model_validate({name: row[name] for name in model.model_fields})


def of_rows(
    model: type[Parameters], cells: pd.DataFrame, function: Callable[[Parameters], Result]
) -> list[Result]:
    """Return a function of each cell's parameters; it is called once for all cells that share them.

    Args:
        model: the study's parameters.
        cells: one row per cell.
        function: of the parameters.
    """
    names = list(model.model_fields)
    found: dict[tuple[Any, ...], Result] = {}
    points = list(zip(*(cells[name].tolist() for name in names), strict=True))
    for point in points:
        if point not in found:
            found[point] = function(model.model_validate(dict(zip(names, point, strict=True))))
    return [found[point] for point in points]


def build(
    model: type[StudyParameters], values: Mapping[str, Value], flags: Mapping[str, str]
) -> StudyParameters:
    """Make the parameters, with defaults for what `values` leaves out.

    Args:
        values: values by parameter name.
        flags: how the user wrote each name (`--n`, `--set d`), for the message.

    Raises:
        UserError: naming the flag, the value and what would be accepted.
    """
    known = describe(model)
    for name in values:
        if name not in known:
            raise unknown_parameter(name, known, flags.get(name))
    for name, info in known.items():
        if info.default is None and name not in values:
            raise UserError(f"--{name}: it has no default; give {info.accepts}.")
    try:
        return model(**values)
    except ValidationError as error:
        raise UserError(_sentence(error.errors()[0], known, flags)) from None


def unknown_parameter(
    name: str, known: Mapping[str, ParameterInfo], flag: str | None = None
) -> UserError:
    """Return the error for a parameter that the study doesn't have, with the nearest one."""
    flag = flag or f"--{name}"
    return UserError(f"{flag}: the study has no parameter {name!r}; {nearest(name, known)}")


def _sentence(
    error: ErrorDetails, known: Mapping[str, ParameterInfo], flags: Mapping[str, str]
) -> str:
    if not error["loc"]:  # a study's own sentence begins with --set NAME
        sentence = str(error["msg"]).removeprefix("Value error, ")
        for name, flag in flags.items():
            sentence = sentence.replace(f"--set {name} ", f"{flag} ")
        return sentence
    name = str(error["loc"][0])
    flag = flags.get(name, f"--{name}")
    return f"{flag} {error['input']}: {name} takes {known[name].accepts}, not {error['input']}."
