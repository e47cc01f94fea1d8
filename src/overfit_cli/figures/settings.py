"""Settings of matplotlib's as JSON, for a figure's record; anybody may have edited that."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, cast

import matplotlib
from cycler import Cycler, cycler
from pydantic import JsonValue

from overfit_cli.errors import UserError, shortened

_CYCLE = "axes.prop_cycle"


def settings_as_json(settings: Mapping[str, Any]) -> dict[str, JsonValue]:
    """Return settings as JSON has them; a cycle is the lists of its properties."""
    return {name: _as_json(value) for name, value in settings.items()}


def _as_json(value: Any) -> JsonValue:
    if isinstance(value, Cycler):
        return {name: _as_json(values) for name, values in value.by_key().items()}
    if isinstance(value, list | tuple):
        return [_as_json(one) for one in value]
    if isinstance(value, Enum):
        return _as_json(value.value)
    return value if isinstance(value, bool | int | float | None) else str(value)


def settings_of_json(recorded: Mapping[str, JsonValue]) -> dict[str, Any]:
    """Return settings again, as `settings_as_json` gave them.

    Raises:
        UserError: if matplotlib doesn't take them, or would run code for them: it evaluates a cycle
            that is a text, and LaTeX can do more than set text.
    """
    if not isinstance(recorded.get(_CYCLE, {}), dict):
        raise UserError(f"its style has {_CYCLE} as a text, which some matplotlibs run as code.")
    try:
        settings = {name: _from_json(value) for name, value in recorded.items()}
        read = dict(matplotlib.RcParams(settings))
    except Exception as error:  # matplotlib expects texts, and trips over what else there may be
        said = shortened(str(error).strip())
        raise UserError(f"its style is none of matplotlib's: {said}.") from None
    if read.get("text.usetex"):
        raise UserError("its style has LaTeX set the text, which isn't run for a file's sake.")
    return {str(name): value for name, value in read.items()}


def _from_json(value: JsonValue) -> Any:
    return cycler(**cast(dict[str, list[Any]], value)) if isinstance(value, dict) else value
