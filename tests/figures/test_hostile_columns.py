"""Figures, exports and comparisons of columns that diverge, don't vary, or can't be typeset."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import overfit_cli
from overfit_cli import UserError
from tests.command import run

LARGEST = 1.7e308


def measure(n: int = 10, snr: float = 1.0, seed: int = 0) -> dict[str, float]:
    """Columns that a picky theorist's function may return."""
    noise = float(np.random.default_rng([n, int(100 * snr), seed]).standard_normal())
    threshold = 2 * n**-0.0005 * (1 + 0.001 * seed)
    return {
        "constant": 3.0,
        "zero": 0.0,
        "negative_zero": -0.0,
        "negative": -abs(noise) - 0.1,
        "tiny": 1e-300 * (1 + noise**2),
        "denormal": 5e-324,
        "huge": 1e300 * (1 + 0.1 * noise),
        "largest": LARGEST,
        "either_largest": LARGEST if noise > 0 else -LARGEST,
        "span": 10.0 ** (300 * np.tanh(noise)),
        "with_zeros": max(noise, 0.0),
        "binary": float(noise > 0),
        "whole": float(int(1e18 * abs(noise))),
        "one_seed": 1.0 if seed == 0 else 2.0,
        "last_digit": 1.0 + 2.0**-52 * float(noise > 0),
        "spike": 1e12 if (n, snr, seed) == (20, 1.0, 1) else noise,
        "vertical": 1 / (1 + (snr / threshold) ** 4),
        "horizontal": float(n > 15) + 0.1 * noise,
        "rising": snr / (1 + snr),
        "peak": float(np.exp(-((snr - 1) ** 2))),
        "diverging": float((1 + snr) ** min(n * 8, 300)),
        "α_{n}^$x$ % #&": noise,
    }


WORST = ("largest", "either_largest", "span", "vertical", "zero", "α_{n}^$x$ % #&")
COLUMNS = [
    pytest.param(name, marks=[] if name in WORST else [pytest.mark.slow])
    for name in sorted(measure())
]
QUICK_BANDS = (("arithmetic", "interval"),)
REFUSALS = (
    "crosses it nowhere on this grid",
    "has a number there",
    "lie beyond",
    "which has no logarithm",
)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("hostile") / "run"
    grid: dict[str, Any] = {"n": [10, 20, 40, 80], "snr": [0.25, 0.5, 1.0, 2.0, 4.0]}
    cells = overfit_cli.sweep(measure, seeds=3, jobs=1, quiet=True, out=out, **grid)
    assert (cells["status"] == "done").all()
    return out


@pytest.mark.parametrize("figure", ["heatmap", "cutoff", "boundary", "lines"])
@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.one_in(4)
def test_a_figure_is_drawn_or_refused_in_a_sentence(
    column: str, figure: str, hostile: Path, tmp_path: Path
) -> None:
    x = "snr" if figure == "lines" else None
    try:
        picture = overfit_cli.draw(figure, hostile, value=column, x=x, out=tmp_path / "figure.png")
    except UserError as error:
        assert any(words in str(error) for words in REFUSALS), error
        return
    assert picture.caption
    assert (tmp_path / "figure.png").stat().st_size > 0


@pytest.mark.parametrize(
    ("mean", "band"),
    [
        pytest.param(mean, band, marks=[] if (mean, band) in QUICK_BANDS else pytest.mark.slow)
        for mean in ("arithmetic", "geometric", "median")
        for band in ("interval", "sd", "quartiles", "seeds")
    ],
)
@pytest.mark.slow
def test_every_mean_and_band_is_drawn_or_refused_without_a_warning(
    mean: str, band: str, hostile: Path
) -> None:
    for column in (column if isinstance(column, str) else column.values[0] for column in COLUMNS):
        try:
            overfit_cli.draw("lines", hostile, value=str(column), x="snr", mean=mean, band=band)
        except UserError as error:
            taken = (*REFUSALS, "not positive", "a median takes", "hold no number")
            assert any(words in str(error) for words in taken), error


def test_numbers_too_large_to_draw_are_left_out_and_counted(hostile: Path) -> None:
    caption = overfit_cli.draw("heatmap", hostile, value="span").caption
    assert "Left out: 23 numbers beyond ±10¹⁵⁰." in " ".join(caption.split())
    with pytest.raises(UserError, match="all its 60 numbers lie beyond"):
        overfit_cli.draw("heatmap", hostile, value="largest")


def test_a_boundary_that_hardly_depends_on_y_says_so(hostile: Path) -> None:
    caption = overfit_cli.draw("boundary", hostile, value="vertical", threshold=0.5).caption
    assert "no fit of n·snr^p = C, it hardly changes with n." in " ".join(caption.split())


def test_tables_and_comparisons_take_them_too(hostile: Path, tmp_path: Path) -> None:
    for kind in ("csv", "parquet", "tex"):
        for means in ((), ("--means",)):
            file = str(tmp_path / f"table{len(means)}.{kind}")
            run("export", str(hostile), "--out", file, *means, cwd=tmp_path)
            assert Path(file).stat().st_size > 0
    compared = overfit_cli.compare(hostile, hostile)
    assert not compared.changed
    done = run("compare", str(hostile), str(hostile), cwd=tmp_path)
    assert "Traceback" not in done.stderr
