"""The contents of a report and its files: Markdown, JSON, and verdicts that are expected."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from overfit_cli import UserError
from overfit_cli.core.claim import Kind, Verdict
from overfit_cli.core.registry import claims_of, installed_studies
from overfit_cli.report import contents as report
from overfit_cli.report import judge
from overfit_cli.report.judge import Judged, judge_runs
from overfit_cli.report.page import markdown, write_report
from overfit_cli.report.runs import load_runs
from overfit_cli.sweeps.presets import find_preset
from tests.kept import RESULTS, kept_claims
from tests.report.made_up import judged
from tests.toy_runs import TOY, sweep_toy

VIT, TEXT = "benign-vit", "kernel-text"
SOME = [
    judged("a", "holds", study=VIT),
    judged("b", "fails", study=VIT),
    judged("c", "inconclusive", study=TEXT),
    judged("d", "not run", study=TEXT),
]


def papers(claims: Sequence[Judged] = SOME) -> list[report.Entry]:
    return report.contents(claims, [])


def json_of(claims: Sequence[Judged]) -> Any:
    """The claims of a report as its `claims.json` has them, in which every number is finite."""
    return json.loads(report.claims_json(papers(claims)), parse_constant=pytest.fail)["claims"]


def of_kind(name: str, kind: Kind, verdict: Verdict) -> Judged:
    said: Any = {"source": "Theorem 1", "hypotheses": "a positive σ, of every cell", "kind": kind}
    return judged(name, verdict, study=VIT, statement="The loss is at most 1.", **said)


COUNTS = ["paper | 1 |  |  | 1 |  |  |", "sharp |  |  | 1 |  |  |  |", "ours | 1 |  |  |  |  |  |"]


def test_kinds_are_counted_apart_and_at_the_level_of_all_together() -> None:
    claims = [
        of_kind("a", "paper", "holds"),
        replace(of_kind("b", "paper", "holds"), family=9, joint_verdict="inconclusive"),
        of_kind("c", "ours", "holds"),
        of_kind("d", "sharp", "fails"),
    ]
    text = markdown(papers(claims))
    assert all(f"| Jiang et al. 2024 | {counts}" in text for counts in COUNTS)
    assert text.count("Hypotheses: a positive σ, of every cell.") == 4
    both = papers([*claims, judged("e", "vacuous", study="toy"), SOME[3]])
    sizes = [("jiang2024", 4), ("song2024", 1), ("nobody2024", 1)]
    assert [(one["key"], len(one["judged"])) for one in both] == sizes
    assert [claim["kind"] for claim in json_of(claims)] == ["paper", "paper", "ours", "sharp"]


def test_what_fails_of_a_papers_sentences_names_the_sentence_and_the_number() -> None:
    refuted, finding = of_kind("a", "paper", "fails"), of_kind("b", "sharp", "fails")
    assert refuted.contradiction == (
        f"Contradicts Theorem 1, measured {refuted.measurement.number}: The loss is at most 1. It "
        "holds where it is above 0. Its hypotheses are met: a positive σ, of every cell."
    )
    assert finding.contradiction == of_kind("c", "paper", "holds").contradiction == ""
    assert refuted.contradiction in markdown(papers([refuted]))
    contradicted = [each["contradicts"] for each in json_of([refuted, finding])]
    assert contradicted == [refuted.contradiction, None]


def test_a_claim_is_measured_again_by_its_profile() -> None:
    claim = replace(SOME[0].claim, preset="kernel-fig2")
    both = (claim, replace(claim, profile="paper"))
    quick, paper = (report.repetition(each) or {} for each in both)
    assert quick["command"] == "overfit reproduce kernel-fig2"
    assert (quick["needs"], quick["time"]) == ("", "about 1 min 42 s")
    assert paper["command"] == "overfit reproduce kernel-fig2 --profile paper"
    assert (paper["needs"], paper["time"]) == ("IMDb (--data DIR) and a GPU", "")
    text = markdown(papers([judged("a", "not run", study=VIT, preset="fig2")]))
    assert re.search("Again: `overfit reproduce fig2`, about .* on two cores", text)


def test_markdown_names_unexpected_verdicts_first(tmp_path: Path) -> None:
    unexpected = {"benign-vit/b": "fails, expected holds"}
    folder = tmp_path / "deep" / "report"
    written = write_report(papers(), folder, unexpected=unexpected, name="out")
    assert [path.name for path in written] == ["index.html", "report.md", "claims.json"]
    text = written[1].read_text()
    assert "- benign-vit/b: fails, expected holds." in text.partition("| paper |")[0]
    assert "Unexpected" not in markdown(papers())


def test_what_a_run_was_made_of_stands_in_words_and_as_data(tmp_path: Path) -> None:
    both = report.contents([], load_runs([sweep_toy(tmp_path / "run")]))
    assert f"#### {tmp_path / 'run'}" in markdown(both)
    assert f"### toy: {TOY.title}\n" in markdown(both)
    with mock.patch.object(type(TOY), "title", ""):
        assert "### toy\n" in markdown(both)
    assert "6 cells done; seeds 0." in markdown(both)
    (run,) = json.loads(report.claims_json(both))["runs"]
    assert (run["cells"], run["seeds"]) == ({"done": 6, "failed": 0}, [0])
    assert run["axes"] == {"n": [1, 2, 3], "snr": [1.0, 2.0]}
    assert run["parameters"] == {"pause": 0.0, "mood": "well"}


def test_what_is_not_finite_is_null_in_json_and_stands_in_words() -> None:
    for value, words in ((math.inf, "∞"), (-math.inf, "−∞"), (math.nan, "not known")):
        one = judged("a", "inconclusive", study=VIT, value=value)
        [found] = json_of([one])
        assert found["value"] is None
        assert found["interval"] == {"low": None, "high": None, "kind": "95 % t"}
        assert one.measurement.number == f"{words} 95 % t", "no end of it is known"
        assert one.measurement.number in markdown(papers([one]))


SEVERAL = [*SOME, judged("a", "fails", study=VIT)]
TOGETHER = replace(SOME[1], family=9, joint_verdict="inconclusive")
KEPT = report.claims_json(papers(SEVERAL))
STATED = '[benign-vit]\na = "fails"\nb = ["holds", "fails"]\n[kernel-text]\nd = "vacuous"\n'


@pytest.mark.parametrize(
    ("name", "text", "claims", "unexpected"),
    [
        ("claims.json", KEPT, SEVERAL, {}),
        ("claims.json", KEPT, [judged("b", "holds", study=VIT)], {"b": "holds, expected fails"}),
        ("e.toml", STATED, SOME[:2], {"a": "holds, expected fails"}),
        ("e.toml", STATED, [TOGETHER], {"b": "inconclusive, expected holds or fails"}),
        ("e.toml", STATED, [SOME[3]], {"d": "not run, expected vacuous"}),
        ("e.toml", STATED, [SOME[2]], {"c": "inconclusive, and no verdict is expected"}),
    ],
)
def test_verdicts_are_held_to_those_of_a_report_or_of_a_file(
    name: str, text: str, claims: list[Judged], unexpected: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / name).write_text(text)
    found = report.check_verdicts(
        claims, report.read_expected([tmp_path / name], tmp_path / "out")
    ).unexpected
    assert {name.partition("/")[2]: words for name, words in found.items()} == unexpected


def test_a_verdict_of_any_file_will_do_and_of_a_report_the_claims_by_itself(tmp_path: Path) -> None:
    (tmp_path / "claims.json").write_text(report.claims_json(papers([TOGETHER])))
    (tmp_path / "e.toml").write_text('[benign-vit]\nb = "vacuous"\n')
    expected = report.read_expected(
        [tmp_path / "claims.json", tmp_path / "e.toml"], tmp_path / "out"
    )
    assert expected == {f"{VIT}/b": ["inconclusive", "fails", "vacuous"]}
    with pytest.raises(UserError, match=r"claims\.json'?: the report is written to .*, over it"):
        report.read_expected([tmp_path / "claims.json"], tmp_path)


def test_of_a_part_of_the_claims_no_other_study_is_asked_for() -> None:
    ours = [judged(name, "holds", study=VIT) for name in ("fig1-fitted", "other")]
    names = (f"{VIT}/fig1-fittet", f"{VIT}/z", "benign/other")
    expected: report.Expected = dict.fromkeys(names, ("holds",))
    of_some = {f"{VIT}/fig1-fittet": f"{VIT}/fig1-fitted", f"{VIT}/z": ""}
    assert report.check_verdicts(ours, expected, ours[1:]).unknown == of_some
    of_all = {**of_some, "benign/other": f"{VIT}/other"}
    assert report.check_verdicts(ours, expected).unknown == of_all


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("e.toml", "a = 1", "[STUDY], with lines CLAIM = 'VERDICT' (a: "),
        ("e.toml", '[benign-vit]\na = "hold"', "benign-vit.a"),
        ("e.toml", "[benign-vit]\na = []", "(benign-vit.a"),
        ("e.toml", "[benign-vit", "can't be read as TOML"),
        ("e.json", "{", "it takes a claims.json of `overfit report`"),
        ("e.json", "[]", "it takes a claims.json of `overfit report`"),
        ("e.json", '{"claims": [1]}', "it takes a claims.json of `overfit report`"),
    ],
)
def test_a_file_of_other_things_is_refused(name: str, text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(UserError, match="expect=") as refused:
        report.read_expected([tmp_path / name], tmp_path / "out")
    assert said in str(refused.value)


def runs_of(folder: Path, *names: str) -> list[report.Entry]:
    """What a report shows of toy runs of these names, the first of which decides."""
    runs = load_runs([sweep_toy(folder / name, n="1") for name in names])
    with mock.patch.object(judge, "installed_studies", lambda: [TOY]):
        papers = report.contents(judge_runs(runs[:1], on_every_run=False), runs)
    return [run for paper in papers for study in paper["studies"] for run in study["runs"]]


@pytest.mark.slow
def test_what_reproduces_a_figure_comes_first_and_then_what_decides(tmp_path: Path) -> None:
    names = ["z", "c", "a", "softmax-table1-quick", "dynamics-quick", "fig1-quick"]
    runs = runs_of(tmp_path, *names)
    found = [(run["name"], run["decides"]) for run in runs]
    ours = [(name, name == "z") for name in ("softmax-table1-quick", "z", "a", "c")]
    assert found == [("fig1-quick", False), ("dynamics-quick", False), *ours]
    figures = {run["name"]: run["figure"] for run in runs}
    assert (figures["fig1-quick"], figures["dynamics-quick"], figures["z"]) == ("fig1", "fig3", "")
    alike = runs_of(tmp_path, "x/run", "y/run")
    assert [run["name"] for run in alike] == [str(tmp_path / name) for name in ("x/run", "y/run")]


def test_the_kept_report_has_every_claim_of_every_study() -> None:
    studies = [study for study in installed_studies() if study.name != "toy"]
    claims = {f"{study.name}/{one.name}": one for study in studies for one in claims_of(study)}
    every = itertools.chain(*kept_claims().values())
    kept = {f"{one['study']}/{one['claim']}": one for one in every}
    page = (RESULTS / "report" / "index.html").read_text()
    assert (
        set(kept)
        == set(claims)
        >= set(report.read_expected([RESULTS / "also-accepted.toml"], RESULTS / "report"))
    )
    for name, one in kept.items():
        assert f'id="claim-{name.replace("/", "-", 1)}"' in page
        preset = find_preset(claims[name].preset)
        assert preset is not None
        needs = [preset.profile(profile).needs for profile in ("quick", "paper")]
        assert one["verdict"] != "not run" or any(needs), "what is not run needs what it names"
