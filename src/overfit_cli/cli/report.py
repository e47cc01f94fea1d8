"""`overfit report`: set every measured claim beside the paper's."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from overfit_cli.cli.common import RESULTS, console


def report(
    sources: Annotated[
        list[Path] | None,
        typer.Option(
            "--from",
            metavar="DIR",
            help="Run directory; may be given several times.  [default: those in results/, the "
            "newest that bears on a claim]",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Where report.md and claims.json go.  [default: results/report]"
        ),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 1 when a claim fails.")
    ] = False,
) -> int:
    """Judge the claims of the papers by what was run."""
    from overfit_cli.report.judge import judge_all
    from overfit_cli.report.page import sentences, verdict_table, write_report

    output = console()
    judged = judge_all(sources or [], RESULTS)
    output.print(verdict_table(judged))
    for sentence in sentences(judged):
        output.print(sentence, soft_wrap=False)
    for path in write_report(judged, out or RESULTS / "report"):
        output.print(f"Written: {path}")
    failed = [one.claim.name for one in judged if one.measurement.verdict == "fails"]
    if failed:
        output.print(f"{len(failed)} of {len(judged)} claims fail: {', '.join(failed)}.")
    return 1 if strict and failed else 0
