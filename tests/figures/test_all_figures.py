"""Properties of every figure: no text says nonsense, none is drawn of nothing."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

import overfit_cli
from overfit_cli import UserError
from overfit_cli.core.cells import Cells
from overfit_cli.core.figure import Figure, FigureOptions
from overfit_cli.figures.draw import draw_figure
from overfit_cli.figures.inputs import side_by_side
from overfit_cli.figures.picture import Picture, new_panels
from tests import fake_study as fake
from tests.toy_runs import sweep_toy

FIGURES: list[tuple[str, dict[str, Any]]] = [
    ("heatmap", {"threshold": 0.2}),
    ("cutoff", {}),
    ("boundary", {}),
    ("lines", {}),
    ("lines", {"band": "sd"}),
    ("curves", {}),
    ("curves", {"band": "seeds"}),
]
SEEDS = [(3, 1), (4, 3), (2, 0), (2, 1), (4, 4)]
"""How many there are, and how many of them failed at one n."""
TOLD = [
    *((name, options, 1, 0) for name, options in FIGURES),
    *((*FIGURES[at], *SEEDS[(at + more) % len(SEEDS)]) for at in range(7) for more in (0, 2)),
]
"""Each figure of one seed and of two other numbers, and each number on two figures or more."""


def few(name: str, seeds: int, failed: int = 0) -> Cells:
    """Cells that a figure can draw, of which the first seeds have failed at one n."""
    snrs = fake.SNRS[::16] if name == "curves" else fake.SNRS[::8]
    cells = fake.fake_cells([5, 20], snrs, seeds=seeds, noise=0.05)
    return fake.logged(fake.fail(cells, f"n == 20 and seed < {failed}"))


@pytest.fixture(scope="module", autouse=True)
def first_figure() -> None:
    """What the first one of a process takes beside is no test's."""
    fake.words(fake.draw("heatmap", few("heatmap", 1)))


@pytest.mark.parametrize(("name", "options", "seeds", "failed"), TOLD)
@pytest.mark.one_in(5)
def test_seeds_are_told_in_words_that_a_person_would_use_and_lie_in_the_picture(
    name: str, options: dict[str, Any], seeds: int, failed: int
) -> None:
    figure = fake.draw(name, few(name, seeds, failed), **options)
    figure.draw_without_rendering()
    box, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
    assert min(box.x0, box.y0, width - box.x1, height - box.y1) > -0.02
    text = fake.words(figure)
    assert not re.search(r"\b1 (seeds|cells)\b|(mean|median|bars?) of 1 (?!to \d)", text)
    assert not re.search(r"\bnan\b|\binf\b|None|0 failed", text)
    if seeds == 1:
        assert re.search("one seed|single cell", text)
        assert not re.search("mean of|deviation", text)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("name", "options"), FIGURES)
def test_figures_of_two_runs_can_be_drawn_too(name: str, options: dict[str, Any]) -> None:
    both = side_by_side(["one", "other"], [few(name, 2), few(name, 1)])
    text = fake.words(fake.draw(name, both, **options))
    assert re.search(r"\n(\(a\) )?one", text) and re.search(r"\n(\(b\) )?other", text)


def empty(data: object, options: object) -> Picture:
    figure, [axes] = new_panels(1)
    axes.plot([1.0, 2.0], [np.nan, np.nan])
    axes.text(0.5, 0.5, "here is nothing")
    return figure


def test_a_figure_without_anything_on_it_is_a_sentence(tmp_path: Path) -> None:
    directory = sweep_toy(tmp_path / "run")
    figures = {"empty": Figure("empty", "Nothing", "cells", empty)}
    with (
        mock.patch("overfit_cli.core.registry.figures_of", lambda study: figures),
        pytest.raises(UserError, match=r"^empty: nothing would be drawn; the cells hold no number"),
    ):
        draw_figure("empty", [directory], FigureOptions())


@pytest.mark.parametrize(("name", "options"), FIGURES)
def test_cells_that_all_failed_are_refused(name: str, options: dict[str, Any]) -> None:
    gone = fake.fail(fake.fake_cells([5, 20], fake.SNRS[::8], seeds=2), "n > 0")
    with pytest.raises(UserError, match="number"):
        fake.draw(name, fake.logged(gone, train_loss=np.nan), **options)


LARGEST = 1.7e308
SCALES = (-0.0, 3e-308, 1e-300, -1.0, 1.0, 1e18, 1e300, LARGEST)
SHAPES: dict[str, Callable[[float, float, float], float]] = {
    "flat": lambda n, snr, noise: 1.0,
    "α_{n}^$x$ % #&": lambda n, snr, noise: noise,
    "with zeros": lambda n, snr, noise: max(noise, 0.0),
    "sides": lambda n, snr, noise: np.sign(noise),
    "last digit": lambda n, snr, noise: 1 + 2.0**-52 * (noise > 0),
    "span": lambda n, snr, noise: 10.0 ** (300 * np.tanh(noise)),
    "spike": lambda n, snr, noise: 1e12 if n == 20 and abs(noise) > 1.5 else noise,
    "vertical": lambda n, snr, noise: 1 / (1 + (snr / 2 / n**-0.0005) ** 4),
    "horizontal": lambda n, snr, noise: (n > 15) + 0.1 * noise,
    "peak": lambda n, snr, noise: np.exp(-((snr - 1) ** 2)),
    "diverging": lambda n, snr, noise: (1 + snr) ** min(n * 8, 300),
}
COLUMNS = {f"{shape} times {scale:g}": (shape, scale) for shape in SHAPES for scale in SCALES}


def measure(n: int = 10, snr: float = 1.0, seed: int = 0) -> dict[str, float]:
    """Columns that a picky theorist's function may return: each shape at each scale."""
    noise = float(np.random.default_rng([n, int(100 * snr), seed]).standard_normal())
    with np.errstate(over="ignore"):
        numbers = {at: SHAPES[shape](n, snr, noise) * of for at, (shape, of) in COLUMNS.items()}
    return {at: float(np.clip(number, -LARGEST, LARGEST)) for at, number in numbers.items()}


REFUSALS = (
    "crosses it nowhere on this grid|has a number there|which has no logarithm|not positive|"
    "a median takes|hold no number"
)
BANDS = ("interval", "sd", "quartiles", "seeds")
MEANS = itertools.product(("arithmetic", "geometric", "median"), BANDS)
LINES = [{"mean": mean, "band": band, "x": "snr"} for mean, band in MEANS]
NAMES = ("heatmap", "lines", "cutoff", "lines", "boundary")
DRAWN = [
    (column, NAMES[at % 5], LINES[at % 12] if at % 5 in (1, 3) else {})
    for at, column in enumerate(COLUMNS)
]
"""Each column in a figure, and each shape and each scale in all of them."""


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("hostile") / "run"
    grid: dict[str, Any] = {"n": [10, 20, 40, 80], "snr": [0.25, 0.5, 1.0, 2.0, 4.0]}
    cells = overfit_cli.sweep(measure, seeds=3, jobs=1, quiet=True, out=out, **grid)
    assert (cells["status"] == "done").all()
    return out


@pytest.mark.parametrize(("column", "figure", "options"), DRAWN)
@pytest.mark.one_in(9)
def test_a_figure_is_drawn_without_a_warning_or_refused_in_a_sentence(
    column: str, figure: str, options: dict[str, Any], hostile: Path, tmp_path: Path
) -> None:
    out = None if "band" in options else tmp_path / "figure.png"
    try:
        picture = overfit_cli.draw(figure, hostile, value=column, out=out, **options)
    except UserError as error:
        assert re.search(REFUSALS, str(error)), error
        return
    assert picture.caption
    assert out is None or out.stat().st_size > 0
