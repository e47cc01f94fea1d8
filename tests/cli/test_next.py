"""Commands that a sweep proposes work: for every preset, on its kept run."""

from __future__ import annotations

from pathlib import Path

import pytest

from overfit_cli.cli.sweep_and_train import next_command
from overfit_cli.sweeps.presets import find_subject, preset_names
from overfit_cli.sweeps.run import grid_of
from tests.command import call

ROOT = Path(__file__).parents[2]
PRESETS = sorted(preset_names(), key=lambda name: name != "fig1")


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.one_in(len(PRESETS))
def test_the_command_proposed_after_a_preset_works(
    preset: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the cells that it gave, without training: a kept run has the name of its directory."""
    if preset.startswith("heads-fig6"):
        pytest.importorskip("transformers")
    chosen = find_subject(str(ROOT / "experiments" / f"{preset}.toml"))
    grid = grid_of(chosen)
    kept = ROOT / "results" / chosen.sweep_name(grid)
    proposed = next_command(grid, kept, chosen)
    assert proposed[0] in ("plot", "report")
    assert str(kept) in proposed
    where = ("--out", str(tmp_path / ("figure.png" if proposed[0] == "plot" else "report")))
    call(*proposed, *where, cwd=tmp_path)
    assert any(tmp_path.iterdir())
