"""Maps of a column in colours or by sides, boundaries with their law, and what is over bounds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import LogNorm

from overfit_cli import Column, UserError
from overfit_cli.core.figure import FigureOptions, bounds_figure
from overfit_cli.core.options import Mean
from overfit_cli.figures.picture import Picture, drawn_numbers
from tests import fake_study as fake

CELLS = fake.fake_cells(fake.NS, fake.SNRS)


def marks(figure: Picture) -> dict[str, int]:
    """The number of hatched points, whose outlines have five points, and of those with a corner."""
    counts = drawn_numbers(figure)["label"].value_counts()
    sizes = {"lost": 5, "missing": 5, "partly": 1}
    return {mark: counts[mark] // size for mark, size in sizes.items() if mark in counts}


def contour(figure: Picture) -> np.ndarray:
    """The points of the threshold's contour, (points, 2); none without one."""
    return drawn_numbers(figure).query("element == 'contour'")[["x", "y"]].to_numpy()


def of_ten_seeds(missed: int, reason: str = "diverged") -> pd.DataFrame:
    """Steps over two n and two SNR, 100, 101, ... of ten seeds, of which some miss at the first."""
    cells = fake.fake_cells([1, 2], [1.0, 2.0], seeds=10)
    cells["steps"] = 100 + cells["seed"] + 100 * (cells["n"] == 2)
    return fake.fail(cells, f"n == 1 and snr == 1 and seed < {missed}", reason)


NAMED = fake.data_of(CELLS, study=fake.NamedSides())
NOISY = fake.fake_cells(fake.NS, fake.SNRS, seeds=5, noise=0.1)
KERNELS = pd.concat([fake.fake_cells([10], fake.SNRS, kernel=k) for k in ("gaussian", "softmax")])
FAR_ROWS = fake.fake_cells([1, 2, 8, 10, 12, 900], fake.SNRS[2:21])
WITHOUT_ONE = CELLS.query("n != 10 or snr != 10")
NOT_PLANNED = fake.data_of(pd.concat([CELLS, fake.fake_cells([10], [9.5, 10.5])]), CELLS)
FEW_LOST = fake.fail(CELLS, "seed == 1 and n == 2 and snr < 5.5")
HOLES = fake.data_of(fake.fail(CELLS, "n == 20 and snr < 4.5").query("n != 2 or snr < 23.5"), CELLS)
FIRST, ERROR = "seed == 0 and snr == 1 and n ==", "error: ValueError: boom"
ONE_OF_EACH = fake.fail(fake.fail(CELLS, f"{FIRST} 2"), f"{FIRST} 10", ERROR)
BEYOND = "5 cells (diverged) taken as beyond the others."
STEPS, OF_MEANS = {"value": "steps"}, {"value": "steps", "mean": "arithmetic"}
FEWER, REACHED = "diverged: fewer seeds", "target not reached: half the seeds or more"
ONE_OF_TEN = "diverged: one seed or more (1) … mean of 10 seeds"
TAKEN_OR_NOT = "1 cell (diverged) taken as beyond the others. … 1 cell (failed) left out."
TWO_FAILURES = f"{TAKEN_OR_NOT} … failed or diverged: fewer seeds (2)"
LABELS = (
    "\ntest loss (median)\n … \ntraining samples N\n … signal-to-noise ratio SNR and training "
    "samples"
)
NAMES = "\nbenign: test loss ≤ 0.2\n … \nharmful: test loss > 0.2\n … \nbenign\n"
CROSSED = "Where test loss crosses 0.2, for each value of training samples N: median of 5"
OF_FIVE = f"{CROSSED} … Test loss of 0.2: median of 5 seeds, least to greatest … N·SNR² = 1000"
UNSAID = "throughout … no fit … beyond the grid … 95 % interval"
OF_ONE = "Test loss of 0.2: one seed … no fit of N·SNR^p = C: too few points"
THROUGHOUT = "N = 1, 2: above 0.2 throughout. … N = 900: below 0.2 throughout."
CROSSINGS = fake.fake_cells([*range(5, 15), 20, 40], fake.SNRS, seeds=6)
FEW: Any = CROSSINGS.eval("n == 5 and seed < 2 or n == 6 and seed < 1 or n > 6")
CROSSINGS["test_loss"] = CROSSINGS["test_loss"].where(FEW, 0.6)
RISES = fake.fake_cells([1, 2], [1.0, 2.0], seeds=1).assign(test_loss=[1, 2, 3, 4])
SOARS = RISES.assign(test_loss=[1, 2, 50, 100])
SIX = fake.fake_cells(fake.NS, fake.SNRS, seeds=6)
ONE = fake.fake_cells([5, 10], fake.SNRS, seeds=1)


@pytest.mark.parametrize(
    ("figure", "options", "cells", "said", "unsaid", "marked"),
    [
        ("heatmap", {}, CELLS, LABELS, "failed … missing … test loss =", {}),
        ("heatmap", STEPS, CELLS, "\ngradient steps (median)\n … Gradient steps", "", {}),
        ("cutoff", {}, NAMED, NAMES, "", {}),
        ("cutoff", {**STEPS, "threshold": 15}, NAMED, "gradient steps ≤ 15", "benign", {}),
        ("cutoff", {"threshold": 0.6995}, NAMED, "", "\nharmful\n", {}),
        ("cutoff", {"threshold": None}, RISES, "test loss > 2.5", "", {}),
        ("cutoff", {"threshold": None}, SOARS, "test loss > 10", "", {}),
        ("boundary", {"law": (fake.LAW,)}, NOISY, OF_FIVE, UNSAID, {}),
        ("boundary", {}, SIX, "median of 6 seeds, 95 % interval", "least to", {}),
        ("boundary", {}, ONE, OF_ONE, "Dashed", {}),
        ("boundary", {}, FAR_ROWS, THROUGHOUT, "beyond the grid", {}),
        ("boundary", {}, CROSSINGS, "N = 5, 6: median beyond the grid.", "", {}),
        ("heatmap", {}, HOLES, "half the seeds or more (4)", FEWER, {"lost": 4, "missing": 2}),
        ("heatmap", {}, WITHOUT_ONE, "missing (1)", "failed", {"missing": 1}),
        ("heatmap", {}, NOT_PLANNED, "", "missing", {}),  # between them
        ("heatmap", {}, FEW_LOST, f"{FEWER} (5) … {BEYOND}", "half the seeds", {"partly": 5}),
        ("heatmap", STEPS, of_ten_seeds(5, "step limit"), f"{REACHED} (1)", "fewer", {"lost": 1}),
        ("heatmap", OF_MEANS, of_ten_seeds(1), ONE_OF_TEN, "beyond the", {"lost": 1}),
        ("heatmap", {}, ONE_OF_EACH, TWO_FAILURES, "or no number", {"partly": 2}),
    ],
)
def test_a_map_or_boundary_says_what_it_shows_and_marks_what_it_lacks(
    figure: str, options: Any, cells: Any, said: str, unsaid: str, marked: dict[str, int]
) -> None:
    """Where no threshold is named, a cutoff is in the middle, by ratio of a wide range."""
    picture = fake.draw(figure, cells, **options)
    assert not fake.untold(picture, said, unsaid)
    assert marks(picture) == marked


def test_a_heatmap_has_x_to_the_right_and_y_upward_and_averages_seeds() -> None:
    """With whole cells around the values."""
    cells = fake.fake_cells([1, 2, 3], [5.0, 6.0], seeds=2)
    cells["test_loss"] = cells["n"] * 10 + cells["snr"] + cells["seed"]
    figure = fake.draw("heatmap", cells)
    assert fake.map_of(figure).tolist() == [[15.5, 16.5], [25.5, 26.5], [35.5, 36.5]]
    assert (figure.axes[0].get_xlim(), figure.axes[0].get_ylim()) == ((4.5, 6.5), (0.5, 3.5))
    corners: Any = figure.axes[0].collections[0]
    assert corners.get_coordinates()[0, :, 0].tolist() == [4.5, 5.5, 6.5]


def test_the_statistic_is_over_all_seeds() -> None:
    """The median of all has those that miss beyond the others; a mean without all is no number."""
    cases: list[tuple[Mean | None, int, float]] = [
        (None, 4, 108.5),  # the median of 104 to 109, and four beyond
        ("median", 5, np.nan),
        ("arithmetic", 0, 104.5),
        ("arithmetic", 1, np.nan),
        ("geometric", 0, np.exp(np.log(np.arange(100, 110)).mean())),
    ]
    for mean, missed, number in cases:
        figure = fake.draw("heatmap", of_ten_seeds(missed), value="steps", mean=mean)
        assert fake.map_of(figure)[0, 0] == pytest.approx(number, nan_ok=True)
        assert fake.map_of(figure)[1, 0] == pytest.approx(204.5, abs=0.1)


class Headed(fake.FakeStudy):
    """A study that says where its headline changes sides."""

    threshold = 0.3


def test_the_contour_of_the_threshold_lies_where_the_means_cross() -> None:
    """That of a study is about its headline."""
    figure = fake.draw("heatmap", CELLS, threshold=0.2)
    snr, n = contour(figure).T
    assert snr.size > 20
    np.testing.assert_allclose(n * snr**2, 1000, rtol=0.06)  # it is interpolated between cells
    assert not fake.untold(figure, "\ntest loss = 0.2\n")
    with pytest.warns(UserWarning, match="no contour: the means don't cross test loss = 0.9"):
        nowhere = fake.draw("heatmap", CELLS, threshold=0.9)
    headed = fake.data_of(CELLS, study=Headed())
    assert not fake.untold(fake.draw("heatmap", headed), "\ntest loss = 0.3\n")
    others = fake.draw("heatmap", CELLS), fake.draw("heatmap", headed, value="steps")
    assert [contour(each).size for each in (nowhere, *others)] == [0, 0, 0]


def test_a_small_map_has_its_numbers_and_colours_by_ratio_from_a_factor_of_ten() -> None:
    cells = fake.fake_cells([1, 2], [1.0, 2.0])
    for factor in (9, 11):
        figure = fake.draw("heatmap", cells.assign(test_loss=cells["n"].map({1: 1.0, 2: factor})))
        texts = [text.get_text() for text in figure.axes[0].texts]
        assert texts == ["1", "1", str(factor), str(factor)]
        assert isinstance(figure.axes[0].collections[0].norm, LogNorm) == (factor > 10)
    assert not fake.draw("heatmap", CELLS).axes[0].texts


def test_a_map_of_one_colour_or_half_without_a_number_says_nothing() -> None:
    flat, half = CELLS.assign(test_loss=0.5), fake.fail(CELLS, "n > 10")
    assert fake.draw("heatmap", CELLS).nothing == fake.draw("cutoff", CELLS).nothing == ""
    for figure in (fake.draw("heatmap", flat), fake.draw("cutoff", CELLS, threshold=9.0)):
        assert figure.nothing == "all of it has one colour"
    assert fake.draw("heatmap", half).nothing == "half of it or more has no number"


def test_words_can_be_an_axis_in_the_order_of_their_declaration() -> None:
    [axes, _] = fake.draw("heatmap", KERNELS, y="kernel").axes
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["softmax", "gaussian"]


def test_a_heatmap_colours_sampled_places_alone_by_their_medians() -> None:
    """A coarse grid of two seeds, and six seeds of each row near its own crossing."""
    ns = [2, 4, 8, 12, 16, 20]
    rows = [fake.fake_cells(ns, np.linspace(1, 25, 9).tolist(), seeds=2, noise=0.3)]
    for n in ns:
        near = [round(float(np.sqrt(1000 / n)) * factor, 3) for factor in (0.8, 0.9, 1.1, 1.25)]
        rows.append(fake.fake_cells([n], near, seeds=6, noise=0.3))
    data = fake.as_refined(fake.data_of(pd.concat(rows).query("snr <= 25")))
    figure = fake.draw("heatmap", data)
    median = data.trained.groupby(["snr", "n"])["test_loss"].median()
    dots = drawn_numbers(figure).query("element == 'points'").set_index(["x", "y"])["value"]
    np.testing.assert_allclose(dots.sort_index(), median)
    assert sorted(dots.index) == sorted(median.index)
    assert not fake.untold(figure, "", "missing … \nsampled\n"), "all that has a colour is sampled"
    assert fake.map_of(fake.draw("heatmap", fake.as_refined(data, refined=False))).size


# Bounds: what was measured over them, cell by cell

SIXTEEN = fake.fake_cells([5, 10], [1.0, 2.0], seeds=4)
"""Sixteen cells with a training loss of 0.01."""


class Logarithms(fake.FakeStudy):
    """A study whose test loss is a logarithm over a bound."""

    columns = (fake.FakeStudy.columns[0], Column("test_loss", "test loss", decades=True))


def over_bounds(rows: Mapping[str, str], cells: pd.DataFrame = SIXTEEN, *told: str) -> Picture:
    figure = bounds_figure(rows, told)
    data = fake.data_of(cells, study=Logarithms())
    picture: Picture = figure.draw(data, FigureOptions())
    return picture


def shown(picture: Picture, *, hollow: bool = False) -> list[float]:
    """How far along the axis points stand, in order; open ones, or full ones."""
    lines = [line for line in picture.axes[0].lines if line.get_linestyle() == "None"]
    chosen = [line for line in lines if (line.get_markerfacecolor() == "none") == hollow]
    return sorted(float(x) for line in chosen for x in np.asarray(line.get_xdata()))


ZEROS = SIXTEEN.assign(train_loss=np.where(SIXTEEN["seed"] == 0, 0.0, 0.01))
UNMET = "train_loss <= 0.1 if snr * 0 + 1000 <= 1 and n <= 10"
VACUOUS = "0.1, vacuous … Theorem 1 is vacuous: no cell meets its hypotheses; decades missing, in"


@pytest.mark.parametrize(
    ("name", "bound", "cells", "full", "hollow", "said"),
    [
        ("a", "train_loss <= 2 * n * 0.01 where n = 5", SIXTEEN, [0.1] * 8, 0, "\n0.1\n"),
        ("a", "test_loss <= 0", SIXTEEN.assign(test_loss=-2.0), [0.01] * 16, 0, ""),
        ("a", "test_loss <= 0", SIXTEEN.assign(test_loss=-400.0), [1e-300] * 16, 0, ""),
        ("a", "train_loss <= 0.1 if n <= 5", SIXTEEN, [0.1] * 8, 8, "hypotheses not met"),
        ("a", "train_loss <= 1", ZEROS, [0.01] * 12, 0, "a: 4 numbers at 0 or less not shown."),
        ("Theorem\n1", UNMET, SIXTEEN, [], 16, f"{VACUOUS} … snr * 0 + 1000 <= 1 by 3; n <= 10 by"),
    ],
)
def test_points_stand_at_the_ratio_and_logarithms_at_their_powers(
    name: str, bound: str, cells: pd.DataFrame, full: list[float], hollow: int, said: str
) -> None:
    """Cells that miss a hypothesis have open markers; a bound whose none meets is vacuous."""
    picture = over_bounds({name: bound}, cells)
    assert shown(picture) == pytest.approx(full, rel=1e-9)
    assert len(shown(picture, hollow=True)) == hollow
    assert not fake.untold(picture, said, "" if bound == UNMET else "vacuous")


def test_the_first_two_parameters_that_vary_are_told_apart() -> None:
    picture = over_bounds({"loss": "train_loss <= 1"}, SIXTEEN, "width", "snr", "n")
    lines = [line for line in picture.axes[0].lines if len(np.asarray(line.get_xdata())) == 4]
    looks = {(line.get_color(), line.get_marker()) for line in lines}
    assert len(looks) == 4
    assert not fake.untold(picture, "SNR = 1 … SNR = 2 … N = 5 … N = 10")


def test_rows_without_cells_or_columns_are_left_out_and_a_figure_of_none_is_refused() -> None:
    older = SIXTEEN.drop(columns="test_loss")
    rows = {"one": "train_loss <= 1", "two": "test_loss <= 1", "three": "train_loss <= 1 where n=7"}
    picture = over_bounds(rows, older)
    assert [label.get_text() for label in picture.axes[0].get_yticklabels()] == ["one"]
    none: dict[str, Any] = {"two": rows["two"]}
    assert not bounds_figure(none).fits(fake.data_of(older))
    with pytest.raises(UserError, match="No cell here has a number over one of these bounds"):
        over_bounds(none, older)
    for wrong in ("train_loss", "trian_loss <= 1"):
        with pytest.raises(UserError, match=r"no comparison of two sides|trian_loss"):
            over_bounds({"one": wrong})
