"""The report as a page that needs nothing else: `index.html`."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from overfit_cli import __version__
from overfit_cli.claim import VERDICTS
from overfit_cli.plain_text import visible
from overfit_cli.report.contents import ReportedPaper
from overfit_cli.report.filling import fill
from overfit_cli.report.room import Room
from overfit_cli.report.shown import ShownRun, ShownStudy, shown_paper
from overfit_cli.sweeps.provenance import git_commit
from overfit_cli.words import plural

MOST_BYTES = 5_000_000
"""Of the page, whatever is shown; what has no room is left out, and the page says so."""

TEMPLATES = Path(__file__).parent / "templates"
STYLES = ("page.css", "diagrams.css", "narrow.css", "print.css")
SCRIPTS = ("elements.js", "claims.js", "figures.js", "reading.js", "panel.js", "diagrams.js")
"""The parts of the page's one style and one script, in the order in which they are joined."""

_MARKS = {"holds": "✓", "fails": "✗", "inconclusive": "?", "vacuous": "○", "not run": "–"}
_HEADINGS = (
    ("claim", "name"),
    ("verdict", "verdict"),
    ("measured", "value"),
    ("holds where", ""),
    ("in the paper", ""),
)
"""The headings of a table of claims, and what each sorts by."""

_ORDERS = (
    ("order of the paper", ""),
    ("claim, A to Z", "name ascending"),
    ("claim, Z to A", "name descending"),
    ("verdict, holds first", "verdict ascending"),
    ("verdict, not run first", "verdict descending"),
    ("measured, least first", "value ascending"),
    ("measured, most first", "value descending"),
)
"""What claims are sorted by, in words and for the script."""


def page(papers: Sequence[ReportedPaper], where: Sequence[str] = ()) -> str:
    """Return the page: every claim and run of these papers, with the figures of the runs.

    Draws the figures, which takes a second or two for each run. Whatever comes from files or users
    is escaped, and the page's policy lets no script run but its own. In UTF-8 the page has at most
    `MOST_BYTES`.

    Args:
        papers: what is shown.
        where: the conditions that chose the cells.
    """
    environment = _environment(_facts(papers, where))
    numbers = count(1)
    studies = {
        study.study.name: ShownStudy(
            study, [ShownRun(run, f"run-{next(numbers)}") for run in study.runs]
        )
        for paper in papers
        for study in paper.studies
    }
    shown = [
        shown_paper(paper, [studies[study.study.name] for study in paper.studies])
        for paper in papers
    ]
    template = environment.get_template("page.html")
    # At first everything is left out, and said to be.
    room = Room(MOST_BYTES - len(template.render(papers=shown).encode()))
    fill(list(studies.values()), where, room, environment.get_template("parts.html").module)
    return template.render(papers=shown)


def _environment(facts: Mapping[str, Any]) -> Environment:
    """The templates, which know these facts of the page."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,  # what is in a text is true of the page, whatever encloses it
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(facts)
    return environment


def _facts(papers: Sequence[ReportedPaper], where: Sequence[str]) -> dict[str, Any]:
    """What is known of the page before its claims and runs are."""
    style, script = _joined(STYLES), f'"use strict";\n(() => {{\n{_joined(SCRIPTS)}}})();\n'
    return {
        "version": __version__,
        "counted": _counted(papers),
        "written": _written(),
        "where": [visible(one) for one in where],
        "verdicts": VERDICTS,
        "marks": _MARKS,
        "headings": _HEADINGS,
        "orders": _ORDERS,
        "style": Markup(style),
        "style_hash": _digest(style),
        "script": Markup(script),
        "script_hash": _digest(script),
    }


def _joined(names: Sequence[str]) -> str:
    return "".join((TEMPLATES / name).read_text(encoding="utf-8") for name in names)


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _written() -> str:
    """When the page is written and with what, a sentence."""
    commit = git_commit()
    of = f" (commit {commit[:10]})" if commit else ""
    return f"Written {datetime.now(UTC):%Y-%m-%d} with overfit {__version__}{of}."


def _counted(papers: Sequence[ReportedPaper]) -> str:
    """How much was judged, in words."""
    claims = sum(len(paper.judged) for paper in papers)
    runs = sum(len(study.runs) for paper in papers for study in paper.studies)
    own = [paper for paper in papers if paper.paper]
    by = f"by {runs} run {'directory' if runs == 1 else 'directories'}"
    return f"{plural(claims, 'claim')} of {plural(len(own), 'paper')} {by}"
