"""Training one cell shows it learning, keeps its trajectory, and draws it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import overfit_cli
from tests.command import run


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


@pytest.mark.parametrize(
    ("study", "measured"), [("mixture", "attention"), ("planted", "alignment")]
)
def test_heads_are_seen_learning_what_the_paper_plots(
    tmp_path: Path, study: str, measured: str
) -> None:
    small = ("--n=20", "--set=heads=2", "--set=training_steps=20", "--set=test_samples=20")
    headings = run("train", f"multihead-{study}", *small, cwd=tmp_path).stdout.splitlines()[:2]
    assert measured in " ".join(headings)
    assert "log10" not in " ".join(headings), "the loss stands beside it"


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


def test_a_training_from_a_preset_lies_under_its_name_and_what_was_changed(tmp_path: Path) -> None:
    changed = ["--n=4", "--snr=3", "--set=d=1e6", "--set=d_h=10", "--set=epsilon=0.3"]
    run("train", "dimension", *changed, cwd=tmp_path)
    [folder] = (tmp_path / "results").iterdir()
    assert folder.name == "dimension-n4-snr3-d1000000-d_h10-epsilon0.3"
