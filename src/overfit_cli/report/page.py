"""The page of a report: `index.html`, which needs no other file.

It opens with the findings and the counts of verdicts. Claims stand by paper, study and kind, with
a drawing of each number; the tool's own questions and checks are folded where there are many. Every
text in the page is freed of control characters and escaped.
"""

from __future__ import annotations

import base64
import hashlib
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from overfit_cli.claims.rules import THEOREM_RULE
from overfit_cli.claims.stated import Measure
from overfit_cli.core.claim import (
    BY_CELL,
    KINDS,
    MARKS,
    VERDICTS,
    Claim,
    Kind,
    Measurement,
    Verdict,
    number_parts,
)
from overfit_cli.core.study import AnyStudy
from overfit_cli.core.text import MINUS, VERSION, plural, power_of_ten, slug, visible
from overfit_cli.report.contents import (
    COUNTED,
    ReportedPaper,
    count_kinds,
    detail_pairs,
    family_sentences,
    repetition,
    shown_findings,
)
from overfit_cli.report.interval_bar import interval_bar, is_a_point, requirement_in_words
from overfit_cli.report.judge import Judged
from overfit_cli.report.pictures import RunOnPage, draw_all, weight
from overfit_cli.sweeps.presets import find_preset
from overfit_cli.sweeps.provenance import package_commit

TEMPLATES = Path(__file__).parent / "templates"
STYLES = ("page.css", "diagrams.css", "narrow.css", "print.css")
SCRIPTS = tuple(
    f"{name}.js"
    for name in ("elements", "claims", "figures", "links", "reading", "panel", "diagrams", "runs")
)
"""The parts of the page's style and of its script, in order."""

KIND_NAMES: dict[Kind, str] = {
    "paper": "of the papers",
    "sharp": "on tightness",
    "ours": "of our own",
}
"""What the page calls the claims of each kind."""

MOST_OPEN = 60
"""The most claims of a page that has those of every kind unfolded."""

_SAID: Mapping[Verdict, str] = {
    "holds": "hold",
    "fails": "fail",
}

_HEADINGS = (
    ("claim", "name"),
    ("verdict", "verdict"),
    ("measured", "value"),
    ("in the paper", ""),
)
"""The headings of a table of claims, and the sort key of each."""

_ORDERS = (
    ("order of the paper", ""),
    ("claim, A to Z", "name ascending"),
    ("claim, Z to A", "name descending"),
    ("verdict, holds first", "verdict ascending"),
    ("verdict, not run first", "verdict descending"),
    ("measured, least first", "value ascending"),
    ("measured, most first", "value descending"),
)
"""The orders of a table of claims, in words and for the script."""


def page(papers: Sequence[ReportedPaper], conditions: Sequence[str] = ()) -> str:
    """Return the page: every claim and run of these papers, with the figures of the runs.

    It draws the figures, which takes a second or two for each run. Texts from files and users are
    escaped, and the page's policy permits its own script only.
    """
    runs = [run for paper in papers for study in paper.studies for run in study.runs]
    runs_on_page = {run.path: RunOnPage(run, f"run-{slug(run.name)}") for run in runs}
    for study in (study for paper in papers if not paper.paper for study in paper.studies):
        for run in study.runs:
            runs_on_page[run.path].claims = [
                each
                for each in study.judged
                if each.directory == run.path and isinstance(each.claim.measure, Measure)
            ]
    draw_all(sorted(runs_on_page.values(), key=lambda on_page: weight(on_page.run)), conditions)
    by_kind = count_kinds(papers)
    count = sum(len(paper.judged) for paper in papers)
    environment = _environment()
    studies = [study for paper in papers for study in paper.studies]
    environment.globals["opens"] = lambda study, kind: (
        count <= MOST_OPEN or kind in ("paper", "sharp") or not study.study.paper
    )
    return environment.get_template("page.html").render(
        papers=papers,
        runs=runs_on_page,
        conditions=conditions,
        title=_title(papers),
        question=_question(papers),
        lead=_lead(papers),
        printed=_printed(papers),
        findings=[(paper, shown) for paper in papers if (shown := shown_findings(paper))],
        by_kind=by_kind,
        late=sum(claim.changed_late for paper in papers for claim in paper.judged),
        stand_ins=[(study.study.name, text) for study in studies for text in study.stand_ins],
        total={name: sum(counts[name] for counts in by_kind.values()) for name in VERDICTS},
        origin=_written_sentence(),
    )


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        finalize=_make_visible,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style, script = (
        concatenate(STYLES),
        f'"use strict";\n(() => {{\n{concatenate(SCRIPTS)}}})();\n',
    )
    environment.filters["typeset"] = _typeset
    environment.globals |= {
        "version": VERSION,
        "kinds": KINDS,
        "verdicts": VERDICTS,
        "marks": MARKS,
        "headings": _HEADINGS,
        "orders": _ORDERS,
        "style": Markup(style),
        "style_hash": _digest(style),
        "script": Markup(script),
        "script_hash": _digest(script),
        "repetition": repetition,
        "detail_pairs": detail_pairs,
        "is_a_point": is_a_point,
        "failure_in_words": _failure_in_words,
        "infinite_in_words": _infinite_in_words,
        "rule_in_words": _rule_in_words,
        "note_in_words": _note_in_words,
        "said": _SAID,
        "family_sentences": family_sentences,
        "kind_names": KIND_NAMES,
        "counted_at": COUNTED,
        "claim_id": _claim_id,
        "number_parts": number_parts,
        "interval_bar": interval_bar,
        "requirement_in_words": requirement_in_words,
        "verdicts_of": _verdicts_of,
        "printed_counts": _printed_counts,
        "is_late": lambda judged: judged.changed_late,
        "further_words": _further_words,
        "sortable": _sortable,
    }
    return environment


def _make_visible(value: object) -> object:
    """A value of a template: a text without control characters; markup and numbers unchanged.

    Jinja escapes everything but markup afterwards, in attributes too.
    """
    is_text = isinstance(value, str) and not isinstance(value, Markup)
    return visible(str(value)) if is_text else value


_POWER = re.compile(r"(?<![\w.-])(-?\d[\d.]*)e([+-]?\d+)\b")
_NEGATIVE = re.compile(r"(?<![\w.&;)/-])-(?=\d)")
_SUBSCRIPT = re.compile(
    r"(?<![^\W\d²³⁴ᵀ])([Δd]?[^\W\d_][\u0300-\u036f]?\*?|min|max|Cov|(?<=[‖²)′∇]))"
    r"_(\{[^{}]{1,6}\}|[A-Za-zℓ],[a-z\d]|[A-Za-zα-ω\dℓ*⋆∞]{1,5}|[+-](?![\d(]))(?![A-Za-z\d_])"
)
_SUPERSCRIPT = re.compile(
    r"\^(\((?:[^()]|\([^()]*\)){1,14}\)|o\(1\)|[−-]?\d+(?:\.\d+)?|[*⋆]|[^\W\d_]{1,4}(?!\w))"
)


def _typeset(text: str) -> Markup:
    """A text with the indices and powers of its symbols, as in `W_Q` and `N·SNR^p`.

    Numbers have a minus sign and powers of ten, for `-2` and `1e-10`, in which no line breaks.
    Names of several letters, such as `train_loss`, stay as they are.
    """
    escaped = str(escape(visible(text)))
    escaped = _NEGATIVE.sub(MINUS, _POWER.sub(_power_of_ten, escaped))
    return Markup(set_indices(escaped))


def set_indices(escaped: str) -> str:
    """Return an escaped text with the indices and powers of its symbols as HTML."""
    return _SUPERSCRIPT.sub(r"<sup>\1</sup>", _SUBSCRIPT.sub(r"\1<sub>\2</sub>", escaped))


def _power_of_ten(number: re.Match[str]) -> str:
    return f'<span class="number">{power_of_ten(number[1], int(number[2]))}</span>'


def _claim_id(judged: Judged) -> str:
    return f"claim-{judged.study}-{slug(judged.name)}"


def _printed(papers: Sequence[ReportedPaper]) -> list[Judged]:
    return [judged for paper in papers for judged in paper.judged if judged.claim.kind == "paper"]


def _printed_counts(paper: ReportedPaper) -> list[tuple[Verdict, int]]:
    return _verdicts_of(_printed([paper]))


def _verdicts_of(judged: Sequence[Judged]) -> list[tuple[Verdict, int]]:
    counts = Counter(claim.headline for claim in judged)
    return [(verdict, counts[verdict]) for verdict in VERDICTS if counts[verdict]]


def _further_words(claim: Claim) -> str:
    preset = find_preset(claim.preset) if claim.preset else None
    return " ".join([claim.figure, *([preset.name, preset.content.title] if preset else ())])


def _failure_in_words(claim: Claim, study: AnyStudy) -> str:
    if claim.kind == "paper":
        return f"Contradicts {claim.source}{', whose hypotheses are met' * bool(claim.hypotheses)}."
    if not study.paper:
        return "The answer is no."
    if claim.kind == "sharp":
        return "Not as sharp as asked; no sentence of the paper is contradicted."
    return "The answer to a question of our own is no."


def _rule_in_words(claim: Claim) -> str:
    return claim.holds_where.replace(THEOREM_RULE, f"{BY_CELL}, of at least ten seeds")


def _note_in_words(judged: Judged) -> str:
    named = f"{judged.claim.quantity.capitalize()}."
    return judged.measurement.note.removeprefix(named).lstrip()


def _infinite_in_words(measurement: Measurement) -> Iterator[str]:
    details, interval = measurement.details, measurement.interval
    bounds = [name for name in details if name.startswith("decades over the bound")]
    if any(math.isinf(details[name]) for name in bounds):
        yield "∞ decades: the bound is 0 there."
    ends = (interval.low, interval.high) if interval else ()
    rest = [number for name, number in details.items() if name not in bounds]
    if any(
        number is not None and math.isinf(number) for number in (measurement.value, *ends, *rest)
    ):
        yield "∞ stands for cells that did not reach the target: beyond all that was measured."


def _sortable(value: float | None) -> float | str:
    return "" if value is None or not math.isfinite(value) else value


def concatenate(names: Sequence[str]) -> str:
    """Return templates, one after the other."""
    return "".join((TEMPLATES / name).read_text(encoding="utf-8") for name in names)


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _written_sentence() -> str:
    commit = package_commit()
    commit_text = f" (commit {commit[:10]})" if commit else ""
    return f"Written {datetime.now(UTC):%Y-%m-%d} with overfit {VERSION}{commit_text}."


def _title(papers: Sequence[ReportedPaper]) -> str:
    claims = plural(sum(len(paper.judged) for paper in papers), "claim")
    published = sum(bool(paper.paper) for paper in papers)
    papers_text = f" of {plural(published, 'paper')}" if published else ""
    return f"{claims}{papers_text}, measured"


def _question(papers: Sequence[ReportedPaper]) -> str:
    published = [paper for paper in papers if paper.paper]
    if not published:
        return "Do these claims hold when they are measured?"
    if len(published) == 1:
        return f"Do the claims of {published[0].cited} hold when they are measured?"
    return f"Do the claims of {len(published)} papers hold when they are measured?"


def _lead(papers: Sequence[ReportedPaper]) -> str:
    runs = [run for paper in papers for study in paper.studies for run in study.runs]
    cells = sum(run.facts.done + sum(run.facts.reasons.values()) for run in runs)
    directories = f"{len(runs)} run {'directory' if len(runs) == 1 else 'directories'}"
    judged = [claim for paper in papers for claim in paper.judged]
    return (
        f"overfit trained {cells:,} cells, each a model of its own, in {directories}, and judged "
        f"{plural(len(judged), 'claim')} on them."
    )
