"""The page of a report.

Room on the page: how many bytes may still be written.

What the page's templates show: texts of papers, studies, claims and runs, safe to look at.

The figures of a run as pictures inside the page.

Filling of the page: what is shown is added in the order of its weight, while there is room.

The report as a page that needs nothing else: `index.html`.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import io
import math
import shlex
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from jinja2.utils import htmlsafe_json_dumps
from markupsafe import Markup
from PIL import Image

from overfit_cli.core.claim import VERDICTS
from overfit_cli.core.figure import FigureOptions, any_grid
from overfit_cli.core.files import make_folder, reason_of, write_whole
from overfit_cli.core.registry import figures_of
from overfit_cli.core.study import AnyStudy
from overfit_cli.core.text import VERSION, UserError, plural, visible
from overfit_cli.figures.draw import Request, draw_figure
from overfit_cli.figures.picture import Look, image
from overfit_cli.report.contents import (
    ReportedPaper,
    ReportedRun,
    ReportedStudy,
    again,
    details_in_words,
    families,
    with_interval,
)
from overfit_cli.report.diagrams import explorable
from overfit_cli.report.judge import Judged, as_expected
from overfit_cli.report.writers import claims_json, junit, markdown
from overfit_cli.sweeps.load import chosen_data, load_figure_data
from overfit_cli.sweeps.manifest import git_commit
from overfit_cli.sweeps.presets import all_presets, presets_run_into
from overfit_cli.sweeps.store import RunDirectory

if TYPE_CHECKING:
    pass


class Room:
    """Bytes that are left.

    Attributes:
        is_full: whether something found no room; nothing else does after that.
    """

    def __init__(self, size: int) -> None:
        self._left = size
        self.is_full = False

    def holds(self, text: str) -> bool:
        """Take the room of a text and a line's end; say whether there was so much."""
        size = len(text.encode()) + 1
        self.is_full = self.is_full or size > self._left
        if not self.is_full:
            self._left -= size
        return not self.is_full


@dataclass
class ShownRun:
    """A run on the page; its figures are added while there is room for them.

    Attributes:
        run: what is shown.
        id: its address within the page.
        is_shown: whether there is room for it at all.
        pictures: its figures.
        not_drawn: the figures that its cells can't carry, and why, a sentence each.
        diagram: its phase diagram as JSON; empty for none.
        left_out: whether there was no room for all figures.
    """

    run: ReportedRun
    id: str
    is_shown: bool = False
    pictures: list[dict[str, Any]] = field(default_factory=list)
    not_drawn: list[str] = field(default_factory=list)
    diagram: str = ""
    left_out: bool = True

    @cached_property
    def text(self) -> dict[str, Any]:
        """Its name and facts."""
        facts = self.run.facts
        return {
            "name": visible(self.run.name),
            "path": visible(str(self.run.path)),
            "cells": visible(facts.cells),
            "settings": visible(facts.settings),
            "failures": visible(facts.failures),
            "made": visible(facts.made),
            "commands": [visible(one) for one in facts.commands],
        }

    @property
    def has_map(self) -> bool:
        """Whether a figure shows what the diagram does: then the diagram isn't printed."""
        return any(picture["name"] == "heatmap" for picture in self.pictures)


@dataclass
class ShownStudy:
    """A study on the page; claims and runs are added while there is room for them.

    Attributes:
        study: what is shown.
        runs: all its runs.
        claims: those that have room.
    """

    study: ReportedStudy
    runs: Sequence[ShownRun]
    claims: list[dict[str, Any]] = field(default_factory=list)

    @cached_property
    def text(self) -> dict[str, Any]:
        """Its name and what it is about."""
        return {
            "id": f"study-{self.study.study.name}",
            "name": visible(self.study.study.name),
            "title": visible(self.study.study.title),
            "families": [visible(sentence) for sentence in families(self.study.judged)],
        }

    @property
    def left_out(self) -> str:
        """How many claims and runs have no room, in words; empty where all have."""
        claims = len(self.study.judged) - len(self.claims)
        runs = sum(not run.is_shown for run in self.runs)
        counted = [(claims, "claim"), (runs, "run")]
        return " and ".join(plural(count, noun) for count, noun in counted if count)


def shown_paper(paper: ReportedPaper, studies: Sequence[ShownStudy]) -> dict[str, Any]:
    """Return what is shown of a paper."""
    return {
        "key": paper.key,
        "cited": visible(paper.cited),
        "paper": paper.paper,
        "counts": paper.counts,
        "judged": paper.judged,
        "studies": studies,
    }


def shown_picture(one: PagePicture) -> dict[str, Any]:
    """Return what is shown of a figure."""
    return {
        "name": visible(one.name),
        "caption": visible(one.caption),
        "command": visible(one.command),
        "address": one.address,
        "width": one.width,
        "height": one.height,
    }


def shown_not_drawn(one: NotDrawn) -> str:
    """Return what is said of a figure that isn't there: its name, and why."""
    return visible(f"{one.name}: {one.why.removeprefix(f'{one.name}: ')}")


def shown_claim(one: Judged, runs: Mapping[Path, ShownRun]) -> dict[str, Any]:
    """Return what is shown of a claim; `runs` are those of its study, by path."""
    measured, value = one.measurement, one.measurement.value
    return {
        "id": f"claim-{one.study}-{one.name}",
        "name": visible(one.name),
        "statement": visible(one.claim.statement),
        "verdict": measured.verdict,
        "together": one.together or "",
        # An interval stays on one line.
        "measured": with_interval(value, measured.interval).replace(", ", ",\N{NO-BREAK SPACE}"),
        "kind": visible(measured.interval.kind) if measured.interval else "",
        "value": "" if value is None or not math.isfinite(value) else value,
        # Each part of a margin on a line of its own: several numbers may have one.
        "holds_where": visible(one.claim.holds_where).split("; "),
        "source": visible(one.claim.source),
        "note": visible(measured.note),
        "details": [visible(line) for line in details_in_words(measured.details)],
        "run": runs.get(one.directory) if one.directory else None,
        "again": again(one.claim),
    }


DOTS_PER_INCH = 200
COLOURS = 256
MOST_FIGURES = 3
"""Of a run that no preset is run into."""


@dataclass(frozen=True)
class PagePicture:
    """A figure of a run, for the page.

    Attributes:
        name: the figure's.
        caption: what it shows, from which cells.
        command: what draws it as a file.
        address: the picture itself, as a `data:` address.
        width, height: in pixels.
    """

    name: str
    caption: str
    command: str
    address: str
    width: int
    height: int


@dataclass(frozen=True)
class NotDrawn:
    """A figure of a run's preset that its cells can't carry.

    Attributes:
        name: the figure's.
        why: the reason, a sentence.
    """

    name: str
    why: str


def pictures_of(
    directory: RunDirectory, study: AnyStudy, where: Sequence[str]
) -> Iterator[PagePicture | NotDrawn]:
    """Draw the figures of a run, one by one: its preset's, or else the first that can be drawn.

    A run of no preset promises no figure, so that none of those is missed.
    """
    names = _figures_of_presets(directory.path.resolve().name)
    if names:
        for name in names:
            try:
                yield _drawn(name, directory, where)
            except UserError as error:
                yield NotDrawn(name, str(error))
        return
    found = 0
    for name in _any_figures(study):
        if found < MOST_FIGURES:
            with contextlib.suppress(UserError):
                yield _drawn(name, directory, where)
                found += 1


def _figures_of_presets(run_name: str) -> list[str]:
    """The figures of the presets that are run into a directory of this name."""
    named = [name for preset in presets_run_into(run_name) for name in preset.content.figures]
    return list(dict.fromkeys(named))


def _any_figures(study: AnyStudy) -> list[str]:
    """The figures of a study: those that its presets name first, then those of any grid."""
    of_presets = [
        name
        for preset in all_presets()
        if preset.content.study == study.name
        for name in preset.content.figures
    ]
    own = figures_of(study)
    return [name for name in dict.fromkeys([*of_presets, *any_grid()]) if name in own]


def _drawn(name: str, directory: RunDirectory, where: Sequence[str]) -> PagePicture:
    """Draw a figure of a run.

    Raises:
        UserError: if its cells can't carry it.
    """
    look = Look(dpi=DOTS_PER_INCH)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they were said of the directory already
        picture = draw_figure(Request(name, [directory], FigureOptions(), where, look=look))
        drawn = Image.open(io.BytesIO(image(picture, "png"))).convert("RGB")
    small = io.BytesIO()
    # A figure has few colours: this halves the page, and nobody sees the difference.
    few = drawn.quantize(COLOURS, dither=Image.Dither.NONE).convert("RGB")
    few.save(small, "WEBP", lossless=True, method=4)
    chosen = [word for one in where for word in ("--where", one)]
    return PagePicture(
        name=name,
        caption=picture.caption.split("\n\n", 1)[0].replace("\n", " "),
        command=shlex.join(["overfit", "plot", name, "--from", str(directory.path), *chosen]),
        address=f"data:image/webp;base64,{base64.b64encode(small.getvalue()).decode()}",
        width=drawn.width,
        height=drawn.height,
    )


def fill(studies: Sequence[ShownStudy], where: Sequence[str], room: Room, parts: Any) -> None:
    """Add claims, then runs, then the figures of runs: of those that matter most first.

    Args:
        studies: what is shown, with nothing yet.
        where: the conditions that chose the cells.
        room: what is left on the page.
        parts: the template that each is written with, by which its size is known.
    """
    runs = sorted((run for study in studies for run in study.runs), key=lambda one: weight(one.run))
    for run in runs:
        run.is_shown = True  # claims have links to them
    for study in studies:
        _add_claims(study, room, parts)
    for run in runs:
        run.is_shown = room.holds(parts.article(run))
    for run in runs:
        if not room.is_full:
            _illustrate(run, where, room, parts)


def weight(run: ReportedRun) -> int:
    """Return what sorts runs by what they are needed for, the most needed first.

    Those that decide claims and reproduce a figure of the paper come before those that do one.
    """
    return -(bool(run.figure) + run.decides)


def _add_claims(study: ShownStudy, room: Room, parts: Any) -> None:
    """Add the claims of a study while there is room."""
    runs = {run.run.path: run for run in study.runs}
    for order, one in enumerate(study.study.judged, start=1):
        claim = shown_claim(one, runs)
        if room.holds(parts.claim_row(claim, order)):
            study.claims.append(claim)


def _illustrate(shown: ShownRun, where: Sequence[str], room: Room, parts: Any) -> None:
    """Add the figures of a run and its phase diagram while there is room."""
    run = shown.run
    for found in pictures_of(run.directory, run.study, where):
        if isinstance(found, NotDrawn):
            sentence = shown_not_drawn(found)
            if room.holds(parts.not_drawn(sentence)):
                shown.not_drawn.append(sentence)
        elif room.holds(parts.figure(picture := shown_picture(found), shown)):
            shown.pictures.append(picture)
        if room.is_full:
            return
    shown.diagram = _diagram(run, where)
    if shown.diagram and not room.holds(parts.diagram(shown)):
        shown.diagram = ""
        return
    shown.left_out = False


def _diagram(run: ReportedRun, where: Sequence[str]) -> str:
    """The phase diagram of a run as JSON that can stand in a page; empty for none."""
    heatmap = figures_of(run.study).get("heatmap")
    if heatmap is None:
        return ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they were said of the directory already
        found = explorable(chosen_data(load_figure_data(run.directory), where), heatmap)
    return "" if found is None else htmlsafe_json_dumps(found, separators=(",", ":"))


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
        "version": VERSION,
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
    return f"Written {datetime.now(UTC):%Y-%m-%d} with overfit {VERSION}{of}."


def _counted(papers: Sequence[ReportedPaper]) -> str:
    """How much was judged, in words."""
    claims = sum(len(paper.judged) for paper in papers)
    runs = sum(len(study.runs) for paper in papers for study in paper.studies)
    own = [paper for paper in papers if paper.paper]
    by = f"by {runs} run {'directory' if runs == 1 else 'directories'}"
    return f"{plural(claims, 'claim')} of {plural(len(own), 'paper')} {by}"


def write_report(
    papers: Sequence[ReportedPaper],
    folder: Path,
    where: Sequence[str] = (),
    unexpected: Mapping[str, str] | None = None,
    *,
    flag: str = "--out",
) -> list[Path]:
    """Write a report as a page, in Markdown, JSON and JUnit, with its verdicts; return the paths.

    Args:
        papers: what is reported.
        folder: where to write.
        where: the conditions that chose the cells.
        unexpected: what is wrong with the verdict of a claim, by `study/claim`, where they were
            held to expected ones.
        flag: what names the folder, for messages.

    Raises:
        UserError: if they can't be written.
    """
    make_folder(folder, flag)
    judged = [one for paper in papers for one in paper.judged]
    contents = {
        "index.html": page(papers, where),
        "report.md": markdown(papers, unexpected),
        "claims.json": claims_json(papers),
        "junit.xml": junit(judged, unexpected),
        "verdicts.toml": as_expected(judged),
    }
    for name, text in contents.items():
        try:
            write_whole(folder / name, text.encode())
        except OSError as error:
            raise UserError(f"{flag} {folder}: {name}: {reason_of(error)}.", exit_code=1) from error
    return [folder / name for name in contents]
