"""Expressions and equations on figures, panels, and several run directories."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from matplotlib.figure import Figure as Drawn

from overfit_cli import UserError
from overfit_cli.core.cells import Cells
from overfit_cli.core.figure import Figure, FigureOptions
from overfit_cli.figures import inputs
from overfit_cli.figures.draw import drawn
from overfit_cli.figures.labels import unpaired
from overfit_cli.figures.picture import Picture
from tests import fake_study as fake
from tests.fake_study import data_of, draw, fake_cells, points, untold


def two(*cells: pd.DataFrame) -> Cells:
    """Two run directories, `before` and `after`."""
    return inputs.side_by_side(["before", "after"], list(map(fake.logged, cells)))


def subtracted(first: pd.DataFrame, second: pd.DataFrame) -> Cells:
    return inputs.difference(data_of(first), data_of(second), ("here", "other"), "test_loss")


def small(seeds: int, shift: int = 0, noise: float = 0.5) -> pd.DataFrame:
    cells = fake_cells([5, 10, 20], [4.0, 8.0, 12.0], seeds=seeds, noise=noise)
    return cells.assign(seed=cells["seed"] + shift)


PLANE = {"x": "snr", "y": "n", "law": (fake.LAW,)}


@pytest.mark.parametrize(
    ("own", "asked", "taken"),
    [
        ({"by": "kernel,n,snr"}, {}, {"by": "n"}),
        ({"by": "snr,n"}, {}, {"by": "n"}),  # snr is the axis
        ({"by": "kernel,width"}, {}, {"by": None}),
        ({}, {}, {"by": None}),
        ({"by": "n"}, {"by": "kernel"}, {"by": "kernel"}),
        ({}, {"by": "snr"}, {"by": "snr"}),
        (PLANE, {}, {"law": (fake.LAW,)}),
        (PLANE, {"law": ()}, {"law": ()}),
        (PLANE, {"law": ("n = snr",)}, {"law": ("n = snr",)}),
        (PLANE, {"value": "steps"}, {"law": None}),  # it is about another column
        (PLANE, {"x": "n", "y": "snr"}, {"law": (fake.LAW,)}),
    ],
)
def test_a_figures_own_options_give_way_where_they_do_not_fit(
    own: dict[str, Any], asked: dict[str, Any], taken: dict[str, Any]
) -> None:
    """Of several parameters, panels are of the first that varies and is no axis."""
    options = FigureOptions(**{"x": "snr"} | own)
    figure = Figure("a", "", "cells", fake.FIGURES["lines"].draw, options=options)
    data = data_of(fake_cells([5, 10], [1.0, 2.0]))
    resolved = inputs.resolve_options(figure, FigureOptions(**asked), data)
    assert taken.items() <= vars(resolved).items()


def test_the_same_cell_in_two_directories_is_drawn_for_each() -> None:
    cells = fake_cells([5], [1.0, 2.0, 4.0])
    data = two(cells, cells)
    assert data.trained["key"].is_unique
    assert len(data.steps) == 2 * len(fake.logged(cells).steps)
    first, second = draw("lines", data).axes[0].lines
    np.testing.assert_array_equal(fake.heights(first), fake.heights(second))


# What a difference says, and where it is none

MANY_NS = [5, 10, 20, 40, 80, 160, 320]  # so many that no numbers are printed
SECOND = fake_cells(MANY_NS, [2.0, 4.0, 6.0, 8.0, 10.0, 12.0], seeds=8)


def noisy(second: pd.DataFrame = SECOND, effect: float = 0.0, **same: Any) -> pd.DataFrame:
    """A run with noise of its seeds, higher by an effect where the SNR is above 6."""
    noise = np.random.default_rng(1).normal(0, 0.1, len(second)) + effect * (second["snr"] > 6)
    return second.assign(test_loss=second["test_loss"] + noise, **same)


def dots(figure: Drawn) -> list[tuple[float, float]]:
    """Where the dots are, as SNR and n."""
    lines = [line for line in figure.axes[0].lines if line.get_marker() == "o"]
    return sorted({(x, y) for line in lines for x, y in points(line).T.tolist()})


THREE, ONE = SECOND[SECOND["seed"] < 3], SECOND[SECOND["seed"] < 1]
FIVE = fake.fail(THREE, "n == 5", "step limit")
NO_DIFFERENCE = data_of(noisy().assign(test_loss=noisy()["test_loss"] - 0.3))
OTHERS = THREE.assign(seed=THREE["seed"] + 10)
NO_INTERVAL = "No point has an interval over seeds."
LOST = "target not reached: one seed or more (6) … 18 cells (target not reached) left out."
GAUSSIAN = subtracted(noisy(THREE, kernel="gaussian"), THREE)
CONTRAST = "est loss: gaussian − softmax (kernel)"
WIDE = subtracted(noisy(THREE, width=128), THREE)
WIDER = subtracted(noisy(THREE, width=128, kernel="gaussian"), THREE)
MEANS = subtracted(small(3), small(4, shift=3, noise=0.8))
AT_ONE_N = MEANS.with_trained(MEANS.trained[MEANS.trained["n"] == 20])
OF_MEANS = "mean of 3 seeds less mean of 4 seeds"


@pytest.mark.parametrize(
    ("figure", "data", "said", "unsaid"),
    [
        ("heatmap", NO_DIFFERENCE, "", "interval"),
        ("heatmap", subtracted(noisy(ONE), ONE), NO_INTERVAL, "contains 0"),
        ("heatmap", subtracted(noisy(THREE), OTHERS), NO_INTERVAL, "contains 0"),  # not paired
        ("heatmap", subtracted(FIVE, THREE), LOST, "diverged"),
        ("heatmap", subtracted(THREE, FIVE), LOST, "diverged"),
        ("heatmap", GAUSSIAN, f"\nt{CONTRAST}\n … T{CONTRAST} over", "other"),
        ("lines", WIDE, "Test loss: width 128, less that at 64, against", "other"),
        ("heatmap", WIDER, "test loss, less that of other", "128"),
        ("heatmap", MEANS, OF_MEANS, "one seed"),
        ("lines", AT_ONE_N, OF_MEANS, "one seed"),
    ],
)
def test_a_difference_says_what_is_subtracted_and_what_is_not_known(
    figure: str, data: Cells, said: str, unsaid: str
) -> None:
    """The one setting that differs names it; a pair has the reason of the cell that failed."""
    drawn = draw(figure, data)
    assert not untold(drawn, said, unsaid)
    assert figure == "lines" or not (dots(drawn) and untold(drawn, "95 % interval contains 0"))


def test_a_point_whose_own_interval_contains_0_has_a_dot() -> None:
    first = noisy(effect=0.2)
    figure = draw("heatmap", subtracted(first, SECOND), log=frozenset())
    gaps = (first["test_loss"] - SECOND["test_loss"]).groupby([first["snr"], first["n"]])
    chances = gaps.agg(lambda gap: float(scipy.stats.ttest_1samp(gap, 0).pvalue))
    noise = chances.index[chances > 0.05].get_level_values("snr")
    assert 10 < len(noise) < 32
    assert [x for x, _ in dots(figure)] == pytest.approx(sorted(noise))
    told = f"own 95 % interval over seeds contains 0, {len(noise)} of 42."
    assert not untold(figure, f"\n95 % interval contains 0 ({len(noise)})\n … {told}")


@pytest.mark.parametrize("unknown", [0, 1])
def test_a_seed_without_a_number_may_lie_on_either_side_of_0(unknown: int) -> None:
    """Of eight seeds the least and the greatest are the ends of the interval of the median."""
    first = SECOND.assign(test_loss=SECOND["test_loss"] + 0.1 + 0.01 * SECOND["seed"])
    first = fake.fail(first, f"n == 320 and snr == 12 and seed < {unknown}")
    figure = draw("heatmap", subtracted(first, SECOND), mean="median")
    assert len(dots(figure)) == unknown


# How cells are paired


def test_a_difference_is_paired_by_seed() -> None:
    first, second = small(5), small(4, shift=2, noise=0.8)  # seeds 2 to 4 are in both
    data = subtracted(first, second)
    assert sorted(set(data.trained["seed"])) == [2, 3, 4]
    pair = first.merge(second, on=["n", "snr", "seed"], suffixes=("", "_other"))
    gaps = pair["test_loss"] - pair["test_loss_other"]
    expected = gaps.groupby([pair["n"], pair["snr"]]).mean().unstack()
    np.testing.assert_allclose(fake.map_of(draw("heatmap", data)), expected)
    lines = draw("lines", data, mean="arithmetic").axes[0].lines
    np.testing.assert_allclose([fake.heights(line) for line in lines], expected)
    assert (fake.map_of(draw("heatmap", subtracted(second, second))) == 0).all()


def test_without_a_seed_in_common_means_of_what_is_done_are_subtracted() -> None:
    first, second = small(3), small(4, shift=3, noise=0.8)
    first = fake.fail(first, "snr == 4 and (n == 10 and seed == 0 or n == 20)")  # one, and all
    left, right = (part.groupby(["n", "snr"])["test_loss"].mean() for part in (first, second))
    found = subtracted(first, second).frame.set_index(["n", "snr"])["test_loss"]
    np.testing.assert_allclose(found, (left - right)[found.index])


def test_what_has_no_counterpart_is_left_out_and_counted() -> None:
    """Values that agree to twelve digits are one place; a failed cell fails its pair."""
    first = small(2)
    second = first.assign(snr=first["snr"] * (1 + 1e-14), test_loss=first["test_loss"] - 0.25)
    whole = subtracted(first, second)
    assert (unpaired(whole), len(whole.trained)) == ("", len(first))
    assert whole.trained["test_loss"].to_numpy() == pytest.approx(0.25)
    data = subtracted(first, fake.fail(second.query("n > 5"), "snr > 11"))
    assert unpaired(data) == "12 of 18 cells here and of 12 there have a counterpart"
    assert set(data.trained["n"]) == {10, 20}
    assert (data.trained["status"].eq("failed") == (data.trained["snr"] == 12)).all()
    assert data.trained.query("snr < 12")["test_loss"].notna().all()


PLAIN = fake_cells(fake.NS[::3], fake.SNRS[::4])
TWO_WIDTHS = (64, 128)


CELLS = pd.concat([fake_cells([4, 8, 16], [1.0, 2.0, 4.0], width=width) for width in TWO_WIDTHS])
CELLS["key"] += CELLS["width"].astype(str)
CELLS["test_loss"] = CELLS["n"] / CELLS["width"] * CELLS["snr"]
CELLS["train_loss"] = CELLS["test_loss"] / 2  # the theory of the test loss
AT_ONE_SNR = CELLS[CELLS["snr"] == 2.0]
ONE_WIDTH = CELLS[CELLS["width"] == 64]
MAP = {"x": "snr", "y": "n", "by": "width"}


def picture(name: str | Figure, cells: pd.DataFrame, **options: Any) -> Picture:
    """A figure as the command line draws it."""
    figure, asked = fake.FIGURES[name] if isinstance(name, str) else name, FigureOptions(**options)
    return drawn(figure, *inputs.read_options(figure, fake.logged(cells), asked))


# What a picture says of equations and expressions

BOTH = {"x": "snr", "y": "n", "value": "test_loss", "threshold": 0.2}
NAMED = {**BOTH, "law": ("the paper's line: n * snr**2 = 1000",)}
CANCELLED = {**BOTH, "law": ("N * snr**2 = 10 * SNR * n",)}
TWO = {**BOTH, "law": (fake.LAW, "n = snr")}
NONE = {**BOTH, "law": FigureOptions.read(law="none").law}
TOLD = "\nLine: N·SNR² = 1000.\n … \nDashed line: N = SNR.\n"
ROOT = {"x": "snr", "value": "sqrt(test_loss - train_loss) * N"}
NO_LOG = {"x": "n", "value": "log(test_loss - 0.1)"}
UNSEEN = {**MAP, "law": ("n = 3 + log(0 * snr)",)}


@pytest.mark.parametrize(
    ("name", "cells", "options", "said"),
    [
        *[(name, PLAIN, TWO, TOLD) for name in ("heatmap", "cutoff", "boundary")],
        *[(name, PLAIN, NONE, "") for name in ("heatmap", "cutoff", "boundary")],
        ("heatmap", PLAIN, NAMED, "\nLine: N·SNR² = 1000 (the paper's line).\n"),
        ("heatmap", PLAIN, CANCELLED, "\nN·SNR² = 10·SNR·N\n … \nLine: N·SNR² = 10·SNR·N.\n"),
        ("heatmap", CELLS, UNSEEN, "\nLine: N = 3 + log(0·SNR) (out of view).\n"),
        ("lines", AT_ONE_SNR, NO_LOG, "3 cells without a number left out."),
        ("heatmap", ONE_WIDTH, ROOT, "√(test_loss - train_loss)·N"),
        ("cutoff", ONE_WIDTH, ROOT, "√(test_loss - train_loss)·N"),
    ],
)
def test_a_picture_says_equations_and_expressions_in_symbols(
    name: str, cells: pd.DataFrame, options: dict[str, Any], said: str
) -> None:
    assert not untold(picture(name, cells, **options), said, "SNR²" if options is NONE else "")


WIDTHS = pd.concat([fake_cells([5, 10], fake.SNRS[::8], 1, width=2**p) for p in range(9)])
KERNELS = pd.concat([fake_cells([10], fake.SNRS, kernel=k) for k in ("gaussian", "softmax")])
VARIES = "x='snr': y is n, width varies too (64, 128"
NO_GRID, BY = {"x": "n/width", "y": "width"}, {"x": "n/width", "y": "n", "by": "width"}
SHARE = "minus='other': its cells and the others don't share"


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: picture("lines", AT_ONE_SNR, x="n/wdith"), "'wdith' is no name here; did"),
        (lambda: picture("lines", AT_ONE_SNR, x="log(n-4)"), "not a finite number where n=4."),
        (lambda: picture("lines", AT_ONE_SNR, x="snr * 2"), "no parameter in it varies here"),
        (lambda: picture("lines", AT_ONE_SNR, x="n/width", law=("n = 3",)), "'n' is no name here"),
        (lambda: picture("lines", AT_ONE_SNR, theory="thoery"), "fake measures no 'thoery'"),
        (lambda: picture("heatmap", AT_ONE_SNR, **NO_GRID), "of the other axis make no grid"),
        (lambda: picture("heatmap", AT_ONE_SNR, **BY), "varies here without an axis or"),
        (lambda: picture("cutoff", CELLS, x="snr", y="n"), "make it an axis, make panels of it"),
        (lambda: draw("heatmap", two(WIDTHS, WIDTHS), by="width"), "'width': it makes 18 panels"),
        (lambda: draw("boundary", WIDTHS, by="width"), "9 boundaries, and a figure shows up to 8."),
        (lambda: draw("heatmap", CELLS), VARIES),
        (lambda: draw("boundary", CELLS), VARIES),
        (lambda: draw("heatmap", KERNELS, y="kernel", law=("kernel=1",)), "'kernel' is no name"),
        (lambda: draw("boundary", KERNELS, y="kernel"), "y='kernel': a boundary needs an axis of"),
        (lambda: subtracted(small(2), small(2).drop(columns="test_loss")), f"{SHARE} test_loss."),
        (lambda: subtracted(small(2), small(2).drop(columns="snr")), f"{SHARE} snr."),
    ],
)
def test_what_cannot_be_drawn_is_refused(make: Callable[[], object], sentence: str) -> None:
    """No figure averages over a parameter."""
    with pytest.raises(UserError, match=re.escape(sentence)):
        make()


# Where their curves lie


@pytest.mark.parametrize("log", [frozenset(), frozenset("xy")])
def test_the_curve_of_an_equation_satisfies_it(log: frozenset[str]) -> None:
    """A pole is no part of it."""
    pole = "n = 10 / (snr - 3.02)"
    laws = (fake.LAW, "n = 20 - snr / 2", "snr = 100 / n", "log(n) + 3 = snr", "n - snr = 0", pole)
    lines = picture("heatmap", PLAIN, **BOTH, law=laws, log=log).axes[0].lines
    for text, line in zip(laws, lines, strict=True):
        law, (snr, n) = fake.law_of(text, "n", "snr"), points(line)
        assert snr.size > 50 and np.ptp(snr) > 2, text
        scale = np.abs(law.difference({"snr": 1.02 * snr, "n": n}))
        assert (np.abs(law.difference({"snr": snr, "n": n})) <= scale).all(), text


def test_an_equation_without_a_curve_draws_none() -> None:
    laws = ("n = n", "9**9**9**9 = n", "log(-n) = 1", "n = -5", "n = 3")
    lines = picture("heatmap", PLAIN, **BOTH, law=laws).axes[0].lines
    assert [points(line).size > 0 for line in lines] == [False] * 4 + [True]


def test_a_constant_stands_in_a_law_and_each_panel_has_its_own() -> None:
    """The curve of n · SNR² = width passes n = 16 at SNR = √(width / 16)."""
    figure = picture("heatmap", CELLS, **MAP, law=("n * snr**2 = width",))
    for axes, width in zip(figure.axes[:2], TWO_WIDTHS, strict=True):
        snr, n = points(axes.lines[0])
        np.testing.assert_allclose(n * snr**2, width, rtol=0.01)
    assert fake.titles(figure) == ["(a) width = 64", "(b) width = 128"]
    assert not untold(figure, "\nLine: N·SNR² = width = 64, 128.\n")


def test_lines_take_laws_in_the_column_and_in_constants_of_a_line() -> None:
    laws = ("test_loss = snr * n / width", "test_loss = 0.25", "test_loss = 99")
    figure = picture("lines", AT_ONE_SNR, x="n", law=laws)
    *measured, first, second, _, _ = figure.axes[0].lines
    for line, own, width in zip(measured, (first, second), TWO_WIDTHS, strict=True):
        n, loss = points(own)
        np.testing.assert_allclose(loss, 2.0 * n / width, rtol=0.01)
        assert line.get_color() == own.get_color(), "a law without its constants has one curve"
    dashed = "\nDashed line: test_loss = SNR·N / width.\n"
    unseen = "\nDash-dotted line: test_loss = 99 (out of view).\n"
    assert not untold(figure, f"\ntest_loss = 0.25\n … {dashed} … {unseen}")


# Theories and expressions


def test_a_theory_is_dashed_beside_its_line_without_a_band() -> None:
    """And drawn once, in black, where all lines share it."""
    figure = picture("lines", AT_ONE_SNR, x="n", theory="train_loss")
    [axes] = figure.axes
    for measured, theory in zip(axes.lines[:2], axes.lines[2:], strict=True):
        assert points(theory)[1] == pytest.approx(points(measured)[1] / 2)
        assert theory.get_color() == measured.get_color()
    assert len(axes.collections) == len(TWO_WIDTHS)
    assert not untold(figure, "\ntraining loss\n … Dashed: training loss.\n")
    _, _, shared = picture("lines", AT_ONE_SNR, x="n", theory="1 / n").axes[0].lines
    n, height = points(shared)
    assert height == pytest.approx(1 / n)
    assert shared.get_color() == "black"


def test_a_figures_own_value_and_theory_may_be_expressions_with_a_name_in_words() -> None:
    value = "test_loss - train_loss"
    own = FigureOptions(x="n", value=value, theory="1 - train_loss")
    labels = {value: "gap of losses"}
    figure = replace(fake.FIGURES["lines"], name="gap", options=own, labels=labels)
    gap = picture(figure, AT_ONE_SNR)
    measured, _, theory, _ = fake.line_heights(gap.axes[0])
    assert measured == pytest.approx([4 / 64, 8 / 64, 16 / 64])
    assert theory == pytest.approx([1 - height for height in measured])
    assert not untold(gap, "\ngap of losses (median, the middle half)\n", "test_loss")
    other = picture(figure, AT_ONE_SNR, value="2 * test_loss")
    assert not untold(other, "", "gap of losses"), "another expression is another number"


def test_an_axis_may_be_an_expression_and_laws_may_contain_it() -> None:
    """It takes the place of n, which has more values; each width keeps its line."""
    figure = picture("lines", AT_ONE_SNR, x="n/width", law=("test_loss = 2 * (n / width)",))
    *measured, law = figure.axes[0].lines
    for line, width in zip(measured, TWO_WIDTHS, strict=True):
        np.testing.assert_allclose(points(line)[0], np.array([4, 8, 16]) / width)
    x, loss = points(law)
    np.testing.assert_allclose(loss, 2 * x, rtol=0.01)
    assert not untold(figure, "\nN / width\n … \ntest_loss = 2·(N / width)\n")
    assert "Axes: N (n) 4, 8, 16; width 64, 128." in figure.caption
    uneven = AT_ONE_SNR.assign(width=AT_ONE_SNR["width"].replace({64: 60, 128: 101}))
    lines = picture("lines", uneven, x="n/width").axes[0].lines
    assert [points(line).shape for line in lines] == [(2, 3)] * 2, "also where no two share an x"
