"""Grids and numbers given from Python, held to what the command line takes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np

from overfit_cli.errors import UserError
from overfit_cli.parameter_values import unknown_parameter
from overfit_cli.parameters import ParameterInfo, Value, describe, parameter_named
from overfit_cli.study import AnyStudy
from overfit_cli.sweeps.grid import Grid, check_seeds, make_grid
from overfit_cli.sweeps.ranges import MOST_VALUES, parse_range, parse_seeds, rounded


def grid_of_values(
    study: AnyStudy,
    given: Mapping[str, Any],
    seeds: Any,
    texts: Mapping[str, str],
    places: Mapping[str, str],
) -> Grid:
    """Return a grid of what Python gave.

    Args:
        study: the study.
        given: by parameter, its name or its symbol, one value, several, or a range as a text.
        seeds: how many or which, as a number, several, or a text.
        texts: the ranges of a preset, which hold where nothing is given.
        places: where the preset sets them, for messages.

    Raises:
        UserError: naming what its parameter doesn't take.
    """
    known = describe(study.parameters)
    values = dict(make_grid(study, texts, (0,), places).values)
    spelled: dict[str, str] = {}
    for written, taken in given.items():
        name = parameter_named(study.parameters, written)
        if name not in known:
            raise unknown_parameter(name, known, name)
        if name in spelled:
            raise UserError(f"{spelled[name]} and {written}: {name} is given twice; give it once.")
        spelled[name] = written
        values[name] = _values(known[name], taken)
    chosen = _seeds(seeds)
    check_seeds(study, chosen, "seeds")
    ordered = {name: values[name] for name in known if name in values}
    return Grid(study, ordered, chosen, {**places, **spelled})


def whole(name: str, given: Any, at_least: int) -> int:
    """Return a whole number, of any library.

    Raises:
        UserError: if it is none, or too small.
    """
    if isinstance(given, bool) or not isinstance(given, Integral) or given < at_least:
        raise UserError(f"{name} {given!r}: it takes a whole number of at least {at_least}.")
    return int(given)


def number(name: str, given: Any, above: float = -math.inf) -> float:
    """Return a finite number, of any library.

    Raises:
        UserError: if it is none, or isn't above what it must be.
    """
    is_number = isinstance(given, Real) and not isinstance(given, bool)
    if not is_number or not math.isfinite(given) or given <= above:
        accepts = "a finite number" if above == -math.inf else f"a number above {above:g}"
        raise UserError(f"{name} {given!r}: it takes {accepts}.")
    return float(given)


def _values(info: ParameterInfo, taken: Any) -> tuple[Value, ...]:
    """The values of one parameter."""
    if isinstance(taken, str) and info.kind not in ("literal", "text"):
        return parse_range(info, taken, info.name)
    several = isinstance(taken, Iterable) and not isinstance(taken, str | bytes | Mapping)
    if not several or getattr(taken, "ndim", 1) == 0:
        return (_value(info, taken),)
    listed = list(itertools.islice(taken, MOST_VALUES + 1))
    if not listed:
        raise UserError(f"{info.name}: no value given; it takes {info.accepts}.")
    if len(listed) > MOST_VALUES:
        raise UserError(f"{info.name}: it takes up to {MOST_VALUES} values.")
    return tuple(dict.fromkeys(_value(info, one) for one in listed))


def _value(info: ParameterInfo, given: Any) -> Value:
    """A value of any library as Python's, named as the command line would."""
    of_numpy = isinstance(given, np.generic | np.ndarray) and given.ndim == 0
    plain = given.item() if of_numpy else given
    is_number = isinstance(plain, int | float) and not isinstance(plain, bool)
    if info.kind in ("int", "float"):
        fits = is_number
    else:
        fits = isinstance(plain, bool if info.kind == "bool" else str)
    if not fits:
        words = f"an array of {given.ndim} axes" if isinstance(given, np.ndarray) else repr(plain)
        raise UserError(f"{info.name} {words}: {info.name} takes {info.accepts}.")
    if info.kind == "float":
        return rounded(float(plain)) + 0.0
    if info.kind == "int" and abs(plain) >= 2**63:
        raise UserError(f"{info.name} {plain}: {info.name} takes {info.accepts} below 2**63.")
    value: Value = int(plain) if info.kind == "int" and plain == plain // 1 else plain
    return value


def _seeds(given: Any) -> tuple[int, ...]:
    """The seeds of a count, a list or a text."""
    if isinstance(given, str):
        return parse_seeds(given, "seeds")
    if isinstance(given, Iterable):
        chosen = tuple(dict.fromkeys(whole("seeds", seed, 0) for seed in given))
        if not chosen:
            raise UserError("seeds: none given; it takes how many, or a list of them.")
        return chosen
    return parse_seeds(str(whole("seeds", given, 1)), "seeds")
