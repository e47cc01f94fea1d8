"""Logged columns against the step: cells and settings, in panels, and at the best step size."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
import pandas as pd
import pytest

from overfit_cli import Column, UserError
from overfit_cli.core.figure import FigureOptions
from overfit_cli.core.parameters import StudyParameters, parameter
from overfit_cli.core.study import FigureData
from overfit_cli.figures.best_curves import draw_best_curves, draw_learning, draw_learning_rates
from overfit_cli.stats.pairs import best_of_sweep
from tests.fake_study import (
    FakeStudy,
    data_of,
    draw_curves,
    fail,
    fake_cells,
    fake_trajectories,
    heights,
    line_heights,
    prose,
    titles,
    words,
)

LOSS = FigureOptions(value="train_loss")


def logged(cells: pd.DataFrame) -> FigureData:
    """The cells with their logged steps."""
    return data_of(cells, None, fake_trajectories(cells))


def test_a_single_cell_is_drawn_with_both_its_losses_on_a_linear_axis() -> None:
    """A small span keeps it linear, and so does a sign."""
    data = logged(fake_cells([5], [1.0], seeds=1))
    figure = draw_curves(data, FigureOptions())
    assert len(figure.axes[0].lines) == 2
    assert figure.axes[0].get_yscale() == "linear"
    text = words(figure)
    for word in ("training loss", "test loss", "gradient steps"):
        assert word in text
    attention = draw_curves(data, FigureOptions(value="attention"))
    assert attention.axes[0].get_yscale() == "linear"


def test_up_to_eight_cells_are_a_curve_each_named_by_what_varies() -> None:
    data = logged(fake_cells([5, 20], [1.0], seeds=2))
    figure = draw_curves(data, FigureOptions(value="train_loss", threshold=0.3))
    assert len(figure.axes[0].lines) == 4 + 1
    assert figure.axes[0].get_yscale() == "log"
    text = words(figure)
    assert "\nN = 20, seed 1\n" in text
    assert "SNR" not in text
    assert "threshold 0.3" in text
    many = draw_curves(logged(fake_cells(list(range(2, 21)), [1.0], seeds=2)), LOSS)
    assert len(many.axes[0].lines) == 19
    for name in ("N = 2", "N = 20"):
        assert f"\n{name}\n" in words(many)


def test_more_cells_are_averaged_over_seeds_where_all_of_them_ran() -> None:
    figure = draw_curves(logged(fake_cells([5, 10, 20], [1.0])), FigureOptions(value="test_loss"))
    lines = figure.axes[0].lines
    assert [len(np.asarray(line.get_xdata())) for line in lines] == [20] * 3
    assert len(figure.axes[0].collections) == 3
    told = "median of 3 seeds, band: the middle half; each curve up to the last step that all its"
    assert told in prose(figure)


def test_cells_logged_at_other_steps_are_averaged_between_them() -> None:
    cells = fake_cells([5, 10, 20], [1.0])
    steps = fake_trajectories(cells)
    steps["test_loss"] = 100.0 - steps["step"]
    uneven = steps[(steps["step"] % 3 == 0) | ~steps["key"].str.startswith("1-")]
    figure = draw_curves(data_of(cells, None, uneven), FigureOptions(value="test_loss"))
    for line in figure.axes[0].lines:
        step = np.asarray(line.get_xdata())
        assert step.tolist() == list(range(19)), "up to the last step that all were logged at"
        assert heights(line) == pytest.approx(100 - step)


def test_a_cell_that_diverged_is_beyond_the_others_from_its_end_on() -> None:
    """Its loss is no number any more; a median of the others alone would flatter them."""
    cells = fake_cells([5, 10, 20], [1.0])
    steps = fake_trajectories(cells)
    seeds = steps["key"].map(cells.set_index("key")["seed"])
    steps["train_loss"] = 1.0 + seeds
    steps = steps[(seeds > 0) | (steps["step"] < 5)]
    data = data_of(fail(cells, cells["seed"] == 0), None, steps)
    figure = draw_curves(data, LOSS)
    drawn = heights(figure.axes[0].lines[0]).tolist()
    assert drawn == [2.0] * 5 + [3.0] * 16, "of 1, 2, 3, and then of 2, 3, beyond"
    assert "3 diverged cells taken as beyond the others" in words(figure)
    mean = draw_curves(data, replace(LOSS, mean="arithmetic"))
    assert "3 diverged cells left out" in words(mean)


def test_a_cell_that_missed_its_target_is_a_curve_as_the_others_are() -> None:
    cells = fake_cells([5, 10, 20], [1.0])
    steps = fake_trajectories(cells)
    missed = fail(cells, cells["seed"] == 0).replace({"reason": {"diverged": "step limit"}})
    whole, some = (draw_curves(data_of(frame, None, steps), LOSS) for frame in (cells, missed))
    assert line_heights(some.axes[0]) == line_heights(whole.axes[0])
    assert "left out" not in words(some)


def test_a_failed_cell_on_its_own_is_named_so() -> None:
    cells = fake_cells([5, 10], [1.0], seeds=1)
    steps = fake_trajectories(cells)
    steps.loc[steps["step"] > 10, "train_loss"] = np.inf
    data = data_of(fail(cells, cells["n"] == 5), None, steps)
    assert "\nN = 5 (diverged)\n" in words(draw_curves(data, FigureOptions()))


# Panels and columns


def test_curves_are_drawn_in_panels_with_one_colour_and_one_axis() -> None:
    """Also of a setting that one panel alone has; one alone would have a linear axis."""
    cells = pd.concat([fake_cells([5, 400], [1.0], seeds=5), fake_cells([400], [2.0], seeds=5)])
    data = logged(cells)
    figure = draw_curves(data, replace(LOSS, by="snr", threshold=0.3))
    left, right = figure.axes
    assert titles(figure) == [r"(a) $\mathrm{SNR}$ = 1", r"(b) $\mathrm{SNR}$ = 2"]
    assert (len(left.lines), len(right.lines)) == (2 + 1, 1 + 1)
    assert left.lines[1].get_color() == right.lines[0].get_color() != left.lines[0].get_color()
    for name in ("N = 5", "N = 400", "threshold 0.3"):
        assert words(figure).count(f"\n{name}\n") == 1
    for axes in draw_curves(data, replace(LOSS, by="n")).axes:
        assert axes.get_xlabel() == "gradient steps"
        assert axes.get_yscale() == "log"
        assert axes.get_ylim() == left.get_ylim()


def test_several_columns_are_told_apart_by_dashes() -> None:
    data = logged(fake_cells([5, 10], [1.0], seeds=1))
    figure = draw_curves(data, FigureOptions(value="train_loss, attention"))
    lines = figure.axes[0].lines
    assert [line.get_linestyle() for line in lines] == ["-", "--", "-", "--"]
    assert lines[0].get_color() == lines[1].get_color() != lines[2].get_color()
    assert figure.axes[0].get_ylabel() == "training loss", "the first, where not all are losses"
    for word in ("training loss", "attention on the signal", "N = 5"):
        assert f"\n{word}\n" in words(figure)


def test_columns_without_a_number_or_named_twice_are_left_out() -> None:
    cells = fake_cells([5, 10], [1.0], seeds=1)
    data = data_of(cells, None, fake_trajectories(cells).assign(attention=np.nan))
    for value in ("train_loss,attention", "train_loss,train_loss"):
        figure = draw_curves(data, FigureOptions(value=value))
        assert len(figure.axes[0].lines) == 2
        assert figure.axes[0].get_ylabel() == "training loss"
    with pytest.raises(UserError, match="names of logged columns, separated by commas"):
        draw_curves(data, FigureOptions(value="train_loss,,attention"))


@pytest.mark.slow
def test_curves_are_averaged_geometrically_where_asked() -> None:
    cells = fake_cells([5], [1.0], seeds=9)
    step = np.arange(3)
    pieces = [
        pd.DataFrame({"key": key, "step": step, "train_loss": 10.0 ** (-4 * step - seed % 3)})
        for key, seed in zip(cells["key"], cells["seed"], strict=True)
    ]
    data = data_of(cells, None, pd.concat(pieces, ignore_index=True))
    for mean, drawn, told in (
        ("arithmetic", [0.37, 0.37e-4, 0.37e-8], "(mean, 95 % interval)"),
        ("geometric", [1e-1, 1e-5, 1e-9], "geometric mean of 9 seeds"),
    ):
        figure = draw_curves(data, replace(LOSS, mean=mean))
        assert line_heights(figure.axes[0]) == [pytest.approx(drawn)]
        assert told in prose(figure)


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
