"""The page of a report: `index.html`, which needs no other file.

The templates get claims, runs and studies as they are. Every text that they write is made visible
(no control characters, one line) and escaped. The figures of a run are pictures inside the page;
those of the runs that matter most are drawn first, until `MOST_BYTES` are used.
"""

from __future__ import annotations

import base64
import contextlib
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

from overfit_cli.core.claim import VERDICTS, Measurement
from overfit_cli.core.figure import FigureOptions, any_grid
from overfit_cli.core.registry import figures_of
from overfit_cli.core.study import AnyStudy
from overfit_cli.core.text import VERSION, UserError, plural, visible
from overfit_cli.figures.draw import Request, draw_figure
from overfit_cli.figures.picture import Look, image
from overfit_cli.report.contents import (
    ReportedPaper,
    ReportedRun,
    again,
    details_in_words,
    families,
    with_interval,
)
from overfit_cli.report.diagrams import explorable
from overfit_cli.sweeps.load import chosen_data, load_figure_data
from overfit_cli.sweeps.manifest import git_commit
from overfit_cli.sweeps.presets import all_presets, presets_run_into

MOST_BYTES = 5_000_000
"""The limit of all figures and diagrams of a page."""

MOST_FIGURES = 3
"""The limit of figures for a run that is no preset's."""

DOTS_PER_INCH = 200
COLOURS = 256

TEMPLATES = Path(__file__).parent / "templates"
STYLES = ("page.css", "diagrams.css", "narrow.css", "print.css")
SCRIPTS = ("elements.js", "claims.js", "figures.js", "reading.js", "panel.js", "diagrams.js")
"""The parts of the page's style and of its script, in the order in which they are joined."""

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
"""The orders of a table of claims: in words, and for the script."""


@dataclass(frozen=True)
class PagePicture:
    """A figure of a run, for the page.

    Attributes:
        name: the figure's name.
        caption: what it shows, from which cells.
        command: the command that draws it into a file.
        address: the picture itself, as a `data:` address.
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
        not_drawn: a sentence for each figure that its cells can't carry.
        diagram: its phase diagram as JSON; empty for none.
        left_out: whether figures are left out because the page has no room for them.
    """

    run: ReportedRun
    id: str
    pictures: list[PagePicture] = field(default_factory=list)
    not_drawn: list[str] = field(default_factory=list)
    diagram: str = ""
    left_out: bool = False

    @property
    def has_map(self) -> bool:
        """Whether a figure shows what the diagram does: then the diagram isn't printed."""
        return any(picture.name == "heatmap" for picture in self.pictures)

    @property
    def size(self) -> int:
        """The bytes of its figures and its diagram."""
        return len(self.diagram.encode()) + sum(len(picture.address) for picture in self.pictures)


def page(papers: Sequence[ReportedPaper], where: Sequence[str] = ()) -> str:
    """Return the page: every claim and run of these papers, with the figures of the runs.

    Draws the figures, which takes a second or two for each run. Whatever comes from files or users
    is escaped, and the page's policy lets no script run but its own.

    Args:
        papers: what is shown.
        where: the conditions that chose the cells.
    """
    runs = [run for paper in papers for study in paper.studies for run in study.runs]
    drawn = {run.path: RunOnPage(run, f"run-{number}") for number, run in enumerate(runs, start=1)}
    _draw_all(sorted(drawn.values(), key=lambda on_page: weight(on_page.run)), where)
    return (
        _environment()
        .get_template("page.html")
        .render(
            papers=papers, runs=drawn, where=where, counted=_counted(papers), written=_written()
        )
    )


def weight(run: ReportedRun) -> int:
    """Return a number that sorts runs by what they are needed for, the most needed first.

    Those that decide claims and reproduce a figure of the paper come before those that do one.
    """
    return -(bool(run.figure) + run.decides)


def _draw_all(runs: Sequence[RunOnPage], where: Sequence[str]) -> None:
    """Draw the figures of runs, of one run after the other, up to `MOST_BYTES` in all."""
    left = MOST_BYTES
    for on_page in runs:
        if left > 0:
            _illustrate(on_page, where)
        if left <= 0 or on_page.size > left:
            on_page.pictures, on_page.diagram, on_page.left_out = [], "", True
            left = 0  # no run that matters less is shown in its place
        left -= on_page.size


def _illustrate(on_page: RunOnPage, where: Sequence[str]) -> None:
    """Draw the figures of a run and its phase diagram.

    Those of its preset are drawn, each of which is promised; else the first that can be drawn.
    """
    run = on_page.run
    names = _figures_of_presets(run.path.resolve().name)
    for name in names:
        try:
            on_page.pictures.append(_picture(name, run, where))
        except UserError as error:
            on_page.not_drawn.append(f"{name}: {str(error).removeprefix(f'{name}: ')}")
    for name in () if names else _figures_of_any_run(run.study):
        if len(on_page.pictures) < MOST_FIGURES:
            with contextlib.suppress(UserError):
                on_page.pictures.append(_picture(name, run, where))
    on_page.diagram = _diagram(run, where)


def _figures_of_presets(run_name: str) -> list[str]:
    """The figures of the presets that are run into a directory of this name."""
    named = [name for preset in presets_run_into(run_name) for name in preset.content.figures]
    return list(dict.fromkeys(named))


def _figures_of_any_run(study: AnyStudy) -> Iterator[str]:
    """The figures of a study: those that its presets name first, then those of any grid."""
    of_presets = [
        name
        for preset in all_presets()
        if preset.content.study == study.name
        for name in preset.content.figures
    ]
    figures = figures_of(study)
    return (name for name in dict.fromkeys([*of_presets, *any_grid()]) if name in figures)


def _picture(name: str, run: ReportedRun, where: Sequence[str]) -> PagePicture:
    """Draw a figure of a run.

    Raises:
        UserError: if its cells can't carry it.
    """
    look = Look(dpi=DOTS_PER_INCH)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # loading the runs has shown them
        picture = draw_figure(Request(name, [run.directory], FigureOptions(), where, look=look))
        drawn = Image.open(io.BytesIO(image(picture, "png"))).convert("RGB")
    small = io.BytesIO()
    # A figure has few colours: this halves the page, and the difference can't be seen.
    few = drawn.quantize(COLOURS, dither=Image.Dither.NONE).convert("RGB")
    few.save(small, "WEBP", lossless=True, method=4)
    chosen = "".join(f" --where {shlex.quote(condition)}" for condition in where)
    return PagePicture(
        name=name,
        caption=picture.caption.split("\n\n", 1)[0].replace("\n", " "),
        command=f"overfit plot {name} --from {shlex.quote(str(run.path))}{chosen}",
        address=f"data:image/webp;base64,{base64.b64encode(small.getvalue()).decode()}",
        width=drawn.width,
        height=drawn.height,
    )


def _diagram(run: ReportedRun, where: Sequence[str]) -> str:
    """The phase diagram of a run as JSON that can stand in a page; empty for none."""
    heatmap = figures_of(run.study).get("heatmap")
    if heatmap is None:
        return ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # loading the runs has shown them
        diagram = explorable(chosen_data(load_figure_data(run.directory), where), heatmap)
    return "" if diagram is None else htmlsafe_json_dumps(diagram, separators=(",", ":"))


def _environment() -> Environment:
    """The templates, with what they look up and call."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        finalize=_visible,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style, script = _joined(STYLES), f'"use strict";\n(() => {{\n{_joined(SCRIPTS)}}})();\n'
    environment.globals |= {
        "version": VERSION,
        "verdicts": VERDICTS,
        "marks": _MARKS,
        "headings": _HEADINGS,
        "orders": _ORDERS,
        "style": Markup(style),
        "style_hash": _digest(style),
        "script": Markup(script),
        "script_hash": _digest(script),
        "again": again,
        "details_in_words": details_in_words,
        "families": families,
        "measured": _measured,
        "sortable": _sortable,
    }
    return environment


def _visible(written: object) -> object:
    """What the templates write: texts without control characters; markup and numbers as they are.

    What is no markup is escaped afterwards, in attributes too.
    """
    is_text = isinstance(written, str) and not isinstance(written, Markup)
    return visible(str(written)) if is_text else written


def _measured(measurement: Measurement) -> str:
    """A number with its interval, which stays on one line."""
    text = with_interval(measurement.value, measurement.interval)
    return text.replace(", ", ",\N{NO-BREAK SPACE}")


def _sortable(value: float | None) -> float | str:
    """A number for the script that sorts claims; empty where it isn't finite."""
    return "" if value is None or not math.isfinite(value) else value


def _joined(names: Sequence[str]) -> str:
    return "".join((TEMPLATES / name).read_text(encoding="utf-8") for name in names)


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _written() -> str:
    """When the page is written and with what, a sentence."""
    commit = git_commit()
    at_commit = f" (commit {commit[:10]})" if commit else ""
    return f"Written {datetime.now(UTC):%Y-%m-%d} with overfit {VERSION}{at_commit}."


def _counted(papers: Sequence[ReportedPaper]) -> str:
    """How much was judged, in words."""
    claims = sum(len(paper.judged) for paper in papers)
    runs = sum(len(study.runs) for paper in papers for study in paper.studies)
    published = [paper for paper in papers if paper.paper]
    by = f"by {runs} run {'directory' if runs == 1 else 'directories'}"
    return f"{plural(claims, 'claim')} of {plural(len(published), 'paper')} {by}"
