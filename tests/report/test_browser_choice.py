"""The browser that the page is tested with."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.browser import CHOSEN, executable


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A system with Chromium and Chrome, and nothing else."""
    for name in ("google-chrome", "chromium"):
        (tmp_path / name).touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv(CHOSEN, raising=False)
    return tmp_path


def test_the_one_that_is_named_is_taken(system: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own, chosen = system / "own", system / "mine"
    own.touch()
    chosen.touch()
    monkeypatch.setenv(CHOSEN, str(chosen))
    assert executable(own) == chosen
    monkeypatch.setenv(CHOSEN, str(system / "absent"))
    with pytest.raises(pytest.fail.Exception, match=r"absent: there is no such file"):
        executable(own)


def test_playwrights_own_comes_before_the_systems(system: Path) -> None:
    own = system / "own"
    assert executable(own) == system / "chromium"
    own.touch()
    assert executable(own) == own


def test_chrome_is_taken_where_there_is_nothing_else(system: Path) -> None:
    (system / "chromium").unlink()
    assert executable(system / "own") == system / "google-chrome"
    (system / "google-chrome").unlink()
    assert executable(system / "own") is None
