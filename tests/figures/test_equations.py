"""Equations of the user's on a figure, expressions for columns and axes, and theories."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from overfit_cli import UserError
from overfit_cli.core.figure import Figure, FigureOptions
from overfit_cli.figures.axes import EQUATION_DASHES
from overfit_cli.figures.draw import drawn
from overfit_cli.figures.inputs import difference, read_options, resolve_options
from overfit_cli.figures.picture import Picture
from tests.fake_study import (
    FIGURES,
    LAW,
    NS,
    OPTIONS,
    SNRS,
    data_of,
    fake_cells,
    law_of,
    line_heights,
    logged,
    points,
    titles,
    untold,
)

PLAIN = fake_cells(NS, SNRS)
WIDTHS = (64, 128)


def wide_cells() -> pd.DataFrame:
    """Cells of two widths; the training loss is the theory of the test loss, half as large."""
    parts = [fake_cells([4, 8, 16], [1.0, 2.0, 4.0], width=width) for width in WIDTHS]
    cells = pd.concat(parts, ignore_index=True)
    cells["test_loss"] = cells["n"] / cells["width"] * cells["snr"]
    cells["key"] += cells["width"].astype(str)
    return cells.assign(train_loss=cells["test_loss"] / 2)


CELLS = wide_cells()
AT_ONE_SNR = CELLS[CELLS["snr"] == 2.0]
ONE_WIDTH = CELLS[CELLS["width"] == 64]
MAP = {"x": "snr", "y": "n", "by": "width"}


def picture(name: str | Figure, cells: pd.DataFrame, **options: Any) -> Picture:
    """A figure as the command line draws it."""
    figure, asked = FIGURES[name] if isinstance(name, str) else name, FigureOptions(**options)
    return drawn(figure, *read_options(figure, logged(cells), asked))


# What a picture says of equations and expressions

BOTH = {"x": "snr", "y": "n", "value": "test_loss", "threshold": 0.2}
NAMED = {**BOTH, "law": ("the paper's line: n * snr**2 = 1000",)}
CANCELLED = {**BOTH, "law": ("N * snr**2 = 10 * SNR * n",)}
TWO, NONE = {**BOTH, "law": (LAW, "n = snr")}, {**BOTH, "law": FigureOptions.read(law="none").law}
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


@pytest.mark.parametrize(
    ("name", "options", "sentence"),
    [
        ("lines", {"x": "n/wdith"}, "'wdith' is no name here; did"),
        ("lines", {"x": "log(n-4)"}, "it is not a finite number where n=4."),
        ("lines", {"x": "snr * 2"}, "x='snr * 2': it has one value in these cells; here"),
        ("lines", {"x": "n/width", "law": ("n = 3",)}, "'n' is no name here"),
        ("lines", {"x": "n", "theory": "thoery"}, "theory='thoery': fake measures no 'thoery'"),
        (
            "heatmap",
            {"x": "n/width", "y": "width"},
            "its values with those of the other axis make no grid",
        ),
        ("heatmap", {"x": "n/width", "y": "n", "by": "width"}, "that varies here has an axis or"),
        ("cutoff", {"x": "snr", "y": "n"}, "make it an axis, make panels of it (option by), or ch"),
    ],
)
def test_what_cannot_be_drawn_is_refused(name: str, options: dict[str, Any], sentence: str) -> None:
    """No figure averages over a parameter."""
    with pytest.raises(UserError) as refused:
        picture(name, CELLS if name == "cutoff" else AT_ONE_SNR, **options)
    assert sentence in str(refused.value)


OWN = Figure(
    "a", "", "cells", FIGURES["heatmap"].draw, options=replace(OPTIONS, law=(LAW,)), axes=2
)


@pytest.mark.parametrize(
    ("asked", "taken"),
    [
        ({}, (LAW,)),
        ({"law": ()}, ()),
        ({"law": ("n = snr",)}, ("n = snr",)),
        ({"value": "steps"}, None),  # it is about another column
        ({"x": "n", "y": "snr"}, (LAW,)),
    ],
)
def test_a_figures_own_equation_gives_way(
    asked: dict[str, Any], taken: tuple[str, ...] | None
) -> None:
    assert resolve_options(OWN, FigureOptions(**asked), data_of(PLAIN)).law == taken


# Where their curves lie


@pytest.mark.parametrize("log", [frozenset(), frozenset("xy")])
def test_the_curve_of_an_equation_satisfies_it(log: frozenset[str]) -> None:
    """A pole is no part of it."""
    pole = "n = 10 / (snr - 3.02)"
    laws = (LAW, "n = 20 - snr / 2", "snr = 100 / n", "log(n) + 3 = snr", "n - snr = 0", pole)
    lines = picture("heatmap", PLAIN, **BOTH, law=laws, log=log).axes[0].lines
    for text, line in zip(laws, lines, strict=True):
        law, (snr, n) = law_of(text, "n", "snr"), points(line)
        assert snr.size > 50 and np.ptp(snr) > 2, text
        scale = np.abs(law.difference({"snr": 1.02 * snr, "n": n}))
        assert (np.abs(law.difference({"snr": snr, "n": n})) <= scale).all(), text


def test_several_equations_have_a_dash_each_and_some_have_no_curve() -> None:
    laws = ("n = n", "9**9**9**9 = n", "log(-n) = 1", "n = -5", *(f"n = {n}" for n in (3, 4)))
    figure = picture("heatmap", PLAIN, **BOTH, law=laws)
    lines = figure.axes[0].lines
    assert [points(line).size > 0 for line in lines] == [False] * 4 + [True] * 2
    assert len({line.get_color() for line in lines}) == 1
    dashes = [str(line._dash_pattern) for line in lines]  # type: ignore[attr-defined]
    assert len(set(dashes)) == len(EQUATION_DASHES) == 4
    assert dashes[:2] == dashes[4:]


def test_a_constant_stands_in_a_law_and_each_panel_has_its_own() -> None:
    """The curve of n · SNR² = width passes n = 16 at SNR = √(width / 16)."""
    figure = picture("heatmap", CELLS, **MAP, law=("n * snr**2 = width",))
    for axes, width in zip(figure.axes[:2], WIDTHS, strict=True):
        snr, n = points(axes.lines[0])
        np.testing.assert_allclose(n * snr**2, width, rtol=0.01)
    assert titles(figure) == ["(a) width = 64", "(b) width = 128"]
    assert not untold(figure, "\nLine: N·SNR² = width = 64, 128.\n")


def test_lines_take_laws_in_the_column_and_in_constants_of_a_line() -> None:
    laws = ("test_loss = snr * n / width", "test_loss = 0.25", "test_loss = 99")
    figure = picture("lines", AT_ONE_SNR, x="n", law=laws)
    *measured, first, second, _, _ = figure.axes[0].lines
    for line, own, width in zip(measured, (first, second), WIDTHS, strict=True):
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
    assert len(axes.collections) == len(WIDTHS)
    assert not untold(figure, "\ntraining loss\n … Dashed: training loss.\n")
    _, _, shared = picture("lines", AT_ONE_SNR, x="n", theory="1 / n").axes[0].lines
    n, height = points(shared)
    assert height == pytest.approx(1 / n)
    assert shared.get_color() == "black"


def test_a_figures_own_value_and_theory_may_be_expressions_with_a_name_in_words() -> None:
    value = "test_loss - train_loss"
    own = FigureOptions(x="n", value=value, theory="1 - train_loss")
    figure = replace(FIGURES["lines"], name="gap", options=own, labels={value: "gap of losses"})
    gap = picture(figure, AT_ONE_SNR)
    measured, _, theory, _ = line_heights(gap.axes[0])
    assert measured == pytest.approx([4 / 64, 8 / 64, 16 / 64])
    assert theory == pytest.approx([1 - height for height in measured])
    assert not untold(gap, "\ngap of losses (median, the middle half)\n", "test_loss")
    other = picture(figure, AT_ONE_SNR, value="2 * test_loss")
    assert not untold(other, "", "gap of losses"), "another expression is another number"


def test_an_axis_may_be_an_expression_and_laws_may_contain_it() -> None:
    """It takes the place of n, which has more values; each width keeps its line."""
    figure = picture("lines", AT_ONE_SNR, x="n/width", law=("test_loss = 2 * (n / width)",))
    *measured, law = figure.axes[0].lines
    for line, width in zip(measured, WIDTHS, strict=True):
        np.testing.assert_allclose(points(line)[0], np.array([4, 8, 16]) / width)
    x, loss = points(law)
    np.testing.assert_allclose(loss, 2 * x, rtol=0.01)
    assert not untold(figure, "\nN / width\n … \ntest_loss = 2·(N / width)\n")
    assert "Axes: N (n) 4, 8, 16; width 64, 128." in figure.caption
    uneven = AT_ONE_SNR.assign(width=AT_ONE_SNR["width"].replace({64: 60, 128: 101}))
    lines = picture("lines", uneven, x="n/width").axes[0].lines
    assert [points(line).shape for line in lines] == [(2, 3)] * 2, "also where no two share an x"


def test_a_difference_of_runs_takes_an_expression() -> None:
    value = "test_loss / n"
    parts = [data_of(CELLS.assign(test_loss=times * CELLS["test_loss"])) for times in (2, 1)]
    asked = FigureOptions(value=value)
    double, single = (read_options(FIGURES["lines"], part, asked)[0] for part in parts)
    less = difference(double, single, ("here", "single"), value)
    assert less.trained[value].to_numpy() == pytest.approx(CELLS["test_loss"] / CELLS["n"])
