"""Signatures read as parameters, as Typer reads them."""

from __future__ import annotations

import functools
import inspect
import types
import typing
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Literal, get_args, get_origin

from overfit_cli.errors import UserError
from overfit_cli.functions.record import TYPES, ParameterRecord, name_problem
from overfit_cli.parameters import Parameter
from overfit_cli.plain_text import is_text

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
