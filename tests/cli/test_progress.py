"""Progress of a sweep on the screen, while it runs and afterwards."""

from __future__ import annotations

import io
import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from overfit_cli.core.cell import CellResult
from overfit_cli.core.text import duration
from overfit_cli.core.training import Execution
from overfit_cli.sweeps import progress
from overfit_cli.sweeps.executors import Local, Run
from overfit_cli.sweeps.grid import Grid
from overfit_cli.sweeps.plan import Plan, make_plan
from overfit_cli.sweeps.progress import Progress
from overfit_cli.sweeps.store import RunDirectory
from overfit_cli.sweeps.worker import Work, record_of
from tests.command import call
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


def diagram_in(lines: Sequence[str]) -> list[str]:
    """The one diagram among the lines: from its title to its key."""
    titles = [index for index, line in enumerate(lines) if " (across) and " in line]
    assert len(titles) == 1, lines
    end = next(i for i in itertools.count(titles[0] + 1) if re.search(r"▀ \d|to come", lines[i]))
    return list(lines[titles[0] : end + 1])


def test_the_diagram_stays_once_with_its_failures_before_the_summary(
    tmp_path: Path, terminal: None
) -> None:
    grid = ("--n=1:4", "--snr=1:2:3", "--seeds=2", "--set=mood=diverges")
    done = call("sweep", "toy", *grid, "--jobs=1", "--out=out", cwd=tmp_path, expect=1)
    lines = shown(done.stdout)
    diagram = diagram_in(lines)
    assert diagram[0] == TITLE
    assert diagram[-1].endswith("▀ 6 points failed")
    assert lines[lines.index(TITLE) - 1] == "24 to run, 1 job."
    assert lines[lines.index(diagram[-1]) + 1].startswith("Done: 12 trained")
    assert "24 of 24 cells, 12 failed; " in done.stdout
    assert not any(LINE.match(line) or "━" in line for line in lines)


def test_a_sweep_that_reuses_all_cells_shows_their_diagram(tmp_path: Path, terminal: None) -> None:
    grid = ("sweep", "toy", "--n=1:4", "--snr=1:2:3", "--seeds=2", "--jobs=1", "--out=out")
    first = shown(call(*grid, cwd=tmp_path).stdout)
    again = shown(call(*grid, cwd=tmp_path).stdout)
    assert diagram_in(again) == diagram_in(first)
    assert again[again.index(diagram_in(again)[-1]) + 1].startswith("Done: 0 trained")


@pytest.mark.slow
def test_an_interrupted_diagram_stays_and_a_resumed_one_has_the_cells_of_both(
    tmp_path: Path, terminal: None
) -> None:
    grid = ("sweep", "toy", "--n=1:12", "--snr=1:2:2", "--seeds=1", "--out=out")
    code, output = on_a_terminal(
        *grid, "--jobs=2", cwd=tmp_path, env=SLOWLY, interrupt_at=" 6 of 24 cells"
    )
    lines = shown(output)
    assert code == 130
    assert "0 of 24 cells; waiting for the first of the workers that start" in output
    diagram = diagram_in(lines)
    assert re.search(r"\d+ points to come, pale as the nearest$", diagram[-1])
    after = " ".join(lines[lines.index(diagram[-1]) + 1 :])
    assert re.match(r"Interrupted after \d+ of 24 cells; they are kept in out, and the same", after)
    assert not any("━" in line for line in lines)
    resumed = shown(call(*grid, "--jobs=1", cwd=tmp_path).stdout)
    assert "there already; " in resumed[1]
    whole = shown(call(*grid, "--jobs=1", "--fresh", cwd=tmp_path).stdout)
    assert diagram_in(resumed) == diagram_in(whole)
    assert "to come" not in diagram_in(whole)[-1]


@pytest.mark.slow
def test_what_is_said_of_the_directory_stands_above_the_diagram(tmp_path: Path) -> None:
    damaged = tmp_path / "out" / "cells" / "mine.parquet"
    damaged.parent.mkdir(parents=True)
    damaged.write_bytes(b"PAR1")
    grid = ("sweep", "toy", "--n=1:2", "--snr=1:2:2", "--seeds=1", "--jobs=1", "--out=out")
    code, output = on_a_terminal(*grid, cwd=tmp_path, env=SLOWLY)
    lines = shown(output)
    assert code == 0
    said = next(i for i, line in enumerate(lines) if "out/cells/mine.parquet is" in line)
    assert said < lines.index(TITLE)
    assert lines[lines.index(diagram_in(lines)[-1]) + 1].startswith("Done: 4 trained")


def test_what_is_shown_before_the_first_result_says_what_it_waits_for(
    tmp_path: Path, terminal: None
) -> None:
    grid = ("sweep", "toy", "--n=1:2", "--seeds=1")
    alone = call(*grid, "--snr=1", "--jobs=1", cwd=tmp_path).stdout
    assert "0 of 2 cells; waiting for the first\r" in alone
    threads = call(*grid, "--snr=3:4:3", "--jobs=2", "--backend=threading", cwd=tmp_path).stdout
    assert "0 of 6 cells; waiting for the first" in threads
    assert "starting" not in alone + threads


def test_a_refined_sweep_shows_the_coarse_grid_once(tmp_path: Path, terminal: None) -> None:
    refined = ("--seeds=3", "--refine=2", "--threshold=0.1", "--jobs=1", "--out=out")
    done = call("sweep", "toy", "--n=3,5", "--snr=0.5:4:5", *refined, cwd=tmp_path)
    lines = shown(done.stdout)
    assert lines[0] == "The coarse grid: 20 cells, 20 to run."
    assert lines[1] == TITLE
    after = lines.index(diagram_in(lines)[-1]) + 1
    then = [line.partition(":")[0] for line in lines[after : after + 3]]
    assert then == ["Round 1", "Round 2", "Done"]


def test_a_terminal_that_takes_nothing_back_gets_lines(
    tmp_path: Path, terminal: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.0)
    grid = ("--n=1:3", "--snr=1:2:2", "--seeds=1", "--set=pause=0.01", "--jobs=1")
    done = call("sweep", "toy", *grid, cwd=tmp_path).stdout
    assert "\x1b[" not in done
    lines = done.splitlines()
    assert lines[2].startswith("2 of 6 cells; 0.")
    assert any(line.startswith("Done: 6 trained") for line in lines)
    assert not any("▀" in line for line in lines)


def toy_plan(folder: Path, **texts: str) -> Plan:
    return make_plan(Grid.read(TOY, texts, (0, 1)), RunDirectory(folder), "cpu")


# The time that is left


def watched(
    plan: Plan, jobs: int, monkeypatch: pytest.MonkeyPatch
) -> tuple[Progress, io.StringIO, list[float], Callable[..., None]]:
    """The progress of a plan, what it writes, the clock that it looks at, and what ends a batch."""
    clock, output = [0.0], io.StringIO()
    monkeypatch.setattr("overfit_cli.sweeps.progress.time.monotonic", lambda: clock[0])
    directory, work = RunDirectory(Path("never-written")), Work(TOY, Execution())
    running = Run(plan, directory, work, Local(jobs))
    shows = Progress(running, Console(file=output, force_terminal=True, width=200))

    def end(number: int, took: float, *, is_cold: bool = False) -> None:
        results = [CellResult(cell, {"test_loss": 0.5}) for cell in plan.batches[number]]
        record = record_of(TOY, [number], results)
        record = replace(record, seconds=took, is_cold=is_cold)
        running.take(record)
        shows.add(record)

    return shows, output, clock, end


def test_the_time_left_is_by_the_speed_of_the_finished_tasks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two jobs; the time until the first cell, in which workers start, says nothing of the rest."""
    plan = toy_plan(tmp_path, n="1:4")
    shows, output, clock, end = watched(plan, 2, monkeypatch)
    clock[0] = 20.0
    with shows.shown():
        for number, took in enumerate([8.0, *[4.0] * 5, 0.5, 1.0]):
            clock[0] += took / 2
            end(number, took)
    sentences = re.findall(r"[1-9] of 8 cells; [^,\r]* so far([^\r]*)", output.getvalue())
    of_one_batch = [8.0, 6.0, 16 / 3, 5.0, 4.8, 14 / 3, 28.5 / 7]
    batches_left = [3.5, 3.0, 2.5, 2.0, 1.5, 1.0, 1.0]
    expected = [took * left for took, left in zip(of_one_batch, batches_left, strict=True)]
    assert sentences[:8] == [*(f", about {duration(left)} left" for left in expected), ""]


def test_while_cells_run_it_is_never_nothing_that_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shows, output, clock, end = watched(toy_plan(tmp_path, n="1:4"), 1, monkeypatch)
    with shows.shown():
        clock[0] = 0.1
        end(0, 0.0)
    assert "1 of 8 cells; 0.1 s so far, less than 1 s left" in output.getvalue()


def test_nothing_is_said_of_the_time_left_until_a_task_has_ended_that_imports_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first tasks of two workers take 18 s, most of it imports; the third takes 0.1 s."""
    shows, output, clock, end = watched(toy_plan(tmp_path, n="1:28"), 2, monkeypatch)
    with shows.shown():
        for number, took in enumerate([18.0, 18.0, 0.1]):
            clock[0] = 18.0 if number < 2 else 18.1
            end(number, took, is_cold=number < 2)
    sentences = re.findall(r"[1-9] of 56 cells; [^\r\n]*", output.getvalue())
    assert sentences[:2] == ["1 of 56 cells; 18 s so far", "2 of 56 cells; 18 s so far"]
    assert sentences[2].startswith("3 of 56 cells; 18 s so far, about 2.")
