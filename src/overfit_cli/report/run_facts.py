"""Facts about a run directory that stand behind its verdicts: cells, settings, commands."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from overfit_cli.figure import FigureData
from overfit_cli.figures.caption import cells_in_words, settings_in_words
from overfit_cli.figures.style import typeset
from overfit_cli.plain_text import visible
from overfit_cli.sweeps.manifest import Manifest

_PACKAGES = ("overfit-cli", "torch", "numpy")
_MOST_REASONS = 3


@dataclass(frozen=True)
class RunFacts:
    """What a reader must know of a run, in words.

    Attributes:
        cells: how many are done and failed, their seeds and axes.
        settings: the parameters that have one value.
        failures: why cells failed; empty where none did.
        made: when, with which versions, on what.
        commands: those that made the cells; empty where they were made from Python.
    """

    cells: str
    settings: str
    failures: str
    made: str
    commands: Sequence[str]


def facts_of(data: FigureData, manifest: Manifest | None) -> RunFacts:
    """Return what is known of a run, from its cells and its manifest."""
    runs = manifest.runs if manifest else ()
    typed = dict.fromkeys(shlex.join(run.command) for run in runs if run.command)
    return RunFacts(
        cells=typeset(cells_in_words(data)),
        settings=typeset(settings_in_words(data)),
        failures=_failures(data),
        made=_made(manifest),
        commands=list(typed),
    )


def _failures(data: FigureData) -> str:
    reasons = Counter(data.cells.loc[data.cells["status"] == "failed", "reason"].astype(str))
    if not reasons:
        return ""
    told = [f"{count} {visible(reason)}" for reason, count in reasons.most_common(_MOST_REASONS)]
    others = len(reasons) - len(told)
    return f"Failed cells: {', '.join(told)}{f' and {others} other reasons' if others else ''}."


def _made(manifest: Manifest | None) -> str:
    """When a run was made, and with what: the last one where there were several."""
    if manifest is None or not manifest.runs:
        return ""
    last = manifest.runs[-1]
    versions = [
        f"{name} {version}" for name in _PACKAGES if (version := last.packages.get(name, ""))
    ]
    commit = [f"commit {last.git_commit[:10]}"] if last.git_commit else []
    what = [*versions, *commit, f"Python {last.python}" if last.python else "", last.platform]
    when = f"{last.started[:10]}: " if last.started else ""
    return f"{when}{', '.join(visible(one) for one in what if one)}."
