"""The command `overfit seal`: claims of one's own, fixed before their cells are seen."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from overfit_cli.cli.options import Settings, SubjectAndParameters, read_words, texts_by_name
from overfit_cli.core.console import console
from overfit_cli.core.errors import UserError


def seal(
    context: typer.Context,
    words: SubjectAndParameters = None,
    settings: Settings = None,
    seeds: Annotated[
        str, typer.Option(metavar="SEEDS", help="Seeds of the design, as in a sweep.")
    ] = "10",
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.json",
            help="File to write.  [default: FILE-FUNCTION.seal.json beside the file]",
        ),
    ] = None,
) -> int:
    """Seal the claims of FILE.py before their cells are trained.

    The seal has the date, the seeds, and a digest of each claim. Reports say whether a claim is the
    sealed one. One cell is trained to learn which columns are measured. A claim that can't fail is
    refused: one that fails in none of many simulated worlds.
    """
    from overfit_cli.report.seal import seal_claims
    from overfit_cli.sweeps.grid import make_grid
    from overfit_cli.sweeps.ranges import parse_seeds
    from overfit_cli.sweeps.subject import find_subject

    named, given = read_words(context, words, settings)
    subject = find_subject(named)
    if subject.study.identity.function is None:
        raise UserError(
            f"{subject.typed}: it takes a function in a file of yours, FILE.py or FILE.py:NAME."
        )
    texts = texts_by_name(context, given, subject.study)
    grid = make_grid(subject.study, {**subject.texts, **texts}, parse_seeds(seeds))
    path, sealed, before = seal_claims(grid, out)
    output = console()
    for name in sealed:
        when = f", as on {before[name][:10]}" if name in before else ""
        output.print(f"Sealed: {name}{when}")
    output.print(f"Written: {path}")
    return 0
