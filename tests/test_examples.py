"""The five experiments of the documents: one claim of each holds, and one fails."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.command import run

EXAMPLES = Path(__file__).parents[1] / "docs" / "examples"
SWEEPS = {
    "random_features.py": "--n 20,30,40,50,70,100,200",
    "spiked_matrix.py": "--n 200:3200:5:log --snr 0.2:1.6:16:log",
    "max_margin.py": "--horizon 100,1000,10000,30000",
    "xor.py": "--d 2,4,8,16,32",
    "quadratic.py": "--kappa 10,30,100,300,1000",
}


def test_every_example_is_run() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == set(SWEEPS)


@pytest.mark.slow
@pytest.mark.parametrize("name", SWEEPS)
def test_the_true_claim_holds_and_the_false_one_fails(name: str, tmp_path: Path) -> None:
    shutil.copy(EXAMPLES / name, tmp_path)
    run("sweep", name, *SWEEPS[name].split(), "--seeds", "20", "--out", "run", cwd=tmp_path)
    said = run("judge", "run", cwd=tmp_path).stdout.splitlines()
    verdicts = [word for line in said[:5] for word in line.split() if word in ("holds", "fails")]
    assert verdicts == ["holds", "fails"]
