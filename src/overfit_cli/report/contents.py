"""Contents of a report, as plain data for its templates: papers, their studies, claims and runs.

A paper is a dictionary with its studies; each of these has its judged claims, and its runs in the
order of the paper's figures, then of claims.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Sequence
from typing import Any, TypeAlias

import pandas as pd

from overfit_cli.core.cell import TRACEBACK, Paper
from overfit_cli.core.cells import Cells
from overfit_cli.core.claim import KINDS, VERDICTS, Claim, Kind, Verdict
from overfit_cli.core.errors import Alike, count_alike, tracebacks_by_kind
from overfit_cli.core.parameters import describe
from overfit_cli.core.registry import find_study
from overfit_cli.core.text import command_words, duration, natural_key, shell_line, visible
from overfit_cli.figures.labels import (
    cells_in_words,
    fixed_parameters,
    settings_in_words,
    stand_ins,
    typeset,
)
from overfit_cli.report.judge import Judged
from overfit_cli.report.runs import JudgedRun
from overfit_cli.report.words import sentences
from overfit_cli.sweeps.manifest import Manifest, Run, short_commit
from overfit_cli.sweeps.presets import PROFILES, find_preset, presets_run_into

Entry: TypeAlias = dict[str, Any]
"""A paper, a study or a run of a report, with what its templates name."""


def contents(judged: Sequence[Judged], runs: Sequence[JudgedRun]) -> list[Entry]:
    """Return the papers of a report, with every claim and every run; those without one are last."""
    studies = {run.study.name: run.study for run in runs}
    studies |= {each.study: find_study(each.study) for each in judged if each.study not in studies}
    entries = _run_entries(judged, runs)
    papers = dict[Paper | None, list[Entry]]()
    for name, study in sorted(studies.items()):
        own = [claim for claim in judged if claim.study == name]
        of_study = [run for run in entries if run["study"].name == name]
        about = list(dict.fromkeys(text for run in of_study for text in run["stand_ins"]))
        entry = {"study": study, "judged": own, "runs": of_study, "stand_ins": about}
        papers.setdefault(study.paper, []).append(entry)
    return [
        {
            "key": paper.key if paper else "own",
            "cited": str(paper) if paper else "Other studies",
            "paper": paper,
            "studies": of_paper,
            "judged": (every := [claim for study in of_paper for claim in study["judged"]]),
            "counts": count_kinds(every),
        }
        for paper, of_paper in sorted(papers.items(), key=lambda entry: entry[0] is None)
    ]


def count_verdicts(judged: Sequence[Judged]) -> dict[Verdict, int]:
    """Count claims by verdict, at the level of all together."""
    counts = Counter(claim.headline for claim in judged)
    return {verdict: counts[verdict] for verdict in VERDICTS}


def count_kinds(judged: Sequence[Judged]) -> dict[Kind, dict[Verdict, int]]:
    """Count claims by kind and verdict; kinds without a claim are left out."""
    of_kinds = {kind: [claim for claim in judged if claim.claim.kind == kind] for kind in KINDS}
    return {kind: count_verdicts(claims) for kind, claims in of_kinds.items() if claims}


def findings(paper: Entry) -> list[Entry]:
    """Return the findings on a paper whose verdicts are as they say, none after selection.

    Each has its texts, with claims in between whose numbers stand there, and further claims.
    """
    judged = {claim.claim.name: claim for claim in paper["judged"]}
    shown = []
    for finding in paper["paper"].findings if paper["paper"] else ():
        claims = {name: judged[name] for name in finding.verdicts if name in judged}
        selected = any(claim.decided_after_selection for claim in claims.values())
        verdicts = {name: each.headline for name, each in claims.items()}
        if verdicts == finding.verdicts and not selected:
            texts = re.split(r"\{([\w.-]+)\}", finding.text)
            parts = [judged[text] if index % 2 else text for index, text in enumerate(texts)]
            others = [claim for name, claim in claims.items() if name not in texts[1::2]]
            is_ours = all(each.claim.kind == "ours" for each in claims.values())
            shown.append({"parts": parts, "others": others, "is_ours": is_ours})
    return shown


def repetition(claim: Claim) -> Entry | None:
    """Return the command that measures a claim again, its time and needs; None without a preset."""
    preset = find_preset(claim.preset) if claim.preset else None
    if preset is None:
        return None
    profile = preset.profile(claim.profile)
    size = None if claim.profile == PROFILES[0] else claim.profile
    seconds = 60 * (profile.minutes or 0)
    return {
        "preset": preset.name,
        "title": preset.title,
        "command": shell_line(command_words("reproduce", preset.name, profile=size)),
        "minutes": profile.minutes,
        "needs": profile.needs,
        "time": f"about {duration(seconds).removesuffix(' 00 s')}" if seconds else "",
    }


# Runs


def _run_entries(judged: Sequence[Judged], runs: Sequence[JudgedRun]) -> list[Entry]:
    deciding = {claim.directory for claim in judged}
    names = Counter(run.directory.path.resolve().name for run in runs)
    entries = list[Entry]()
    for run in runs:
        path = run.directory.path
        name = path.resolve().name
        named = {"path": path, "name": name if names[name] == 1 else str(path)}
        which = {"figure": reproduced_figure(name), "decides": path in deciding}
        entries.append({**run_facts(run.data, run.manifest), "run": run, **named, **which})
    return sorted(entries, key=_place_of_run)


def _place_of_run(run: Entry) -> tuple[object, ...]:
    """Runs that reproduce a figure of the paper come first, then those that decide a claim."""
    rank = 0 if run["figure"] else 1 if run["decides"] else 2
    return rank, natural_key(run["figure"]), run["path"].resolve().name, str(run["path"])


def reproduced_figure(name: str) -> str:
    """Return the paper's first figure that a run directory of this name reproduces, if any."""
    figures = (preset.reproduces for preset in presets_run_into(name))
    return min(filter(None, figures), key=natural_key, default="")


MOST_REASONS = 3
_PACKAGES = ("overfit-cli", "torch", "numpy")


def run_facts(data: Cells, manifest: Manifest) -> Entry:
    """Return the facts of a run: its cells, settings and versions, as numbers and in words."""
    sweeps, described = manifest.runs, describe(data.study.parameters)
    failed = data.trained[data.trained["status"] == "failed"]
    kinds = kinds_of_failures(failed)
    axes = {
        name: list(values)
        for name, values in data.values.items()
        if len(values) > 1 and name in described
    }
    return {
        "study": data.study,
        "cells": typeset(cells_in_words(data)),
        "settings": typeset(settings_in_words(data)),
        "failures": " ".join(
            sentences("failures.txt", kinds=kinds[:MOST_REASONS], more=len(kinds[MOST_REASONS:]))
        ),
        "tracebacks": [kind.traceback for kind in kinds[:MOST_REASONS] if kind.traceback],
        "provenance": _provenance(sweeps[-1]) if sweeps else "",
        "commands": list(dict.fromkeys(shlex.join(run.command) for run in sweeps if run.command)),
        "done": int((data.trained["status"] == "done").sum()),
        "reasons": _count_reasons(failed),
        "seeds": sorted(data.trained["seed"].unique().tolist()),
        "axes": axes,
        "parameters": fixed_parameters(data),
        "sweeps": sweeps,
        "stand_ins": stand_ins(data),
    }


def kinds_of_failures(failed: pd.DataFrame) -> list[Alike]:
    """Return the kinds of failures, the most frequent first; tracebacks as rows have them."""
    rows = []
    if TRACEBACK in failed:
        raised = failed[failed[TRACEBACK].notna()]
        rows = [*zip(raised["reason"], raised[TRACEBACK], strict=True)]
    return count_alike(_count_reasons(failed), tracebacks_by_kind(rows))


def _count_reasons(failed: pd.DataFrame) -> dict[str, int]:
    return dict(Counter(failed["reason"].astype(str)).most_common())


def _provenance(last: Run) -> str:
    parts = [f"{name} {last.packages[name]}" for name in _PACKAGES if last.packages.get(name)]
    parts += [f"commit {short_commit(last.commit, 10)}"] if last.commit else []
    parts += [f"Python {last.python}" if last.python else "", last.platform]
    date = f"{last.started[:10]}: " if last.started else ""
    return f"{date}{', '.join(visible(part) for part in parts if part)}."
