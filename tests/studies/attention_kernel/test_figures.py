"""Figures of kernel-regression, from kept cells."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import overfit_cli
from overfit_cli.studies.attention_kernel.regression.study import FIGURES
from overfit_cli.studies.attention_kernel.regression.theory import lacks_width
from overfit_cli.sweeps.load import load_figure_data
from overfit_cli.sweeps.store import RunDirectory

BALANCED = "kernel-eigenvalue-balanced-quick"


def draw(name: str, run: str) -> Any:
    figure = FIGURES[name]
    return figure.draw(
        load_figure_data(RunDirectory(Path("results") / run, "from")), figure.options
    )


def heights(axes: Any, marker: str, *, hollow: bool = False) -> list[float]:
    """The heights of single markers, filled or hollow."""
    return [
        float(line.get_ydata()[0])
        for line in axes.lines
        if line.get_marker() == marker and (line.get_markerfacecolor() == "white") == hollow
    ]


def test_steps_count_the_seeds_that_diverge_as_slower_than_all_others() -> None:
    figure = draw("tangent-steps", "kernel-tangent-steps-quick")
    [axes] = figure.axes
    cells = overfit_cli.load("results/kernel-tangent-steps-quick")
    softmax = cells[cells["kernel"] == "softmax"]
    counted = softmax["steps_to_millionth"].astype(float).fillna(np.inf)
    medians = counted.groupby(softmax["learning_rate"]).median()
    assert heights(axes, "o") == pytest.approx(medians[np.isfinite(medians)].tolist())
    [few] = heights(axes, "o", hollow=True)
    assert few == softmax.loc[softmax["learning_rate"] == 131072, "steps_to_millionth"].median()
    said = {text.get_text() for text in axes.texts}
    assert {"5/20", "12/20", "14/20"} <= said
    assert len(heights(axes, "$\\uparrow$")) == 7, "softmax ends above the target, undiverged"
    assert len(heights(axes, "x")) == 8


def test_predicted_steps_have_the_statistic_of_those_that_were_measured() -> None:
    [axes] = draw("tangent-steps", "kernel-tangent-steps-quick").axes
    dashed = [line for line in axes.lines if line.get_linestyle() == "--"]
    joined = [
        line
        for line in axes.lines
        if line.get_linestyle() == "-" and len(line.get_xdata()) > 1 and line.get_marker() == "None"
    ]
    for measured, predicted in zip(joined, dashed, strict=True):
        expected = dict(zip(predicted.get_xdata(), predicted.get_ydata(), strict=True))
        for rate, steps in zip(measured.get_xdata(), measured.get_ydata(), strict=True):
            assert steps == pytest.approx(expected[rate], abs=1)


@pytest.mark.parametrize(("run", "proof"), [("kernel-eigenvalue-quick", False), (BALANCED, True)])
def test_the_slowest_rate_stands_over_the_theorems_and_over_its_bound(
    run: str, proof: bool
) -> None:
    figure = draw("eigenvalue", run)
    columns = len(figure.axes) // 2
    upper, lower = figure.axes[0], figure.axes[columns]
    cells = overfit_cli.load(f"results/{run}")
    cells = cells[(cells["d"] == cells["d"].min()) & (cells["d_h"] == 8)]
    medians = cells.groupby("heads")["rate_margin"].median()
    [line] = [line for line in upper.lines if line.get_marker() == "s"]
    [below] = [line for line in lower.lines if line.get_marker() == "s"]
    assert line.get_ydata() == pytest.approx(medians.to_numpy())
    assert all(line.get_xdata() == medians.index), "unshifted: it lies on a slope"
    assert below.get_ydata() == pytest.approx(medians.to_numpy() * medians.index.to_numpy() / 2)
    level = [line.get_ydata()[0] for line in upper.lines if line.get_linestyle() == ":"]
    assert level == ([0.25] if proof else [])
    assert ("beta" if proof else "alpha") in upper.get_ylabel()
    assert figure.get_figwidth() <= 7


def widths_along(axes: Any, features: int) -> list[float]:
    """The d at which the black line crosses a D, and from which on it says nothing."""
    [black] = [line for line in axes.lines if line.get_color() == "0.1"]
    corners = [tuple(map(float, corner)) for corner in black.get_xydata()]
    upright = [(a[0], a[1], b[1]) for a, b in itertools.pairwise(corners)]
    return [d for d, low, high in upright if low <= features < high]


def test_the_black_line_is_the_fifth_size_of_softmax() -> None:
    figure = draw("ranks", "kernel-ranks-further-quick")
    tokens, samples = 3, (2, 3, 5)
    assert len(figure.axes) == 3
    for axes, n in zip(figure.axes, samples, strict=True):
        for features in range(tokens, 15):
            least = widths_along(axes, features)
            for width in range(2, 15):
                sizes = [np.array(size) for size in (n, tokens, features, width)]
                lacks = bool(lacks_width(True, *sizes))
                assert lacks == any(width < d for d in least), (n, features, width)
    facts = " ".join(figure.facts)
    assert "Dashed: what Remark 4 says is necessary" in facts
    assert "All 10 seeds lie on one side in every cell." in facts
    assert "Softmax cells alone" in facts
    assert all(axes.get_xticks().tolist() == [2, 3, 4, 5, 6, 7, 8, 9] for axes in figure.axes)
