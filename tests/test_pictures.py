"""The documents' pictures: every figure is among them, and each is what its command draws."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest
from PIL import Image

from docs.page_picture import COUNTS, PICTURE, SCREEN, SHARPNESS
from docs.pictures import ROOT, commands
from overfit_cli.core.registry import figures_of, installed_studies
from overfit_cli.figures.record import read_record
from overfit_cli.sweeps.store import RunDirectory
from tests.command import call

PICTURES = commands()
REAL_DATA = {ROOT / "results/fig2-paper/figures/images.png"}
"""Pictures that are drawn from data which doesn't come with the package."""

UNDRAWN = {
    ("benign-cnn", "curves"),
    ("benign-vit", "lines"),
    ("benign-vit-images", "curves"),
    ("multihead-mixture", "curves"),
    ("multihead-mixture", "heatmap"),
    ("multihead-paths", "lines"),
    ("softmax-convergence", "boundary"),
    ("multihead-planted", "curves"),
    ("multihead-planted", "heatmap"),
    ("multihead-planted", "lines"),
    ("softmax-diffusion", "heatmap"),
    ("softmax-diffusion", "lines"),
    ("positional-semantic", "curves"),
    ("positional-semantic", "heatmap"),
    ("positional-semantic", "lines"),
}
"""Figures of which no run is kept: its steps would be large, nothing crosses, or others show it."""


def test_the_gallery_shows_every_figure_that_a_study_can_draw() -> None:
    """Each study's own from a run of its own, and the general ones from some run."""
    page = (ROOT / "docs" / "gallery.md").read_text()
    drawn = re.findall(r"<code>overfit plot (\S+) --from (\S+)</code>", page)
    shown = {(RunDirectory(ROOT / run).study_name(), figure) for figure, run in drawn}
    ours = [one for one in installed_studies() if type(one).__module__.startswith("overfit_cli.")]
    for study in ours:
        assert {(study.name, name) for name in study.figures()} - shown - UNDRAWN == set()
    names = {name for study in ours for name in figures_of(study)}
    assert {name for name in names if name not in {figure for _, figure in shown}} == set()


def test_the_gallery_has_the_papers_figures_in_their_order() -> None:
    page = (ROOT / "docs" / "gallery.md").read_text()
    headings = re.findall(r"^##+ (.*)$", page, re.MULTILINE)
    assert headings[:4] == ["Jiang et al. 2024", "Figure 1", "Figure 2", "Figure 3 and Figure 4"]
    papers = [heading for heading in headings if heading.endswith(" 2024")]
    assert papers == [f"{authors} et al. 2024" for authors in ("Jiang", "Song", "Deora", "Cao")]
    first = page.partition("### Figure 1\n")[2].partition("\n### ")[0]
    assert re.findall(r"<b>(\w+)</b>", first) == ["heatmap", "cutoff", "boundary"]


def test_every_picture_has_its_caption() -> None:
    without = [path for path in PICTURES if not path.with_suffix(".txt").exists()]
    assert without == []


def test_the_readme_shows_the_page_as_wide_as_its_letters_were_set() -> None:
    shown = re.findall(r'<img src="docs/page.png" width="(\d+)"', (ROOT / "README.md").read_text())
    pixels = matplotlib.image.imread(ROOT / "docs" / "page.png").shape[1]
    assert shown == [str(SCREEN["width"])]
    assert pixels == SCREEN["width"] * SHARPNESS


def test_the_picture_of_the_page_shows_the_counts_of_the_kept_report() -> None:
    with Image.open(PICTURE) as picture:
        shown = json.loads(picture.info[COUNTS])
    claims = json.loads((ROOT / "results" / "report" / "claims.json").read_text(encoding="utf-8"))
    counts: dict[str, Counter[str]] = {}
    for claim in claims["claims"]:
        verdict = (claim["family"] or claim)["verdict"].replace(" ", "-")
        counts.setdefault(claim["kind"], Counter())[verdict] += 1
    assert shown == counts, "run `python -m docs.page_picture`"


def test_the_examples_picture_is_of_the_command_beside_it_and_has_its_caption() -> None:
    folder = ROOT / "docs"
    _, record = read_record((folder / "double_descent.png").read_bytes())
    assert f"$ {record.command}\n" in (folder / "your-own-function.md").read_text()
    caption = (folder / "double_descent.txt").read_text()
    assert "mean of 3 seeds. Line: m = n\n(interpolation)." in caption
    assert f"  {record.command}\n" in caption


@pytest.mark.slow
def test_every_picture_says_what_it_was_drawn_from_and_names_no_folder_of_ours() -> None:
    for path in PICTURES:
        kind, record = read_record(path.read_bytes())
        assert kind == path.suffix[1:]
        for run in record.sources:
            assert (ROOT / run.path).is_dir()
            assert (path.parent / run.beside).resolve() == ROOT / run.path
        assert str(ROOT) not in record.text()


def test_no_picture_lies_there_that_nothing_draws() -> None:
    drawn = {*ROOT.glob("results/*/figures/*"), *ROOT.glob("docs/pictures/*.*")}
    known = {path.with_suffix(ending) for path in PICTURES for ending in (".png", ".txt")}
    assert {path for path in drawn - known if path.suffix != ".mplstyle"} == set()


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
    told = [one.with_suffix(".txt").read_text() for one in (path, tmp_path / "drawn.png")]
    captions = [text.partition("\nCommands:")[0] for text in told]
    assert captions[0] == captions[1]
