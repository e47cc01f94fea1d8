"""The paper in CONTRIBUTING.md: what it declares is all that a theorem takes."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import overfit_cli

ROOT = Path(__file__).parents[1]
FILE = re.compile(r"^`([\w/-]+\.\w+)`[^\n]*:\n\n```\w+\n(.*?)```", re.DOTALL | re.MULTILINE)
FILES = dict(FILE.findall((ROOT / "CONTRIBUTING.md").read_text("utf-8")))


@pytest.fixture
def paper(
    install: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """The paper, installed, with its preset as the only one."""
    for name, content in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content, encoding="utf-8")
    install({"least-squares": "toy_paper.study:study"})
    for module in ("claims.papers", "sweeps.presets"):
        monkeypatch.setattr(f"overfit_cli.{module}.preset_folder", lambda: tmp_path / "experiments")
    yield tmp_path
    for module in [name for name in sys.modules if name.startswith("toy_paper")]:
        del sys.modules[module]


@pytest.mark.slow
def test_a_paper_of_one_theorem_is_swept_judged_and_drawn(paper: Path) -> None:
    cells = overfit_cli.sweep("least-squares-bound", jobs=1, out=paper / "out")
    assert len(cells) == 2 * 3 * 10
    [judged] = overfit_cli.judge(paper / "out")
    assert (judged.claim.name, judged.measurement.verdict) == ("least-squares-theorem1", "holds")
    picture = overfit_cli.draw("bound", paper / "out")
    assert picture.caption.startswith("Loss over bound against gradient steps k")


def test_its_theorem_tells_nothing_where_its_step_size_is_not_met(paper: Path) -> None:
    steps, out = [1, 10, 100], paper / "out"
    overfit_cli.sweep("least-squares", rate=2, training_steps=steps, seeds=10, jobs=1, out=out)
    [judged] = overfit_cli.judge(paper / "out")
    assert judged.measurement.verdict == "vacuous"
