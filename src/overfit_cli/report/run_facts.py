"""Facts about a run directory that stand behind its verdicts: cells, settings, commands."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from overfit_cli.figure import FigureData
from overfit_cli.figures.axis import parameter_values
from overfit_cli.figures.caption import cells_in_words, fixed_parameters, settings_in_words
from overfit_cli.figures.style import typeset
from overfit_cli.parameters import describe
from overfit_cli.plain_text import visible
from overfit_cli.sweeps.manifest import Manifest, Run

_PACKAGES = ("overfit-cli", "torch", "numpy")
_MOST_REASONS = 3


@dataclass(frozen=True)
class RunFacts:
    """What a reader must know of a run, in words, and as data for programs.

    Attributes:
        cells: how many are done and failed, their seeds and axes.
        settings: the parameters that have one value.
        failures: why cells failed; empty where none did.
        made: when, with which versions, on what.
        commands: those that made the cells; empty where they were made from Python.
        done: how many cells are done.
        reasons: how many cells failed, by reason.
        seeds: those of its cells.
        axes: the parameters that take several values, with them.
        parameters: those that have one value, with it.
        sweeps: what was run into the directory, the first one first.
    """

    cells: str
    settings: str
    failures: str
    made: str
    commands: Sequence[str]
    done: int
    reasons: Mapping[str, int]
    seeds: Sequence[int]
    axes: Mapping[str, Sequence[Any]]
    parameters: Mapping[str, Any]
    sweeps: Sequence[Run]


def facts_of(data: FigureData, manifest: Manifest | None) -> RunFacts:
    """Return what is known of a run, from its cells and its manifest."""
    sweeps = manifest.runs if manifest else ()
    typed = dict.fromkeys(shlex.join(run.command) for run in sweeps if run.command)
    failed = data.cells.loc[data.cells["status"] == "failed", "reason"].astype(str)
    reasons = dict(Counter(failed).most_common())
    described = describe(data.study.parameters)
    return RunFacts(
        cells=typeset(cells_in_words(data)),
        settings=typeset(settings_in_words(data)),
        failures=_failures(reasons),
        made=_made(sweeps),
        commands=list(typed),
        done=int((data.cells["status"] == "done").sum()),
        reasons=reasons,
        seeds=sorted(data.cells["seed"].unique().tolist()),
        axes={
            name: list(values)
            for name, values in parameter_values(data).items()
            if len(values) > 1 and name in described
        },
        parameters=fixed_parameters(data),
        sweeps=sweeps,
    )


def _failures(reasons: Mapping[str, int]) -> str:
    if not reasons:
        return ""
    told = [f"{count} {visible(why)}" for why, count in list(reasons.items())[:_MOST_REASONS]]
    others = len(reasons) - len(told)
    return f"Failed cells: {', '.join(told)}{f' and {others} other reasons' if others else ''}."


def _made(sweeps: Sequence[Run]) -> str:
    """When a run was made, and with what: the last one where there were several."""
    if not sweeps:
        return ""
    last = sweeps[-1]
    versions = [
        f"{name} {version}" for name in _PACKAGES if (version := last.packages.get(name, ""))
    ]
    commit = [f"commit {last.git_commit[:10]}"] if last.git_commit else []
    what = [*versions, *commit, f"Python {last.python}" if last.python else "", last.platform]
    when = f"{last.started[:10]}: " if last.started else ""
    return f"{when}{', '.join(visible(one) for one in what if one)}."
