"""Names are shown as they are, and a stream that can't be written stops nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import overfit_cli
from overfit_cli.core.text import escape_markdown, visible
from tests.command import call, environment

GRID = ("sweep", "toy", "--n=1:3", "--snr=1:2:2", "--seeds=1", "--jobs=1")
NAMES = [
    "\x1b[31mred\x1b[0m",
    "a[/]b",
    "[red]x[/red]",
    "[bold",
    ":smile:",
    "a\n# A heading",
    "<img src=x onerror=alert(1)>",
    "[click](javascript:alert(1))",
    "a|b `c` **d** \\",
    "&lt;",
    "\u202egnp.exe",
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.one_in(11)
def test_a_directory_may_have_any_name_that_is_text(tmp_path: Path, name: str) -> None:
    swept = call(*GRID, "--out", name, cwd=tmp_path)
    assert f"(n 3 × snr 2 × seeds 1), {visible(name)}\n" in swept.stdout
    drawn = call("plot", "heatmap", "--from", name, cwd=tmp_path)
    said = f"Drawn: {visible(name)}/figures/heatmap.png, and its caption in heatmap.txt\n"
    assert drawn.stdout == said
    again = call(*GRID, "--out", name, cwd=tmp_path)
    judged = call("report", name, "--out", "report", cwd=tmp_path)
    trained = call("train", "toy", "--out", name, cwd=tmp_path)
    missing = call("plot", "heatmap", "--from", f"{name}!", cwd=tmp_path, expect=2)
    assert visible(name) in missing.stderr
    assert len(missing.stderr.splitlines()) == 1
    for done in (swept, drawn, again, judged, trained, missing):
        assert not set(done.stdout + done.stderr) & {"\x1b", "\u202e"}
    page = (tmp_path / "report" / "report.md").read_text()
    assert escape_markdown(name) in page
    headings = [line for line in page.splitlines() if line.startswith("#")]
    assert "# A heading" not in headings
    assert "<img" not in page
    assert "](javascript" not in page


@pytest.mark.slow
def test_names_found_in_results_are_as_harmless(tmp_path: Path) -> None:
    call(*GRID, "--out=a", cwd=tmp_path)
    (tmp_path / "results").mkdir()
    (tmp_path / "a").rename(tmp_path / "results" / os.fsdecode(b"\xff\x1b[31m\n## no"))
    drawn = call("plot", "heatmap", cwd=tmp_path)
    assert r"From results/\udcff\x1b[31m\n## no, the newest run directory" in drawn.stdout
    call("report", cwd=tmp_path)
    page = (tmp_path / "results" / "report" / "report.md").read_text()
    assert r"results/\\udcff\\x1b[31m\\n## no" in page


@pytest.mark.parametrize("option", ["--out", "--data"])
def test_a_name_that_is_no_text_is_refused_in_a_sentence(tmp_path: Path, option: str) -> None:
    command = [sys.executable, "-m", "overfit_cli", "sweep", "toy", option, "bad\udcffname"]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment(), capture_output=True, check=False, text=True
    )
    assert done.returncode == 2
    assert done.stderr == (
        f"overfit: {option} bad\\udcffname: the name isn't text; it takes a path in UTF-8.\n"
    )
    assert not list(tmp_path.iterdir())


def test_what_a_terminal_would_obey_is_written_out() -> None:
    assert visible("a\x1b[0m\r\n\t\x07\x9b\u2028\ud800z") == (
        r"a\x1b[0m\r\n\t\x07\x9b\u2028\ud800z"
    )
    plain = "N·SNR² = 1000 [0.79, 0.98] – ‖μ‖ ε"
    assert visible(plain) == plain
    assert escape_markdown(plain) == plain
    assert escape_markdown("<b>&|`*\\[a](b)") == r"&lt;b&gt;&amp;\|\`\*\\[a]\(b)"


# Streams


def shell(line: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a line of shell in which `overfit` is this one."""
    overfit = f'"{sys.executable}" -m overfit_cli'
    return subprocess.run(
        line.replace("overfit", overfit, 1),
        shell=True,
        cwd=cwd,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


SWEEP = "overfit sweep toy --n 1:3 --snr 1:2:2 --seeds 1 --trajectories --out out"
FULL = "overfit: The output can't be written (No space left on device); everything else was done.\n"


@pytest.mark.unix
@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
@pytest.mark.parametrize("jobs", ["--jobs 1", "--jobs 2", "--set mood=prints --jobs 2"])
def test_a_full_device_costs_the_words_and_no_cell(tmp_path: Path, jobs: str) -> None:
    done = shell(f"{SWEEP} {jobs} > /dev/full", tmp_path)
    assert (done.returncode, done.stderr) == (1, FULL)
    cells = overfit_cli.load(tmp_path / "out")
    assert cells["status"].tolist() == ["done"] * 6


@pytest.mark.unix
@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_full_device_makes_no_trained_cell_a_failed_one(tmp_path: Path) -> None:
    done = shell("overfit train toy --set mood=prints --out out > /dev/full", tmp_path)
    assert (done.returncode, done.stderr) == (1, FULL)
    assert overfit_cli.load(tmp_path / "out")["status"].tolist() == ["done"]
    both = shell("overfit train toy --n 5 --out out > /dev/full 2>&1", tmp_path)
    assert both.returncode == 1
    assert len(overfit_cli.load(tmp_path / "out")) == 2


@pytest.mark.unix
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
@pytest.mark.parametrize("command", ["--version", "list", "--help", "sweep toy --help"])
@pytest.mark.one_in(4)
def test_what_only_prints_says_that_it_could_not(tmp_path: Path, command: str) -> None:
    done = shell(f"overfit {command} > /dev/full", tmp_path)
    assert (done.returncode, done.stderr) == (1, FULL)


@pytest.mark.unix
@pytest.mark.parametrize("jobs", ["--jobs 1", "--jobs 2"])
@pytest.mark.parametrize("closed", ["<&- >&- 2>&-", ">&-", "2>&-"])
@pytest.mark.one_in(6)
def test_closed_streams_stop_nothing(tmp_path: Path, closed: str, jobs: str) -> None:
    done = shell(f"{SWEEP} {jobs} {closed}", tmp_path)
    assert done.returncode == 0
    assert done.stderr == ""
    cells = overfit_cli.load(tmp_path / "out")
    assert cells["status"].tolist() == ["done"] * 6
    printed = b"Done:"
    assert not [path for path in (tmp_path / "out").rglob("*.*") if printed in path.read_bytes()]


@pytest.mark.unix
@pytest.mark.slow
def test_an_error_with_nowhere_to_say_it_still_has_its_exit_code(tmp_path: Path) -> None:
    assert shell("overfit sweep toy --n 0 2>&-", tmp_path).returncode == 2
    assert shell("overfit sweep toy --n 0 >&- 2>&-", tmp_path).returncode == 2


@pytest.mark.unix
@pytest.mark.slow
def test_a_reader_who_leaves_stops_nothing(tmp_path: Path) -> None:
    done = shell(f"({SWEEP} --jobs 1; echo $? > code) | true", tmp_path)
    assert done.stderr == ""
    assert (tmp_path / "code").read_text() == "0\n"
    assert len(overfit_cli.load(tmp_path / "out")) == 6
