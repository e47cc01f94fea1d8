"""Figures, reports and frames are of the cells that `--where` chooses, and of those alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import overfit_cli
from overfit_cli import UserError
from tests.command import call
from tests.fake_study import untold


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Cells over n, snr and a mood, with two seeds."""
    folder = tmp_path_factory.mktemp("run")
    grid = ("--n=1:6", "--snr=0.1:0.7:3", "--set=mood=well,prints", "--seeds=2", "--trajectories")
    call("sweep", "toy", *grid, "--jobs=1", "--out=out", cwd=folder)
    return folder / "out"


CHOICES = [
    (["n=2:4"], lambda cells: cells["n"].between(2, 4)),
    (["n>=2", "n < 5", "snr<=0.4"], lambda cells: cells["n"].between(2, 4) & (cells["snr"] < 0.5)),
    (["mood != well"], lambda cells: cells["mood"] == "prints"),
    (["draw=0.2:0.7"], lambda cells: cells["draw"].between(0.2, 0.7)),
    ({"n": (2, 5), "snr": ">0.1"}, lambda cells: cells["n"].isin([2, 5]) & (cells["snr"] > 0.2)),
]


@pytest.mark.parametrize(("where", "rule"), CHOICES, ids=[str(one) for one, _ in CHOICES])
def test_cells_are_those_that_a_plain_filter_leaves(
    run: Path, where: list[str] | dict[str, Any], rule: Callable[[pd.DataFrame], pd.Series]
) -> None:
    every = overfit_cli.load(run)
    expected = every[rule(every)]
    assert 0 < len(expected) < len(every)
    found = overfit_cli.load(run, where=where)
    pd.testing.assert_frame_equal(found, expected)
    logged = overfit_cli.load(run, where=where, trajectories=True)
    assert set(logged["key"]) == set(expected["key"])


def test_a_figure_of_chosen_cells_needs_no_more_axes_and_lacks_none_of_the_others(
    run: Path,
) -> None:
    with pytest.raises(UserError, match="mood varies too"):
        overfit_cli.draw("heatmap", run)
    figure = overfit_cli.draw("heatmap", run, where=["mood=well", "test_loss<0.9", "n<6"])
    caption = " ".join(figure.caption.split())
    assert "median of 2 seeds" in caption
    assert "Axes: N (n) 1, 2, 3, 4, 5; snr 0.4, 0.7." in caption
    cells = overfit_cli.load(run, where=["mood=well", "n<6"])
    left = (cells["test_loss"] < 0.9).sum()
    chosen = f"Chosen: test_loss<0.9, {left} of {len(cells)} cells; the others are left out."
    assert chosen in caption
    assert not untold(figure, "", "missing")


@pytest.mark.slow
def test_the_newest_directory_that_fits_has_such_cells_and_no_more_axes(tmp_path: Path) -> None:
    for name, more in (("older", "mood=well"), ("newer", "mood=prints"), ("last", "pause=0,0.01")):
        grid = ("--n=1,2", "--snr=1,2", f"--set={more}", "--seeds=1", "--jobs=1")
        call("sweep", "toy", *grid, f"--out=results/{name}", cwd=tmp_path)
    for where, fits in (((), "newer"), (("--where=mood=well",), "older")):
        drawn = call("plot", "heatmap", *where, cwd=tmp_path).stdout
        assert f"From results/{fits}, the newest run directory that fits." in drawn


def test_a_condition_is_a_value_or_several_by_name(run: Path) -> None:
    with pytest.raises(UserError, match=r"one value or several by name"):
        overfit_cli.load(run, where={"n": None})  # type: ignore[dict-item]
