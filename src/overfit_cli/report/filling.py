"""Filling of the page: what is shown is added in the order of its weight, while there is room."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from jinja2.utils import htmlsafe_json_dumps

from overfit_cli.registry import figures_of
from overfit_cli.report.contents import ReportedRun
from overfit_cli.report.diagrams import explorable
from overfit_cli.report.pictures import NotDrawn, pictures_of
from overfit_cli.report.room import Room
from overfit_cli.report.shown import (
    ShownRun,
    ShownStudy,
    shown_claim,
    shown_not_drawn,
    shown_picture,
)
from overfit_cli.sweeps.loading import load_figure_data
from overfit_cli.sweeps.selection import chosen_data


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
