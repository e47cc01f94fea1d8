"""Figures of kernel-regression, from kept cells."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from overfit_cli.studies.attention_kernel.regression.study import FIGURES
from overfit_cli.studies.attention_kernel.regression.theory import lacks_rank, lacks_width
from overfit_cli.sweeps.load import load_figure_data
from overfit_cli.sweeps.store import RunDirectory


def draw(name: str, run: str) -> Any:
    figure = FIGURES[name]
    return figure.draw(
        load_figure_data(RunDirectory(Path("results") / run, "from")), figure.options
    )


def test_minima_are_counted_by_seeds_with_exact_intervals() -> None:
    inside, near = draw("minima", "kernel-minima-quick").axes
    assert near.get_title(loc="left") == "(b) labels: near the first outputs"
    five = inside.containers[1]
    assert five.lines[0].get_ydata()[0] == 0.1, "2 of 20 seeds, n = 5 and d = 1"
    segments = five.lines[2][0].get_segments()
    np.testing.assert_allclose(segments[0][:, 1], [0.0123, 0.317], atol=1e-3)
    np.testing.assert_allclose(segments[3][:, 1], [0.0, 0.168], atol=1e-3)


def test_predicted_steps_have_the_statistic_of_those_that_were_measured() -> None:
    [axes] = draw("tangent-steps", "kernel-tangent-steps-quick").axes
    lines = [line for line in axes.lines if len(line.get_xdata()) == 13]
    for measured, predicted in (lines[:2], lines[2:4]):
        ended = np.isfinite(measured.get_ydata())
        apart = measured.get_ydata()[ended] - predicted.get_ydata()[ended]
        assert np.abs(apart).max() <= 1


def widths_along(axes: Any, features: int) -> list[float]:
    """The d at which the black line crosses a D, and from which on it says nothing."""
    [black] = [line for line in axes.lines if line.get_color() == "0.1"]
    corners = [tuple(map(float, corner)) for corner in black.get_xydata()]
    upright = [(a[0], a[1], b[1]) for a, b in itertools.pairwise(corners)]
    return [d for d, low, high in upright if low <= features < high]


@pytest.mark.parametrize("kernel", ["softmax", "gaussian"])
@pytest.mark.parametrize("run", ["", "further"])
def test_the_black_line_is_the_fifth_size_of_its_kernel(kernel: str, run: str) -> None:
    name = "ranks" if kernel == "softmax" else "ranks-gaussian"
    figure = draw(name, f"kernel-{'ranks-further' if run else name}-quick")
    tokens, samples = (3, (2, 3, 5)) if run else (4, (2, 4, 6))
    assert len(figure.axes) == 3
    for axes, n in zip(figure.axes, samples, strict=True):
        for features in range(tokens, 15):
            least = widths_along(axes, features)
            for width in range(2, 15):
                sizes = [np.array(size) for size in (n, tokens, features, width)]
                lacks = bool(lacks_width(kernel == "softmax", *sizes))
                assert lacks == any(width < d for d in least), (n, features, width)
    facts = " ".join(figure.facts)
    assert "the fifth size" in facts
    assert (f"kernel={kernel} alone" in facts) == bool(run)


def test_the_gaussians_fourth_size_is_the_curve_that_is_drawn() -> None:
    n, tokens, features = (axis.ravel() for axis in np.mgrid[2:9, 2:9, 1:60])
    lacks = lacks_rank(False, n, tokens, features, np.full_like(n, 99))["Sym² and Λ²"]
    assert "d**2 = n * tokens * (tokens - 1)" in (FIGURES["ranks-gaussian"].options.law or ())
    np.testing.assert_array_equal(lacks, features**2 < n * tokens * (tokens - 1))
