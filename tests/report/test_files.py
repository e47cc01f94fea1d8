"""The contents of a report and its files: Markdown, JSON, and verdicts that are expected."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from overfit_cli import Measurement, UserError
from overfit_cli.cli import report
from overfit_cli.cli.list import verdict_table
from overfit_cli.core.claim import Kind, Verdict
from overfit_cli.core.registry import find_study
from overfit_cli.report.contents import (
    ReportedPaper,
    ReportedRun,
    contents,
    describe_measurement,
    repetition,
    reproduced_figures,
    shown_findings,
)
from overfit_cli.report.expected import Expected, check_verdicts, read_expected
from overfit_cli.report.judge import Judged, judge_runs
from overfit_cli.report.page import page
from overfit_cli.report.runs import load_runs
from overfit_cli.report.writers import claims_json, markdown, write_report
from tests.command import call
from tests.report.made_up import judged
from tests.toy_runs import sweep_toy

VIT, TEXT = "benign-vit", "kernel-text"
SOME = [
    judged("a", "holds", study=VIT),
    judged("b", "fails", study=VIT),
    judged("c", "inconclusive", study=TEXT),
    judged("d", "not run", study=TEXT),
]


def papers(claims: Sequence[Judged] = SOME) -> list[ReportedPaper]:
    return contents(claims, [], [])


def held_to(path: Path, text: str, claims: Sequence[Judged] = SOME) -> dict[str, str]:
    path.write_text(text)
    return dict(check_verdicts(claims, read_expected(path)).unexpected)


def of_kind(name: str, kind: Kind, verdict: Verdict) -> Judged:
    made = judged(name, verdict, study=VIT)
    claim = replace(made.claim, kind=kind, source="Theorem 1", statement="The loss is at most 1.")
    return replace(made, claim=replace(claim, hypotheses="a positive σ, of every cell"))


def test_kinds_are_counted_apart_and_at_the_level_of_all_together() -> None:
    claims = [
        of_kind("a", "paper", "holds"),
        replace(of_kind("b", "paper", "holds"), family=9, joint_verdict="inconclusive"),
        of_kind("c", "ours", "holds"),
        of_kind("d", "sharp", "fails"),
    ]
    text = markdown(papers(claims))
    assert "| Jiang et al. 2024 | paper | 1 |  | 1 |  |  |" in text
    assert "| Jiang et al. 2024 | sharp |  | 1 |  |  |  |" in text
    assert "| Jiang et al. 2024 | ours | 1 |  |  |  |  |" in text
    assert text.count("Hypotheses: a positive σ, of every cell.") == 4
    both = papers([*claims, judged("e", "vacuous", study="toy"), SOME[3]])
    assert [one.key for one in both] == ["jiang2024", "song2024", "nobody2024"]
    assert [len(one.judged) for one in both] == [4, 1, 1]
    kinds = [claim["kind"] for claim in json.loads(claims_json(papers(claims)))["claims"]]
    assert kinds == ["paper", "paper", "ours", "sharp"]


def test_what_fails_of_a_papers_sentences_names_the_sentence_and_the_number() -> None:
    refuted, finding = of_kind("a", "paper", "fails"), of_kind("b", "sharp", "fails")
    assert refuted.contradiction.startswith("Contradicts Theorem 1, measured ")
    sentence = ": The loss is at most 1. It holds where"
    assert sentence in refuted.contradiction
    assert refuted.contradiction.endswith(" Its hypotheses are met: a positive σ, of every cell.")
    assert finding.contradiction == of_kind("c", "paper", "holds").contradiction == ""
    assert sentence in markdown(papers([refuted]))
    first, second = json.loads(claims_json(papers([refuted, finding])))["claims"]
    assert first["contradicts"] == refuted.contradiction
    assert second["contradicts"] is None


def test_what_was_decided_after_selection_says_so_everywhere_and_is_no_finding() -> None:
    paper = find_study(VIT).paper
    assert paper is not None
    finding = paper.findings[0]
    claims = [judged(name, verdict, study=VIT) for name, verdict in finding.verdicts.items()]
    [plain] = papers(claims)
    assert len(shown_findings(plain)) == 1
    first = replace(claims[0], claim=replace(claims[0].claim, after_selection=True))
    [selected] = papers([first, *claims[1:]])
    assert shown_findings(selected) == []
    said = "decided after selection"
    for text in (markdown, page):
        assert (text([plain]).count(said), text([selected]).count(said)) == (0, 1)
    for one, is_marked in ((claims[0], False), (first, True)):
        [verdict] = verdict_table([one]).columns[2].cells
        assert (said in str(verdict)) == is_marked
    written = json.loads(claims_json([selected]))["claims"]
    assert [claim["decided_after_selection"] for claim in written] == [
        claim["claim"] == first.name for claim in written
    ]
    open_claim = judged("a", "inconclusive", study=VIT)
    claim = replace(open_claim.claim, after_selection=True)
    assert said not in markdown(papers([replace(open_claim, claim=claim)]))


def test_a_claim_of_the_paper_profile_is_measured_again_by_that() -> None:
    claim = replace(SOME[0].claim, preset="kernel-fig2", profile="paper")
    repeat = repetition(claim)
    assert repeat is not None
    assert repeat.command == "overfit reproduce kernel-fig2 --profile paper"
    assert (repeat.needs, repeat.time) == ("IMDb (--data DIR) and a GPU", "")
    quick = repetition(replace(claim, profile="quick"))
    assert quick is not None
    assert quick.command == "overfit reproduce kernel-fig2"
    assert quick.time.startswith("about 1 min 42 s")
    text = markdown(papers([judged("a", "not run", study=VIT, preset="fig2")]))
    assert "Again: `overfit reproduce fig2`" in text
    assert "on two cores" in text


def test_markdown_names_unexpected_verdicts_first(tmp_path: Path) -> None:
    unexpected = {"benign-vit/b": "fails, expected holds"}
    written = write_report(
        papers(), tmp_path / "deep" / "report", unexpected=unexpected, name="out"
    )
    assert [path.name for path in written] == ["index.html", "report.md", "claims.json"]
    text = written[1].read_text()
    assert "- benign-vit/b: fails, expected holds." in text.partition("| paper |")[0]
    assert "Unexpected" not in markdown(papers())


def test_what_a_run_was_made_of_stands_in_words_and_as_data(tmp_path: Path) -> None:
    path = sweep_toy(tmp_path / "run", "1:3").path
    both = contents([], load_runs([path], tmp_path), [])
    assert f"#### {path}" in markdown(both)
    assert "6 cells done; seeds 0." in markdown(both)
    (run,) = json.loads(claims_json(both))["runs"]
    assert run["cells"] == {"done": 6, "failed": 0}
    assert run["seeds"] == [0]
    assert run["axes"] == {"n": [1, 2, 3], "snr": [1.0, 2.0]}
    assert run["parameters"] == {"pause": 0.0, "mood": "well"}


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_what_is_not_finite_is_null_in_json_and_stands_in_words(value: float) -> None:
    one = judged("a", "inconclusive", study=VIT, value=value)
    both = papers([one, judged("b", "holds", study=VIT, value=2.5)])

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    first, second = json.loads(claims_json(both), parse_constant=refuse)["claims"]
    assert (first["value"], second["value"]) == (None, 2.5)
    assert first["interval"] == second["interval"] == {"low": None, "high": None, "kind": "95 % t"}
    words = "not known" if math.isnan(value) else "∞" if value > 0 else "−∞"
    assert one.measurement.number == f"{words} 95 % t", "no end of it is known"
    assert one.measurement.number in markdown(both)


def test_verdicts_are_held_to_those_of_a_report_or_of_a_file(tmp_path: Path) -> None:
    several = [*SOME, judged("a", "fails", study=VIT)]
    flipped = [judged("b", "holds", study=VIT)]
    kept = claims_json(papers(several))
    assert held_to(tmp_path / "claims.json", kept, several) == {}
    assert held_to(tmp_path / "claims.json", kept, flipped) == {f"{VIT}/b": "holds, expected fails"}
    text = '[benign-vit]\na = "fails"\nb = ["holds", "fails"]\n[kernel-text]\nd = "vacuous"\n'
    assert held_to(tmp_path / "expected.toml", text, [*SOME[:2], SOME[3]]) == {
        f"{VIT}/a": "holds, expected fails",
        f"{TEXT}/d": "not run, expected vacuous",
    }


def test_claims_that_one_side_lacks_are_unexpected_and_a_misspelt_one_has_a_proposal() -> None:
    ours = [
        judged("fig1-fitted", "not run", study=VIT, preset="fig1"),
        judged("other", "holds", study=VIT, preset="fig2"),
    ]
    expected: Expected = {
        f"{VIT}/fig1-fittet": ["not run"],
        f"{VIT}/zzz": ["holds"],
        "benign/other": ["holds"],
    }
    found = check_verdicts(ours, expected)
    assert found.unexpected[f"{VIT}/other"] == "holds, and no verdict is expected"
    of_some = {f"{VIT}/fig1-fittet": f"{VIT}/fig1-fitted", f"{VIT}/zzz": ""}
    assert found.unknown == {**of_some, "benign/other": f"{VIT}/other"}
    assert not found.is_fulfilled
    assert check_verdicts(ours, expected, ours[1:]).unknown == of_some


def test_claims_that_are_not_asked_for_are_left_out() -> None:
    both = [judged(name, "not run", study=VIT, preset=f"fig{name}") for name in "ab"]
    expected: Expected = {f"{VIT}/a": ["holds"], f"{VIT}/b": ["holds"], "mine/c": ["fails"]}
    found = check_verdicts(both, expected, both[:1])
    assert found.unexpected == {f"{VIT}/a": "not run, expected holds"}
    assert (found.left_out, found.compared) == (1, 1)
    assert found.unknown == {}, "the runs of a function may not be part of the report"
    assert not check_verdicts(both, expected, []).is_fulfilled, "nothing was compared"


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("e.toml", "a = 1", "a: write a table for each study"),
        ("e.toml", '[benign-vit]\na = "hold"', "a = hold: it takes holds, fails, inconclusive"),
        ("e.toml", "[benign-vit]\na = []", "a = []: it takes holds"),
        ("e.toml", "[benign-vit", "can't be read as TOML"),
        ("e.json", "{", "that `overfit report` wrote"),
        ("e.json", "[]", "that `overfit report` wrote"),
        ("e.json", '{"claims": [1]}', "that `overfit report` wrote"),
        ("e.json", None, "it can't be read"),
    ],
)
def test_a_file_of_other_things_is_refused_in_a_sentence(
    name: str, text: str | None, said: str, tmp_path: Path
) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(UserError, match="expect=") as refused:
        read_expected(tmp_path / name)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("n", "verdict", "other"),
    [pytest.param(2, "holds", "fails", marks=pytest.mark.slow), (30, "fails", "holds")],
)
def test_the_exit_code_says_whether_verdicts_are_as_expected(
    n: int, verdict: str, other: str, tmp_path: Path
) -> None:
    """A claim that fails as expected is green; a flip in either direction is red."""
    call("sweep", "toy", f"--n={n}", "--seeds=1", "--jobs=1", "--out=run", cwd=tmp_path)
    command = ["report", "run", "--strict"]
    call(*command, "--out", "first", cwd=tmp_path, expect=int(verdict == "fails"))
    said = call(*command, "--expect", "first/claims.json", cwd=tmp_path).stdout
    assert "\n1 of 1 verdicts are as expected.\n" in said, "claims of other studies say nothing"
    (tmp_path / "expected.toml").write_text(f'[toy]\ntoy-claim = "{other}"\n')
    said = call(*command, "--expect", "expected.toml", cwd=tmp_path, expect=1).stdout
    assert f"Unexpected: toy/toy-claim: {verdict}, expected {other}." in said
    assert "0 of 1 verdicts" in said
    (tmp_path / "expected.toml").write_text(f'[toy]\ntoy-claim = "{verdict}"\ntoy-clam = "holds"\n')
    said = call(*command, "--expect", "expected.toml", cwd=tmp_path, expect=1).stdout
    meant = "toy/toy-clam; did you mean toy/toy-claim?"
    assert f"Expected, but there is no such claim: {meant}\n" in said
    call("report", "run", "--expect", "expected.toml", cwd=tmp_path)


@pytest.mark.slow
def test_a_strict_report_in_which_nothing_is_judged_is_red_and_says_why(tmp_path: Path) -> None:
    (tmp_path / "expected.toml").write_text('[toy]\ntoy-claim = "not run"\n')
    said = call("report", "--strict", cwd=tmp_path, expect=1).stdout
    assert said.startswith("No claim was judged: no run directory in results/")
    call("report", cwd=tmp_path)
    (tmp_path / "mine.py").write_text("def train(n: int = 1):\n    return {'loss': 1 / (2 - n)}\n")
    sweep = ("sweep", "mine.py", "--jobs=1")
    call(*sweep, "--out=mine", cwd=tmp_path)
    for how in ([], ["--expect", "expected.toml"]):
        said = call("report", "mine", "--strict", *how, "--out=r", cwd=tmp_path, expect=1).stdout
        assert "mine:train has no claims." in said.splitlines()
    assert "0 of 0 verdicts are as expected.\n" in said
    call(*sweep, "--n=2", "--out=ünë", cwd=tmp_path, expect=1)
    said = call("report", "ünë", "--out=r", cwd=tmp_path).stdout
    assert "ünë: its one cell failed, so there are no numbers to judge.\n" in said
    assert "No claim" not in said


@pytest.mark.slow
def test_without_a_named_run_many_verdicts_are_counted_and_what_fails_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n, name in ((2, "first"), (30, "second")):
        grid = (f"--n={n}", "--seeds=1", "--jobs=1", f"--out=results/{name}")
        call("sweep", "toy", *grid, cwd=tmp_path)
    listed = call("report", cwd=tmp_path).stdout
    assert re.search(r"toy-claim +ours +holds +0\.333", listed)
    assert "need other cells" not in listed, "papers without cells are left out"
    monkeypatch.setattr(report, "MOST_LISTED", 0)
    lines = call("report", "--only=jiang2024", "--only=toy", cwd=tmp_path).stdout.splitlines()
    assert len(lines) < 20
    assert any(line.split()[:5] == ["Jiang", "et", "al.", "2024", "paper"] for line in lines)
    [own] = [line for line in lines if "Nobody 2024" in line]
    [heading] = [line for line in lines if "holds" in line]
    assert own.index("1") == heading.index("holds") + 4, "the first name decides"
    assert "Drawing the page of 2 runs in results/." in lines
    (tmp_path / "results" / "first").rename(tmp_path / "results" / "third")
    assert "Claims that fail: 1 of 1: toy-claim." in call("report", cwd=tmp_path).stdout


def test_a_symbol_stays_as_it_is_at_the_start_of_a_sentence() -> None:
    symbol = Measurement(verdict="holds", details={"d = 3": 7.916, "seeds": 10})
    assert describe_measurement(symbol) == "d = 3 7.92; seeds 10."
    assert describe_measurement(Measurement(verdict="holds", details={"seeds": 10})) == "Seeds 10."


@pytest.mark.slow
def test_a_report_is_about_the_studies_that_have_cells_or_are_named(tmp_path: Path) -> None:
    call("sweep", "toy", "--n=2", "--seeds=1", "--jobs=1", "--out=results/a", cwd=tmp_path)
    call("report", "--out=own", cwd=tmp_path)
    claims = json.loads((tmp_path / "own" / "claims.json").read_text())
    assert {claim["study"] for claim in claims["claims"]} == {"toy"}
    call("report", "--out=more", "--only=toy", "--only=kernel-text", cwd=tmp_path)
    claims = json.loads((tmp_path / "more" / "claims.json").read_text())
    assert {claim["study"] for claim in claims["claims"]} == {"toy", "kernel-text"}
    said = call("report", "--only=kernel-txt", cwd=tmp_path, expect=2).stderr
    sentence = "overfit: --only kernel-txt: it is no study and no paper; did you mean 'kernel-text'"
    assert said.startswith(sentence)


def runs_of(folder: Path, *names: str) -> list[ReportedRun]:
    """What a report shows of toy runs of these names, the first of which decides."""
    for name in names:
        sweep_toy(folder / name, n="1")
    runs = load_runs([folder / name for name in names], folder)
    papers = contents(judge_runs(runs[:1], on_every_run=False), runs, [])
    return [run for paper in papers for study in paper.studies for run in study.runs]


def test_what_reproduces_a_figure_comes_first_and_then_what_decides(tmp_path: Path) -> None:
    names = ["z", "c", "a", "softmax-table1-quick", "dynamics-quick", "fig1-quick"]
    found = runs_of(tmp_path, *names)
    assert [run.name for run in found] == [
        "fig1-quick",  # figure 1
        "dynamics-quick",  # figures 3 and 4
        "softmax-table1-quick",
        "z",
        "a",
        "c",
    ]
    assert [run.decides for run in found] == [False, False, False, True, False, False]


def test_a_run_of_several_figures_stands_where_the_first_does() -> None:
    found = reproduced_figures()
    assert (found["dynamics-quick"], found["heads-planted-paper"]) == ("fig3", "fig4")
    assert "dimension-quick" not in found


def test_runs_whose_last_names_are_alike_are_told_apart(tmp_path: Path) -> None:
    found = runs_of(tmp_path, "x/run", "y/run")
    assert [run.name for run in found] == ["run", "run (2)"]
