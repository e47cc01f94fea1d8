"""Contents of a report, as plain data for its templates: papers, their studies, claims and runs.

A paper is a dictionary with its studies; each of these has its judged claims, and its runs in the
order of the paper's figures, then of claims. They are written to `claims.json`, which is read
again, and with which, or with a file of expected verdicts, CI compares a report.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import pandas as pd
from pydantic import AliasChoices, AliasPath, BaseModel, Field, TypeAdapter, ValidationError

from overfit_cli.claims.stated import Measure
from overfit_cli.core import errors, files, text
from overfit_cli.core.cell import TRACEBACK, Paper
from overfit_cli.core.cells import Cells
from overfit_cli.core.claim import KINDS, Claim, Kind, Verdict
from overfit_cli.core.registry import find_study
from overfit_cli.figures import labels
from overfit_cli.report import words
from overfit_cli.report.judge import Judged
from overfit_cli.report.runs import JudgedRun
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
        about = list(dict.fromkeys(one for run in of_study for one in run["stand_ins"]))
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


def count_kinds(judged: Sequence[Judged]) -> dict[Kind, dict[Verdict, int]]:
    """Count claims by kind and verdict; kinds without a claim are left out."""
    of_kinds = {kind: [one.headline for one in judged if one.claim.kind == kind] for kind in KINDS}
    return {kind: words.count_verdicts(said) for kind, said in of_kinds.items() if said}


def findings(paper: Entry) -> list[Entry]:
    """Return the findings on a paper whose verdicts are as they say.

    Each has its texts, with claims in between whose numbers stand there, and further claims.
    """
    judged = {claim.claim.name: claim for claim in paper["judged"]}
    verdicts = {name: claim.headline for name, claim in judged.items()}
    shown = []
    for finding in paper["paper"].findings if paper["paper"] else ():
        if finding.stands(verdicts):
            claims = {name: judged[name] for name in finding.verdicts}
            texts = re.split(r"\{([\w.-]+)\}", finding.text)
            parts = [judged[one] if index % 2 else one for index, one in enumerate(texts)]
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
        "command": text.shell_line(text.command_words("reproduce", preset.name, profile=size)),
        "minutes": profile.minutes,
        "needs": profile.needs,
        "time": f"about {text.duration(seconds).removesuffix(' 00 s')}" if seconds else "",
    }


# Runs


def _run_entries(judged: Sequence[Judged], runs: Sequence[JudgedRun]) -> list[Entry]:
    """The runs: first those that reproduce a figure, then those that decide a claim."""
    deciding = {claim.directory for claim in judged}
    names = Counter(run.directory.path.resolve().name for run in runs)
    entries = list[Entry]()
    for run in runs:
        path, name = run.directory.path, run.directory.path.resolve().name
        presets, called = presets_run_into(name), name if names[name] == 1 else str(path)
        reproduced = [preset.reproduces for preset in presets if preset.reproduces]
        here = [each for each in judged if each.directory == path and not run.study.paper]
        entry = {
            "run": run,
            "path": path,
            "name": called,
            "presets": presets,
            "figure": min(reproduced, key=text.natural_key, default=""),
            "decides": path in deciding,
            "claims": [each for each in here if isinstance(each.claim.measure, Measure)],
        }
        entries.append(run_facts(run.data, run.manifest) | entry)

    def rank(run: Entry) -> tuple[object, ...]:
        order = 0 if run["figure"] else 1 if run["decides"] else 2
        return order, text.natural_key(run["figure"]), run["path"].resolve().name, str(run["path"])

    return sorted(entries, key=rank)


MOST_REASONS = 3
_PACKAGES = ("overfit-cli", "torch", "numpy")


def run_facts(data: Cells, manifest: Manifest) -> Entry:
    """Return the facts of a run: its cells, settings and versions, as numbers and in words."""
    sweeps, failed = manifest.runs, data.trained[data.trained["status"] == "failed"]
    kinds = kinds_of_failures(failed)
    failures = {"kinds": kinds[:MOST_REASONS], "more": len(kinds[MOST_REASONS:])}
    return {
        "study": data.study,
        "cells": labels.typeset(labels.cells_in_words(data)),
        "settings": labels.typeset(labels.settings_in_words(data)),
        "failures": " ".join(words.sentences("failures.txt", **failures)),
        "tracebacks": [kind.traceback for kind in kinds[:MOST_REASONS] if kind.traceback],
        "provenance": _provenance(sweeps[-1]) if sweeps else "",
        "commands": list(dict.fromkeys(shlex.join(run.command) for run in sweeps if run.command)),
        "done": int((data.trained["status"] == "done").sum()),
        "reasons": _count_reasons(failed),
        "seeds": sorted(data.trained["seed"].unique().tolist()),
        "axes": {name: [*values] for name, values in data.values.items() if len(values) > 1},
        "parameters": labels.fixed_parameters(data),
        "sweeps": sweeps,
        "stand_ins": labels.stand_ins(data),
    }


def kinds_of_failures(failed: pd.DataFrame) -> list[errors.Alike]:
    """Return the kinds of failures, the most frequent first; tracebacks as rows have them."""
    rows = failed.reindex(columns=["reason", TRACEBACK]).dropna().itertuples(index=False, name=None)
    return errors.count_alike(_count_reasons(failed), errors.tracebacks_by_kind(rows))


def _count_reasons(failed: pd.DataFrame) -> dict[str, int]:
    return dict(Counter(failed["reason"].astype(str)).most_common())


def _provenance(last: Run) -> str:
    parts = [f"{name} {last.packages[name]}" for name in _PACKAGES if last.packages.get(name)]
    parts += [f"commit {short_commit(last.commit, 10)}"] if last.commit else []
    parts += [f"Python {last.python}" if last.python else "", last.platform]
    date = f"{last.started[:10]}: " if last.started else ""
    return f"{date}{', '.join(text.visible(part) for part in parts if part)}."


# Files of verdicts

CLAIMS_FILE, SCHEMA = "claims.json", 7
"""The file of a report that programs read, and the number of its form."""

CLOSE = 0.8
"""The least similarity of the addresses of an unknown claim and the nearest one."""

Expected = Mapping[str, Sequence[Verdict]]
"""The expected verdicts of each claim, by `study/claim`: usually one."""

_AGAIN = ("command", "minutes", "needs")
_Several = Annotated[list[Verdict], Field(min_length=1)]
_STATED = TypeAdapter(dict[str, dict[str, Verdict | _Several]])
"""The expected verdicts of each claim, by study and claim, as TOML has them."""


def claims_json(papers: Sequence[Entry]) -> str:
    """Return every claim with its measurement, and every run with its parameters, as JSON."""
    claims = list[Entry]()
    for paper in papers:
        claims += [{"paper": paper["key"], **_json_of_claim(claim)} for claim in paper["judged"]]
    studies = [study for paper in papers for study in paper["studies"]]
    runs = [_json_of_run(run) for study in studies for run in study["runs"]]
    return files.json_text({"schema": SCHEMA, "claims": claims, "runs": runs})


def judged_json(judged: Sequence[Judged]) -> str:
    """Return claims with their measurements as JSON, as `claims_json` does."""
    return files.json_text({"schema": SCHEMA, "claims": [*map(_json_of_claim, judged)]})


def _json_of_claim(judged: Judged) -> Entry:
    claim, measurement, repeat = judged.claim, judged.measurement, repetition(judged.claim)
    interval, margin = measurement.interval, measurement.margin
    return {
        "study": judged.study,
        "claim": claim.name,
        "kind": claim.kind,
        "statement": claim.statement,
        "hypotheses": claim.hypotheses or None,
        "source": claim.source,
        "holds_where": claim.holds_where,
        "figure": claim.figure or None,
        "preset": claim.preset or None,
        "verdict": judged.headline,
        "by_itself": measurement.verdict,
        "contradicts": judged.contradiction or None,
        "value": measurement.value,
        "interval": interval and asdict(interval),
        "margin": margin and dict(zip(("least", "most"), margin, strict=True)),
        "details": dict(measurement.details),
        "note": measurement.note,
        "family": {"claims": judged.family, "verdict": judged.headline} if judged.family else None,
        "directory": str(judged.directory) if judged.directory else None,
        "again": repeat and {name: repeat[name] or None for name in _AGAIN},
    }


def _json_of_run(run: Entry) -> Entry:
    return {
        "directory": str(run["path"]),
        "study": run["study"].name,
        "version": run["study"].version,
        "cells": {"done": run["done"], "failed": sum(run["reasons"].values())},
        **{name: run[name] for name in ("reasons", "stand_ins", "seeds", "axes", "parameters")},
        "sweeps": [
            sweep.model_dump(include={"command", "started", "packages", "python", "platform"})
            | {"git_commit": sweep.commit or None}
            for sweep in run["sweeps"]
        ],
    }


_PLACES = AliasChoices(AliasPath("family", "verdict"), "verdict")


class _KeptVerdict(BaseModel):
    """The verdicts of a claim in a report that was written: all together, and by itself.

    Up to schema 6 the first stands in the claim's family, and the second may be missing.
    """

    study: str
    claim: str
    verdict: Annotated[Verdict, Field(validation_alias=_PLACES)]
    by_itself: Verdict | None = None


class _KeptReport(BaseModel):
    claims: list[_KeptVerdict]


@dataclass(frozen=True)
class VerdictCheck:
    """The differences between the verdicts of a report and the expected ones.

    Attributes:
        unexpected: the difference of a claim's verdict in words, by `study/claim`.
        unknown: the claims of the file that no study has, with the nearest claim or an empty text.
        left_out: the number of claims of the report's studies that were not compared.
    """

    unexpected: Mapping[str, str]
    unknown: Mapping[str, str]
    left_out: int
    compared: int

    @property
    def is_fulfilled(self) -> bool:
        """Whether verdicts were compared, and all are as expected."""
        return self.compared > 0 and not self.unexpected and not self.unknown


def read_expected(paths: Sequence[Path], out: Path) -> Expected:
    """Read expected verdicts from files; a claim may have each verdict that one of them has.

    None may be the file that a report in the folder `out` overwrites. A file is a `claims.json`,
    which accepts a claim's verdict by itself too, for a report of fewer claims, or TOML with a
    table for each study, where a claim may have several verdicts.
    """
    expected = dict[str, list[Verdict]]()
    for path in paths:
        if path.resolve() == (out / CLAIMS_FILE).resolve():
            accepts = f"the report is written to {out}, over it; name a copy that lies elsewhere."
            raise errors.BadValue("expect", str(path), accepts)
        for address, verdict in _expected_in(path):
            accepted = expected.setdefault(address, [])
            accepted += [verdict] * (verdict not in accepted)
    return expected


def _expected_in(path: Path) -> list[tuple[str, Verdict]]:
    """The claims of one file, by `study/claim`, each with an expected verdict."""
    try:
        if path.suffix == ".json":
            kept = _KeptReport.model_validate_json(files.read_bounded(path)).claims
            pairs = [(each, (each.verdict, each.by_itself or each.verdict)) for each in kept]
            return [(f"{each.study}/{each.claim}", one) for each, both in pairs for one in both]
        stated = _STATED.validate_python(files.read_toml(path, "expect"))
        return [
            (f"{study}/{claim}", verdict)
            for study, claims in stated.items()
            for claim, verdicts in claims.items()
            for verdict in ([verdicts] if isinstance(verdicts, str) else verdicts)
        ]
    except OSError as error:
        accepts = f"it can't be read ({files.error_text(error)})."
    except ValidationError as error:
        accepts = (
            "it takes a claims.json of `overfit report`, or a table for each study, [STUDY], with "
            f"lines CLAIM = 'VERDICT' ({errors.first_problem(error)})."
        )
    raise errors.BadValue("expect", str(path), accepts)


def check_verdicts(
    judged: Sequence[Judged], expected: Expected, reported: Sequence[Judged] | None = None
) -> VerdictCheck:
    """Compare verdicts, each at the level of all together, with the expected ones."""
    compared = judged if reported is None else reported
    here, known = {claim.study for claim in judged}, {claim.address for claim in judged}
    unexpected = dict[str, str]()
    for claim in compared:
        accepted = expected.get(claim.address)
        if accepted is None:
            unexpected[claim.address] = f"{claim.headline}, and no verdict is expected"
        elif claim.headline not in accepted:
            unexpected[claim.address] = f"{claim.headline}, expected {' or '.join(accepted)}"
    unknown = {
        address: text.most_alike(address, known, cutoff=CLOSE)
        for address in sorted(expected.keys() - known)
        if reported is None or address.partition("/")[0] in here
    }
    studies = {claim.study for claim in compared}
    left_out = sum(claim.study in studies for claim in judged) - len(compared)
    return VerdictCheck(unexpected, unknown, left_out, len(compared))
