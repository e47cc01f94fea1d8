"""A report as commands give it: verdicts are said, files written, and expectations held to."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from overfit_cli.cli.common import RESULTS
from overfit_cli.files import make_folder
from overfit_cli.words import plural

if TYPE_CHECKING:
    from rich.console import Console

    from overfit_cli.report.contents import ReportedPaper
    from overfit_cli.report.expected import Comparison
    from overfit_cli.report.judge import LoadedRun
    from overfit_cli.report.judged import Judged


MOST_LISTED = 20
"""More claims than these, measured in `results/`, are counted by their verdicts."""


@dataclass(frozen=True)
class Asked:
    """What a report is asked to be about.

    Attributes:
        sources: run directories, on each of which claims are judged; empty for all in `results/`,
            of which one decides each claim.
        where: the conditions that choose cells.
        presets: those whose claims are asked for; None for all. The page has every claim.
        directories: where these presets were run; claims without a preset are asked for there.
        profile: which run of a claim's preset decides, if there are several.
    """

    sources: Sequence[Path] = ()
    where: Sequence[str] = ()
    presets: Collection[str] | None = None
    directories: Collection[Path] = ()
    profile: str = "quick"

    def of(self, judged: Sequence[Judged]) -> list[Judged] | None:
        """Return the claims that are asked for; None for all."""
        if self.presets is not None:
            return [one for one in judged if self._includes(one, self.presets)]
        if self.sources:
            own = _presets_of(self.sources)
            return [one for one in judged if one.is_measured or one.claim.preset in own]
        return None

    def _includes(self, one: Judged, presets: Collection[str]) -> bool:
        preset = one.claim.preset
        return preset in presets if preset else one.directory in self.directories


@dataclass(frozen=True)
class Held:
    """What a report is held to, and where it goes.

    Attributes:
        folder: where to write.
        flag: what names the folder, for messages.
        expect: a file of expected verdicts; None for none.
        strict: whether a claim that fails, or an unexpected verdict, gives the code 1; so does a
            report in which nothing is judged.
    """

    folder: Path
    flag: str
    expect: Path | None
    strict: bool


def write_and_say(output: Console, asked: Asked, held: Held) -> int:
    """Judge claims, say the verdicts, write the report, and return the exit code.

    Raises:
        UserError: if the runs can't be judged, or the report can't be written.
    """
    from overfit_cli.report.contents import contents
    from overfit_cli.report.expected import compare, read_expected
    from overfit_cli.report.files import write_report
    from overfit_cli.report.judge import judge_runs, load_runs

    if held.folder.exists():  # what is wrong with it is said before minutes of work
        make_folder(held.folder, held.flag)
    expected = None if held.expect is None else read_expected(held.expect)
    runs = load_runs(asked.sources, RESULTS, asked.where)
    judged = judge_runs(runs, every=bool(asked.sources), profile=asked.profile)
    wanted = asked.of(judged)
    about = judged if wanted is None else wanted
    papers = contents(judged, runs, asked.where)
    _say_verdicts(output, asked, papers, about)
    compared = None if expected is None else compare(judged, expected, wanted)
    unexpected = None if compared is None else compared.unexpected
    if len(runs) > 1 and not asked.sources:  # with many figures it takes a minute
        output.print(f"Drawing the page of all {len(runs)} runs in {RESULTS}/.")
    for path in write_report(papers, held.folder, asked.where, unexpected, flag=held.flag):
        output.print(f"Written: {path}")
    return _say_outcome(output, held, runs, about, compared)


def _say_outcome(
    output: Console,
    held: Held,
    runs: Sequence[LoadedRun],
    about: Sequence[Judged],
    compared: Comparison | None,
) -> int:
    """Say what fails, what is unexpected and what isn't judged, and return the exit code."""
    failed = [one.name for one in about if one.measurement.verdict == "fails"]
    if failed:
        output.print(f"Claims that fail: {len(failed)} of {len(about)}: {', '.join(failed)}.")
    for sentence in () if compared is None else _comparison_in_words(compared):
        output.print(sentence)
    nothing = not any(one.is_measured for one in about)
    for sentence in _nothing_in_words(runs, nothing=nothing):
        output.print(sentence)
    wrong = bool(failed) if compared is None else not compared.is_fulfilled
    return int(held.strict and (wrong or nothing))


def _say_verdicts(
    output: Console, asked: Asked, papers: Sequence[ReportedPaper], about: Sequence[Judged]
) -> None:
    """Say the verdicts: of named runs in full, else in a table; many are counted."""
    from overfit_cli.cli.tables import count_table, verdict_table
    from overfit_cli.report.judged import worth_showing
    from overfit_cli.report.words import families, sentences

    whole = not asked.sources and asked.presets is None
    if whole and sum(one.is_measured for one in about) > MOST_LISTED:
        output.print(count_table(papers))
        return
    if asked.sources:
        about = [one for paper in papers for one in paper.judged]
    shown = worth_showing(about)
    if shown:
        output.print(verdict_table(shown))
    for sentence in (*sentences(shown), *families(shown)) if asked.sources else ():
        output.print(sentence, soft_wrap=False)
    if 0 < len(shown) < len(about):
        left = len(about) - len(shown)
        need = "needs" if left == 1 else "need"
        output.print(
            f"{plural(left, 'claim')} {need} other cells than these; report.md says which."
        )


def _presets_of(sources: Sequence[Path]) -> frozenset[str]:
    """The presets that are run into directories of these names."""
    from overfit_cli.sweeps.presets import presets_run_into

    names = [path.resolve().name for path in sources]
    return frozenset(preset.name for name in names for preset in presets_run_into(name))


def _comparison_in_words(compared: Comparison) -> Iterator[str]:
    """What differs from the expected verdicts, a line each, and how much was compared."""
    for claim, what in compared.unexpected.items():
        yield f"Unexpected: {claim}: {what}."
    for claim, meant in compared.unknown.items():
        hint = f"; did you mean {meant}?" if meant else "."
        yield f"Expected, but there is no such claim: {claim}{hint}"
    left = f"; {plural(compared.left_out, 'claim')} of other presets not compared"
    yield (
        f"{compared.compared - len(compared.unexpected)} of {compared.compared} verdicts are as "
        f"expected{left if compared.left_out else ''}."
    )


def _nothing_in_words(runs: Sequence[LoadedRun], *, nothing: bool) -> Iterator[str]:
    """Which runs have nothing to judge by, and whether no claim was judged."""
    for run in runs:
        if (run.cells["status"] == "failed").all():
            cells = f"all {len(run.cells)} cells" if len(run.cells) > 1 else "its one cell"
            yield f"{run.directory.path}: {cells} failed, so there are no numbers to judge by."
    if nothing:
        none = f"no run directory in {RESULTS}/ can be used; `overfit reproduce` makes them."
        other = "these cells bear on none; `overfit list claims STUDY` names presets that do."
        yield f"No claim was judged: {other if runs else none}"
