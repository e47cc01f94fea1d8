"""The command `overfit report`: every measured claim beside the paper's.

Verdicts are said, the files are written, and verdicts are held to expected ones. `overfit
reproduce` ends in the same way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from overfit_cli.cli import completion
from overfit_cli.cli.options import Expect, Strict, Where
from overfit_cli.core.console import console, print_folded
from overfit_cli.core.errors import BadValue
from overfit_cli.core.files import make_folder
from overfit_cli.core.text import plural, suggestion

if TYPE_CHECKING:
    from rich.console import Console

    from overfit_cli.core.claim import Verdict
    from overfit_cli.report.contents import ReportedPaper
    from overfit_cli.report.expected import VerdictCheck
    from overfit_cli.report.judge import Judged
    from overfit_cli.report.runs import LoadedRun


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
    """

    sources: Sequence[Path] = ()
    where: Sequence[str] = ()
    presets: Collection[str] | None = None
    directories: Collection[Path] = ()
    profile: str = "quick"
    only: Sequence[str] = ()

    def studies(self, runs: Sequence[LoadedRun]) -> set[str]:
        """Return the names of the studies to report."""
        from overfit_cli.core.registry import installed_studies
        from overfit_cli.sweeps.presets import all_presets

        if not self.only:
            names = self.presets or ()
            asked = {each.content.study for each in all_presets() if each.name in names}
            with_cells = asked | {run.study.name for run in runs}
            return with_cells or {study.name for study in installed_studies()}
        known = {study.name: study for study in (*installed_studies(), *(r.study for r in runs))}
        papers: dict[str, set[str]] = {}
        for study in known.values():
            if study.paper:
                papers.setdefault(study.paper.key, set()).add(study.name)
        named = {**papers, **{name: {name} for name in known}}
        for name in self.only:
            if name not in named:
                raise BadValue(
                    "only", name, f"it is no study and no paper; {suggestion(name, named)}"
                )
        return set().union(*(named[name] for name in self.only))

    def of(self, judged: Sequence[Judged]) -> list[Judged] | None:
        """Return the claims that are asked for; None for all."""
        if self.presets is not None:
            return [claim for claim in judged if self._includes(claim, self.presets)]
        if self.sources:
            presets = _presets_of(self.sources)
            return [claim for claim in judged if claim.is_measured or claim.claim.preset in presets]
        return None

    def _includes(self, claim: Judged, presets: Collection[str]) -> bool:
        preset = claim.claim.preset
        return preset in presets if preset else claim.directory in self.directories


def write_and_say(
    output: Console,
    asked: Asked,
    folder: Path,
    name: str,
    *,
    expect: Path | None = None,
    strict: bool = False,
    details: bool = False,
) -> int:
    """Judge claims, say the verdicts, write the report, and return the exit code.

    The last lines are the counts of verdicts and the page's path.

    Args:
        name: the argument that names the folder, for messages.
        strict: whether a claim that fails, or an unexpected verdict, gives the code 1; so does a
            report in which nothing is judged.
        details: whether each claim is described; otherwise those that do not hold.
    """
    from overfit_cli.core.files import results_folder
    from overfit_cli.report.contents import contents
    from overfit_cli.report.expected import check_verdicts, read_expected
    from overfit_cli.report.judge import judge_runs
    from overfit_cli.report.runs import load_runs
    from overfit_cli.report.writers import write_report

    if folder.exists():  # what is wrong with it is said before minutes of work
        make_folder(folder, name)
    expected = None if expect is None else read_expected(expect)
    runs = load_runs(asked.sources, results_folder(), asked.where)
    judged = judge_runs(runs, on_every_run=bool(asked.sources), profile=asked.profile)
    studies = asked.studies(runs)
    reported = [claim for claim in judged if claim.study in studies]
    wanted = asked.of(reported if asked.only else judged)
    about = reported if wanted is None else wanted
    shown_runs = [run for run in runs if run.study.name in studies]
    papers = contents(reported, shown_runs, asked.where)
    shown = _say_verdicts(output, asked, papers, about, details=details)
    compared = None if expected is None else check_verdicts(judged, expected, wanted)
    unexpected = None if compared is None else compared.unexpected
    judgeable = {claim.study for claim in reported}
    wrong = _say_outcome(output, shown_runs, judgeable, about, compared)
    if len(shown_runs) > 1 and not asked.sources:  # with many figures it takes a minute
        output.print(f"Drawing the page of {len(shown_runs)} runs in {results_folder()}/.")
    page, *others = write_report(papers, folder, asked.where, unexpected, name=name)
    output.print(f"Written beside the page: {', '.join(path.name for path in others)}")
    if shown:
        output.print(counts_in_words(each.headline for each in shown))
    output.print(f"Page: {page}")
    return int(strict and wrong)


def counts_in_words(verdicts: Iterable[Verdict]) -> str:
    """Return how many claims have each verdict: `16 hold, 0 fail, 4 vacuous`."""
    claims = Counter(verdicts)
    texts = [f"{claims['holds']} hold, {claims['fails']} fail"]
    rest: tuple[Verdict, ...] = ("inconclusive", "vacuous", "not run")
    texts += [f", {claims[verdict]} {verdict}" for verdict in rest if claims[verdict]]
    return f"{''.join(texts)}."


def _say_outcome(
    output: Console,
    runs: Sequence[LoadedRun],
    judgeable: Collection[str],
    about: Sequence[Judged],
    compared: VerdictCheck | None,
) -> bool:
    """Say what fails, what is unexpected and what isn't judged; return whether any of it is so."""
    failed = [claim.name for claim in about if claim.measurement.verdict == "fails"]
    if failed:
        said = f"Claims that fail: {len(failed)} of {len(about)}: {', '.join(failed)}."
        print_folded(output, said)
    for claim in about:
        if claim.contradiction:
            print_folded(output, f"{claim.name}: {claim.contradiction}")
    for sentence in () if compared is None else _comparison_in_words(compared):
        output.print(sentence)
    nothing = not any(claim.is_measured for claim in about)
    for sentence in _nothing_in_words(runs, judgeable, nothing=nothing):
        output.print(sentence)
    wrong = bool(failed) if compared is None else not compared.is_fulfilled
    return wrong or nothing


def _say_verdicts(
    output: Console,
    asked: Asked,
    papers: Sequence[ReportedPaper],
    about: Sequence[Judged],
    *,
    details: bool,
) -> Sequence[Judged]:
    """Say the counts, a table, and what does not hold; return the claims that are counted.

    Of many claims that no run is named for there are counts alone, unless details are asked for.
    """
    from overfit_cli.cli.deciding import lines_on_seeds
    from overfit_cli.cli.list import count_table, verdict_table
    from overfit_cli.report.contents import claim_sentences, family_sentences
    from overfit_cli.report.judge import relevant_claims
    from overfit_cli.report.runs import AFTER_THE_FIRST_CELL

    whole = not asked.sources and asked.presets is None
    many = whole and sum(claim.is_measured for claim in about) > MOST_LISTED
    if asked.sources:
        about = [claim for paper in papers for claim in paper.judged]
    shown = about if many else relevant_claims(about)
    if asked.sources:
        presets = _presets_of(asked.sources)
        shown = [claim for claim in shown if _is_about(claim, presets)]
    if shown:
        output.print(count_table([paper.restricted(shown) for paper in papers]))
    if shown and (details or not many):
        output.print(verdict_table(shown))
        unsettled = [
            claim
            for claim in shown
            if (claim.is_open or claim.headline != "holds") and not claim.lacks_seeds
        ]
        described = shown if details else unsettled
        for sentence in claim_sentences(described):
            print_folded(output, sentence)
        changed = [claim for claim in shown if claim.headline != claim.measurement.verdict]
        for sentence in family_sentences(shown if details else changed):
            print_folded(output, sentence)
        for line in lines_on_seeds(shown):
            print_folded(output, line)
        late = [each.name for each in shown if each.changed_late and each not in described]
        if late:
            output.print(f"Changed {AFTER_THE_FIRST_CELL} (see --details): {', '.join(late)}.")
    if 0 < len(shown) < len(about):
        left = len(about) - len(shown)
        others = f"{left} other claim is" if left == 1 else f"{left} other claims are"
        output.print(f"{others} not tested by these runs; see report.md.")
    return shown


def _is_about(claim: Judged, presets: Collection[str]) -> bool:
    """Whether a claim is about runs: it has a number there, or they are its preset's."""
    preset = claim.claim.preset
    return not preset or preset in presets or claim.measurement.value is not None


def _presets_of(sources: Sequence[Path]) -> frozenset[str]:
    from overfit_cli.sweeps.presets import presets_run_into

    names = [path.resolve().name for path in sources]
    return frozenset(preset.name for name in names for preset in presets_run_into(name))


def _comparison_in_words(compared: VerdictCheck) -> Iterator[str]:
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


def _nothing_in_words(
    runs: Sequence[LoadedRun], judgeable: Collection[str], *, nothing: bool
) -> Iterator[str]:
    """Yield sentences on runs without numbers, and on a report without a judged claim."""
    from overfit_cli.core.files import results_folder

    failed = 0
    for run in runs:
        if (run.cells["status"] == "failed").all():
            failed += 1
            cells = f"all {len(run.cells)} cells" if len(run.cells) > 1 else "its one cell"
            yield f"{run.directory.path}: {cells} failed, so there are no numbers to judge."
    studies = {run.study.name for run in runs}
    if not nothing or (runs and failed == len(runs)):
        return
    if not runs:
        yield (
            f"No claim was judged: no run directory in {results_folder()}/ can be used; "
            "`overfit reproduce` makes them."
        )
    elif studies.isdisjoint(judgeable):
        yield f"{' and '.join(sorted(studies))} {'has' if len(studies) == 1 else 'have'} no claims."
    else:
        yield (
            "No claim applies to these runs; `overfit list claims STUDY` names the presets that "
            "claims apply to."
        )


def report(
    run: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="RUN",
            help="Run directories, each of which is judged by itself.  [default: for each claim "
            "the run of its preset in results/ (quick before paper), or else the first run by "
            "name that has cells for it]",
            autocompletion=completion.run_directories,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder for index.html, report.md and claims.json.  [default: results/report]",
        ),
    ] = None,
    where: Where = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="STUDY",
            help="Study or paper to report on; may be repeated.  [default: those with cells]",
            autocompletion=completion.studies,
        ),
    ] = None,
    strict: Strict = False,
    expect: Expect = None,
    details: Annotated[
        bool,
        typer.Option(
            "--details",
            help="Describe every claim, including those that hold: level, seeds, notes.",
        ),
    ] = False,
) -> int:
    """Judge claims on your runs, and write a page about them.

    The terminal shows the counts of verdicts, a table of claims, and a description of each claim
    that does not hold.
    """
    from overfit_cli.core.files import results_folder

    asked = Asked(run or [], where or [], only=only or [])
    folder = out or results_folder() / "report"
    return write_and_say(
        console(), asked, folder, "out", expect=expect, strict=strict, details=details
    )
