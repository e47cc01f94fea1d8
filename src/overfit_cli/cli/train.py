"""The command `overfit train`: one cell that is seen learning."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from overfit_cli.cli.options import (
    SETTINGS,
    SUBJECT_AND_PARAMETERS,
    option,
    read_words,
    texts_by_name,
    with_options,
)
from overfit_cli.core.errors import UserError
from overfit_cli.core.options import SweepOptions
from overfit_cli.core.text import command_words, console, duration, proposed_command, visible

if TYPE_CHECKING:
    from overfit_cli.core.cell import CellResult
    from overfit_cli.core.study import AnyStudy


@with_options(SweepOptions, "data", "device")
def train(
    context: typer.Context,
    words: list[str] | None = SUBJECT_AND_PARAMETERS,
    settings: list[str] | None = SETTINGS,
    seed: int = option("SEED", "The cell's seed.", default=0),
    out: Path | None = option("DIR", "Run directory.  [default: results/NAME-SETTINGS]"),
    **options: Any,
) -> int:
    """Train one cell, show some of its steps, and save all of them.

    The argument is a study or a preset (see `overfit list`), or a function: FILE.py, FILE.py:NAME
    or package.module:NAME; without one, it is the default study. Every parameter of the study is an
    option: --n 20 --snr 10.

    `python -m pdb -m overfit_cli train ...` opens Python's debugger where a function raises.
    """
    from overfit_cli.sweeps.presets import find_subject
    from overfit_cli.sweeps.run import train_cell
    from overfit_cli.sweeps.worker import FAILURE_PREFIXES

    named, given = read_words(words, settings)
    subject = find_subject(named)
    texts = texts_by_name(context, given, subject.study)
    how, output = SweepOptions(out=out, **options), console()
    subject.take_data_folder(how.data)
    watch = train_cell(subject, texts, seed, how, output)
    result, error = watch.result, watch.error
    for line in result.traceback.splitlines():
        output.print(line, soft_wrap=True)
    failed = f"The cell failed: {result.reason}."
    if isinstance(error, Exception):
        # It passes as it is, so that Python's debugger opens where it was raised.
        sys.excepthook = lambda *_: typer.echo(visible(f"overfit: {failed}"), err=True)
        raise error
    if result.reason and (result.reason.startswith(FAILURE_PREFIXES) or not result.measurements):
        raise UserError(failed, exit_code=1)
    for line in subject.study.summary(result).splitlines():
        output.print(line)
    following = _next_command(subject.study, result, str(watch.path))
    output.print(" ".join([f"Took {duration(result.seconds)}.", *proposed_command(following)]))
    return 1 if result.reason else 0


def _next_command(study: AnyStudy, result: CellResult, path: str) -> list[str]:
    from overfit_cli.core.registry import figures_of

    of_steps = [
        figure.name for figure in figures_of(study).values() if figure.reads == "trajectories"
    ]
    if result.trajectory and of_steps:
        return command_words("plot", of_steps[0], from_=path)
    return ["report", path] if study.claims() else []
