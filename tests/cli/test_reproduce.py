"""Papers, figures and presets by name; their sweeps, figures and report in one command."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import overfit_cli
from overfit_cli.sweeps import presets
from overfit_cli.sweeps.presets import all_presets, reproducible
from tests.command import call
from tests.toy_runs import TOY

PRESET = """
title = "{name}"
study = "toy"
reproduces = "{figure}"
figures = ["heatmap"]
directory = "{directory}"
[set]
n = "{n}"
snr = "1:2:3"
{more}
[quick]
seeds = 2
minutes = {minutes}
needs = "{needs}"
[paper]
seeds = 3
"""


def write_preset(
    folder: Path, name: str, *, more: str = "", needs: str = "", **values: object
) -> None:
    filled = {"figure": "fig1", "directory": "", "n": "1:3", "minutes": 1.5, **values}
    text = PRESET.format(name=name, more=more, needs=needs, **filled)
    (folder / f"{name}.toml").write_text(text)


@pytest.fixture
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of presets in place of the real ones, with the real error rates."""
    folder = tmp_path / "presets"
    folder.mkdir()
    shutil.copy(presets.preset_folder() / presets.ERROR_RATES, folder)
    monkeypatch.setattr(presets, "preset_folder", lambda: folder)
    return folder


def names(*asked: str) -> list[str]:
    return [one.name for one in reproducible(asked)]


def test_a_paper_a_figure_and_a_preset_are_found_by_name() -> None:
    assert names("deora2024/fig3") == ["heads-fig3-adam", "heads-fig3-sqrt"]
    assert names("jiang2024/fig1") == names("fig1") == names("jiang2024/fig1", "fig1") == ["fig1"]
    assert names("jiang2024/dimension") == ["dimension"]
    of_paper = set(names("song2024"))
    assert of_paper == {path.name for path in all_presets() if path.name.startswith("kernel-")}
    assert sorted(names()) == sorted(preset.name for preset in all_presets())


def test_figures_come_in_the_order_of_their_numbers() -> None:
    figures = [one.address for one in reproducible() if one.address.startswith("deora2024/fig")]
    assert figures == [f"deora2024/fig{number}" for number in (2, 3, 3, 4, 5, 5, 6)]


def test_every_preset_says_how_long_its_quick_profile_takes() -> None:
    assert [one.name for one in all_presets() if one.profile("quick").minutes is None] == []


def test_the_sweeps_are_run_drawn_and_judged(shipped: Path, tmp_path: Path) -> None:
    write_preset(shipped, "first")
    write_preset(shipped, "second", figure="fig2", n="4:5")
    said = call("reproduce", "--jobs", "1", cwd=tmp_path).stdout
    assert "[1 of 2] nobody2024/fig1: about 6 min 00 s for all." in said  # 2 x 1.5 on two jobs
    assert "[2 of 2] nobody2024/fig2:" in said
    for name, count in (("first", 18), ("second", 12)):
        run = tmp_path / "results" / f"{name}-quick"
        assert len(overfit_cli.load(run)) == count
        assert (run / "figures" / "heatmap.png").exists()
        caption = (run / "figures" / "heatmap.txt").read_text()
        assert (
            f"  overfit sweep {name}\n  overfit plot heatmap --from results/{name}-quick" in caption
        )
    claims = json.loads((tmp_path / "results" / "report" / "claims.json").read_text())["claims"]
    (toy,) = [one for one in claims if one["study"] == "toy"]
    assert toy["verdict"] == "fails"
    again = call("reproduce", "--jobs", "1", cwd=tmp_path).stdout
    assert "18 reused" in again
    assert "12 reused" in again
    assert "[1 of 2] nobody2024/fig1: a few seconds for all." in again


# What is reported of it


@pytest.fixture
def two_claims(shipped: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Presets `first` and `second`, each with a claim: that of the first fails."""
    write_preset(shipped, "first")
    write_preset(shipped, "second", figure="fig2", n="1:2")
    [claim] = TOY.claims()
    claims = [replace(claim, name=f"of-{name}", preset=name) for name in ("first", "second")]
    monkeypatch.setattr(type(TOY), "claims", lambda self: claims)
    return shipped


def reported(folder: Path) -> Any:
    return json.loads((folder / "results" / "report" / "claims.json").read_text())


@pytest.mark.slow
def test_a_figure_by_name_says_its_own_verdicts_and_keeps_the_page_of_everything(
    two_claims: Path, tmp_path: Path
) -> None:
    call("reproduce", "--jobs", "1", cwd=tmp_path)
    call("sweep", "toy", "--jobs=1", "--n=7", "--out=results/further", cwd=tmp_path)
    said = call("reproduce", "--jobs", "1", "nobody2024/fig2", cwd=tmp_path).stdout
    assert re.search(r"of-second +\S+ +holds", said)
    assert "of-first" not in said
    assert "Drawing the page of 3 runs in results/." in said
    found = reported(tmp_path)
    runs = {one["directory"] for one in found["runs"]}
    assert runs == {"results/first-quick", "results/second-quick", "results/further"}
    verdicts = {one["claim"]: one["directory"] for one in found["claims"] if one["study"] == "toy"}
    assert verdicts == {"of-first": "results/first-quick", "of-second": "results/second-quick"}


@pytest.mark.slow
def test_only_what_is_asked_for_sets_the_exit_code(two_claims: Path, tmp_path: Path) -> None:
    call("reproduce", "--jobs", "1", cwd=tmp_path)
    call("reproduce", "--jobs", "1", "--strict", "first", cwd=tmp_path, expect=1)
    expected = tmp_path / "expected.toml"
    expected.write_text('[toy]\nof-first = "holds"\nof-second = "holds"\n')
    command = ["reproduce", "--jobs", "1", "--strict", "--expect", "expected.toml"]
    said = call(*command, "second", cwd=tmp_path).stdout
    assert "1 of 1 verdicts are as expected; " in said
    said = call(*command, "first", cwd=tmp_path, expect=1).stdout
    assert "Unexpected: toy/of-first: fails, expected holds." in said
    expected.write_text('[toy]\nof-first = "fails"\n')
    call(*command, "first", cwd=tmp_path)


@pytest.mark.slow
def test_presets_that_share_a_directory_are_drawn_together(shipped: Path, tmp_path: Path) -> None:
    write_preset(shipped, "low", n="1:2", directory="both")
    write_preset(shipped, "up", n="3:4", directory="both", figure="fig2")
    said = call("reproduce", "--jobs", "1", cwd=tmp_path).stdout
    assert said.count("Drawn: ") == 1
    caption = (tmp_path / "results" / "both-quick" / "figures" / "heatmap.txt").read_text()
    assert "24 cells done" in caption
    assert "N (n) 1, 2, 3, 4" in caption


@pytest.mark.slow
@pytest.mark.parametrize(("mood", "code"), [("diverges", 0), ("raises", 1)])
def test_cells_that_fail_but_by_diverging_are_code_1_and_the_others_go_on(
    shipped: Path, tmp_path: Path, mood: str, code: int
) -> None:
    write_preset(shipped, "first", more=f'mood = "{mood}"')
    write_preset(shipped, "second", figure="fig2")
    call("reproduce", "--jobs", "1", cwd=tmp_path, expect=code)
    assert len(overfit_cli.load(tmp_path / "results" / "second-quick")) == 18


@pytest.mark.slow
def test_what_needs_data_that_is_not_here_is_left_out_and_said(
    shipped: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OVERFIT_DATA", raising=False)
    write_preset(shipped, "first")
    write_text_preset(shipped, "lacking", needs="IMDb (--data DIR)")
    said = call("reproduce", "--jobs", "1", cwd=tmp_path).stdout
    [line] = {line for line in said.splitlines() if line.startswith("Left out:")}
    assert line.startswith(
        "Left out: song2024/fig9 (lacking): --data: source=imdb needs data: name its folder"
    )
    assert line.endswith(" It needs IMDb (--data DIR).")
    assert said.rstrip().endswith(line)
    refused = call("reproduce", "--jobs", "1", "lacking", cwd=tmp_path, expect=2)
    assert "source=imdb needs data" in refused.stderr
    (tmp_path / "empty").mkdir()
    there = call("reproduce", "--jobs", "1", "--data", "empty", cwd=tmp_path).stdout
    assert "IMDb isn't there" in there


@pytest.mark.slow
def test_what_is_wrong_with_a_preset_that_needs_something_is_said_with_code_1(
    shipped: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OVERFIT_DATA", raising=False)
    write_preset(shipped, "first")
    write_preset(shipped, "wrong", figure="fig2", needs="a folder", more="unknown = 1")
    said = call("reproduce", "--jobs", "1", cwd=tmp_path, expect=1).stdout
    assert re.search(r"Left out: nobody2024/fig2 \(wrong\): wrong.toml: .*unknown", said)
    assert "a folder" not in said


def write_text_preset(folder: Path, name: str, *, needs: str) -> None:
    """A preset that takes the reviews of IMDb."""
    (folder / f"{name}.toml").write_text(
        f'title = "{name}"\nstudy = "kernel-text"\nreproduces = "fig9"\n'
        f'[set]\nsource = "imdb"\n[quick]\nseeds = 1\nneeds = "{needs}"\n'
    )


def test_a_dry_run_says_the_times_and_writes_nothing(shipped: Path, tmp_path: Path) -> None:
    write_preset(shipped, "first", minutes=3)
    write_preset(shipped, "second", figure="fig2", minutes=1, needs="patience")
    write_preset(shipped, "short", figure="fig3", minutes=0.1)
    command = ["reproduce", "--dry-run", "--jobs", "4", "--backend", "threading"]
    said = call(*command, cwd=tmp_path).stdout.splitlines()
    assert said == [
        "nobody2024/fig1: first, about 1 min 30 s",
        "nobody2024/fig2: second, about 30 s; needs patience",
        "nobody2024/fig3: short, a few seconds",
        "3 presets on 4 jobs: about 2 min 03 s for all.",
    ]
    assert not (tmp_path / "results").exists()
    call(
        "sweep", "first", "--jobs", "1", "--n", "1:2", "--out", "results/first-quick", cwd=tmp_path
    )
    assert "first, about 30 s" in call(*command, cwd=tmp_path).stdout  # a third of it is missing


def test_presets_of_unknown_time_are_counted_and_no_total_is_told(
    shipped: Path, tmp_path: Path
) -> None:
    write_preset(shipped, "p1")
    dry = ("reproduce", "--dry-run", "--profile", "paper", "--jobs", "2")
    unknown = call(*dry, cwd=tmp_path).stdout
    assert "1 preset on 2 jobs: time not known for all." in unknown
    (shipped / "p2.toml").write_text((shipped / "p1.toml").read_text() + "minutes = 3\n")
    both = call(*dry, cwd=tmp_path).stdout
    assert "2 presets on 2 jobs: time not known for all." in both


# Where it can't write
