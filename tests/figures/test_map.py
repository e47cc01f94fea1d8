"""Maps of a column over two parameters, in colours or by sides, and boundaries with their law."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import PathCollection, PolyCollection, QuadMesh
from matplotlib.colors import LogNorm, to_hex
from matplotlib.contour import QuadContourSet
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from overfit_cli import Column, UserError
from overfit_cli.core.cells import Cells
from overfit_cli.core.options import Mean
from overfit_cli.figures.inputs import side_by_side
from overfit_cli.figures.map import draw_map
from overfit_cli.figures.picture import styled
from overfit_cli.figures.style import MUTED
from overfit_cli.stats.boundaries import crossings, medians_by_row
from tests.fake_study import (
    LAW,
    NS,
    OPTIONS,
    SNRS,
    FakeStudy,
    NamedSides,
    as_refined,
    data_of,
    draw,
    fail,
    fake_cells,
    fake_loss,
    points,
    titles,
    untold,
    words,
)

CELLS = fake_cells(NS, SNRS)


def mesh(figure: Figure, place: int = 0) -> QuadMesh:
    (found,) = (one for one in figure.axes[place].collections if isinstance(one, QuadMesh))
    return found


def edges(figure: Figure) -> np.ndarray:
    """The corners of the cells of a map: x and y, (rows + 1, columns + 1, 2)."""
    return np.asarray(mesh(figure).get_coordinates())


def shown(figure: Figure, place: int = 0) -> np.ndarray:
    """The numbers of the cells; nan where one has none."""
    return np.ma.filled(np.ma.asarray(mesh(figure, place).get_array(), dtype=np.float64), np.nan)


def marks(figure: Figure) -> dict[str, int]:
    """The number of hatched points and of corners of the first panel."""
    axes = figure.axes[0]
    hatches = [each for each in axes.collections if isinstance(each, PolyCollection)]
    found = {str(each.get_label()): len(each.get_paths()) for each in hatches}
    corners = {str(line.get_label()): np.size(line.get_xdata()) for line in axes.lines}
    return found | {label: count for label, count in corners.items() if label == "partly"}


def contour(figure: Figure) -> np.ndarray:
    """The points of the threshold's contour, (points, 2); none without one."""
    found = [one for one in figure.axes[0].collections if isinstance(one, QuadContourSet)]
    return np.concatenate([part for one in found for part in one.allsegs[0]] or [np.empty((0, 2))])


def of_ten_seeds(missed: int, reason: str = "diverged") -> pd.DataFrame:
    """Steps over two n and two SNR, 100, 101, ... of ten seeds, of which some miss at the first."""
    cells = fake_cells([1, 2], [1.0, 2.0], seeds=10)
    cells["steps"] = 100 + cells["seed"] + 100 * (cells["n"] == 2)
    return fail(cells, f"n == 1 and snr == 1 and seed < {missed}", reason)


class Drift(FakeStudy):
    columns = (*FakeStudy.columns, Column("drift", "change of weights"))


def of_drift() -> Cells:
    """A change of weights, which isn't beyond the others where a cell misses."""
    some = fail(CELLS, "n == 20", "step limit")
    some["drift"] = some["snr"].where(some["status"] == "done")
    return data_of(some, study=Drift())


def with_few_crossings() -> pd.DataFrame:
    """Of six seeds two cross at N = 5, and one at N = 6."""
    cells = fake_cells([*range(5, 15), 20, 40], SNRS, seeds=6)
    above: Any = cells.eval("n == 5 and seed >= 2 or n == 6 and seed >= 1")
    return cells.assign(test_loss=cells["test_loss"].mask(above, 0.6))


NAMED = data_of(CELLS, study=NamedSides())
NOISY = fake_cells(NS, SNRS, seeds=5, noise=0.1)
WIDE = pd.concat([fake_cells(NS, SNRS, width=width) for width in (64, 128)])
WIDTHS = pd.concat([fake_cells([5, 10], SNRS, seeds=1, width=2**k) for k in range(9)])
KERNELS = pd.concat([fake_cells([10], SNRS, kernel=k) for k in ("gaussian", "softmax")])
FAR_ROWS = fake_cells([1, 2, 8, 10, 12, 900], SNRS[2:21])
WITHOUT_ONE = CELLS.query("n != 10 or snr != 10")
WITHOUT_ROW = data_of(CELLS[CELLS["n"] < 20], CELLS)
NOT_PLANNED = data_of(pd.concat([CELLS, fake_cells([10], [9.5, 10.5])]), CELLS)
FEW_LOST = fail(CELLS, "seed == 1 and n == 2 and snr < 5.5")
HOLES = data_of(fail(CELLS, "n == 20 and snr < 4.5").query("n != 2 or snr < 23.5"), CELLS)
FIRST, ERROR = "seed == 0 and snr == 1 and n ==", "error: ValueError: boom"
ONE_OF_EACH = fail(fail(CELLS, f"{FIRST} 2"), f"{FIRST} 10", ERROR)
BEYOND = "5 cells (diverged) taken as beyond the others."
LEFT_OUT = "75 cells (target not reached) left out."
STEPS, OF_MEANS = {"value": "steps"}, {"value": "steps", "mean": "arithmetic"}
FEWER, REACHED = "diverged: fewer seeds", "target not reached: half the seeds or more"
ONE_OF_TEN = "diverged: one seed or more (1) … mean of 10 seeds"
TWO_FAILURES = (
    "1 cell (diverged) taken as beyond the others. … 1 cell (failed) left out. … "
    "failed or diverged: fewer seeds (2)"
)
LABELS = "\ntest loss\n … \ntraining samples N\n … signal-to-noise ratio SNR and training samples"
NAMES = "\nbenign: test loss ≤ 0.2\n … \nharmful: test loss > 0.2\n … \nbenign\n"
CROSSED = "Where test loss crosses 0.2, for each value of training samples N: median of 5"
OF_FIVE = f"{CROSSED} … Test loss of 0.2: median of 5 seeds, least to greatest … N·SNR² = 1000"
UNSAID = "throughout … no fit … beyond the grid … 95 % interval"
OF_ONE = "Test loss of 0.2: one seed … no fit of N·SNR^p = C, fewer than three points"
THROUGHOUT = "N = 1, 2: above 0.2 throughout. … N = 900: below 0.2 throughout."
RISES = fake_cells([1, 2], [1.0, 2.0], seeds=1).assign(test_loss=[1, 2, 3, 4])
SIX, ONE = fake_cells(NS, SNRS, seeds=6), fake_cells([5, 10], SNRS, seeds=1)


@pytest.mark.parametrize(
    ("figure", "options", "cells", "said", "unsaid"),
    [
        ("heatmap", {}, CELLS, LABELS, "failed … missing … test loss ="),
        ("heatmap", STEPS, CELLS, "\ngradient steps\n … Gradient steps", ""),
        ("cutoff", {}, NAMED, NAMES, ""),
        ("cutoff", {**STEPS, "threshold": 15}, NAMED, "gradient steps ≤ 15", "benign"),
        ("cutoff", {"threshold": 0.6995}, NAMED, "", "\nharmful\n"),
        ("cutoff", {"threshold": None}, RISES, "test loss > 2.5", ""),
        ("boundary", {"law": (LAW,)}, NOISY, OF_FIVE, UNSAID),
        ("boundary", {}, SIX, "median of 6 seeds, 95 % interval", "least to"),
        ("boundary", {}, ONE, OF_ONE, "Dashed"),
        ("boundary", {}, FAR_ROWS, THROUGHOUT, "beyond the grid"),
        ("boundary", {}, with_few_crossings(), "N = 5, 6: median beyond the grid.", ""),
    ],
)
def test_a_map_or_boundary_says_what_it_shows(
    figure: str, options: dict[str, Any], cells: Any, said: str, unsaid: str
) -> None:
    """Where no threshold is named, a cutoff is in the middle."""
    assert not untold(draw(figure, cells, **options), said, unsaid)


@pytest.mark.parametrize(
    ("options", "cells", "said", "unsaid", "marked"),
    [
        ({}, HOLES, "half the seeds or more (4)", FEWER, {"lost": 4, "missing": 2}),
        ({}, WITHOUT_ONE, "missing (1)", "failed", {"missing": 1}),
        ({}, WITHOUT_ROW, "", "failed", {"missing": len(SNRS)}),
        ({}, NOT_PLANNED, "", "missing", {}),  # between them
        ({}, FEW_LOST, f"{FEWER} (5) … {BEYOND}", "half the seeds", {"partly": 5}),
        ({"value": "drift"}, of_drift(), f"{REACHED} (25) … {LEFT_OUT}", "beyond", {"lost": 25}),
        (STEPS, of_ten_seeds(5, "step limit"), f"{REACHED} (1)", "fewer", {"lost": 1}),
        (OF_MEANS, of_ten_seeds(1), ONE_OF_TEN, "beyond the", {"lost": 1}),
        ({}, ONE_OF_EACH, TWO_FAILURES, "or no number", {"partly": 2}),
    ],
)
def test_a_heatmap_marks_and_tells_what_it_lacks(
    options: dict[str, Any], cells: Any, said: str, unsaid: str, marked: dict[str, int]
) -> None:
    figure = draw("heatmap", cells, **options)
    assert not untold(figure, said, unsaid)
    assert marks(figure) == marked


def test_a_heatmap_has_x_to_the_right_and_y_upward_and_averages_seeds() -> None:
    """With whole cells around the values."""
    cells = fake_cells([1, 2, 3], [5.0, 6.0], seeds=2)
    cells["test_loss"] = cells["n"] * 10 + cells["snr"] + cells["seed"]
    figure = draw("heatmap", cells)
    assert shown(figure).tolist() == [[15.5, 16.5], [25.5, 26.5], [35.5, 36.5]]
    assert (figure.axes[0].get_xlim(), figure.axes[0].get_ylim()) == ((4.5, 6.5), (0.5, 3.5))
    assert edges(figure)[0, :, 0].tolist() == [4.5, 5.5, 6.5]


def test_an_axis_that_is_spaced_by_ratio_is_logarithmic_with_ticks_at_some_of_many() -> None:
    for powers, step in ((4, 1), (10, 2)):
        doubled = [8 * 2**power for power in range(powers)]
        [axes, _] = draw("heatmap", fake_cells(doubled, [1.0, 2.0, 3.0])).axes
        assert (axes.get_xscale(), axes.get_yscale()) == ("linear", "log")
        assert axes.get_ylim() == pytest.approx((8 * 0.5**0.5, doubled[-1] * 2**0.5))
        labels = [tick.get_text() for tick in axes.get_yticklabels()]
        assert labels == list(map(str, doubled[::step]))


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
        figure = draw("heatmap", of_ten_seeds(missed), value="steps", mean=mean)
        assert shown(figure)[0, 0] == pytest.approx(number, nan_ok=True)
        assert shown(figure)[1, 0] == pytest.approx(204.5, abs=0.1)


class Headed(FakeStudy):
    """A study that says where its headline changes sides."""

    threshold = 0.3


def test_the_contour_of_the_threshold_lies_where_the_means_cross() -> None:
    """That of a study is about its headline."""
    figure = draw("heatmap", CELLS, threshold=0.2)
    snr, n = contour(figure).T
    assert snr.size > 20
    np.testing.assert_allclose(n * snr**2, 1000, rtol=0.06)  # it is interpolated between cells
    assert not untold(figure, "\ntest loss = 0.2\n")
    with pytest.warns(UserWarning, match="no contour: the means don't cross test loss = 0.9"):
        nowhere = draw("heatmap", CELLS, threshold=0.9)
    headed = data_of(CELLS, study=Headed())
    assert not untold(draw("heatmap", headed), "\ntest loss = 0.3\n")
    others = draw("heatmap", CELLS), draw("heatmap", headed, value="steps")
    assert [contour(each).size for each in (nowhere, *others)] == [0, 0, 0]


@pytest.mark.parametrize("factor", [9, 11])
def test_a_small_map_has_its_numbers_and_colours_by_ratio_from_a_factor_of_ten(factor: int) -> None:
    cells = fake_cells([1, 2], [1.0, 2.0])
    loss = 1.0 + (factor - 1) * (cells["n"] == 2)
    figure = draw("heatmap", cells.assign(test_loss=loss))
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert texts == ["1", "1", str(factor), str(factor)]
    assert isinstance(mesh(figure).norm, LogNorm) == (factor > 10)
    assert not draw("heatmap", CELLS).axes[0].texts


def test_a_map_of_one_colour_or_half_without_a_number_says_nothing() -> None:
    flat, half = CELLS.assign(test_loss=0.5), fail(CELLS, "n > 10")
    assert draw("heatmap", CELLS).nothing == draw("cutoff", CELLS).nothing == ""
    for figure in (draw("heatmap", flat), draw("cutoff", CELLS, threshold=9.0)):
        assert figure.nothing == "all of it has one colour"
    assert draw("heatmap", half).nothing == "half of it or more has no number"


def test_few_uneven_values_have_cells_of_one_width_unless_their_places_count() -> None:
    """They count where a law or an overlay is drawn, which leaves no room for numbers."""
    data = data_of(fake_cells([1, 2], [1.0, 2.0, 4.0, 5.0]))
    even, law, overlaid = (
        draw("heatmap", data),
        draw("heatmap", data, law=("snr = 3",)),
        styled(draw_map)(data, OPTIONS, lambda axes, part: []),
    )
    assert np.diff(edges(even)[0, :, 0]).tolist() == [1, 1, 1, 1]
    for placed in (law, overlaid):
        assert edges(placed)[0, :, 0].tolist() == [0.5, 1.5, 3.0, 4.5, 5.5], "between neighbours"
    assert not overlaid.axes[0].texts


FIVE, CLOSE = np.linspace(0.1, 16, 5).tolist(), [1.0, 4.0, 4.1, 16.0]


@pytest.mark.parametrize(
    ("ns", "snrs", "law", "labels"),
    [
        *((ns, SNRS, None, None) for ns in (NS, [*range(5, 17)], [*range(30, 39)], [3, 4, 5])),
        ([1, 2], FIVE, None, ["0.1", "4.08", "8.05", "12", "16"]),
        ([1, 2], CLOSE, None, ["1", "4", "4.1", "16"]),
        ([1, 2], CLOSE, ("snr = 2",), None),  # positions count
    ],
)
def test_few_values_have_a_label_each_if_there_is_room_and_whole_numbers_whole_ticks(
    ns: list[int], snrs: list[float], law: tuple[str] | None, labels: list[str] | None
) -> None:
    figure = draw("heatmap", fake_cells(ns, snrs, seeds=1), law=law)
    words(figure)
    axes = figure.axes[0]
    found = [tick.get_text() for tick in axes.get_xticklabels()]
    assert found == labels or (labels is None and "4.1" not in found)
    low, high = axes.get_ylim()
    ticks = [at for at in axes.get_yticks() if low <= at <= high]
    assert len(ticks) >= 2 and all(at == round(at) for at in ticks)


def test_words_can_be_an_axis_in_the_order_of_their_declaration() -> None:
    [axes, _] = draw("heatmap", KERNELS, y="kernel").axes
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["softmax", "gaussian"]


VARIES = "x='snr': y is n, width varies too (64, 128"
TOO_MANY = "by='width': it makes 9 boundaries, and a figure shows up to 8."


@pytest.mark.parametrize(
    ("figure", "options", "cells", "sentence"),
    [
        ("heatmap", {}, WIDE, VARIES),
        ("boundary", {}, WIDE, VARIES),
        ("heatmap", {"y": "kernel", "law": ("kernel=1",)}, KERNELS, "'kernel' is no name here"),
        ("boundary", {"y": "kernel"}, KERNELS, "y='kernel': a boundary needs an axis of pos"),
        ("boundary", {"by": "width"}, WIDTHS, TOO_MANY),
        ("boundary", {"threshold": 0.9}, NOISY, "nowhere on this grid; it stays below through"),
    ],
)
def test_what_a_map_or_boundary_cannot_show_is_refused(
    figure: str, options: dict[str, Any], cells: pd.DataFrame, sentence: str
) -> None:
    """A third parameter is never averaged over."""
    with pytest.raises(UserError, match=re.escape(sentence)):
        draw(figure, cells, **options)


def test_a_third_parameter_makes_panels_in_the_same_colours() -> None:
    """Of which one without a number is all missing."""
    gaussian, softmax = (fake_cells(NS, SNRS, kernel=name) for name in ("gaussian", "softmax"))
    gaussian["test_loss"] *= 0.5
    both, options = pd.concat([gaussian, softmax]), {"by": "kernel", "law": (LAW,)}
    heatmap, cutoff = draw("heatmap", both, **options), draw("cutoff", both, **options)
    for figure in (heatmap, cutoff):
        assert titles(figure) == ["(a) kernel: softmax", "(b) kernel: gaussian"], "as declared"
        assert all(axes.lines for axes in figure.axes[:2]), "the law is drawn in every panel"
    assert mesh(heatmap).get_clim() == mesh(heatmap, 1).get_clim()
    assert words(heatmap).count("median of 3 seeds") == 1
    assert words(cutoff).count("\ntest loss > 0.2\n") == 1
    figure = draw("heatmap", pd.concat([fail(gaussian, "n > 0"), softmax]), **options)
    assert marks(figure) == {}
    [missing] = [each for each in figure.axes[1].collections if isinstance(each, PolyCollection)]
    assert len(missing.get_paths()) == len(NS) * len(SNRS)


def test_every_place_has_the_colour_of_its_side() -> None:
    """And none where there is no number."""
    figure = draw("cutoff", fail(CELLS, "n == 20 and snr == 25"))
    median = CELLS.groupby(["n", "snr"])["test_loss"].median().unstack().to_numpy()
    expected = np.where(median > 0.2, 1.0, 0.0)
    expected[-1, -1] = np.nan
    np.testing.assert_array_equal(shown(figure), expected)
    ends = mesh(figure).get_cmap()([0.0, 1.0])
    assert tuple(to_hex(colour).upper() for colour in ends) == MUTED
    assert len(figure.axes) == 1, "two colours need no bar"


def test_the_regions_are_named_where_they_are() -> None:
    axes = draw("cutoff", NAMED, law=("n = 5",)).axes[0]
    places = {text.get_text(): text.get_position() for text in axes.texts}
    assert set(places) == {"benign", "harmful"}
    for name, (snr, n) in places.items():
        assert (n * snr**2 < 1000) == (name == "harmful")


ROWS = [2, 4, 8, 12, 16, 20]
COARSE = np.linspace(1, 25, 9).tolist()


def refined(seeds: int = 6, noise: float = 0.3) -> Cells:
    """A coarse grid of two seeds, and all seeds of each row near its own crossing."""
    rows = [fake_cells(ROWS, COARSE, seeds=2, noise=noise)]
    for n in ROWS:
        at = float(np.sqrt(1000 / n))
        near = [round(at * factor, 3) for factor in (0.8, 0.9, 1.1, 1.25)]
        rows.append(fake_cells([n], near, seeds=seeds, noise=noise))
    cells = pd.concat(rows, ignore_index=True).query("snr <= 25")
    return as_refined(data_of(cells.reset_index(drop=True), study=NamedSides()))


def places(data: Cells) -> set[tuple[float, float]]:
    return set(data.trained[["snr", "n"]].itertuples(index=False, name=None))


def labelled(figure: Figure, label: str, place: int = 0) -> np.ndarray:
    """The points of the line with this label, (points, 2)."""
    (line,) = (line for line in figure.axes[place].lines if line.get_label() == label)
    return points(line).T


def test_a_heatmap_colours_sampled_places_alone_by_their_medians() -> None:
    data = refined()
    figure = draw("heatmap", data)
    [dots] = figure.axes[0].collections
    assert isinstance(dots, PathCollection)
    where = [tuple(place) for place in np.asarray(dots.get_offsets()).tolist()]
    assert set(where) == places(data)
    median = data.trained.groupby(["snr", "n"])["test_loss"].median()
    np.testing.assert_allclose(np.asarray(dots.get_array()), [median[place] for place in where])
    assert not untold(figure, "", "missing … \nsampled\n"), "all that has a colour is sampled"
    assert mesh(draw("heatmap", as_refined(data, refined=False))) is not None


def test_a_cutoff_colours_the_plane_by_the_share_of_seeds_on_a_side() -> None:
    figure = draw("cutoff", refined())
    likely, corners = shown(figure), edges(figure)
    snr, n = np.moveaxis((corners[:-1, :-1] + corners[1:, 1:]) / 2, 2, 0)
    assert 0 <= np.nanmin(likely) <= np.nanmax(likely) <= 1
    assert likely[n * snr**2 < 300].mean() > 0.95
    assert likely[n * snr**2 > 3000].mean() < 0.05
    told = "\nshare of seeds harmful\n … each seed's curve fitted to be monotone"
    assert not untold(figure, told, "missing")
    one_side = draw("cutoff", refined(), threshold=0.9)
    assert set(shown(one_side).ravel()) == {0.0}
    assert not labelled(one_side, "crossings").size


@pytest.mark.parametrize(("seeds", "band"), [(6, "95 % interval"), (3, "least to greatest")])
def test_the_boundary_is_the_median_crossing_of_each_row_among_dots(seeds: int, band: str) -> None:
    data = refined(seeds)
    figure = draw("cutoff", data)
    found = medians_by_row(crossings(data.trained, "snr", "n", "test_loss", 0.2), "n")
    known = found[(found["crossing"] > 0) & (found["crossing"] <= 25)]
    np.testing.assert_allclose(labelled(figure, "crossings"), known[["crossing", "n"]].to_numpy())
    assert {tuple(place) for place in labelled(figure, "cells").tolist()} == places(data)
    other = "95 % interval" if seeds == 3 else "\nleast to greatest\n"
    assert not untold(figure, f"\nmedian crossing\n … \nsampled\n … \n{band}\n", other)


def test_panels_of_a_refined_sweep_have_a_boundary_each() -> None:
    one = refined()
    other = one.trained.assign(kernel="gaussian", snr=one.trained["snr"] / 1.25)
    data = one.with_trained(pd.concat([other, one.trained], ignore_index=True))
    figure = draw("cutoff", data, by="kernel")
    assert titles(figure) == ["(a) kernel: softmax", "(b) kernel: gaussian"]
    first, second = (labelled(figure, "crossings", place) for place in (0, 1))
    assert len(first) > 3
    np.testing.assert_allclose(second[:, 0], first[:, 0] / 1.25)


# Boundaries


def boundary(figure: Figure, place: int = 0) -> Line2D:
    """The points of a boundary."""
    containers: list[Any] = list(figure.axes[0].containers)
    line: Line2D = containers[place].lines[0]
    return line


def fit_of(figure: Figure) -> list[float]:
    """The exponent that a figure tells, the ends of its interval, and the largest residual in %."""
    text = " ".join(words(figure).split()).replace("−", "-")
    fit = re.search(r"p\s=\s(\S+)\s\[(\S+),\s(\S+)\], C\s=.*largest residual (\d+) %", text)
    assert fit is not None, text
    return [float(number) for number in fit.groups()]


def laws_of(figure: Figure) -> list[str]:
    """Of what boundaries a figure tells a law, in the order of its lines."""
    return re.findall(r"^(?!Dashed)(.+): N·SNR\^p = C, p", words(figure), re.MULTILINE)


def test_a_boundary_recovers_the_law_on_logarithmic_axes() -> None:
    """Only values of y that cross have a point."""
    cells = fake_cells([1, *NS, 900], SNRS[2:], seeds=5, noise=0.05)
    figure = draw("boundary", cells, law=(LAW,))
    assert (figure.axes[0].get_xscale(), figure.axes[0].get_yscale()) == ("log", "log")
    snr, n = points(boundary(figure))
    assert n.tolist() == NS
    np.testing.assert_allclose(n * snr**2, 1000, rtol=0.1)
    value, low, high, residual = fit_of(figure)
    assert low <= value <= high and residual < 10
    assert value == pytest.approx(2, abs=0.1)


def test_values_of_y_at_which_some_seeds_never_cross_are_open_with_an_arrow_head() -> None:
    """The interval leaves the axes there."""
    cells = fake_cells(NS, SNRS, seeds=6)
    never: Any = cells.eval("n == 4 and seed < 2")
    figure = draw("boundary", cells.assign(test_loss=cells["test_loss"].mask(never, 0.6)))
    assert not untold(figure, "some seeds cross off the grid")
    few = boundary(figure, 1)
    assert (points(few)[1].tolist(), few.get_markerfacecolor()) == ([4], "white")
    [head] = [line for line in figure.axes[0].lines if line.get_marker() == ">"]
    assert points(head).tolist() == [[figure.axes[0].get_xlim()[1]], [4.0]]


def test_each_value_of_a_parameter_has_a_boundary_of_its_colour() -> None:
    """In the order of declaration, not of the cells or of the alphabet."""
    one, other = fake_cells(NS, SNRS), fake_cells(NS, SNRS, kernel="gaussian")
    pairs = zip(other["n"], other["snr"], strict=True)
    other["test_loss"] = [fake_loss(2 * n, snr) for n, snr in pairs]
    figure = draw("boundary", pd.concat([other, one]), by="kernel")
    for place, constant in enumerate((1000, 500)):
        snr, n = points(boundary(figure, place))
        np.testing.assert_allclose(n * snr**2, constant, rtol=0.1)
        assert boundary(figure, place).get_color() == f"C{place}"
    assert laws_of(figure) == ["kernel: softmax", "kernel: gaussian"]


def test_run_directories_are_overlaid_with_their_names() -> None:
    runs = [data_of(fake_cells(ns, SNRS)) for ns in (NS, [1, *NS])]
    figure = draw("boundary", side_by_side(["before", "after"], runs))
    assert (len(figure.axes), laws_of(figure)) == (1, ["before", "after"])
    assert not untold(figure, "after, N = 1: above 0.2 throughout", "before, N")


def test_a_boundary_may_rise_and_its_largest_residual_is_a_share_of_x() -> None:
    """The losses cross 0.2 where SNR is the square root of N, and 1.5 times that at N = 4."""
    cells = fake_cells([1, 2, 4, 8, 16], SNRS, seeds=2)
    factor = np.where(cells["n"] == 4, 1.5, 1.0)
    bent = cells.assign(test_loss=0.2 * factor * cells["n"] ** 0.5 / cells["snr"])
    exponent, *_, residual = fit_of(draw("boundary", bent))
    assert exponent == pytest.approx(-2, abs=0.1)
    assert residual == pytest.approx(38, abs=2)  # 1.5^(4/5) - 1: the fit takes a fifth


def test_the_whole_fit_of_a_bent_boundary_is_in_view() -> None:
    cells = fake_cells([5, 10, 20, 40, 80, 160], np.geomspace(0.1, 64, 60).tolist())
    bend = np.where(cells["n"] > 20, (cells["n"] / 20.0) ** 2, 1.0)
    bent = cells.assign(test_loss=0.7 / (1 + 2.5 * (cells["n"] * cells["snr"] ** 2 * bend / 1000)))
    [axes] = draw("boundary", bent).axes
    [fit] = [line for line in axes.lines if line.get_linestyle() == "--"]
    ends, limits = points(fit)[0], axes.get_xlim()
    assert limits[0] <= min(ends) <= max(ends) <= limits[1]
