"""A measured column against a parameter, a line for each setting, and lines that hide others."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy import stats

import overfit_cli
from overfit_cli import UserError
from overfit_cli.core.figure import FigureOptions
from overfit_cli.figures.hidden_lines import coincide, hidden_in_words, name_line
from overfit_cli.figures.lines import draw_lines as plain_lines
from tests.command import call
from tests.fake_study import (
    SNRS,
    corners,
    data_of,
    draw_lines,
    fail,
    fake_cells,
    heights,
    line_heights,
    prose,
    titles,
    words,
)

LINES = FigureOptions(x="snr", value="test_loss")
MEANS = replace(LINES, mean="arithmetic")


@pytest.mark.parametrize(
    ("band", "factor", "words_of_band"),
    [
        ("interval", stats.t.ppf(0.975, 5) / np.sqrt(6), "95 % interval"),
        ("sd", 1.0, "one standard deviation"),
    ],
)
def test_a_line_is_the_mean_over_seeds_with_a_band(
    band: str | None, factor: float, words_of_band: str
) -> None:
    cells = fake_cells([5, 10], [1.0, 2.0, 4.0], seeds=6, noise=0.1)
    figure = draw_lines(data_of(cells), replace(LINES, threshold=0.3, band=band))
    [axes] = figure.axes
    groups = cells.groupby(["n", "snr"])["test_loss"]
    mean, half = groups.mean(), factor * groups.std()
    assert line_heights(axes)[:2] == [pytest.approx(mean[n].to_list()) for n in (5, 10)]
    for n, drawn_band in zip((5, 10), axes.collections, strict=True):
        heights = corners(drawn_band)[:, 1]
        assert heights.min() == pytest.approx((mean[n] - half[n]).min())
        assert heights.max() == pytest.approx((mean[n] + half[n]).max())
    text = words(figure)
    label = f"test loss (mean, {words_of_band})"
    for line in ("N = 5", "N = 10", "threshold 0.3", label, "signal-to-noise ratio SNR"):
        assert f"\n{line}\n" in text
    assert (
        "Test loss against signal-to-noise ratio SNR: "
        f"mean of 6 seeds, band: {words_of_band}." in text
    )


def test_the_means_are_those_of_an_export_whatever_is_chosen() -> None:
    """Neither a logarithmic axis nor a choice of cells changes the kind of mean; zeros count."""
    cells = fake_cells([5, 20], [1.0, 2.0], seeds=3)
    cells["test_loss"] = [0.0, 1e-9, 0.2, 2.0, 0.4, 4.0, 0.3, 0.4, 0.3, 0.4, 0.3, 0.4]
    means = cells.groupby(["n", "snr"])["test_loss"].mean()
    for log in (None, frozenset[str]()):
        heights = line_heights(draw_lines(data_of(cells), replace(MEANS, log=log)).axes[0])
        assert heights == [pytest.approx(means[n].to_list()) for n in (5, 20)]
    chosen = draw_lines(data_of(cells[cells["n"] == 20]), MEANS)
    assert line_heights(chosen.axes[0])[0] == pytest.approx(means[20].to_list())


def band_of(cells: pd.DataFrame, options: FigureOptions) -> np.ndarray:
    """The heights along the edge of the first line's band."""
    return corners(draw_lines(data_of(cells), options).axes[0].collections[0])[:, 1]


def test_a_band_ends_at_0_and_1_for_shares_and_at_the_largest_number_where_seeds_miss() -> None:
    shares = fake_cells([5], [1.0, 2.0], seeds=3)
    shares["test_loss"] = [0.0, 1.0, 0.1, 0.9, 1.0, 0.95]
    heights = band_of(shares, MEANS)
    assert (heights.min(), heights.max()) == (0, 1)
    cells = fake_cells([5], [1.0, 2.0], seeds=5)
    cells["test_loss"] = 0.1 + 0.1 * cells["seed"]
    heights = band_of(fail(cells, (cells["snr"] == 2.0) & (cells["seed"] > 2)), LINES)
    assert np.isfinite(heights).all()
    assert heights.max() > 0.3, "the largest number"


def test_another_mean_is_drawn_and_named_where_asked_for() -> None:
    cells = fake_cells([5], [1.0, 2.0], seeds=3)
    cells["test_loss"] = [0.1, 1.0, 0.2, 2.0, 0.4, 7.0]
    for mean, expected in (("geometric", [0.2, 14 ** (1 / 3)]), ("median", [0.2, 2.0])):
        figure = draw_lines(data_of(cells), replace(LINES, mean=mean))
        assert line_heights(figure.axes[0]) == [pytest.approx(expected)]
        name = "geometric mean" if mean == "geometric" else "median"
        text = words(figure)
        assert f"{name} of 3 seeds" in text
        assert f"test loss ({name}, " in text
    band = band_of(cells, replace(LINES, mean="median", band="quartiles"))
    assert (band.min(), band.max()) == pytest.approx((0.15, 4.5))


def test_a_band_without_an_upper_end_runs_to_the_frame_with_a_count() -> None:
    """It ended at 1, where all numbers are shares, and no seed has that one."""
    cells = fake_cells([10], [1.0, 2.0], seeds=4)
    cells["test_loss"] = 0.1
    gone = (cells["snr"] == 2.0) & (cells["seed"] == 0)
    figure = draw_lines(data_of(fail(cells, gone)), replace(LINES, log=frozenset({"value"})))
    [axes] = figure.axes
    assert corners(axes.collections[0])[:, 1].max() == pytest.approx(axes.get_ylim()[1])
    text = words(figure)
    assert "\n3/4\n" in text
    assert "Bands that end at the frame have no upper end" in text


def test_a_seed_that_misses_counts_as_beyond_the_others() -> None:
    """The median of those that arrive would be better than that of all."""
    cells = fake_cells([5], [1.0, 2.0, 4.0], seeds=5)
    cells["test_loss"] = 0.1 + 0.1 * cells["seed"]
    missed = fail(cells, cells["seed"] == 0)
    figure = draw_lines(data_of(missed), LINES)
    assert line_heights(figure.axes[0]) == [pytest.approx([0.4] * 3)], "of .2, .3, .4, .5, beyond"
    text = words(figure)
    assert "median of 5 seeds" in text
    assert "3 cells (diverged) taken as beyond the others" in text
    mean = draw_lines(data_of(missed), MEANS)
    assert line_heights(mean.axes[0]) == [pytest.approx([0.35] * 3)]
    assert "3 cells (diverged) left out" in words(mean)
    one = fail(cells, (cells["seed"] == 1) & (cells["snr"] == 2.0))
    text = prose(draw_lines(data_of(one), LINES))
    assert "1 cell at SNR = 2 (diverged) taken as beyond the others" in text


def test_where_half_of_the_seeds_miss_a_point_is_open_and_where_all_do_a_cross() -> None:
    """Neither is on the line."""
    cells = fake_cells([5], [1.0, 2.0, 4.0, 8.0], seeds=4)
    cells["test_loss"] = 0.1 + 0.1 * cells["seed"]
    half = (cells["snr"] == 4.0) & (cells["seed"] < 3)
    figure = draw_lines(data_of(fail(cells, half | (cells["snr"] == 8.0))), LINES)
    line, *marks = figure.axes[0].lines
    assert np.isfinite(heights(line)).tolist() == [True, True, False, False]
    [cross] = [mark for mark in marks if mark.get_marker() == "x"]
    [point] = [mark for mark in marks if mark is not cross]
    assert np.asarray(cross.get_xdata()).tolist() == [8.0]
    assert point.get_markerfacecolor() == "white"
    assert np.asarray(point.get_xydata()).tolist() == [[4.0, pytest.approx(0.4)]]
    text = words(figure)
    for said in ("1/4", "half of the seeds or more miss", "every seed: diverged"):
        assert f"\n{said}\n" in text


def test_a_failure_that_is_no_miss_is_left_out() -> None:
    cells = fake_cells([5], [1.0, 2.0], seeds=5)
    killed = fail(cells, cells["seed"] < 3).replace({"reason": {"diverged": "worker killed"}})
    figure = draw_lines(data_of(killed), LINES)
    kept = cells[cells["seed"] > 2].groupby("snr")["test_loss"].median()
    assert line_heights(figure.axes[0]) == [pytest.approx(kept.to_list())]
    assert "6 cells (failed) left out" in words(figure)


def kernels(ns: Sequence[int], snrs: Sequence[float]) -> pd.DataFrame:
    return pd.concat([fake_cells(ns, snrs, kernel=k) for k in ("softmax", "gaussian")])


PAIR = kernels([5], [1.0, 2.0])
LIMIT = fail(PAIR, PAIR["kernel"] == "softmax").replace({"reason": {"diverged": "step limit"}})


@pytest.mark.parametrize(
    ("cells", "names"),
    [
        (LIMIT, ["softmax (target not reached)", "gaussian"]),
        (fake_cells([1_000_000, 10**15], [1.0, 2.0]), ["N = 10⁶", "N = 10¹⁵"]),
    ],
)
def test_a_line_is_named_in_short_with_why_it_has_no_point(
    cells: pd.DataFrame, names: list[str]
) -> None:
    text = words(draw_lines(data_of(cells), LINES))
    assert all(f"\n{name}\n" in text for name in names)


@pytest.mark.parametrize(
    ("cells", "options", "sentence"),
    [
        (fail(PAIR, PAIR["snr"] == 2.0), {}, "x='snr': no line of test_loss has two points here"),
        (kernels([2, 4, 6, 8, 10], [1.0, 2.0]), {"by": "width"}, "x='snr': .* 10 .* --by n makes"),
        (kernels(range(2, 15), [1.0, 2.0]), {}, "26 settings here, .* 8 lines; a heatmap over two"),
        (PAIR.assign(test_loss=0), {"mean": "geometric"}, "mean='geometric': 6 .* not positive"),
        (PAIR, {"mean": "median", "band": "sd"}, "band='sd': a median takes interval, quartiles"),
    ],
)
def test_lines_that_cannot_be_drawn_are_refused(
    cells: pd.DataFrame, options: dict[str, str], sentence: str
) -> None:
    with pytest.raises(UserError, match=sentence):
        draw_lines(data_of(cells), replace(LINES, **options))  # type: ignore[arg-type]


def test_a_refined_sweep_takes_no_other_band() -> None:
    data = replace(data_of(fake_cells([2, 4], SNRS[::6])), refined=True)
    for options in (replace(LINES, mean="median"), replace(LINES, band="quartiles")):
        with pytest.raises(UserError, match="different seeds; each seed has a line"):
            draw_lines(data, options)


def test_few_values_of_x_that_stand_apart_have_a_tick_each_and_whole_numbers_whole_ones() -> None:
    def ticks(values: list[int]) -> list[str]:
        axes = draw_lines(data_of(fake_cells(values, [1.0, 2.0])), replace(LINES, x="n")).axes[0]
        low, high = axes.get_xlim()
        labels = zip(axes.get_xticks(), axes.get_xticklabels(), strict=True)
        return [label.get_text() for at, label in labels if low <= at <= high]

    assert ticks([62, 250, 1000]) == ["62", "250", "1000"]
    for few in ([1, 2, 4, 8], [1, 2, 3, 4, 5]):
        assert ticks(few)
        assert all("." not in tick for tick in ticks(few))
    many = draw_lines(data_of(fake_cells([5], SNRS)), LINES)
    assert len(many.axes[0].get_xticks()) < len(SNRS)


def test_lines_that_hide_each_other_stand_aside_with_their_numbers_in_place() -> None:
    cells = fake_cells([5, 10], [1.0, 2.0, 4.0])
    for some, hides in ((cells, False), (cells.assign(test_loss=cells["snr"]), True)):
        first, second = draw_lines(data_of(some), LINES).axes[0].lines
        assert np.asarray(first.get_xdata()).tolist() == np.asarray(second.get_xdata()).tolist()
        shown = [line.get_transform().transform((1.0, 1.0))[0] for line in (first, second)]
        assert (shown[0] < shown[1]) if hides else (shown[0] == shown[1])


def test_panels_with_the_same_lines_are_one_and_the_caption_says_so() -> None:
    parts = [fake_cells([5, 10], [1.0, 2.0, 4.0], width=width) for width in (64, 128)]
    options = FigureOptions(x="snr", value="test_loss", by="width")
    figure = draw_lines(data_of(pd.concat(parts)), options)
    assert len(figure.axes) == 1
    text = prose(figure)
    assert "Drawn for width = 64; for width = 128 lines and bands are the same" in text
    parts[1]["test_loss"] *= 1.5
    assert len(draw_lines(data_of(pd.concat(parts)), options).axes) == 2


def test_a_guide_of_a_slope_has_the_fitted_powers_in_the_caption() -> None:
    cells = fake_cells([5, 10, 20], [1.0, 2.0], seeds=6)
    cells["test_loss"] = (1 + 0.01 * cells["seed"]) / cells["n"] ** 2
    cells["train_loss"] = 1 / cells["n"]  # a guide
    log = frozenset({"x", "value"})
    options = FigureOptions(x="n", value="test_loss", theory="train_loss", log=log)
    text = prose(draw_lines(data_of(cells), options))
    assert "Fitted powers of N" in text
    assert "SNR = 1: −2.00 [−2.00, −2.00], below 1 %" in text


@pytest.mark.slow
def test_many_lines_have_a_few_names_and_no_bands() -> None:
    """And a shade each, also where they are too many for panels."""
    figure = draw_lines(data_of(fake_cells(list(range(2, 21)), SNRS[::6])), replace(LINES, by="n"))
    [axes] = figure.axes
    assert not axes.collections
    assert len({line.get_color() for line in axes.lines}) == 19
    assert len(figure.legends[0].get_texts()) == 5
    text = words(figure)
    assert "without bands" in text
    assert "\nN = 20\n" in text


def test_decades_below_the_last_digit_of_the_largest_or_of_the_start_are_shaded() -> None:
    cells = fake_cells([10], [1.0, 2.0, 4.0])
    cells["test_loss"] = 10.0 ** (2 - 10 * cells["snr"])
    figure = draw_lines(data_of(cells), LINES)
    [axes] = figure.axes
    assert line_heights(axes) == [pytest.approx([1e-8, 1e-18, 1e-24])]
    assert axes.get_ylim()[0] == pytest.approx(1e-24 / 30)
    assert "\nbelow 10⁻¹⁶ of the largest\n" in words(figure)
    figure = plain_lines(data_of(cells), LINES, floor=1e-12)
    assert line_heights(figure.axes[0])[0] == pytest.approx([1e-8, 1e-12, 1e-12])
    assert "\nround-off, below 10⁻¹² of the start\n" in words(figure)


def test_crosses_of_two_lines_at_one_value_do_not_hide_each_other() -> None:
    cells = fake_cells([5, 10, 15], [1.0, 2.0, 4.0])
    gone = fail(cells, (cells["snr"] == 4.0) & (cells["n"] != 10))
    [axes] = draw_lines(data_of(gone), LINES).axes
    crosses = [line for line in axes.lines if line.get_marker() == "x"]
    assert [np.asarray(cross.get_xdata()).tolist() for cross in crosses] == [[4.0], [4.0]]
    first, second = (heights(cross)[0] for cross in crosses)
    assert first - second == pytest.approx(0.05), "shares of the height of the axes"
    assert len({cross.get_color() for cross in crosses}) == 2


def test_where_x_is_no_number_points_stand_beside_each_other_with_bars() -> None:
    gaussian = fake_cells([5, 10], [1.0], noise=1.0, kernel="gaussian")
    cells = pd.concat([gaussian, fake_cells([5], [1.0], kernel="softmax")])
    figure = draw_lines(data_of(cells), replace(LINES, x="kernel"))
    [axes] = figure.axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["softmax", "gaussian"]
    five, ten = [np.asarray(bars.lines[0].get_xdata()) for bars in axes.containers]  # type: ignore[attr-defined]
    assert five.round().tolist() == [0, 1]
    assert ten.round().tolist() == [1]
    assert 0 < ten[0] - five[1] < 0.2
    median = cells.groupby(["n", "kernel"])["test_loss"].median()
    drawn_five = axes.containers[0].lines[0].get_ydata()  # type: ignore[attr-defined]
    assert drawn_five == pytest.approx([median[5, "softmax"], median[5, "gaussian"]])
    gone = fail(cells, cells["kernel"] == "softmax")
    assert "every seed: diverged" in words(draw_lines(data_of(gone), replace(LINES, x="kernel")))


def test_a_parameter_can_be_panels_and_keeps_the_lines_colours() -> None:
    gaussian = fake_cells([5, 10], [1.0, 2.0], kernel="gaussian")
    cells = pd.concat([gaussian, fake_cells([10], [1.0, 2.0], kernel="softmax")])
    figure = draw_lines(data_of(cells), replace(LINES, by="kernel"))
    left, right = figure.axes
    assert titles(figure) == ["(a) kernel: softmax", "(b) kernel: gaussian"]
    assert (len(left.lines), len(right.lines)) == (1, 2)
    assert left.lines[0].get_color() == right.lines[1].get_color() != right.lines[0].get_color()
    assert words(figure).count("\nN = 10\n") == 1
    assert len(draw_lines(data_of(cells), LINES).axes[0].lines) == 3


def test_more_settings_than_colours_get_panels_if_those_of_one_parameter_suffice() -> None:
    figure = draw_lines(data_of(kernels([2, 4, 6, 8, 10], [1.0, 2.0])), LINES)
    assert titles(figure) == [
        f"({letter}) $N$ = {n}" for letter, n in zip("abcde", (2, 4, 6, 8, 10), strict=True)
    ]
    assert all(len(line_heights(axes)) == 2 for axes in figure.axes)
    text = words(figure)
    for line in ("softmax", "gaussian", "kernel"):
        assert text.count(f"\n{line}\n") == 1, "words stand alone, under a heading"


@pytest.mark.parametrize(
    ("seeds", "band", "each", "told"),
    [
        (2, None, 2, "a thin line for each seed"),
        (3, None, 0, "band: the middle half"),
        (3, "seeds", 3, "a thin line for each seed"),
        (2, "quartiles", 0, "band: the middle half"),
    ],
)
def test_each_seed_has_a_thin_line_where_they_are_few_or_it_is_asked_for(
    seeds: int, band: str | None, each: int, told: str
) -> None:
    cells = fake_cells([5], [1.0, 2.0, 4.0], seeds=seeds, noise=1.0)
    figure = draw_lines(data_of(cells), replace(LINES, band=band))
    [axes] = figure.axes
    losses = cells.pivot(index="seed", columns="snr", values="test_loss").to_numpy()
    assert line_heights(axes) == [pytest.approx(np.median(losses, axis=0)), *losses[:each].tolist()]
    assert len(axes.collections) == (0 if each else 1)
    assert f"median of {seeds} seeds, {told}." in words(figure)


def test_a_refined_sweep_has_a_line_for_each_seed_and_no_mean() -> None:
    """Its points have different seeds, and their means would jump."""
    cells = fake_cells([10], SNRS, seeds=3)
    cells = cells[(cells["seed"] == 0) | (cells["snr"] > 10)]
    assert "median of 1 to 3 seeds" in words(draw_lines(data_of(cells), LINES))
    figure = draw_lines(replace(data_of(cells), refined=True), LINES)
    drawn = [heights(line) for line in figure.axes[0].lines]
    by_seed = [part.sort_values("snr")["test_loss"] for _, part in cells.groupby("seed")]
    assert len(drawn) == len(by_seed)
    for line, losses in zip(drawn, by_seed, strict=True):
        np.testing.assert_allclose(line, losses)
    assert "a line for each seed" in words(figure)


def test_what_varies_with_x_makes_no_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    overfit_cli.sweep("toy", n=[1, 2, 3], snr="2*n", seeds=3, jobs=1, out="a", quiet=True)
    figure = overfit_cli.draw("lines", "a", x="n")
    drawn = [np.asarray(line.get_xdata()).tolist() for line in figure.axes[0].lines]
    assert [values for values in drawn if len(values) == 3] == [[1, 2, 3]]
    assert "Varying with n: snr." in figure.caption


@pytest.mark.slow
def test_a_parameter_that_goes_with_an_axis_leaves_a_map_two_axes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    overfit_cli.sweep(
        "toy", n=[1, 2, 3], snr="2*n", pause=[0.0, 1e-4], seeds=2, jobs=1, out="a", quiet=True
    )
    for x, y in ((None, None), ("pause", "n"), ("snr", "pause")):
        axes = overfit_cli.draw("heatmap", "a", x=x, y=y).axes[0]
        assert "time a cell takes" in axes.get_xlabel() + axes.get_ylabel()
    grid = ("--n=1,2,3", "--snr=2*n", "--set=pause=0,0.0001", "--jobs=1")
    command = call("sweep", "toy", *grid, cwd=tmp_path)
    following = shlex.split(command.stdout.rpartition("Next: overfit ")[2])
    call(*following, cwd=tmp_path)


def test_lines_of_one_seed_and_of_several_share_a_log_axis(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for seeds in (1, 3):
        overfit_cli.sweep(
            "toy", n=[1, 2], mood="well", snr=seeds, seeds=seeds, jobs=1, out="a", quiet=True
        )
    assert overfit_cli.draw("lines", "a", x="n", log="y", band="interval").axes


def test_ticks_of_narrow_panels_stand_clear_of_each_other() -> None:
    cells = fake_cells([2, 4, 8], [16.0, 64.0, 256.0, 1024.0, 4096.0])
    figure = draw_lines(data_of(cells), replace(LINES, by="n"))
    figure.draw_without_rendering()
    for axes in figure.axes:
        low, high = axes.get_xlim()
        ticks = zip(axes.get_xticks(), axes.get_xticklabels(), strict=True)
        boxes = [label.get_window_extent() for tick, label in ticks if low <= tick <= high]
        assert len(boxes) > 1
        assert all(left.x1 < right.x0 for left, right in pairwise(boxes))


def test_a_short_logarithmic_axis_has_three_ticks_or_more() -> None:
    cells = fake_cells([5], [1.0, 2.0, 4.0])
    cells["test_loss"] = cells["snr"].map({1.0: 1.05, 2.0: 0.6, 4.0: 0.22})
    [axes] = draw_lines(data_of(cells), replace(LINES, log=frozenset({"value"}))).axes
    low, high = axes.get_ylim()
    ticks = [tick for tick in axes.get_yticks() if low <= tick <= high]
    assert ticks == pytest.approx([0.3, 0.5, 0.7, 1.0])


X = np.linspace(0.0, 1.0, 200)


def draw(axes: Axes, heights: np.ndarray, shows: str, setting: str = "") -> None:
    [line] = axes.plot(X, heights, linewidth=1.0)
    name_line(line, shows, setting)


def two_panels() -> tuple[Figure, Axes, Axes]:
    figure = Figure()
    first, second = figure.subplots(1, 2, sharex=True, sharey=True)
    first.set_title("(a) one", loc="left")
    second.set_title("(b) other", loc="left")
    return figure, first, second


def test_lines_within_a_width_coincide_unless_one_ends_early_or_has_no_logarithm() -> None:
    axes = Figure().subplots()
    for x, y, is_hidden in ((X, X + 1e-4, True), (X, X**2, False), (X[:100], X[:100], False)):
        assert coincide(axes, axes.plot(X, X)[0], axes.plot(x, y)[0]) == is_hidden
    axes.set_yscale("log")
    [line], [zeros] = axes.plot(X, X + 1), axes.plot(X, 0 * X)
    with np.errstate(divide="ignore"):
        assert not coincide(axes, line, zeros)


def test_a_caption_says_in_which_panel_and_for_which_setting_lines_coincide() -> None:
    figure, first, second = two_panels()
    draw(first, X, "training", "m = 1")
    draw(first, X, "test", "m = 1")
    draw(second, X, "training", "m = 1")
    draw(second, 1 - X, "test", "m = 1")
    assert hidden_in_words(figure) == ["The lines of training and test coincide in (a)."]
    draw(first, 1 - X, "training", "m = 2")
    draw(first, X**3, "test", "m = 2")
    [sentence] = hidden_in_words(figure)
    assert sentence == "The lines of training and test coincide in (a), m = 1."


def test_what_coincides_in_all_panels_needs_no_place_and_other_lines_no_sentence() -> None:
    figure, *both = two_panels()
    for axes in both:
        draw(axes, X, "", "exp")
        draw(axes, X, "", "ReLU")
        axes.plot(X, X)
        draw(axes, 1 - X, "", "softmax")
    assert hidden_in_words(figure) == ["The lines of exp and ReLU coincide."]


def test_where_lines_part_in_few_of_many_cases_these_are_listed() -> None:
    figure = Figure()
    for letter, axes in zip("abc", figure.subplots(1, 3), strict=True):
        axes.set_title(f"({letter})", loc="left")
        for shows in ("training", "test"):
            draw(axes, X, shows, "H = 1")
            draw(axes, X**2 if (letter, shows) == ("c", "test") else X, shows, "H = 2")
    said = [sentence for sentence in hidden_in_words(figure) if "H = 1 and H = 2" in sentence]
    assert said == ["The lines of H = 1 and H = 2 coincide in all but (c), test."]
