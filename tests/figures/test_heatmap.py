from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import PolyCollection, QuadMesh
from matplotlib.colors import LogNorm
from matplotlib.contour import QuadContourSet
from matplotlib.figure import Figure

from overfit_cli import Column, UserError
from overfit_cli.core.figure import FigureOptions
from overfit_cli.core.study import FigureData
from overfit_cli.figures.axes import Axis
from overfit_cli.figures.heatmap import draw_map
from overfit_cli.figures.picture import styled
from tests.fake_study import (
    LAW,
    NS,
    OPTIONS,
    SIDES,
    SNRS,
    FakeStudy,
    data_of,
    draw_boundary,
    draw_cutoff,
    draw_heatmap,
    fail,
    fake_cells,
    prose,
    titles,
    words,
)

Draw = Callable[[FigureData, FigureOptions], Figure]


def hatched(figure: Figure) -> dict[str, int]:
    collections = figure.axes[0].collections
    polygons = [found for found in collections if isinstance(found, PolyCollection)]
    return {str(found.get_label()): len(found.get_paths()) for found in polygons}


def colours(figure: Figure) -> QuadMesh:
    (mesh,) = (each for each in figure.axes[0].collections if isinstance(each, QuadMesh))
    return mesh


def printed(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.axes[0].texts]


def test_a_heatmap_says_what_it_shows(cells: pd.DataFrame) -> None:
    text = words(draw_heatmap(data_of(cells), OPTIONS))
    over = "Test loss over signal-to-noise ratio SNR and training samples N: median of 3 seeds."
    for line in (over, "\ntest loss\n", "\ntraining samples N\n"):
        assert line in text
    assert "failed" not in text
    assert "missing" not in text
    for value, label in (("steps", "gradient steps"), ("seconds", "time (s)")):
        text = words(draw_heatmap(data_of(cells), replace(OPTIONS, value=value)))
        assert f"\n{label}\n" in text
        assert f"{label.capitalize()} over" in text


def test_a_heatmap_has_x_to_the_right_and_y_upward_and_averages_seeds() -> None:
    """With whole cells around the values; an axis that is spaced by ratio is logarithmic."""
    cells = fake_cells([1, 2, 3], [5.0, 6.0], seeds=2)
    cells["test_loss"] = cells["n"] * 10 + cells["snr"] + cells["seed"]
    figure = draw_heatmap(data_of(cells), OPTIONS)
    assert shown(figure).tolist() == [[15.5, 16.5], [25.5, 26.5], [35.5, 36.5]]
    assert figure.axes[0].get_ylim() == (0.5, 3.5)
    assert figure.axes[0].get_xlim() == (4.5, 6.5)
    corners = np.asarray(colours(figure).get_coordinates())
    assert (corners[..., 0].min(), corners[..., 0].max()) == (4.5, 6.5)
    [axes, _] = draw_heatmap(data_of(fake_cells([1, 2, 4, 8], [1.0, 2.0, 3.0])), OPTIONS).axes
    assert (axes.get_xscale(), axes.get_yscale()) == ("linear", "log")
    assert axes.get_ylim() == pytest.approx((0.5**0.5, 8 * 2**0.5))
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["1", "2", "4", "8"]


def contour(figure: Figure) -> np.ndarray:
    """The points of the threshold's contour, (points, 2); none without one."""
    found = [one for one in figure.axes[0].collections if isinstance(one, QuadContourSet)]
    return np.concatenate([part for one in found for part in one.allsegs[0]] or [np.empty((0, 2))])


def test_the_contour_of_the_threshold_lies_where_the_means_cross(cells: pd.DataFrame) -> None:
    """Between rows that stand far apart it is straight from crossing to crossing."""
    figure = draw_heatmap(data_of(cells), SIDES)
    snr, n = contour(figure).T
    assert snr.size > 20
    np.testing.assert_allclose(n * snr**2, 1000, rtol=0.06)  # it is interpolated between cells
    assert "\ntest loss = 0.2\n" in words(figure)
    snrs = np.geomspace(3.0, 16.0, 12).tolist()
    figure = draw_heatmap(data_of(fake_cells([5, 20, 80], snrs)), SIDES)
    [line] = [line for line in figure.axes[0].lines if line.get_marker() == "o"]
    assert np.asarray(line.get_ydata()).tolist() == [5, 20, 80]
    assert not contour(figure).size
    assert "straight between the crossings at each" in prose(figure)


def test_the_contour_is_that_of_a_studys_own_headline_if_none_is_asked_for(
    cells: pd.DataFrame,
) -> None:
    assert not contour(draw_heatmap(data_of(cells), OPTIONS)).size
    with pytest.warns(UserWarning, match="no contour: the means don't cross test loss = 0.9"):
        figure = draw_heatmap(data_of(cells), replace(SIDES, threshold=0.9))
    assert not contour(figure).size
    assert "test loss =" not in words(figure)
    data = replace(data_of(cells), study=Headed())
    assert "\ntest loss = 0.3\n" in words(draw_heatmap(data, OPTIONS))
    other = draw_heatmap(data, replace(OPTIONS, value="steps"))
    assert not contour(other).size, "its threshold is about its headline"


class Headed(FakeStudy):
    """A study that says where its headline changes sides."""

    threshold = 0.3


@pytest.mark.slow
def test_failed_and_missing_places_are_hatched_and_counted(cells: pd.DataFrame) -> None:
    some = fail(cells, (cells["n"] == 20) & (cells["snr"] < 4.5))
    some = some[~((some["n"] == 2) & (some["snr"] > 23.5))]
    figure = draw_heatmap(data_of(some, cells), OPTIONS)
    assert hatched(figure) == {"lost": 4, "missing": 2}
    text = words(figure)
    assert "diverged: half the seeds or more (4)" in text
    assert "missing (2)" in text


def test_holes_of_the_grid_and_planned_rows_that_have_not_run_are_missing(
    cells: pd.DataFrame,
) -> None:
    some = cells[~((cells["n"] == 10) & (cells["snr"] == 10))]
    assert hatched(draw_heatmap(data_of(some), OPTIONS)) == {"missing": 1}
    figure = draw_heatmap(data_of(cells[cells["n"] < 20], cells), OPTIONS)
    assert hatched(figure) == {"missing": len(SNRS)}


def test_a_column_that_no_miss_makes_infinite_says_why_cells_have_none(cells: pd.DataFrame) -> None:
    """A change of weights isn't beyond the others where a cell misses, as its steps are."""

    class Drift(FakeStudy):
        columns = (*FakeStudy.columns, Column("drift", "change of weights"))

    some = fail(cells, cells["n"] == 20)
    some["reason"] = some["reason"].replace("diverged", "step limit")
    some["drift"] = some["snr"].where(some["status"] == "done")
    data = replace(data_of(some), study=Drift())
    text = words(draw_heatmap(data, replace(OPTIONS, value="drift")))
    assert "target not reached: half the seeds or more (25)" in text
    assert "75 cells without a number (target not reached) left out" in text
    assert "failed" not in text


def shown(figure: Figure) -> np.ndarray:
    """The numbers of the cells; nan where one has none."""
    return np.ma.filled(np.ma.asarray(colours(figure).get_array(), dtype=np.float64), np.nan)


STEPS = replace(OPTIONS, value="steps")


def of_ten_seeds(missed: int) -> pd.DataFrame:
    """Steps over two n and two SNR, 100, 101, ... of ten seeds, of which some miss at the first."""
    cells = fake_cells([1, 2], [1.0, 2.0], seeds=10)
    cells["steps"] = 100 + cells["seed"] + 100 * (cells["n"] == 2)
    return fail(cells, (cells["n"] == 1) & (cells["snr"] == 1) & (cells["seed"] < missed))


def test_a_missed_seed_counts_as_beyond_the_others_in_the_median_of_all() -> None:
    """A mean over all has no number there."""
    some = of_ten_seeds(4)
    some.loc[some["reason"].ne("") & (some["seed"] == 0), "reason"] = "step limit"
    figure = draw_heatmap(data_of(some), STEPS)
    assert shown(figure)[0, 0] == (108 + 109) / 2, "the median of 104 to 109 and four beyond"
    assert printed(figure) == ["108\n6/10", "104\n100–109", "204\n200–209", "204\n200–209"]
    text = prose(figure)
    assert "below: least–greatest of the seeds" in text
    assert "median of 10 seeds. 4 cells (target not reached or diverged) count as" in text
    assert "hatched" not in text
    assert "; 6 of 10 seeds have one at SNR = 1, N = 1." in text
    mean = draw_heatmap(data_of(of_ten_seeds(1)), replace(STEPS, mean="arithmetic"))
    assert np.isnan(shown(mean)[0, 0])
    assert shown(mean)[1, 0] == 204.5


def test_a_place_that_half_of_the_seeds_miss_has_no_colour_but_their_number() -> None:
    half = of_ten_seeds(5).replace({"reason": {"diverged": "step limit"}})
    figure = draw_heatmap(data_of(half), STEPS)
    assert np.isnan(shown(figure)[0, 0])
    assert hatched(figure) == {"lost": 1}
    assert "5/10" in printed(figure)
    text = prose(figure)
    assert "target not reached: half the seeds or more (1)" in text
    assert "all at the 1 hatched point, where half of the seeds or more" in text


def test_places_too_small_for_a_number_have_a_corner_where_seeds_missed(
    cells: pd.DataFrame,
) -> None:
    """It has one shape, whatever the cells have."""
    some = fail(cells, (cells["seed"] == 1) & (cells["n"] == 2) & (cells["snr"] < 5.5))
    figure = draw_heatmap(data_of(some), OPTIONS)
    assert hatched(figure) == {"partly": 5}
    assert not printed(figure)
    text = words(figure)
    assert "diverged: fewer seeds (5)" in text
    assert "5 cells (diverged) count as beyond the others." in text
    [corners] = [one for one in figure.axes[0].collections if isinstance(one, PolyCollection)]
    for path in corners.get_paths():
        width, height = np.ptp(corners.get_transform().transform(path.vertices), axis=0)
        assert width == pytest.approx(height)


def test_a_small_map_has_its_numbers_and_colours_by_ratio_from_a_factor_of_ten() -> None:
    cells = fake_cells([1, 2], [1.0, 2.0])
    for factor in (9, 11):
        loss = 1.0 + (factor - 1) * (cells["n"] == 2)
        figure = draw_heatmap(data_of(cells.assign(test_loss=loss)), OPTIONS)
        assert printed(figure) == ["1", "1", str(factor), str(factor)]
        assert isinstance(colours(figure).norm, LogNorm) == (factor > 10)


def test_a_map_of_one_colour_or_half_without_a_number_says_nothing(cells: pd.DataFrame) -> None:
    assert draw_heatmap(data_of(cells), OPTIONS).nothing == ""
    flat = draw_heatmap(data_of(cells.assign(test_loss=0.5)), OPTIONS)
    assert flat.nothing == "all of it has one colour"
    half = draw_heatmap(data_of(fail(cells, cells["n"] > 10)), OPTIONS)
    assert half.nothing == "half of it or more has no number"
    assert draw_cutoff(data_of(cells), replace(SIDES, threshold=9.0)).nothing


@pytest.mark.slow
def test_what_a_law_measures_stands_above_each_panel_where_it_differs() -> None:
    parts = [fake_cells(NS, SNRS, width=width) for width in (64, 128)]
    law = replace(SIDES, by="width", law=("n * snr**2 = width * 10",))
    figure = draw_heatmap(data_of(pd.concat(parts)), law)
    for title, start in zip(titles(figure), ("(a) width = 64", "(b) width = 128"), strict=True):
        measured = re.fullmatch(re.escape(start) + r": measured (\d+)", title)
        assert measured is not None
        assert abs(int(measured[1]) - 1000) < 60
    assert "= 640, 1280" in words(figure)


def test_a_refined_row_fills_its_own_gaps(cells: pd.DataFrame) -> None:
    finer = fake_cells([10], [9.5, 10.5])
    figure = draw_heatmap(data_of(pd.concat([cells, finer]), cells), OPTIONS)
    assert hatched(figure) == {}
    row, at = shown(figure)[0], sorted([*SNRS, 9.5, 10.5]).index(9.5)
    assert row[at] in (row[at - 1], row[at + 1])
    assert row[at - 1] != row[at + 1]


def test_few_uneven_values_have_cells_of_one_width_unless_their_places_count() -> None:
    """They count where a law or an overlay is drawn, which leaves no room for numbers."""
    data = data_of(fake_cells([1, 2], [1.0, 2.0, 4.0, 5.0]))
    even, law, overlaid = (
        draw_heatmap(data, OPTIONS),
        draw_heatmap(data, replace(OPTIONS, law=("snr = 3",))),
        styled(draw_map)(data, OPTIONS, lambda axes, part: []),
    )
    sides = [np.asarray(colours(one).get_coordinates())[0, :, 0] for one in (even, law, overlaid)]
    assert np.diff(sides[0]).tolist() == [1, 1, 1, 1]
    for at in sides[1:]:
        assert at.tolist() == [0.5, 1.5, 3.0, 4.5, 5.5], "midway between neighbours"
    assert not overlaid.axes[0].texts


@pytest.mark.parametrize("ns", [NS, list(range(5, 17)), list(range(30, 39)), [1, 2], [3, 4, 5]])
@pytest.mark.one_in(3)
def test_whole_numbers_get_whole_ticks(ns: list[int]) -> None:
    figure = draw_heatmap(data_of(fake_cells(ns, SNRS, seeds=1)), OPTIONS)
    words(figure)
    axes = figure.axes[0]
    low, high = axes.get_ylim()
    ticks = [at for at in axes.get_yticks() if low <= at <= high]
    assert len(ticks) >= 2
    assert all(at == round(at) for at in ticks)


def test_few_values_are_labelled_each_in_three_digits_if_there_is_room() -> None:
    def labels(snrs: list[float], **options: object) -> list[str]:
        data, asked = data_of(fake_cells([1, 2], snrs)), replace(OPTIONS, **options)  # type: ignore[arg-type]
        return [tick.get_text() for tick in draw_heatmap(data, asked).axes[0].get_xticklabels()]

    close = [1.0, 4.0, 4.1, 16.0]
    assert labels(np.linspace(0.1, 16, 5).tolist()) == ["0.1", "4.08", "8.05", "12", "16"]
    assert labels(close) == ["1", "4", "4.1", "16"]
    assert "4.1" not in labels(close, law=("snr = 2",)), "its positions count"


def test_many_numbers_that_double_have_ticks_at_some_of_them() -> None:
    widths = [8 * 2**power for power in range(10)]
    axes = Figure().subplots()
    Axis("m", "m", tuple(widths), "log", whole=True).dress(axes, "y")
    assert axes.get_yticks().tolist() == widths[::2]


def test_words_can_be_an_axis_in_the_order_of_their_declaration() -> None:
    both = pd.concat([fake_cells([10], SNRS, kernel=k) for k in ("gaussian", "softmax")])
    figure = draw_heatmap(data_of(both), replace(OPTIONS, y="kernel"))
    labels = [tick.get_text() for tick in figure.axes[0].get_yticklabels()]
    assert labels == ["softmax", "gaussian"]
    with pytest.raises(UserError, match="'kernel' is neither an axis nor a constant here; known"):
        draw_heatmap(data_of(both), replace(OPTIONS, y="kernel", law=("kernel=1",)))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"x": "test_loss"}, "x='test_loss': fake has no parameter 'test_loss'"),
        ({"x": None}, "x: name the parameter on this axis; n and snr vary."),
        ({"value": "snr"}, "value='snr': fake measures no 'snr'"),
    ],
)
def test_what_a_heatmap_cannot_show_is_refused(
    cells: pd.DataFrame, change: dict[str, object], sentence: str
) -> None:
    with pytest.raises(UserError) as refused:
        draw_heatmap(data_of(cells), replace(OPTIONS, **change))  # type: ignore[arg-type]
    assert sentence in str(refused.value)


@pytest.mark.parametrize("draw", [draw_heatmap, draw_boundary])
def test_a_third_parameter_is_never_averaged_over_silently(cells: pd.DataFrame, draw: Draw) -> None:
    both = pd.concat([cells, fake_cells(NS, SNRS, width=128)])
    with pytest.raises(UserError, match=r"x='snr': y is n, width varies too \(64, 128\)"):
        draw(data_of(both), SIDES)


def test_a_third_parameter_makes_panels_in_the_same_colours() -> None:
    """Of which one without a number is all missing."""
    gaussian, softmax = (fake_cells(NS, SNRS, kernel=name) for name in ("gaussian", "softmax"))
    gaussian["test_loss"] *= 0.5
    options = replace(OPTIONS, by="kernel", law=(LAW,))
    figure = draw_heatmap(data_of(pd.concat([gaussian, softmax])), options)
    panels = figure.axes[:2]
    meshes = [found for axes in panels for found in axes.collections if isinstance(found, QuadMesh)]
    assert titles(figure) == ["(a) kernel: softmax", "(b) kernel: gaussian"], "as declared"
    assert all(axes.lines for axes in panels), "the law is drawn in every panel"
    assert len(meshes) == 2
    assert len({(mesh.norm.vmin, mesh.norm.vmax) for mesh in meshes}) == 1
    assert words(figure).count("median of 3 seeds") == 1
    lost = fail(gaussian, gaussian["n"] > 0)
    figure = draw_heatmap(data_of(pd.concat([lost, softmax])), options)
    collections = [found for axes in figure.axes for found in axes.collections]
    polygons = [found for found in collections if isinstance(found, PolyCollection)]
    assert [len(found.get_paths()) for found in polygons] == [len(NS) * len(SNRS)]
