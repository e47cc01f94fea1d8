"""The command `overfit report`: every measured claim beside the paper's.

Verdicts are said, the files are written, and verdicts are held to expected ones. `overfit
reproduce` ends in the same way.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from overfit_cli.cli import completion
from overfit_cli.cli.list import count_table, verdict_table
from overfit_cli.cli.options import EXPECT, STRICT, WHERE, argument, flag, option
from overfit_cli.cli.proposals import lines_on_seeds
from overfit_cli.core.claim import HOLDING
from overfit_cli.core.errors import BadValue
from overfit_cli.core.files import make_folder, results_folder
from overfit_cli.core.text import console, plural, print_folded, suggestion

if TYPE_CHECKING:
    from rich.console import Console

    from overfit_cli.report.contents import Entry
    from overfit_cli.report.judge import Judged
    from overfit_cli.report.runs import JudgedRun


MOST_LISTED = 20
"""More claims than these, measured in `results/`, are counted by their verdicts."""


@dataclass(frozen=True)
class Asked:
    """The subject of a report.

    Attributes:
        sources: run directories, on each of which claims are judged; empty for all in `results/`,
            of which one decides each claim.
        presets: those whose claims are asked for; None for all. The page has every claim.
        directories: where these presets were run; claims without a preset are asked for there.
        only: studies and papers to report; empty for the studies that have cells.
        strict: whether a claim that fails, or an unexpected verdict, gives the code 1; so does a
            report in which nothing is judged.
        expect: the file of expected verdicts.
        details: whether each claim is described; otherwise those that do not hold.
    """

    sources: Sequence[Path] = ()
    where: Sequence[str] = ()
    presets: Collection[str] | None = None
    directories: Collection[Path] = ()
    profile: str = "quick"
    only: Sequence[str] = ()
    strict: bool = False
    expect: Path | None = None
    details: bool = False

    def studies(self, runs: Sequence[JudgedRun]) -> set[str]:
        """Return the names of the studies to report."""
        from overfit_cli.core.registry import installed_studies
        from overfit_cli.sweeps.presets import all_presets

        known = {study.name: study for study in (*installed_studies(), *(r.study for r in runs))}
        if not self.only:
            names = self.presets or ()
            asked = {each.study for each in all_presets() if each.name in names}
            return asked | {run.study.name for run in runs} or {*known}
        papers = {name: study.paper.key for name, study in known.items() if study.paper}
        named = {*known, *papers.values()}
        for name in self.only:
            if name not in named:
                accepts = f"it is no study and no paper; {suggestion(name, named)}"
                raise BadValue("only", name, accepts)
        return {name for name in known if {name, papers.get(name)} & {*self.only}}

    def of(self, judged: Sequence[Judged]) -> list[Judged] | None:
        """Return the claims that are asked for; None for all."""
        if self.presets is not None:
            return [
                each
                for each in judged
                if each.claim.preset in self.presets
                or (not each.claim.preset and each.directory in self.directories)
            ]
        own = presets_of(self.sources)
        measured = [each for each in judged if each.claim.preset in own or each.is_measured]
        return measured if self.sources else None


def presets_of(sources: Sequence[Path]) -> frozenset[str]:
    """Return the names of the presets that are run into directories of these names."""
    from overfit_cli.sweeps.presets import presets_run_into

    names = [path.resolve().name for path in sources]
    return frozenset(preset.name for name in names for preset in presets_run_into(name))


def write_and_say(asked: Asked, folder: Path, name: str) -> int:
    """Judge claims, say the verdicts, write the report, and return the exit code.

    The last lines are the counts of verdicts and the page's path.

    Args:
        name: the argument that names the folder, for messages.
    """
    from overfit_cli.report.contents import contents
    from overfit_cli.report.judge import judge_runs
    from overfit_cli.report.page import write_report
    from overfit_cli.report.runs import load_runs
    from overfit_cli.report.verdict_files import check_verdicts, read_expected
    from overfit_cli.report.words import counts_in_words, sentences
    from overfit_cli.sweeps.store import RunDirectory

    if folder.exists():  # what is wrong with it is said before minutes of work
        make_folder(folder, name)
    output, expected = console(), None if asked.expect is None else read_expected(asked.expect)
    opened = [RunDirectory(path, "run") for path in asked.sources]
    runs = load_runs(opened, results_folder(), asked.where)
    judged = judge_runs(runs, on_every_run=bool(asked.sources), profile=asked.profile)
    studies = asked.studies(runs)
    reported = [claim for claim in judged if claim.study in studies]
    wanted = asked.of(reported if asked.only else judged)
    about = reported if wanted is None else wanted
    runs = [run for run in runs if run.study.name in studies]
    papers = contents(reported, runs)
    shown = _say_verdicts(output, asked, papers, about)
    compared = None if expected is None else check_verdicts(judged, expected, wanted)
    without = [run for run in runs if (run.cells["status"] == "failed").all()]
    outcome = {"about": about, "compared": compared, "reported": reported, "runs": runs}
    for line in sentences("outcome.txt", **outcome, without=without, results=results_folder()):
        print_folded(output, line)
    if len(runs) > 1 and not asked.sources:  # with many figures it takes a minute
        output.print(f"Drawing the page of {len(runs)} runs in {results_folder()}/.")
    unexpected = None if compared is None else compared.unexpected
    page, *others = write_report(papers, folder, asked.where, unexpected, name=name)
    output.print(f"Written beside the page: {', '.join(path.name for path in others)}")
    if shown:
        output.print(counts_in_words(each.headline for each in shown))
    output.print(f"Page: {page}")
    has_failed = any(claim.headline == "fails" for claim in about)
    wrong = has_failed if compared is None else not compared.is_fulfilled
    return int(asked.strict and (wrong or not any(claim.is_measured for claim in about)))


def _say_verdicts(
    output: Console,
    asked: Asked,
    papers: Sequence[Entry],
    about: Sequence[Judged],
) -> Sequence[Judged]:
    """Say the counts, a table, and what does not hold; return the claims that are counted.

    Of many claims that no run is named for there are counts alone, unless details are asked for.
    """
    from overfit_cli.report.judge import relevant_claims
    from overfit_cli.report.runs import AFTER_THE_FIRST_CELL
    from overfit_cli.report.words import by_itself, claim_sentence, family_sentences

    whole, details = not asked.sources and asked.presets is None, asked.details
    many = whole and sum(claim.is_measured for claim in about) > MOST_LISTED
    if asked.sources:  # a claim is about runs that are its preset's, or where it has a number
        about, own = [one for paper in papers for one in paper["judged"]], presets_of(asked.sources)
        shown: Sequence[Judged] = [
            each
            for each in relevant_claims(about)
            if each.claim.preset in ("", *own) or each.measurement.value is not None
        ]
    else:
        shown = about if many else relevant_claims(about)
    if shown:
        counted = {
            one["cited"]: [each for each in one["judged"] if each in shown] for one in papers
        }
        output.print(count_table(counted))
    if shown and (details or not many):
        output.print(verdict_table(shown))
        unsettled = [
            each for each in shown if each.headline not in HOLDING and not each.lacks_seeds
        ]
        for claim in shown if details else unsettled:
            print_folded(output, claim_sentence(claim))
        lines = family_sentences(shown if details else [one for one in shown if by_itself(one)])
        for line in (*lines, *lines_on_seeds(shown)):
            print_folded(output, line)
        if late := [each.name for each in shown if each.changed_late and not details]:
            output.print(f"Changed {AFTER_THE_FIRST_CELL} (see --details): {', '.join(late)}.")
    if 0 < (left := len(about) - len(shown)) < len(about):
        others = f"{plural(left, 'other claim')} {'is' if left == 1 else 'are'}"
        output.print(f"{others} not tested by these runs; see report.md.")
    return shown


def report(
    run: list[Path] | None = argument(
        "RUN",
        "Run directories, each of which is judged by itself.  [default: for each claim "
        "the run of its preset in results/ (quick before paper), or else the first run by "
        "name that has cells for it]",
        completion.run_directories,
        default=None,
    ),
    out: Path | None = option(
        "DIR", "Folder for index.html, report.md and claims.json.  [default: results/report]"
    ),
    where: list[str] | None = WHERE,
    only: list[str] | None = option(
        "STUDY",
        "Study or paper to report on; may be repeated.  [default: those with cells]",
        complete=completion.studies,
    ),
    strict: bool = STRICT,
    expect: Path | None = EXPECT,
    details: bool = flag(
        "Describe every claim, including those that hold: level, seeds, notes.", "--details"
    ),
) -> int:
    """Judge claims on your runs, and write a page about them.

    The terminal shows the counts of verdicts, a table of claims, and a description of each claim
    that does not hold.
    """
    asked = Asked(
        run or [], where or [], only=only or [], strict=strict, expect=expect, details=details
    )
    return write_and_say(asked, out or results_folder() / "report", "out")
