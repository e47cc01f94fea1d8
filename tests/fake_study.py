"""A study for the tests of figures: it knows its names and trains nothing."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal
from unittest import mock

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import Collection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text

from overfit_cli import Column, Study
from overfit_cli.core.cell import Batch, Paper, Results
from overfit_cli.core.cells import Cells
from overfit_cli.core.expressions import Compared, Names, read_equation
from overfit_cli.core.figure import FigureOptions, grid_figures
from overfit_cli.core.parameters import ParameterInfo, StudyParameters, parameter
from overfit_cli.core.study import AnyStudy
from overfit_cli.core.training import Training
from overfit_cli.figures.labels import typeset
from overfit_cli.figures.picture import Picture, drawn_numbers, looking
from overfit_cli.figures.style import current_look

NS = [2, 4, 6, 8, 10, 12, 14, 16, 18, 20]
SNRS = np.linspace(1, 25, 25).tolist()
LAW = "n * snr**2 = 1000"
OPTIONS = FigureOptions(x="snr", y="n", value="test_loss")
ASKED = {
    "heatmap": OPTIONS,
    **dict.fromkeys(("cutoff", "boundary"), replace(OPTIONS, threshold=0.2)),
    "lines": FigureOptions(x="snr", value="test_loss"),
    "curves": FigureOptions(value="train_loss"),
}

FIGURES = grid_figures()  # of any grid: tests of what they draw know no module of theirs


class FakeParameters(StudyParameters):
    n: int = parameter(10, "training samples", symbol="N", at_least=1)
    snr: float = parameter(1.0, "signal-to-noise ratio", symbol=r"\mathrm{SNR}", above=0)
    width: int = parameter(64, "width", at_least=1)
    kernel: Literal["softmax", "gaussian"] = parameter("softmax", "kernel")


class FakeStudy(Study[FakeParameters]):
    name = "fake"
    version = 1
    title = "A study of nothing"
    paper = Paper("Nobody", 2024, "On nothing")
    parameters = FakeParameters
    columns: tuple[Column, ...] = (
        Column("train_loss", "training loss", diverges=True),
        Column("test_loss", "test loss", diverges=True),
    )
    trajectory_columns = (*columns, Column("attention", "attention on the signal"))
    headline = "test_loss"

    def train(self, batch: Batch[FakeParameters], training: Training) -> Results[FakeParameters]:
        return iter(())


class NamedSides(FakeStudy):
    """A study that names the sides of its headline."""

    sides = ("benign", "harmful")


def fake_loss(n: float, snr: float, noise: float = 0.0) -> float:
    """Fall through 0.2 where n · snr² is 1000 (times e^noise)."""
    return float(0.7 / (1 + 2.5 * (n * snr**2 / 1000 * np.exp(-noise)) ** 1.5))


def fake_cells(
    ns: Sequence[int], snrs: Sequence[float], seeds: int = 3, noise: float = 0.0, **same: object
) -> pd.DataFrame:
    """Make one done cell for each n, snr and seed."""
    draws, rows = np.random.default_rng(0), []
    for seed, n, snr in itertools.product(range(seeds), ns, snrs):
        loss = fake_loss(n, snr, noise * draws.standard_normal())
        row = {"key": f"{seed}-{n}-{snr!r}", "study": "fake", "version": 1, "seed": seed}
        row |= {"n": n, "snr": snr, "width": 64, "kernel": "softmax"}
        row |= {"status": "done", "reason": "", "steps": 5 + n, "seconds": 0.1}
        rows.append({**row, "train_loss": 0.01, "test_loss": loss, **same})
    return pd.DataFrame(rows)


def fail(cells: pd.DataFrame, which: Any, reason: str = "diverged") -> pd.DataFrame:
    """Turn the cells `which`, or where a condition holds, into failed ones without measurements."""
    failed = cells.eval(which) if isinstance(which, str) else which
    cells = cells.copy()
    cells.loc[failed, ["status", "reason"]] = ["failed", reason]
    cells.loc[failed, ["train_loss", "test_loss"]] = np.nan
    return cells


def fake_trajectories(cells: pd.DataFrame) -> pd.DataFrame:
    """Log twenty steps of each cell, and one more for each seed."""
    pieces = []
    for cell in cells.itertuples():
        step = np.arange(20 + int(str(cell.seed)))
        train = 0.7 * np.exp(-0.03 * step * float(str(cell.n)) ** 0.5)
        columns = {"step": step, "train_loss": train, "test_loss": 0.1 + 0.6 * train}
        pieces.append(pd.DataFrame({"key": cell.key, **columns, "attention": step / 30}))
    return pd.concat(pieces, ignore_index=True)


def data_of(
    cells: pd.DataFrame,
    planned: pd.DataFrame | None = None,
    trajectories: pd.DataFrame | None = None,
    study: AnyStudy | None = None,
) -> Cells:
    """Put frames into what a figure is drawn from, empty where there are none."""
    frames = [pd.DataFrame() if frame is None else frame for frame in (planned, trajectories)]
    return Cells.of(study or FakeStudy(), cells, frames[0], frames[1])


def logged(cells: pd.DataFrame, **instead: Any) -> Cells:
    """The cells with their logged steps, some columns of which are others."""
    return data_of(cells, None, fake_trajectories(cells).assign(**instead))


def draw(figure: str, cells: pd.DataFrame | Cells, **options: Any) -> Picture:
    """Draw a figure of any grid: over SNR and n, the test loss and whether it is above 0.2.

    Lines are of the test loss against SNR, and curves of the training loss. Options change that.
    """
    data = cells if isinstance(cells, Cells) else data_of(cells)
    with looking(current_look.get()):
        picture: Picture = FIGURES[figure].draw(data, replace(ASKED[figure], **options))
    return picture


def as_refined(data: Cells, *, refined: bool = True) -> Cells:
    """Return cells as those of a sweep that refines, or not."""
    return replace(data, runs=tuple(replace(run, refined=refined) for run in data.runs))


def line_heights(axes: Axes) -> list[list[float]]:
    """The heights of each line that has more than a point."""
    lines = [heights(line) for line in axes.lines]
    return [line.tolist() for line in lines if len(line) > 1]


def titles(figure: Figure) -> list[str]:
    """The titles of a figure's axes, each on one line; axes without a title are left out."""
    texts = [" ".join(axes.get_title(loc="left").split()) for axes in figure.axes]
    return [text for text in texts if text]


def corners(artist: Artist) -> np.ndarray:
    """The vertices of the first path of a collection, (vertices, 2)."""
    assert isinstance(artist, Collection)
    return np.asarray(artist.get_paths()[0].vertices, dtype=np.float64)


def heights(line: Line2D) -> np.ndarray:
    """Return the heights of a line's points."""
    return np.asarray(line.get_ydata(), dtype=np.float64)


def map_of(figure: Picture) -> np.ndarray:
    """The numbers of a map's cells, (values of y, values of x); nan where one has none."""
    cells = drawn_numbers(figure).query("element == 'map'")
    return cells.pivot(index="y", columns="x", values="value").to_numpy()


def points(line: Line2D) -> np.ndarray:
    """The places of a line's points that are known: x and y, (2, points)."""
    places = np.asarray(line.get_xydata(), dtype=np.float64)
    return places[np.isfinite(places).all(axis=1)].T


def words(figure: Figure, *_: Path) -> str:
    """What a reader reads: every text that is drawn, and the facts.

    Each stands on a line of its own, with its mathtext in plain Unicode. The texts are drawn
    without ink and without a layout, which changes none of them and takes most of the time.
    Matplotlib's own ticks name the font of their mathtext.
    """
    drawn: dict[int, str] = {}
    draw = Text.draw

    def listen(text: Text, *arguments: Any, **options: Any) -> None:
        if text.get_visible():
            looks = typeset(text.get_text().replace(r"\mathdefault", ""))
            drawn[id(text)] = " ".join(looks.split())
        draw(text, *arguments, **options)

    figure.set_layout_engine("none")
    with mock.patch.object(Text, "draw", listen):
        figure.draw_without_rendering()
    facts = figure.facts if isinstance(figure, Picture) else []
    return "\n".join(["", *filter(None, drawn.values()), *map(typeset, facts), ""])


def untold(figure: Figure, said: str, unsaid: str = "") -> list[str]:
    """What a reader misses of parts, which stand between ` … `, and what he reads of others."""
    lines = words(figure)
    text = lines + " ".join(lines.split())
    missed = [part for part in said.split(" … ") if part not in text]
    return missed + [part for part in unsaid.split(" … ") if part and part in text]


def law_of(text: str, *names: str) -> Compared:
    """An equation in some names."""
    return read_equation(text, Names({name: ParameterInfo(name) for name in names}))
