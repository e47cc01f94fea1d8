"""`overfit sweep` and `overfit train`: names of run directories, next commands, and Ctrl-C."""

from __future__ import annotations

import re
import signal
import textwrap
from pathlib import Path

import pytest

import overfit_cli
from overfit_cli.cli.sweep_and_reproduce import next_command
from overfit_cli.core.text import console
from overfit_cli.sweeps.executors import Local
from overfit_cli.sweeps.grid import Grid
from overfit_cli.sweeps.presets import LONGEST, find_subject, named_after, preset_names
from overfit_cli.sweeps.run import Session, grid_of
from overfit_cli.sweeps.store import RunDirectory
from tests.command import call, run, start


def test_one_cell_learns_before_ones_eyes(tmp_path: Path) -> None:
    done = run("train", "--n", "4", "--snr", "12", cwd=tmp_path)
    lines = done.stdout.splitlines()
    assert ["step", "loss", "loss", "min", "signal", "noise"] in [line.split() for line in lines]
    losses = [float(line.split()[1]) for line in lines[1:] if re.match(r"\s+\d+\s", line)]
    assert losses[0] == pytest.approx(0.693, abs=0.01)
    assert losses[-1] <= 0.01
    assert losses == sorted(losses, reverse=True)
    assert re.search(r"(Benign|Harmful) overfitting by figure 1b's cut \(.*\): fitted", done.stdout)
    assert "Next: overfit plot dynamics --from results/benign-vit-n4-snr12" in done.stdout

    directory = tmp_path / "results" / "benign-vit-n4-snr12"
    [cell] = overfit_cli.load(directory).to_dict("records")
    steps = overfit_cli.load(directory, trajectories=True)
    assert steps["step"].tolist() == list(range(cell["steps"] + 1))
    assert steps["train_loss"].iloc[-1] == cell["train_loss"]

    picture = run("plot", "curves", cwd=tmp_path)
    assert "From results/benign-vit-n4-snr12, the newest run directory that fits" in picture.stdout
    assert (directory / "figures" / "curves.png").stat().st_size > 1000
    again = run("train", "--n", "4", "--snr", "12", cwd=tmp_path)
    assert again.stdout.splitlines()[:-2] == lines[:-2], "the same cell gives the same numbers"
    assert len(overfit_cli.load(directory)) == 1


@pytest.mark.slow
def test_a_long_training_prints_ever_fewer_lines_and_the_last(tmp_path: Path) -> None:
    small = ("d=30", "d_h=20", "d_v=6", "tokens=4", "test_samples=9", "learning_rate=0.0001")
    settings = [word for setting in (*small, "max_steps=500") for word in ("--set", setting)]
    done = run("train", *settings, "--out", "out", cwd=tmp_path, expect=1)
    steps = [int(line.split()[0]) for line in done.stdout.splitlines() if re.match(r"\s+\d", line)]
    assert steps[:5] == [0, 1, 2, 3, 4]
    assert steps[-1] == 500
    assert len(steps) < 60
    assert "Not fitted (step limit)" in done.stdout


ROOT = Path(__file__).parents[2]
PRESETS = sorted(preset_names(), key=lambda name: name != "fig1")


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.one_in(len(PRESETS))
def test_the_command_proposed_after_a_preset_works(
    preset: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the cells that it gave, without training: a kept run has the name of its directory."""
    if preset.startswith("heads-fig6"):
        pytest.importorskip("transformers")
    chosen = find_subject(str(ROOT / "experiments" / f"{preset}.toml"))
    grid = grid_of(chosen)
    kept = ROOT / "results" / chosen.sweep_name(grid)
    proposed = next_command(Session(chosen, grid, console(), RunDirectory(kept), Local(1)))
    assert proposed[0] in ("plot", "report")
    assert str(kept) in proposed
    where = ("--out", str(tmp_path / ("figure.png" if proposed[0] == "plot" else "report")))
    call(*proposed, *where, cwd=tmp_path)
    assert any(tmp_path.iterdir())


def name_of(subject: str, **texts: str) -> str:
    """The directory that a sweep with these settings goes into."""
    chosen = find_subject(subject)
    return chosen.sweep_name(Grid.read(chosen.study, {**chosen.profile.texts, **texts}, (0,)))


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
    assert name_of(subject, **texts) == expected


def test_a_name_is_never_longer_than_a_disk_takes() -> None:
    values = {f"parameter_{number}": (number,) for number in range(40)}
    names = {named_after("toy", values), named_after("toy", {**values, "parameter_39": (0,)})}
    assert len(names) == 2
    assert all(len(name) <= LONGEST for name in names)


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
