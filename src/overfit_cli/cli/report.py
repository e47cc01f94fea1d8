"""The command `overfit report`: every measured claim beside the paper's."""

from __future__ import annotations

from typing import Annotated

import typer

from overfit_cli.cli import completion
from overfit_cli.cli.common import RESULTS, console
from overfit_cli.cli.options import Where, read_path
from overfit_cli.words import plural


def report(
    sources: Annotated[
        list[str] | None,
        typer.Option(
            "--from",
            metavar="DIR",
            help="Run directory; may be repeated.  [default: for each claim the one of its preset "
            "in results/, else the newest with cells for it]",
            autocompletion=completion.run_directories,
        ),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(
            metavar="DIR", help="Folder for report.md and claims.json.  [default: results/report]"
        ),
    ] = None,
    where: Where = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with code 1 if a claim fails.")
    ] = False,
) -> int:
    """Judge the claims of the papers on your runs."""
    from overfit_cli.report.judge import judge_all, worth_showing
    from overfit_cli.report.page import families, sentences, verdict_table, write_report

    output = console()
    named = [path for source in sources or [] if (path := read_path("--from", source))]
    folder = read_path("--out", out) or RESULTS / "report"
    judged = judge_all(named, RESULTS, where or [])
    shown = worth_showing(judged)
    if shown:
        output.print(verdict_table(shown))
    for sentence in sentences(shown):
        output.print(sentence, soft_wrap=False)
    for sentence in families(shown):
        output.print(sentence, soft_wrap=False)
    if len(shown) < len(judged):
        left = len(judged) - len(shown)
        need = "needs" if left == 1 else "need"
        output.print(
            f"{plural(left, 'claim')} {need} other cells than these; report.md says which."
        )
    for path in write_report(judged, folder):
        output.print(f"Written: {path}")
    failed = [one.name for one in judged if one.measurement.verdict == "fails"]
    if failed:
        output.print(f"Claims that fail: {len(failed)} of {len(judged)}: {', '.join(failed)}.")
    return 1 if strict and failed else 0
