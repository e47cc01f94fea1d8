"""Progress of a sweep on the screen, while it runs and afterwards."""

from __future__ import annotations

import io
import itertools
import math
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from rich.console import Console

from overfit_cli.core.cell import CellResult
from overfit_cli.core.registry import find_study
from overfit_cli.core.text import duration
from overfit_cli.sweeps import progress
from overfit_cli.sweeps.diagram import SweepDiagram, diagram_of, law_of, load_headlines
from overfit_cli.sweeps.executors import Local
from overfit_cli.sweeps.grid import make_grid
from overfit_cli.sweeps.plan import Plan, make_plan
from overfit_cli.sweeps.progress import Progress
from overfit_cli.sweeps.speed import Speed
from overfit_cli.sweeps.store import RunDirectory
from overfit_cli.sweeps.worker import TaskRecord
from tests.command import call
from tests.screen import shown
from tests.terminal import on_a_terminal
from tests.toy_runs import TOY, toy_cells

SLOWLY = {"TOY_PAUSE": "0.1"}
TITLE = "test_loss over snr (across) and n (up)"
LINE = re.compile(r"(\d+) of (\d+) cells(?:, \d+ failed)?; (.*)")


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have commands in this process take their output for a terminal."""
    for name, value in {"FORCE_COLOR": "1", "TERM": "xterm", "LINES": "40"}.items():
        monkeypatch.setenv(name, value)


def diagram_in(lines: Sequence[str]) -> list[str]:
    """The one diagram among the lines: from its title to its key."""
    titles = [index for index, line in enumerate(lines) if " (across) and " in line]
    assert len(titles) == 1, lines
    end = next(i for i in itertools.count(titles[0] + 1) if "··░░▒▒▓▓██ " in lines[i])
    return list(lines[titles[0] : end + 1])


def test_the_diagram_stays_once_with_its_failures_before_the_summary(
    tmp_path: Path, terminal: None
) -> None:
    grid = ("--n=1:4", "--snr=1:2:3", "--seeds=2", "--set=mood=diverges")
    done = call("sweep", "toy", *grid, "--jobs=1", "--out=out", cwd=tmp_path, expect=1)
    lines = shown(done.stdout)
    diagram = diagram_in(lines)
    assert diagram[0] == TITLE
    failed = {line[0]: line.count("×") for line in diagram[1:5]}
    assert failed == {"4": 0, "3": 48, "2": 0, "1": 48}
    assert diagram[-1].endswith("× 6 points failed")
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
    assert "0 of 24 cells; waiting for 2 workers to start and train the first 4 cells" in output
    diagram = diagram_in(lines)
    assert re.search(r"blank: \d+ points to come$", diagram[-1])
    after = " ".join(lines[lines.index(diagram[-1]) + 1 :])
    assert re.match(r"Interrupted after \d+ of 24 cells; they are kept in out, and the same", after)
    assert not any("━" in line for line in lines)
    resumed = shown(call(*grid, "--jobs=1", cwd=tmp_path).stdout)
    assert "there already; " in resumed[1]
    whole = shown(call(*grid, "--jobs=1", "--fresh", cwd=tmp_path).stdout)
    assert diagram_in(resumed) == diagram_in(whole)
    assert "to come" not in diagram_in(whole)[-1]


@pytest.mark.slow
def test_what_is_said_on_the_way_stands_above_the_diagram(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from pathlib import Path\n"
        "def train(n: int = 1, snr: float = 1.0) -> dict[str, float]:\n"
        "    Path('out/cells/mine.parquet').write_bytes(b'PAR1')\n"
        "    return {'product': n * snr, 'sum': n + snr}\n"
    )
    grid = ("sweep", "mine.py", "--n=1:2", "--snr=1:2:2", "--jobs=1", "--out=out")
    code, output = on_a_terminal(*grid, cwd=tmp_path, env=SLOWLY)
    lines = shown(output)
    assert code == 0
    assert lines[2].startswith("note: out/cells/mine.parquet is damaged and is set aside")
    assert diagram_in(lines) == lines[4:9]
    assert lines[4] == "product over snr (across) and n (up)"
    assert lines[9].startswith("Done: 4 trained")


def test_what_is_shown_before_the_first_result_says_what_it_waits_for(
    tmp_path: Path, terminal: None
) -> None:
    grid = ("sweep", "toy", "--n=1:2", "--seeds=1")
    alone = call(*grid, "--snr=1", "--jobs=1", cwd=tmp_path).stdout
    assert "0 of 2 cells; waiting for the first cell\r" in alone
    threads = call(*grid, "--snr=3:4:3", "--jobs=2", "--backend=threading", cwd=tmp_path).stdout
    assert "0 of 6 cells; waiting for the first 6 cells" in threads
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


def test_a_terminal_that_takes_nothing_back_gets_lines_and_the_last_diagram(
    tmp_path: Path, terminal: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.0)
    grid = ("--n=1:3", "--snr=1:2:2", "--seeds=1", "--set=pause=0.01", "--jobs=1")
    done = call("sweep", "toy", *grid, cwd=tmp_path).stdout
    assert "\x1b[" not in done
    lines = done.splitlines()
    assert lines[2].startswith("2 of 6 cells; 0.")
    assert diagram_in(lines)[0] == TITLE


# The axes of the diagram


def toy_plan(folder: Path, **texts: str) -> Plan:
    return make_plan(make_grid(TOY, texts, (0, 1)), RunDirectory(folder), "cpu")


def drawn(diagram: SweepDiagram) -> list[str]:
    console = Console(file=io.StringIO(), width=80)
    with console.capture() as captured:
        console.print(diagram.render(80, 24))
    return captured.get().splitlines()


@pytest.mark.parametrize(
    ("texts", "title"),
    [
        ({"n": "1:3", "snr": "1:2:2"}, TITLE),
        ({"n": "1:2", "snr": "1:2:2", "pause": "0:1:2"}, f"{TITLE}, mean over pause"),
        (
            {"n": "1:2", "snr": "1:2:3", "pause": "0:1:4"},
            "test_loss over pause (across) and snr (up), mean over n",
        ),
        (
            {"n": "1:2", "snr": "1:2:2", "pause": "0:1:2", "mood": "well,prints,raises"},
            f"{TITLE}, mean over pause, mood",
        ),
        ({"n": "1:3"}, None),
        ({"n": "1:3", "mood": "well,prints"}, None),
    ],
)
def test_of_many_axes_the_diagram_has_the_two_with_the_most_numbers(
    tmp_path: Path, texts: dict[str, str], title: str | None
) -> None:
    diagram = diagram_of(toy_plan(tmp_path, **texts), RunDirectory(tmp_path))
    assert (diagram and drawn(diagram)[0]) == title


def test_a_point_is_the_mean_over_other_axes_and_seeds_of_the_cells_that_have_a_number(
    tmp_path: Path,
) -> None:
    plan = toy_plan(tmp_path, n="5,3", snr="2,1,4", pause="0,1")
    diagram = diagram_of(plan, RunDirectory(tmp_path))
    assert diagram is not None
    for cell in plan.cells:
        settings = cell.parameters.model_dump()
        failed = settings["snr"] == 4 or (settings["n"], settings["snr"], cell.seed) == (5, 2, 1)
        above = {1: 1, 2: 5, 4: 0}[settings["snr"]]
        diagram.add(cell, None if failed else above + 2 * settings["pause"] + 4 * cell.seed)
    assert drawn(diagram)[1:] == [
        f"5 {'·' * 16}{'▒' * 16}{'×' * 16}",  # 4, and 6 between 4 and 8
        f"3 {'·' * 16}{'█' * 16}{'×' * 16}",
        f"  1{' ' * 46}4",
        "4 ··░░▒▒▓▓██ 8   × 2 points failed   ",
    ]


def test_a_kept_cell_has_its_number_and_one_that_failed_has_none_whatever_it_measured(
    tmp_path: Path,
) -> None:
    directory = RunDirectory(tmp_path / "out")
    directory.prepare()
    done, failed, never = toy_cells(n="1:3", snr="1")
    for result in (
        CellResult(done, reason="it failed at first"),
        CellResult(done, {"test_loss": 0.25}),
        CellResult(done, reason="and in another sweep"),
        CellResult(failed, {"test_loss": 0.5}, reason="diverged"),
    ):
        directory.write(TOY, [result])
    headlines = load_headlines(directory, TOY)
    assert headlines == {done.key: 0.25, failed.key: pytest.approx(math.nan, nan_ok=True)}
    assert never.key not in headlines


def test_the_diagram_of_a_study_with_sides_names_them_and_draws_its_law(tmp_path: Path) -> None:
    grid = make_grid(find_study("benign-vit"), {"n": "2:20", "snr": "1:16:16"}, (0,))
    plan = make_plan(grid, RunDirectory(tmp_path), "cpu")
    diagram = diagram_of(plan, RunDirectory(tmp_path))
    assert diagram is not None
    lines = drawn(diagram)
    assert lines[-1] == "benign up to 0.2, harmful above it; o is n * snr**2 = 1000"
    assert lines[1].index("o") == 3 + 4 * 6 + 1, "at N 20 just past SNR 7, each has 4 characters"
    panels = make_grid(find_study("benign-vit"), {"n": "2:9", "snr": "1:9", "d": "500,999"}, (0,))
    assert law_of(panels, "snr", "n") == "n * snr**2 = 1000"
    differing = make_grid(grid.study, {"n": "2:9", "snr": "1:9", "tokens": "8,16"}, (0,))
    assert law_of(differing, "snr", "n") is None, "there is one for each value"
    assert law_of(grid, "n", "snr") is None
    few_tokens = make_grid(grid.study, {"n": "2:9", "snr": "1:9", "tokens": "8"}, (0,))
    assert law_of(few_tokens, "snr", "n") == "n * snr**2 = 812", "2 (20² + 8 − 2)"


# The time that is left


def watched(
    plan: Plan, jobs: int, speed: Speed, monkeypatch: pytest.MonkeyPatch
) -> tuple[Progress, io.StringIO, list[float]]:
    """The progress of a plan, what it writes, and the clock that it looks at."""
    clock, output = [0.0], io.StringIO()
    monkeypatch.setattr("overfit_cli.sweeps.progress.time.monotonic", lambda: clock[0])
    console = Console(file=output, force_terminal=True, width=200)
    directory = RunDirectory(Path("never-written"))
    return Progress(plan, Local(jobs), directory, console, speed), output, clock


def test_the_time_left_is_by_the_speed_of_the_finished_tasks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two jobs; the time until the first cell, in which workers start, says nothing of the rest."""
    plan, speed = toy_plan(tmp_path, n="1:4"), Speed()
    shows, output, clock = watched(plan, 2, speed, monkeypatch)
    cost = plan.grid.study.cost(plan.cells[0])
    clock[0] = 20.0
    with shows.shown():
        for number, (batch, took) in enumerate(
            zip(plan.batches, [8.0, *[4.0] * 5, 0.5, 1.0], strict=True)
        ):
            clock[0] += took / 2
            speed.add(cost * len(batch), took)
            headlines = tuple((cell.key, 0.5) for cell in batch)
            shows.add(TaskRecord((number,), headlines, Counter(), took))
    sentences = re.findall(r"[1-9] of 8 cells; [^,\r]* so far([^\r]*)", output.getvalue())
    of_one_batch = [8.0, 6.0, 16 / 3, 5.0, 4.8, 14 / 3, 28.5 / 7]
    batches_left = [3.5, 3.0, 2.5, 2.0, 1.5, 1.0, 1.0]
    expected = [took * left for took, left in zip(of_one_batch, batches_left, strict=True)]
    assert sentences[:8] == [*(f", about {duration(left)} left" for left in expected), ""]


def test_while_cells_run_it_is_never_nothing_that_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, speed = toy_plan(tmp_path, n="1:4"), Speed()
    shows, output, clock = watched(plan, 1, speed, monkeypatch)
    with shows.shown():
        clock[0] = 0.1
        speed.add(1.0, 0.0)
        shows.add(TaskRecord((0,), tuple((cell.key, 0.5) for cell in plan.batches[0]), Counter()))
    assert "1 of 8 cells; 0.1 s so far, less than 1 s left" in output.getvalue()


def test_nothing_is_said_of_the_time_left_until_a_task_has_ended_that_imports_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first tasks of two workers take 18 s, most of it imports; the third takes 0.1 s."""
    plan, speed = toy_plan(tmp_path, n="1:28"), Speed()
    shows, output, clock = watched(plan, 2, speed, monkeypatch)
    with shows.shown():
        for number, (batch, took) in enumerate(zip(plan.batches, [18.0, 18.0, 0.1], strict=False)):
            clock[0] = 18.0 if number < 2 else 18.1
            speed.add(1.0, took, is_cold=number < 2)
            shows.add(TaskRecord((number,), tuple((cell.key, 0.5) for cell in batch), Counter()))
    sentences = re.findall(r"[1-9] of 56 cells; [^\r\n]*", output.getvalue())
    assert sentences[:2] == ["1 of 56 cells; 18 s so far", "2 of 56 cells; 18 s so far"]
    assert sentences[2].startswith("3 of 56 cells; 18 s so far, about 2.")
