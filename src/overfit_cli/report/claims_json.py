"""The report for programs: `claims.json`."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from overfit_cli.claim import Interval
from overfit_cli.parameters import Value
from overfit_cli.report.contents import ReportedPaper, ReportedRun, ReportedStudy, again
from overfit_cli.report.judged import Judged

SCHEMA = 4


def claims_json(papers: Sequence[ReportedPaper]) -> str:
    """Return every claim with its measurement, and every run with its parameters, as JSON."""
    content = {
        "schema": SCHEMA,
        "claims": [{"paper": paper.key, **_claim(one)} for paper in papers for one in paper.judged],
        "runs": [
            _run(study, run) for paper in papers for study in paper.studies for run in study.runs
        ],
    }
    return json.dumps(content, indent=2, allow_nan=False) + "\n"


def _claim(one: Judged) -> dict[str, Any]:
    repeat = again(one.claim)
    return {
        "study": one.study,
        "claim": one.claim.name,
        "statement": one.claim.statement,
        "source": one.claim.source,
        "holds_where": one.claim.holds_where,
        "figure": one.claim.figure or None,
        "preset": one.claim.preset or None,
        "verdict": one.measurement.verdict,
        "value": finite_or_null(one.measurement.value),
        "interval": interval_or_null(one.measurement.interval),
        "details": {name: finite_or_null(value) for name, value in one.measurement.details.items()},
        "note": one.measurement.note,
        "family": {"claims": one.family, "verdict": one.together} if one.family else None,
        "directory": str(one.directory) if one.directory else None,
        "again": repeat
        and {"command": repeat.command, "minutes": repeat.minutes, "needs": repeat.needs or None},
    }


def _run(study: ReportedStudy, run: ReportedRun) -> dict[str, Any]:
    facts = run.facts
    return {
        "directory": str(run.path),
        "study": study.study.name,
        "version": study.study.version,
        "cells": {"done": facts.done, "failed": sum(facts.reasons.values())},
        "reasons": dict(facts.reasons),
        "seeds": list(facts.seeds),
        "axes": {name: [_value(one) for one in values] for name, values in facts.axes.items()},
        "parameters": {name: _value(one) for name, one in facts.parameters.items()},
        "sweeps": [
            {
                "command": list(sweep.command),
                "started": sweep.started,
                "packages": dict(sweep.packages),
                "python": sweep.python,
                "platform": sweep.platform,
                "git_commit": sweep.git_commit,
            }
            for sweep in facts.sweeps
        ],
    }


def _value(value: Value) -> Value | None:
    """A parameter's value for JSON."""
    return finite_or_null(value) if isinstance(value, float) else value


def finite_or_null(value: float | None) -> float | None:
    """Return a number for JSON, which has no infinity: what isn't finite is null there."""
    return value if value is not None and math.isfinite(value) else None


def interval_or_null(found: Interval | None) -> dict[str, float | str | None] | None:
    """Return an interval for JSON; null where there is none."""
    if found is None:
        return None
    return {
        "low": finite_or_null(found.low),
        "high": finite_or_null(found.high),
        "kind": found.kind,
    }
