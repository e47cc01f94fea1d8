"""Output of `overfit report`: counts, a table, what is not settled, and the page; what decides."""

from __future__ import annotations

import itertools
import json
import os
import re
import shlex
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal
from unittest import mock

import pytest

from overfit_cli import Claim, Measurement
from overfit_cli.cli import judge_and_report
from overfit_cli.core.cells import NoCellsError
from overfit_cli.core.registry import claims_of, find_study
from overfit_cli.report import judge
from overfit_cli.report.compare import compare_sides
from overfit_cli.report.judge import Judged, judge_families, judge_runs, relevant_claims, sort_runs
from overfit_cli.report.runs import JudgedRun, load_runs
from overfit_cli.stats.intervals import level_of_each
from overfit_cli.sweeps.grid import Grid
from overfit_cli.sweeps.store import RunDirectory
from tests.command import call
from tests.report.made_up import judged
from tests.screen import shown
from tests.terminal import on_a_terminal
from tests.toy_runs import TOY, sweep_toy

FILE = """
import numpy as np
import overfit_cli

@overfit_cli.experiment(claims=[
    "small: error < 0.2 where n >= 10",
    "smaller: error < 0.05",
    "close: error < 0.05 where n = 20",
])
def train(n: int = 10, seed: int = 0):
    return {"error": (1 + 0.01 * np.random.default_rng(seed).normal()) / n}
"""


def said(folder: Path, *arguments: str, expect: int = 0) -> str:
    return call("report", *arguments, cwd=folder, expect=expect).stdout


def claims_in(folder: Path) -> Any:
    return json.loads((folder / "claims.json").read_text())["claims"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a claim that holds, one that fails, and one that is open."""
    folder = tmp_path_factory.mktemp("said")
    (folder / "decay.py").write_text(FILE)
    call("sweep", "decay.py", "--n=10,20,40", "--seeds=8", "--jobs=1", "--out=run", cwd=folder)
    return folder


@pytest.mark.slow
def test_counts_come_first_then_the_table_then_what_does_not_hold(folder: Path) -> None:
    code, stream = on_a_terminal("report", "run", cwd=folder)
    lines = [line.rstrip() for line in shown(stream) if line]
    starts = [line.split()[:1] for line in lines]
    assert code == 0
    assert starts.index(["paper"]) < starts.index(["claim"]) < starts.index(["smaller:"])
    assert not [line for line in lines if line.startswith("small:")], "it holds"
    assert lines[-3:] == [
        "Written beside the page: report.md, claims.json",
        "1 hold, 1 fail, 1 inconclusive.",
        "Page: results/report/index.html",
    ]
    assert max(map(len, lines)) <= 80
    assert "…" not in stream
    [small] = [line for line in lines if line.startswith("  small ")]
    assert re.fullmatch(r"  small +ours +holds where n >= 10 +\S+ \[\S+, \S+\]", small), (
        "a row is one line"
    )


@pytest.mark.slow
def test_an_expected_claim_that_is_not_there_is_named_with_the_one_meant(folder: Path) -> None:
    verdicts = {"small": "holds", "smaller": "fails", "close": "inconclusive", "smal": "holds"}
    stated = [f'{claim} = "{verdict}"' for claim, verdict in verdicts.items()]
    (folder / "expected.toml").write_text("\n".join(['["decay:train"]', *stated]))
    strict = said(folder, "run", "--expect=expected.toml", "--strict", expect=1)
    meant = "decay:train/smal; did you mean decay:train/small?"
    assert f"Expected, but there is no such claim: {meant}\n" in strict
    assert strict == said(folder, "run", "--expect=expected.toml"), "with the code 0"


@pytest.mark.slow
def test_too_few_seeds_are_one_sentence_and_the_sweep_that_adds_them(folder: Path) -> None:
    few = ("--n=10,20,40", "--seeds=3", "--jobs=1", "--out=few")
    call("sweep", "decay.py", *few, cwd=folder)
    before = said(folder, "few", "--out=rep")
    [needed] = re.findall(r"^More seeds are needed in few: (.*)\.$", before, re.MULTILINE)
    assert [part.split(" for ")[0] for part in needed.split("; ")] == ["8"], "at a further look"
    assert "∞" not in before
    assert "Holds where" not in before, "a claim that only lacks seeds has no paragraph"
    [command] = re.findall(r"^Next: overfit (.*)$", before, re.MULTILINE)
    assert command.endswith("--seeds 8 --out few")
    call(*shlex.split(command), cwd=folder)
    assert "More seeds are needed" not in said(folder, "few", "--out=rep")


@pytest.mark.slow
def test_a_strict_report_in_which_nothing_is_judged_is_red_and_says_why(tmp_path: Path) -> None:
    (tmp_path / "expected.toml").write_text('[toy]\ntoy-claim = "not run"\n')
    nothing = said(tmp_path, "--strict", expect=1)
    assert nothing.startswith("No claim was judged: no run directory in results/")
    said(tmp_path)
    (tmp_path / "mine.py").write_text("def train(n: int = 1):\n    return {'loss': 1 / (2 - n)}\n")
    sweep = ("sweep", "mine.py", "--jobs=1")
    call(*sweep, "--out=mine", cwd=tmp_path)
    for how in ([], ["--expect", "expected.toml"]):
        words = said(tmp_path, "mine", "--strict", *how, "--out=r", expect=1)
        assert "mine:train has no claims." in words.splitlines()
    assert "0 of 0 verdicts are as expected.\n" in words
    call(*sweep, "--n=2", "--out=ünë", cwd=tmp_path, expect=1)
    words = said(tmp_path, "ünë", "--out=r")
    assert "ünë: its one cell failed, so there are no numbers to judge.\n" in words
    assert "No claim" not in words


@pytest.mark.slow
def test_without_a_named_run_many_verdicts_are_counted_and_what_fails_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n, name in ((2, "first"), (30, "second")):
        grid = (f"--n={n}", "--seeds=1", "--jobs=1", f"--out=results/{name}")
        call("sweep", "toy", *grid, cwd=tmp_path)
    listed = said(tmp_path, "--out=own")
    assert re.search(r"toy-claim +ours +holds +0\.333", listed)
    assert "need other cells" not in listed
    assert {claim["study"] for claim in claims_in(tmp_path / "own")} == {"toy"}, "it has cells"
    said(tmp_path, "--out=more", "--only=toy", "--only=kernel-text")
    assert {claim["study"] for claim in claims_in(tmp_path / "more")} == {"toy", "kernel-text"}
    monkeypatch.setattr(judge_and_report, "MOST_LISTED", 0)
    lines = said(tmp_path, "--only=jiang2024", "--only=toy").splitlines()
    assert len(lines) < 20
    assert any(line.split()[:5] == ["Jiang", "et", "al.", "2024", "paper"] for line in lines)
    [own] = [line for line in lines if "Nobody 2024" in line]
    [heading] = [line for line in lines if "holds" in line]
    assert own.index("1") == heading.index("holds") + 4, "the first name decides"
    assert "Drawing the page of 2 runs in results/." in lines
    (tmp_path / "results" / "first").rename(tmp_path / "results" / "third")
    assert "Claims that fail: 1 of 1: toy-claim." in said(tmp_path)


# Which run decides a claim, which claims are shown, and verdicts of several together


def names(shown: list[Judged]) -> list[str]:
    return [one.name for one in shown]


def test_claims_that_were_measured_are_shown_and_others_of_their_study_are_not() -> None:
    """But all of a study whose cells bear on none, and of a claim that no preset measures."""
    every = [judged("a", "holds"), judged("b", "not run"), judged("c", "inconclusive")]
    assert names(relevant_claims(every)) == ["a", "c"]
    assert names(relevant_claims([every[0], judged("b", "not run", preset="")])) == ["a", "b"]
    other = judged("d", "fails", study="other")
    assert names(relevant_claims([judged("a", "not run"), every[1], other])) == ["a", "b", "d"]
    without_cells = replace(judged("a", "not run"), has_cells=False)
    assert names(relevant_claims([without_cells, other])) == ["d"]
    assert relevant_claims([]) == []


def test_conditions_choose_among_cells_that_were_trained(tmp_path: Path) -> None:
    """Of those that were planned too, the largest n is missing."""
    path = sweep_toy(tmp_path / "run", "1:2").path
    RunDirectory(path).record(Grid.read(find_study("toy"), {"n": "1:3", "snr": "1:2:2"}, (0,)), {})
    (run,) = load_runs([RunDirectory(path)], ["n is largest"])
    compared = compare_sides(path, path, where=["n is largest"])
    for cells in (run.data, compared.a, compared.b):
        assert {*cells.trained["n"]} == {2}
        assert cells.counts()["missing"] == 2
    unmet = pytest.raises(NoCellsError, match="n=3': no cell has that; there is 1, 2")
    for where in (["n=3"], ["n=3", "snr is largest"]):
        with unmet:
            load_runs([RunDirectory(path)], where)
        with unmet:
            compare_sides(path, path, where=where)


def test_a_claim_is_decided_by_its_presets_run_and_else_by_the_first_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run of its preset that bears on no claim, as it has n = 2 alone, leaves it to the next."""

    def measure(cells: Any) -> Measurement:
        return Measurement(verdict="holds" if (cells["n"] == 1).any() else "not run")

    claims = [replace(claim, preset="fig1", measure=measure) for claim in TOY.claims()]
    monkeypatch.setattr(type(TOY), "claims", lambda self: claims)
    monkeypatch.setattr(judge, "installed_studies", lambda: [TOY])
    sweep_toy(tmp_path / "fig1-quick", "2")
    for name in (names := ["fig1-paper", "another", "zoo"]):
        sweep_toy(tmp_path / name, "1")
    for name in names:
        runs = load_runs([RunDirectory(path) for path in sorted(tmp_path.iterdir())])
        [decided] = judge_runs(runs, on_every_run=False)
        assert decided.directory == tmp_path / name
        shutil.rmtree(tmp_path / name)


def test_runs_are_read_by_name_and_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OVERFIT_RESULTS", str(tmp_path))
    for age, name in enumerate("acb"):
        sweep_toy(tmp_path / name)
        os.utime(tmp_path / name / "cells", (age, age))
    assert [run.directory.path.name for run in load_runs()] == ["a", "b", "c"]
    assert len(load_runs([RunDirectory(tmp_path / "a")] * 2)) == 1


def test_a_claim_of_a_longer_profile_is_judged_there_whatever_is_asked_for() -> None:
    [claim] = [one for one in claims_of(find_study("benign-vit")) if one.name == "fig1-exponent"]
    paths = [Path(name) for name in ("b", "a", "fig1-paper", "fig1-quick")]
    others: dict[Literal["quick", "paper"], str] = {"quick": "paper", "paper": "quick"}
    for profile, asked in itertools.product(others, others):
        first = max(profile, asked, key=lambda one: one == "paper")
        named = [path.name for path in sort_runs(paths, replace(claim, profile=profile), asked)]
        assert named == [f"fig1-{first}", f"fig1-{others[first]}", "a", "b"]


def test_what_is_decided_at_the_level_of_all_leaves_the_others_a_wider_one() -> None:
    """Of three, two would be open at the level of all three; a refuted case isn't one of them."""
    decided_up_to = {"a": 0.99, "b": 0.978, "c": 0.951, "d": 0.94}

    def measure(claim: Claim) -> Measurement:
        held = level_of_each(1) <= decided_up_to[claim.name]
        return Measurement(verdict="holds" if held else "inconclusive")

    case = replace(judged("e", "fails").measurement, decided="case")
    refuted = replace(judged("e", "fails"), measurement=case)
    run = mock.Mock(spec=JudgedRun, judge=measure)
    all_of_them = [*(judged(name, "holds") for name in "abc"), judged("d", "inconclusive"), refuted]
    all_of_them = [replace(one, run=run) for one in all_of_them]
    found = judge_families(all_of_them)
    verdicts = ["holds", "inconclusive", "inconclusive", "inconclusive", None]
    assert [one.joint_verdict for one in found] == verdicts
    ours = [replace(one, claim=replace(one.claim, kind="sharp")) for one in all_of_them[1:4]]
    mixed = judge_families([all_of_them[0], *ours])
    assert [one.family for one in mixed] == [1, 3, 3, 3], "families are of one kind"
    without_d = judge_families(all_of_them[:3])
    assert [one.joint_verdict for one in without_d] == ["holds"] * 3


@pytest.mark.parametrize(("said", "logged"), [("trajectories = true\n", 2), ("", 0)])
def test_a_preset_says_whether_steps_are_logged(said: str, logged: int, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(f'title = "a"\nstudy = "toy"\n{said}[quick]\nseeds = 1\n')
    call("sweep", "mine.toml", "--n=1:2", "--jobs=1", "--out=out", cwd=tmp_path)
    contents = RunDirectory(tmp_path / "out").contents(trajectories=True)
    assert contents["logged"].sum() == logged
