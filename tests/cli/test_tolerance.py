"""`overfit compare --tolerance` on published means: what it prints, its exit code, its JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import overfit_cli
from tests.command import call

# The authors' own rows (Cui et al. 2024), with the columns renamed to those of the function below,
# and the number of repeats that their README states.
PUBLISHED = """alpha,omega,start,linear_test_error,linear_test_error_sd,theta,theta_sd,n
0.01,0.1,positional,0.0035091753,0.000235493,0.0026560791,0.0017816781,24
0.092916667,0.1,positional,0.003339592,0.00016734509,0.009308964,0.0090547045,24
0.17583333,0.1,positional,0.0033,0.0001,0.05,0.002,24
0.01,0.1,semantic,0.0035091753,0.000235493,0.9,0.01,24
0.092916667,0.1,semantic,0.003339592,0.00016734509,0.9,0.01,24
0.17583333,0.1,semantic,0.0033,0.0001,0.9,0.01,24
"""
EXPERIMENT = """
import math
from typing import Literal

def train(omega: float = 0.1, alpha: float = 1.0,
          start: Literal["semantic", "positional"] = "semantic", seed: int = 0):
    noise = math.sin(5 * seed + 100 * alpha)
    theta = 0.9 + 0.01 * noise if start == "semantic" else 0.002 + 0.08 * alpha + 5e-4 * noise
    return {"theta": theta, "linear_test_error": 0.0033 + 1e-4 * noise}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("published")
    (folder / "mine.py").write_text(EXPERIMENT)
    (folder / "cui.csv").write_text(PUBLISHED)
    (folder / "bare.csv").write_text("alpha,start,theta\n0.01,semantic,0.9\n")
    grid = ("--alpha=0.01:2:25", "--start=semantic,positional", "--seeds=6", "--jobs=1")
    call("sweep", "mine.py", *grid, "--out=run", cwd=folder)
    return folder


def test_places_are_counted_first_and_those_that_differ_named(folder: Path) -> None:
    shown = call("compare", "run", "cui.csv", "--tolerance=10%", cwd=folder, expect=1).stdout
    differ, equivalent, first, second, third = shown.splitlines()[:5]
    assert differ == "Different by more than 10 %: theta."
    assert equivalent == "Equivalent within 10 %: linear_test_error."
    assert first.startswith("theta: 3 of 6 points equivalent (90 % Welch, 6 seeds against 24), ")
    assert first.endswith("1 differs (95 %).")
    assert second.startswith("  alpha 0.1758, start positional (B − A 0.0")
    assert third.startswith("linear_test_error: 6 of 6 points equivalent")
    assert "6 points (alpha, start) in common;" in shown
    assert "Without a counterpart: 44 points of A, 0 points of B." in shown


def test_the_exit_code_is_1_only_where_a_place_differs(folder: Path) -> None:
    semantic = ("compare", "run", "cui.csv", "--where=start=semantic")
    call(*semantic, "--tolerance=10%", cwd=folder)
    call("compare", "run", "cui.csv", "--tolerance=0.1", cwd=folder)
    call("compare", "run", "cui.csv", cwd=folder)


def test_the_json_has_every_place_and_python_says_the_same(folder: Path) -> None:
    call("compare", "run", "cui.csv", "--tolerance=10%", "--json=a.json", cwd=folder, expect=1)
    content = json.loads((folder / "a.json").read_text())
    assert content["tolerance"] == "10 %"
    theta = content["columns"][0]
    assert sum(theta["verdicts"].values()) == len(theta["points"]) == 6
    places = overfit_cli.compare(folder / "run", folder / "cui.csv", tolerance="10%").places()
    of_theta = places[places["column"] == "theta"]
    assert of_theta["verdict"].tolist() == [point["verdict"] for point in theta["points"]]
    assert of_theta["z"].tolist() == pytest.approx([point["z"] for point in theta["points"]])
    alone = overfit_cli.compare(folder / "run", folder / "cui.csv").places()
    assert "verdict" not in alone
    assert alone["z"].notna().all()


def test_published_numbers_of_a_study_are_known_by_name(tmp_path: Path) -> None:
    run = Path(__file__).parents[2] / "results" / "positional-published-quick"
    command = ("compare", str(run), "published.csv", "--value=theta")
    assert "150 points (omega, alpha, start) in common" in call(*command, cwd=tmp_path).stdout
    (tmp_path / "published.csv").write_text("omega,alpha,start,theta\n0.1,2,semantic,0.7\n")
    assert "1 point (omega, alpha, start) in common" in call(*command, cwd=tmp_path).stdout
    other = call("compare", str(run), "unpublished.csv", cwd=tmp_path, expect=2).stderr
    assert other.startswith("overfit: unpublished.csv: it can't be read")
