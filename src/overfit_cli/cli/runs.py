"""The command `overfit runs`: run directories, what they hold and lack, and which cells failed."""

from __future__ import annotations

import json
import math
import os
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from overfit_cli.cli import completion
from overfit_cli.cli.deciding import continuing_command
from overfit_cli.cli.report import counts_in_words
from overfit_cli.core.console import console, print_folded
from overfit_cli.core.errors import BadValue, UserError
from overfit_cli.core.text import ago, brief, list_numbers, natural_key, plural

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

    from overfit_cli.core.failures import Alike
    from overfit_cli.core.study import AnyStudy, FigureData
    from overfit_cli.sweeps.inventory import RunSummary


def runs(
    folder: Annotated[
        Path | None,
        typer.Argument(
            metavar="FOLDER|RUN",
            help="Folder of run directories, or one of them.  [default: results]",
            autocompletion=completion.run_directories,
        ),
    ] = None,
    failed: Annotated[
        bool,
        typer.Option(
            "--failed",
            help="Only runs with failed cells; of one run its failed cells by reason, with "
            "commands that repeat them.",
        ),
    ] = False,
    json_file: Annotated[
        Path | None,
        typer.Option(
            "--json", metavar="FILE", help="JSON file for the same; - prints only the JSON."
        ),
    ] = None,
) -> int:
    """List run directories, one line each; or show one of them in full.

    A line has the cells, what is missing or failed, and the age. In full, a run has its settings,
    commands, figures, verdicts and next steps.
    """
    from overfit_cli.cli.export import print_content
    from overfit_cli.core.files import results_folder, write_user_file
    from overfit_cli.sweeps.inventory import summaries

    root = folder or results_folder()
    listed = [] if folder is None and not root.exists() else summaries(root)
    is_one = [run.path for run in listed] == [root]
    listed = [run for run in listed if run.failed or is_one or not failed]
    if json_file is not None:
        content: Any = [_as_json(run) for run in listed]
        text = f"{json.dumps(content[0] if is_one else content, indent=2)}\n"
        if json_file == Path("-"):
            print_content(text.encode())
            return 0
        write_user_file(json_file, text.encode(), "json_file")
    output = console()
    if is_one:
        _show(output, listed[0], failed=failed)
    elif listed:
        _print_list(output, listed)
    else:
        what = "no run with failed cells" if failed else "no run directory"
        output.print(f"{root} holds {what}; `overfit sweep` makes them.")
    if json_file is not None:
        output.print(f"Written: {json_file}")
    return 0


def _print_list(output: Console, listed: Sequence[RunSummary]) -> None:
    from rich.table import Table

    table = Table("run directory", "study", "cells", "state", "age", box=None)
    for column in table.columns:
        column.overflow = "fold"
    table.columns[2].justify = "right"
    for run in sorted(listed, key=lambda run: natural_key(run.study)):
        table.add_row(str(run.path), run.study, *_columns(run))
    output.print(table)
    print_folded(
        output, f"{plural(len(listed), 'run directory')}; `overfit runs RUN` shows one in full."
    )


def _columns(run: RunSummary) -> tuple[str, str, str]:
    """The cells that are done, of the planned ones if some lack; the state; and the age."""
    lacks = run.missing or run.failed
    cells = f"{run.done}/{_count_expected(run)}" if lacks else f"{run.done}"
    age = ago((datetime.now(UTC) - run.written).total_seconds())
    return cells, ", ".join(_state(run)), age


def _count_expected(run: RunSummary) -> int:
    return run.planned if run.missing and run.planned else run.done + run.failed


def _state(run: RunSummary) -> Iterator[str]:
    if run.failed:
        yield f"{run.failed} failed"
    if run.missing:
        yield f"{run.missing} missing"
    elif run.missing == 0 and not run.failed:
        yield "complete"
    elif run.refined:
        yield "refined"
    elif run.missing is None:
        yield "planned cells unknown"
    if run.outdated:
        yield f"{run.outdated} of another version"
    if run.left_out:
        yield f"{plural(run.left_out, 'file')} left out"


def _state_in_words(run: RunSummary) -> str:
    """Return the study, the cells and the age: `benign-vit, 12 of 20 cells, 8 missing, 3 h ago`."""
    total = f"{run.done} of " if run.missing or run.failed else ""
    cells = f"{total}{plural(_count_expected(run), 'cell')}"
    return ", ".join([run.study, cells, *_state(run), _columns(run)[-1]])


def _axes_in_words(run: RunSummary) -> str:
    """Return the sizes of the grid: `n 19 × snr 24 × seeds 10`, with commas if it is no product."""
    sizes = {name: len(values) for name, values in run.axes.items()}
    sizes |= {"seeds": len(run.seeds)} if run.seeds else {}
    is_product = run.planned is None or math.prod(sizes.values()) == run.planned
    return (" × " if is_product else ", ").join(f"{name} {size}" for name, size in sizes.items())


def _as_json(run: RunSummary) -> dict[str, Any]:
    return {
        "path": str(run.path),
        "study": run.study,
        "done": run.done,
        "failed": run.failed,
        "missing": run.missing,
        "planned": run.planned,
        "outdated": run.outdated,
        "files_left_out": run.left_out,
        "axes": {name: list(values) for name, values in run.axes.items()},
        "seeds": list(run.seeds),
        "written": run.written.isoformat(),
        "commands": [shlex.join(each.command) for each in run.runs if each.command],
    }


def _values_in_words(values: Iterable[object]) -> str:
    """Return the values of a parameter: `1, 2, 5`, or `19 values from 2 to 20`."""
    several = list(values)
    if len(several) > 6:
        return f"{len(several)} values from {brief(several[0])} to {brief(several[-1])}"
    return ", ".join(map(brief, several))


# One run in full


def _show(output: Console, described: RunSummary, *, failed: bool) -> None:
    from overfit_cli.sweeps.load import load_figure_data
    from overfit_cli.sweeps.store import RunDirectory

    print_folded(output, f"{described.path}: {_state_in_words(described)}")
    try:
        data = load_figure_data(RunDirectory(described.path))
    except UserError as error:  # no cells yet, or of a study that can't read them
        reason = error.accepts if isinstance(error, BadValue) else str(error)
        planned = f"Planned: {_axes_in_words(described)}." if described.runs else ""
        said = [reason[:1].upper() + reason[1:], planned, *_next_commands(described)]
        _print_lines(output, filter(None, said))
    else:
        _print_lines(output, (_failed_lines if failed else _lines)(described, data))


def _print_lines(output: Console, lines: Iterator[str] | filter[str]) -> None:
    for line in lines:
        indent = line[: len(line) - len(line.lstrip())]
        print_folded(output, line.lstrip(), indent, f"{indent}  ")


def _lines(described: RunSummary, data: FigureData) -> Iterator[str]:
    from overfit_cli.report.run_facts import run_facts

    paper = data.study.paper
    if data.study.title:
        yield f"Study: {data.study.title.removesuffix('.')}."
    if paper:
        yield f"Paper: {paper}: {paper.title}, {paper.url}"
    facts = run_facts(data, described.manifest)
    yield facts.cells
    yield facts.settings
    if facts.failures:
        yield facts.failures
    if facts.provenance:
        yield f"Made: {facts.provenance}"
    for command in facts.commands:
        yield f"Command: {command}"
    folder = described.path / "figures"
    pictures = sorted(path.name for path in folder.glob("*") if path.suffix in PICTURES)
    if pictures:
        yield f"Figures in {folder}: {', '.join(pictures)}."
    yield from _verdicts(described, data.study)
    figure = _figure(described, data)
    judging = _judging_command(described, data.study)
    drawing = ["plot", figure, "--from", str(described.path)] if figure else []
    yield from _next_commands(described, drawing, judging)


PICTURES = (".png", ".pdf", ".svg")


def _verdicts(described: RunSummary, study: AnyStudy) -> Iterator[str]:
    """The verdicts that the report in `results/` has of the run; else the names of its claims."""
    from overfit_cli.core.files import results_folder
    from overfit_cli.core.registry import claims_of
    from overfit_cli.report.expected import kept_verdicts
    from overfit_cli.sweeps.presets import presets_run_into

    here, folder = described.path.resolve(), results_folder() / "report"
    kept = [
        claim
        for claim in kept_verdicts(folder)
        if claim.study == study.name and claim.directory and claim.directory.resolve() == here
    ]
    if kept:
        counts = counts_in_words(claim.verdict for claim in kept)
        yield f"Claims judged on it in {folder}: {counts}"
        others = [f"{claim.claim} {claim.verdict}" for claim in kept if claim.verdict != "holds"]
        if others:
            yield f"Claims that do not hold: {', '.join(others)}."
        return
    presets = {preset.name for preset in presets_run_into(here.name)}
    is_own = study.identity.function is not None
    names = [each.name for each in claims_of(study) if is_own or each.preset in presets]
    if described.manifest is not None:
        names += [*described.manifest.sentences, *described.manifest.stated]
    if names:
        yield f"Claims, not judged in {folder}: {', '.join(names)}."


def _figure(described: RunSummary, data: FigureData) -> str:
    """The first figure of the run's preset, or one with as many axes; empty without any."""
    from overfit_cli.core.registry import figures_of
    from overfit_cli.figures.labels import varying_parameters
    from overfit_cli.sweeps.presets import presets_run_into

    presets = presets_run_into(described.path.resolve().name)
    wanted = [name for preset in presets for name in preset.content.figures]
    count, known = len(varying_parameters(data)), figures_of(data.study)
    others = [name for name, figure in known.items() if figure.axes == count > 0]
    return next((name for name in (*wanted, *others) if name in known), "")


def _judging_command(described: RunSummary, study: AnyStudy) -> list[str]:
    from overfit_cli.core.registry import claims_of

    manifest = described.manifest
    stated = manifest is not None and (manifest.sentences or manifest.stated)
    if not described.done or not (claims_of(study) or stated):
        return []
    if study.identity.function is not None:
        return ["judge", str(described.path)]
    return ["report", str(described.path)]


def _next_commands(described: RunSummary, *others: list[str]) -> Iterator[str]:
    missing = described.missing
    commands = [continuing_command(described.path, described.manifest)] if missing else []
    commands += [["runs", str(described.path), "--failed"]] if described.failed else []
    for words in filter(None, [*commands, *others]):
        yield f"Next: {shlex.join(['overfit', *words])}"


# Failures


def _failed_lines(described: RunSummary, data: FigureData) -> Iterator[str]:
    from overfit_cli.core.failures import kind_of
    from overfit_cli.report.run_facts import kinds_of_failures

    cells = data.cells[data.cells["status"] == "failed"]
    kinds = kinds_of_failures(cells)
    if not kinds:
        yield "No cell failed."
        return
    for kind in kinds:
        shared = kind_of(kind.example)
        alike = cells[[kind_of(reason) == shared for reason in cells["reason"].astype(str)]]
        yield from _kind_lines(kind, alike, described, data)
    again = continuing_command(described.path, described.manifest, "--retry-failed")
    if again[:1] == ["sweep"]:
        yield f"Next: {shlex.join(['overfit', *again])}"


def _kind_lines(
    kind: Alike, cells: pd.DataFrame, described: RunSummary, data: FigureData
) -> Iterator[str]:
    from overfit_cli.figures.labels import varying_parameters

    reason = kind.words if kind.varied or kind.traceback else kind.example
    yield f"{plural(kind.count, 'cell')}: {reason}"
    names = varying_parameters(data)
    texts = [
        f"{name} = {_values_in_words(sorted(cells[name].unique().tolist()))}" for name in names
    ]
    numbers = sorted(cells["seed"].unique().tolist())
    seeds = f"{'seeds' if len(numbers) > 1 else 'seed'} {list_numbers(numbers)}"
    if names:
        seeds = f"{plural(len(cells[names].drop_duplicates()), 'setting')}, {seeds}"
    yield f"  {'; '.join([seeds, *texts])}"
    for line in kind.traceback.splitlines():
        yield f"  {line}"
    example = cells.iloc[0].to_dict()
    command = _command_of_cell(example, data.study, described)
    yield f"  Repeat one: {shlex.join(['overfit', *command])}"


def _command_of_cell(cell: Mapping[Any, Any], study: AnyStudy, described: RunSummary) -> list[str]:
    import pandas as pd

    from overfit_cli.core.parameters import describe

    record = None if described.manifest is None else described.manifest.function
    here = f"{Path.cwd()}{os.sep}"
    words = ["train", study.name if record is None else record.reference.removeprefix(here)]
    present = {name: value for name, value in cell.items() if not pd.isna(value)}
    for name, info in describe(study.parameters).items():
        value = present.get(name, info.default)
        if value != info.default:
            words += ["--set", f"{name}={value}"]
    return [*words, "--seed", str(cell["seed"])]
