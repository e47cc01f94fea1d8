"""Lines that lie on other lines: a caption says which, and where."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from overfit_cli.figures.hidden_lines import coincide, hidden_in_words, name_line

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
    for x, heights, is_hidden in ((X, X + 1e-4, True), (X, X**2, False), (X[:100], X[:100], False)):
        assert coincide(axes, axes.plot(X, X)[0], axes.plot(x, heights)[0]) == is_hidden
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
