"""Signatures of plain functions, read as parameters of a study, and the columns in their texts."""

from __future__ import annotations

import ast
import contextlib
import functools
import inspect
import textwrap
import types
import typing
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Literal, get_args, get_origin

from overfit_cli.core.errors import UserError
from overfit_cli.core.parameters import TRAINING_STEPS, Parameter
from overfit_cli.core.text import is_text
from overfit_cli.functions.experiment import TYPES, ParameterRecord, name_problem

SEED = "seed"
"""The parameter that takes the cell's seed."""

_TYPES = "it takes int, float, bool, str, or a Literal of texts or of whole numbers"


def read_signature(function: Callable[..., Any], where: str) -> tuple[list[ParameterRecord], bool]:
    """Return a function's parameters, and whether it takes a seed."""
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise UserError(f"{where}: it is async; a plain function is needed.")
    try:
        hints = typing.get_type_hints(_with_annotations(function), include_extras=True)
        signature = inspect.signature(function)
    except Exception as error:  # annotations may be anything, even names that don't exist
        raise UserError(f"{where}: its annotations can't be read: {error}.") from error
    return list(_read_parameters(signature, hints, where)), SEED in signature.parameters


def _with_annotations(function: Callable[..., Any]) -> Any:
    inner = _called(function)
    if not inspect.isfunction(inner):
        raise TypeError("it isn't written in Python")
    copy = types.FunctionType(inner.__code__, inner.__globals__, closure=inner.__closure__)
    annotations = inner.__annotations__
    copy.__annotations__ = {name: hint for name, hint in annotations.items() if name != "return"}
    return copy


def _called(function: Callable[..., Any]) -> Any:
    """The function that runs when a callable is called: of a partial, a method, an object."""
    if isinstance(function, functools.partial):
        return _called(function.func)
    inner: Any = inspect.unwrap(function)
    if not inspect.isfunction(inner) and not inspect.ismethod(inner):
        inner = type(inner).__call__
    return getattr(inner, "__func__", inner)


def _read_parameters(
    signature: inspect.Signature, hints: dict[str, Any], where: str
) -> Iterator[ParameterRecord]:
    for argument, parameter in signature.parameters.items():
        name = TRAINING_STEPS if argument == "steps" else argument
        label = f"{where}, parameter {argument}"
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise UserError(f"{label}: each parameter is named in the signature, without * or /.")
        if name == SEED:
            given = parameter.default
            other = given not in (None, parameter.empty) and type(given) is not int
            if other or hints.get(name, int) not in (int, int | None):
                raise UserError(
                    f"{label}: it receives the cell's seed, an int; call anything else my_{name}."
                )
            continue
        if argument == "steps" and TRAINING_STEPS in signature.parameters:
            why = f"its column would be {TRAINING_STEPS}, as that of another parameter"
            raise UserError(f"{label}: {why}; call it something else, such as my_steps.")
        if why := name_problem(name):
            raise UserError(f"{label}: {why}; call it something else, such as my_{name}.")
        if parameter.default is None:
            raise UserError(f"{label}: its default is None; {_TYPES}.")
        default = None if parameter.default is parameter.empty else parameter.default
        read = _read_parameter(name, hints.get(argument, type(default)), default, label)
        yield read if argument == name else read.model_copy(update={"argument": argument})


def _read_parameter(name: str, hint: Any, default: Any, label: str) -> ParameterRecord:
    about = Parameter()
    if get_origin(hint) is Annotated:
        hint, *extras = get_args(hint)
        declared = [extra for extra in extras if isinstance(extra, Parameter)]
        if len(declared) > 1 or Parameter in extras:
            raise UserError(f"{label}: it takes one Parameter(...), with its parentheses.")
        about = declared[0] if declared else about
    kind, choices = _kind(hint, label)
    if kind == "float" and isinstance(default, int) and not isinstance(default, bool):
        default = float(default)
    if default is not None and not _has_type(default, kind):
        raise UserError(f"{label}: its default {default!r} is no {TYPES[kind].__name__}.")
    if not all(is_text(value) for value in (default, *choices) if isinstance(value, str)):
        raise UserError(f"{label}: its texts can't be written in UTF-8.")
    if kind == "int" and not all(abs(value) < 2**63 for value in (default or 0, *choices)):
        raise UserError(f"{label}: whole numbers are below 2**63.")
    bounds = (about.at_least, about.above, about.at_most, about.below)
    if (choices or kind in ("bool", "text")) and any(bound is not None for bound in bounds):
        raise UserError(f"{label}: only numbers have bounds.")
    try:
        return ParameterRecord(name=name, kind=kind, choices=choices, default=default, about=about)
    except (ValueError, TypeError) as error:
        raise UserError(f"{label}: {error}.") from error


def _kind(hint: Any, label: str) -> tuple[Literal["int", "float", "bool", "text"], tuple[Any, ...]]:
    choices = get_args(hint) if get_origin(hint) is Literal else ()
    types_of_values = {type(choice) for choice in choices} or {hint}
    for kind, accepted in TYPES.items():
        if types_of_values == {accepted} and (not choices or accepted in (int, str)):
            return kind, choices  # type: ignore[return-value]
    if hint is type(None):
        raise UserError(f"{label}: it has neither a type nor a default; {_TYPES}.")
    shown = hint if choices else getattr(hint, "__name__", None) or hint
    raise UserError(f"{label}: its type is {shown}; {_TYPES}.")


def columns_written(function: Callable[..., Any]) -> set[str]:
    """Return the names of columns that a function's text returns or yields as a dict.

    Those of `return {"loss": ...}` and `yield dict(loss=...)` are seen before it is called, and
    others only in what it returns. A `step` in a yielded row is its number, and no column.
    """
    columns = set[str]()
    with contextlib.suppress(OSError, TypeError, SyntaxError, ValueError):  # it may have no text
        [definition] = ast.parse(textwrap.dedent(inspect.getsource(_called(function)))).body
        for node in _own_nodes(definition):
            if isinstance(node, ast.Return):
                columns |= _keys(node.value)
            elif isinstance(node, ast.Yield):
                columns |= _keys(node.value) - {"step"}
    return columns


def _own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    for part in ast.iter_child_nodes(node):
        if not isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            yield part
            yield from _own_nodes(part)


def _keys(row: ast.expr | None) -> set[str]:
    if isinstance(row, ast.Dict):
        constants = [key.value for key in row.keys if isinstance(key, ast.Constant)]
        return {name for name in constants if isinstance(name, str)}
    if isinstance(row, ast.Call) and isinstance(row.func, ast.Name) and row.func.id == "dict":
        return {keyword.arg for keyword in row.keywords if keyword.arg}
    return set()


def _has_type(default: Any, kind: str) -> bool:
    if isinstance(default, bool):
        return kind == "bool"
    return isinstance(default, TYPES[kind])
