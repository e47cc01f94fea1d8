"""The documents' pictures: each is what its command draws."""

from __future__ import annotations

import os
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest

from docs.pictures import ROOT, commands
from overfit_cli.figures.draw import read_record
from tests.command import SEARCH, call

PICTURES = commands()
SOME = [*PICTURES] if SEARCH else [*{path.stem: path for path in PICTURES}.values()]
"""One of each kind, or all in a search."""

REAL_DATA = {ROOT / "results/fig2-paper/figures/images.png"}
"""Pictures that are drawn from data which doesn't come with the package."""


@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in SOME])
def test_a_picture_is_what_its_command_draws(path: Path, tmp_path: Path) -> None:
    if path in REAL_DATA and "OVERFIT_DATA" not in os.environ:
        pytest.skip("the images aren't there")
    words = list(PICTURES[path])
    if "--out" in words:
        del words[words.index("--out") : words.index("--out") + 2]
    both = (path, tmp_path / "drawn.png")
    call(*words, "--out", str(both[1]), cwd=ROOT)
    kept, drawn = map(matplotlib.image.imread, both)
    assert kept.shape == drawn.shape
    differs = (np.abs(kept - drawn) > 0.1).any(axis=-1)
    assert differs.mean() < 2e-4, "a letter is more than that"
    record, again = (read_record(one.read_bytes())[1] for one in both)
    first, second = ([(run.key, run.data) for run in one.sources] for one in (record, again))
    assert first == second
    for run in record.sources:
        assert (path.parent / run.beside).resolve() == ROOT / run.path
    assert str(ROOT) not in record.text()
    told = [one.with_suffix(".txt").read_text().partition("\nCommands:")[0] for one in both]
    assert told[0] == told[1]
