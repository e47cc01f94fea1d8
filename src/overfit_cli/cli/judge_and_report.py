"""The commands `judge` and `report`: claims on a run, and every claim beside the paper's.

Verdicts are said, the files are written, and verdicts are held to expected ones. `overfit
reproduce` ends in the same way.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from overfit_cli.cli import options as cli
from overfit_cli.cli.proposals import commands_that_decide, lines_on_seeds
from overfit_cli.core import text
from overfit_cli.core.claim import HOLDING, number_with_interval
from overfit_cli.core.errors import BadValue, UserError
from overfit_cli.core.files import make_folder, results_folder

if TYPE_CHECKING:
    from overfit_cli.report.contents import Entry
    from overfit_cli.report.judge import Judged
    from overfit_cli.report.runs import JudgedRun


def judge(
    run: Path = cli.argument("RUN", "Run directory.", "runs"),
    claims: list[str] = cli.argument(
        "CLAIM",
        "Claims in quotes, such as 'test_error < 0.05 where snr > 2', or names of "
        "claims that the run has.  [default: all that the run has]",
        default=[],
    ),
    where: list[str] = cli.WHERE,
    study: str | None = cli.FUNCTION_FILE,
    strict: bool = cli.flag("Exit with code 1 unless every claim holds.", "--strict"),
    out: Path | None = cli.FIGURE_FILE,
    json_file: Path | None = cli.JSON_FILE,
    latex: Path | None = cli.option(
        "FILE", "LaTeX file of macros with each verdict, value and interval; - prints only these."
    ),
) -> int:
    """Judge claims of your own: a verdict, an interval, and how often the verdict is wrong.

    Forms of claims: 'test_error < 0.05 where snr > 2'; 'test_error is 0.5 within 0.02';
    'test_error falls along snr'; 'test_error[method=ridge] < test_error[method=none]';
    'power of n in steps is 1 within 0.1'; 'snr at test_error = 0.1 is 0.5 within 0.05'; 'power of n
    in snr at test_error = 0.1 is -0.5 within 0.1'; 'loss[step=100] < 0.2'; 'first step with
    sharpness > 2/eta < 200'; 'powers of (n, snr) in steps are (1, any) within 0.1'; 'share of seeds
    with test_error < 0.1 > 0.8'; 'test_error <= bound on all seeds if train_error <= 0.01'.
    If a claim is inconclusive, it is said how many seeds would decide it, and by which command.
    """
    from overfit_cli.cli.export_and_compare import macros
    from overfit_cli.functions.function_study import study_of_reference
    from overfit_cli.report import contents, judge, runs
    from overfit_cli.sweeps.store import RunDirectory

    output = text.console(quiet=Path("-") in (json_file, latex))
    named = None if study is None else study_of_reference(study)
    (loaded,) = runs.load_runs([RunDirectory(run, "run")], where, named)
    judged = judge.decide(loaded, claims)
    if not judged:
        raise UserError(f"{run}: it has no claims; state one: 'test_error < 0.05'.")
    output.print(verdict_table(judged))
    if where:
        output.print(f"Only cells with {' and '.join(where)} are judged.")
    said = [[*each.sentences()] for each in judged]  # of which error rates take a second
    for each, lines in zip(judged, said, strict=True):
        for sentence in (each.in_words(), *lines):
            output.print(sentence)
    families = judge.family_sentences([each for each in judged if each.family > 1])
    for line in (*families, *commands_that_decide(loaded, judged)):
        output.print(line)
    noted = [each.noted(lines) for each, lines in zip(judged, said, strict=True)]
    cli.write_content(output, json_file, contents.judged_json(noted).encode(), "json_file")
    cli.write_content(output, latex, macros(judged).encode(), "latex")
    if out is not None:
        from overfit_cli.report.pictures import draw_claims

        draw_claims(judged, out=out)
        cli.say_drawn(output, out)
    return int(strict and any(claim.headline not in HOLDING for claim in judged))


_COLOURS = {
    "holds": "green",
    "holds by far": "green",
    "fails": "bold red",
    "inconclusive": "yellow",
    "vacuous": "cyan",
    "not run": "dim",
}


def verdict_table(judged: Sequence[Judged]) -> Table:
    """Return the verdicts at the level of all together, and by themselves where those differ."""
    rows = []
    for claim in judged:
        verdict = Text(claim.headline, style=_COLOURS[claim.headline])
        verdict.append(f" {claim.where}" if claim.where and claim.is_measured else "")
        verdict.append("".join(f", {it}" for it in (claim.by_itself, claim.not_as_sealed) if it))
        measured = number_with_interval(claim.measurement.value, claim.measurement.interval)
        about = {"claim": claim.name, "kind": claim.claim.kind}
        rows.append({**about, "verdict": verdict, "measured": measured})
    return text.text_table(rows, ruled=True, whole=("kind", "verdict"))


# Reports

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
        expect: the files of expected verdicts.
        details: whether each claim is described; otherwise those that do not hold.
        study: the file of a run's function, whose claims are judged as they are now.
    """

    sources: Sequence[Path] = ()
    where: Sequence[str] = ()
    presets: Collection[str] | None = None
    directories: Collection[Path] = ()
    profile: str = "quick"
    only: Sequence[str] = ()
    strict: bool = False
    expect: Sequence[Path] = ()
    details: bool = False
    out: Path | None = None
    study: str | None = None

    def studies(self, runs: Sequence[JudgedRun]) -> set[str]:
        """Return the names of the studies to report."""
        from overfit_cli.core.registry import installed_studies
        from overfit_cli.sweeps.presets import find_preset

        known = {
            study.name: study.paper.key if study.paper else study.name
            for study in (*installed_studies(), *(run.study for run in runs))
        }
        names = {*known, *known.values()}
        for name in {*self.only} - names:
            hint = text.suggestion(name, names)
            raise BadValue("only", name, f"it is no study and no paper; {hint}")
        if self.only:
            return {name for name, paper in known.items() if {name, paper} & {*self.only}}
        asked = () if self.sources else filter(None, map(find_preset, self.presets or ()))
        return {each.study for each in asked} | {run.study.name for run in runs} or {*known}

    def wants(self, claim: Judged) -> bool:
        """Return whether a claim is asked for: of a preset, or measured on a source."""
        if self.presets is None or claim.claim.preset in self.presets:
            return True
        if self.sources:
            return claim.is_measured
        return not claim.claim.preset and claim.directory in self.directories


def write_and_say(asked: Asked) -> int:
    """Judge claims, say the verdicts, write the report, and return the exit code.

    The last lines are the counts of verdicts and the page's path.
    """
    from overfit_cli.functions.function_study import study_of_reference
    from overfit_cli.report import contents, judge, page, runs, words
    from overfit_cli.sweeps.store import RunDirectory

    folder, name = asked.out or results_folder() / "report", "out" if asked.out else "the report"
    if folder.exists():  # what is wrong with it is said before minutes of work
        make_folder(folder, name)
    output = text.console()
    expected = contents.read_expected(asked.expect, folder) if asked.expect else None
    opened = [RunDirectory(path, "run") for path in asked.sources]
    named = None if asked.study is None else study_of_reference(asked.study)
    loaded = runs.load_runs(opened, asked.where, named)
    judged = judge.judge_runs(loaded, on_every_run=bool(opened), profile=asked.profile)
    studies = asked.studies(loaded)
    reported = [claim for claim in judged if claim.study in studies]
    about = [claim for claim in reported if asked.wants(claim)]
    loaded = [run for run in loaded if run.study.name in studies]
    papers = contents.contents(reported, loaded)
    shown = _say_verdicts(asked, papers, about)
    only = None if asked.presets is None else about
    compared = None if expected is None else contents.check_verdicts(judged, expected, only)
    outcome = words.sentences(
        "outcome.txt",
        about=about,
        compared=compared,
        reported=reported,
        runs=loaded,
        without=[run for run in loaded if (run.cells["status"] == "failed").all()],
        results=results_folder(),
    )
    for line in outcome:
        text.print_folded(output, line)
    if len(loaded) > 1 and not opened:  # with many figures it takes a minute
        output.print(f"Drawing the page of {len(loaded)} runs in {results_folder()}/.")
    unexpected = None if compared is None else compared.unexpected
    written, *others = page.write_report(papers, folder, asked.where, unexpected, name=name)
    output.print(f"Written beside the page: {', '.join(path.name for path in others)}")
    if shown:
        output.print(words.counts_in_words(each.headline for each in shown))
    output.print(f"Page: {written}")
    has_failed = any(claim.headline == "fails" for claim in about)
    wrong = has_failed if compared is None else not compared.is_fulfilled
    return int(asked.strict and (wrong or not any(claim.is_measured for claim in about)))


def _say_verdicts(
    asked: Asked, papers: Sequence[Entry], about: Sequence[Judged]
) -> Sequence[Judged]:
    """Say the counts, a table, and what does not hold; return the claims that are counted.

    Of many claims that no run is named for there are counts alone, unless details are asked for.
    """
    from overfit_cli.report import contents, judge, runs

    output = text.console()
    many = asked.presets is None and sum(claim.is_measured for claim in about) > MOST_LISTED
    if asked.sources:  # a claim is about runs that are its preset's, or where it has a number
        own = ("", *(asked.presets or ()))
        every = judge.relevant_claims([one for paper in papers for one in paper["judged"]])
        shown: Sequence[Judged] = [
            one for one in every if one.claim.preset in own or one.measurement.value is not None
        ]
    else:
        shown = about if many else judge.relevant_claims(about)
    if not shown:
        return shown
    rows = list[dict[str, Any]]()
    for paper in papers:
        kinds = contents.count_kinds([one for one in paper["judged"] if one in shown])
        for kind, counts in kinds.items():
            numbers: Any = {verdict: str(count or "") for verdict, count in counts.items()}
            rows.append({"paper": paper["cited"], "kind": kind, **numbers})
    output.print(text.text_table(rows, ruled=True, whole=["kind"], right=_COLOURS, styles=_COLOURS))
    if many and not asked.details:
        return shown
    output.print(verdict_table(shown))
    is_open = [one for one in shown if one.headline not in HOLDING and not one.lacks_seeds]
    lines = [one.in_words() for one in (shown if asked.details else is_open)]
    changed = [one for one in shown if one.by_itself]
    lines += judge.family_sentences(shown if asked.details else changed)
    lines += lines_on_seeds(shown)
    if late := [each.name for each in shown if each.changed_late and not asked.details]:
        lines.append(f"Changed {runs.AFTER_THE_FIRST_CELL} (see --details): {', '.join(late)}.")
    for line in lines:
        text.print_folded(output, line)
    return shown


def report(
    run: list[Path] = cli.argument(
        "RUN",
        "Run directories, each of which is judged by itself.  [default: for each claim "
        "the run of its preset in results/ (quick before paper), or else the first run by "
        "name that has cells for it]",
        "runs",
        default=[],
    ),
    out: Path | None = cli.option(
        "DIR", "Folder for index.html, report.md and claims.json.  [default: results/report]"
    ),
    where: list[str] = cli.WHERE,
    only: list[str] = cli.option(
        "STUDY",
        "Study or paper to report on; may be repeated.  [default: those with cells]",
        default=[],
        complete="studies",
    ),
    study: str | None = cli.FUNCTION_FILE,
    strict: bool = cli.STRICT,
    expect: list[Path] = cli.EXPECT,
    details: bool = cli.flag(
        "Describe every claim, including those that hold: level, seeds, notes.", "--details"
    ),
) -> int:
    """Judge claims on your runs, and write a page about them.

    The terminal shows the counts of verdicts, a table of claims, and a description of each claim
    that does not hold.
    """
    from overfit_cli.sweeps.presets import presets_run_into

    own = {preset.name for path in run for preset in presets_run_into(path.resolve().name)}
    how: Any = {"strict": strict, "expect": expect, "details": details, "study": study}
    how |= {"out": out or results_folder() / "report"}
    return write_and_say(Asked(run, where, own if run else None, only=only, **how))
