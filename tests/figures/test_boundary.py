from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.legend import Legend

from overfit_cli import UserError
from overfit_cli.figures.panels import side_by_side
from tests.fake_study import (
    LAW,
    NS,
    SIDES,
    SNRS,
    data_of,
    draw_boundary,
    fake_cells,
    fake_loss,
    prose,
    words,
)


def points(axes: Axes, place: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Where the points of a boundary lie: snr and n."""
    line = axes.containers[place].lines[0]  # type: ignore[attr-defined]
    return np.asarray(line.get_xdata(), float), np.asarray(line.get_ydata(), float)


def legend(figure: Figure) -> list[str]:
    inside = [artist for artist in figure.axes[0].get_children() if isinstance(artist, Legend)]
    return [text.get_text() for each in inside for text in each.get_texts()]


def test_a_boundary_recovers_the_law_on_logarithmic_axes() -> None:
    noisy = fake_cells(NS, SNRS, seeds=5, noise=0.1)
    figure = draw_boundary(data_of(noisy), replace(SIDES, law=(LAW,)))
    axes = figure.axes[0]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    snr, n = points(axes)
    np.testing.assert_allclose(n * snr**2, 1000, rtol=0.1)
    text = words(figure)
    assert (
        "Where test loss crosses 0.2, for each value of training samples N: median of 5 seeds"
        in text
    )
    assert "\nmedian of 5 seeds, least to greatest\n" in text
    assert "\ntest loss = 0.2\n" in text
    assert "\nN·SNR² = 1000\n" in text
    assert "throughout" not in text
    assert "no fit" not in text


def test_the_fitted_numbers_stand_in_the_legend_inside() -> None:
    figure = draw_boundary(data_of(fake_cells(NS, SNRS, seeds=5, noise=0.1)), SIDES)
    [fit] = [text for text in legend(figure) if "^p = C" in text]
    equation, exponent, constant, lack = fit.replace("\N{NO-BREAK SPACE}", " ").split("\n")
    assert equation == r"${N} \cdot {\mathrm{SNR}}^p = C$"
    numbers = re.fullmatch(r"\$p\$ = (\S+) \[(\S+), (\S+)\]", exponent)
    assert numbers is not None
    value, low, high = map(float, numbers.groups())
    assert low <= value <= high
    assert value == pytest.approx(2, abs=0.1)
    assert constant.startswith("$C$ =")
    assert re.fullmatch(r"largest residual \d %", lack)
    assert not figure.legends, "all of it is inside"


def test_values_of_y_that_never_cross_are_named_with_their_side() -> None:
    figure = draw_boundary(data_of(fake_cells([1, 2, 8, 10, 12, 900], SNRS[2:21])), SIDES)
    text = words(figure)
    assert "N = 1, 2: above 0.2 throughout" in text
    assert "N = 900: below 0.2 throughout" in text
    assert points(figure.axes[0])[1].tolist() == [8, 10, 12]


def test_values_of_y_at_which_some_seeds_never_cross_are_open_with_an_arrow_head() -> None:
    """The interval leaves the axes there."""
    cells = fake_cells(NS, SNRS, seeds=6)
    far = (cells["n"] == 4) & (cells["seed"] < 2)
    cells["test_loss"] = cells["test_loss"].where(~far, 0.6)
    figure = draw_boundary(data_of(cells), SIDES)
    [axes] = figure.axes
    assert "some seeds cross off the grid" in words(figure)
    assert points(axes, 1)[1].tolist() == [4]
    assert axes.containers[1].lines[0].get_markerfacecolor() == "white"  # type: ignore[attr-defined]
    [head] = [line for line in axes.lines if line.get_marker() == ">"]
    assert np.asarray(head.get_xydata()).tolist() == [[axes.get_xlim()[1], 4.0]]


def test_few_rows_and_one_seed_are_drawn_without_a_fit() -> None:
    figure = draw_boundary(data_of(fake_cells([5, 10], SNRS, seeds=1)), SIDES)
    text = words(figure)
    assert "\nTest loss of 0.2: one seed\n" in text
    assert "no fit of N·SNR^p = C, fewer than three points" in text


def test_what_a_boundary_cannot_show_is_refused() -> None:
    cells = pd.concat([fake_cells([5], SNRS), fake_cells([5], SNRS, kernel="gaussian")])
    with pytest.raises(UserError) as refused:
        draw_boundary(data_of(cells), replace(SIDES, x="snr", y="kernel"))
    assert "y='kernel': a boundary needs an axis of positive numbers." in str(refused.value)


def test_each_value_of_a_parameter_has_a_boundary_of_its_colour() -> None:
    one, other = fake_cells(NS, SNRS), fake_cells(NS, SNRS, kernel="gaussian")
    other["test_loss"] = [
        fake_loss(2 * n, snr) for n, snr in zip(other["n"], other["snr"], strict=True)
    ]
    figure = draw_boundary(data_of(pd.concat([other, one])), replace(SIDES, by="kernel"))
    axes = figure.axes[0]
    for place, constant in enumerate((1000, 500)):  # in the order of declaration
        snr, n = points(axes, place)
        np.testing.assert_allclose(n * snr**2, constant, rtol=0.1)
    first, second = (axes.containers[place].lines[0].get_color() for place in (0, 1))  # type: ignore[attr-defined]
    assert to_hex(first) != to_hex(second)
    names = re.findall(r"^kernel: (\w+): p\s=\s", words(figure), re.MULTILINE)
    assert names == ["softmax", "gaussian"]


def test_run_directories_are_overlaid_with_their_names() -> None:
    one, other = data_of(fake_cells(NS, SNRS)), data_of(fake_cells([1, *NS], SNRS))
    figure = draw_boundary(side_by_side(["before", "after"], [one, other]), SIDES)
    assert len(figure.axes) == 1
    text = words(figure)
    assert re.findall(r"^(before|after): p\s=\s", text, re.MULTILINE) == ["before", "after"]
    assert "after, N = 1: above 0.2 throughout" in text
    assert "before, N" not in text
    widths = [fake_cells([5, 10], SNRS, seeds=1, width=2**power) for power in range(9)]
    with pytest.raises(UserError, match=r"by='width': it makes 9 boundaries, .* up to 8"):
        draw_boundary(data_of(pd.concat(widths)), replace(SIDES, by="width"))


def test_notes_on_a_boundary_are_one_line_however_many_seeds_cross() -> None:
    """Inside the axes there is room for a short line; the caption counts seeds."""
    cells = fake_cells([*range(5, 15), 20, 40], SNRS, seeds=6)
    for n, least in ((5, 2), (6, 1)):
        above = (cells["n"] == n) & (cells["seed"] >= least)
        cells["test_loss"] = cells["test_loss"].where(~above, 0.6)
    figure = draw_boundary(data_of(cells), SIDES)
    assert "$N$ = 5, 6: median beyond the grid" in legend(figure)
    told = prose(figure)
    assert "N = 5: median beyond the grid (2 of 6 seeds cross on it). N = 6: median" in told
    rising = (cells["seed"] < 2) & (cells["n"] > 6)
    cells["test_loss"] = cells["test_loss"].where(~rising, 0.4 - cells["test_loss"])
    told = prose(draw_boundary(data_of(cells[cells["n"] > 6]), SIDES))
    assert "crossing curves rise, the others fall." in told


def rising() -> pd.DataFrame:
    """Losses that cross 0.2 where SNR is the square root of N."""
    cells = fake_cells([1, 2, 4, 8, 16], SNRS, seeds=2)
    return cells.assign(test_loss=0.2 * cells["n"] ** 0.5 / cells["snr"])


def test_a_boundary_that_rises_is_drawn_as_a_function_without_a_constant() -> None:
    figure = draw_boundary(data_of(rising()), replace(SIDES, law=("snr = n**0.5",)))
    axes = figure.axes[0]
    n, snr = points(axes)
    np.testing.assert_allclose(snr, n**0.5, rtol=0.02)
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["1", "2", "4", "8", "16"]
    n_of_law, snr_of_law = np.asarray(axes.lines[-1].get_xydata(), float).T
    known = np.isfinite(n_of_law)
    np.testing.assert_allclose(snr_of_law[known], n_of_law[known] ** 0.5, rtol=0.01)
    text = words(figure)
    assert re.search(r"SNR ∝ N\^?q?.*: q\s=\s0\.(49|5)", text)
    assert "C\N{NO-BREAK SPACE}=" not in text
    bent = rising()
    bent["test_loss"] = bent["test_loss"].where(bent["n"] != 4, 1.5 * bent["test_loss"])
    share = re.search(r"largest residual (\d+) %", prose(draw_boundary(data_of(bent), SIDES)))
    assert share is not None
    assert int(share[1]) == pytest.approx(38, abs=2)  # 1.5^(4/5) - 1: the fit takes a fifth


def test_a_bent_boundary_has_the_powers_of_its_halves_and_its_whole_fit_in_view() -> None:
    cells = fake_cells([5, 10, 20, 40, 80, 160], np.geomspace(0.1, 64, 60).tolist())
    bend = np.where(cells["n"] > 20, (cells["n"] / 20.0) ** 2, 1.0)
    bent = cells.assign(test_loss=0.7 / (1 + 2.5 * (cells["n"] * cells["snr"] ** 2 * bend / 1000)))
    figure = draw_boundary(data_of(bent), SIDES)
    text = prose(figure)
    assert "No one power law: p is 2 for N up to 20, and 0.67 from 40 on." in text
    [axes] = figure.axes
    [fit] = [line for line in axes.lines if line.get_linestyle() == "--"]
    ends, limits = np.asarray(fit.get_xdata(), float), axes.get_xlim()
    assert limits[0] <= min(ends) <= max(ends) <= limits[1]
    straight = draw_boundary(data_of(fake_cells(NS, SNRS, seeds=5)), SIDES)
    assert "No one power law" not in words(straight)


@pytest.mark.slow
def test_a_caption_says_which_powers_the_grid_alone_leaves() -> None:
    # N = 1 crosses at √1000 = 31.6, between 16 and 32, and N = 100 at 3.16, between 2 and 4.
    coarse = fake_cells([1, 10, 100], [2.0**k for k in range(7)], seeds=4)
    text = prose(draw_boundary(data_of(coarse), SIDES))
    low, high = np.log(100) / np.log(32 / 2), np.log(100) / np.log(16 / 4)
    assert f"Grid alone: p from {low:.2g} to {high:.2g}, wherever in its step of" in text
    refined = words(draw_boundary(replace(data_of(coarse), refined=True), SIDES))
    assert "Grid alone" not in refined


def test_a_caption_says_that_intervals_lie_under_their_markers() -> None:
    narrow, wide = (fake_cells(NS, SNRS, seeds=5, noise=noise) for noise in (0.01, 0.3))
    hidden = "The intervals are narrower than the markers."
    assert hidden in words(draw_boundary(data_of(narrow), SIDES)).replace("\n", " ")
    assert hidden not in words(draw_boundary(data_of(wide), SIDES)).replace("\n", " ")
