"""The place of a user's data: said once, and requested in a sentence."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from overfit_cli import UserError
from overfit_cli.core.files import DATA_VARIABLE, data_folder, set_data_folder


@pytest.fixture(autouse=True)
def nothing_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DATA_VARIABLE, "")


def test_a_folder_that_no_one_named_is_asked_for() -> None:
    for value in ("", None):
        if value is None:
            os.environ.pop(DATA_VARIABLE)
        with pytest.raises(UserError) as error:
            data_folder("source=imdb")
        assert str(error.value) == (
            "data: source=imdb needs data: name its folder here, or in the variable OVERFIT_DATA."
        )


def test_a_named_folder_holds_wherever_one_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data").mkdir()
    monkeypatch.chdir(tmp_path)
    set_data_folder(Path("data"))
    monkeypatch.chdir("/")
    assert data_folder("source=imdb") == (tmp_path / "data").resolve()
    assert os.environ[DATA_VARIABLE] == str((tmp_path / "data").resolve())  # As workers find it.


def test_an_archive_is_data_too_and_no_other_file_is(tmp_path: Path) -> None:
    (tmp_path / "a.tar.gz").write_text("")
    set_data_folder(tmp_path / "a.tar.gz")
    assert data_folder("source=imdb").name == "a.tar.gz"
    with pytest.raises(UserError, match=r"data=.*gone': there is no such folder or file"):
        set_data_folder(tmp_path / "gone")
    assert data_folder("source=imdb").name == "a.tar.gz"
    (tmp_path / "a.txt").write_text("")
    with pytest.raises(UserError, match=r"a.txt': it is a file; name a folder"):
        set_data_folder(tmp_path / "a.txt")
