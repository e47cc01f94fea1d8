"""Parameters of a study: their declaration, their symbols, and values read from texts and rows.

A declaration is the one source of a parameter's option, help, check and column. Its symbol is the
paper's, in mathtext; terminals and documents show it in plain Unicode.
"""

from __future__ import annotations

import functools
import math
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from json.encoder import encode_basestring_ascii
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeGuard, TypeVar, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails

from overfit_cli.core.errors import BadValue
from overfit_cli.core.mathtext import check_texts
from overfit_cli.core.text import RAISED, is_plain_number, shorten, suggestion

if TYPE_CHECKING:
    import pandas as pd


_SIGNS = {
    "cdot": "·",
    "ell": "ℓ",
    "infty": "∞",
    "langle": "⟨",
    "nabla": "∇",
    "propto": "∝ ",
    "rangle": "⟩",
    "sum": "Σ ",
    "top": "ᵀ",
    "Vert": "‖",
}
_ACCENTS = {
    "bar": "\N{COMBINING MACRON}",
    "hat": "\N{COMBINING CIRCUMFLEX ACCENT}",
    "tilde": "\N{COMBINING TILDE}",
    "underline": "\N{COMBINING LOW LINE}",
}


def symbol_text(symbol: str) -> str:
    r"""Return a mathtext symbol in plain Unicode: `\tilde{\sigma}_p` becomes `σ̃_p`.

    Equations too: `{N} \cdot \left(M + 1\right)^{2} = 10^{-3}` becomes `N·(M + 1)² = 10⁻³`.
    """
    text = re.sub(r"\\(left|right)(?![A-Za-z])", "", symbol.replace(r"\|", "‖"))
    text = text.replace(r"\,", " ")
    text = re.sub(r"\\mathrm\{(.*?)\}", r"\1", text.replace(r" \cdot ", r"\cdot "))
    text = re.sub(r"\\frac\{(.*?)\}\{(.*?)\}", r"\1/\2 ", text)
    accents = "|".join(_ACCENTS)
    text = re.sub(rf"\\(?!(?:{accents})\b)([A-Za-z]+)( ?)", _replace_name, text)
    text = re.sub(rf"\\({accents})(?:\{{(.)\}}| (.))", _add_accent, text)
    text = re.sub(r"\^(?:\{(-?\d+)\}|(\d))", _superscript, text)
    while (inner := _BRACES.sub(_replace_braces, text)) != text:
        text = inner
    return text.replace("^ᵀ", "ᵀ").replace(r"\_", "_").replace(r"\,", " ")


_BRACES = re.compile(r"(\^|sqrt)?\{([^{}]*)\}")
"""The innermost braces, with the caret or the root before them."""


def _replace_braces(match: re.Match[str]) -> str:
    prefix, content = match.groups()
    if prefix == "sqrt":
        return f"√({content})"
    return f"^({content})" if prefix and len(content) > 1 else f"{prefix or ''}{content}"


def _superscript(match: re.Match[str]) -> str:
    return (match[1] or match[2]).translate(RAISED)


def _replace_name(match: re.Match[str]) -> str:
    name, space = match.groups()
    if name in _SIGNS:
        return _SIGNS[name]
    size = "CAPITAL" if name[0].isupper() else "SMALL"
    letter = "LAMDA" if name.lower() == "lambda" else name.upper()
    try:
        return unicodedata.lookup(f"GREEK {size} LETTER {letter}")
    except KeyError:
        return f"{name}{space}"


def _add_accent(match: re.Match[str]) -> str:
    return f"{match[2] or match[3]}{_ACCENTS[match[1]]}"


Value = int | float | bool | str
Kind = Literal["int", "float", "bool", "literal", "text"]


class StudyParameters(BaseModel):
    """Base of every study's parameters: frozen, every field a `parameter`, no unknown names."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)

    def refusals(self) -> Iterator[BadValue]:
        """Yield an error for each value that contradicts the others; the first is raised."""
        yield from ()

    @model_validator(mode="after")
    def _check_consistency(self) -> Self:
        refusal = next(self.refusals(), None)
        if refusal is not None:
            raise ValueError(refusal)  # pydantic passes on a ValueError only
        return self


@functools.lru_cache(maxsize=100_000)
def parameters_json(parameters: StudyParameters) -> str:
    """Return all values as compact JSON, sorted by name: a part of a cell's key.

    It is cached, because cells of many seeds share their parameters.
    """
    values = parameters.__dict__
    pairs = [f"{name}:{_json(values[field])}" for field, name in _json_names(type(parameters))]
    return "{" + ",".join(pairs) + "}"


Parameters = TypeVar("Parameters", bound=StudyParameters)


@dataclass(frozen=True)
class Parameter:
    """The meaning and the bounds of a parameter: `Annotated[int, Parameter("samples")]`.

    The symbol is the paper's, in mathtext without dollar signs; `label`, a few words for axes, is
    empty where the meaning is short enough.
    """

    meaning: str = ""
    symbol: str = ""
    unit: str = ""
    at_least: float | None = None
    above: float | None = None
    at_most: float | None = None
    below: float | None = None
    label: str = ""

    def __post_init__(self) -> None:
        check_texts(self)
        for name in ("at_least", "above", "at_most", "below"):
            if (value := getattr(self, name)) is not None and not is_finite_number(value):
                raise TypeError(f"Parameter({name}={value!r}): it takes a finite number")
        lows = [low for low in (self.at_least, self.above) if low is not None]
        highs = [high for high in (self.at_most, self.below) if high is not None]
        if lows and highs and max(lows) > min(highs):
            message = f"no number is {max(lows):g} or more and {min(highs):g} or less"
            raise TypeError(f"Parameter: {message}")

    def field(
        self,
        default: Value | None,
        *,
        real: bool,
        value_labels: Mapping[str, str] = MappingProxyType({}),
        shades: tuple[float, float] | None = None,
    ) -> Any:
        """Return the parameter as a field of a `StudyParameters` model.

        Args:
            real: whether it is a real number, which is then finite; bounds of whole numbers are
                rounded inwards.
            value_labels: what axes and legends call a value, where that is not the value itself.
            shades: of a positive number: the values of the first and the last shade of the colour
                map, in every figure; None fits the shades to the drawn values.
        """

        def bound(value: float | None, rounding: Callable[[float], int]) -> float | None:
            return value if real or value is None else rounding(value)

        return Field(
            ... if default is None else default,
            description=self.meaning,
            ge=bound(self.at_least, math.ceil),
            gt=bound(self.above, math.floor),
            le=bound(self.at_most, math.floor),
            lt=bound(self.below, math.ceil),
            allow_inf_nan=False if real else None,
            json_schema_extra={
                "symbol": self.symbol,
                "unit": self.unit,
                "label": self.label,
                "value_labels": dict(value_labels),
                "shades": list(shades) if shades else None,
            },
        )


def parameter(
    default: Value,
    meaning: str,
    *,
    symbol: str = "",
    unit: str = "",
    at_least: float | None = None,
    above: float | None = None,
    at_most: float | None = None,
    below: float | None = None,
    label: str = "",
    value_labels: Mapping[str, str] = MappingProxyType({}),
    shades: tuple[float, float] | None = None,
) -> Any:
    """Declare a field of a `StudyParameters` model: the paper's value, and see `Parameter`."""
    declared = Parameter(meaning, symbol, unit, at_least, above, at_most, below, label)
    return declared.field(
        default, real=isinstance(default, float), value_labels=value_labels, shades=shades
    )


def is_finite_number(value: object) -> bool:
    """Return whether a value is a whole or real number other than nan and infinity."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value)


def is_pair_of_numbers(value: object) -> TypeGuard[list[float]]:
    """Return whether a value is a list of two finite numbers."""
    return isinstance(value, list) and len(value) == 2 and all(map(is_finite_number, value))


@functools.cache
def _json_names(model: type[StudyParameters]) -> list[tuple[str, str]]:
    return [(name, encode_basestring_ascii(name)) for name in sorted(model.model_fields)]


def _json(value: Value) -> str:
    # The same text as json.dumps, but faster: a sweep makes many keys.
    if isinstance(value, str):
        return encode_basestring_ascii(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value)


@dataclass(frozen=True)
class ParameterInfo:
    """The description of a parameter for help texts, tables and figures; see `Parameter`.

    Attributes:
        kind: `int`, `float`, `bool`, `literal` or `text`.
        choices: the accepted values of a `literal`, and of an `int` that has choices.
        accepts: the accepted values in words.
    """

    name: str
    kind: Kind
    default: Value | None
    meaning: str
    symbol: str
    unit: str
    choices: tuple[str, ...]
    accepts: str
    label: str = ""
    value_labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    shades: tuple[float, float] | None = None

    @property
    def spelled_symbols(self) -> frozenset[str]:
        """The spellings of the symbol: as terminals show it, `SNR` or `σ_p`, and `eta` for η."""
        return symbol_spellings(self.symbol)


@functools.cache
def symbol_spellings(symbol: str) -> frozenset[str]:
    """Return the spellings of a symbol: as terminals show it, `SNR` or `σ_p`, and `eta` for η."""
    letters = symbol.replace("\\", "")
    words = (symbol_text(symbol), letters if letters.isidentifier() else "")
    return frozenset(filter(None, words))


SEED = ParameterInfo("seed", "int", 0, "seed", "", "", (), "a whole number of at least 0")
"""The seed, described as the parameters are that it stands beside."""


def describe(model: type[StudyParameters]) -> Mapping[str, ParameterInfo]:
    """Return every parameter of `model` by name, in the order of its declaration."""
    return _parameter_infos(model)


@functools.cache  # not of `describe`: mypy would then refuse a model as no Hashable
def _parameter_infos(model: type[StudyParameters]) -> Mapping[str, ParameterInfo]:
    return MappingProxyType({name: _parameter_info(model, name) for name in model.model_fields})


def _parameter_info(model: type[StudyParameters], name: str) -> ParameterInfo:
    declared = model.model_fields[name]
    extra = declared.json_schema_extra
    assert isinstance(extra, dict), f"{name} is declared without parameter()"
    kind, choices = _kind(declared.annotation)
    assert kind is not None, f"{name} has a type that no parameter can have"
    value_labels = extra["value_labels"]
    assert isinstance(value_labels, dict)
    assert value_labels.keys() <= set(choices), f"{name} has labels of values that it hasn't"
    shades = extra["shades"]
    assert shades is None or is_pair_of_numbers(shades)
    return ParameterInfo(
        name=name,
        kind=kind,
        default=None if declared.is_required() else declared.default,
        meaning=declared.description or "",
        symbol=str(extra["symbol"]),
        unit=str(extra["unit"]),
        choices=choices,
        accepts=_accepts(kind, choices, declared.metadata),
        label=str(extra["label"]) or declared.description or name.replace("_", " "),
        value_labels={key: str(text) for key, text in value_labels.items()},
        shades=None if shades is None else (shades[0], shades[1]),
    )


def parameter_named(model: type[StudyParameters], text: str) -> str:
    """Return the name of the parameter that `text` is the name or the symbol of, else `text`.

    A symbol is spelled `SNR`, `σ_p` or `sigma_p`, and must belong to one parameter only. `steps`, a
    column of every row, names the parameter `training_steps`.
    """
    return find_name(describe(model), text)


TRAINING_STEPS = "training_steps"


def find_name(parameters: Mapping[str, ParameterInfo], text: str) -> str:
    """Return the name of one of these parameters as `parameter_named` does."""
    if text in parameters:
        return text
    named = [name for name, info in parameters.items() if text in info.spelled_symbols]
    if text == "steps" and not named and TRAINING_STEPS in parameters:
        return TRAINING_STEPS
    return named[0] if len(named) == 1 else text


def spellings(parameters: Mapping[str, ParameterInfo]) -> dict[str, str]:
    """Return the name of each parameter by every spelling of it that `find_name` takes."""
    texts = {text for info in parameters.values() for text in (info.name, *info.spelled_symbols)}
    texts.add("steps")
    names = {text: find_name(parameters, text) for text in texts}
    return {text: name for text, name in names.items() if name in parameters}


def _kind(annotation: Any) -> tuple[Kind | None, tuple[str, ...]]:
    if get_origin(annotation) is not Literal:
        kinds: dict[Any, Kind] = {int: "int", float: "float", bool: "bool"}
        return kinds.get(annotation, "text" if annotation is str else None), ()
    choices = get_args(annotation)
    if all(isinstance(choice, str) for choice in choices):
        return "literal", choices
    are_integers = all(
        isinstance(choice, int) and not isinstance(choice, bool) for choice in choices
    )
    return ("int" if are_integers else None), tuple(str(choice) for choice in choices)


def _accepts(kind: Kind, choices: tuple[str, ...], constraints: list[Any]) -> str:
    if choices:
        return "one of " + ", ".join(choices)
    if kind == "text":
        return "a text"
    if kind == "bool":
        return "true or false"
    words = {"ge": "of at least", "gt": "above", "le": "up to", "lt": "below"}
    bounds = [
        f"{word} {getattr(constraint, short):.15g}"
        for constraint in constraints
        for short, word in words.items()
        if getattr(constraint, short, None) is not None
    ]
    noun = "a whole number" if kind == "int" else "a number"
    return f"{noun} {' and '.join(bounds)}".strip()


Result = TypeVar("Result")


def parse_value(info: ParameterInfo, text: str) -> Value:
    """Convert a text to a value of the parameter's kind; `build` checks the bounds."""
    text = text.strip()
    excerpt = shorten(text)
    refusal = BadValue(info.name, excerpt, f"{info.name} takes {info.accepts}, not {excerpt!r}.")
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
    # The exponent first: arithmetic with a huge exponent overflows.
    if not number.is_finite() or number.adjusted() > 300 or abs(number) > Decimal("1e300"):
        raise refusal
    if info.kind == "float":
        return float(number) + 0.0  # -0 becomes 0: a cell has one key
    if number != number.to_integral_value():
        raise refusal
    if abs(number) >= 2**63:
        accepts = f"it is too large; {info.name} takes {info.accepts} below 2**63."
        raise BadValue(info.name, excerpt, accepts)
    return int(number)


def parameters_from_row(
    model: type[Parameters], row: Mapping[str, Any] | pd.Series[Any]
) -> Parameters:
    """Return the parameters of a cell from its row, which may have further columns."""
    return model.model_validate({name: row[name] for name in model.model_fields})


def map_parameters(
    model: type[Parameters], cells: pd.DataFrame, function: Callable[[Parameters], Result]
) -> list[Result]:
    """Return a function's result for each cell's parameters; it is called once for equal ones."""
    names = list(model.model_fields)
    results: dict[tuple[Any, ...], Result] = {}
    points = list(zip(*(cells[name].tolist() for name in names), strict=True))
    for point in points:
        if point not in results:
            results[point] = function(model.model_validate(dict(zip(names, point, strict=True))))
    return [results[point] for point in points]


def build(model: type[StudyParameters], values: Mapping[str, Value]) -> StudyParameters:
    """Make the parameters; those that `values` does not have take their defaults."""
    declared = describe(model)
    for name in values:
        if name not in declared:
            raise unknown_parameter(name, declared)
    for name, info in declared.items():
        if info.default is None and name not in values:
            raise BadValue(name, None, f"it has no default; give {info.accepts}.")
    try:
        return model(**values)
    except ValidationError as error:
        raise _refusal(error.errors()[0], declared) from None


def unknown_parameter(name: str, declared: Mapping[str, ParameterInfo]) -> BadValue:
    """Return the error for an unknown parameter, with the nearest name."""
    return BadValue(
        name, None, f"the study has no parameter {name!r}; {suggestion(name, declared)}"
    )


def _refusal(error: ErrorDetails, declared: Mapping[str, ParameterInfo]) -> BadValue:
    if not error["loc"]:
        refusal = error["ctx"]["error"].args[0]
        if isinstance(refusal, BadValue):
            return refusal
        return BadValue("parameters", None, str(refusal))
    name, value = str(error["loc"][0]), error["input"]
    return BadValue(name, value, f"{name} takes {declared[name].accepts}, not {value}.")
