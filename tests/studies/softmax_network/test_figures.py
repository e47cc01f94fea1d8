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
from overfit_cli.studies.softmax_network.convergence.widths import median_width, sufficient_widths
from overfit_cli.studies.softmax_network.figures import quartiles_over_seeds
from overfit_cli.studies.softmax_network.powers import fitted_power, largest_residual
from tests.fake_study import prose, words

NETWORKS = ["softmax", "exp", "relu"]
RESULTS = Path(__file__).parents[3] / "results"
WIDTHS = RESULTS / "softmax-lambda-widths-quick"
DIGITS = ["data=digits", "d=16"]


def kept(figure: str, run: str, **options: Any) -> Any:
    """A figure of a kept run."""
    return overfit_cli.draw(figure, RESULTS / f"softmax-{run}-quick", **options)


def _titles(figure: Any) -> list[str]:
    return [axes.get_title(loc="left") for axes in figure.axes]


@pytest.fixture(scope="module")
def widths(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("softmax") / "widths"
    ways = ["symmetric", "independent"]
    _sweep(out, m=[32, 128, 512], n=4, activation=NETWORKS, initialisation=ways)
    return out


def _sweep(out: Path, **parameters: Any) -> pd.DataFrame:
    given = {"d": 4, "test_samples": 8, "training_steps": 1000, **parameters}
    return overfit_cli.sweep(
        "softmax-convergence", seeds=3, parameters=given, trajectories=True, out=out, jobs=1
    )


@pytest.mark.slow
def test_table1_has_the_medians_of_steps(tmp_path: Path) -> None:
    cells = _sweep(tmp_path / "grid", m=[8, 32, 256], n=[4, 6, 8], activation=NETWORKS)
    steps, _, kappa, table = overfit_cli.draw("table1", tmp_path / "grid").axes
    wide = cells[(cells["m"] == 256) & (cells["activation"] == "softmax")]
    medians = wide["steps_to_epsilon"].astype(float).groupby(wide["n"]).median()
    assert np.asarray(steps.lines[0].get_ydata(), float) == pytest.approx(medians.to_numpy())
    for axes in (steps, kappa):
        assert len([line for line in axes.lines if line.get_linestyle() == "-"]) == 3
    assert {"softmax", "exp", "ReLU", "stated", "$\\lambda^2 m$"} <= _texts(table)


def _texts(axes: Any) -> set[str]:
    return {text.get_text() for text in axes.texts}


@pytest.mark.slow
def test_the_tables_power_of_width_is_that_of_the_diagram() -> None:
    """Both bound widths beyond the sweep alike; the count of widths lies below the lines."""
    figure = kept("table1", "table1")
    texts = [text.get_text() for text in figure.axes[3].texts]
    said = {text.split("\n")[0].replace("−", "-") for text in texts if text.count("\n") == 2}
    softmax = _titles(kept("heatmap", "table1"))[0]
    power = re.search(r"n\^\{(.*?)\}", softmax)
    assert power and power[1] in said
    assert "largest residual" in softmax
    assert texts.count(r"2 at fixed $\lambda$") == 2
    figure.draw_without_rendering()
    axes = figure.axes[1]
    [note] = axes.texts
    heights = np.concatenate([np.asarray(line.get_ydata(), float) for line in axes.lines])
    assert axes.transData.transform((8, heights.min()))[1] > note.get_window_extent().y1


@pytest.mark.slow
def test_a_median_before_the_sweep_is_an_open_marker_at_its_first_width() -> None:
    widths = kept("table1", "lambda-widths", where=DIGITS).axes[1]
    hollow = [line for line in widths.lines if line.get_markerfacecolor() == "white"]
    heights = np.concatenate([np.asarray(line.get_ydata(), float) for line in hollow])
    assert len(heights) > 0
    assert set(heights) == {8.0}
    assert _texts(widths) == {"21 of 120 cases: the smallest width (8) suffices"}


@pytest.mark.slow
def test_a_residual_is_that_of_the_points_that_are_drawn() -> None:
    """Widths below the sweep have no point: what they are taken for is no lack of fit."""
    figure = kept("heatmap", "lambda-widths", where=DIGITS)
    for axes, title in zip(figure.axes[:3], _titles(figure), strict=False):
        power = re.search(r"n\^\{(.*?)\}", title)
        said = re.search(r"residual (\d+) %", title)
        [points] = [line for line in axes.lines if line.get_marker() == "o"]
        x, y = (np.asarray(side, float) for side in points.get_data())
        assert power and said
        lack = 100 * largest_residual(x, y, float(power[1]), fewest=2)
        assert lack == pytest.approx(float(said[1]), abs=1)
    text = prose(figure)
    assert "softmax: 13 of 40 widths lie below the sweep, the median at n = 8, 16." in text
    assert "beyond" not in text.partition("Contour")[2]


def test_quartiles_count_seeds_that_have_no_number() -> None:
    cells = pd.DataFrame(
        {"n": [4] * 4 + [8] * 4, "steps": [1.0, 4.0, 9.0, np.nan, 5.0, np.nan, np.nan, np.nan]}
    )
    beyond = quartiles_over_seeds(cells, "n", "steps")
    assert beyond.loc[[4]].to_numpy()[0].tolist() == [1.0, 6.0, np.inf]
    assert beyond.loc[8, "middle"] == np.inf


def test_a_power_has_its_largest_residual_beside_it() -> None:
    """Medians 1, 4, 4 over 1, 2, 4 are a factor off a line of slope 1 through their middle."""
    x, medians = np.array([1.0, 2.0, 4.0]), np.array([1.0, 4.0, 4.0])
    off = np.log(medians / x)
    expected = float(np.exp(np.abs(off - off.mean()).max()) - 1)
    assert largest_residual(x, medians, 1.0) == pytest.approx(expected)
    assert math.isnan(largest_residual(x[:2], medians[:2], 1.0))
    cells = pd.DataFrame(
        {"m": [1.0, 2.0, 4.0] * 3, "seed": [0] * 3 + [1] * 3 + [2] * 3, "gap": [1.0, 4.0, 4.0] * 3}
    )
    power = fitted_power(cells, "m", "gap")
    assert power is not None
    assert str(power).startswith("1.00")
    assert str(power).endswith(f"{100 * expected:.0f} %")


@pytest.mark.slow
def test_drift_and_gap_fall_with_width_by_the_powers_written_beside(widths: Path) -> None:
    cells = overfit_cli.load(widths)
    own = cells[(cells["activation"] == "softmax") & (cells["initialisation"] == "symmetric")]
    for name, column in (("kernel-drift", "kernel_drift"), ("ntk-gap", "test_gap")):
        figure = overfit_cli.draw(name, widths)
        assert "symmetric initialisation" in _titles(figure)[0]
        [text] = [said for said in _texts(figure.axes[0]) if "largest residual" in said]
        slopes = [
            np.polyfit(np.log(of_seed["m"].astype(float)), np.log(of_seed[column]), 1)[0]
            for _, of_seed in own.groupby("seed")
        ]
        assert f"softmax: {np.mean(slopes):.2f}".replace("-", "−") in text
        assert ("decades above the drift" in words(figure)) == (name == "kernel-drift")


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


@pytest.mark.slow
def test_bounds_have_a_row_each_and_those_of_a_power_of_e_where_it_is_least() -> None:
    figure = kept("bounds", "outputs")
    cells = overfit_cli.load(RESULTS / "softmax-outputs-quick")
    small, large = figure.axes
    assert _titles(figure) == [r"(a) $\sigma = 0.03$", r"(b) $\sigma = 1$"]
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
    assert "\n8 outputs\n" in words(figure)


def test_a_figure_names_what_else_varies(widths: Path) -> None:
    with pytest.raises(UserError, match="initialisation varies here, and this figure doesn't"):
        overfit_cli.draw("table1", widths)


def test_a_width_suffices_from_which_on_training_is_quick_enough() -> None:
    """Ratios of 8, 4, 1 cross two half way from 20 to 40 on a scale of ratios; a limit is slow."""
    ratios = [[8.0, 4.0, 1.0], [np.nan, 4.0, 1.0], [9.0, 5.0, 3.0], [1.5, 1.2, 1.0]]
    cells = pd.DataFrame(
        [
            {"m": m, "seed": seed, "steps_over_limit": ratio}
            for seed, of_seed in enumerate(ratios)
            for m, ratio in zip((10, 20, 40), of_seed, strict=True)
        ]
    ).assign(activation="exp", n=4)
    cells["status"] = np.where(cells["steps_over_limit"].isna(), "failed", "done")
    found = sufficient_widths(cells).set_index("seed")["width"]
    assert found[0] == found[1] == pytest.approx(np.sqrt(20 * 40))
    assert found[2] == np.inf
    assert found[3] == 0


def test_a_median_between_below_the_sweep_and_a_width_lies_below_the_sweep() -> None:
    """A mean of 0, which stands for below, and 13 would be a width where none was measured."""
    assert median_width(pd.Series([0.0, 0.0, 13.0, 20.0])) == 0
    assert median_width(pd.Series([0.0, 11.0, 13.0, 20.0])) == 12
    assert median_width(pd.Series([11.0, 13.0, np.inf, np.inf])) == np.inf
    assert np.isnan(median_width(pd.Series([np.nan])))
