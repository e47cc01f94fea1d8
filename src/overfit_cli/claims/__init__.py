"""Claims: how they are written in Python, and the rules that give verdicts.

`from overfit_cli import claims` has the functions of `python`: `claims.below("test_error", 0.05)`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from overfit_cli.claims.python import (
        above,
        below,
        boundary,
        falls,
        geometric_mean,
        mean,
        median,
        near,
        power,
        ratio,
        rises,
        share,
        together,
    )

__all__ = [
    "above",
    "below",
    "boundary",
    "falls",
    "geometric_mean",
    "mean",
    "median",
    "near",
    "power",
    "ratio",
    "rises",
    "share",
    "together",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.python"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
