"""The figures of the study `softmax-convergence`, and the widths that suffice."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import overfit_cli
from overfit_cli import UserError
from overfit_cli.figures.labels import typeset
from overfit_cli.studies.softmax_network.convergence.widths import sufficient_widths
from tests.fake_study import words

NETWORKS = ["softmax", "exp", "relu"]
RESULTS = Path(__file__).parents[3] / "results"


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("softmax") / "grid"
    _sweep(out, m=[8, 32, 256], n=[4, 6, 8], activation=NETWORKS)
    return out


@pytest.fixture(scope="module")
def widths(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("softmax") / "widths"
    ways = ["symmetric", "independent"]
    _sweep(out, m=[32, 128, 512], n=4, activation=NETWORKS, initialisation=ways)
    return out


def _sweep(out: Path, **parameters: Any) -> None:
    overfit_cli.sweep(
        "softmax-convergence",
        seeds=3,
        parameters={"d": 4, "test_samples": 8, "training_steps": 1000, **parameters},
        trajectories=True,
        out=out,
        jobs=1,
    )


@pytest.mark.slow
def test_table1_has_a_panel_for_steps_widths_and_condition_numbers(
    grid: Path, tmp_path: Path
) -> None:
    figure = overfit_cli.draw("table1", grid, out=tmp_path / "table1.png")
    steps, _, kappa = figure.axes
    cells = overfit_cli.load(grid)
    wide = cells[(cells["m"] == 256) & (cells["activation"] == "softmax")]
    logs = wide["steps_to_epsilon"].astype(float).map(math.log).groupby(wide["n"]).mean()
    assert np.asarray(steps.lines[0].get_ydata(), float) == pytest.approx(np.exp(logs.to_numpy()))
    assert len(steps.lines) == len(kappa.lines) == 3
    said = words(figure, tmp_path)
    assert "sufficient" in said
    assert "ReLU" in said


@pytest.mark.slow
def test_the_diagram_names_the_power_of_the_widths_that_suffice(grid: Path, tmp_path: Path) -> None:
    figure = overfit_cli.draw("heatmap", grid, out=tmp_path / "heatmap.png")
    text = words(figure, tmp_path)
    titles = [axes.get_title(loc="left") for axes in figure.axes[:3]]
    networks = [title.removeprefix("activation: ").partition(":")[0] for title in titles]
    assert networks == ["softmax", "exp", "ReLU"]
    assert any(": m ∝ n^" in typeset(title) for title in titles)
    assert "\nsteps over infinite width's = 2, and its fit\n" in text
    assert "\nTable 1: m ∝ n²\n" in text


@pytest.mark.slow
def test_the_diagram_of_another_column_has_that_columns_contour(grid: Path, tmp_path: Path) -> None:
    figure = overfit_cli.draw("heatmap", grid, value="kernel_drift", out=tmp_path / "drift.png")
    text = words(figure, tmp_path)
    assert re.search(r"\nchange of the Gram matrix .* = 0\.\d+, and its fit\n", text)
    assert "steps over" not in text


@pytest.mark.slow
def test_drift_and_gap_fall_with_width_by_the_powers_written_beside(
    widths: Path, tmp_path: Path
) -> None:
    for name, column in (("kernel-drift", "kernel_drift"), ("ntk-gap", "test_gap")):
        figure = overfit_cli.draw(name, widths, out=tmp_path / f"{name}.png")
        first = figure.axes[0]
        assert first.get_title(loc="left") == "symmetric"
        [text] = [one.get_text() for one in first.texts]
        cells = overfit_cli.load(widths)
        own = cells[(cells["activation"] == "softmax") & (cells["initialisation"] == "symmetric")]
        slopes = [
            np.polyfit(np.log(of_seed["m"].astype(float)), np.log(of_seed[column]), 1)[0]
            for _, of_seed in own.groupby("seed")
        ]
        assert f"softmax: {np.mean(slopes):.2f}".replace("-", "−") in text
    assert "decades above the drift" in words(
        overfit_cli.draw("kernel-drift", widths, out=tmp_path / "again.png"), tmp_path
    )


def test_networks_that_take_no_step_decide_no_claim(tmp_path: Path) -> None:
    """With a large ε only eigenvalues are measured; a network that hasn't moved tracks anything."""
    cells = overfit_cli.sweep(
        "softmax-convergence",
        seeds=10,
        parameters={"m": 512, "n": 4, "epsilon": 1000.0, "test_samples": 4},
        out=tmp_path / "run",
        jobs=1,
    )
    assert (cells["steps"] == 0).all()
    verdicts = {found.claim.name: found.measurement for found in overfit_cli.judge(cells)}
    assert "softmax-equation-24" in verdicts
    assert {one.verdict for one in verdicts.values()} == {"not run"}, verdicts
    assert "that take a step" in verdicts["softmax-lemma51-bound"].note


def test_eigenvalues_have_a_line_for_each_dimension(grid: Path, tmp_path: Path) -> None:
    figure = overfit_cli.draw("eigenvalues", grid, out=tmp_path / "eigenvalues.png")
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["softmax", "exp", "ReLU"]
    assert "\nd = 4\n" in words(figure, tmp_path)


def test_at_one_width_every_seed_has_its_largest_drift_at_both_radii(tmp_path: Path) -> None:
    run = RESULTS / "softmax-perturbation-relu-quick"
    figure = overfit_cli.draw("worst-drift", run, out=tmp_path / "drift.png")
    [axes] = figure.axes
    cells = overfit_cli.load(run)
    columns = [
        (n, column)
        for column in ("worst_drift", "worst_drift_far")  # R = 0.001, and 0.009
        for n in (4, 16)
    ]
    seeds = [line for line in axes.lines if line.get_marker() == "^"]
    for line, (n, column) in zip(seeds, columns, strict=True):
        heights = np.asarray(line.get_ydata(), float)
        assert np.sort(heights) == pytest.approx(np.sort(cells.loc[cells["n"] == n, column]))
        meets = column == "worst_drift_far"  # m R is at least 10 log(n²/δ)
        assert (line.get_markerfacecolor() == "none") != meets
    [constant] = [line for line in axes.lines if line.get_linestyle() == ":"]
    assert np.asarray(constant.get_ydata(), float) == pytest.approx(2.0)
    assert "at most so much" in words(figure, tmp_path)


def test_bounds_have_a_row_each_and_those_of_a_power_of_e_where_it_is_least(
    tmp_path: Path,
) -> None:
    run = RESULTS / "softmax-outputs-quick"
    figure = overfit_cli.draw("bounds", run, out=tmp_path / "bounds.png")
    cells = overfit_cli.load(run)
    small, large = figure.axes
    assert [axes.get_title(loc="left") for axes in figure.axes] == [
        r"$\sigma = 0.03$",
        r"$\sigma = 1$",
    ]
    assert (len(small.get_yticks()), len(large.get_yticks())) == (6, 2)
    for axes, sigma in ((small, 0.03), (large, 1.0)):
        drawn = [line for line in axes.lines if line.get_marker() in ("o", "^")]
        rate = cells.loc[(cells["sigma"] == sigma) & (cells["outputs"] == 3), "rate_ratio"]
        across = np.asarray(drawn[0].get_xdata(), float)
        assert np.sort(10**across) == pytest.approx(np.sort(rate.astype(float)))
        assert max(np.asarray(line.get_xdata(), float).max(initial=-9) for line in drawn) < 0
    far = cells[(cells["sigma"] == 0.03) & (cells["movement"] >= 0.01)]
    hollow = [line for line in small.lines if line.get_markerfacecolor() == "none"]
    assert sum(len(np.asarray(line.get_xdata())) for line in hollow) == 3 * len(far) > 0
    assert "\n8 outputs\n" in words(figure, tmp_path)


def test_a_figure_names_what_else_varies(widths: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="initialisation varies here, and this figure doesn't"):
        overfit_cli.draw("table1", widths, out=tmp_path / "table1.png")


def test_a_width_suffices_from_which_on_training_is_quick_enough() -> None:
    """Ratios of 8, 4, 1 cross two half way from 20 to 40 on a scale of ratios; a limit is slow."""
    ratios = {0: [8.0, 4.0, 1.0], 1: [np.nan, 4.0, 1.0], 2: [9.0, 5.0, 3.0], 3: [1.5, 1.2, 1.0]}
    cells = pd.DataFrame(
        [
            {
                "activation": "exp",
                "n": 4,
                "m": m,
                "seed": seed,
                "steps_over_limit": ratio,
                "status": "failed" if np.isnan(ratio) else "done",
            }
            for seed, of_seed in ratios.items()
            for m, ratio in zip((10, 20, 40), of_seed, strict=True)
        ]
    )
    found = sufficient_widths(cells).set_index("seed")["width"]
    assert found[0] == found[1] == pytest.approx(np.sqrt(20 * 40))
    assert found[2] == np.inf
    assert found[3] == 0
