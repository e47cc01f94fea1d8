"""The command `overfit judge`: claims of one's own, as sentences, on a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from overfit_cli.cli import completion
from overfit_cli.cli.options import Where
from overfit_cli.core.console import console, typed_command
from overfit_cli.core.errors import BadValue, UserError
from overfit_cli.core.text import visible


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
            help="Claims in quotes, such as 'test_error < 0.05 where snr > 2', or names of "
            "claims that the run has.  [default: all that the run has]",
        ),
    ] = None,
    where: Where = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with code 1 unless every claim holds.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="PNG, PDF or SVG file for a figure of the claims with their margins; a caption is "
            "written beside it, as FILE.txt.",
        ),
    ] = None,
    json_file: Annotated[
        Path | None,
        typer.Option(
            "--json",
            metavar="FILE",
            help="JSON file of the verdicts, as in a report's claims.json; - prints only the JSON.",
        ),
    ] = None,
) -> int:
    """Judge claims of your own: a verdict, an interval, and how often the verdict is wrong.

    Forms of claims: 'test_error < 0.05 where snr > 2'; 'test_error is 0.5 within 0.02';
    'test_error falls along snr'; 'test_error[method=ridge] < test_error[method=none]';
    'power of n in steps is 1 within 0.1'; 'power of n in snr at test_error = 0.1 is -0.5 within
    0.1'; 'share of seeds with test_error < 0.1 > 0.8'.

    If a claim is inconclusive, it is said how many seeds would decide it, and by which command.
    """
    from overfit_cli.cli.deciding import commands_that_decide
    from overfit_cli.cli.export import print_content
    from overfit_cli.cli.list import verdict_table
    from overfit_cli.core.files import write_user_file
    from overfit_cli.report.contents import claim_sentences, family_sentences
    from overfit_cli.report.decision import decide_sentences
    from overfit_cli.report.writers import judged_json

    output, path = console(), run_directory(run)
    if path is None:
        raise _without_run(run)
    decisions = decide_sentences(path, claims or (), where or ())
    if not decisions:
        raise UserError(f"{run}: it has no claims; state one: 'test_error < 0.05'.")
    judged = [decision.judged for decision in decisions]
    every = all(claim.headline == "holds" for claim in judged)
    if json_file is not None:
        said = [each.judged.noted(each.sentences()) for each in decisions]
        content = judged_json(said).encode()
        if json_file == Path("-"):
            print_content(content)
            return int(strict and not every)
        write_user_file(json_file, content, "json_file")
    output.print(verdict_table(judged))
    if not Path(run).is_dir():
        output.print(visible(f"The newest run of {run} is {path}."))
    if where:
        output.print(visible(f"Only cells with {' and '.join(where)} are judged."))
    for decision in decisions:
        for sentence in (*claim_sentences([decision.judged]), *decision.sentences()):
            output.print(visible(sentence))
    for sentence in family_sentences([each for each in judged if each.family > 1]):
        output.print(visible(sentence))
    for line in commands_that_decide(path, decisions):
        output.print(line)
    if out is not None:
        from overfit_cli.figures.picture import save_with_caption
        from overfit_cli.report.claim_figure import draw_claims

        picture = draw_claims(path, judged, where or (), command=typed_command(), out=out)
        save_with_caption(picture, out)
        output.print(f"Drawn: {out}, and its caption in {out.with_suffix('.txt').name}")
    if json_file is not None:
        output.print(f"Written: {json_file}")
    return int(strict and not every)


def run_directory(named: str) -> Path | None:
    """Return the run directory that is named: itself, or the newest one of a function's file.

    None where the file has no run.
    """
    from overfit_cli.core.files import results_folder
    from overfit_cli.core.values import usable_path
    from overfit_cli.functions.function_study import study_of_reference
    from overfit_cli.functions.references import is_reference
    from overfit_cli.sweeps.load import usable_directories

    path = usable_path("run", named)
    if path.is_dir() or not is_reference(named):
        return path
    study = study_of_reference(named)
    for directory in usable_directories(results_folder()):
        if directory.study_name() == study.name:
            return directory.path
    return None


def _without_run(named: str) -> BadValue:
    from overfit_cli.core.files import results_folder

    return BadValue(
        "run",
        named,
        f"there is no run of it in {results_folder()}/; `overfit sweep {named}` makes one.",
    )
