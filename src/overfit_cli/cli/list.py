"""The command `overfit list`: what there is to run, draw and judge.

Its table of parameters is printed by `sweep` too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich.table import Table

from overfit_cli.cli import options as cli
from overfit_cli.core.claim import KINDS as CLAIM_KINDS
from overfit_cli.core.errors import BadValue
from overfit_cli.core.figure import grid_figures
from overfit_cli.core.options import alternatives
from overfit_cli.core.text import brief, console, plural, print_folded, suggestion, text_table

if TYPE_CHECKING:
    from rich.console import Console

    from overfit_cli.core.cell import Column
    from overfit_cli.core.parameters import ParameterInfo
    from overfit_cli.core.study import AnyStudy

KINDS = ("studies", "presets", "figures", "claims")


def parameter_table(study: AnyStudy) -> Table:
    """Return the study's parameters as a table for the terminal."""
    from overfit_cli.core.parameters import describe

    rows = [
        {
            "parameter": name,
            "meaning": _meaning(info),
            "range": info.limits,
            "default": "none" if info.default is None else brief(info.default, 6),
        }
        for name, info in describe(study.parameters).items()
    ]
    return text_table(rows, whole=("parameter", "default"))


def _meaning(of: ParameterInfo | Column) -> str:
    """What a parameter or a column is, with its unit, and its symbol where that isn't its name."""
    from overfit_cli.core.parameters import symbol_text

    unit, symbol = f" ({of.unit})" if of.unit else "", symbol_text(of.symbol)
    return f"{of.meaning}{unit}{f', {symbol}' if symbol and symbol != of.name else ''}"


def list_everything(
    kind: str | None = cli.argument(
        "KIND|STUDY",
        "What to list: studies, presets, figures, claims, or everything in one study.  "
        "[default: the studies, with the number of presets, figures and claims of each]",
        cli.complete_listed,
        default=None,
    ),
    study: str | None = cli.argument(
        "STUDY",
        "Study whose presets, figures or claims are listed in full.",
        cli.complete_studies,
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
            _print_study(output, found)
    else:
        names = [*KINDS, *study_names()]
        hint = suggestion(given, names) if study is None else "the kind comes first."
        raise BadValue("kind", kind, f"it takes {alternatives(KINDS)}, or a study; {hint}")
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


def _all_pairs(kind: str, studies: Sequence[AnyStudy]) -> list[tuple[str, str]]:
    """What all studies have of a kind; a figure once, with the studies that have it."""
    owners = dict[tuple[str, str], list[str]]()
    for study in studies:
        for pair in _pairs(kind, study):
            owners.setdefault(pair, []).append(study.name)
    if kind == "figures":
        usual = {(each.name, each.title) for each in grid_figures().values()}
        of = {pair: "any study" if pair in usual else ", ".join(owners[pair]) for pair in owners}
        return [(name, f"{of[name, title]}: {title}") for name, title in owners]
    return sorted(owners) if kind == "presets" else [*owners]


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


def _print_study(output: Console, study: AnyStudy) -> None:
    print_folded(output, f"{study.name}: {study.title}" if study.title else study.name)
    if study.paper:
        print_folded(output, f"{study.paper}: {study.paper.title}, {study.paper.url}")
    sections = {
        "Presets": _lines(_pairs("presets", study)),
        "Parameters": parameter_table(study),
        "Columns": _lines((each.name, _meaning(each)) for each in study.columns),
        "Columns of logged steps": _lines((c.name, _meaning(c)) for c in study.trajectory_columns),
        "Figures": _lines(_pairs("figures", study)),
        "Claims": _lines(_pairs("claims", study)),
    }
    for heading, table in sections.items():
        if table.rows:
            output.print()
            output.print(f"{heading} ({len(table.rows)})")
            output.print(table)


def _print_claims(output: Console, study: AnyStudy) -> None:
    from overfit_cli.core.registry import claims_of

    claims = claims_of(study)
    if not claims:
        output.print(f"{study.name} has no claims.")
    for claim in claims:
        about = {
            "kind": f"{claim.kind}: {CLAIM_KINDS[claim.kind]}",
            "hypotheses": claim.hypotheses or "none",
            "holds where": claim.holds_where,
            "source": claim.source,
            "preset": claim.preset or "none",
        }
        output.print(claim.name)
        lines = [f"{heading}: {text}" for heading, text in about.items() if text]
        for text in (claim.statement, *lines):
            print_folded(output, text, "  ", "  ", 78)
