"""Claims are drawn on the numbers that they are judged on, with their intervals and margins."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.text import Text

from overfit_cli.core.errors import UserError
from overfit_cli.figures.picture import Picture
from overfit_cli.report.judge import Judged, decide
from overfit_cli.report.pictures import MOST_ROWS, draw_claims
from overfit_cli.report.runs import load_runs
from overfit_cli.sweeps.store import RunDirectory
from tests.fake_study import words
from tests.report.made_up import loss, write_run

NS, SEEDS = (1, 2, 4, 8), tuple(range(9))


def inverse(n: int, snr: float, seed: int) -> float:
    noise = np.random.default_rng([n, round(10 * snr), seed]).normal()
    return float(math.exp(0.05 * noise) / n)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nine seeds of 1/n, about; what the first trend of a process takes beside is no test's."""
    folder = tmp_path_factory.mktemp("claims")
    path = write_run(folder / "run", loss(inverse), n=NS, snr=(1.0,), seeds=SEEDS)
    judged(path, "test_loss falls along n")
    return path


def judged(run: Path, *texts: str) -> list[Judged]:
    (loaded,) = load_runs([RunDirectory(run)])
    return decide(loaded, texts)


def draw(run: Path, *texts: str) -> Picture:
    return draw_claims(judged(run, *texts))


def rows_of(axes: Axes) -> list[str]:
    return [tick.get_text() for tick in axes.get_yticklabels()]


def bars(axes: Axes) -> list[list[float]]:
    [found] = [shape for shape in axes.collections if isinstance(shape, LineCollection)]
    return [np.asarray(segment)[:, 0].tolist() for segment in found.get_segments()]


def test_a_level_has_its_median_and_interval_at_every_setting_and_its_margin(run: Path) -> None:
    figure = draw(run, "test_loss < 0.6 where n >= 2")
    (axes,) = figure.axes
    [line] = axes.lines
    medians = [np.median([inverse(n, 1.0, seed) for seed in SEEDS]) for n in NS]
    np.testing.assert_allclose(np.asarray(line.get_xdata(), dtype=np.float64), medians[1:])
    order = np.sort([inverse(2, 1.0, seed) for seed in SEEDS])
    np.testing.assert_allclose(bars(axes)[0], [order[1], order[-2]])  # of 9 seeds
    shaded = [patch.get_window_extent().x1 for patch in axes.patches]
    assert shaded == pytest.approx([axes.transData.transform((0.6, 0))[0]] * 3)
    assert rows_of(axes) == ["n=2", "n=4", "n=8"]
    said, claimed = words(figure), "test_loss < 0.6 where n >= 2: holds"
    assert all(each in said for each in (claimed, "where the claim holds", "with 95 % intervals"))


TREND = ["the whole line", "its end", "its turn"]
TREND += ["all but the first value", "all but the last value"]
OF_TREND = "rank correlation; of its end and turn, a share"


def test_a_fit_and_a_trend_have_the_intervals_that_they_are_judged_on(run: Path) -> None:
    for text, rows, label in (
        ("power of n in test_loss is -1 within 0.1", [], "power of n in test_loss"),
        ("test_loss falls along n", TREND, OF_TREND),
    ):
        [claim] = judged(run, text)
        (axes,) = draw_claims([claim]).axes
        assert rows_of(axes) == rows
        assert " ".join(axes.get_xlabel().split()) == label
        assert len(bars(axes)) == max(1, len(rows))
        interval = claim.measurement.interval
        assert interval is not None
        assert any(end == pytest.approx([interval.low, interval.high]) for end in bars(axes))


def test_a_long_claim_lies_inside_its_picture_beside_rows_with_long_names(run: Path) -> None:
    long = "`test_loss`[n=8] + test_loss[n=4]**2/test_loss[n=4]/test_loss[n=4]/test_loss[n=4] < 2"
    figure = draw(run, long, "test_loss falls along n")
    figure.draw_without_rendering()
    for axes in figure.axes:
        assert axes.get_position().width > 0.5
        texts = [*axes.findobj(Text), axes.xaxis.label]
        boxes = [text.get_window_extent() for text in texts if text.get_text()]
        assert all(0 <= box.x0 <= box.x1 <= figure.bbox.x1 for box in boxes)
    assert "`" not in figure.axes[0].get_xlabel()


def test_an_interval_without_an_end_reaches_the_frame(tmp_path: Path) -> None:
    lost = loss(lambda n, snr, seed: None if seed < 4 else inverse(n, snr, seed))
    run = write_run(tmp_path / "run", lost, n=NS, snr=(1.0,), seeds=SEEDS)
    (axes,) = draw(run, "test_loss[n=8] < test_loss[n=1]").axes
    assert bars(axes)[0] == list(axes.get_xlim())


@pytest.mark.slow
def test_of_many_intervals_the_nearest_to_the_margin_are_drawn(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", loss(inverse), n=range(1, 15), snr=range(1, 10), seeds=SEEDS)
    figure = draw(run, "test_loss < 0.6")
    assert len(bars(figure.axes[0])) == MOST_ROWS
    said = words(figure)
    assert f"Of 126 intervals the {MOST_ROWS} nearest to their margin's end are drawn." in said
    assert "n=1, snr=" in said
    assert "n=14" not in said


@pytest.mark.slow
def test_what_has_no_drawing_is_refused_in_a_sentence(run: Path) -> None:
    with pytest.raises(UserError, match="It needs 3 values of snr on a line; these cells have"):
        draw(run, "test_loss falls along snr")
    said = words(draw(run, "test_loss falls along snr", "test_loss < 2"))
    assert "test_loss falls along snr: not run, –." in said
