"""The command `overfit list`: what there is to run, draw and judge.

Its tables of parameters and verdicts are printed by other commands too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from overfit_cli.cli import completion
from overfit_cli.cli.options import argument
from overfit_cli.core.claim import KINDS as CLAIM_KINDS
from overfit_cli.core.claim import number_with_interval
from overfit_cli.core.errors import BadValue
from overfit_cli.core.figure import grid_figures
from overfit_cli.core.files import results_folder
from overfit_cli.core.options import alternatives
from overfit_cli.core.text import brief, console, most_alike, plural, print_folded, text_table

if TYPE_CHECKING:
    from rich.console import Console

    from overfit_cli.core.cell import Column
    from overfit_cli.core.parameters import ParameterInfo
    from overfit_cli.core.study import AnyStudy
    from overfit_cli.report.judge import Judged

KINDS = ("studies", "presets", "figures", "claims")
WIDEST_RANGE, LONGEST_CLAIM = 22, 40
"""Columns of a parameter's range, and of a claim that is shown whole."""

_COLOURS = {
    "holds": "green",
    "holds by far": "green",
    "fails": "bold red",
    "inconclusive": "yellow",
    "vacuous": "cyan",
    "not run": "dim",
}


def parameter_table(study: AnyStudy) -> Table:
    """Return the study's parameters as a table for the terminal."""
    from overfit_cli.core.parameters import describe

    rows = []
    for name, info in describe(study.parameters).items():
        limits = re.sub(r"\b1(0{5,})\b", lambda zeros: f"1e{len(zeros[1])}", info.limits)
        default = "none" if info.default is None else brief(info.default, 6)
        row = {"parameter": name, "meaning": _meaning(info), "range": limits, "default": default}
        rows.append(row)
    table = text_table(rows, whole=("parameter", "default"))
    for column in table.columns:
        column.max_width = WIDEST_RANGE if column.header == "range" else None
    return table


def _meaning(of: ParameterInfo | Column) -> str:
    """What a parameter or a column is, with its unit, and its symbol where that isn't its name."""
    from overfit_cli.core.parameters import symbol_text

    unit, symbol = f" ({of.unit})" if of.unit else "", symbol_text(of.symbol)
    return f"{of.meaning}{unit}{f', {symbol}' if symbol and symbol != of.name else ''}"


def verdict_table(judged: Sequence[Judged]) -> Table:
    """Return the verdicts at the level of all together, and by themselves where those differ."""
    from overfit_cli.report.words import by_itself

    rows = []
    for claim in judged:
        verdict = Text(claim.headline, style=_COLOURS[claim.headline])
        verdict.append(f", {by_itself(claim)}" if by_itself(claim) else "")
        if claim.decided_after_selection:
            verdict.append(", decided after selection")
        measured = number_with_interval(claim.measurement.value, claim.measurement.interval)
        row = {"claim": claim.name, "kind": claim.claim.kind, "verdict": verdict}
        rows.append({**row, "measured": measured})
    is_short = max((len(claim.name) for claim in judged), default=0) <= LONGEST_CLAIM
    whole = ("kind", "verdict", *(["claim"] if is_short else []))
    return text_table(rows, box=SIMPLE_HEAD, whole=whole)


def count_table(papers: Mapping[str, Sequence[Judged]]) -> Table:
    """Return how many claims of each paper and kind have each verdict, for the terminal."""
    from overfit_cli.report.contents import count_kinds

    groups = {cited: judged for cited, judged in papers.items() if judged}
    if len(groups) > 1:
        groups["all papers"] = [claim for judged in groups.values() for claim in judged]
    rows = [
        {"paper": "" if number else cited, "kind": kind}
        | {verdict: str(count or "") for verdict, count in counts.items()}
        for cited, judged in groups.items()
        for number, (kind, counts) in enumerate(count_kinds(judged).items())
    ]
    return text_table(rows, box=SIMPLE_HEAD, whole=("kind",), right=_COLOURS, styles=_COLOURS)


def list_everything(
    kind: str | None = argument(
        "KIND|STUDY",
        "What to list: studies, presets, figures, claims, or everything in one study.  "
        "[default: the studies, with the number of presets, figures and claims of each]",
        completion.listed,
        default=None,
    ),
    study: str | None = argument(
        "STUDY",
        "Study whose presets, figures or claims are listed in full.",
        completion.studies,
        default=None,
    ),
) -> int:
    """List studies, or the presets, figures and claims of one study.

    `overfit list STUDY` names everything in a study, `overfit list claims` prints a line for each
    claim, and `overfit list claims STUDY` prints the claims of one study in full.
    """
    from overfit_cli.core.registry import find_study, installed_studies, study_names
    from overfit_cli.functions.function_study import study_of_reference
    from overfit_cli.functions.references import is_reference

    output, given = console(), study or kind or ""
    if kind in KINDS[1:] and study is None:
        output.print(kind.capitalize())
        output.print(_lines(_all_pairs(kind, [*installed_studies()])))
    elif given in ("", KINDS[0]):
        _print_studies(output, [*installed_studies()])
    elif kind in KINDS or (study is None and (is_reference(given) or given in study_names())):
        found = study_of_reference(given) if is_reference(given) else find_study(given)
        if kind == "claims":
            _print_claims(output, found)
        elif kind in KINDS[1:]:
            output.print(_lines(_pairs(kind, found)))
        else:
            _print_study(output, found, given)
    else:
        near = most_alike(kind or "", [*KINDS, *(study_names() if study is None else ())])
        hint = f"; did you mean {near!r}?" if near else "; or a study alone."
        raise BadValue("kind", kind, f"it takes {alternatives(KINDS)}{hint}")
    return 0


# What there is


def _pairs(kind: str, study: AnyStudy) -> list[tuple[str, str]]:
    """What a study has of a kind: names, and a line about each.

    Figures are those that it can draw, which aren't all its own.
    """
    from overfit_cli.core.registry import claims_of, figures_of
    from overfit_cli.sweeps.presets import all_presets

    if kind == "figures":
        return [(figure.name, figure.title) for figure in figures_of(study).values()]
    if kind == "claims":
        return [(claim.name, claim.statement) for claim in claims_of(study)]
    return [
        (preset.name, f"{preset.title} {preset.quick.stand_in}")
        for preset in all_presets()
        if preset.study == study.name
    ]


def _kept(study: AnyStudy) -> dict[str, str]:
    """The verdicts of a study's claims that the report in `results/` has, by name."""
    from overfit_cli.report.verdict_files import kept_verdicts

    report = results_folder() / "report"
    return {
        each.claim: f"{each.verdict}{f' on {each.directory}' * bool(each.directory)}, in {report}"
        for each in kept_verdicts(report)
        if each.study == study.name
    }


def _all_pairs(kind: str, studies: Sequence[AnyStudy]) -> list[tuple[str, str]]:
    """What all studies have of a kind; a figure once, with the studies that have it."""
    found = [(pair, study.name) for study in studies for pair in _pairs(kind, study)]
    if kind != "figures":
        pairs = [pair for pair, _ in found]
        return sorted(pairs, key=lambda pair: pair[0]) if kind == "presets" else pairs
    owners = {(each.name, each.title): ["any study"] for each in grid_figures().values()}
    for pair, study in found:
        owners.setdefault(pair, []).append(study)
    return [
        (name, f"{of[0] if 'any study' in of else ', '.join(of)}: {title}")
        for (name, title), of in owners.items()
    ]


# Printing


def _lines(pairs: Iterable[tuple[str, str]]) -> Table:
    """Names with the line about each beside them."""
    rows = [{"name": name, "line": line} for name, line in pairs]
    table = text_table(rows, whole=("name",))
    table.show_header = False
    return table


def _print_studies(output: Console, studies: Sequence[AnyStudy]) -> None:
    width = max((len(study.name) for study in studies), default=0)
    for paper in sorted({study.paper for study in studies}, key=lambda each: str(each or "~")):
        output.print(f"{paper} ({paper.key})" if paper else "Other studies")
        for study in (each for each in studies if each.paper == paper):
            counts = [plural(len(_pairs(kind, study)), kind[:-1]) for kind in KINDS[1:]]
            words = "".join(f"{count:<13}" for count in counts).rstrip()
            print_folded(output, words, f"  {study.name:{width}}  ", " " * (width + 4))
            print_folded(output, study.title, "    ", "    ")
    print_folded(
        output,
        "`overfit list STUDY` names what a study has, `overfit list claims STUDY` prints its "
        "claims in full, and `overfit sweep STUDY --help` lists its parameters.",
    )


def _print_study(output: Console, study: AnyStudy, typed: str) -> None:
    print_folded(output, f"{study.name}: {study.title}" if study.title else study.name)
    if study.paper:
        print_folded(output, f"{study.paper}: {study.paper.title}, {study.paper.url}")
    kept, claims = _kept(study), _pairs("claims", study)
    sections = {
        "Presets": _lines(_pairs("presets", study)),
        "Parameters": parameter_table(study),
        "Columns": _lines((each.name, _meaning(each)) for each in study.columns),
        "Columns of logged steps": _lines((c.name, _meaning(c)) for c in study.trajectory_columns),
        "Figures": _lines(_pairs("figures", study)),
        "Claims": _lines(
            (name, kept.get(name, "not judged").partition(",")[0]) for name, _ in claims
        ),
    }
    for heading, table in sections.items():
        if table.rows:
            output.print()
            output.print(f"{heading} ({len(table.rows)})")
            output.print(table)
    output.print()
    print_folded(
        output,
        f"`overfit list claims {typed}` prints each claim in full, and `overfit sweep {typed} "
        "--help` lists the options of a sweep.",
    )


def _print_claims(output: Console, study: AnyStudy) -> None:
    from overfit_cli.core.registry import claims_of

    claims, kept = claims_of(study), _kept(study)
    if not claims:
        output.print(f"{study.name} has no claims.")
    for claim in claims:
        about = {
            "kind": f"{claim.kind}: {CLAIM_KINDS[claim.kind]}",
            "hypotheses": claim.hypotheses or "none",
            "holds where": claim.holds_where,
            "source": claim.source,
            "preset": claim.preset or "none",
            "verdict": kept.get(claim.name),
        }
        output.print(claim.name)
        lines = [f"{heading}: {text}" for heading, text in about.items() if text]
        for text in (claim.statement, *lines):
            print_folded(output, text, "  ", "  ", 78)
