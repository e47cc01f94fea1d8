"""`overfit sweep`, `train` and `reproduce`: directories, next commands, reports, and Ctrl-C."""

from __future__ import annotations

import json
import re
import shutil
import signal
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import overfit_cli
from overfit_cli.cli.sweep_and_reproduce import next_command
from overfit_cli.core.files import preset_folder
from overfit_cli.core.text import console
from overfit_cli.report import page
from overfit_cli.sweeps import presets
from overfit_cli.sweeps.executors import Local
from overfit_cli.sweeps.grid import Grid
from overfit_cli.sweeps.presets import LONGEST, all_presets, find_subject, named_after, reproducible
from overfit_cli.sweeps.run import Session, grid_of
from overfit_cli.sweeps.store import RunDirectory
from tests.command import call, few, run, said, start
from tests.toy_runs import TOY


@pytest.mark.slow
def test_one_cell_learns_before_ones_eyes(tmp_path: Path) -> None:
    lines = run("train", "--n", "4", "--snr", "12", cwd=tmp_path).stdout.splitlines()
    assert ["step", "loss", "loss", "min", "signal", "noise"] in [line.split() for line in lines]
    losses = [float(line.split()[1]) for line in lines[1:] if re.match(r"\s+\d+\s", line)]
    assert losses[0] == pytest.approx(0.693, abs=0.01) and losses[-1] <= 0.01
    assert losses == sorted(losses, reverse=True)
    words = "\n".join(lines)
    assert re.search(r"(Benign|Harmful) overfitting by figure 1b's cut \(.*\): fitted", words)
    assert "Next: overfit plot dynamics --from results/benign-vit-n4-snr12" in words

    directory = tmp_path / "results" / "benign-vit-n4-snr12"
    [cell] = overfit_cli.load(directory).to_dict("records")
    steps = overfit_cli.load(directory, trajectories=True)
    assert steps["step"].tolist() == list(range(cell["steps"] + 1))
    assert steps["train_loss"].iloc[-1] == cell["train_loss"]

    said("plot curves", tmp_path)
    assert (directory / "figures" / "curves.png").stat().st_size > 1000


@pytest.mark.slow
def test_a_long_training_prints_ever_fewer_lines_and_the_last(tmp_path: Path) -> None:
    small = "--d=30 --d_h=20 --d_v=6 --tokens=4 --test_samples=9 --learning_rate=0.0001"
    words = said(f"train {small} --max_steps=500 --out=out", tmp_path, 1)
    steps = [int(line.split()[0]) for line in words.splitlines() if re.match(r"\s+\d", line)]
    assert (steps[:5], steps[-1]) == ([0, 1, 2, 3, 4], 500)
    assert len(steps) < 60
    assert "Not fitted (step limit)" in words


ROOT = Path(__file__).parents[2]
PRESETS = few(sorted(presets.preset_names(), key=lambda name: name != "heads-descent"), 5)


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.one_in(len(PRESETS))
def test_the_command_proposed_after_a_preset_works(preset: str, tmp_path: Path) -> None:
    """On the cells that it gave, without training: a kept run has the name of its directory."""
    if preset.startswith("heads-fig6"):
        pytest.importorskip("transformers")
    chosen = find_subject(str(ROOT / "experiments" / f"{preset}.toml"))
    grid = grid_of(chosen)
    kept = ROOT / "results" / chosen.sweep_name(grid)
    proposed = next_command(Session(chosen, grid, console(), RunDirectory(kept), Local(1)))
    assert proposed[0] in ("plot", "report") and str(kept) in proposed
    where = ("--out", str(tmp_path / ("figure.png" if proposed[0] == "plot" else "report")))
    call(*proposed, *where, cwd=tmp_path)
    assert any(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("subject", "texts", "expected"),
    [
        ("toy", {}, "toy"),
        ("toy", {"n": "4"}, "toy"),  # its default
        ("toy", {"n": "5"}, "toy-n5"),
        ("toy", {"n": "2:9", "snr": "1:2:5"}, "toy-n-snr"),
        ("toy", {"n": "2:9", "mood": "nan"}, "toy-n-moodnan"),
        ("fig1", {"d": "1024"}, "fig1-quick"),  # the preset's own value
        ("fig1", {"d": "64"}, "fig1-quick-d64"),
        ("fig1", {"n": "3"}, "fig1-quick-n3"),
        ("dynamics-benign", {}, "dynamics-quick"),
        ("dynamics-benign", {"tokens": "5"}, "dynamics-quick-tokens5"),
    ],
)
def test_a_directory_is_named_after_what_differs(
    subject: str, texts: dict[str, str], expected: str
) -> None:
    chosen = find_subject(subject)
    grid = Grid.read(chosen.study, {**chosen.profile.texts, **texts}, (0,))
    assert chosen.sweep_name(grid) == expected


def test_a_name_is_never_longer_than_a_disk_takes() -> None:
    values = {f"parameter_{number}": (number,) for number in range(40)}
    names = {named_after("toy", values), named_after("toy", {**values, "parameter_39": (0,)})}
    assert len(names) == 2 and all(len(name) <= LONGEST for name in names)


STRIKE = "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(5)\n"

# As an import takes its locks: Python passes over what is raised there.
IN_A_CALLBACK = f"""
import weakref
class Lock: ...
lock = Lock()
def strike(_):
{textwrap.indent(STRIKE, "    ")}
watched = weakref.ref(lock, strike)
del lock
"""
AT_EXIT = f"""
import atexit
def strike():
{textwrap.indent(STRIKE, "    ")}
atexit.register(strike)
def train(n: int = 1, seed: int = 0):
    return {{'test_loss': 1.0}}
"""


@pytest.mark.unix
@pytest.mark.one_in(2)
@pytest.mark.parametrize("module", ["typer", "platformdirs", "pyarrow"])
@pytest.mark.parametrize("strike", [STRIKE, IN_A_CALLBACK], ids=["anywhere", "in a callback"])
def test_ctrl_c_while_a_library_is_imported(tmp_path: Path, module: str, strike: str) -> None:
    (tmp_path / "early").mkdir()
    (tmp_path / "early" / f"{module}.py").write_text(strike)
    env = {"PYTHONPATH": str(tmp_path / "early")}
    process = start("sweep", "benign-vit", "--n=2", "--jobs=1", cwd=tmp_path, env=env)
    output, errors = process.communicate(timeout=20)
    assert (process.returncode, output, errors) == (130, "", "")


@pytest.mark.unix
@pytest.mark.slow
def test_ctrl_c_while_python_ends(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(AT_EXIT)
    process = start("sweep", "mine.py", "--n=1", "--jobs=1", cwd=tmp_path)
    output, errors = process.communicate(timeout=20)
    assert "Done: 3 trained" in output
    assert (process.returncode, errors) == (-signal.SIGINT, "")


# Papers, figures and presets by name; their sweeps, figures and report in one command

PRESET = """
title = "{name}"
study = "{study}"
reproduces = "{figure}"
figures = ["heatmap"]
directory = "{directory}"
[set]
{set}
{more}
[quick]
seeds = 2
minutes = {minutes}
needs = "{needs}"
[paper]
seeds = 3
"""


def write_preset(folder: Path, name: str, n: str = "1:3", **values: object) -> None:
    """Write a preset, by default of the toy."""
    usual = {"figure": "fig1", "directory": "", "minutes": 1.5, "study": "toy", "needs": ""}
    grid = {"set": f'n = "{n}"\nsnr = "1:2:3"', "more": ""}
    text = PRESET.format(name=name, **{**usual, **grid, **values})
    (folder / f"{name}.toml").write_text(text)


def ship(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of presets in place of the real ones, with the real error rates."""
    presets_here = folder / "presets"
    presets_here.mkdir()
    shutil.copy(preset_folder() / presets.ERROR_RATES, presets_here)
    for module in (presets, page):
        monkeypatch.setattr(module, "preset_folder", lambda: presets_here)
    monkeypatch.delenv("OVERFIT_DATA", raising=False)
    return presets_here


@pytest.fixture
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return ship(tmp_path, monkeypatch)


@pytest.fixture(scope="module")
def reproduced(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A folder in which two presets were reproduced, and what was said."""
    folder = tmp_path_factory.mktemp("reproduced")
    with pytest.MonkeyPatch.context() as monkeypatch:
        shipped = ship(folder, monkeypatch)
        write_preset(shipped, "first")
        write_preset(shipped, "second", "4:5", figure="fig2")
        return folder, said("reproduce --jobs 1", folder)


def names(*asked: str) -> list[str]:
    return [one.name for one in reproducible(asked)]


def test_a_paper_a_figure_and_a_preset_are_found_by_name() -> None:
    assert names("deora2024/fig3") == ["heads-fig3-adam", "heads-fig3-sqrt"]
    assert names("jiang2024/fig1") == names("fig1") == names("jiang2024/fig1", "fig1") == ["fig1"]
    assert names("jiang2024/dimension") == ["dimension"]
    of_paper = {path.name for path in all_presets() if path.name.startswith("kernel-")}
    assert set(names("song2024")) == of_paper
    assert sorted(names()) == sorted(preset.name for preset in all_presets())
    figures = [one.address for one in reproducible() if one.address.startswith("deora2024/fig")]
    assert figures == [f"deora2024/fig{number}" for number in (2, 3, 3, 4, 5, 5, 6)]


def test_every_preset_says_how_long_its_quick_profile_takes() -> None:
    assert [one.name for one in all_presets() if one.profile("quick").minutes is None] == []


def test_the_sweeps_are_run_drawn_and_judged(reproduced: tuple[Path, str]) -> None:
    folder, words = reproduced
    assert "[1 of 2] nobody2024/fig1: about 6 min 00 s for all." in words  # 2 x 1.5 on two jobs
    assert "[2 of 2] nobody2024/fig2:" in words
    for name, count in (("first", 18), ("second", 12)):
        run = folder / "results" / f"{name}-quick"
        assert len(overfit_cli.load(run)) == count
        assert (run / "figures" / "heatmap.png").exists()
        commands = f"overfit sweep {name}\n  overfit plot heatmap --from results/{name}-quick"
        assert f"  {commands}" in (run / "figures" / "heatmap.txt").read_text()
    (toy,) = [one for one in reported(folder)["claims"] if one["study"] == "toy"]
    assert toy["verdict"] == "fails"


def reported(folder: Path) -> Any:
    return json.loads((folder / "results" / "report" / "claims.json").read_text())


@pytest.mark.slow
def test_a_figure_by_name_says_its_own_verdicts_which_set_the_code_beside_the_page_of_everything(
    shipped: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two presets, each with a claim, that of the first fails."""
    write_preset(shipped, "first")
    write_preset(shipped, "second", "1:2", figure="fig2")
    [claim] = TOY.claims()
    claims = [replace(claim, name=f"of-{name}", preset=name) for name in ("first", "second")]
    monkeypatch.setattr(type(TOY), "claims", lambda self: claims)
    said("reproduce --jobs 1", tmp_path)
    again = said("reproduce --jobs 1", tmp_path)
    assert "18 reused" in again and "12 reused" in again
    assert "[1 of 2] nobody2024/fig1: a few seconds for all." in again
    said("sweep toy --jobs=1 --n=7 --out=results/further", tmp_path)
    words = said("reproduce --jobs 1 nobody2024/fig2", tmp_path)
    assert re.search(r"of-second +\S+ +holds", words) and "of-first" not in words
    assert "Drawing the page of 3 runs in results/." in words
    found = reported(tmp_path)
    runs = {one["directory"] for one in found["runs"]}
    assert runs == {"results/first-quick", "results/second-quick", "results/further"}
    verdicts = {one["claim"]: one["directory"] for one in found["claims"] if one["study"] == "toy"}
    assert verdicts == {"of-first": "results/first-quick", "of-second": "results/second-quick"}
    said("reproduce --jobs 1 --strict first", tmp_path, 1)
    expected = tmp_path / "expected.toml"
    expected.write_text('[toy]\nof-first = "holds"\nof-second = "holds"\n')
    command = "reproduce --jobs 1 --strict --expect expected.toml"
    assert "1 of 1 verdicts are as expected; " in said(f"{command} second", tmp_path)
    words = said(f"{command} first", tmp_path, 1)
    assert "Unexpected: toy/of-first: fails, expected holds." in words
    expected.write_text('[toy]\nof-first = "fails"\n')
    said(f"{command} first", tmp_path)


@pytest.mark.slow
def test_presets_that_share_a_directory_are_drawn_together(shipped: Path, tmp_path: Path) -> None:
    write_preset(shipped, "low", "1:2", directory="both")
    write_preset(shipped, "up", "3:4", directory="both", figure="fig2")
    assert said("reproduce --jobs 1", tmp_path).count("Drawn: ") == 1
    caption = (tmp_path / "results" / "both-quick" / "figures" / "heatmap.txt").read_text()
    assert "24 cells done" in caption and "N (n) 1, 2, 3, 4" in caption


@pytest.mark.slow
@pytest.mark.parametrize(("mood", "code"), [("diverges", 0), ("raises", 1)])
def test_cells_that_fail_but_by_diverging_are_code_1_and_the_others_go_on(
    shipped: Path, tmp_path: Path, mood: str, code: int
) -> None:
    write_preset(shipped, "first", more=f'mood = "{mood}"')
    write_preset(shipped, "second", figure="fig2")
    said("reproduce --jobs 1", tmp_path, code)
    assert len(overfit_cli.load(tmp_path / "results" / "second-quick")) == 18


@pytest.mark.slow
def test_what_needs_data_that_is_not_here_is_left_out_and_what_is_wrong_is_code_1(
    shipped: Path, tmp_path: Path
) -> None:
    write_preset(shipped, "first")
    needs: Any = {"needs": "IMDb (--data DIR)", "set": 'source = "imdb"'}
    write_preset(shipped, "lacking", study="kernel-text", figure="fig9", **needs)
    words = said("reproduce --jobs 1", tmp_path)
    [line] = {line for line in words.splitlines() if line.startswith("Left out:")}
    lack = "song2024/fig9 (lacking): --data: source=imdb needs data: name its folder"
    assert line.startswith(f"Left out: {lack}")
    assert line.endswith(" It needs IMDb (--data DIR).") and words.rstrip().endswith(line)
    refused = call("reproduce", "--jobs", "1", "lacking", cwd=tmp_path, expect=2)
    assert "source=imdb needs data" in refused.stderr
    (tmp_path / "empty").mkdir()
    assert "IMDb isn't there" in said("reproduce --jobs 1 --data empty", tmp_path)
    write_preset(shipped, "wrong", figure="fig2", needs="a folder", more="unknown = 1")
    words = said("reproduce --jobs 1", tmp_path, 1)
    assert re.search(r"Left out: nobody2024/fig2 \(wrong\): wrong.toml: .*unknown", words)
    assert "a folder" not in words


def test_a_dry_run_says_the_times_and_writes_nothing(shipped: Path, tmp_path: Path) -> None:
    write_preset(shipped, "first", minutes=3)
    write_preset(shipped, "second", figure="fig2", minutes=1, needs="patience")
    write_preset(shipped, "short", figure="fig3", minutes=0.1)
    command = "reproduce --dry-run --jobs 4 --backend threading"
    assert said(command, tmp_path).splitlines() == [
        "nobody2024/fig1: first, about 1 min 30 s",
        "nobody2024/fig2: second, about 30 s; needs patience",
        "nobody2024/fig3: short, a few seconds",
        "3 presets on 4 jobs: about 2 min 03 s for all.",
    ]
    assert not (tmp_path / "results").exists()
    said("sweep first --jobs 1 --n 1:2 --out results/first-quick", tmp_path)
    assert "first, about 30 s" in said(command, tmp_path)  # a third of it is missing
    # Where a time isn't known, no total is told.
    (shipped / "short.toml").write_text((shipped / "first.toml").read_text() + "minutes = 3\n")
    unknown = said("reproduce --dry-run --profile paper --jobs 2", tmp_path)
    assert "3 presets on 2 jobs: time not known for all." in unknown
