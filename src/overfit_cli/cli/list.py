"""The command `overfit list`: what there is to run, draw and judge."""

from __future__ import annotations

import enum
import textwrap
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from overfit_cli.cli import completion
from overfit_cli.cli.common import console
from overfit_cli.cli.options import read_one_of

if TYPE_CHECKING:
    from overfit_cli.study import AnyStudy


class Kind(enum.StrEnum):
    """What can be listed."""

    STUDIES = "studies"
    PRESETS = "presets"
    FIGURES = "figures"
    CLAIMS = "claims"


Entry = tuple[str, str, tuple[tuple[str, str], ...]]
"""A name, a line about it, and what else there is to say, each under a heading."""


def list_everything(
    asked: Annotated[
        str | None,
        typer.Argument(
            metavar="KIND",
            help="studies, presets, figures or claims.  [default: all]",
            autocompletion=completion.one_of(*Kind),
        ),
    ] = None,
    study: Annotated[
        str | None,
        typer.Argument(
            metavar="STUDY",
            help="List those of one study, in full.",
            autocompletion=completion.studies,
        ),
    ] = None,
) -> int:
    """List studies, presets, figures and claims, one per line; in full for one study."""
    from overfit_cli.registry import find_study, installed_studies

    kind = None if asked is None else Kind(read_one_of("KIND", asked, [*Kind]))
    output = console()
    if study is not None:
        for name, line, more in _ENTRIES[kind or Kind.STUDIES]([find_study(study)]):
            output.print(name)
            for heading, text in (("", line), *more):
                said = f"{heading}: {text}" if heading else text
                for part in textwrap.wrap(said, 76):
                    output.print(f"  {part}")
        return 0
    for chosen in Kind if kind is None else [kind]:
        entries = list(_ENTRIES[chosen](installed_studies()))
        width = max((len(name) for name, _, _ in entries), default=0)
        output.print(chosen.value.capitalize())
        for name, line, _ in entries:
            room = output.width - width - 4 if output.is_terminal else len(line)
            output.print(f"  {name:{width}}  {_shortened(line, room)}")
        output.print()
    return 0


def _shortened(line: str, room: int) -> str:
    """A line cut between words to the room there is."""
    return line if len(line) <= room else textwrap.shorten(line, max(room, 12), placeholder=" …")


def _studies(studies: Iterable[AnyStudy]) -> Iterable[Entry]:
    for study in studies:
        paper = study.paper
        about = (("paper", f"{paper}: {paper.title}, {paper.url}"),) if paper else ()
        yield study.name, study.title, about


def _presets(studies: Iterable[AnyStudy]) -> Iterable[Entry]:
    from overfit_cli.registry import find_study
    from overfit_cli.sweeps.presets import find_preset, preset_names

    wanted = {study.name for study in studies}
    for name in preset_names():
        preset = find_preset(name)
        if preset is not None and preset.content.study in wanted:
            content = preset.content
            figures = ", ".join(content.figures)
            study = find_study(content.study)
            about = [("study", content.study), ("figures", figures)]
            if study.paper:
                about.append(("reproduce", f"{study.paper.key}/{preset.reproduces}"))
            yield name, content.title, tuple(about)


def _figures(studies: Iterable[AnyStudy]) -> Iterable[Entry]:
    from overfit_cli.registry import figures_of
    from overfit_cli.standard_figures import any_grid

    general = any_grid()
    for figure in general.values():
        yield figure.name, f"any study: {figure.title}", ()
    for study in studies:
        for figure in figures_of(study).values():
            about = (("stands for", figure.source),) if figure.source else ()
            if figure.name not in general or figure.title != general[figure.name].title:
                yield figure.name, f"{study.name}: {figure.title}", about


def _claims(studies: Iterable[AnyStudy]) -> Iterable[Entry]:
    from overfit_cli.registry import claims_of

    for study in studies:
        for claim in claims_of(study):
            about = (("holds where", claim.holds_where), ("source", claim.source))
            yield claim.name, claim.statement, (*about, ("preset", claim.preset or "none"))


_ENTRIES: Mapping[Kind, Callable[[Iterable[AnyStudy]], Iterable[Entry]]] = {
    Kind.STUDIES: _studies,
    Kind.PRESETS: _presets,
    Kind.FIGURES: _figures,
    Kind.CLAIMS: _claims,
}
