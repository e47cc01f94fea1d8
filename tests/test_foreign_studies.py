"""A foreign study, whatever it does, costs its own cells and a sentence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

import overfit_cli
from overfit_cli import UserError
from overfit_cli.core.cell import Cell
from overfit_cli.sweeps.grid import Grid
from overfit_cli.sweeps.plan import make_plan
from overfit_cli.sweeps.store import RunDirectory
from tests.command import call, run
from tests.toy_runs import TOY

GRID = ("sweep", "toy", "--n=1:3", "--snr=1:2:2", "--seeds=1", "--trajectories", "--out=out")
REASONS = {
    "raises": "error: RuntimeError: the toy | is broken",
    "exits": "error: SystemExit: enough",
    "interrupts": "error: KeyboardInterrupt",
    "nan": "diverged: test_loss isn't finite",
    "word": "error: test_loss is 'low'",
    "huge": "error: test_loss is 1000",
    "no-numbers": "error: AttributeError: 'NoneType' object has no attribute 'items'",
    "numberless-step": "error: ValueError: invalid literal for int() with base 10: 'last'",
    "wordy": r"so it goes\nso it goes\n",
    "closes": "error: GeneratorExit",
    "other-column": "error: the study has no column 'tset_loss'",
    "nothing": "error: the study gave no result for it",
    "text": "error: TypeError: the study gave 'a loss of 0.5', which is not a CellResult",
    "other-cell": "error: LookupError: the study gave a result of another cell, or a second",
    "other-step": "error: the study logs no column 'tset_loss'",
    "wordy-step": "error: ArrowInvalid: Could not convert 'low' with type str: tried to",
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
    assert failed["reason"].str.len().max() <= 250
    with_steps = set(overfit_cli.load(tmp_path / "out", trajectories=True)["key"])
    unlogged = {"raises", "exits", "interrupts", "closes", "wordy-step", "other-step"}
    kept = set() if mood in unlogged else set(failed["key"])
    assert with_steps & set(failed["key"]) == kept, "what was logged is kept, if it can be"
    assert set(cells.loc[cells["mood"] == "well", "status"]) == {"done"}


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_it_ends_no_worker(tmp_path: Path, backend: str) -> None:
    how = ("--set=mood=exits,interrupts,wordy-step", "--jobs=2", "--backend", backend)
    done = run(*GRID, *how, cwd=tmp_path, expect=1)
    assert "Done: 0 trained" in done.stdout
    assert "started again" not in done.stdout
    assert set(overfit_cli.load(tmp_path / "out")["status"]) == {"failed"}


@pytest.mark.parametrize("mood", ["exits", "interrupts", "nan", "nothing"])
def test_a_training_says_why_it_failed(tmp_path: Path, mood: str) -> None:
    done = call("train", "toy", "--set", f"mood={mood}", "--out=out", cwd=tmp_path, expect=1)
    [sentence] = done.stderr.splitlines()
    assert sentence.startswith(f"overfit: The cell failed: {REASONS[mood]}")
    assert overfit_cli.load(tmp_path / "out")["status"].tolist() == ["failed"]


UNPLANNED = {
    "figures": ("list figures", "note: The study 'bad' fails at its figures: RuntimeError: no."),
    "claims": ("list claims", "note: The study 'bad' fails at its claims: RuntimeError: no."),
    "batches": ("sweep bad", "overfit: The study 'bad' fails at making batches: RuntimeError"),
    "prepare": ("sweep bad", "overfit: The study 'bad' fails at preparing its data: RuntimeError"),
    "memory": ("sweep bad", "overfit: The study 'bad' fails at the memory of a cell: Runtime"),
    "cost": ("sweep bad", "overfit: The study 'bad' fails at the cost of a cell: RuntimeError"),
}


@pytest.mark.parametrize("member", UNPLANNED)
def test_a_member_that_raises_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, member: str
) -> None:
    def refuse(*arguments: object) -> None:
        raise RuntimeError("no")

    bad = type("Bad", (type(TOY),), {"name": "bad", member: refuse})()
    monkeypatch.setattr("overfit_cli.core.registry._installed", lambda: {"bad": Loaded(bad)})
    command, message = UNPLANNED[member]
    arguments = [*command.split(), *(["--jobs=1"] if "sweep" in command else [])]
    done = call(*arguments, cwd=tmp_path, expect=2 if "sweep" in command else 0)
    [sentence] = done.stderr.splitlines()
    assert sentence.startswith(message)


@pytest.mark.parametrize("made", [lambda cells: [], lambda cells: [cells, cells]])
def test_batches_that_lose_or_double_cells_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: Callable[[list[Cell]], object]
) -> None:
    monkeypatch.setattr(type(TOY), "batches", lambda study, cells, device: made(cells))
    grid = Grid.read(TOY, {"n": "1:3"}, (0,))
    with pytest.raises(UserError, match="puts a cell into no batch, or into more than one"):
        make_plan(grid, RunDirectory(tmp_path), "cpu")


@dataclass(frozen=True)
class Loaded:
    """An entry point that is loaded already."""

    study: object
    name: str = "bad"
    value: str = "nowhere"

    def load(self) -> object:
        return self.study


BROKEN = {
    "raises": "raise RuntimeError('it is\\nbroken \\x1b[31m')",
    "exits": "import sys; sys.exit(3)",
    "no-object": "",
    "no-study": "study = 3",
    "other-name": "import toy_study; study = toy_study.Toy()",
    "no-parameters": "import toy_study\nclass S(toy_study.Toy): parameters = dict\nstudy = S()",
}


@pytest.mark.slow
def test_a_broken_entry_point_costs_its_own_study_and_one_line(installed_here: Path) -> None:
    tmp_path = installed_here
    info = tmp_path / "broken-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 0.1\n")
    points = [f"{name} = broken_{name.replace('-', '_')}:study" for name in BROKEN]
    (info / "entry_points.txt").write_text("\n".join(["[overfit.studies]", *points]))
    for name, code in BROKEN.items():
        (tmp_path / f"broken_{name.replace('-', '_')}.py").write_text(code)
    sweep = ("sweep", "toy", "--n=1:2", "--snr=1:2:2", "--seeds=1", "--jobs=1")
    assert run(*sweep, cwd=tmp_path).stderr == "", "it needs none of them"
    for command in (("list",), ("plot", "heatmap"), ("report",)):
        done = run(*command, cwd=tmp_path)
        lines = done.stderr.splitlines()
        assert len(lines) == len(BROKEN), done.stderr
        for name in BROKEN:
            sentences = [
                line for line in lines if line.startswith(f"note: The study '{name}' can't be")
            ]
            assert len(sentences) == 1
        assert "\x1b" not in done.stderr
    for name in ("raises", "exits"):
        refused = run("sweep", name, cwd=tmp_path, expect=2).stderr
        assert refused.startswith(f"overfit: The study '{name}' can't be loaded from broken_")
        assert len(refused.splitlines()) == 1
