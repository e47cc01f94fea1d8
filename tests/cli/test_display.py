"""Names are shown as they are, and a reader who leaves is no fault."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from overfit_cli.core.errors import UserError
from overfit_cli.core.text import escape_markdown, visible
from overfit_cli.sweeps.presets import find_subject
from tests.command import call, environment, python

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
    command = ("-m", "overfit_cli", "sweep", "toy", option, "bad\udcffname")
    assert python(*command, cwd=tmp_path, expect=2).stderr == (
        f"overfit: {option} bad\\udcffname: it takes a path, in UTF-8.\n"
    )
    assert not list(tmp_path.iterdir())


def test_a_function_or_a_preset_whose_path_is_no_text_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"\xff")
    folder.mkdir()
    (folder / "mine.py").write_text("def train(n: int = 1): return {'loss': n}")
    (folder / "mine.toml").write_text("title = 'a'\nstudy = 'toy'")
    for name in ("mine.py", "mine.toml"):
        with pytest.raises(UserError, match="the name isn't text; it takes a path in UTF-8"):
            find_subject(str(folder / name))


def test_what_a_terminal_would_obey_is_written_out() -> None:
    obeyed = "a\x1b[0m\r\n\t\x07\x9b\u2028\ud800z"
    assert visible(obeyed) == r"a\x1b[0m\r\n\t\x07\x9b\u2028\ud800z"
    plain = "N·SNR² = 1000 [0.79, 0.98] – ‖μ‖ ε"
    assert visible(plain) == escape_markdown(plain) == plain
    assert escape_markdown("<b>&|`*\\[a](b)") == r"&lt;b&gt;&amp;\|\`\*\\[a]\(b)"


@pytest.mark.unix
def test_a_reader_who_leaves_is_no_fault(tmp_path: Path) -> None:
    for command in ("list claims", "sweep toy --n 1:3 --seeds 1 --jobs 1 --out out"):
        piped = ["sh", "-c", f'"{sys.executable}" -m overfit_cli {command} | true']
        done = subprocess.run(
            piped, cwd=tmp_path, env=environment(), capture_output=True, timeout=100, check=False
        )
        assert done.stderr == b""
    assert list((tmp_path / "out" / "cells").glob("*.parquet")), "the sweep goes on"
