"""`--refine` samples where a boundary is uncertain, and goes on after a kill where it was."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import overfit_cli
from tests.command import run
from tests.toy_runs import parts_in

SMALL = ("--set=tokens=3", "--set=d=60", "--set=d_h=20", "--set=d_v=8", "--set=test_samples=20")
ASKED = ("--n=3,12", "--snr=2:30:5", "--seeds=3", *SMALL, "--jobs=1", "--refine=3")


def test_a_refined_sweep_says_what_it_knows_and_is_drawn_where_it_sampled(tmp_path: Path) -> None:
    done = run("sweep", *ASKED, "--out=runs", cwd=tmp_path).stdout
    assert "The coarse grid: 20 cells, 20 to run." in done
    assert "Round 1: " in done
    known = "The crossing of test_loss = 0.2 along snr, the median of 3 seeds, is known to ±0.283"
    assert known in done
    cells = overfit_cli.load(tmp_path / "runs")
    assert len(cells) > 20
    assert set(cells["seed"]) == {0, 1, 2}
    run("plot", "cutoff", "--from=runs", "--out=a.svg", cwd=tmp_path)
    assert ">sampled<" in (tmp_path / "a.svg").read_text()
    told = " ".join((tmp_path / "a.txt").read_text().split())
    assert "each seed's curve fitted to be monotone" in told
    manifest = json.loads((tmp_path / "runs" / "manifest.json").read_text())
    settings = manifest["runs"][0]["settings"]
    assert (settings["refine"], settings["threshold"], settings["value"]) == (3, 0.2, "test_loss")


@pytest.mark.slow
def test_a_refined_run_is_drawn_at_its_own_threshold(tmp_path: Path) -> None:
    asked = ["--refine=2", "--threshold=0.3", "--out=runs"]
    run("sweep", *ASKED[:-1], *asked, cwd=tmp_path)
    for figure in ("cutoff", "boundary"):
        run("plot", figure, "--from=runs", "--out=own.png", cwd=tmp_path)
        assert "0.3" in (tmp_path / "own.txt").read_text().split("\n\n")[0]
    other = ("--threshold=0.4", "--out=other.png")
    elsewhere = run("plot", "boundary", "--from=runs", *other, cwd=tmp_path)
    note = "the sweep placed its cells near 0.3; few may be near 0.4."
    assert note in " ".join(elsewhere.stderr.split())


@pytest.mark.slow
def test_it_goes_on_after_a_kill_and_asks_for_the_same_cells(tmp_path: Path) -> None:
    run("sweep", *ASKED, "--out=whole", cwd=tmp_path)
    run("sweep", *ASKED[:-1], "--refine=1", "--out=parts", cwd=tmp_path)
    parts_in(tmp_path / "parts" / "cells")[-1].unlink()
    again = run("sweep", *ASKED, "--out=parts", cwd=tmp_path).stdout
    assert "reused" in again
    whole, parts = (overfit_cli.load(tmp_path / name) for name in ("whole", "parts"))
    assert sorted(whole["key"]) == sorted(parts["key"])
    more = run("sweep", *ASKED, "--out=parts", cwd=tmp_path).stdout
    assert "Done: 0 trained" in more


@pytest.mark.slow
def test_it_needs_no_second_axis_and_says_what_a_dry_run_leaves_out(tmp_path: Path) -> None:
    one = [flag for flag in ASKED if not flag.startswith("--n=")]
    done = run("sweep", *one, "--set=n=12", cwd=tmp_path).stdout
    assert "at 1 of 1 value of n" in done or "at 0 of 1 value of n" in done
    assert re.search(r"Next: overfit plot cutoff --from results/benign-vit-n12-\S*-refined", done)
    default = run("sweep", *one, "--dry-run", cwd=tmp_path).stdout
    assert "That is the coarse grid, with 2 of 3 seeds; up to 3 rounds" in default


def test_a_failed_cell_ends_it_where_asked_with_its_reason(tmp_path: Path) -> None:
    failing = (*ASKED, "--set=max_steps=2", "--fail-fast", "--out=runs")
    done = run("sweep", *failing, cwd=tmp_path, expect=1).stdout
    assert "step limit)" in done
    assert "Round 1" not in done
