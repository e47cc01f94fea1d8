"""The report that comes with the repository: every claim, as expected, on a small page."""

from __future__ import annotations

import json
import re
from pathlib import Path

from overfit_cli.core.registry import claims_of, installed_studies
from overfit_cli.report.expected import read_expected
from overfit_cli.sweeps.presets import EXPECTED_VERDICTS, find_preset, preset_folder

TEXTS = (".csv", ".html", ".json", ".md", ".txt", ".xml")
REPORT = Path(__file__).parents[2] / "results" / "report"
CLAIMS = {
    f"{study.name}/{claim.name}": claim
    for study in installed_studies()
    if study.name != "toy"
    for claim in claims_of(study)
}
KEPT = {
    f"{one['study']}/{one['claim']}": one
    for one in json.loads((REPORT / "claims.json").read_text())["claims"]
}


def test_it_has_every_claim_of_every_study() -> None:
    assert set(KEPT) == set(CLAIMS)
    page = (REPORT / "index.html").read_text()
    assert [one for one in KEPT if f'id="claim-{one.replace("/", "-", 1)}"' not in page] == []


def test_what_is_not_run_needs_something_that_it_names() -> None:
    for name, one in KEPT.items():
        preset = find_preset(CLAIMS[name].preset)
        assert preset is not None
        needs = [preset.profile(profile).needs for profile in ("quick", "paper")]
        assert one["verdict"] != "not run" or any(needs)


def test_its_verdicts_are_the_expected_ones() -> None:
    expected = read_expected(preset_folder() / EXPECTED_VERDICTS)
    assert set(expected) == set(KEPT)
    assert {
        name: one["verdict"] for name, one in KEPT.items() if one["verdict"] not in expected[name]
    } == {}


def test_its_page_is_small_and_names_no_folder_of_its_maker() -> None:
    page = (REPORT / "index.html").read_bytes()
    assert len(page) < 5_000_000
    assert b"the page has reached its size limit" not in page
    absolute = re.compile(rb"(?<![\w./:])/(?:Users|data|home|media|mnt|root|srv|tmp|var|work)/")
    kept = [path for path in REPORT.parent.rglob("*") if path.suffix in TEXTS]
    assert len(kept) > 100
    naming = {path: match for path in kept if (match := absolute.search(path.read_bytes()))}
    assert naming == {}


def test_its_page_shows_every_finding() -> None:
    page = (REPORT / "index.html").read_text()
    findings = page.partition('<section class="findings"')[2].partition("</section>")[0]
    papers = {study.paper for study in installed_studies() if study.paper}
    assert findings.count("<li>") == sum(len(paper.findings) for paper in papers)
