"""A foreign study, whatever it does, costs its own cells and a sentence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pytest

import overfit_cli
from overfit_cli.core import registry
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
    "other-cell": "error: LookupError: the study gave a result of another cell, or two of",
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


def fails(*arguments: object) -> None:
    raise RuntimeError("no")


MEMBERS: list[tuple[str, Callable[..., object], str]] = [
    ("figures", fails, "fails at its figures: RuntimeError: no."),
    ("claims", fails, "fails at its claims: RuntimeError: no."),
    ("prepare", fails, "fails at preparing its data: RuntimeError: no."),
    ("memory", fails, "fails at the cost or the memory of a cell: RuntimeError: no."),
    ("cost", fails, "fails at the cost of a cell: RuntimeError: no."),
    ("batches", fails, "fails at making batches: RuntimeError: no."),
    ("batches", lambda *given: [], "puts a cell into no batch, or into several"),
    ("batches", lambda toy, cells, device: [cells, cells], "into no batch, or into several"),
]


@pytest.mark.parametrize(("member", "made", "said"), MEMBERS)
def test_a_member_that_raises_or_loses_cells_is_a_sentence(
    tmp_path: Path, member: str, made: Callable[..., object], said: str
) -> None:
    bad = type("Bad", (type(TOY),), {"name": "bad", member: made})()
    is_listed = member in ("figures", "claims")
    command = ("list", member) if is_listed else ("sweep", "bad", "--jobs=1")
    with mock.patch.dict(registry._added, bad=bad):
        [sentence] = call(*command, cwd=tmp_path, expect=0 if is_listed else 2).stderr.splitlines()
    assert sentence.startswith("note: " if is_listed else "overfit: ")
    assert said in sentence
    assert "'bad'" in sentence


BROKEN = {
    "raises": "raise RuntimeError('it is\\nbroken \\x1b[31m')",
    "exits": "import sys; sys.exit(3)",
    "no-object": "",
    "other-name": "import toy_study; study = toy_study.Toy()",
}


@pytest.mark.slow
def test_a_broken_entry_point_costs_its_own_study_and_one_line(
    install: Callable[..., None], tmp_path: Path
) -> None:
    modules = {f"broken_{name.replace('-', '_')}": code for name, code in BROKEN.items()}
    points = [f"{module}:study" for module in modules]
    install(dict(zip(BROKEN, points, strict=True)), **modules)
    sweep = ("sweep", "toy", "--n=1:2", "--snr=1:2:2", "--seeds=1", "--jobs=1")
    for command in (sweep, ("plot", "heatmap")):
        assert run(*command, cwd=tmp_path).stderr == "", "it needs none of them"
    for listing in (["list"], ["report"]):
        errors = run(*listing, cwd=tmp_path).stderr
        named = [line.removeprefix("note: The study '") for line in errors.splitlines()]
        assert sorted(line.partition("' can't be")[0] for line in named) == sorted(BROKEN), errors
        assert "\x1b" not in errors
    for name in ("raises", "exits"):
        [refused] = run("sweep", name, cwd=tmp_path, expect=2).stderr.splitlines()
        assert refused.startswith(f"overfit: The study '{name}' can't be loaded from broken_")
