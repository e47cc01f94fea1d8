"""Equations of the user's on a figure: several, none, and in the names or symbols of the axes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from overfit_cli.core.figure import Figure, FigureOptions
from overfit_cli.figures.inputs import resolve_options
from overfit_cli.figures.laws import DASHES, equation_curve
from overfit_cli.figures.look import read_laws
from overfit_cli.stats.equations import parse_equation
from tests.fake_study import (
    FIGURES,
    LAW,
    NS,
    OPTIONS,
    SIDES,
    SNRS,
    data_of,
    draw_heatmap,
    fake_cells,
    words,
)

AT = np.linspace(2, 24, 100)
CELLS = fake_cells(NS, SNRS)
LAWS = (LAW, "n = snr", "n = 20 - snr / 2")


def test_several_equations_have_a_dash_each_and_a_place_in_the_legend() -> None:
    figure = draw_heatmap(data_of(CELLS), replace(OPTIONS, law=LAWS))
    lines = figure.axes[0].lines
    assert len(lines) == 3
    assert len({str(line._dash_pattern) for line in lines}) == 3  # type: ignore[attr-defined]
    assert len({line.get_color() for line in lines}) == 1
    for line, height in zip(lines, [1000 / AT**2, AT, 20 - AT / 2], strict=True):
        snr, n = np.asarray(line.get_xydata(), dtype=np.float64).T
        known = np.isfinite(snr)
        assert known.sum() > 100
        order = np.argsort(snr[known])
        at = np.interp(AT, snr[known][order], n[known][order], left=np.nan, right=np.nan)
        within = np.isfinite(at) & (height > 2) & (height < 20)
        assert within.sum() > 20
        np.testing.assert_allclose(at[within], height[within], rtol=0.02)
    text = words(figure)
    for law in ("N·SNR² = 1000", "N = SNR", "N = 20 - SNR / 2"):
        assert f"\n{law}\n" in text
        assert f"ine: {law}.\n" in text
    many = tuple(f"n = {height}" for height in range(3, 3 + len(DASHES) + 1))
    lines = draw_heatmap(data_of(CELLS), replace(OPTIONS, law=many)).axes[0].lines
    assert str(lines[0]._dash_pattern) == str(lines[-1]._dash_pattern)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("law", "told"),
    [
        ("the paper's line: n * snr**2 = 1000", "N·SNR² = 1000 (the paper's line)"),
        ("N * snr**2 = 10 * SNR * n", "N·SNR² = 10·SNR·N"),
    ],
)
def test_an_equation_may_have_a_label_and_symbols_beside_names(law: str, told: str) -> None:
    text = words(draw_heatmap(data_of(CELLS), replace(OPTIONS, law=(law,))))
    assert f"\n{told}\n" in text
    assert f"\nLine: {told}.\n" in text


@pytest.mark.parametrize("name", ["heatmap", "cutoff", "boundary"])
@pytest.mark.one_in(3)
def test_every_figure_over_two_parameters_draws_them_unless_there_are_none(name: str) -> None:
    text = words(FIGURES[name].draw(data_of(CELLS), replace(SIDES, law=LAWS)))
    assert all(f"ine: {law}.\n" in text for law in ("N·SNR² = 1000", "N = SNR"))
    none = replace(SIDES, law=read_laws(["none"]))
    assert "Line:" not in words(FIGURES[name].draw(data_of(CELLS), none))


# Whose equation it is


OWN = Figure("a", "", "cells", draw_heatmap, options=replace(OPTIONS, law=(LAW,)), axes=2)


@pytest.mark.parametrize(
    ("asked", "taken"),
    [
        (FigureOptions(), (LAW,)),
        (FigureOptions(law=()), ()),
        (FigureOptions(law=("n = snr",)), ("n = snr",)),
        (FigureOptions(value="steps"), None),  # it is about another column
        (FigureOptions(x="n", y="snr"), (LAW,)),
    ],
)
def test_a_figures_own_equation_gives_way(
    asked: FigureOptions, taken: tuple[str, ...] | None
) -> None:
    assert resolve_options(OWN, asked, data_of(CELLS)).law == taken


# Its curve


def curve_of(text: str, *, most: tuple[float, float] = (16, 20), log: bool = False) -> np.ndarray:
    """The points of a law's curve, SNR from 0.1 and n from 2 to the most, where it has some."""
    law = parse_equation(text, ("n", "snr"))
    curve = equation_curve(law, "snr", "n", (0.1, most[0]), (2, most[1]), log_x=log, log_y=log)
    return curve[np.isfinite(curve[:, 0])]


@pytest.mark.parametrize("log", [True, False])
@pytest.mark.parametrize("text", [LAW, "snr = 1000 / n", "log(n) + 3 = snr", "n - snr = 0"])
def test_the_points_of_a_curve_satisfy_the_law(text: str, log: bool) -> None:
    law = parse_equation(text, ("n", "snr"))
    snr, n = curve_of(text, most=(200, 100), log=log).T
    assert snr.size > 50
    scale = np.abs(law.difference({"snr": 1.01 * snr, "n": n}))
    assert (np.abs(law.difference({"snr": snr, "n": n})) <= scale).all()


def test_a_pole_is_no_part_of_a_law() -> None:
    snr, n = curve_of("n = 10 / (snr - 3.02)").T
    np.testing.assert_allclose(n * (snr - 3.02), 10, rtol=0.02)


@pytest.mark.parametrize("text", ["n = n", "9**9**9**9 = n", "log(-n) = 1", "n = -5"])
def test_a_law_without_a_curve_has_no_points(text: str) -> None:
    assert not curve_of(text).size
