"""The page of a report: `index.html`, which needs no other file.

The templates take claims, runs and studies. Every text in the page is freed of control characters
and escaped. The figures of a run are pictures inside the page; those of the most important runs are
drawn first, until `MOST_BYTES` are used.
"""

from __future__ import annotations

import base64
import hashlib
import io
import math
import shlex
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from jinja2.utils import htmlsafe_json_dumps
from markupsafe import Markup
from PIL import Image

from overfit_cli.claims.stated import Measure
from overfit_cli.core.claim import KINDS, VERDICTS, Measurement
from overfit_cli.core.errors import UserError
from overfit_cli.core.figure import FigureOptions, grid_figures
from overfit_cli.core.registry import figures_of
from overfit_cli.core.study import AnyStudy
from overfit_cli.core.text import VERSION, plural, shorten, visible
from overfit_cli.figures.draw import Request, draw_figure
from overfit_cli.figures.picture import Look, file_content
from overfit_cli.report.claim_figure import NAME as CLAIM_FIGURE
from overfit_cli.report.claim_figure import draw_claims
from overfit_cli.report.contents import (
    ReportedPaper,
    ReportedRun,
    detail_lines,
    family_sentences,
    number_with_interval,
    repetition,
)
from overfit_cli.report.diagrams import make_diagram
from overfit_cli.report.judge import Judged
from overfit_cli.sweeps.load import chosen_data, load_figure_data
from overfit_cli.sweeps.presets import all_presets, presets_run_into
from overfit_cli.sweeps.provenance import package_commit

MOST_BYTES = 5_000_000
"""The limit of all figures and diagrams of a page."""

MOST_FIGURES = 3
"""The limit of figures for a run without a preset."""

DOTS_PER_INCH = 200
COLOURS = 128

TEMPLATES = Path(__file__).parent / "templates"
STYLES = ("page.css", "diagrams.css", "narrow.css", "print.css")
SCRIPTS = ("elements.js", "claims.js", "figures.js", "reading.js", "panel.js", "diagrams.js")
"""The parts of the page's style and of its script, in order."""

_MARKS = {"holds": "✓", "fails": "✗", "inconclusive": "?", "vacuous": "○", "not run": "–"}
_HEADINGS = (
    ("claim", "name"),
    ("kind", ""),
    ("verdict", "verdict"),
    ("measured", "value"),
    ("holds where", ""),
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


@dataclass(frozen=True)
class PagePicture:
    """A figure of a run, for the page.

    Attributes:
        name: the figure's name.
        caption: its caption.
        command: the command that draws it into a file.
        address: the picture as a `data:` address.
        width, height: in pixels.
    """

    name: str
    caption: str
    command: str
    address: str
    width: int
    height: int


@dataclass
class RunOnPage:
    """A run with its address within the page and its figures.

    Attributes:
        run: the run.
        id: its address within the page.
        pictures: its figures.
        not_drawn: a sentence for each figure that cannot be drawn of its cells.
        diagram: its phase diagram as JSON; empty for none.
        claims: the sentences of a user's study that are judged on it, which have a drawing.
        left_out: whether figures are left out because of the page's limit.
    """

    run: ReportedRun
    id: str
    pictures: list[PagePicture] = field(default_factory=list)
    not_drawn: list[str] = field(default_factory=list)
    diagram: str = ""
    claims: Sequence[Judged] = ()
    left_out: bool = False

    @property
    def has_map(self) -> bool:
        """Whether a figure shows the diagram too: then the diagram is not printed."""
        return any(picture.name == "heatmap" for picture in self.pictures)

    @property
    def size(self) -> int:
        """The bytes of its figures and its diagram."""
        return len(self.diagram.encode()) + sum(len(picture.address) for picture in self.pictures)


def page(papers: Sequence[ReportedPaper], conditions: Sequence[str] = ()) -> str:
    """Return the page: every claim and run of these papers, with the figures of the runs.

    It draws the figures, which takes a second or two for each run. Texts from files and users are
    escaped, and the page's policy permits its own script only.

    Args:
        papers: the contents.
        conditions: the conditions that chose the cells.
    """
    runs = [run for paper in papers for study in paper.studies for run in study.runs]
    runs_on_page = {
        run.path: RunOnPage(run, f"run-{number}") for number, run in enumerate(runs, start=1)
    }
    for study in (study for paper in papers if not paper.paper for study in paper.studies):
        for run in study.runs:
            runs_on_page[run.path].claims = [
                each
                for each in study.judged
                if each.directory == run.path and isinstance(each.claim.measure, Measure)
            ]
    _draw_all(sorted(runs_on_page.values(), key=lambda on_page: weight(on_page.run)), conditions)
    return (
        _environment()
        .get_template("page.html")
        .render(
            papers=papers,
            runs=runs_on_page,
            conditions=conditions,
            counts=_counts_text(papers),
            origin=_written_sentence(),
        )
    )


def weight(run: ReportedRun) -> int:
    """Return a number that sorts runs by importance, the most important first.

    Runs that decide claims and reproduce a figure of the paper come before those that do one.
    """
    return -(bool(run.figure) + run.decides)


def _draw_all(runs: Sequence[RunOnPage], conditions: Sequence[str]) -> None:
    """Draw the figures of one run after the other, up to `MOST_BYTES` in all."""
    remaining = MOST_BYTES
    for run in runs:
        if remaining > 0:
            _illustrate(run, conditions)
        if remaining <= 0 or run.size > remaining:
            run.pictures, run.diagram, run.left_out = [], "", True
            remaining = 0  # no less important run is shown in its place
        remaining -= run.size


def _illustrate(target: RunOnPage, conditions: Sequence[str]) -> None:
    """Draw the figures of a run and its phase diagram.

    The figures are those of its preset, or else the first of its study that can be drawn.
    """
    run = target.run
    of_claims = [CLAIM_FIGURE] if target.claims else []
    names = _figures_of_presets(run.path.resolve().name)
    for name in (*of_claims, *(names or _figures_of_any_run(run.study))):
        if not names and len(target.pictures) == MOST_FIGURES:
            break
        try:
            target.pictures.append(_picture(name, target, conditions))
        except UserError as error:
            if names or name in of_claims:
                target.not_drawn.append(f"{name}: {str(error).removeprefix(f'{name}: ')}")
        except Exception as error:  # one figure must not cost the whole report
            target.not_drawn.append(f"{name}: {_defect(error)}")
    try:
        target.diagram = _diagram(run, conditions)
    except Exception as error:
        target.not_drawn.append(f"phase diagram: {_defect(error)}")


def _defect(error: Exception) -> str:
    """The sentence of an error that is a defect of the drawing, or of a study's figure."""
    return f"its drawing failed ({type(error).__name__}: {visible(shorten(str(error)))})."


def _figures_of_presets(run_name: str) -> list[str]:
    """The figures of the presets whose run directory has this name."""
    named = [name for preset in presets_run_into(run_name) for name in preset.content.figures]
    return list(dict.fromkeys(named))


def _figures_of_any_run(study: AnyStudy) -> Iterator[str]:
    """The figures of a study: those of its presets first, then the general ones."""
    preset_figures = [
        name
        for preset in all_presets()
        if preset.content.study == study.name
        for name in preset.content.figures
    ]
    figures = figures_of(study)
    return (name for name in dict.fromkeys([*preset_figures, *grid_figures()]) if name in figures)


def _picture(name: str, target: RunOnPage, conditions: Sequence[str]) -> PagePicture:
    """Draw a figure of a run, or the claims that are judged on it.

    Raises:
        UserError: if it cannot be drawn of these cells.
    """
    run, quoted = target.run, shlex.quote(str(target.run.path))
    look = Look(dpi=DOTS_PER_INCH)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # loading the runs has shown the warnings
        if name == CLAIM_FIGURE:
            command = f"overfit judge {quoted} --out {name}.png"
            picture = draw_claims(run.path, target.claims, conditions, look=look)
        else:
            command = f"overfit plot {name} --from {quoted}"
            picture = draw_figure(
                Request(name, [run.directory], FigureOptions(), conditions, look=look)
            )
        pixels = Image.open(io.BytesIO(file_content(picture, "png"))).convert("RGB")
    small = io.BytesIO()
    # A figure has few colours: this halves the page without a visible difference.
    reduced = pixels.quantize(COLOURS, dither=Image.Dither.NONE).convert("RGB")
    reduced.save(small, "WEBP", lossless=True, method=4)
    options = "".join(f" --where {shlex.quote(condition)}" for condition in conditions)
    return PagePicture(
        name=name,
        caption=picture.caption.split("\n\n", 1)[0].replace("\n", " "),
        command=f"{command}{options}",
        address=f"data:image/webp;base64,{base64.b64encode(small.getvalue()).decode()}",
        width=pixels.width,
        height=pixels.height,
    )


def _diagram(run: ReportedRun, conditions: Sequence[str]) -> str:
    """The phase diagram of a run as JSON that can stand in a page; empty for none."""
    heatmap = figures_of(run.study).get("heatmap")
    if heatmap is None:
        return ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # loading the runs has shown the warnings
        diagram = make_diagram(chosen_data(load_figure_data(run.directory), conditions), heatmap)
    return "" if diagram is None else htmlsafe_json_dumps(diagram, separators=(",", ":"))


def _environment() -> Environment:
    """The templates, with their constants and functions."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        finalize=_make_visible,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style, script = (
        _concatenate(STYLES),
        f'"use strict";\n(() => {{\n{_concatenate(SCRIPTS)}}})();\n',
    )
    environment.globals |= {
        "version": VERSION,
        "kinds": KINDS,
        "verdicts": VERDICTS,
        "marks": _MARKS,
        "headings": _HEADINGS,
        "orders": _ORDERS,
        "style": Markup(style),
        "style_hash": _digest(style),
        "script": Markup(script),
        "script_hash": _digest(script),
        "repetition": repetition,
        "detail_lines": detail_lines,
        "family_sentences": family_sentences,
        "number_text": _number_text,
        "sortable": _sortable,
    }
    return environment


def _make_visible(value: object) -> object:
    """A value of a template: a text without control characters; markup and numbers unchanged.

    Jinja escapes everything but markup afterwards, in attributes too.
    """
    is_text = isinstance(value, str) and not isinstance(value, Markup)
    return visible(str(value)) if is_text else value


def _number_text(measurement: Measurement) -> str:
    """A number with its interval, without a line break inside."""
    text = number_with_interval(measurement.value, measurement.interval)
    return text.replace(", ", ",\N{NO-BREAK SPACE}")


def _sortable(value: float | None) -> float | str:
    """A number for the script that sorts claims; empty where it is not finite."""
    return "" if value is None or not math.isfinite(value) else value


def _concatenate(names: Sequence[str]) -> str:
    return "".join((TEMPLATES / name).read_text(encoding="utf-8") for name in names)


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _written_sentence() -> str:
    """A sentence with the date and the version."""
    commit = package_commit()
    commit_text = f" (commit {commit[:10]})" if commit else ""
    return f"Written {datetime.now(UTC):%Y-%m-%d} with overfit {VERSION}{commit_text}."


def _counts_text(papers: Sequence[ReportedPaper]) -> str:
    """The numbers of claims, papers and runs, in words."""
    claims = sum(len(paper.judged) for paper in papers)
    runs = sum(len(study.runs) for paper in papers for study in paper.studies)
    published = [paper for paper in papers if paper.paper]
    runs_text = f"by {runs} run {'directory' if runs == 1 else 'directories'}"
    return f"{plural(claims, 'claim')} of {plural(len(published), 'paper')} {runs_text}"
