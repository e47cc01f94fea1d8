"""Which run decides a claim, which claims are shown, and verdicts of several together."""

from __future__ import annotations

import itertools
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Literal
from unittest import mock

import pytest

from overfit_cli import Claim, Measurement
from overfit_cli.core.cells import NoCellsError
from overfit_cli.core.registry import claims_of, find_study
from overfit_cli.report.compare import compare_sides
from overfit_cli.report.judge import Judged, judge_families, judge_runs, relevant_claims, sort_runs
from overfit_cli.report.runs import JudgedRun, load_runs
from overfit_cli.stats.intervals import level_of_each
from overfit_cli.sweeps.grid import Grid
from overfit_cli.sweeps.store import RunDirectory
from tests.command import call
from tests.kept import RESULTS
from tests.report.made_up import judged
from tests.toy_runs import sweep_toy


def names(shown: list[Judged]) -> list[str]:
    return [one.name for one in shown]


def test_claims_that_were_measured_are_shown_and_others_of_their_study_are_not() -> None:
    """But all of a study whose cells bear on none, and of a claim that no preset measures."""
    every = [judged("a", "holds"), judged("b", "not run"), judged("c", "inconclusive")]
    assert names(relevant_claims(every)) == ["a", "c"]
    assert names(relevant_claims([every[0], judged("b", "not run", preset="")])) == ["a", "b"]
    other = judged("d", "fails", study="other")
    assert names(relevant_claims([judged("a", "not run"), every[1], other])) == ["a", "b", "d"]
    without_cells = judged("a", "not run", has_cells=False)
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


@pytest.mark.slow
def test_a_claim_is_decided_by_its_presets_run_and_else_by_the_first_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run of its preset that bears on no claim leaves it to the next."""
    monkeypatch.setenv("OVERFIT_RESULTS", str(tmp_path))
    names = ("fig1-paper", "another", "zoo")
    for name in ("fig1-quick", *names):
        source = "fig1-balanced-refined" if name in names else "dynamics-quick"
        shutil.copytree(RESULTS / source, tmp_path / name)
    for name in names:
        judged = judge_runs(load_runs(), on_every_run=False)
        [exponent] = [one for one in judged if one.name == "fig1-exponent"]
        assert exponent.directory == tmp_path / name
        shutil.rmtree(tmp_path / name)


def test_runs_are_read_in_the_order_of_their_names_and_each_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
