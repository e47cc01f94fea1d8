"""The place of a user's data: said once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import overfit_cli
from overfit_cli import UserError
from overfit_cli.core.cell import Batch, CellResult
from overfit_cli.core.files import DATA_VARIABLE, data_folder, set_data_folder
from overfit_cli.core.registry import find_study
from overfit_cli.core.training import Training


@pytest.fixture(autouse=True)
def nothing_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DATA_VARIABLE, "")


def test_a_named_folder_or_archive_holds_wherever_one_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "a.tar.gz").touch()
    for name in ("data", "a.tar.gz"):
        monkeypatch.chdir(tmp_path)
        set_data_folder(Path(name))
        monkeypatch.chdir("/")
        assert data_folder("source=imdb") == (tmp_path / name).resolve()


class Reader(type(find_study("toy"))):  # type: ignore[misc]
    """A study whose loss is what its data folder says."""

    name = "reader"

    def train(self, cells: Batch[Any], training: Training) -> Iterator[CellResult]:
        for cell in cells:
            loss = float((data_folder("reader") / "loss").read_text())
            yield CellResult(cell, {"test_loss": loss})


@pytest.mark.slow
def test_data_that_a_call_names_is_over_with_the_call(tmp_path: Path) -> None:
    """Also for workers that stay for the next sweep."""
    for name, loss in (("one", "1"), ("two", "2"), ("own", "3")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "loss").write_text(loss)
    os.environ[DATA_VARIABLE] = str(tmp_path / "own")
    for data, measured in (("one", 1.0), ("two", 2.0), (None, 3.0)):
        out, folder = tmp_path / f"out-{data}", None if data is None else tmp_path / data
        given: Any = {"data": folder, "quiet": True}
        cells = overfit_cli.sweep(Reader(), n=[1, 2], seeds=1, jobs=2, out=out, **given)
        assert set(cells["test_loss"]) == {measured}
        alone = overfit_cli.train(Reader(), out=tmp_path / "alone", **given)
        assert alone.measurements == {"test_loss": measured}
        assert os.environ[DATA_VARIABLE] == str(tmp_path / "own")
    with pytest.raises(UserError, match="there is no such folder"):
        overfit_cli.sweep(Reader(), data=tmp_path / "gone", quiet=True)
    assert os.environ[DATA_VARIABLE] == str(tmp_path / "own")
