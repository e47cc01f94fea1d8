"""The command `overfit runs`: run directories, what they hold and lack, and which cells failed."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from overfit_cli.cli import completion
from overfit_cli.cli.export import write_json
from overfit_cli.cli.options import argument, flag, option
from overfit_cli.cli.proposals import continuing_words, plot_words, train_words
from overfit_cli.core.errors import BadValue, UserError, kind_of
from overfit_cli.core.files import results_folder
from overfit_cli.core.text import (
    ago,
    command_words,
    console,
    list_numbers,
    list_values,
    natural_key,
    plural,
    print_folded,
    shell_line,
    text_table,
)

if TYPE_CHECKING:
    from rich.console import Console

    from overfit_cli.core.cells import Cells
    from overfit_cli.sweeps.load import RunSummary


def runs(
    folder: Path | None = argument(
        "FOLDER|RUN",
        "Folder of run directories, or one of them.  [default: results]",
        completion.run_directories,
        default=None,
    ),
    failed: bool = flag(
        "Only runs with failed cells; of one run its failed cells by reason, with commands "
        "that repeat them.",
        "--failed",
    ),
    json_file: Path | None = option(
        "FILE", "JSON file for the same; - prints only the JSON.", "--json"
    ),
) -> int:
    """List run directories, one line each; or show one of them in full.

    A line has the cells, what is missing or failed, and the age. In full, a run has its settings,
    commands, figures and next steps.
    """
    from overfit_cli.sweeps.load import summaries

    root = folder or results_folder()
    listed = [] if folder is None and not root.exists() else summaries(root)
    is_one = [run.path for run in listed] == [root]
    listed = [run for run in listed if run.failed or is_one or not failed]
    if json_file is not None:
        content: Any = [_as_data(run) for run in listed]
        text = f"{json.dumps(content[0] if is_one else content, indent=2, default=str)}\n"
        if write_json(json_file, text):
            return 0
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
    rows = []
    for run in sorted(listed, key=lambda run: natural_key(run.study)):
        done, of = _counts(run)
        cells = f"{done}/{of}" if run.missing or run.failed else str(done)
        row = {"run directory": str(run.path), "study": run.study, "cells": cells}
        rows.append({**row, "state": _state(run), "age": _age(run)})
    output.print(text_table(rows, right=("cells",)))
    count = plural(len(listed), "run directory")
    print_folded(output, f"{count}; `overfit runs RUN` shows one in full.")


def _counts(run: RunSummary) -> tuple[int, int]:
    """The cells that are done, and those that are to be."""
    return run.done, run.planned if run.missing and run.planned else run.done + run.failed


def _age(run: RunSummary) -> str:
    return ago((datetime.now(UTC) - run.written).total_seconds())


def _state(run: RunSummary) -> str:
    states = [
        (run.failed, f"{run.failed} failed"),
        (run.missing, f"{run.missing} missing"),
        (run.missing == 0 and not run.failed, "complete"),
        (run.missing is None, "refined" if run.manifest.refined else "planned cells unknown"),
        (run.outdated, f"{run.outdated} of another version"),
        (run.left_out, f"{plural(run.left_out, 'file')} left out"),
    ]
    return ", ".join(words for is_so, words in states if is_so)


def _as_data(run: RunSummary) -> dict[str, Any]:
    names = ("path", "study", "done", "failed", "missing", "planned", "outdated", "axes", "seeds")
    commands = [shlex.join(each.command) for each in run.manifest.runs if each.command]
    others = {"files_left_out": run.left_out, "written": run.written.isoformat()}
    return {**{name: getattr(run, name) for name in names}, **others, "commands": commands}


# One run in full


def _show(output: Console, run: RunSummary, *, failed: bool) -> None:
    from overfit_cli.sweeps.load import load_run

    done, of = _counts(run)
    cells = f"{done} of {plural(of, 'cell')}" if run.missing or run.failed else plural(of, "cell")
    print_folded(output, f"{run.path}: {run.study}, {cells}, {_state(run)}, {_age(run)}")
    try:
        data = load_run(run.directory)
    except UserError as error:  # no cells yet, or of a study that can't read them
        reason = error.accepts if isinstance(error, BadValue) else str(error)
        lines = iter([f"{reason[:1].upper()}{reason[1:]}", *_next_commands(run)])
    else:
        lines = (_failed_lines if failed else _lines)(run, data)
    for line in filter(None, lines):
        indent = line[: len(line) - len(line.lstrip())]
        print_folded(output, line.lstrip(), indent, f"{indent}  ")


def _lines(run: RunSummary, data: Cells) -> Iterator[str]:
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
    stated = run.manifest.sentences or run.manifest.stated
    is_own = study.identity.function is not None
    judging = ["judge" if is_own else "report", str(run.path)]
    can_judge = run.done and (claims_of(study) or stated)
    yield from _next_commands(run, drawing, judging if can_judge else [])


def _next_commands(run: RunSummary, *others: Sequence[str]) -> Iterator[str]:
    continuing = _continuing(run) if run.missing else []
    failures = command_words("runs", run.path, failed=True) if run.failed else []
    for words in filter(None, [continuing, failures, *others]):
        yield f"Next: {shell_line(words)}"


def _continuing(run: RunSummary, **how: Any) -> list[str]:
    from overfit_cli.sweeps.load import study_in

    study = study_in(run.directory)
    return continuing_words(run.path, run.manifest, study, **how) if run.manifest else []


# Failures


def _failed_lines(run: RunSummary, data: Cells) -> Iterator[str]:
    from overfit_cli.report.contents import kinds_of_failures

    failed = data.trained[data.trained["status"] == "failed"]
    names, kinds = data.varying(), kinds_of_failures(failed)
    if not kinds:
        yield "No cell failed."
        return
    for kind in kinds:
        shared = kind_of(kind.example)
        cells = failed[[kind_of(reason) == shared for reason in failed["reason"].astype(str)]]
        reason = kind.words if kind.varied or kind.traceback else kind.example
        yield f"{plural(kind.count, 'cell')}: {reason}"
        numbers = sorted(cells["seed"].unique().tolist())
        where = [f"{'seeds' if len(numbers) > 1 else 'seed'} {list_numbers(numbers)}"]
        if names:
            where = [f"{plural(len(cells[names].drop_duplicates()), 'setting')}, {where[0]}"]
        where += [f"{name} = {list_values(cells[name].unique().tolist())}" for name in names]
        yield f"  {'; '.join(where)}"
        yield from (f"  {line}" for line in kind.traceback.splitlines())
        example = cells.iloc[0].dropna().to_dict()
        command = train_words(data.study, example, example["seed"])
        yield f"  Repeat one: {shell_line(command)}" if command else ""
    again = _continuing(run, retry_failed=True)
    yield f"Next: {shell_line(again)}" if again else ""
