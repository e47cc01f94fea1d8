"""The command `overfit list`: what there is to run, draw and judge."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated

import typer

from overfit_cli.cli.common import console


class Kind(enum.StrEnum):
    """What can be listed."""

    STUDIES = "studies"
    PRESETS = "presets"
    FIGURES = "figures"
    CLAIMS = "claims"


def list_everything(
    kind: Annotated[
        Kind | None,
        typer.Argument(metavar="KIND", help="studies, presets, figures or claims.  [default: all]"),
    ] = None,
) -> int:
    """List studies, presets, figures and claims."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    output = console()
    for chosen in Kind if kind is None else [kind]:
        headings, rows = _LISTINGS[chosen]
        table = Table(title=chosen.value.capitalize(), title_justify="left", box=SIMPLE_HEAD)
        for heading in headings:
            table.add_column(heading, overflow="fold")
        for row in rows():
            table.add_row(*row)
        output.print(table)
    return 0


def _studies() -> Iterable[tuple[str, ...]]:
    from overfit_cli.registry import installed_studies

    for study in installed_studies():
        yield study.name, study.title, study.paper


def _presets() -> Iterable[tuple[str, ...]]:
    from overfit_cli.sweeps.presets import find_preset, preset_names

    for name in preset_names():
        preset = find_preset(name)
        if preset is not None:
            content = preset.content
            yield name, content.title, content.study, ", ".join(content.figures)


def _figures() -> Iterable[tuple[str, ...]]:
    from overfit_cli.registry import figures_of, installed_studies

    for study in installed_studies():
        for figure in figures_of(study).values():
            yield figure.name, figure.title, figure.source, study.name


def _claims() -> Iterable[tuple[str, ...]]:
    from overfit_cli.registry import claims_of, installed_studies

    for study in installed_studies():
        for claim in claims_of(study):
            yield claim.name, claim.statement, claim.holds_where, claim.source


_Listing = tuple[tuple[str, ...], Callable[[], Iterable[tuple[str, ...]]]]

_LISTINGS: Mapping[Kind, _Listing] = {
    Kind.STUDIES: (("study", "what", "paper"), _studies),
    Kind.PRESETS: (("preset", "what", "study", "figures"), _presets),
    Kind.FIGURES: (("figure", "what", "stands for", "study"), _figures),
    Kind.CLAIMS: (("claim", "statement", "holds where", "source"), _claims),
}
