"""The command `overfit judge`: claims of one's own, as sentences, on a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from overfit_cli.cli import completion
from overfit_cli.cli.export import write_json
from overfit_cli.cli.list import verdict_table
from overfit_cli.cli.options import FIGURE_FILE, JSON_FILE, WHERE, argument, flag
from overfit_cli.cli.proposals import commands_that_decide
from overfit_cli.core.claim import HOLDING
from overfit_cli.core.errors import BadValue, UserError
from overfit_cli.core.files import results_folder, usable_path
from overfit_cli.core.text import console, typed_command

if TYPE_CHECKING:
    from overfit_cli.sweeps.store import RunDirectory


def judge(
    run: str = argument(
        "RUN", "Run directory, or FILE.py: its newest run in results/.", completion.run_directories
    ),
    claims: list[str] | None = argument(
        "CLAIM",
        "Claims in quotes, such as 'test_error < 0.05 where snr > 2', or names of "
        "claims that the run has.  [default: all that the run has]",
        default=None,
    ),
    where: list[str] | None = WHERE,
    strict: bool = flag("Exit with code 1 unless every claim holds.", "--strict"),
    out: Path | None = FIGURE_FILE,
    json_file: Path | None = JSON_FILE,
) -> int:
    """Judge claims of your own: a verdict, an interval, and how often the verdict is wrong.

    Forms of claims: 'test_error < 0.05 where snr > 2'; 'test_error is 0.5 within 0.02';
    'test_error falls along snr'; 'test_error[method=ridge] < test_error[method=none]';
    'power of n in steps is 1 within 0.1'; 'power of n in snr at test_error = 0.1 is -0.5 within
    0.1'; 'share of seeds with test_error < 0.1 > 0.8'.

    If a claim is inconclusive, it is said how many seeds would decide it, and by which command.
    """
    from overfit_cli.report.judge import decide
    from overfit_cli.report.runs import load_runs
    from overfit_cli.report.verdict_files import judged_json
    from overfit_cli.report.words import claim_sentence, family_sentences

    output, directory = console(), run_directory(run)
    path = directory.path
    (loaded,) = load_runs([directory], path, where or ())
    decisions = decide(loaded, claims or ())
    if not decisions:
        raise UserError(f"{run}: it has no claims; state one: 'test_error < 0.05'.")
    judged = [decision.judged for decision in decisions]
    code = int(strict and any(claim.headline not in HOLDING for claim in judged))
    if json_file is not None:
        said = [each.judged.noted(each.sentences()) for each in decisions]
        if write_json(json_file, judged_json(said)):
            return code
    output.print(verdict_table(judged))
    if not Path(run).is_dir():
        output.print(f"The newest run of {run} is {path}.")
    if where:
        output.print(f"Only cells with {' and '.join(where)} are judged.")
    for decision in decisions:
        for sentence in (claim_sentence(decision.judged), *decision.sentences()):
            output.print(sentence)
    families = family_sentences([each for each in judged if each.family > 1])
    for line in (*families, *commands_that_decide(loaded, decisions)):
        output.print(line)
    if out is not None:
        from overfit_cli.figures.picture import save
        from overfit_cli.report.pictures import draw_claims

        save(draw_claims(judged, command=typed_command(), out=out), out)
        output.print(f"Drawn: {out}, and its caption in {out.with_suffix('.txt').name}")
    if json_file is not None:
        output.print(f"Written: {json_file}")
    return code


def run_directory(named: str) -> RunDirectory:
    """Return the run directory that is named: itself, or the newest one of a function's file."""
    from overfit_cli.functions.function_study import study_of_reference
    from overfit_cli.functions.references import is_reference
    from overfit_cli.sweeps.load import usable_directories
    from overfit_cli.sweeps.store import RunDirectory

    path = usable_path("run", named)
    if path.is_dir() or not is_reference(named):
        return RunDirectory(path, "run")
    study, results = study_of_reference(named), results_folder()
    for directory in usable_directories(results):
        if directory.study_name() == study.name:
            return directory
    accepts = f"there is no run of it in {results}/; `overfit sweep {named}` makes one."
    raise BadValue("run", named, accepts)
