"""The files of a report: the page, Markdown and JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from overfit_cli.core.claim import KINDS, VERDICTS, Measurement
from overfit_cli.core.errors import BadValue
from overfit_cli.core.files import error_text, make_folder, write_whole
from overfit_cli.core.parameters import Value
from overfit_cli.core.text import escape_markdown, visible
from overfit_cli.report.contents import (
    COUNTED,
    ReportedPaper,
    ReportedRun,
    ReportedStudy,
    count_rows,
    describe_measurement,
    family_sentences,
    repetition,
)
from overfit_cli.report.judge import Judged, finite_or_null, interval_or_null
from overfit_cli.report.page import page


def write_report(
    papers: Sequence[ReportedPaper],
    folder: Path,
    conditions: Sequence[str] = (),
    unexpected: Mapping[str, str] | None = None,
    *,
    name: str,
) -> list[Path]:
    """Write a report as a page, in Markdown and in JSON; return the paths.

    Args:
        unexpected: the difference of a claim's verdict to the expected one in words, by
            `study/claim`; None without expected verdicts.
    """
    make_folder(folder, name)
    contents = {
        "index.html": page(papers, conditions),
        "report.md": markdown(papers, unexpected),
        "claims.json": claims_json(papers),
    }
    for file, text in contents.items():
        try:
            write_whole(folder / file, text.encode())
        except OSError as error:
            reason = f"{file}: {error_text(error)}."
            raise BadValue(name, str(folder), reason, exit_code=1) from error
    return [folder / file for file in contents]


SCHEMA = 6


def claims_json(papers: Sequence[ReportedPaper]) -> str:
    """Return every claim with its measurement, and every run with its parameters, as JSON."""
    content = {
        "schema": SCHEMA,
        "claims": [
            {"paper": paper.key, **_json_of_claim(claim)}
            for paper in papers
            for claim in paper.judged
        ],
        "runs": [
            _json_of_run(study, run)
            for paper in papers
            for study in paper.studies
            for run in study.runs
        ],
    }
    return json.dumps(content, indent=2, allow_nan=False) + "\n"


def judged_json(judged: Sequence[Judged]) -> str:
    """Return claims with their measurements as JSON, as `claims_json` does."""
    content = {"schema": SCHEMA, "claims": [_json_of_claim(claim) for claim in judged]}
    return json.dumps(content, indent=2, allow_nan=False) + "\n"


def _json_of_claim(judged: Judged) -> dict[str, Any]:
    repeat = repetition(judged.claim)
    return {
        "study": judged.study,
        "claim": judged.claim.name,
        "kind": judged.claim.kind,
        "statement": judged.claim.statement,
        "hypotheses": judged.claim.hypotheses or None,
        "source": judged.claim.source,
        "holds_where": judged.claim.holds_where,
        "figure": judged.claim.figure or None,
        "preset": judged.claim.preset or None,
        "verdict": judged.measurement.verdict,
        "contradicts": judged.contradiction or None,
        "value": finite_or_null(judged.measurement.value),
        "interval": interval_or_null(judged.measurement.interval),
        "margin": _margin_or_null(judged.measurement),
        "details": {
            name: finite_or_null(value) for name, value in judged.measurement.details.items()
        },
        "note": judged.measurement.note,
        "family": {"claims": judged.family, "verdict": judged.joint_verdict}
        if judged.family
        else None,
        "decided_after_selection": judged.decided_after_selection,
        "directory": str(judged.directory) if judged.directory else None,
        "again": repeat
        and {"command": repeat.command, "minutes": repeat.minutes, "needs": repeat.needs or None},
    }


def _margin_or_null(measurement: Measurement) -> dict[str, float | None] | None:
    if measurement.margin is None:
        return None
    least, most = measurement.margin
    return {"least": finite_or_null(least), "most": finite_or_null(most)}


def _json_of_run(study: ReportedStudy, run: ReportedRun) -> dict[str, Any]:
    facts = run.facts
    return {
        "directory": str(run.path),
        "study": study.study.name,
        "version": study.study.version,
        "cells": {"done": facts.done, "failed": sum(facts.reasons.values())},
        "reasons": dict(facts.reasons),
        "stand_ins": list(facts.stand_ins),
        "seeds": list(facts.seeds),
        "axes": {name: [_value(value) for value in values] for name, values in facts.axes.items()},
        "parameters": {name: _value(value) for name, value in facts.parameters.items()},
        "sweeps": [
            {
                "command": list(sweep.command),
                "started": sweep.started,
                "packages": dict(sweep.packages),
                "python": sweep.python,
                "platform": sweep.platform,
                "git_commit": sweep.commit or None,
            }
            for sweep in facts.sweeps
        ],
    }


def _value(value: Value) -> Value | None:
    return finite_or_null(value) if isinstance(value, float) else value


_HEADINGS = ("claim", "kind", "verdict", "all together", "measured", "holds where", "source")


def markdown(papers: Sequence[ReportedPaper], unexpected: Mapping[str, str] | None = None) -> str:
    """Return the verdicts by paper; for each study a table of claims, and its runs."""
    lines = ["# Claims and verdicts", "", *_unexpected_lines(unexpected or {})]
    lines += [*verdict_counts(papers), ""]
    for paper in papers:
        title = f": {paper.paper.title}" if paper.paper else ""
        lines += [f"## {escape_markdown(paper.cited + title)}", ""]
        for study in paper.studies:
            title = f"{study.study.name}: {study.study.title}"
            lines += [f"### {escape_markdown(title)}", "", *_stand_ins(study)]
            lines += _claims(study.judged)
            for run in study.runs:
                lines += _markdown_of_run(run)
    return "\n".join(lines)


def _unexpected_lines(problems: Mapping[str, str]) -> list[str]:
    lines = [f"- {escape_markdown(f'{claim}: {problem}')}." for claim, problem in problems.items()]
    return ["Unexpected verdicts:", "", *lines, ""] if lines else []


def verdict_counts(papers: Sequence[ReportedPaper]) -> list[str]:
    """Return the lines of a table: the claims of each paper and kind with each verdict."""
    return [
        _row(["paper", "kind", *VERDICTS]),
        _row(["---", "---", *("--:" for _ in VERDICTS)]),
        *(
            _row([escape_markdown(cited), kind, *(str(counts[name] or "") for name in VERDICTS)])
            for cited, kind, counts in count_rows(papers)
        ),
        "",
        *(f"- {kind}: {meaning}." for kind, meaning in KINDS.items()),
        "",
        COUNTED,
    ]


def _stand_ins(study: ReportedStudy) -> list[str]:
    return [escape_markdown(" ".join(study.stand_ins)), ""] if study.stand_ins else []


def _claims(judged: Sequence[Judged]) -> Iterator[str]:
    if not judged:
        return
    yield from (_row(_HEADINGS), _row(["---"] * len(_HEADINGS)))
    yield from (_row(_table_cells(claim)) for claim in judged)
    yield from ("", *(escape_markdown(sentence) for sentence in family_sentences(judged)), "")
    yield from (_details(claim) for claim in judged)
    yield ""


def _markdown_of_run(run: ReportedRun) -> Iterator[str]:
    facts = run.facts
    yield from (f"#### {escape_markdown(str(run.path))}", "")
    for sentence in (facts.cells, facts.settings, facts.failures, facts.provenance):
        if sentence:
            yield f"- {escape_markdown(sentence)}"
    yield from (f"- {_code(command)}" for command in facts.commands)
    yield ""
    for text in facts.tracebacks:
        yield from (f"    {line}" for line in text.splitlines())  # indented is code
        yield ""


def _code(text: str) -> str:
    return escape_markdown(text) if set(text) & set("`<&[") else f"`{visible(text)}`"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _table_cells(judged: Judged) -> list[str]:
    selected = ", decided after selection" if judged.decided_after_selection else ""
    columns = (
        judged.claim.kind,
        judged.measurement.verdict,
        f"{judged.joint_verdict or '–'}{selected}",
        judged.measurement.number,
        judged.claim.holds_where,
        judged.claim.source,
    )
    statement = f"**{escape_markdown(judged.name)}**: {escape_markdown(judged.claim.statement)}"
    return [statement, *(escape_markdown(text) for text in columns)]


def _details(judged: Judged) -> str:
    hypotheses = f"Hypotheses: {judged.claim.hypotheses}." if judged.claim.hypotheses else ""
    first = judged.contradiction or hypotheses  # what contradicts a paper names its hypotheses
    parts = [escape_markdown(first)] if first else []
    parts += [escape_markdown(describe_measurement(judged.measurement))]
    parts += [f"(from {escape_markdown(str(judged.directory))})"] if judged.directory else []
    if repeat := repetition(judged.claim):
        takes = f", {repeat.time} on two cores" if repeat.time else ""
        needs = f"; it needs {escape_markdown(repeat.needs)}" if repeat.needs else ""
        parts.append(f"Again: `{repeat.command}`{takes}{needs}.")
    return f"- **{escape_markdown(judged.name)}**: {' '.join(parts)}"
