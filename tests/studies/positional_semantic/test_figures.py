"""The figures of the study `positional-semantic`: what they draw is what was measured."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from matplotlib.axes import Axes

import overfit_cli
from overfit_cli import UserError
from overfit_cli.studies.positional_semantic.claims import published_theory
from overfit_cli.studies.positional_semantic.transition import transitions
from tests.fake_study import words

RESULTS = Path(__file__).parents[3] / "results"
PLANE = RESULTS / "positional-phase-quick"
LINES = RESULTS / "positional-published-quick"
SIZES = RESULTS / "positional-sizes-quick"


def by_start(cells: pd.DataFrame, column: str) -> pd.DataFrame:
    """Means over seeds, a column for each start."""
    return cells.groupby(["omega", "alpha", "start"])[column].mean().unstack()


@pytest.mark.slow
def test_overlaps_show_published_numbers_beside_cells_of_their_settings_alone() -> None:
    theory = published_theory().query("start == 'semantic'")
    panels = overfit_cli.draw("overlaps", LINES).axes[:3]
    dotted = [[line for line in axes.lines if line.get_linestyle() == ":"] for axes in panels]
    assert [len(lines) for lines in dotted] == [0, 2, 0]  # θ at ω = 0.1, 0.3, 0.5
    drawn = max(dotted[1], key=lambda line: float(np.max(line.get_ydata())))
    assert np.asarray(drawn.get_ydata()) == pytest.approx(theory["theta"].to_numpy())
    assert "published" not in words(overfit_cli.draw("overlaps", PLANE))


def points(axes: Axes, place: int) -> tuple[np.ndarray, np.ndarray]:
    """The middles of error bars, x and y."""
    line = axes.containers[place].lines[0]  # type: ignore[attr-defined]
    return np.asarray(line.get_xdata(), float), np.asarray(line.get_ydata(), float)


@pytest.mark.slow
def test_the_phase_diagram_has_the_numbers_of_the_start_with_less_loss() -> None:
    figure = overfit_cli.draw("phase", PLANE)
    cells = overfit_cli.load(PLANE)
    losses = by_start(cells, "train_loss")
    is_semantic = losses["semantic"] < losses["positional"]
    cells["ratio"] = cells["test_error"] / cells["linear_test_error"]
    by_seed = cells.set_index(["omega", "alpha", "seed", "start"])[["train_loss", "m"]].unstack()
    gaps = by_seed["train_loss"]["positional"] - by_seed["train_loss"]["semantic"]
    two = gaps[by_seed["m"]["positional"] >= 0.05]
    assert len(two) == len(gaps) - 1
    tables = [two.groupby(level=["omega", "alpha"]).mean() / 300]
    for column in ("theta", "m", "ratio"):
        means = by_start(cells, column)
        tables.append(means["semantic"].where(is_semantic, means["positional"]))
    panels = [axes for axes in figure.axes if axes.get_label() != "<colorbar>"]
    for axes, table in zip(panels, tables, strict=True):
        shown = np.asarray(axes.collections[0].get_array()).ravel()
        assert shown == pytest.approx(table.to_numpy(), rel=1e-9)


@pytest.mark.slow
def test_the_phase_diagram_leaves_blank_what_no_cell_of_an_alpha_has() -> None:
    """With one sample no cell knows which start has less loss."""
    cells = overfit_cli.load(LINES)
    shape = cells["omega"].nunique(), cells["alpha"].nunique()
    panels = [axes for axes in overfit_cli.draw("phase", LINES).axes if axes.collections]
    shown: list[npt.NDArray[np.float64]] = [
        np.ma.array(axes.collections[0].get_array()).filled(np.nan) for axes in panels[:4]
    ]
    assert [numbers.reshape(shape).shape for numbers in shown] == [shape] * 4
    assert any(np.isnan(numbers.reshape(shape)[:, 0]).all() for numbers in shown)


@pytest.mark.slow
def test_overlaps_are_means_over_seeds_beside_the_limit_and_the_published_means() -> None:
    figure = overfit_cli.draw("overlaps", LINES)
    cells = overfit_cli.load(LINES)
    for row, name in enumerate(("theta", "m", "test_error")):
        for column, omega in enumerate((0.1, 0.3, 0.5)):
            axes = figure.axes[3 * row + column]
            crosses = [line for line in axes.lines if line.get_marker() == "x"]
            assert [len(np.asarray(line.get_xdata())) for line in crosses] == [25, 25]
            lines = [line for line in axes.lines if line.get_linestyle() == "-"]
            for place, start in enumerate(("semantic", "positional")):
                rows = cells[(cells["omega"] == omega) & (cells["start"] == start)]
                alphas, means = points(axes, place)
                assert len(alphas) == 25
                assert means == pytest.approx(rows.groupby("alpha")[name].mean().to_numpy())
                limits = rows.groupby("alpha")[f"replica_{name}"].first().dropna()
                drawn = np.asarray(lines[place].get_ydata(), float)
                assert drawn == pytest.approx(limits.to_numpy())


@pytest.mark.slow
def test_branches_are_drawn_with_the_difference_of_their_means() -> None:
    figure = overfit_cli.draw("branches", PLANE)
    losses = by_start(overfit_cli.load(PLANE), "train_loss") / 300
    for column, omega in enumerate((0.2, 0.3, 0.4)):
        above, below = figure.axes[column], figure.axes[3 + column]
        for place, start in enumerate(("semantic", "positional")):
            assert points(above, place)[1] == pytest.approx(losses[start].loc[omega].to_numpy())
        gaps = (losses["semantic"] - losses["positional"]).loc[omega]
        assert points(below, 0)[1] == pytest.approx(gaps.to_numpy())


def test_a_seeds_transition_lies_between_the_alphas_where_its_losses_change_places() -> None:
    """And a seed with a failed cell there has none."""
    cells = overfit_cli.load(PLANE)
    table = transitions(cells, "energy", "omega").set_index(["omega", "seed"])["alpha"]
    losses = cells.set_index(["omega", "seed", "alpha", "start"])["train_loss"].unstack()
    simple = 0
    differences = losses["semantic"] - losses["positional"]
    for omega, seed in table.index:
        gaps = differences.loc[omega].loc[seed]
        ahead = np.sign(gaps.to_numpy())
        if (np.diff(ahead) != 0).sum() == 1:
            before = int(np.argmax(np.diff(ahead) < 0))
            assert gaps.index[before] <= table[omega, seed] <= gaps.index[before + 1]
            simple += 1
    assert simple > 10
    lost = cells["seed"].eq(0) & cells["omega"].eq(0.3) & cells["start"].eq("semantic")
    cells["train_loss"] = cells["train_loss"].mask(lost)
    table = transitions(cells, "energy", "omega").set_index(["omega", "seed"])["alpha"]
    assert pd.isna(table[0.3, 0])
    assert table[0.3][1:].notna().all()


@pytest.mark.slow
def test_sizes_show_means_beside_the_root_of_d() -> None:
    figure = overfit_cli.draw("sizes", SIZES)
    cells = overfit_cli.load(SIZES)
    rows = cells[cells["start"] == "semantic"]
    axes = figure.axes[0]
    assert points(axes, 0)[1] == pytest.approx(rows.groupby("d")["m"].mean().to_numpy())
    guide = next(line for line in axes.lines if line.get_linestyle() == "--")
    ends = np.asarray(guide.get_ydata(), float)[[0, -1]]
    assert ends[1] / ends[0] == pytest.approx((100 / 800) ** 0.5)


@pytest.mark.parametrize(
    ("figure", "needed"),
    [
        ("phase", "both starts over ω and α"),
        ("overlaps", "both starts along α"),
        ("sizes", "both starts along d and α"),
    ],
)
@pytest.mark.slow
def test_other_cells_are_refused_with_a_preset_that_has_them(
    figure: str, needed: str, tmp_path: Path
) -> None:
    out, few = tmp_path / "few", {"d": 20, "alpha": 0.5, "training_steps": 2}
    overfit_cli.sweep("positional-semantic", seeds=1, parameters=few, out=out, jobs=1)
    with pytest.raises(UserError, match=f"needs {needed}, as in `overfit sweep positional-"):
        overfit_cli.draw(figure, out)
