"""Commands that a sweep proposes work: for every preset, on its kept run."""

from __future__ import annotations

from pathlib import Path

import pytest

from overfit_cli.cli.sweep import next_command
from overfit_cli.sweeps.grid import make_grid
from overfit_cli.sweeps.plan import make_plan
from overfit_cli.sweeps.presets import preset_names
from overfit_cli.sweeps.ranges import parse_seeds
from overfit_cli.sweeps.store import RunDirectory
from overfit_cli.sweeps.subject import find_subject, sweep_name
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
    seeds = parse_seeds(chosen.seeds)
    grid = make_grid(chosen.study, chosen.texts, seeds, chosen.together, chosen.only)
    kept = RunDirectory(ROOT / "results" / sweep_name(chosen, grid))
    proposed = next_command(make_plan(grid, kept, "cpu", trajectories=False), kept, chosen)
    assert proposed[0] in ("plot", "report")
    assert str(kept.path) in proposed
    where = ("--out", str(tmp_path / ("figure.png" if proposed[0] == "plot" else "report")))
    call(*proposed, *where, cwd=tmp_path)
    assert any(tmp_path.iterdir())
