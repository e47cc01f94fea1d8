"""Training curves of each setting at its own best step size."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
import pytest

from overfit_cli import Column
from overfit_cli.core.figure import FigureOptions
from overfit_cli.core.parameters import StudyParameters, parameter
from overfit_cli.core.study import FigureData
from overfit_cli.figures.best_curves import draw_best_curves, draw_learning, draw_learning_rates
from overfit_cli.stats.pairs import best_of_sweep
from tests.fake_study import FakeStudy, line_heights, titles, words


class RatesParameters(StudyParameters):
    kernel: Literal["softmax", "gaussian"] = parameter("softmax", "kernel")
    n: int = parameter(10, "samples", at_least=1)
    learning_rate: float = parameter(0.1, "step size", above=0)


class RatesStudy(FakeStudy):
    parameters = RatesParameters  # type: ignore[assignment]
    trajectory_columns = (
        Column("test_loss", "test loss"),
        Column("test_accuracy", "test accuracy"),
    )


LOSSES = {("softmax", 0.01): 0.4, ("softmax", 0.1): 0.3, ("gaussian", 0.01): 0.1}
LOSSES |= {("gaussian", 0.1): 0.2}


def rates(ns: tuple[int, ...] = (10,)) -> FigureData:
    """Two kernels at two step sizes, three seeds; what is logged stays at the loss."""
    rows, logged = [], []
    for n in ns:
        for (kernel, rate), loss in LOSSES.items():
            for seed in range(3):
                row = {"key": f"{kernel}-{rate}-{n}-{seed}", "seed": seed, "status": "done"}
                row |= {"kernel": kernel, "learning_rate": rate, "n": n, "test_loss": loss}
                rows.append({**row, "study": "fake", "steps": 2})
                steps = {"step": [0, 1], "test_loss": loss + 0.01 * seed, "test_accuracy": 1 - loss}
                logged.append(pd.DataFrame({"key": row["key"], **steps}))
    logs = pd.concat(logged, ignore_index=True)
    return FigureData(RatesStudy(), pd.DataFrame(rows), pd.DataFrame(), logs)


def chosen(cells: pd.DataFrame) -> dict[str, float]:
    best = best_of_sweep(cells, "learning_rate", ["kernel"], "test_loss")
    assert len(best) == 6
    return dict(zip(best["kernel"], best["learning_rate"], strict=True))


def test_the_best_step_size_is_each_kernels_own() -> None:
    cells = rates().cells
    assert chosen(cells) == {"softmax": 0.1, "gaussian": 0.01}
    assert set(best_of_sweep(cells, "learning_rate", [], "test_loss")["learning_rate"]) == {0.01}


def test_a_step_size_at_which_a_seed_failed_comes_after_the_others() -> None:
    cells = rates().cells
    one = (cells["kernel"] == "gaussian") & (cells["learning_rate"] == 0.01) & (cells["seed"] == 1)
    failed = cells.assign(
        status=cells["status"].mask(one, "failed"), test_loss=cells["test_loss"].mask(one)
    )
    assert chosen(failed) == {"softmax": 0.1, "gaussian": 0.1}
    every = failed.assign(status="failed", test_loss=np.nan)
    assert set(chosen(every)) == {"softmax", "gaussian"}


def test_curves_are_each_kernels_at_its_best_and_the_caption_says_so(tmp_path: Path) -> None:
    figure = draw_best_curves(rates(), FigureOptions(value="test_loss"))
    heights = sorted({line[0] for line in line_heights(figure.axes[0])})
    assert heights == pytest.approx([0.11, 0.31])
    text = words(figure, tmp_path)
    assert "\nBest step sizes: 0.1 for softmax, 0.01 for gaussian.\n" in text
    assert "step size:" not in text
    assert "\nsoftmax\n" in text


def test_each_panel_names_its_own_best_step_sizes(tmp_path: Path) -> None:
    figure = draw_best_curves(rates((10, 20)), FigureOptions(value="test_loss", by="kernel"))
    assert titles(figure) == ["(a) kernel: softmax", "(b) kernel: gaussian"]
    text = words(figure, tmp_path)
    assert "Best step sizes: 0.1 for samples = 10, 0.1 for samples = 20 (kernel: softmax)." in text
    assert "0.01 for samples = 10, 0.01 for samples = 20 (kernel: gaussian)." in text
    figure = draw_best_curves(rates(), FigureOptions(value="test_loss", by="learning_rate"))
    assert titles(figure) == ["(a) step size = 0.01", "(b) step size = 0.1"]
    alone = rates()
    data = replace(alone, cells=alone.cells.query("kernel == 'softmax'"))
    assert "\nBest step size: 0.1.\n" in words(draw_best_curves(data, FigureOptions()), tmp_path)


def test_a_single_step_size_is_not_called_the_best(tmp_path: Path) -> None:
    every = rates()
    data = replace(every, cells=every.cells.query("learning_rate == 0.1"))
    assert "est step" not in words(draw_best_curves(data, FigureOptions()), tmp_path)


LOSS_AND_ACCURACY = FigureOptions(value="test_loss,test_accuracy")


def test_columns_stand_side_by_side_with_differences_by_seed_below(tmp_path: Path) -> None:
    figure = draw_learning(rates(), LOSS_AND_ACCURACY)
    assert [axes.get_ylabel() for axes in figure.axes] == [
        "test loss (median)",
        "test accuracy (median)",
        *["less that of softmax\n(mean, 95\xa0% interval)"] * 2,
    ]
    assert titles(figure) == ["(a)", "(b)", "(c)", "(d)"]
    softmax, gaussian = figure.axes[2].lines
    assert softmax.get_ydata() == pytest.approx([0.0, 0.0])
    assert gaussian.get_ydata() == pytest.approx([0.1 - 0.3] * 2), "seed by seed, at the best rates"
    text = words(figure, tmp_path)
    assert "Best step sizes: 0.1 for softmax, 0.01 for gaussian." in text
    assert "Below, less that of softmax seed by seed: mean of 3 seeds" in text
    assert "\nguessing\n" in text


def test_without_a_second_setting_there_are_no_differences() -> None:
    every = rates()
    alone = replace(every, cells=every.cells.query("kernel == 'softmax'"))
    figure = draw_learning(alone, LOSS_AND_ACCURACY)
    assert len(figure.axes) == 2
    assert len(draw_learning(rates(), FigureOptions(value="test_accuracy")).axes) == 2
    figure = draw_learning(rates(), replace(LOSS_AND_ACCURACY, by="kernel", value="test_loss"))
    assert figure.axes[0].get_ylabel() == "test loss\n(median, the middle half)"


def test_what_guessing_gives_is_drawn_where_it_is_near() -> None:
    """Far from all lines it would squeeze them."""
    near, far = rates(), rates()
    near.cells["test_loss"] += 0.35
    options = FigureOptions(x="learning_rate", value="test_loss")
    heights = [line_heights(draw_learning_rates(data, options).axes[0]) for data in (near, far)]
    assert [np.log(2)] * 2 in heights[0]
    assert [np.log(2)] * 2 not in heights[1]
