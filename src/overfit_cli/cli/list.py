"""The command `overfit list`: what there is to run, draw and judge.

Its tables of parameters, columns and verdicts are used by other commands and by the documents.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from overfit_cli.cli import completion
from overfit_cli.core.console import console, print_folded
from overfit_cli.core.errors import BadValue
from overfit_cli.core.files import results_folder
from overfit_cli.core.text import most_alike, plural, visible
from overfit_cli.core.values import alternatives

if TYPE_CHECKING:
    from rich.console import Console

    from overfit_cli.core.cell import Column
    from overfit_cli.core.parameters import ParameterInfo
    from overfit_cli.core.study import AnyStudy
    from overfit_cli.report.contents import ReportedPaper
    from overfit_cli.report.expected import KeptVerdict
    from overfit_cli.report.judge import Judged


PARAMETER_HEADINGS = ("parameter", "symbol", "default", "takes", "meaning")


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


def _column_entries(columns: Sequence[Column]) -> list[tuple[str, str]]:
    from overfit_cli.core.parameters import symbol_text

    return [
        (
            column.name,
            column.meaning
            + (f", {symbol_text(column.symbol)}" if column.symbol else "")
            + (f" ({column.unit})" if column.unit else ""),
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


LONGEST_NAME = 40
"""Names of claims up to so many columns are shown whole; beside them numbers fold."""


def verdict_table(judged: Sequence[Judged]) -> Table:
    """Return the verdicts as a table for the terminal.

    Where the verdict of all claims together is another one, it stands below a claim's own.
    """
    from overfit_cli.core.claim import number_with_interval

    table = Table(box=SIMPLE_HEAD)
    longest = max((len(claim.name) for claim in judged), default=0)
    table.add_column("claim", overflow="fold", no_wrap=longest <= LONGEST_NAME)
    table.add_column("kind", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("measured", overflow="fold")
    for claim in judged:
        measurement = claim.measurement
        verdict = Text(measurement.verdict, style=_COLOURS[measurement.verdict])
        if claim.headline != measurement.verdict:
            verdict.append(f", of all {claim.headline}", style=_COLOURS[claim.headline])
        if claim.decided_after_selection:
            verdict.append(", decided after selection")
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


Entry = tuple[str, str, tuple[tuple[str, str], ...]]
"""A name, a line about it, and what else there is to say, each under a heading."""


def list_everything(
    kind: Annotated[
        str | None,
        typer.Argument(
            metavar="KIND|STUDY",
            help="What to list: studies, presets, figures, claims, or everything in one study.  "
            "[default: the studies, with the number of presets, figures and claims of each]",
            autocompletion=completion.listed,
        ),
    ] = None,
    study: Annotated[
        str | None,
        typer.Argument(
            metavar="STUDY",
            help="Study whose presets, figures or claims are listed in full.",
            autocompletion=completion.studies,
        ),
    ] = None,
) -> int:
    """List studies, or the presets, figures and claims of one study.

    `overfit list STUDY` names everything in a study, `overfit list claims` prints a line for each
    claim, and `overfit list claims STUDY` prints the claims of one study in full.
    """
    from overfit_cli.core.registry import installed_studies, study_names
    from overfit_cli.functions.references import is_reference

    output = console()
    if kind is None:
        _print_studies(output, list(installed_studies()))
    elif kind in _ENTRIES:
        if study is None:
            output.print(kind.capitalize())
            lines = [(name, line) for name, line, _ in _ENTRIES[kind](installed_studies())]
            _print_entries(output, lines)
        else:
            _print_in_full(output, kind, _find(study))
    elif study is None and (is_reference(kind) or kind in study_names()):
        _print_study(output, _find(kind), kind)
    else:
        near = most_alike(kind, [*_ENTRIES, *(study_names() if study is None else ())])
        hint = f"; did you mean {near!r}?" if near else "; or a study alone."
        raise BadValue("kind", kind, f"it takes {alternatives(_ENTRIES)}{hint}")
    return 0


def _find(name: str) -> AnyStudy:
    from overfit_cli.core.registry import find_study
    from overfit_cli.functions.function_study import study_of_reference
    from overfit_cli.functions.references import is_reference

    return study_of_reference(name) if is_reference(name) else find_study(name)


def _print_studies(output: Console, studies: Sequence[AnyStudy]) -> None:
    width = max((len(study.name) for study in studies), default=0)
    for paper in sorted({study.paper for study in studies}, key=lambda each: str(each or "~")):
        output.print(f"{paper} ({paper.key})" if paper else "Other studies")
        for study in studies:
            if study.paper == paper:
                print_folded(output, _counts(study), f"  {study.name:{width}}  ", " " * (width + 4))
                print_folded(output, study.title, "    ", "    ")
    print_folded(
        output,
        "`overfit list STUDY` names what a study has, `overfit list claims STUDY` prints its "
        "claims in full, and `overfit sweep STUDY --help` lists its parameters.",
    )


def _counts(study: AnyStudy) -> str:
    from overfit_cli.core.registry import claims_of, figures_of

    presets, figures, claims = [*_presets([study])], figures_of(study), claims_of(study)
    counts = [(len(presets), "preset"), (len(figures), "figure"), (len(claims), "claim")]
    return "".join(f"{plural(count, noun):<13}" for count, noun in counts).rstrip()


def _print_study(output: Console, study: AnyStudy, typed: str) -> None:
    from overfit_cli.core.registry import claims_of, figures_of

    print_folded(output, f"{study.name}: {study.title}" if study.title else study.name)
    if study.paper:
        print_folded(output, f"{study.paper}: {study.paper.title}, {study.paper.url}")
    # The paper is named above.
    presets = [(name, line.replace(f"{study.paper}, ", "")) for name, line, _ in _presets([study])]
    figures = [(figure.name, figure.title) for figure in figures_of(study).values()]
    _print_section(output, "Presets", presets)
    _print_parameters(output, study)
    _print_section(output, "Columns", _column_entries(study.columns))
    _print_section(output, "Columns of logged steps", _column_entries(study.trajectory_columns))
    _print_section(output, "Figures", figures)
    _print_claims(output, study)
    output.print()
    if claims_of(study):
        print_folded(output, f"`overfit list claims {typed}` prints each claim in full.")
    print_folded(output, f"`overfit sweep {typed} --help` lists the options of a sweep.")


def _print_section(output: Console, heading: str, entries: Sequence[tuple[str, str]]) -> None:
    if entries:
        output.print()
        output.print(f"{heading} ({len(entries)})")
        _print_entries(output, entries)


def _print_parameters(output: Console, study: AnyStudy) -> None:
    table = Table(box=None, padding=(0, 1), pad_edge=False, header_style="")
    for heading in ("", "parameter", "meaning", "range", "default"):
        table.add_column(heading, overflow="fold", no_wrap=heading in ("parameter", "default"))
    table.columns[3].max_width = WIDEST_RANGE
    for name, symbol, default, accepts, meaning in parameter_rows(study):
        named = f", {symbol}" if symbol and symbol != name else ""
        table.add_row("", name, f"{meaning}{named}", _as_range(accepts), default)
    if table.rows:
        output.print()
        output.print(f"Parameters ({len(table.rows)})")
        output.print(table)


def _as_range(accepts: str) -> str:
    """Return the accepted values as a range: `≥ 1, ≤ 100` for `a number of at least 1 and ...`."""
    for words, sign in _SIGNS:
        accepts = accepts.replace(words, sign)
    return re.sub(r"\b1(0{5,})\b", lambda zeros: f"1e{len(zeros[1])}", accepts)


WIDEST_RANGE = 22
"""The columns that a terminal gives to the range of a parameter."""

_SIGNS = (
    ("one of ", ""),
    ("a whole number ", ""),
    ("a number ", ""),
    ("of at least ", "≥ "),
    ("above ", "> "),
    (" and up to ", ", ≤ "),
    (" and below ", ", < "),
)


def _print_claims(output: Console, study: AnyStudy) -> None:
    names = [name for name, _, _ in _claims([study])]
    if names:
        verdicts = _kept(study)
        report = f", with their verdicts in {_report()}" if verdicts else ""
        output.print()
        output.print(f"Claims ({len(names)}){report}")
        groups = dict[str, list[str]]()
        for name in names:
            verdict = verdicts[name].verdict if name in verdicts else "not judged"
            groups.setdefault(verdict, []).append(name)
        for group in sorted(groups, key=[*_COLOURS, "not judged"].index):
            indent = "  "
            if verdicts:
                output.print(f"  {group} ({len(groups[group])})")
                indent = "    "
            print_folded(output, ", ".join(groups[group]), indent, indent)


def _print_entries(output: Console, entries: Sequence[tuple[str, str]]) -> None:
    """Print names with what they are beside them, folded; below a name that is too long."""
    width = min(max((len(name) for name, _ in entries), default=0), WIDEST_NAME)
    for name, line in entries:
        first, further = f"  {name:{width}}  ", " " * (width + 4)
        if len(name) > width and output.is_terminal:
            output.print(f"  {name}")
            first = further
        print_folded(output, line, first, further)


WIDEST_NAME = 28
"""The columns of names beside what they are; a longer name has a line of its own."""


def _print_in_full(output: Console, kind: str, study: AnyStudy) -> None:
    entries = [*_ENTRIES[kind]([study])]
    if not entries:
        output.print(f"{study.name} has no {kind}.")
    verdicts = _kept(study) if kind == "claims" else {}
    for name, line, more in entries:
        output.print(name)
        for heading, text in (("", line), *more, *_verdict(verdicts.get(name))):
            said = f"{heading}: {text}" if heading else text
            for part in textwrap.wrap(said, 76):
                output.print(f"  {part}")


def _verdict(kept: KeptVerdict | None) -> Iterator[tuple[str, str]]:
    if kept is not None:
        on = f" on {kept.directory}" if kept.directory else ""
        yield "verdict", f"{kept.verdict}{on}, in {_report()}"


def _report() -> Path:
    return results_folder() / "report"


def _kept(study: AnyStudy) -> dict[str, KeptVerdict]:
    """The verdicts of a study's claims that the report in `results/` has, by name."""
    from overfit_cli.report.expected import kept_verdicts

    kept = kept_verdicts(_report())
    return {claim.claim: claim for claim in kept if claim.study == study.name}


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


_ENTRIES: Mapping[str, Callable[[Iterable[AnyStudy]], Iterable[Entry]]] = {
    "studies": _studies,
    "presets": _presets,
    "figures": _figures,
    "claims": _claims,
}
