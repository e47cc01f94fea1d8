"""The commands `list`, `runs`, `compact` and `merge`: what there is, and run directories tidied.

The table of a study's parameters is printed by `sweep` too.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from overfit_cli.cli import options as cli
from overfit_cli.cli.proposals import plot_words, sweep_words, train_words
from overfit_cli.core import text
from overfit_cli.core.claim import KINDS
from overfit_cli.core.errors import BadValue, UserError, kind_of
from overfit_cli.core.figure import grid_figures
from overfit_cli.core.files import json_text, results_folder
from overfit_cli.core.options import alternatives

if TYPE_CHECKING:
    from overfit_cli.core.cell import Column
    from overfit_cli.core.cells import Cells
    from overfit_cli.core.parameters import ParameterInfo
    from overfit_cli.core.study import AnyStudy
    from overfit_cli.sweeps.load import RunSummary


def parameter_table(study: AnyStudy) -> Table:
    """Return the study's parameters as a table for the terminal."""
    from overfit_cli.core.parameters import describe

    rows = [
        {
            "parameter": name,
            "meaning": _meaning(info),
            "range": info.limits,
            "default": "none" if info.default is None else text.brief(info.default, 6),
        }
        for name, info in describe(study.parameters).items()
    ]
    return text.text_table(rows, whole=("parameter", "default"))


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
        "listed",
        default=None,
    ),
    study: str | None = cli.argument(
        "STUDY",
        "Study whose presets, figures or claims are listed in full.",
        "studies",
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

    output, given = text.console(), study or kind or ""
    if kind in cli.KINDS[1:] and study is None:
        output.print(kind.capitalize())
        output.print(_lines(_pairs(kind, *installed_studies())))
    elif given in ("", cli.KINDS[0]):
        _print_studies([*installed_studies()])
    elif kind in cli.KINDS or (study is None and (is_reference(given) or given in study_names())):
        found = study_of_reference(given) if is_reference(given) else find_study(given)
        if kind == "claims":
            _print_claims(found)
        elif kind in cli.KINDS[1:]:
            output.print(_lines(_pairs(kind, found)))
        else:
            _print_study(found)
    else:
        hint = text.suggestion(given, [*cli.KINDS, *study_names()])
        hint = hint if study is None else "the kind comes first."
        raise BadValue("kind", kind, f"it takes {alternatives(cli.KINDS)}, or a study; {hint}")
    return 0


def _pairs(kind: str, *studies: AnyStudy) -> list[tuple[str, str]]:
    """What studies have of a kind: names, and a line about each.

    Figures are those that a study can draw, which aren't all its own. Of several studies a figure
    stands there once, with those that have it.
    """
    from overfit_cli.core.registry import claims_of, figures_of
    from overfit_cli.sweeps.presets import all_presets

    owners = dict[tuple[str, str], list[str]]()
    for study in studies:
        if kind == "figures":
            own = [(figure.name, figure.title) for figure in figures_of(study).values()]
        elif kind == "claims":
            own = [(claim.name, claim.statement) for claim in claims_of(study)]
        else:
            presets = [preset for preset in all_presets() if preset.study == study.name]
            own = [(one.name, f"{one.title} {one.quick.stand_in}") for one in presets]
        for pair in own:
            owners.setdefault(pair, []).append(study.name)
    if kind == "figures" and len(studies) > 1:
        usual = {(each.name, each.title) for each in grid_figures().values()}
        of = {pair: "any study" if pair in usual else ", ".join(owners[pair]) for pair in owners}
        return [(name, f"{of[name, title]}: {title}") for name, title in owners]
    return sorted(owners) if kind == "presets" else [*owners]


def _lines(pairs: Iterable[tuple[str, str]]) -> Table:
    """Names with the line about each beside them."""
    table = text.text_table([{"name": name, "line": line} for name, line in pairs], whole=["name"])
    table.show_header = False
    return table


def _print_studies(studies: Sequence[AnyStudy]) -> None:
    output, width = text.console(), max((len(study.name) for study in studies), default=0)
    for paper in sorted({study.paper for study in studies}, key=lambda each: str(each or "~")):
        output.print(f"{paper} ({paper.key})" if paper else "Other studies")
        for study in (each for each in studies if each.paper == paper):
            counts = [text.plural(len(_pairs(kind, study)), kind[:-1]) for kind in cli.KINDS[1:]]
            words = "".join(f"{count:<13}" for count in counts).rstrip()
            text.print_folded(output, words, f"  {study.name:{width}}  ", " " * (width + 4))
            text.print_folded(output, study.title, "    ", "    ")


def _print_study(study: AnyStudy) -> None:
    output = text.console()
    text.print_folded(output, f"{study.name}: {study.title}" if study.title else study.name)
    if study.paper:
        text.print_folded(output, f"{study.paper}: {study.paper.title}, {study.paper.url}")
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


def _print_claims(study: AnyStudy) -> None:
    from overfit_cli.core.registry import claims_of

    output, claims = text.console(), claims_of(study)
    if not claims:
        output.print(f"{study.name} has no claims.")
    for claim in claims:
        about = {
            "kind": f"{claim.kind}: {KINDS[claim.kind]}",
            "hypotheses": claim.hypotheses or "none",
            "holds where": claim.holds_where,
            "source": claim.source,
            "preset": claim.preset or "none",
        }
        output.print(claim.name)
        lines = (f"{heading}: {words}" for heading, words in about.items() if words)
        for line in (claim.statement, *lines):
            text.print_folded(output, line, "  ", "  ", 78)


# Run directories


def runs(
    folder: Path | None = cli.argument(
        "FOLDER|RUN",
        "Folder of run directories, or one of them.  [default: results]",
        "runs",
        default=None,
    ),
    failed: bool = cli.flag(
        "Only runs with failed cells; of one run its failed cells by reason, with commands "
        "that repeat them.",
        "--failed",
    ),
    json_file: Path | None = cli.JSON_FILE,
) -> int:
    """List run directories, one line each; or show one of them in full.

    A line has the cells, what is missing or failed, and the age. In full, a run has its settings,
    commands, figures and next steps.
    """
    from overfit_cli.sweeps.load import summaries

    root, output = folder or results_folder(), text.console(quiet=json_file == Path("-"))
    listed = [] if folder is None and not root.exists() else summaries(root)
    is_one = [run.path for run in listed] == [root]
    listed = [run for run in listed if run.failed or is_one or not failed]
    if is_one and not output.quiet:
        for line in filter(None, _lines_on_run(listed[0], failed=failed)):
            indent = line[: len(line) - len(line.lstrip())]
            text.print_folded(output, line.lstrip(), indent, f"{indent}  ")
    elif listed:
        rows = [_row(run) for run in sorted(listed, key=lambda run: text.natural_key(run.study))]
        output.print(text.text_table(rows, right=("cells",)))
        count = text.plural(len(listed), "run directory")
        text.print_folded(output, f"{count}; `overfit runs RUN` shows one in full.")
    else:
        what = "no run with failed cells" if failed else "no run directory"
        output.print(f"{root} holds {what}; `overfit sweep` makes them.")
    content: Any = [_as_data(run) for run in listed]
    written = json_text(content[0] if is_one else content)
    cli.write_content(output, json_file, written.encode(), "json_file")
    return 0


def _row(run: RunSummary) -> dict[str, str]:
    """What a run's line has under each heading."""
    states = {
        f"{run.failed} failed": run.failed,
        f"{run.missing} missing": run.missing,
        "complete": run.missing == 0 and not run.failed,
        "refined" if run.manifest.refined else "planned cells unknown": run.missing is None,
        f"{run.outdated} of another version": run.outdated,
        f"{text.plural(run.left_out, 'file')} left out": run.left_out,
    }
    of = run.planned if run.missing else run.done + run.failed
    return {
        "run directory": str(run.path),
        "study": run.study,
        "cells": f"{run.done}/{of}" if run.missing or run.failed else str(run.done),
        "state": ", ".join(words for words, is_so in states.items() if is_so),
        "age": text.ago((datetime.now(UTC) - run.written).total_seconds()),
    }


def _as_data(run: RunSummary) -> dict[str, Any]:
    names = ("study", "done", "failed", "missing", "planned", "outdated", "axes", "seeds")
    commands = [shlex.join(each.command) for each in run.manifest.runs if each.command]
    others = {"files_left_out": run.left_out, "written": run.written.isoformat()}
    numbers = {name: getattr(run, name) for name in names}
    return {"path": str(run.path), **numbers, **others, "commands": commands}


def _lines_on_run(run: RunSummary, *, failed: bool) -> Iterator[str]:
    from overfit_cli.sweeps.load import load_run

    row = _row(run)
    yield f"{run.path}: {run.study}, cells: {row['cells']}, {row['state']}, {row['age']}"
    try:
        data = load_run(run.directory)
    except UserError as error:  # no cells yet, or of a study that can't read them
        reason = error.accepts if isinstance(error, BadValue) else str(error)
        yield f"{reason[:1].upper()}{reason[1:]}"
        yield from _next_commands(run)
    else:
        yield from _lines_on_failures(run, data) if failed else _lines_on_cells(run, data)


def _lines_on_cells(run: RunSummary, data: Cells) -> Iterator[str]:
    from overfit_cli.core.registry import claims_of
    from overfit_cli.report.contents import run_facts
    from overfit_cli.sweeps.part import STEPS
    from overfit_cli.sweeps.presets import presets_run_into

    study, folder = data.study, run.path / "figures"
    facts = run_facts(data, run.manifest)
    yield study.title and f"Study: {study.title.removesuffix('.')}."
    yield f"Paper: {study.paper}: {study.paper.title}, {study.paper.url}" if study.paper else ""
    yield from (facts["cells"], facts["settings"], facts["failures"])
    yield facts["provenance"] and f"Made: {facts['provenance']}"
    yield from (f"Command: {command}" for command in facts["commands"])
    pictures = (path.name for path in folder.glob("*") if path.suffix in (".png", ".pdf", ".svg"))
    if drawn := ", ".join(sorted(pictures)):
        yield f"Figures in {folder}: {drawn}."
    presets, varying = presets_run_into(run.path.resolve().name), data.varying()
    wanted = [name for preset in presets for name in preset.figures]
    logged = bool(run.directory.names(STEPS))
    drawing = plot_words(study, run.path, wanted, varying, len(varying), logged=logged)
    can_judge = run.done and (claims_of(study) or run.manifest.sentences or run.manifest.stated)
    judging = ["judge" if study.identity.function else "report", str(run.path)]
    yield from _next_commands(run, drawing, judging if can_judge else [])


def _next_commands(run: RunSummary, *others: Sequence[str]) -> Iterator[str]:
    failures = text.command_words("runs", run.path, failed=True) if run.failed else []
    for words in filter(None, [_continuing(run) if run.missing else [], failures, *others]):
        yield f"Next: {text.shell_line(words)}"


def _continuing(run: RunSummary, **how: Any) -> list[str]:
    from overfit_cli.sweeps.load import study_in

    runs, study = run.manifest.runs, study_in(run.directory)
    return sweep_words(runs[-1], study, **how, out=run.path) if runs else []


def _lines_on_failures(run: RunSummary, data: Cells) -> Iterator[str]:
    from overfit_cli.report.contents import kinds_of_failures

    failed = data.trained[data.trained["status"] == "failed"]
    kinds = kinds_of_failures(failed)
    if not kinds:
        yield "No cell failed."
        return
    for kind in kinds:
        shared = kind_of(kind.example)
        cells = failed[[kind_of(reason) == shared for reason in failed["reason"].astype(str)]]
        reason = kind.words if kind.varied or kind.traceback else kind.example
        yield f"{text.plural(kind.count, 'cell')}: {reason}"
        seeds = sorted(cells["seed"].unique().tolist())
        where = [f"{'seeds' if len(seeds) > 1 else 'seed'} {text.list_numbers(seeds)}"]
        values = {name: cells[name].unique().tolist() for name in data.varying()}
        where += [f"{name} = {text.list_values(several)}" for name, several in values.items()]
        yield f"  {'; '.join(where)}"
        yield from (f"  {line}" for line in kind.traceback.splitlines())
        example = cells.iloc[0].dropna().to_dict()
        command = train_words(data.study, example, example["seed"])
        yield f"  Repeat one: {text.shell_line(command)}" if command else ""
    again = _continuing(run, retry_failed=True)
    yield f"Next: {text.shell_line(again)}" if again else ""


def compact(
    directory: Path = cli.argument("DIR", "Run directory; a sweep may still write to it.", "runs"),
) -> int:
    """Join the many part files of a run directory into a few."""
    from overfit_cli.sweeps.part import CELLS, STEPS
    from overfit_cli.sweeps.store import RunDirectory

    opened, output = RunDirectory(directory, "directory"), text.console()
    before = {kind: opened.names(kind) for kind in (CELLS, STEPS)}
    if not before[CELLS]:
        raise opened.error(opened.why_empty())
    opened.compact()
    for kind, names in before.items():
        if now := opened.names(kind):
            parts = text.plural(len(names), "part")
            output.print(f"{directory / kind}: {parts} joined into {len(now)}.")
        for sentence in opened.notes(kind):
            output.print(sentence)
    return 0


def merge(
    directories: list[Path] = cli.argument(
        "DIR...", "Run directories of one study; they stay as they are.", "runs"
    ),
    out: Path = cli.option("DIR", "Output directory; cells in it are merged too.", default=...),
) -> int:
    """Join run directories of one study, such as those of a sweep's shards.

    The command refuses directories of different studies, versions, code or data, damaged files, and
    two directories with different numbers for one cell.
    """
    from overfit_cli.sweeps.store import RunDirectory, merge_directories

    sources = [RunDirectory(directory, "directories") for directory in directories]
    merged, output = RunDirectory(out, "out"), text.console()
    for note in merge_directories(sources, merged):
        output.print(note)
    cells = text.plural(len(merged.contents()), "cell")
    output.print(f"{text.plural(len(sources), 'directory')} merged into {out}: {cells}.")
    return 0
