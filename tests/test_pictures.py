"""The documents' pictures: each is what its command draws."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest
from PIL import Image

from docs.page_picture import COUNTS, PICTURE
from docs.pictures import ROOT, commands
from overfit_cli.figures.draw import read_record
from tests.command import call

PICTURES = commands()
REAL_DATA = {ROOT / "results/fig2-paper/figures/images.png"}
"""Pictures that are drawn from data which doesn't come with the package."""


def test_the_picture_of_the_page_shows_the_counts_of_the_kept_report() -> None:
    with Image.open(PICTURE) as picture:
        shown = json.loads(picture.info[COUNTS])
    claims = json.loads((ROOT / "results" / "report" / "claims.json").read_text(encoding="utf-8"))
    counts: dict[str, Counter[str]] = {}
    for claim in claims["claims"]:
        verdict = (claim["family"] or claim)["verdict"].replace(" ", "-")
        counts.setdefault(claim["kind"], Counter())[verdict] += 1
    assert shown == counts, "run `python -m docs.page_picture`"


@pytest.mark.slow
@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in PICTURES])
def test_a_picture_is_what_its_command_draws(path: Path, tmp_path: Path) -> None:
    if path in REAL_DATA and "OVERFIT_DATA" not in os.environ:
        pytest.skip("the images aren't there")
    words = list(PICTURES[path])
    if "--out" in words:
        del words[words.index("--out") : words.index("--out") + 2]
    call(*words, "--out", str(tmp_path / "drawn.png"), cwd=ROOT)
    kept, drawn = (matplotlib.image.imread(one) for one in (path, tmp_path / "drawn.png"))
    assert kept.shape == drawn.shape
    differs = (np.abs(kept - drawn) > 0.1).any(axis=-1)
    assert differs.mean() < 2e-4, "a letter is more than that"
    records = [read_record(one.read_bytes())[1] for one in (path, tmp_path / "drawn.png")]
    first, second = ([(run.key, run.data) for run in one.sources] for one in records)
    assert first == second
    for run in records[0].sources:
        assert (path.parent / run.beside).resolve() == ROOT / run.path
    assert str(ROOT) not in records[0].text()
    told = [one.with_suffix(".txt").read_text() for one in (path, tmp_path / "drawn.png")]
    captions = [text.partition("\nCommands:")[0] for text in told]
    assert captions[0] == captions[1]
