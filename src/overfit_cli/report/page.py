"""The page of a report, which needs no other file; and its Markdown.

It opens with the findings and the counts of verdicts. Claims stand by paper, study and kind, with
a drawing of each number; the tool's own questions are folded where there are many. What it says
stands in `templates/`. Every text in it is freed of control characters and escaped.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import warnings
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jinja2 import Environment
from markupsafe import Markup

from overfit_cli.core import claim as claims
from overfit_cli.core import files, text
from overfit_cli.core.files import preset_folder
from overfit_cli.report import contents, judge, pictures, words
from overfit_cli.stats.intervals import LEVEL, exact_ends
from overfit_cli.sweeps import manifest, presets

STYLES = ("page.css", "diagrams.css", "narrow.css", "print.css")
SCRIPTS = tuple(
    f"{name}.js"
    for name in ("elements", "claims", "figures", "links", "reading", "panel", "diagrams", "runs")
)
"""The parts of the page's style and of its script, in order."""

MOST_OPEN = 60
"""The most claims of a page that has those of every kind unfolded."""

_NAMES = {
    "kinds": claims.KINDS,
    "verdicts": claims.VERDICTS,
    "words": words,
    "repetition": contents.repetition,
    "family_sentences": judge.family_sentences,
}
"""What all templates of a report know."""


def write_report(
    papers: Sequence[contents.Entry],
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
    files.make_folder(folder, name)
    written = {
        folder / "index.html": page(papers, conditions),
        folder / "report.md": markdown(papers, unexpected),
        folder / contents.CLAIMS_FILE: contents.claims_json(papers),
    }
    for file, content in written.items():
        files.write_user_file(file, content.encode(), name)
    return [*written]


def markdown(papers: Sequence[contents.Entry], unexpected: Mapping[str, str] | None = None) -> str:
    """Return the verdicts by paper; for each study a table of claims, and its runs."""
    template = words.templates().get_template("report.md")
    return template.render(_NAMES, papers=papers, unexpected=unexpected or {})


def page(papers: Sequence[contents.Entry], conditions: Sequence[str] = ()) -> str:
    """Return the page: every claim and run of these papers, with the figures of the runs.

    It draws the figures, which takes a second or two for each run. The page's policy permits its
    own script only.
    """
    studies = [study for paper in papers for study in paper["studies"]]
    runs = [run for study in studies for run in study["runs"]]
    pictures.draw_all(runs, conditions)
    judged = [claim for paper in papers for claim in paper["judged"]]
    commit = manifest.package_commit()
    template = _pages().get_template("page.html")
    return template.render(
        papers=papers,
        runs={run["path"]: run for run in runs},
        conditions=conditions,
        judged=judged,
        by_kind=contents.count_kinds(judged),
        total=words.count_verdicts(claim.headline for claim in judged),
        cells=sum(run["done"] + sum(run["reasons"].values()) for run in runs),
        findings=[(paper, shown) for paper in papers if (shown := contents.findings(paper))],
        stand_ins=[(each["study"].name, text) for each in studies for text in each["stand_ins"]],
        all_open=len(judged) <= MOST_OPEN,
        written=f"{datetime.now(UTC):%Y-%m-%d} with overfit {text.VERSION}"
        + (f" (commit {commit[:10]})" if commit else ""),
    )


@functools.cache
def _pages() -> Environment:
    environment = words.templates(autoescape=True)
    style, script = _concatenate(STYLES), _concatenate(SCRIPTS)
    script = f'"use strict";\n(() => {{\n{script}}})();\n'
    environment.globals |= _NAMES | {
        "version": text.VERSION,
        "style": Markup(style),
        "style_hash": _digest(style),
        "script": Markup(script),
        "script_hash": _digest(script),
        "rates": lambda judged: simulated_rates().get(judged.address),
        "number_parts": claims.number_parts,
        "bar": bar,
    }
    return environment


def _concatenate(names: Sequence[str]) -> str:
    return "".join((words.TEMPLATES / name).read_text(encoding="utf-8") for name in names)


def _digest(content: str) -> str:
    return base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()


@functools.cache
def simulated_rates() -> Mapping[str, str]:
    """Return the error rates of the papers' claims in words, by the claims' addresses.

    Without the file that is shipped with the presets, or with a damaged one, there are none.
    """
    path = preset_folder() / presets.ERROR_RATES
    try:
        rows = pd.read_csv(path).to_dict("records")
        return {f"{row['study']}/{row['claim']}": _rates_in_words(row) for row in rows}
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        said = f"{path}: it can't be read ({error!r}), so that no error rates of claims are shown."
        warnings.warn(said, UserWarning, stacklevel=2)
        return {}


def _rates_in_words(row: Mapping[Any, Any]) -> str:
    wrong = []
    for world in ("false: holds", "true: fails"):
        low, high = (ends[row[world]] for ends in exact_ends(row["runs"], 1 - LEVEL))
        ends = f"{100 * low:.1f} to {text.percent(high, 1)}"
        wrong.append(f"{row[world]} of {row['runs']} worlds ({ends})")
    held = f"Simulated: it held in {wrong[0]} where it is false"
    worlds = text.plural(row["worlds"], "world")
    clauses = f" A broken clause is told in {row['caught']} of {worlds}." * bool(row["worlds"])
    return f"{held}, failed in {wrong[1]} where it is true; 5 % are allowed.{clauses}"


# Drawings of numbers

WIDTH, DECADE, ROOM, REQUIRED = 140.0, 10.0, 0.12, 6.0
"""A drawing's units, the span from which on it is logarithmic, the share of its span that is left
on either side, and the width of the number that a theorem requires."""


def bar(measurement: claims.Measurement) -> dict[str, Any] | None:
    """Return where the parts of a drawing lie: its margin, interval, value and target.

    None without a finite number and something around it. The scale is logarithmic where all numbers
    are positive and span more than `DECADE`; an open end reaches the drawing's edge.
    """
    value, interval, target = measurement.value, measurement.interval, measurement.target
    ends = [interval.low, interval.high] if interval else [np.nan, np.nan]
    around = [*(measurement.margin or (np.nan, np.nan)), *ends]
    if value is None or not np.isfinite(value) or not (interval or measurement.margin):
        return None
    numbers = np.array([*around, value, np.nan if target is None else target])
    finite = numbers[np.isfinite(numbers)]
    is_log = finite.min() > 0 and finite.max() > DECADE * finite.min()
    scaled = np.log if is_log else np.positive
    low, high = scaled(finite.min()), scaled(finite.max())
    room = ROOM * (high - low) or abs(low) or 1.0
    with np.errstate(invalid="ignore"):  # where an end is open, and below zero
        places = WIDTH * (scaled(numbers) - low + room) / (high - low + 2 * room)
    placed = np.where(np.isinf(numbers), np.where(numbers < 0, 0.0, WIDTH), places).tolist()
    margin, drawn = (None if np.isnan(pair).any() else pair for pair in (placed[:2], placed[2:4]))
    at, aim = placed[4], None if target is None else placed[5]
    if aim is not None and margin is None:
        margin, aim = [aim - REQUIRED / 2, aim + REQUIRED / 2], None
    scale = "logarithmic" if is_log else "linear"
    return {"margin": margin, "interval": drawn, "value": at, "target": aim, "scale": scale}
