"""Experiments of the theory of benign overfitting in attention, run and judged."""

from __future__ import annotations

# Nothing is imported here that takes time: Ctrl-C meanwhile would be a traceback.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from overfit_cli.api import compare, draw, judge, load, runs, sweep, train
    from overfit_cli.core.cell import Column
    from overfit_cli.core.claim import Claim, Measurement
    from overfit_cli.core.errors import UserError
    from overfit_cli.core.parameters import Parameter
    from overfit_cli.core.study import Study
    from overfit_cli.functions.experiment import experiment

    __version__: str

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
    "runs",
    "sweep",
    "train",
]

_MODULES = {
    **dict.fromkeys(("compare", "draw", "judge", "load", "runs", "sweep", "train"), "api"),
    **dict.fromkeys(("Claim", "Measurement"), "core.claim"),
    **dict.fromkeys(("Column", "Study"), "core.study"),
    "Parameter": "core.parameters",
    "UserError": "core.errors",
    "experiment": "functions.experiment",
}
"""The module of each public name, imported at its first use, so that commands start quickly."""


def __getattr__(name: str) -> object:
    import importlib
    import random

    if name == "__version__":
        return importlib.import_module(f"{__name__}.core.text").VERSION
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    drawn = random.getstate()  # what is imported may draw from it
    module = importlib.import_module(f"{__name__}.{_MODULES[name]}")
    random.setstate(drawn)
    return getattr(module, name)


def __dir__() -> list[str]:
    return sorted(__all__)
