"""Whatever a study of somebody else's does, it costs its own cells and a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

import overfit_cli
from tests.command import call, run

GRID = ("sweep", "toy", "--n=1:3", "--snr=1:2:2", "--seeds=1", "--trajectories", "--out=out")
REASONS = {
    "raises": "error: RuntimeError: the toy is broken",
    "exits": "error: SystemExit: enough",
    "interrupts": "error: KeyboardInterrupt",
    "nan": "error: test_loss is nan",
    "word": "error: test_loss is 'low'",
    "other-column": "error: the study has no column 'tset_loss'",
    "nothing": "error: the study gave no result for it",
    "text": "error: TypeError: the study gave 'a loss of 0.5', which is no CellResult",
    "other-cell": "error: LookupError: the study gave a result of another cell, or a second one",
    "ragged": "error: ArrowInvalid: Column 2 named train_loss expected length 2 but got length 1",
}


@pytest.mark.parametrize("mood", REASONS)
def test_what_goes_wrong_in_a_cell_is_a_failed_row_with_its_reason(
    tmp_path: Path, mood: str
) -> None:
    call(*GRID, "--set", f"mood={mood},well", "--jobs=1", cwd=tmp_path, expect=1)
    cells = overfit_cli.load(tmp_path / "out")
    failed = cells[cells["mood"] == mood]
    assert len(failed) == 6, "each cell has a row with its parameters"
    assert set(failed["status"]) == {"failed"}
    assert all(reason.startswith(REASONS[mood]) for reason in failed["reason"])
    assert failed["test_loss"].isna().all()
    assert set(cells.loc[cells["mood"] == "well", "status"]) == {"done"}


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_it_ends_no_worker(tmp_path: Path, backend: str) -> None:
    how = ("--set=mood=exits,interrupts,ragged", "--jobs=2", "--backend", backend)
    done = run(*GRID, *how, cwd=tmp_path, expect=1)
    assert "Done: 0 trained" in done.stdout
    assert "started again" not in done.stdout
    assert set(overfit_cli.load(tmp_path / "out")["status"]) == {"failed"}


@pytest.mark.parametrize("mood", ["exits", "interrupts", "nan", "ragged", "nothing"])
def test_a_training_says_why_it_failed(tmp_path: Path, mood: str) -> None:
    done = call("train", "toy", "--set", f"mood={mood}", "--out=out", cwd=tmp_path, expect=1)
    [sentence] = done.stderr.splitlines()
    assert sentence.startswith(f"overfit: The cell failed: {REASONS[mood]}")
    assert overfit_cli.load(tmp_path / "out")["status"].tolist() == ["failed"]


BROKEN = {
    "raises": "raise RuntimeError('it is\\nbroken \\x1b[31m')",
    "exits": "import sys; sys.exit(3)",
    "no-object": "",
    "no-study": "study = 3",
    "other-name": "import toy_study; study = toy_study.Toy()",
    "no-parameters": "import toy_study\nclass S(toy_study.Toy): parameters = dict\nstudy = S()",
}


def test_a_broken_entry_point_costs_its_own_study_and_one_line(tmp_path: Path) -> None:
    info = tmp_path / "broken-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 0.1\n")
    points = [f"{name} = broken_{name.replace('-', '_')}:study" for name in BROKEN]
    (info / "entry_points.txt").write_text("\n".join(["[overfit.studies]", *points]))
    for name, code in BROKEN.items():
        (tmp_path / f"broken_{name.replace('-', '_')}.py").write_text(code)
    env = {"PYTHONPATH": f"{tmp_path}:{Path(__file__).parent / 'toy'}"}
    sweep = ("sweep", "toy", "--n=1:2", "--snr=1:2:2", "--seeds=1", "--jobs=1")
    assert run(*sweep, cwd=tmp_path, env=env).stderr == "", "it needs none of them"
    for command in (("list",), ("plot", "heatmap"), ("report",)):
        done = run(*command, cwd=tmp_path, env=env)
        lines = done.stderr.splitlines()
        assert len(lines) == len(BROKEN), done.stderr
        for name in BROKEN:
            said = [line for line in lines if line.startswith(f"note: The study '{name}' can't be")]
            assert len(said) == 1
        assert "\x1b" not in done.stderr
    for name in ("raises", "exits"):
        refused = run("sweep", name, cwd=tmp_path, env=env, expect=2).stderr
        assert refused.startswith(f"overfit: The study '{name}' can't be loaded from broken_")
        assert len(refused.splitlines()) == 1
