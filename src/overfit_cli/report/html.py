"""The report as a page that needs nothing else: `index.html`."""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from overfit_cli import __version__
from overfit_cli.claim import VERDICTS
from overfit_cli.plain_text import visible
from overfit_cli.report.contents import ReportedPaper, ReportedRun, ReportedStudy, again
from overfit_cli.report.diagrams import Diagram
from overfit_cli.report.judged import Judged
from overfit_cli.report.pictures import PagePicture
from overfit_cli.report.words import families, in_words, number_in_words
from overfit_cli.words import plural

TEMPLATES = Path(__file__).parent / "templates"
_MARKS = {"holds": "✓", "fails": "✗", "inconclusive": "?", "vacuous": "○", "not run": "–"}
_HEADINGS = (
    ("claim", "name"),
    ("verdict", "verdict"),
    ("measured", "value"),
    ("holds where", ""),
    ("in the paper", ""),
)
"""The headings of a table of claims, and what each sorts by."""


def page(papers: Sequence[ReportedPaper], where: Sequence[str] = ()) -> str:
    """Return the page: every claim and run of these papers.

    Whatever comes from files or users is escaped, and the page's policy lets no script run but its
    own.

    Args:
        papers: what is shown.
        where: the conditions that chose the cells.
    """
    style, script = ((TEMPLATES / name).read_text() for name in ("page.css", "page.js"))
    # It is true of the page, whatever encloses it.
    templates = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    diagrams: list[Diagram] = []
    shown = _papers(papers, diagrams)
    return templates.get_template("page.html").render(
        version=__version__,
        counted=_counted(papers),
        where=[visible(one) for one in where],
        verdicts=VERDICTS,
        marks=_MARKS,
        headings=_HEADINGS,
        papers=shown,
        diagrams=diagrams,
        style=Markup(style),
        style_hash=_digest(style),
        script=Markup(script),
        script_hash=_digest(script),
    )


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _counted(papers: Sequence[ReportedPaper]) -> str:
    """How much was judged, in words."""
    claims = sum(len(paper.judged) for paper in papers)
    runs = sum(len(study.runs) for paper in papers for study in paper.studies)
    own = [paper for paper in papers if paper.paper]
    by = f"by {runs} run {'directory' if runs == 1 else 'directories'}"
    return f"{plural(claims, 'claim')} of {plural(len(own), 'paper')} {by}"


def _papers(papers: Sequence[ReportedPaper], diagrams: list[Diagram]) -> list[dict[str, Any]]:
    """What the template shows of the papers; their phase diagrams are added to `diagrams`."""
    numbers = count(1)
    return [
        {
            "key": paper.key,
            "cited": visible(paper.cited),
            "paper": paper.paper,
            "counts": paper.counts,
            "judged": paper.judged,
            "studies": [_study(study, diagrams, numbers) for study in paper.studies],
        }
        for paper in papers
    ]


def _study(study: ReportedStudy, diagrams: list[Diagram], numbers: count[int]) -> dict[str, Any]:
    runs = [_run(run, f"run-{next(numbers)}", diagrams) for run in study.runs]
    by_path = {run.path: shown for run, shown in zip(study.runs, runs, strict=True)}
    return {
        "id": f"study-{study.study.name}",
        "name": visible(study.study.name),
        "title": visible(study.study.title),
        "claims": [_claim(one, by_path) for one in study.judged],
        "families": [visible(sentence) for sentence in families(study.judged)],
        "runs": runs,
    }


def _run(run: ReportedRun, address: str, diagrams: list[Diagram]) -> dict[str, Any]:
    if run.diagram is not None:
        diagrams.append(run.diagram)
    return {
        "id": address,
        "name": visible(run.name),
        "path": visible(str(run.path)),
        "cells": visible(run.facts.cells),
        "settings": visible(run.facts.settings),
        "failures": visible(run.facts.failures),
        "made": visible(run.facts.made),
        "commands": [visible(one) for one in run.facts.commands],
        "pictures": [_picture(one) for one in run.pictures],
        "left_out": run.left_out,
        "diagram": None if run.diagram is None else len(diagrams) - 1,
    }


def _picture(one: PagePicture) -> dict[str, Any]:
    return {
        "name": visible(one.name),
        "caption": visible(one.caption),
        "command": visible(one.command),
        "address": one.address,
        "width": one.width,
        "height": one.height,
    }


def _claim(one: Judged, runs: Mapping[Path, dict[str, Any]]) -> dict[str, Any]:
    value, repeat = one.measurement.value, again(one.claim)
    return {
        "id": f"claim-{one.study}-{one.name}",
        "name": visible(one.name),
        "statement": visible(one.claim.statement),
        "verdict": one.measurement.verdict,
        "together": one.together or "",
        "measured": visible(number_in_words(one.measurement)),
        "value": value if value is not None and math.isfinite(value) else "",
        "holds_where": visible(one.claim.holds_where),
        "source": visible(one.claim.source),
        "words": visible(in_words(one.measurement)),
        "run": runs.get(one.directory) if one.directory else None,
        "again": repeat
        and {
            "command": repeat.command,
            "time": repeat.time,
            "needs": repeat.needs,
        },
    }
