"""Experiments of the theory of benign overfitting in attention, run and judged."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from overfit_cli.api import compare, draw, judge, load, sweep
    from overfit_cli.claim import Claim, Measurement
    from overfit_cli.errors import UserError
    from overfit_cli.functions.experiment import experiment
    from overfit_cli.parameters import Parameter
    from overfit_cli.study import Column, Study

__version__ = "0.1.0"

__all__ = [
    "Claim",
    "Column",
    "Measurement",
    "Parameter",
    "Study",
    "UserError",
    "__version__",
    "compare",
    "draw",
    "experiment",
    "judge",
    "load",
    "sweep",
]

_PLACES = {
    **dict.fromkeys(("compare", "draw", "judge", "load", "sweep"), "api"),
    **dict.fromkeys(("Claim", "Measurement"), "claim"),
    **dict.fromkeys(("Column", "Study"), "study"),
    "Parameter": "parameters",
    "UserError": "errors",
    "experiment": "functions.experiment",
}
"""Where each public name lives: it is imported when it is first asked for, so that the command
line starts quickly."""


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
