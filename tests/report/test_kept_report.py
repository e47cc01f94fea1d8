"""The report that comes with the repository: every claim, as expected, on its page."""

from __future__ import annotations

from overfit_cli.core.registry import claims_of, installed_studies
from overfit_cli.report.expected import read_expected
from overfit_cli.sweeps.presets import EXPECTED_VERDICTS, find_preset, preset_folder
from tests.kept import RESULTS, kept_claims

CLAIMS = {
    f"{study.name}/{claim.name}": claim
    for study in installed_studies()
    if study.name != "toy"
    for claim in claims_of(study)
}
KEPT = {
    f"{one['study']}/{one['claim']}": one for of_run in kept_claims().values() for one in of_run
}


def test_it_has_every_claim_of_every_study_with_an_expected_verdict() -> None:
    page = (RESULTS / "report" / "index.html").read_text()
    expected = read_expected(preset_folder() / EXPECTED_VERDICTS)
    assert set(KEPT) == set(CLAIMS) == set(expected)
    for name, one in KEPT.items():
        assert one["verdict"] in expected[name], name
        assert f'id="claim-{name.replace("/", "-", 1)}"' in page


def test_what_is_not_run_needs_something_that_it_names() -> None:
    for name, one in KEPT.items():
        preset = find_preset(CLAIMS[name].preset)
        assert preset is not None
        needs = [preset.profile(profile).needs for profile in ("quick", "paper")]
        assert one["verdict"] != "not run" or any(needs)
