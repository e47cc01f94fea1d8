from __future__ import annotations

import errno
import os
from dataclasses import replace
from pathlib import Path

import matplotlib as mpl
import pandas as pd
import pytest
from matplotlib.figure import Figure

from overfit_cli import UserError
from overfit_cli.figures.picture import save
from tests.command import python
from tests.fake_study import LAW, OPTIONS, SIDES, data_of, draw_heatmap, fail


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("a.png", b"\x89PNG"),
        pytest.param("a.PDF", b"%PDF", marks=pytest.mark.slow),
        pytest.param("a.svg", b"<?xml", marks=pytest.mark.slow),
    ],
)
def test_a_second_drawing_gives_the_same_bytes(
    cells: pd.DataFrame, tmp_path: Path, name: str, start: bytes
) -> None:
    some, written = fail(cells, cells["n"] == 2), []
    for folder in ("one", "two"):
        save(draw_heatmap(data_of(some), replace(SIDES, law=(LAW,))), tmp_path / folder / name)
        written.append((tmp_path / folder / name).read_bytes())
        assert [path.name for path in (tmp_path / folder).iterdir()] == [name]
    assert written[0].startswith(start)
    assert written[0] == written[1]


def test_what_cannot_be_written_is_a_sentence_and_leaves_the_old_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(UserError, match=r"out='.*folder\.png': that is no file; name a file"):
        save(Figure(), tmp_path / "folder.png")
    old = tmp_path / "a.png"
    old.write_text("old")

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UserError, match=r"No space left on device"):
        save(Figure(), old)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.png", "folder.png"]
    assert old.read_text() == "old"


def test_a_users_own_style_is_neither_used_nor_changed(cells: pd.DataFrame, tmp_path: Path) -> None:
    data = data_of(cells)
    save(draw_heatmap(data, OPTIONS), tmp_path / "plain.png")
    with mpl.rc_context({"font.size": 30, "axes.facecolor": "black"}):
        before = dict(mpl.rcParams)
        save(draw_heatmap(data, OPTIONS), tmp_path / "styled.png")
        assert dict(mpl.rcParams) == before
    assert (tmp_path / "plain.png").read_bytes() == (tmp_path / "styled.png").read_bytes()


def test_figures_load_neither_torch_nor_pyplot() -> None:
    modules = "boundary, curves, heatmap, style"
    code = (
        f"import sys; from overfit_cli.figures import {modules};"
        " sys.exit(any(name in sys.modules for name in ('torch', 'matplotlib.pyplot')))"
    )
    python("-c", code)
