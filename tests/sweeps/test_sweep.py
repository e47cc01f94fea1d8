"""Plans, cells, files and sentences of a sweep."""

from __future__ import annotations

import itertools
import json
import random
import re
import shlex
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest

import overfit_cli
from overfit_cli.core.errors import UserError
from overfit_cli.studies.benign_vit.vit.study import study as benign_vit
from overfit_cli.sweeps import progress
from overfit_cli.sweeps.part import cell_schema
from tests.command import run, start, wait_for
from tests.toy_runs import TOY, rows, stored_keys
from tests.training import cell_of, train

SMALL = {"d": "30", "d_h": "20", "d_v": "6", "tokens": "4", "test_samples": "20", "sigma_p": "1"}
SETTING = {**SMALL, "init_divisor": "4", "epsilon": "0.1"}


def sweep(path: Path, n: str = "2:4", **how: Any) -> pd.DataFrame:
    """Sweep the real study over cells that train in milliseconds; the rows without their times."""
    grid = {**SETTING, "n": n, "snr": "0.5,2.25,4"}
    chosen = {"seeds": 2, "jobs": 1, "device": "cpu", **how}
    overfit_cli.sweep("benign-vit", parameters=grid, out=path, **chosen)
    return rows(path)


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    return sweep(tmp_path_factory.mktemp("reference"))


@pytest.mark.parametrize(
    ("jobs", "backend"),
    [
        (2, "loky"),
        pytest.param(2, "threading", marks=pytest.mark.slow),
        pytest.param(1, "threading", marks=pytest.mark.slow),
    ],
)
def test_rows_do_not_depend_on_jobs_or_backend(
    tmp_path: Path, reference: pd.DataFrame, jobs: int, backend: str
) -> None:
    pd.testing.assert_frame_equal(sweep(tmp_path, jobs=jobs, backend=backend), reference)


def test_rows_do_not_depend_on_batches_or_their_order(reference: pd.DataFrame) -> None:
    axes = itertools.product((2, 3, 4), (0.5, 2.25, 4.0), (0, 1))
    cells = [cell_of(benign_vit, {**SETTING, "n": n, "snr": snr}, seed) for n, snr, seed in axes]
    random.Random(0).shuffle(cells)
    shuffled = [cells[first : first + 5] for first in range(0, len(cells), 5)]
    by_shape = [
        [cell for cell in batch if cell.parameters.n == n] for n in (2, 3, 4) for batch in shuffled
    ]
    trained = {
        result.cell.key: {"steps": result.steps, **result.measurements}
        for batch in by_shape
        for result in train(benign_vit, *batch)
    }
    expected = reference.set_index("key")
    columns = ["steps", *(column.name for column in benign_vit.columns)]
    ours = pd.DataFrame.from_dict(trained, orient="index", columns=columns)
    pd.testing.assert_frame_equal(
        ours.loc[expected.index].astype(float),
        expected[columns].astype(float),
        check_names=False,
    )


def test_a_grid_grown_in_two_steps_has_the_rows_of_one_grown_at_once(
    tmp_path: Path, reference: pd.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    sweep(tmp_path, n="3")
    pd.testing.assert_frame_equal(sweep(tmp_path), reference)
    assert "6 there already; 12 to run" in capsys.readouterr().out


def test_results_of_two_machines_merge_by_copying_files(
    tmp_path: Path, reference: pd.DataFrame
) -> None:
    sweep(tmp_path / "here", seeds=[0])
    sweep(tmp_path / "there", seeds=[1])
    for part in (tmp_path / "there" / "cells").glob("*.parquet"):
        part.rename(tmp_path / "here" / "cells" / part.name)
    pd.testing.assert_frame_equal(rows(tmp_path / "here"), reference)


def test_every_row_begins_with_the_common_columns(tmp_path: Path) -> None:
    sweep(tmp_path, n="2", seeds=[4])
    parts = list((tmp_path / "cells").glob("*.parquet"))
    parameters = list(benign_vit.parameters.model_fields)
    common = ["key", "study", "version", "seed", *parameters, "status", "reason"]
    expected = [*common, "steps", "seconds", *(column.name for column in benign_vit.columns)]
    for part in parts:
        assert pd.read_parquet(part).columns.tolist() == expected
        assert pq.read_schema(part).equals(cell_schema(benign_vit))
    cells = overfit_cli.load(tmp_path)
    assert cells["seed"].unique().tolist() == [4]
    assert cells["n"].dtype == "int64"
    assert cells["snr"].dtype == "float64"
    assert cells["status"].tolist() == ["done"] * 3


def test_the_plan_of_a_dry_run_says_what_it_would_take_and_writes_nothing(tmp_path: Path) -> None:
    grid = ("--n", "2:3", "--snr", "1:2:2", "--seeds", "2")
    how = ("--jobs", "2", "--out", "out", "--dry-run")
    done = run("sweep", *grid, *how, cwd=tmp_path)
    assert "8 cells (n 2 × snr 2 × seeds 2)" in done.stdout
    assert "8 to run" in done.stdout
    estimate = r"(about .*|a few seconds) on 2 jobs.*, [\d.]+ [MG]B of memory"
    assert re.search(estimate, done.stdout), done.stdout
    assert not list(tmp_path.iterdir())


def test_a_sweep_says_what_it_did_and_what_to_type_next(tmp_path: Path) -> None:
    grid = ("sweep", "toy", "--n", "1:2", "--snr", "1:2:3", "--jobs=1")
    first = run(*grid, cwd=tmp_path)
    assert "18 cells (n 2 × snr 3 × seeds 3), results/toy-n-snr" in first.stdout
    assert re.search(r"18 trained in [\d.]+ s, 0 reused", first.stdout)
    next_command = re.search(r"^Next: overfit (.*)$", first.stdout, re.MULTILINE)
    assert next_command is not None
    run(*next_command[1].split(), cwd=tmp_path)
    second = run(*grid, cwd=tmp_path)
    assert "18 there already; 0 to run" in second.stdout
    assert "0 trained" in second.stdout
    assert "18 reused" in second.stdout


def test_fresh_runs_every_cell_again_and_keeps_the_rest(tmp_path: Path) -> None:
    run("sweep", "toy", "--jobs", "1", "--n", "1:4", "--out", "out", cwd=tmp_path)
    before = overfit_cli.load(tmp_path / "out")
    done = run("sweep", "toy", "--jobs", "1", "--n", "2", "--fresh", "--out", "out", cwd=tmp_path)
    assert "3 run again" in done.stdout
    assert "3 trained" in done.stdout
    after = overfit_cli.load(tmp_path / "out")
    pd.testing.assert_frame_equal(before.drop(columns="seconds"), after.drop(columns="seconds"))


@pytest.mark.slow
def test_fresh_takes_no_row_away_before_its_new_one_is_written(tmp_path: Path) -> None:
    """Killed on its way, a fresh sweep leaves every cell there, once."""
    grid = ("sweep", "toy", "--n", "1:12", "--snr", "1:2:3", "--seeds", "1", "--out", "out")
    run(*grid, "--jobs=1", cwd=tmp_path)
    before = rows(tmp_path / "out")
    old = set((tmp_path / "out" / "cells").iterdir())
    for how in (("--fresh",), ("--trajectories",)):
        process = start(*grid, *how, "--jobs", "1", cwd=tmp_path, env={"TOY_PAUSE": "0.1"})
        wait_for(lambda: set((tmp_path / "out" / "cells").iterdir()) - old)
        process.kill()
        process.communicate()
        pd.testing.assert_frame_equal(rows(tmp_path / "out"), before)
    run(*grid, "--trajectories", "--jobs=1", cwd=tmp_path)
    pd.testing.assert_frame_equal(rows(tmp_path / "out"), before)
    stored = stored_keys(tmp_path / "out")
    assert len(stored) == len(set(stored)) == 36


@pytest.mark.parametrize(
    ("asked", "following"),
    [
        (("toy", "--n=1:3", "--set=mood=well,diverges"), "plot heatmap"),
        (("toy", "--set=pause=0,0.001", "--snr=1:2:3"), "plot heatmap"),
        (("toy", "--n=1:3"), "plot lines"),
        (("toy", "--n=1:3", "--snr=1:2:2", "--set=pause=0,0.001"), "plot heatmap --by pause"),
        (
            ("toy", "--n=1:3", "--snr=1:2:3", "--set=pause=0,0.001", "--set=mood=well,prints"),
            "plot heatmap --by mood --where pause=0.001",
        ),
        (("benign-vit", "--n=3", "--snr=1,2,3"), "plot lines"),
        (("benign-vit", "--n=2,3", "--set=sigma_p_tilde=2,4"), "plot heatmap"),
        (("benign-vit", "--n=3", "--set=d=30,40", "--set=tokens=4,5"), "plot heatmap"),
        (
            (
                "benign-vit",
                "--n=3",
                "--set=labels=coin,balanced",
                "--set=noise=isotropic,orthogonal",
            ),
            "plot heatmap",
        ),
        (
            ("benign-vit", "--n=2,3", "--snr=1,2", "--set=label_flip=0,0.2"),
            "plot heatmap --by label_flip",
        ),
        (("fig1", "--n=2,3", "--set=snr=4,9"), "plot heatmap"),
        (("fig1", "--n=2,3", "--set=snr=9"), "plot lines"),
        (("noisy-labels", "--n=2,3", "--set=snr=4,9"), "plot heatmap"),
    ],
    ids=lambda given: " ".join(given) if isinstance(given, tuple) else given,
)
@pytest.mark.one_in(3)
def test_the_next_command_works_whatever_the_axes(
    tmp_path: Path, asked: tuple[str, ...], following: str
) -> None:
    """That of a preset has its own figure, where that can be drawn."""
    names = {word.removeprefix("--set=").lstrip("-").partition("=")[0] for word in asked}
    small = [f"--set={name}={value}" for name, value in SETTING.items() if name not in names]
    small = [] if asked[0] == "toy" else [*small, "--seeds=1"]
    failing = int("diverges" in " ".join(asked))
    done = run("sweep", *asked, *small, "--jobs=1", "--out=a b", cwd=tmp_path, expect=failing)
    [line] = [line for line in done.stdout.splitlines() if line.startswith("Next: overfit ")]
    command = shlex.split(line)[2:]
    assert command == [*following.split(), "--from", "a b"]
    run(*command, cwd=tmp_path)


def test_failed_cells_are_rows_and_run_again_only_on_request(tmp_path: Path) -> None:
    grid = ("sweep", "toy", "--jobs", "1", "--n", "1:4", "--set", "mood=diverges", "--out", "out")
    first = run(*grid, cwd=tmp_path, expect=1)
    assert "6 failed (6 diverged)" in first.stdout
    cells = overfit_cli.load(tmp_path / "out")
    failed = cells[cells["status"] == "failed"]
    assert sorted(failed["n"].unique()) == [1, 3]
    assert failed["test_loss"].isna().all()
    again = run(*grid, cwd=tmp_path, expect=1)
    assert "6 there as failed (--retry-failed runs them); 0 to run" in again.stdout
    assert "6 failed earlier; --retry-failed runs them again" in again.stdout
    retried = run(*grid, "--retry-failed", cwd=tmp_path, expect=1)
    assert "6 run again; 6 to run" in retried.stdout
    stored = stored_keys(tmp_path / "out")
    assert len(stored) == len(set(stored)) == 12


def test_fail_fast_stops_at_the_first_failure(tmp_path: Path) -> None:
    grid = ("sweep", "toy", "--n", "1:100", "--set", "mood=raises", "--jobs", "2")
    done = run(*grid, "--fail-fast", "--out", "out", cwd=tmp_path, expect=1)
    count = len(overfit_cli.load(tmp_path / "out"))
    assert 1 <= count <= 4, "those that were running end"
    assert f"(--fail-fast). {300 - count} cells were not run." in done.stdout
    alone = run(*grid[:-1], "1", "--fail-fast", "--out", "alone", cwd=tmp_path, expect=1)
    assert "1 failed" in alone.stdout
    assert "299 cells were not run" in alone.stdout


def test_cells_of_an_older_version_are_stale_and_the_plan_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grid = ("sweep", "toy", "--jobs", "1", "--n", "1:2", "--seeds", "1", "--out", "out")
    run(*grid, cwd=tmp_path)
    monkeypatch.setattr(TOY, "version", 2)
    newer = run(*grid, cwd=tmp_path)
    assert "2 stale, of another version of the study; 2 to run" in newer.stdout
    for version in (1, 2):  # each overfit reads the cells of its own version
        monkeypatch.setattr(TOY, "version", version)
        assert overfit_cli.load(tmp_path / "out")["version"].tolist() == [version, version]


def test_a_refused_command_writes_nothing(tmp_path: Path) -> None:
    bad = ("--set=d=5000000", "--set=n=3")
    run("train", *bad, cwd=tmp_path, expect=2)
    run("sweep", *bad, "--out=out", cwd=tmp_path, expect=2)
    run("sweep", *bad, "--out=out", "--snr=1,2,3", "--refine=1", cwd=tmp_path, expect=2)
    assert not list(tmp_path.iterdir())


def test_a_figure_passes_over_directories_in_which_something_else_varies(tmp_path: Path) -> None:
    grid = ("sweep", "toy", "--jobs", "1", "--n", "1:2", "--snr", "1:2:2", "--seeds", "1")
    run(*grid, "--out", "results/fits", cwd=tmp_path)
    run(*grid, "--set", "pause=0,0.01", "--out", "results/later", cwd=tmp_path)
    drawn = run("plot", "heatmap", cwd=tmp_path).stdout
    assert "From results/fits, the newest run directory that fits." in drawn
    refused = " ".join(run("plot", "phase", cwd=tmp_path, expect=2).stderr.split())
    assert "The newest, results/later, doesn't: toy has no figure 'phase'" in refused
    refused = " ".join(run("plot", "heatmap", "--x=seed_", cwd=tmp_path, expect=2).stderr.split())
    assert "--x seed_: 'seed_' is no name here; did you mean 'seed'?" in refused


@pytest.mark.slow
def test_figures_and_claims_leave_cells_of_another_version_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("sweep", "toy", "--n=1:2", "--seeds=1", "--jobs=1", "--out=results/out", cwd=tmp_path)
    monkeypatch.setattr(TOY, "version", 2)
    for command in (("plot", "heatmap", "--from"), ("report",)):
        named = run(*command, "results/out", cwd=tmp_path, expect=2)
        assert "its cells are of version 1 of toy, and this overfit has version 2" in named.stderr
    none = run("plot", "heatmap", cwd=tmp_path, expect=2).stderr
    assert "No run directory" in none
    reported = run("report", cwd=tmp_path)
    for sentence in (none, reported.stderr):
        assert "results/out is left out: its cells are of version 1 of toy" in " ".join(
            sentence.split()
        )
    report = json.loads((tmp_path / "results" / "report" / "claims.json").read_text())
    assert all(claim["verdict"] == "not run" for claim in report["claims"])


def test_trajectories_are_logged_on_request_for_cells_that_lack_them(tmp_path: Path) -> None:
    grid = ("sweep", "toy", "--jobs", "1", "--n", "1:2", "--seeds", "1", "--out", "out")
    run(*grid, cwd=tmp_path)
    with pytest.raises(UserError, match="it holds no logged steps"):
        overfit_cli.load(tmp_path / "out", trajectories=True)
    run(*grid, "--trajectories", cwd=tmp_path)
    steps = overfit_cli.load(tmp_path / "out", trajectories=True)
    cells = overfit_cli.load(tmp_path / "out")
    assert sorted(steps["key"].unique()) == sorted(cells["key"])
    assert steps["step"].tolist() == [0, 1, 0, 1]


def test_a_preset_names_study_axes_and_figures(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(
        'title = "Mine"\nstudy = "toy"\nfigures = ["heatmap"]\n[set]\nn = "1:3"\n'
        '[quick]\nseeds = 2\nset.snr = "1:2:2"\n[paper]\nseeds = "4,5"\nset.snr = "1:2:4"\n'
    )
    quick = run("sweep", "mine.toml", "--jobs=1", cwd=tmp_path)
    assert "12 cells (n 3 × snr 2 × seeds 2), results/mine-quick" in quick.stdout
    how = ("--profile", "paper", "--jobs=1")
    paper = run("sweep", "mine.toml", *how, "--n", "7,8", cwd=tmp_path)
    assert "16 cells (n 2 × snr 4 × seeds 2), results/mine-paper-n" in paper.stdout
    assert "Next: overfit plot heatmap --from results/mine-paper-n" in paper.stdout


@pytest.mark.slow
def test_the_shipped_preset_is_the_papers_grid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("overfit_cli.sweeps.run.LONGEST_DRY_RUN", 0.0)
    plan = run("sweep", "fig1", "--profile", "paper", "--dry-run", cwd=tmp_path)
    assert "n 19 × snr 100 × seeds 40" in plan.stdout


def test_output_that_is_no_terminal_gets_plain_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.0)
    grid = ("sweep", "toy", "--n=1:12", "--seeds=1", "--set=pause=0.01", "--jobs=1")
    done = run(*grid, cwd=tmp_path)
    line = r"^\d+ of 12 cells; [\d.]+ s so far, (about [\d.]+|less than 1) s left$"
    assert re.search(line, done.stdout, re.M)
    assert "\x1b" not in done.stdout
    assert "\r" not in done.stdout
