"""Papers, figures and presets by name; their sweeps, figures and report in one command."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import overfit_cli
from overfit_cli.cli.remaining import Remaining
from overfit_cli.errors import UserError
from overfit_cli.sweeps import presets
from overfit_cli.sweeps.presets import all_presets, find_preset
from overfit_cli.sweeps.reproducible import everything, reproducible
from tests.command import call

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
    """A folder of presets in place of the real ones."""
    folder = tmp_path / "presets"
    folder.mkdir()
    monkeypatch.setattr(presets, "preset_folder", lambda: folder)
    return folder


def names(*asked: str) -> list[str]:
    return [one.preset.name for one in reproducible(asked)]


def test_a_paper_a_figure_and_a_preset_are_found_by_name() -> None:
    assert names("deora2024/fig3") == ["heads-fig3-adam", "heads-fig3-sqrt"]
    assert names("jiang2024/fig1") == names("fig1") == names("jiang2024/fig1", "fig1") == ["fig1"]
    assert names("jiang2024/dimension") == ["dimension"]
    of_paper = set(names("song2024"))
    assert of_paper == {path.name for path in all_presets() if path.name.startswith("kernel-")}
    assert sorted(names()) == sorted(preset.name for preset in all_presets())


def test_figures_come_in_the_order_of_their_numbers() -> None:
    figures = [one.address for one in everything() if one.address.startswith("deora2024/fig")]
    assert figures == [f"deora2024/fig{number}" for number in (2, 3, 3, 4, 5, 5, 6)]


def test_an_unknown_name_gets_the_nearest_one() -> None:
    with pytest.raises(UserError, match="did you mean 'jiang2024/fig1'"):
        reproducible(["jiang2024/fig11"])


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
    assert "[1 of 2] nobody2024/fig1: about 0.0 s for all." in again


def test_presets_that_share_a_directory_are_drawn_together(shipped: Path, tmp_path: Path) -> None:
    write_preset(shipped, "low", n="1:2", directory="both")
    write_preset(shipped, "up", n="3:4", directory="both", figure="fig2")
    said = call("reproduce", "--jobs", "1", cwd=tmp_path).stdout
    assert said.count("Drawn: ") == 1
    caption = (tmp_path / "results" / "both-quick" / "figures" / "heatmap.txt").read_text()
    assert "n 1, 2, 3, 4" in caption


def test_a_claim_that_fails_is_code_1_where_it_is_asked_for(shipped: Path, tmp_path: Path) -> None:
    write_preset(shipped, "first")
    command = ["reproduce", "--jobs", "1", "first"]
    call(*command, "--strict", cwd=tmp_path, expect=1)
    expected = tmp_path / "expected.toml"
    expected.write_text('[toy]\ntoy-claim = "fails"\n')
    call(*command, "--strict", "--expect", "expected.toml", cwd=tmp_path)
    expected.write_text('[toy]\ntoy-claim = "holds"\n')
    said = call(*command, "--strict", "--expect", "expected.toml", cwd=tmp_path, expect=1).stdout
    assert "Unexpected: toy/toy-claim: fails, expected holds." in said


def test_a_file_of_verdicts_that_is_not_there_is_said_before_anything_runs(
    shipped: Path, tmp_path: Path
) -> None:
    write_preset(shipped, "first")
    for how in ([], ["--dry-run"]):
        call("reproduce", "--expect", "nowhere.toml", *how, cwd=tmp_path, expect=2)
    assert not (tmp_path / "results").exists()


def test_failed_cells_are_code_1_and_the_others_go_on(shipped: Path, tmp_path: Path) -> None:
    write_preset(shipped, "first", more='mood = "diverges"')
    write_preset(shipped, "second", figure="fig2")
    call("reproduce", "--jobs", "1", cwd=tmp_path, expect=1)
    assert len(overfit_cli.load(tmp_path / "results" / "second-quick")) == 18


def test_what_needs_something_that_is_not_here_is_left_out_and_said(
    shipped: Path, tmp_path: Path
) -> None:
    write_preset(shipped, "first")
    write_preset(shipped, "lacking", figure="fig2", needs="a folder", more="unknown = 1")
    said = call("reproduce", "--jobs", "1", cwd=tmp_path).stdout
    line = "Left out: nobody2024/fig2 (lacking): it needs a folder."
    assert said.rstrip().endswith(line)
    refused = call("reproduce", "--jobs", "1", "lacking", cwd=tmp_path, expect=2)
    assert "unknown" in refused.stderr


def test_a_preset_that_is_wrong_is_left_out_with_code_1(shipped: Path, tmp_path: Path) -> None:
    write_preset(shipped, "first")
    write_preset(shipped, "wrong", figure="fig2", more="unknown = 1")
    said = call("reproduce", "--jobs", "1", cwd=tmp_path, expect=1).stdout
    assert re.search(r"Left out: nobody2024/fig2 \(wrong\): wrong.toml: .*unknown", said)


def test_a_dry_run_says_the_times_and_writes_nothing(shipped: Path, tmp_path: Path) -> None:
    write_preset(shipped, "first", minutes=3)
    write_preset(shipped, "second", figure="fig2", minutes=1, needs="patience")
    command = ["reproduce", "--dry-run", "--jobs", "4", "--backend", "threading"]
    said = call(*command, cwd=tmp_path).stdout.splitlines()
    assert said == [
        "nobody2024/fig1: first, about 1 min 30 s",
        "nobody2024/fig2: second, about 30 s; needs patience",
        "2 presets, about 2 min 00 s on 4 jobs.",
    ]
    assert not (tmp_path / "results").exists()
    call(
        "sweep", "first", "--jobs", "1", "--n", "1:2", "--out", "results/first-quick", cwd=tmp_path
    )
    assert "first, about 30 s" in call(*command, cwd=tmp_path).stdout  # a third of it is missing


def test_the_time_left_is_corrected_by_the_speed_of_this_machine(
    shipped: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two presets of ten minutes; the first takes twenty, which counts beside five as expected."""
    clock = [0.0]
    monkeypatch.setattr("overfit_cli.cli.remaining.time.monotonic", lambda: clock[0])
    for number in (1, 2):
        write_preset(shipped, f"p{number}", minutes=10)
    both = [preset for name in ("p1", "p2") if (preset := find_preset(name))]
    left = Remaining(both, "quick", 2, tmp_path)
    assert left.in_words() == "about 20 min 00 s"
    with left.running(both[0], "1 of 2"):
        clock[0] = 600.0
        assert left.after(0.5) == "1 of 2: about 22 min 30 s for all"  # 15 × (10 + 5) / (5 + 5)
        clock[0] = 1200.0
    assert left.in_words() == "about 16 min 40 s"  # 10 × (20 + 5) / (10 + 5)
    assert left.of(both[0]) == 0.0


def test_a_preset_of_unknown_time_is_counted_as_such(shipped: Path, tmp_path: Path) -> None:
    write_preset(shipped, "p1")
    (preset,) = all_presets()
    assert Remaining([preset], "paper", 2, tmp_path).in_words() == "1 preset of unknown time"
