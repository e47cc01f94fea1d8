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


def run_of(curves: dict[tuple[str, float], list[float]], ns: tuple[int, ...] = (10,)) -> FigureData:
    """Three seeds of each kernel and step size, logged at steps 0, 1, ... up to the last loss."""
    rows, logged = [], []
    for n in ns:
        for (kernel, rate), losses in curves.items():
            for seed in range(3):
                row = {"key": f"{kernel}-{rate}-{n}-{seed}", "seed": seed, "status": "done"}
                row |= {"kernel": kernel, "learning_rate": rate, "n": n, "test_loss": losses[-1]}
                rows.append({**row, "study": "fake", "steps": len(losses)})
                steps = {"step": range(len(losses)), "test_loss": losses}
                logged.append(pd.DataFrame({"key": row["key"], **steps}))
    logs = pd.concat(logged, ignore_index=True)
    return FigureData(RatesStudy(), pd.DataFrame(rows), pd.DataFrame(), logs)


def rates(ns: tuple[int, ...] = (10,)) -> FigureData:
    """Two kernels at two step sizes; what is logged stays at the loss."""
    data = run_of({setting: [loss, loss] for setting, loss in LOSSES.items()}, ns)
    logs = data.trajectories
    logs["test_accuracy"] = 1 - logs["test_loss"]
    logs["test_loss"] += 0.01 * logs["key"].str.rpartition("-")[2].astype(int)
    return data


def of_softmax(data: FigureData) -> FigureData:
    return replace(data, cells=data.cells.query("kernel == 'softmax'"))


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


BEST = "Best step size, of 0.01 and 0.1: 0.1"


@pytest.mark.parametrize(
    ("data", "options", "told"),
    [
        (rates(), FigureOptions(value="test_loss"), f"{BEST} for softmax, 0.01 for gaussian."),
        (rates((10, 20)), FigureOptions(by="kernel"), f"{BEST} for softmax, 0.01 for gaussian."),
        (of_softmax(rates()), FigureOptions(), f"{BEST}; 0.1 is the largest tried."),
        (
            run_of({("softmax", 0.1): [1, 1], ("softmax", 1.0): [1, 1]}),
            FigureOptions(),
            "Best step size, of 0.1 and 1: any.",
        ),
    ],
)
def test_a_caption_says_once_which_step_sizes_are_best(
    data: FigureData, options: FigureOptions, told: str
) -> None:
    text = words(draw_best_curves(data, options))
    assert told in text
    assert text.count("Best step size") == 1
    assert "round-off" not in text


@pytest.mark.slow
def test_panels_of_step_sizes_have_each_setting_at_its_own() -> None:
    figure = draw_best_curves(rates(), FigureOptions(value="test_loss"))
    heights = sorted({line[0] for line in line_heights(figure.axes[0])})
    assert heights == pytest.approx([0.11, 0.31])
    assert "\nsoftmax\n" in words(figure)
    figure = draw_best_curves(rates((10, 20)), FigureOptions(value="test_loss", by="kernel"))
    assert titles(figure) == ["(a) kernel: softmax", "(b) kernel: gaussian"]
    figure = draw_best_curves(rates(), FigureOptions(value="test_loss", by="learning_rate"))
    assert titles(figure) == ["(a) step size = 0.01", "(b) step size = 0.1"]
    single = replace(rates(), cells=rates().cells.query("learning_rate == 0.1"))
    assert "est step" not in words(draw_best_curves(single, FigureOptions()))


def test_of_step_sizes_that_end_in_round_off_the_fastest_is_best() -> None:
    """The slowest one ends lowest, in digits that are noise."""
    slow, fast, stays = [1, 1e-3, 1e-5, 1e-15], [1, 1e-8, 1e-13, 3e-13], [1.0, 1e-8, 1e-9, 1e-10]
    data = run_of({("softmax", 0.1): slow, ("softmax", 1.0): fast, ("softmax", 3.0): stays})
    figure = draw_best_curves(data, FigureOptions(value="test_loss"))
    assert [1.0, 1e-8, 1e-12, 1e-12] in line_heights(figure.axes[0]), "the axis ends there"
    text = words(figure)
    assert "Best step size, of 3 from 0.1 to 3: 1." in text, "1 is no end of the sweep"
    assert "where several end in round-off" in text


def test_few_diverged_seeds_are_told_with_their_setting() -> None:
    data = rates()
    gone = data.cells["key"] == "softmax-0.1-10-1"
    cells = data.cells.assign(
        status=data.cells["status"].mask(gone, "failed"), reason=np.where(gone, "diverged", "")
    )
    text = words(draw_best_curves(replace(data, cells=cells), FigureOptions()))
    assert "Best means the fewest failed seeds, then the lowest mean over seeds of test" in text
    assert "Diverged: 1 of 3 seeds (softmax, at 0.1)." in text


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
    assert len(draw_learning(of_softmax(rates()), LOSS_AND_ACCURACY).axes) == 2
    assert len(draw_learning(rates(), FigureOptions(value="test_accuracy")).axes) == 2
    figure = draw_learning(rates(), FigureOptions(value="test_loss", by="kernel"))
    assert figure.axes[0].get_ylabel() == "test loss\n(median, the middle half)"


def test_what_guessing_gives_is_drawn_where_it_is_near() -> None:
    """Far from all lines it would squeeze them."""
    near, far = rates(), rates()
    near.cells["test_loss"] += 0.35
    options = FigureOptions(x="learning_rate", value="test_loss")
    heights = [line_heights(draw_learning_rates(data, options).axes[0]) for data in (near, far)]
    assert [np.log(2)] * 2 in heights[0]
    assert [np.log(2)] * 2 not in heights[1]
