"""Claims are drawn on the numbers that they are judged on, with their margins and fitted powers."""

from __future__ import annotations

import math
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

import overfit_cli
from overfit_cli.core.errors import UserError
from overfit_cli.figures.picture import Picture
from overfit_cli.report.claim_figure import MOST_CLAUSES, MOST_ROWS, draw_claims
from overfit_cli.report.decision import decide_sentences
from tests.command import call
from tests.fake_study import words
from tests.report.toy_numbers import Numbers, loss, write_run

NS, SEEDS = (1, 2, 4, 8), tuple(range(9))


def inverse(n: int, snr: float, seed: int) -> float:
    noise = np.random.default_rng([n, round(10 * snr), seed]).normal()
    return float(math.exp(0.05 * noise) / n)


def kept(path: Path, numbers: Numbers | None = None, snr: tuple[float, ...] = (1.0,)) -> Path:
    return write_run(path / "run", numbers or loss(inverse), n=NS, snr=snr, seeds=SEEDS)


def draw(run: Path, *texts: str) -> Picture:
    judged = [decision.judged for decision in decide_sentences(run, texts)]
    return draw_claims(run, judged)


def medians() -> np.ndarray:
    return np.array([np.median([inverse(n, 1.0, seed) for seed in SEEDS]) for n in NS])


def heights(line: Line2D) -> np.ndarray:
    return np.asarray(line.get_ydata(), dtype=np.float64)


def test_a_level_has_its_median_and_interval_at_every_setting_and_its_margin(
    tmp_path: Path,
) -> None:
    figure = draw(kept(tmp_path), "test_loss < 0.6 where n >= 2")
    (axes,) = figure.axes
    [line] = axes.lines
    np.testing.assert_allclose(heights(line), medians()[1:])
    [bars] = [shape for shape in axes.collections if isinstance(shape, LineCollection)]
    order = np.sort([inverse(2, 1.0, seed) for seed in SEEDS])
    np.testing.assert_allclose(bars.get_segments()[0][:, 1], [order[1], order[-2]])  # of 9 seeds
    [span] = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
    assert span.get_y() + span.get_height() == pytest.approx(0.6)
    said = words(figure, tmp_path)
    assert "test_loss < 0.6 where n >= 2: holds" in said
    assert "where the claim holds" in said
    assert "with 95 % intervals" in said


def test_a_power_has_its_fit_the_slopes_of_its_margin_and_its_interval(tmp_path: Path) -> None:
    run = kept(tmp_path)
    text = "power of n in test_loss is -1 within 0.1"
    [decision] = decide_sentences(run, [text])
    measured = decision.judged.measurement
    lines, intervals = draw(run, text).axes
    points, fit = lines.lines
    np.testing.assert_allclose(heights(points), medians())
    x, y = np.log(np.asarray(fit.get_xydata(), float)).T
    assert np.polyfit(x, y, 1)[0] == pytest.approx(measured.value)
    [wedge] = [shape for shape in lines.collections if isinstance(shape, PolyCollection)]
    corners = np.log(wedge.get_paths()[0].vertices)
    right = corners[corners[:, 0] == corners[:, 0].max()]
    run_along = x[-1] - np.log(NS).mean()
    height = np.log(medians()).mean()
    slopes = sorted({round(float((edge - height) / run_along), 6) for edge in right[:, 1]})
    assert slopes == pytest.approx([-1.1, -0.9])
    [bar] = [shape for shape in intervals.collections if isinstance(shape, LineCollection)]
    assert measured.interval is not None
    ends = bar.get_segments()[0][:, 0]
    assert ends.tolist() == pytest.approx([measured.interval.low, measured.interval.high])


def test_a_contour_is_drawn_where_the_seeds_cross_it(tmp_path: Path) -> None:
    run = kept(tmp_path, loss(lambda n, snr, seed: n / snr), snr=(0.5, 1.0, 2.0, 4.0, 8.0, 16.0))
    lines, _ = draw(run, "power of n in snr at test_loss = 1.5 is 1 within 0.1").axes
    np.testing.assert_allclose(heights(lines.lines[0]), np.array(NS) / 1.5, rtol=0.1)
    assert lines.get_ylabel() == "signal-to-noise ratio"


def test_a_trend_has_a_row_for_its_line_its_end_and_its_turn(tmp_path: Path) -> None:
    figure = draw(kept(tmp_path), "test_loss falls along n")
    names = [label.get_text() for label in figure.axes[1].get_yticklabels()]
    assert names == ["the whole line", "its end", "its turn"]
    assert "rank correlation" in figure.axes[1].get_xlabel()


@pytest.mark.slow
def test_an_interval_without_an_end_reaches_the_frame(tmp_path: Path) -> None:
    lost = loss(inverse)
    run = kept(tmp_path, lambda n, snr, seed: None if seed < 4 else lost(n, snr, seed))
    (axes,) = draw(run, "test_loss[n=8] < test_loss[n=1]").axes
    [bar] = [shape for shape in axes.collections if isinstance(shape, LineCollection)]
    assert bar.get_segments()[0][:, 0].tolist() == list(axes.get_xlim())


@pytest.mark.slow
def test_of_many_intervals_and_lines_the_nearest_to_the_margin_are_drawn(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", loss(inverse), n=range(1, 15), snr=range(1, 10), seeds=SEEDS)
    figure = draw(run, "test_loss < 0.6")
    assert len(heights(figure.axes[0].lines[0])) == MOST_ROWS
    said = words(figure, tmp_path)
    assert f"Of 126 intervals the {MOST_ROWS} nearest to their margin's end are drawn." in said
    assert "n=1, snr=" in said
    assert "n=14" not in said
    said = words(draw(run, "test_loss falls along n"), tmp_path)
    assert "Of 9 lines the 8 nearest to their margin's end are drawn." in said


def test_a_line_has_one_colour_in_all_panels(tmp_path: Path) -> None:
    run = kept(tmp_path, snr=(1.0, 2.0, 3.0))
    figure = draw(run, "test_loss < 2 where snr >= 2", "test_loss < 1.5", "test_loss falls along n")
    few, all_of_them, trend, _ = ([line.get_color() for line in axes.lines] for axes in figure.axes)
    assert few == all_of_them[1:]
    assert trend == all_of_them
    [legend] = figure.legends
    texts = [text.get_text() for text in legend.get_texts()]
    assert len(texts) == len(set(texts)) == 1 + len(all_of_them)


def test_points_of_one_x_lie_nearer_to_it_than_to_another(tmp_path: Path) -> None:
    noise = loss(lambda n, snr, seed: float(np.random.default_rng(seed).random() + snr - n))
    ns = (1, 50, 98, 99, 100)  # of which three lie close together
    run = write_run(tmp_path / "run", noise, n=ns, snr=range(1, 5), seeds=SEEDS)
    for text in ("test_loss < 6", "test_loss falls along n"):
        axes = draw(run, text).axes[0]
        xs = np.array([line.get_xdata() for line in axes.lines])
        assert len(xs) == 4
        assert (np.abs(xs - ns) < 0.5).all()


@pytest.mark.slow
def test_what_has_no_drawing_is_refused_in_a_sentence(tmp_path: Path) -> None:
    run = kept(tmp_path)
    many = [f"test_loss < {number}" for number in range(1, MOST_CLAUSES + 2)]
    with pytest.raises(UserError, match=f"up to {MOST_CLAUSES} quantities, and these claims have"):
        draw(run, *many)
    with pytest.raises(UserError, match="It needs 3 values of snr; these cells have one"):
        draw(run, "test_loss falls along snr")
    said = words(draw(run, "test_loss falls along snr", "test_loss < 2"), tmp_path)
    assert "Not drawn: test_loss-falls-along-snr: It needs 3 values of snr" in said


def test_a_drawn_claim_is_verified_and_drawn_again(tmp_path: Path) -> None:
    run = kept(tmp_path)
    overfit_cli.judge(run, "low: test_loss < 0.6", out=tmp_path / "low.png")
    assert matplotlib.image.imread(tmp_path / "low.png").std() > 0.05
    assert "low: fails, " in (tmp_path / "low.txt").read_text()
    said = call("verify", "low.png", "--redraw", cwd=tmp_path).stdout
    assert "Drawn again, the picture is the same." in said
