"""What the page's templates show: texts of papers, studies, claims and runs, safe to look at."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from overfit_cli.plain_text import visible
from overfit_cli.report.contents import ReportedPaper, ReportedRun, ReportedStudy, again
from overfit_cli.report.judged import Judged
from overfit_cli.report.pictures import NotDrawn, PagePicture
from overfit_cli.report.words import details_in_words, families, with_interval
from overfit_cli.words import plural


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
