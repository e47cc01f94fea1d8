"""Progress of a sweep on the screen, while it runs and afterwards."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from overfit_cli.core.cell import CellResult
from overfit_cli.core.training import Execution
from overfit_cli.sweeps import progress
from overfit_cli.sweeps.executors import Local, Run
from overfit_cli.sweeps.grid import Grid
from overfit_cli.sweeps.plan import make_plan
from overfit_cli.sweeps.store import RunDirectory
from overfit_cli.sweeps.worker import Work, record_of
from tests.command import said
from tests.screen import shown
from tests.terminal import on_a_terminal
from tests.toy_runs import TOY

SLOWLY = {"TOY_PAUSE": "0.1", "TERM": "xterm-256color"}
TITLE = "test_loss over snr (across) and n (up)"
LINE = re.compile(r"(\d+) of (\d+) cells(?:, \d+ failed)?; (.*)")


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have commands in this process take their output for a terminal."""
    for name, value in {"FORCE_COLOR": "1", "TERM": "xterm-256color", "LINES": "40"}.items():
        monkeypatch.setenv(name, value)


def swept(folder: Path, options: str, expect: int = 0) -> list[str]:
    """The lines that a screen has in the end after a sweep of the toy with one job."""
    return shown(said(f"sweep toy {options} --jobs=1 --out=out", folder, expect))


def diagram_in(lines: Sequence[str]) -> list[str]:
    """The one diagram among the lines: from its title to its key."""
    titles = [index for index, line in enumerate(lines) if " (across) and " in line]
    assert len(titles) == 1, lines
    end = next(i for i in itertools.count(titles[0] + 1) if re.search(r"▀ \d|to come", lines[i]))
    return list(lines[titles[0] : end + 1])


def test_the_diagram_stays_once_with_its_failures_before_the_summary_of_each_sweep(
    tmp_path: Path, terminal: None
) -> None:
    grid = "--n=1:4 --snr=1:2:3 --seeds=2 --set=mood=diverges"
    stream = said(f"sweep toy {grid} --jobs=1 --out=out", tmp_path, 1)
    assert "24 of 24 cells, 12 failed; " in stream
    lines = shown(stream)
    diagram = diagram_in(lines)
    assert diagram[0] == TITLE
    assert diagram[-1].endswith("▀ 6 points failed")
    assert lines[lines.index(TITLE) - 1] == "24 to run, 1 job."
    assert lines[lines.index(diagram[-1]) + 1].startswith("Done: 12 trained")
    assert not any(LINE.match(line) or "━" in line for line in lines)
    again = swept(tmp_path, grid, 1)
    assert diagram_in(again) == diagram, "of cells that are there"
    assert again[again.index(diagram[-1]) + 1].startswith("Done: 0 trained")


@pytest.mark.slow
def test_an_interrupted_diagram_stays_and_a_resumed_one_has_the_cells_of_both(
    tmp_path: Path, terminal: None
) -> None:
    grid = "--n=1:12 --snr=1:2:2 --seeds=1"
    words = f"sweep toy {grid} --jobs=2 --out=out".split()
    code, output = on_a_terminal(*words, cwd=tmp_path, env=SLOWLY, interrupt_at=" 6 of 24 cells")
    lines = shown(output)
    assert code == 130
    assert "0 of 24 cells; waiting for the first" in output
    diagram = diagram_in(lines)
    assert re.search(r"\d+ points to come, pale as the nearest$", diagram[-1])
    after = " ".join(lines[lines.index(diagram[-1]) + 1 :])
    assert re.match(r"Interrupted after \d+ of 24 cells; they are kept in out, and the same", after)
    assert not any("━" in line for line in lines)
    resumed = swept(tmp_path, grid)
    assert "there already; " in resumed[1]
    whole = diagram_in(swept(tmp_path, f"{grid} --fresh"))
    assert diagram_in(resumed) == whole and "to come" not in whole[-1]


def test_a_terminal_that_takes_nothing_back_gets_lines(
    tmp_path: Path, terminal: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.0)
    left = itertools.cycle([8.04, 0.4])
    monkeypatch.setattr(Run, "seconds_left", lambda self: next(left))
    done = said("sweep toy --n=1:3 --snr=1:2:2 --seeds=1 --set=pause=0.01 --jobs=1", tmp_path)
    assert "\x1b[" not in done
    lines = done.splitlines()
    assert re.fullmatch(r"2 of 6 cells; 0\.\d+ s so far, about 8\.0 s left", lines[2])
    assert lines[3].endswith(" so far, less than 1 s left")
    assert any(line.startswith("Done: 6 trained") for line in lines)
    assert not any("▀" in line for line in lines)


def test_the_time_left_is_by_the_speed_of_the_finished_tasks(tmp_path: Path) -> None:
    """Two jobs; the first task imports libraries, and its time says nothing of the rest."""
    plan = make_plan(Grid.read(TOY, {"n": "1:4"}, (0, 1)), RunDirectory(tmp_path), "cpu")
    running, left = Run(plan, RunDirectory(tmp_path), Work(TOY, Execution()), Local(2)), []
    for number, took in enumerate([18.0, 0.25, 8.0, 3.75, 4.0, 4.0, 4.0, 1.0]):
        results = [CellResult(cell, {"test_loss": 0.5}) for cell in plan.batches[number]]
        record = record_of(TOY, [number], results)
        running.take(replace(record, seconds=took, is_cold=number == 0))
        left.append(running.seconds_left())
    assert left == [None, 0.75, pytest.approx(10.3125), 8.0, 6.0, 4.0, 4.0, None]
