"""Training curves of each setting at its own best step size."""

from __future__ import annotations

from dataclasses import replace
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


def test_curves_are_each_kernels_at_its_best_and_the_caption_says_so() -> None:
    figure = draw_best_curves(rates(), FigureOptions(value="test_loss"))
    heights = sorted({line[0] for line in line_heights(figure.axes[0])})
    assert heights == pytest.approx([0.11, 0.31])
    text = words(figure)
    best = "Best step size, of 0.01 and 0.1: 0.1 for softmax, 0.01 for gaussian."
    assert best in text
    assert text.count("Best step size") == 1
    assert "\nsoftmax\n" in text


@pytest.mark.slow
def test_best_step_sizes_are_told_once_for_all_panels() -> None:
    figure = draw_best_curves(rates((10, 20)), FigureOptions(value="test_loss", by="kernel"))
    assert titles(figure) == ["(a) kernel: softmax", "(b) kernel: gaussian"]
    text = words(figure)
    assert "Best step size, of 0.01 and 0.1: 0.1 for softmax, 0.01 for gaussian." in text
    figure = draw_best_curves(rates(), FigureOptions(value="test_loss", by="learning_rate"))
    assert titles(figure) == ["(a) step size = 0.01", "(b) step size = 0.1"]
    alone = rates()
    data = replace(alone, cells=alone.cells.query("kernel == 'softmax'"))
    best = "Best step size, of 0.01 and 0.1: 0.1; 0.1 is the largest tried."
    assert best in words(draw_best_curves(data, FigureOptions()))


def falling(losses: dict[float, list[float]]) -> FigureData:
    """Three seeds at each step size, logged at steps 0, 1, 2, ...; a cell ends at its last loss."""
    rows, logged = [], []
    for rate, curve in losses.items():
        for seed in range(3):
            key = f"{rate}-{seed}"
            row = {"key": key, "seed": seed, "status": "done", "study": "fake", "kernel": "softmax"}
            rows.append({**row, "learning_rate": rate, "n": 10, "test_loss": curve[-1]})
            logged.append(pd.DataFrame({"key": key, "step": range(len(curve)), "test_loss": curve}))
    logs = pd.concat(logged, ignore_index=True)
    return FigureData(RatesStudy(), pd.DataFrame(rows), pd.DataFrame(), logs)


def test_of_step_sizes_that_end_in_round_off_the_fastest_is_best() -> None:
    """The slowest one ends lowest, in digits that are noise."""
    slow, fast, stays = [1, 1e-3, 1e-5, 1e-15], [1, 1e-8, 1e-13, 3e-13], [1.0, 1e-8, 1e-9, 1e-10]
    data = falling({0.1: slow, 1.0: fast, 3.0: stays})
    figure = draw_best_curves(data, FigureOptions(value="test_loss"))
    assert [1.0, 1e-8, 1e-12, 1e-12] in line_heights(figure.axes[0]), "the axis ends there"
    text = words(figure)
    assert "Best step size, of 3 from 0.1 to 3: 1." in text, "1 is no end of the sweep"
    assert "where several end in round-off" in text


def test_a_setting_that_no_step_size_changes_has_no_best() -> None:
    text = words(draw_best_curves(falling({0.1: [1, 1], 1.0: [1, 1]}), FigureOptions()))
    assert "Best step size, of 0.1 and 1: any." in text
    assert "round-off" not in text


def test_few_diverged_seeds_are_told_with_their_setting() -> None:
    data = rates()
    gone = data.cells["key"] == "softmax-0.1-10-1"
    cells = data.cells.assign(
        status=data.cells["status"].mask(gone, "failed"), reason=np.where(gone, "diverged", "")
    )
    text = words(draw_best_curves(replace(data, cells=cells), FigureOptions()))
    assert (
        "Best means the fewest failed seeds, then the lowest mean over seeds of test loss" in text
    )
    assert "Diverged: 1 of 3 seeds (softmax, at 0.1)." in text


def test_a_single_step_size_is_not_called_the_best() -> None:
    every = rates()
    data = replace(every, cells=every.cells.query("learning_rate == 0.1"))
    assert "est step" not in words(draw_best_curves(data, FigureOptions()))


LOSS_AND_ACCURACY = FigureOptions(value="test_loss,test_accuracy")


@pytest.mark.slow
def test_columns_stand_side_by_side_with_differences_by_seed_below() -> None:
    figure = draw_learning(rates(), LOSS_AND_ACCURACY)
    assert [axes.get_ylabel() for axes in figure.axes] == [
        "test loss (median)",
        "test accuracy (median)",
        "test loss minus softmax's\n(mean, 95\xa0% interval)",
        "test accuracy minus softmax's\n(mean, 95\xa0% interval)",
    ]
    assert titles(figure) == ["(a)", "(b)", "(c)", "(d)"]
    softmax, gaussian = figure.axes[2].lines
    assert softmax.get_ydata() == pytest.approx([0.0, 0.0])
    assert gaussian.get_ydata() == pytest.approx([0.1 - 0.3] * 2), "seed by seed, at the best rates"
    text = words(figure)
    assert "Best means the lowest mean over seeds of test loss." in text
    assert "Below, minus that of softmax seed by seed: mean of 3 seeds" in text
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
