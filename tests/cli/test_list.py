"""Lists of what can be run, drawn and judged: in lines that fit, and in full for one study."""

from __future__ import annotations

from pathlib import Path

import pytest

from overfit_cli.core.registry import claims_of, find_study, installed_studies, study_names
from overfit_cli.sweeps.presets import preset_names
from tests.command import call


def test_every_kind_has_a_line_for_each_entry(tmp_path: Path) -> None:
    shown = call("list", cwd=tmp_path).stdout.splitlines()
    assert [line for line in shown if line and not line.startswith(" ")] == [
        "Studies",
        "Presets",
        "Figures",
        "Claims",
    ]
    names = {line.split()[0] for line in shown if line.startswith("  ")}
    claims = {claim.name for study in installed_studies() for claim in claims_of(study)}
    assert names >= {*study_names(), *preset_names(), *claims, "heatmap"}


@pytest.mark.parametrize("kind", ["studies", "presets", "figures", "claims"])
def test_on_a_terminal_no_line_is_longer_than_it_is_wide_and_no_name_is_cut(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = call("list", kind, cwd=tmp_path).stdout.splitlines()
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes the stream for a terminal
    shown = call("list", kind, cwd=tmp_path).stdout.splitlines()
    assert [line.split()[:1] for line in shown] == [line.split()[:1] for line in whole]
    assert max(map(len, shown)) <= 80
    assert any(line.endswith(" …") for line in shown) or kind == "studies"


def test_claims_of_one_study_are_listed_in_full(tmp_path: Path) -> None:
    shown = call("list", "claims", "kernel-landscape", cwd=tmp_path).stdout
    assert max(map(len, shown.splitlines())) <= 80
    words = " ".join(shown.split())
    claims = claims_of(find_study("kernel-landscape"))
    assert len(claims) == 10
    for claim in claims:
        assert f"{claim.name} {claim.statement}" in words
        assert f"holds where: {claim.holds_where}" in words
        assert f"preset: {claim.preset}" in words
    assert "fig1-contour" not in shown


@pytest.mark.parametrize("command", [(), ("sweep",), ("plot",), ("train",), ("list",)])
def test_a_single_dash_h_is_help(command: tuple[str, ...], tmp_path: Path) -> None:
    short = call(*command, "-h", cwd=tmp_path).stdout
    assert short == call(*command, "--help", cwd=tmp_path).stdout
    assert short.startswith("Usage: overfit")


def test_claims_of_a_function_are_listed_by_its_file_or_its_module(tmp_path: Path) -> None:
    text = "from overfit_cli import experiment\n@experiment(claims=['low: loss < 2 where n > 1'])\n"
    (tmp_path / "of_a_user.py").write_text(text + "def train(n: int = 1): return {'loss': n}\n")
    (tmp_path / "without.py").write_text("def train(n: int = 1): return {'loss': n}\n")
    for name in ("of_a_user.py", "of_a_user:train"):
        shown = call("list", "claims", name, cwd=tmp_path).stdout.splitlines()
        assert shown[:2] == ["low", "  loss < 2 where n > 1"]
    said = call("list", "claims", "without.py", cwd=tmp_path).stdout
    assert said == "without:train has no claims.\n"
