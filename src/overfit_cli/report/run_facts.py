"""Facts of a run: cells, settings, failures, versions and commands, in words and as data."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from overfit_cli.core.cell import TRACEBACK
from overfit_cli.core.failures import Alike, count_alike, tracebacks_by_kind
from overfit_cli.core.parameters import describe
from overfit_cli.core.study import FigureData
from overfit_cli.core.text import plural, visible
from overfit_cli.figures.caption import (
    cells_in_words,
    fixed_parameters,
    settings_in_words,
    stand_ins,
)
from overfit_cli.figures.labels import parameter_values, typeset
from overfit_cli.sweeps.manifest import Manifest, Run
from overfit_cli.sweeps.provenance import provenance_in_words, short_commit

if TYPE_CHECKING:
    import pandas as pd

_PACKAGES = ("overfit-cli", "torch", "numpy")
_MOST_REASONS = 3


@dataclass(frozen=True)
class RunFacts:
    """The facts of a run, in words and as data for programs.

    Attributes:
        cells: the numbers of cells, their seeds, axes and sources, in words.
        failures: the reasons of failed cells, in words; empty without failures.
        tracebacks: of the most frequent kinds of failures, where exceptions were raised.
        provenance: the date, the versions and the platform, in words.
        stand_ins: what stands in for the paper's data, in words.
    """

    cells: str
    settings: str
    failures: str
    tracebacks: Sequence[str]
    provenance: str
    commands: Sequence[str]
    done: int
    reasons: Mapping[str, int]
    seeds: Sequence[int]
    axes: Mapping[str, Sequence[Any]]
    parameters: Mapping[str, Any]
    sweeps: Sequence[Run]
    stand_ins: Sequence[str]


def run_facts(data: FigureData, manifest: Manifest | None) -> RunFacts:
    """Return the facts of a run from its cells and its manifest."""
    sweeps = manifest.runs if manifest else ()
    typed = dict.fromkeys(shlex.join(run.command) for run in sweeps if run.command)
    failed = data.cells[data.cells["status"] == "failed"]
    kinds = kinds_of_failures(failed)
    described = describe(data.study.parameters)
    return RunFacts(
        cells=" ".join(
            [
                typeset(cells_in_words(data)),
                *provenance_in_words({"": data}),
                *stand_ins({"": data}),
            ]
        ),
        settings=typeset(settings_in_words(data)),
        failures=_failures(kinds),
        tracebacks=[kind.traceback for kind in kinds[:_MOST_REASONS] if kind.traceback],
        provenance=_provenance(sweeps),
        commands=list(typed),
        done=int((data.cells["status"] == "done").sum()),
        reasons=_count_reasons(failed),
        seeds=sorted(data.cells["seed"].unique().tolist()),
        axes={
            name: list(values)
            for name, values in parameter_values(data).items()
            if len(values) > 1 and name in described
        },
        parameters=fixed_parameters(data),
        sweeps=sweeps,
        stand_ins=stand_ins({"": data}),
    )


def kinds_of_failures(failed: pd.DataFrame) -> list[Alike]:
    """The kinds of failures of cells, the most frequent first; tracebacks as rows have them."""
    rows = []
    if TRACEBACK in failed:
        raised = failed[failed[TRACEBACK].notna()]
        rows = [*zip(raised["reason"], raised[TRACEBACK], strict=True)]
    return count_alike(_count_reasons(failed), tracebacks_by_kind(rows))


def _count_reasons(failed: pd.DataFrame) -> dict[str, int]:
    return dict(Counter(failed["reason"].astype(str)).most_common())


def _failures(kinds: Sequence[Alike]) -> str:
    if not kinds:
        return ""
    texts = []
    for kind in kinds[:_MOST_REASONS]:
        place = f" ({kind.place})" if kind.place else ""
        reason = f"{kind.words}{place}" if kind.varied else kind.example
        texts.append(f"{kind.count} {visible(reason)}")
    unnamed = len(kinds) - len(texts)
    others = f" and {plural(unnamed, 'other reason')}" if unnamed else ""
    return f"Failed cells: {', '.join(texts)}{others}."


def _provenance(sweeps: Sequence[Run]) -> str:
    if not sweeps:
        return ""
    last = sweeps[-1]
    versions = [
        f"{name} {version}" for name in _PACKAGES if (version := last.packages.get(name, ""))
    ]
    commit = [f"commit {short_commit(last.commit, 10)}"] if last.commit else []
    parts = [*versions, *commit, f"Python {last.python}" if last.python else "", last.platform]
    date = f"{last.started[:10]}: " if last.started else ""
    return f"{date}{', '.join(visible(part) for part in parts if part)}."
