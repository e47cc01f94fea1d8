"""The files of a report: the page, Markdown, JSON, JUnit, and the verdicts as TOML."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from overfit_cli.core.claim import VERDICTS
from overfit_cli.core.files import make_folder, reason_of, write_whole
from overfit_cli.core.parameters import Value
from overfit_cli.core.text import BadValue, in_markdown, visible
from overfit_cli.report.contents import (
    ReportedPaper,
    ReportedRun,
    ReportedStudy,
    again,
    families,
    in_words,
    number_in_words,
)
from overfit_cli.report.judge import Judged, as_expected, finite_or_null, interval_or_null
from overfit_cli.report.page import page


def write_report(
    papers: Sequence[ReportedPaper],
    folder: Path,
    where: Sequence[str] = (),
    unexpected: Mapping[str, str] | None = None,
    *,
    name: str,
) -> list[Path]:
    """Write a report as a page, in Markdown, JSON and JUnit, with its verdicts; return the paths.

    Args:
        papers: what is reported.
        folder: where to write.
        where: the conditions that chose the cells.
        unexpected: what is wrong with the verdict of a claim, by `study/claim`, where they were
            held to expected ones.
        name: the argument that names the folder, for messages.

    Raises:
        UserError: if they can't be written.
    """
    make_folder(folder, name)
    judged = [claim for paper in papers for claim in paper.judged]
    contents = {
        "index.html": page(papers, where),
        "report.md": markdown(papers, unexpected),
        "claims.json": claims_json(papers),
        "junit.xml": junit(judged, unexpected),
        "verdicts.toml": as_expected(judged),
    }
    for file, text in contents.items():
        try:
            write_whole(folder / file, text.encode())
        except OSError as error:
            reason = f"{file}: {reason_of(error)}."
            raise BadValue(name, str(folder), reason, exit_code=1) from error
    return [folder / file for file in contents]


SCHEMA = 4


def claims_json(papers: Sequence[ReportedPaper]) -> str:
    """Return every claim with its measurement, and every run with its parameters, as JSON."""
    content = {
        "schema": SCHEMA,
        "claims": [{"paper": paper.key, **_claim(one)} for paper in papers for one in paper.judged],
        "runs": [
            _run_as_json(study, run)
            for paper in papers
            for study in paper.studies
            for run in study.runs
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


def _run_as_json(study: ReportedStudy, run: ReportedRun) -> dict[str, Any]:
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


_HEADINGS = ("claim", "verdict", "all together", "measured", "holds where", "source")


def markdown(papers: Sequence[ReportedPaper], unexpected: Mapping[str, str] | None = None) -> str:
    """Return the verdicts by paper; for each study a table of claims, and its runs.

    Args:
        papers: what is reported.
        unexpected: what is wrong with the verdict of a claim, by `study/claim`: it comes first.
    """
    lines = ["# Claims and verdicts", "", *_unexpected(unexpected or {})]
    lines += [*verdict_counts(papers), ""]
    for paper in papers:
        title = f": {paper.paper.title}" if paper.paper else ""
        lines += [f"## {in_markdown(paper.cited + title)}", ""]
        for study in paper.studies:
            title = f"{study.study.name}: {study.study.title}"
            lines += [f"### {in_markdown(title)}", "", *_claims(study.judged)]
            for run in study.runs:
                lines += _run_as_markdown(run)
    return "\n".join(lines)


def _unexpected(found: Mapping[str, str]) -> list[str]:
    """A line for each verdict that is another than expected."""
    lines = [f"- {in_markdown(f'{claim}: {what}')}." for claim, what in found.items()]
    return ["Unexpected verdicts:", "", *lines, ""] if lines else []


def verdict_counts(papers: Sequence[ReportedPaper]) -> list[str]:
    """Return the lines of a table: how many claims of each paper have each verdict."""
    found = [(paper.cited, paper.counts) for paper in papers if paper.judged]
    return [
        _row(["paper", *VERDICTS]),
        _row(["---", *("--:" for _ in VERDICTS)]),
        *(
            _row([in_markdown(cited), *(str(counts[verdict] or "") for verdict in VERDICTS)])
            for cited, counts in found
        ),
    ]


def _claims(judged: Sequence[Judged]) -> Iterator[str]:
    """The lines on the claims of a study: a table, and what stands behind it."""
    if not judged:
        return
    yield from (_row(_HEADINGS), _row(["---"] * len(_HEADINGS)))
    yield from (_row(_table_cells(one)) for one in judged)
    yield from ("", *(in_markdown(sentence) for sentence in families(judged)), "")
    yield from (_details(one) for one in judged)
    yield ""


def _run_as_markdown(run: ReportedRun) -> Iterator[str]:
    """The lines on a run: its cells, settings and failures, and what made them."""
    facts = run.facts
    yield from (f"#### {in_markdown(str(run.path))}", "")
    for sentence in (facts.cells, facts.settings, facts.failures, facts.made):
        if sentence:
            yield f"- {in_markdown(sentence)}"
    yield from (f"- {_code(command)}" for command in facts.commands)
    yield ""


def _code(text: str) -> str:
    """A command as code, unless it holds what may end that, HTML or a link."""
    return in_markdown(text) if set(text) & set("`<&[") else f"`{visible(text)}`"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _table_cells(one: Judged) -> list[str]:
    """A claim's row of the table."""
    others = (
        one.measurement.verdict,
        one.together or "–",
        number_in_words(one.measurement),
        one.claim.holds_where,
        one.claim.source,
    )
    statement = f"**{in_markdown(one.name)}**: {in_markdown(one.claim.statement)}"
    return [statement, *(in_markdown(text) for text in others)]


def _details(one: Judged) -> str:
    """What else there is to say of a claim, and how it is measured again."""
    parts = [in_markdown(in_words(one.measurement))]
    parts += [f"(from {in_markdown(str(one.directory))})"] if one.directory else []
    if repeat := again(one.claim):
        takes = f", {repeat.time} on two cores" if repeat.time else ""
        needs = f"; it needs {in_markdown(repeat.needs)}" if repeat.needs else ""
        parts.append(f"Again: `{repeat.command}`{takes}{needs}.")
    return f"- **{in_markdown(one.name)}**: {' '.join(parts)}"


_SKIPPED = ("inconclusive", "vacuous", "not run")


def junit(judged: Sequence[Judged], unexpected: Mapping[str, str] | None = None) -> str:
    """Return the verdicts as JUnit has them: a suite for each study.

    Args:
        judged: the claims.
        unexpected: what is wrong with the verdict of a claim, by `study/claim`, where verdicts are
            held to expected ones: only those claims fail then. Without it a claim fails that
            doesn't hold, and one that nothing decided is skipped.
    """
    root = ElementTree.Element("testsuites", name="overfit")
    for study in dict.fromkeys(one.study for one in judged):
        own = [one for one in judged if one.study == study]
        suite = ElementTree.SubElement(root, "testsuite", name=visible(study))
        for one in own:
            _case(suite, one, unexpected)
        for kind, counted in (("failure", "failures"), ("skipped", "skipped")):
            suite.set(counted, str(len(suite.findall(f"testcase/{kind}"))))
        suite.set("tests", str(len(own)))
        suite.set("errors", "0")
    ElementTree.indent(root)
    text: str = ElementTree.tostring(root, encoding="unicode", xml_declaration=True)
    return text + "\n"


def _case(suite: ElementTree.Element, one: Judged, unexpected: Mapping[str, str] | None) -> None:
    """Add a claim to its study's suite."""
    case = ElementTree.SubElement(
        suite, "testcase", classname=visible(f"overfit.{one.study}"), name=visible(one.name)
    )
    verdict = one.measurement.verdict
    message = visible(f"{verdict}: {number_in_words(one.measurement)}")
    wrong = None if unexpected is None else unexpected.get(one.address)
    if wrong or (unexpected is None and verdict == "fails"):
        failure = ElementTree.SubElement(case, "failure", message=visible(wrong or message))
        failure.text = visible(f"{one.claim.statement} {in_words(one.measurement)}")
    elif unexpected is None and verdict in _SKIPPED:
        ElementTree.SubElement(case, "skipped", message=message)
    else:
        ElementTree.SubElement(case, "system-out").text = message
