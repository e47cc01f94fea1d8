"""Cells as labelled arrays, and netCDF files that xarray reads back."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import overfit_cli
from overfit_cli.report import labelled
from overfit_cli.report.labelled import STATUSES, labelled_arrays
from overfit_cli.sweeps.load import load_grid_data
from overfit_cli.sweeps.store import RunDirectory
from tests.command import call

DONE, FAILED = STATUSES.index("done"), STATUSES.index("failed")
FUNCTION = """
from typing import Annotated, Literal
from overfit_cli import Parameter

def train(
    n: Annotated[int, Parameter("samples", symbol="N", unit="images")] = 2,
    d: int = 4,
    rate: float = 0.5,
    method: Literal["ridge", "none", "σ net"] = "none",
    centred: bool = False,
    seed: int = 0,
):
    if n == 3 and seed:
        raise ValueError("too few")
    return {"loss": n + 0.1 * seed + (method == "ridge") + 100 * centred, "hits": 2**40 + n}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sweeps of a function: `grid` has failed cells, `tied` parameters that go together."""
    folder = tmp_path_factory.mktemp("labelled")
    (folder / "mine.py").write_text(FUNCTION)
    sweep = ("sweep", "mine.py", "--seeds=2", "--jobs=1")
    call(*sweep, "--n=2,3", "--method=σ net,ridge", "--out=grid", cwd=folder, expect=1)
    tied = ("--n=2,4,5", "--d=2*n", "--rate=0.1,0.2,0.2", "--together=n,rate")
    call(*sweep, *tied, "--centred=true,false", "--out=tied", cwd=folder)
    return folder


def exported(folder: Path, *arguments: str) -> xr.Dataset:
    """The netCDF file that `overfit export` writes, as xarray reads it."""
    call("export", *arguments, "--out=cells.nc", cwd=folder)
    with xr.open_dataset(folder / "cells.nc") as dataset:
        return dataset.load()


@pytest.mark.slow
def test_every_number_stands_at_its_labels(folder: Path) -> None:
    arrays = exported(folder, "grid")
    cells = overfit_cli.load(folder / "grid")
    assert arrays.loss.dims == ("n", "method", "seed")
    for row in cells.to_dict("records"):
        there = arrays.sel({name: row[name] for name in ("n", "method", "seed")})
        assert there.status == (DONE if row["status"] == "done" else FAILED)
        for name in ("loss", "hits", "steps", "seconds"):
            assert np.array_equal(there[name], row[name], equal_nan=True)


def test_choices_are_words_in_the_order_of_the_study(folder: Path) -> None:
    assert exported(folder, "grid").method.values.tolist() == ["ridge", "σ net"]


def test_a_point_without_a_cell_is_nan_and_missing(folder: Path) -> None:
    arrays = exported(folder, "grid", "--where=loss<3.5")
    missing = arrays.status == STATUSES.index("missing")
    assert missing.sel({"n": 3, "method": "ridge", "seed": 0})
    assert int(missing.sum()) == 3  # two of these cells failed, so that they have no loss
    assert arrays.loss.isnull().equals(missing)


def test_points_that_were_planned_and_never_run_are_holes(tmp_path: Path) -> None:
    grid = ("--n=1:4", "--snr=1,2", "--seeds=1", "--jobs=1")
    call("sweep", "toy", *grid, "--shard=1/2", "--out=half", cwd=tmp_path)
    arrays = exported(tmp_path, "half")
    assert arrays.test_loss.shape == (4, 2, 1)
    assert int(arrays.test_loss.notnull().sum()) == 4


def test_a_parameter_that_another_decides_lies_along_it(folder: Path) -> None:
    arrays = exported(folder, "tied")
    assert arrays.loss.dims == ("n", "centred", "seed")
    assert arrays.d.dims == arrays.rate.dims == ("n",)
    assert arrays.d.values.tolist() == [4, 8, 10]
    assert arrays.rate.values.tolist() == [0.1, 0.2, 0.2]
    assert arrays.method.item() == "none"
    assert arrays.centred.values.tolist() == [False, True]
    assert not arrays.loss.isnull().any()


def test_meanings_units_and_the_runs_record_are_attributes(folder: Path) -> None:
    arrays = exported(folder, "grid")
    assert arrays.n.attrs == {"long_name": "samples", "units": "images", "symbol": "N"}
    assert arrays.seconds.attrs["units"] == "s"
    assert arrays.status.attrs["flag_meanings"] == "missing done failed"
    assert arrays.attrs["history"].startswith("overfit sweep mine.py --seeds=2")
    manifest = json.loads((folder / "grid" / "manifest.json").read_text())
    record = json.loads(arrays.attrs["record"])
    assert record["runs"][0]["command"] == manifest["runs"][0]["command"]
    assert record["function"]["name"] == arrays.attrs["study"]


def test_a_long_record_keeps_the_last_runs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    call("sweep", "mine.py", "--seeds=2:3", "--jobs=1", "--n=2", "--out=long", cwd=folder)
    call("sweep", "mine.py", "--seeds=4:5", "--jobs=1", "--n=2", "--out=long", cwd=folder)
    whole = exported(folder, "long").attrs["record"]
    monkeypatch.setattr(labelled, "MOST_RECORD", len(whole) - 1)
    record = json.loads(exported(folder, "long").attrs["record"])
    assert [run["seeds"] for run in record["runs"]] == [[4, 5]]
    assert record["runs_left_out"] == 1


def test_columns_are_chosen(folder: Path) -> None:
    assert set(exported(folder, "grid", "--columns=loss").data_vars) == {"loss", "status"}


def test_a_run_of_one_cell_is_an_array_of_one_number(tmp_path: Path) -> None:
    call("train", "toy", "--n=2", "--out=one", cwd=tmp_path)
    arrays = exported(tmp_path, "one")
    assert arrays.test_loss.dims == ("seed",)
    assert arrays.n.item() == 2


def test_more_numbers_than_fit_are_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(labelled, "MOST_NUMBERS", 31)
    said = call("export", "grid", "--out=big.nc", cwd=folder, expect=2).stderr
    assert said.startswith("overfit: --columns: the grid has 8 points for each of 4 columns, and")


@pytest.mark.parametrize("package", ["xarray", "netCDF4"])
def test_without_the_extra_a_sentence_says_what_to_install(
    package: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    said = call("export", "grid", "--out=none.nc", cwd=folder, expect=2).stderr
    assert said == (
        f"overfit: A netCDF file needs the package {package}, which isn't installed: "
        "`pip install '.[netcdf]'` in a clone of overfit installs it.\n"
    )
    assert not (folder / "none.nc").exists()


@pytest.mark.parametrize("name", ["a/b", " a", "a ", "a\n"])
def test_a_column_that_no_file_can_have_is_refused(name: str, tmp_path: Path) -> None:
    def train(n: int = 2) -> dict[str, float]:
        return {name: 1.0}

    overfit_cli.sweep(train, n=2, out=tmp_path / "odd", backend="threading", jobs=1, quiet=True)
    data = load_grid_data(RunDirectory(tmp_path / "odd"))
    refused: Sequence[str] = [name]
    with pytest.raises(overfit_cli.UserError, match="a netCDF file has no such name"):
        labelled_arrays(tmp_path / "odd", data, refused)
