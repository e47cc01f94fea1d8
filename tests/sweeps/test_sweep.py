"""Plans, cells, files and sentences of a sweep, and what its readers choose of it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest

import overfit_cli
from overfit_cli.core.errors import UserError
from overfit_cli.studies.benign_vit.study import study as benign_vit
from overfit_cli.sweeps.part import cell_schema
from tests.command import run, start, wait_for
from tests.fake_study import untold
from tests.toy_runs import TOY, check_once, parts_in, rows

TOY_OUT = ("sweep", "toy", "--jobs=1", "--out=out")
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


@pytest.mark.parametrize(("jobs", "backend"), [(2, "loky"), (2, "threading"), (1, "threading")])
@pytest.mark.one_in(3)
def test_rows_do_not_depend_on_jobs_or_backend(
    tmp_path: Path, reference: pd.DataFrame, jobs: int, backend: str
) -> None:
    pd.testing.assert_frame_equal(sweep(tmp_path, jobs=jobs, backend=backend), reference)


def test_a_grid_grown_in_two_steps_has_the_rows_of_one_grown_at_once(
    tmp_path: Path, reference: pd.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    sweep(tmp_path, n="3")
    pd.testing.assert_frame_equal(sweep(tmp_path), reference)
    assert "6 there already; 12 to run" in capsys.readouterr().out


def test_every_row_begins_with_the_common_columns(tmp_path: Path) -> None:
    sweep(tmp_path, n="2", seeds=[4])
    common = ["key", "study", "version", "seed", *benign_vit.parameters.model_fields, "status"]
    expected = [*common, "reason", "steps", "seconds", *(one.name for one in benign_vit.columns)]
    expected.append("traceback")
    for part in parts_in(tmp_path / "cells"):
        assert pd.read_parquet(part).columns.tolist() == expected
        assert pq.read_schema(part).equals(cell_schema(benign_vit))
    cells = overfit_cli.load(tmp_path)
    assert cells["seed"].unique().tolist() == [4]
    assert [cells[name].dtype for name in ("n", "snr")] == ["int64", "float64"]
    assert cells["status"].tolist() == ["done"] * 3


def test_the_plan_of_a_dry_run_says_what_it_would_take_and_writes_nothing(tmp_path: Path) -> None:
    grid = ("--n=2:3", "--snr=1:2:2", "--seeds=2", "--jobs=2", "--dry-run")
    done = run("sweep", "toy", *grid, cwd=tmp_path).stdout
    assert re.search(r"8 cells \(n 2 × snr 2 × seeds 2\), .*\n8 to run", done)
    assert re.search(r"(about .*|a few seconds) on 2 jobs, [\d.]+ [MG]B of memory", done), done
    assert not list(tmp_path.iterdir())


def test_fresh_runs_every_cell_again_and_keeps_the_rest(tmp_path: Path) -> None:
    run(*TOY_OUT, "--n=1:4", cwd=tmp_path)
    before = rows(tmp_path / "out")
    done = run(*TOY_OUT, "--n=2", "--fresh", cwd=tmp_path)
    assert re.search("3 run again(.|\n)*Done: 3 trained", done.stdout)
    check_once(tmp_path / "out", before)


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
    check_once(tmp_path / "out", before)


@pytest.mark.parametrize(
    ("asked", "following"),
    [
        ("toy --n=1:3 --set=mood=well,diverges", "heatmap"),
        ("toy --set=pause=0,0.001 --snr=1:2:3", "heatmap"),
        ("toy --n=1:3", "lines"),
        ("toy --n=1:3 --snr=1:2:2 --set=pause=0,0.001", "report"),
        ("benign-vit --n=3 --snr=1,2,3", "lines"),
        ("benign-vit --n=2,3 --set=sigma_p_tilde=2,4", "heatmap"),
        ("benign-vit --n=3 --set=labels=coin,balanced --set=noise=isotropic,orthogonal", "heatmap"),
        ("benign-vit --n=2,3 --snr=1,2 --set=label_flip=0,0.2", "report"),
        ("fig1 --n=2,3 --set=snr=4,9", "heatmap"),
        ("fig1 --n=2,3 --set=snr=9", "lines"),
    ],
)
@pytest.mark.one_in(10)
def test_the_next_command_works_whatever_the_axes(
    tmp_path: Path, asked: str, following: str
) -> None:
    """That of a preset has its own figure, where that can be drawn."""
    names = {word.removeprefix("--set=").lstrip("-").partition("=")[0] for word in asked.split()}
    small = [f"--set={name}={value}" for name, value in SETTING.items() if name not in names]
    small = [] if asked.startswith("toy") else [*small, "--seeds=1"]
    given, failing = (*asked.split(), *small, "--jobs=1", "--out=a b"), int("diverges" in asked)
    done = run("sweep", *given, cwd=tmp_path, expect=failing)
    [line] = [line for line in done.stdout.splitlines() if line.startswith("Next: overfit ")]
    command = shlex.split(line)[2:]
    words = ["report"] if following == "report" else ["plot", following, "--from"]
    assert command == [*words, "a b"]
    run(*command, cwd=tmp_path)


@pytest.mark.slow
def test_fail_fast_stops_at_the_first_failure(tmp_path: Path) -> None:
    grid = ("sweep", "toy", "--n", "1:100", "--set", "mood=raises", "--jobs", "2")
    done = run(*grid, "--fail-fast", "--out", "out", cwd=tmp_path, expect=1)
    count = len(overfit_cli.load(tmp_path / "out"))
    assert 1 <= count <= 4, "those that were running end"
    assert f"(--fail-fast). {300 - count} cells were not run." in done.stdout


def test_cells_of_an_older_version_are_stale_and_the_plan_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grid = ("sweep", "toy", "--n=1:2", "--seeds=1", "--jobs=1", "--out=results/out")
    run(*grid, cwd=tmp_path)
    monkeypatch.setattr(TOY, "version", 2)
    why = "its cells are of version 1 of toy, and this overfit has version 2"
    for command in ("plot heatmap --from results/out", "report results/out"):
        assert why in run(*command.split(), cwd=tmp_path, expect=2).stderr
    none = run("plot", "heatmap", cwd=tmp_path, expect=2).stderr
    assert "No run directory" in none
    assert f"results/out is left out: {why}" in " ".join(none.split())
    newer = run(*grid, cwd=tmp_path)
    assert "2 stale, of another version of the study; 2 to run" in newer.stdout
    for version in (1, 2):  # each overfit reads the cells of its own version
        monkeypatch.setattr(TOY, "version", version)
        cells = overfit_cli.load(tmp_path / "results" / "out")
        assert cells["version"].tolist() == [version, version]


def test_trajectories_are_logged_on_request_for_cells_that_lack_them(tmp_path: Path) -> None:
    grid = (*TOY_OUT, "--n=1:2", "--seeds=1")
    run(*grid, cwd=tmp_path)
    with pytest.raises(UserError, match="it holds no logged steps"):
        overfit_cli.load(tmp_path / "out", trajectories=True)
    run(*grid, "--trajectories", cwd=tmp_path)
    steps = overfit_cli.load(tmp_path / "out", trajectories=True)
    assert sorted(steps["key"].unique()) == sorted(rows(tmp_path / "out")["key"])
    assert steps["step"].tolist() == [0, 1, 0, 1]


# Conditions choose cells


@pytest.fixture(scope="module")
def varied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Cells over n, snr and a mood, with two seeds."""
    folder = tmp_path_factory.mktemp("varied")
    grid = ("--n=1:6", "--snr=0.1:0.7:3", "--set=mood=well,prints", "--seeds=2", "--trajectories")
    run(*TOY_OUT, *grid, cwd=folder)
    return folder / "out"


CHOICES: list[tuple[Any, Callable[[pd.DataFrame], pd.Series]]] = [
    (["n=2:4"], lambda cells: cells["n"].between(2, 4)),
    (["n>=2", "n < 5", "snr<=0.4"], lambda cells: cells["n"].between(2, 4) & (cells["snr"] < 0.5)),
    (["mood != well"], lambda cells: cells["mood"] == "prints"),
    (["draw=0.2:0.7"], lambda cells: cells["draw"].between(0.2, 0.7)),
    ({"n": (2, 5), "snr": ">0.1"}, lambda cells: cells["n"].isin([2, 5]) & (cells["snr"] > 0.2)),
]


def test_chosen_cells_are_those_that_a_plain_filter_leaves(varied: Path) -> None:
    every = overfit_cli.load(varied)
    for where, rule in CHOICES:
        expected = every[rule(every)]
        assert 0 < len(expected) < len(every)
        pd.testing.assert_frame_equal(overfit_cli.load(varied, where=where), expected)
    logged = overfit_cli.load(varied, where=where, trajectories=True)
    assert set(logged["key"]) == set(expected["key"])
    with pytest.raises(UserError, match=r"one value or several by name"):
        overfit_cli.load(varied, where={"n": None})  # type: ignore[dict-item]


def test_a_figure_of_chosen_cells_needs_no_more_axes_and_lacks_none_of_the_others(
    varied: Path,
) -> None:
    with pytest.raises(UserError, match="mood varies too"):
        overfit_cli.draw("heatmap", varied)
    figure = overfit_cli.draw("heatmap", varied, where=["mood=well", "test_loss<0.9", "n<6"])
    cells = overfit_cli.load(varied, where=["mood=well", "n<6"])
    left = (cells["test_loss"] < 0.9).sum()
    chosen = f"Chosen: test_loss<0.9, {left} of {len(cells)} cells; the others are left out."
    caption = " ".join(figure.caption.split())
    for told in ("median of 2 seeds", "Axes: N (n) 1, 2, 3, 4, 5; snr 0.4, 0.7.", chosen):
        assert told in caption
    assert not untold(figure, "", "missing")


@pytest.mark.slow
def test_the_newest_directory_that_fits_has_such_cells_and_no_more_axes(tmp_path: Path) -> None:
    for name, more in (("older", "mood=well"), ("newer", "mood=prints"), ("last", "pause=0,0.01")):
        grid = ("--n=1,2", "--snr=1,2", f"--set={more}", "--seeds=1", "--jobs=1")
        run("sweep", "toy", *grid, f"--out=results/{name}", cwd=tmp_path)
    for where, fits in (((), "newer"), (("--where=mood=well",), "older")):
        drawn = run("plot", "heatmap", *where, cwd=tmp_path).stdout
        assert f"From results/{fits}, the newest run directory that fits." in drawn
