"""Data that stands in for a paper's is named wherever a result of it is shown."""

from __future__ import annotations

import html
from pathlib import Path

import pytest

import overfit_cli
from overfit_cli.core.registry import find_study, installed_studies
from overfit_cli.core.study import stand_ins_of
from overfit_cli.sweeps.grid import Grid
from overfit_cli.sweeps.presets import PROFILES, Preset, all_presets
from tests.command import call
from tests.kept import RESULTS

REVIEWS = "Generated reviews stand in for IMDb's."
REAL = {study.name for study in installed_studies() if study.paper_data}
ON_REAL_DATA = [preset for preset in all_presets() if preset.study in REAL]


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("preset", ON_REAL_DATA, ids=lambda preset: preset.name)
def test_a_preset_says_what_stands_in_for_the_papers_data(preset: Preset, profile: str) -> None:
    """A preset on generated data without the sentence is refused here."""
    study = find_study(preset.study)
    sized = preset.profile(profile)
    cells = Grid.read(study, sized.texts, (0,)).cells()
    sentences = {study.stand_in(cell.parameters) for cell in cells}
    assert sized.stand_in == " ".join(sorted(filter(None, sentences)))
    assert bool(sized.stand_in) or "--data" in sized.needs


def test_a_study_that_draws_its_own_data_has_nothing_that_stands_in() -> None:
    cells = overfit_cli.load(RESULTS / "fig1-quick").head(3)
    assert stand_ins_of(find_study("benign-vit"), cells) == []


@pytest.mark.slow
def test_the_figure_its_caption_and_the_report_name_it(tmp_path: Path) -> None:
    run, out = RESULTS / "kernel-fig2-quick", tmp_path / "report"
    picture = overfit_cli.draw("lines", run, x="learning_rate", by="kernel")
    assert REVIEWS in picture.caption.replace("\n", " ")
    assert picture.get_suptitle() == REVIEWS
    call("report", str(run), "--out", str(out), cwd=tmp_path)
    for file in ("report.md", "index.html", "claims.json"):
        assert REVIEWS in html.unescape((out / file).read_text())
    measured = [claim for claim in overfit_cli.judge(run) if claim.is_measured]
    assert measured and all(REVIEWS in claim.measurement.note for claim in measured)


def test_lists_name_it(tmp_path: Path) -> None:
    listed = call("list", "presets", "kernel-text", cwd=tmp_path).stdout
    assert REVIEWS in " ".join(listed.split())
    assert "generated reviews, or IMDb" in call("list", "studies", cwd=tmp_path).stdout
