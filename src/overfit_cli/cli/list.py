"""The command `overfit list`: what there is to run, draw and judge.

Its tables of parameters, columns and verdicts are used by other commands and by the documents.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from overfit_cli.cli import completion
from overfit_cli.core.console import console
from overfit_cli.core.text import visible

if TYPE_CHECKING:
    from overfit_cli.core.parameters import ParameterInfo
    from overfit_cli.core.study import AnyStudy
    from overfit_cli.report.contents import ReportedPaper
    from overfit_cli.report.judge import Judged


PARAMETER_HEADINGS = ("parameter", "symbol", "default", "takes", "meaning")
COLUMN_HEADINGS = ("column", "symbol", "meaning")


def parameter_rows(study: AnyStudy) -> list[tuple[str, ...]]:
    """Return one row per parameter, under `PARAMETER_HEADINGS`."""
    from overfit_cli.core.parameters import describe, symbol_text

    return [
        (
            info.name,
            symbol_text(info.symbol),
            _default(info),
            info.accepts,
            info.meaning + (f" ({info.unit})" if info.unit else ""),
        )
        for info in describe(study.parameters).values()
    ]


def _default(info: ParameterInfo) -> str:
    if info.default is None:
        return "none"
    return f"{info.default:g}" if info.kind == "float" else str(info.default)


def column_rows(study: AnyStudy, *, trajectories: bool = False) -> list[tuple[str, ...]]:
    """Return one row per measured column, of cells or of trajectories, under `COLUMN_HEADINGS`."""
    from overfit_cli.core.parameters import symbol_text

    columns = study.trajectory_columns if trajectories else study.columns
    return [
        (
            column.name,
            symbol_text(column.symbol),
            column.meaning + (f" ({column.unit})" if column.unit else ""),
        )
        for column in columns
    ]


def parameter_table(study: AnyStudy) -> Table:
    """Return the study's parameters as a table for the terminal."""
    table = Table(title=f"Parameters of {study.name} (--NAME RANGE)", box=SIMPLE_HEAD)
    for heading in PARAMETER_HEADINGS:
        table.add_column(heading, overflow="fold")
    for row in parameter_rows(study):
        table.add_row(*row)
    return table


_COLOURS = {
    "holds": "green",
    "fails": "bold red",
    "inconclusive": "yellow",
    "vacuous": "cyan",
    "not run": "dim",
}


def verdict_table(judged: Sequence[Judged]) -> Table:
    """Return the verdicts as a table for the terminal.

    Where the verdict of all claims together is another one, it stands below a claim's own.
    """
    from overfit_cli.report.contents import number_with_interval

    table = Table(box=SIMPLE_HEAD)
    table.add_column("claim", overflow="fold")
    table.add_column("kind", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("measured", overflow="fold")
    for claim in judged:
        measurement = claim.measurement
        verdict = Text(measurement.verdict, style=_COLOURS[measurement.verdict])
        if claim.headline != measurement.verdict:
            verdict.append(f", of all {claim.headline}", style=_COLOURS[claim.headline])
        table.add_row(
            visible(claim.name),
            claim.claim.kind,
            verdict,
            number_with_interval(measurement.value, measurement.interval),
        )
    return table


def count_table(papers: Sequence[ReportedPaper]) -> Table:
    """Return how many claims of each paper and kind have each verdict, for the terminal."""
    from overfit_cli.core.claim import KINDS, VERDICTS
    from overfit_cli.report.contents import count_rows

    rows = count_rows(papers)
    table = Table(box=SIMPLE_HEAD)
    table.add_column("paper", overflow="fold")
    table.add_column("kind", no_wrap=True)
    for verdict in VERDICTS:
        table.add_column(verdict, justify="right", style=_COLOURS[verdict])
    totals = [
        (
            "all papers",
            kind,
            {name: sum(c[name] for _, k, c in rows if k == kind) for name in VERDICTS},
        )
        for kind in KINDS
        if len({cited for cited, _, _ in rows}) > 1
    ]
    previous = ""
    for cited, kind, counts in [*rows, *(total for total in totals if any(total[2].values()))]:
        name = "" if cited == previous else visible(cited)
        table.add_row(name, kind, *(str(counts[verdict] or "") for verdict in VERDICTS))
        previous = cited
    return table


Kind = Literal["studies", "presets", "figures", "claims"]
Entry = tuple[str, str, tuple[tuple[str, str], ...]]
"""A name, a line about it, and what else there is to say, each under a heading."""


def list_everything(
    kind: Annotated[
        Kind | None, typer.Argument(metavar="KIND", help="What to list.  [default: all]")
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
    from overfit_cli.core.registry import find_study, installed_studies
    from overfit_cli.functions.function_study import study_of_reference
    from overfit_cli.functions.references import is_reference

    output = console()
    if study is not None:
        chosen_study = study_of_reference(study) if is_reference(study) else find_study(study)
        entries = list(_ENTRIES[kind or "studies"]([chosen_study]))
        if not entries:
            output.print(f"{chosen_study.name} has no {kind}.")
        for name, line, more in entries:
            output.print(name)
            for heading, text in (("", line), *more):
                said = f"{heading}: {text}" if heading else text
                for part in textwrap.wrap(said, 76):
                    output.print(f"  {part}")
        return 0
    for chosen in _ENTRIES if kind is None else [kind]:
        entries = list(_ENTRIES[chosen](installed_studies()))
        width = max((len(name) for name, _, _ in entries), default=0)
        output.print(chosen.capitalize())
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
    from overfit_cli.core.registry import find_study
    from overfit_cli.sweeps.presets import find_preset, preset_names

    wanted = {study.name for study in studies}
    for name in preset_names():
        preset = find_preset(name)
        if preset is not None and preset.content.study in wanted:
            content = preset.content
            figures = ", ".join(content.figures)
            study = find_study(content.study)
            about = [("study", content.study), ("figures", figures)]
            if content.quick.stand_in:
                about.append(("quick", content.quick.stand_in))
            if study.paper:
                about.append(("reproduce", f"{study.paper.key}/{preset.reproduces}"))
            yield name, content.title, tuple(about)


def _figures(studies: Iterable[AnyStudy]) -> Iterable[Entry]:
    from overfit_cli.core.figure import grid_figures
    from overfit_cli.core.registry import figures_of

    general = grid_figures()
    for figure in general.values():
        yield figure.name, f"any study: {figure.title}", ()
    for study in studies:
        for figure in figures_of(study).values():
            about = (("stands for", figure.source),) if figure.source else ()
            if figure.name not in general or figure.title != general[figure.name].title:
                yield figure.name, f"{study.name}: {figure.title}", about


def _claims(studies: Iterable[AnyStudy]) -> Iterable[Entry]:
    from overfit_cli.core.claim import KINDS
    from overfit_cli.core.registry import claims_of

    for study in studies:
        for claim in claims_of(study):
            about = (
                ("kind", f"{claim.kind}: {KINDS[claim.kind]}"),
                ("hypotheses", claim.hypotheses or "none"),
                ("holds where", claim.holds_where),
                ("source", claim.source),
            )
            yield claim.name, claim.statement, (*about, ("preset", claim.preset or "none"))


_ENTRIES: Mapping[Kind, Callable[[Iterable[AnyStudy]], Iterable[Entry]]] = {
    "studies": _studies,
    "presets": _presets,
    "figures": _figures,
    "claims": _claims,
}
