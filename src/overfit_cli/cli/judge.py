"""The command `overfit judge`: claims of one's own, as sentences, on a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from overfit_cli.cli import completion
from overfit_cli.cli.options import Where
from overfit_cli.core.console import console, proposed_command
from overfit_cli.core.errors import BadValue, UserError
from overfit_cli.core.text import visible

if TYPE_CHECKING:
    from overfit_cli.report.decision import Decision


def judge(
    run: Annotated[
        str,
        typer.Argument(
            metavar="RUN",
            help="Run directory, or FILE.py: its newest run in results/.",
            autocompletion=completion.run_directories,
        ),
    ],
    claims: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="CLAIM",
            help="Claims in quotes, such as 'test_error < 0.05 where snr > 2'.  [default: the "
            "run's own]",
        ),
    ] = None,
    where: Where = None,
    plan: Annotated[
        bool,
        typer.Option("--plan", help="Say how many seeds each claim takes."),
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with code 1 unless every claim holds.")
    ] = False,
) -> int:
    """Judge claims of your own: a verdict, an interval, and how often it would be wrong.

    Forms of claims: 'test_error < 0.05 where snr > 2'; 'test_error is 0.5 within 0.02';
    'test_error falls along snr'; 'test_error[method=ridge] < test_error[method=none]';
    'power of n in steps is 1 within 0.1'; 'power of n in snr at test_error = 0.1 is -0.5 within
    0.1'; 'share of seeds with test_error < 0.1 > 0.8'.
    """
    from overfit_cli.cli.list import verdict_table
    from overfit_cli.report.decision import decide_sentences

    path = run_directory(run)
    decisions = decide_sentences(path, claims or (), where or (), plan=plan)
    if not decisions:
        raise UserError(f"{run}: it has no claims; state one: 'test_error < 0.05'.")
    output = console()
    output.print(verdict_table([decision.judged for decision in decisions]))
    for decision in decisions:
        output.print(visible(_in_words(decision, plan=plan)))
    most = max((decision.needed or 0 for decision in decisions if decision.lacks_seeds), default=0)
    for line in proposed_command(_with_seeds(path, most)) if most else []:
        output.print(line)
    every = all(decision.judged.headline == "holds" for decision in decisions)
    return int(strict and not every)


def _in_words(decision: Decision, *, plan: bool) -> str:
    """What there is to say of a claim: its design, its rates, what would decide it."""
    from overfit_cli.report.contents import claim_sentences

    (sentence,) = claim_sentences([decision.judged])
    return " ".join([sentence, *decision.sentences(plan=plan)])


def _with_seeds(path: Path, seeds: int) -> list[str]:
    """The words of a run's last sweep, with so many seeds; none where they are not known."""
    from overfit_cli.sweeps.manifest import read_manifest

    manifest = read_manifest(path)
    words = list(manifest.runs[-1].command) if manifest is not None and manifest.runs else []
    if words[1:2] != ["sweep"]:
        return []
    while "--seeds" in words:
        index = words.index("--seeds")
        del words[index : index + 2]
    return [*(word for word in words[1:] if not word.startswith("--seeds=")), "--seeds", str(seeds)]


def run_directory(named: str) -> Path:
    """Return the run directory that is named: itself, or the newest one of a function's file.

    Raises:
        UserError: if there is none.
    """
    from overfit_cli.core.files import RESULTS
    from overfit_cli.core.values import usable_path
    from overfit_cli.functions.function_study import study_of_reference
    from overfit_cli.functions.references import is_reference
    from overfit_cli.sweeps.load import usable_directories

    path = usable_path("run", named)
    if path.is_dir() or not is_reference(named):
        return path
    study = study_of_reference(named)
    for directory in usable_directories(RESULTS):
        if directory.study_name() == study.name:
            return directory.path
    raise BadValue(
        "run", named, f"there is no run of it in {RESULTS}/; `overfit sweep {named}` makes one."
    )
