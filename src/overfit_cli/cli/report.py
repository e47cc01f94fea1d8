"""The command `overfit report`: every measured claim beside the paper's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from overfit_cli.cli import completion
from overfit_cli.cli.common import RESULTS, console
from overfit_cli.cli.options import DataFolder, Expect, Strict, Where, read_path, use_data
from overfit_cli.words import plural

if TYPE_CHECKING:
    from rich.console import Console

    from overfit_cli.report.expected import Comparison
    from overfit_cli.report.judged import Judged


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
    return write_and_say(
        console(), named, folder, where or [], read_path("--expect", expect), strict
    )


def write_and_say(
    output: Console,
    sources: Sequence[Path],
    folder: Path,
    where: Sequence[str],
    expect: Path | None,
    strict: bool,
    *,
    presets: frozenset[str] | None = None,
) -> int:
    """Judge claims, say the verdicts, write the report, and return the exit code.

    Args:
        output: where to say things.
        sources: the run directories; empty for all in results/.
        folder: where to write.
        where: the conditions that choose cells.
        expect: a file of expected verdicts; None for none.
        strict: whether a claim that fails, or an unexpected verdict, gives the code 1.
        presets: what the runs are of, where the user named presets and not runs: the run of its
            preset decides a claim then, and the verdicts alone are said.

    Raises:
        UserError: if the runs can't be judged, or the report can't be written.
    """
    from overfit_cli.report.contents import contents
    from overfit_cli.report.expected import compare, read_expected
    from overfit_cli.report.files import write_report
    from overfit_cli.report.judge import judge_runs, load_runs, worth_showing

    expected = None if expect is None else read_expected(expect)
    runs = load_runs(sources, RESULTS, where)
    judged = judge_runs(runs, every=bool(sources) and presets is None)
    _say(output, judged, worth_showing(judged), brief=presets is not None)
    compared = None
    if expected is not None:
        about = presets if presets is not None else _presets_of(sources)
        compared = compare(judged, expected, about if sources else None)
    papers = contents(judged, runs, where)
    unexpected = None if compared is None else compared.unexpected
    for path in write_report(papers, folder, where, unexpected):
        output.print(f"Written: {path}")
    failed = [one.name for one in judged if one.measurement.verdict == "fails"]
    if failed:
        output.print(f"Claims that fail: {len(failed)} of {len(judged)}: {', '.join(failed)}.")
    if compared is None:
        return 1 if strict and failed else 0
    for sentence in _comparison_in_words(compared):
        output.print(sentence)
    return 1 if strict and not compared.is_fulfilled else 0


def _say(
    output: Console, judged: Sequence[Judged], shown: Sequence[Judged], *, brief: bool
) -> None:
    """Say the verdicts of the claims that are shown, and how many aren't."""
    from overfit_cli.cli.tables import verdict_table
    from overfit_cli.report.words import families, sentences

    if shown:
        output.print(verdict_table(shown))
    for sentence in () if brief else (*sentences(shown), *families(shown)):
        output.print(sentence, soft_wrap=False)
    if len(shown) < len(judged):
        left = len(judged) - len(shown)
        need = "needs" if left == 1 else "need"
        output.print(
            f"{plural(left, 'claim')} {need} other cells than these; report.md says which."
        )


def _presets_of(sources: Sequence[Path]) -> frozenset[str]:
    """The presets that are run into directories of these names."""
    from overfit_cli.sweeps.presets import PROFILES, all_presets

    names = {path.resolve().name for path in sources}
    return frozenset(
        preset.name for preset in all_presets() if names & set(map(preset.run_name, PROFILES))
    )


def _comparison_in_words(compared: Comparison) -> list[str]:
    """What differs from the expected verdicts, a line each, and how much was compared."""
    said = [f"Unexpected: {claim}: {what}." for claim, what in compared.unexpected.items()]
    said += [f"Expected, but there is no such claim: {claim}." for claim in compared.unknown]
    left = f"; {plural(compared.left_out, 'claim')} of other presets not compared"
    return [
        *said,
        f"{compared.compared - len(compared.unexpected)} of {compared.compared} verdicts are as "
        f"expected{left if compared.left_out else ''}.",
    ]
