"""Contents of a report and of its files, and the points of a plan."""

from __future__ import annotations

import itertools
import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from overfit_cli import Measurement
from overfit_cli.cli import app
from overfit_cli.core.registry import claims_of, find_study
from overfit_cli.report.judge import (
    Judged,
    judge_all,
    judge_families,
    relevant_claims,
    sort_runs,
)
from overfit_cli.report.runs import load_runs
from overfit_cli.stats.intervals import level_of_each
from overfit_cli.studies.attention_kernel.regression.study import study
from overfit_cli.sweeps.grid import make_grid
from overfit_cli.sweeps.manifest import planned_cells, record_run
from overfit_cli.sweeps.presets import PresetFile
from overfit_cli.sweeps.store import RunDirectory
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


def test_a_planned_point_has_the_defaults_that_hold_for_it(tmp_path: Path) -> None:
    """The example fixes its sizes: a plan that mixes it with random problems has both."""
    texts = {"instance": "random,example", "kernel": "softmax,gaussian"}
    record_run(tmp_path, make_grid(study, texts, (0, 1)), {})
    planned = planned_cells(tmp_path, study)
    assert len(planned) == 2 * 2 * 2
    for instance, sizes in (("example", [1, 2, 2, 1]), ("random", [4, 4, 24, 1])):
        own = planned.loc[planned["instance"] == instance, ["n", "tokens", "d", "heads"]]
        assert own.drop_duplicates().to_numpy().tolist() == [sizes]


def test_points_that_the_study_refuses_are_not_planned(tmp_path: Path) -> None:
    texts = {"instance": "random,example", "value_gap": "0,1"}
    record_run(tmp_path, make_grid(study, texts, (0,)), {})
    planned = planned_cells(tmp_path, study)
    points = zip(planned["instance"], planned["value_gap"], strict=True)
    assert sorted(points) == [("example", 0.0), ("example", 1.0), ("random", 0.0)]


@pytest.mark.slow
def test_a_claim_is_decided_by_its_own_presets_run_and_else_by_the_first_name(
    tmp_path: Path,
) -> None:
    names = ["fig1-quick", "fig1-paper", "another", "zoo"]
    for age, name in enumerate(names):  # a checkout writes them in any order
        shutil.copytree(Path("results") / "fig1-balanced-refined", tmp_path / name)
        os.utime(tmp_path / name / "cells", (age, age))
    for name in names:
        found = {one.claim.name: one.directory for one in judge_all([], tmp_path)}
        assert found["fig1-exponent"] == tmp_path / name
        shutil.rmtree(tmp_path / name)


def test_runs_are_read_in_the_order_of_their_names_and_each_once(tmp_path: Path) -> None:
    for age, name in enumerate("acb"):
        sweep_toy(tmp_path / name)
        os.utime(tmp_path / name / "cells", (age, age))
    assert [run.directory.path.name for run in load_runs([], tmp_path)] == ["a", "b", "c"]
    assert len(load_runs([tmp_path / "a", tmp_path / "a"], tmp_path)) == 1


@pytest.mark.slow
def test_a_run_of_its_preset_that_bears_on_no_claim_leaves_it_to_the_next(tmp_path: Path) -> None:
    kept = Path("results")
    shutil.copytree(kept / "fig1-balanced-refined", tmp_path / "other")
    shutil.copytree(kept / "dynamics-quick", tmp_path / "fig1-quick")
    found = {one.claim.name: one.directory for one in judge_all([], tmp_path)}
    assert found["fig1-exponent"] == tmp_path / "other"


def test_a_claim_of_a_longer_profile_is_judged_there_whatever_is_asked_for() -> None:
    [claim] = [one for one in claims_of(find_study("benign-vit")) if one.name == "fig1-exponent"]
    paths = [Path(name) for name in ("b", "a", "fig1-paper", "fig1-quick")]
    profiles: tuple[Literal["quick", "paper"], ...] = ("quick", "paper")
    for profile, asked in itertools.product(profiles, profiles):
        first = "paper" if "paper" in (profile, asked) else "quick"
        second = "quick" if first == "paper" else "paper"
        named = [path.name for path in sort_runs(paths, replace(claim, profile=profile), asked)]
        assert named == [f"fig1-{first}", f"fig1-{second}", "a", "b"]


def test_what_is_decided_at_the_level_of_all_leaves_the_others_a_wider_one() -> None:
    """Of three, two would be open at the level of all three; a refuted case isn't one of them."""
    decided_up_to = {"a": 0.99, "b": 0.978, "c": 0.951, "d": 0.94}

    def measure(one: Judged) -> Measurement:
        held = level_of_each(1) <= decided_up_to[one.claim.name]
        return replace(one.measurement, verdict="holds" if held else "inconclusive")

    case = replace(judged("e", "fails", value=1.0).measurement, decided="case")
    all_of_them = [
        *(judged(name, "holds", value=1.0) for name in "abc"),
        judged("d", "inconclusive", value=1.0),
        replace(judged("e", "fails", value=1.0), measurement=case),
    ]
    found = {one.claim.name: one for one in judge_families(all_of_them, measure)}
    assert {name: one.joint_verdict for name, one in found.items()} == {
        "a": "holds",
        "b": "inconclusive",
        "c": "inconclusive",
        "d": "inconclusive",
        "e": None,
    }
    ours = [replace(one, claim=replace(one.claim, kind="sharp")) for one in all_of_them[1:4]]
    mixed = judge_families([all_of_them[0], *ours], measure)
    assert [one.family for one in mixed] == [1, 3, 3, 3], "families are of one kind"
    without_d = judge_families(all_of_them[:3], measure)
    assert [one.joint_verdict for one in without_d] == ["holds"] * 3


@pytest.mark.parametrize("logs", [True, False])
def test_a_preset_says_whether_steps_are_logged(
    logs: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not PresetFile(title="a", study="toy").trajectories
    said = "trajectories = true\n" if logs else ""
    (tmp_path / "mine.toml").write_text(f'title = "a"\nstudy = "toy"\n{said}[quick]\nseeds = 1\n')
    monkeypatch.chdir(tmp_path)
    line = "sweep mine.toml --n 1:2 --jobs 1 --backend threading --out out"
    monkeypatch.setattr(sys, "argv", ["overfit", *line.split()])
    with pytest.raises(SystemExit) as ended:
        app.main()
    assert ended.value.code == 0
    assert len(RunDirectory(tmp_path / "out").logged_keys()) == (2 if logs else 0)
