"""The command `overfit report`: every measured claim beside the paper's."""

from __future__ import annotations

from typing import Annotated

import typer

from overfit_cli.cli import completion
from overfit_cli.cli.common import RESULTS, console
from overfit_cli.cli.options import DataFolder, Expect, Strict, Where, read_path, use_data
from overfit_cli.cli.reporting import Asked, Held, write_and_say


def report(
    sources: Annotated[
        list[str] | None,
        typer.Option(
            "--from",
            metavar="DIR",
            help="Run directory; may be repeated, and each is judged by itself.  [default: for "
            "each claim the run of its preset in results/, quick before paper, else the first by "
            "name with cells for it]",
            autocompletion=completion.run_directories,
        ),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help="Folder for index.html, report.md, claims.json, junit.xml and verdicts.toml.  "
            "[default: results/report]",
        ),
    ] = None,
    where: Where = None,
    strict: Strict = False,
    expect: Expect = None,
    data_folder: DataFolder = None,
) -> int:
    """Judge the claims of the papers on your runs, and write a page about them."""
    use_data(data_folder)
    named = [path for source in sources or [] if (path := read_path("--from", source))]
    folder = read_path("--out", out) or RESULTS / "report"
    held = Held(folder, "--out", read_path("--expect", expect), strict)
    return write_and_say(console(), Asked(named, where or []), held)
