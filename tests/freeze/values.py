"""Values of today's code and kept results that no change of the code may move.

They are written once, by `python -m tests.freeze.write`, and compared by `test_freeze.py`. What has
gone since is listed in `gone.toml`: claims that were dropped or joined, and pictures.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import overfit_cli
from calibration.rates import design
from overfit_cli.core.cell import Cell
from overfit_cli.core.claim import Measurement
from overfit_cli.core.registry import find_study, installed_studies
from overfit_cli.figures.draw import draw_figure, read_record
from overfit_cli.figures.picture import drawn_numbers
from overfit_cli.report.judge import judge_runs
from overfit_cli.report.runs import JudgedRun, load_runs
from overfit_cli.sweeps.presets import preset_names
from overfit_cli.sweeps.store import RunDirectory
from tests.command import run
from tests.kept import RUNS

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"
FROZEN = Path(__file__).parent / "frozen.json"
FIGURES = Path(__file__).parent / "figures.parquet"
GONE = tomllib.loads((Path(__file__).parent / "gone.toml").read_text("utf-8"))

MOST_POINTS = 1000
"""Points of a picture that are kept as they are."""

PAIRS = (
    ("fig1-quick", "fig1-further"),
    ("fig1-quick", "fig1-balanced-quick"),
    ("fig1-quick", "noisy-labels-quick"),
    ("kernel-theorem1-quick", "kernel-theorem1-paper"),
    ("kernel-theorem2-quick", "kernel-theorem2-near-quick"),
    ("kernel-eigenvalue-quick", "kernel-eigenvalue-balanced-quick"),
    ("softmax-drift-quick", "softmax-small-weights-quick"),
    ("softmax-table1-quick", "softmax-table1-paper-quick"),
    ("heads-fig2-quick", "heads-normalised-quick"),
    ("positional-phase-quick", "positional-published-quick"),
)
"""Runs that are compared."""


def kept_runs() -> list[str]:
    """The names of the kept run directories."""
    return sorted(path.parent.name for path in RESULTS.glob("*/manifest.json"))


def digests(frame: pd.DataFrame, order: list[str]) -> dict[str, str]:
    """A digest of each column, of rows in the order of their keys; and their number."""
    ordered = frame.sort_values(order, kind="stable")
    told = {str(name): _digest(ordered[name]) for name in ordered}
    return {"rows": str(len(ordered)), **told}


def _digest(column: pd.Series[Any]) -> str:
    if column.dtype.kind in "biuf":
        numbers = column.to_numpy(dtype="<f8", na_value=np.nan)
        content = np.where(np.isnan(numbers), np.nan, numbers).astype("<f8").tobytes()
    else:
        texts = column.astype(object).where(column.notna(), None).tolist()
        content = json.dumps(texts, default=str).encode()
    return hashlib.sha256(content).hexdigest()[:12]


def loaded(name: str) -> dict[str, dict[str, str]]:
    """The digests of a kept run's cells, and of its logged steps."""
    path = RESULTS / name
    found = {"cells": digests(overfit_cli.load(path), ["key"])}
    if any((path / "trajectories").glob("*.parquet")):
        steps = overfit_cli.load(path, trajectories=True)
        found["steps"] = digests(steps, ["key", "step"])
    return found


@cache
def runs() -> list[JudgedRun]:
    """The kept runs, with their cells."""
    return load_runs([RunDirectory(path) for path in RUNS])


def judged() -> dict[str, dict[str, Any]]:
    """The verdicts and numbers of all claims on the kept runs, by the claims' addresses."""
    return {
        each.address: numbers(each.measurement) | {"joint": each.headline}
        for each in judge_runs(runs(), on_every_run=False)
    }


def numbers(measured: Measurement) -> dict[str, Any]:
    """The verdict of a measurement, and its numbers as texts, which JSON may not round."""
    interval = measured.interval
    ends = (None, None) if interval is None else (interval.low, interval.high)
    named = dict(zip(("value", "low", "high"), (measured.value, *ends), strict=True))
    return {"verdict": measured.verdict} | {
        name: None if number is None else repr(float(number)) for name, number in named.items()
    }


def pictures() -> list[str]:
    """The kept pictures, as `RUN/figures/NAME.png`."""
    return sorted(path.relative_to(RESULTS).as_posix() for path in RESULTS.glob("*/figures/*.png"))


def points(picture: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    """What a kept picture shows when it is drawn again, sorted, (points, 3).

    Of more points than `MOST_POINTS` it has the means of blocks, which move with any of them; a
    missing number counts as 0.
    """
    _, record = read_record((RESULTS / picture).read_bytes())
    directory = RunDirectory(RESULTS / picture.partition("/")[0], "from")
    drawn = draw_figure(record.figure, [directory], record.options, record.where)
    drawn.maps.clear()  # a map's numbers stand at the middles of its drawn places
    table = drawn_numbers(drawn)[["x", "y", "value"]].to_numpy(np.float64)
    table = np.nan_to_num(table)
    largest = np.abs(table).max(axis=0, initial=1e-300)
    ordered = table[np.lexsort(np.round(table / largest, 9).T)]  # round-off breaks no tie
    size = -(-len(ordered) // MOST_POINTS)
    return np.array(
        [np.mean(ordered[start:][:size], axis=0) for start in range(0, len(ordered), size)]
    )


def compared(first: str, second: str, folder: Path) -> dict[str, Any]:
    """What a comparison of two kept runs says of pairs, and of each column."""
    run("compare", f"{RESULTS / first}", f"{RESULTS / second}", "--json", "c.json", cwd=folder)
    content = json.loads((folder / "c.json").read_text("utf-8"))
    told = {name: content[name] for name in ("paired_by", "pairs", "alone", "failed_on_one_side")}
    return told | {"columns": {each["column"]: each for each in content["columns"]}}


FUNCTION = """
def train(x: float = 0.5, n: int = 4, seed: int = 0) -> dict[str, float]:
    return {"loss": 1 / (1 + n * x**2) + 0.02 * ((7919 * seed + 31 * n) % 13 - 6)}
"""


def refined(seed: int, folder: Path) -> list[list[float]]:
    """The cells that a refined sweep of a function chooses with a seed."""
    (folder / "function.py").write_text(FUNCTION)
    cells = overfit_cli.sweep(
        folder / "function.py",
        x=np.linspace(0.1, 4, 8).tolist(),
        n=[2, 4, 8, 16],
        seeds=[seed],
        refine=12,
        threshold=0.3,
        jobs=1,
        out=folder / f"refined-{seed}",
    )
    return sorted(map(list, zip(cells["n"], cells["x"], strict=True)))


def some_cells() -> Iterator[Cell]:
    """200 cells of the studies: their keys may not change."""
    random = np.random.default_rng(0)
    studies = sorted(installed_studies(), key=lambda study: study.name)
    for number in range(200):
        study = studies[number % len(studies)]
        values = study.parameters()
        halved = {
            name: value / 2 if isinstance(value, float) else value
            for name, value in values.model_dump().items()
            if isinstance(value, float) and random.random() < 0.3
        }
        with contextlib.suppress(ValueError):
            values = study.parameters(**halved)
        yield Cell(study.name, study.version, values, int(random.integers(1000)))


def key_of(parameters: Mapping[str, Any], study: str, seed: int) -> str:
    """The key of a cell."""
    found = find_study(study)
    return Cell(study, found.version, found.parameters(**parameters), seed).key


def planned() -> dict[str, int]:
    """How many cells each preset's quick profile has."""
    return {name: len(design(name)) for name in preset_names()}


@cache
def frozen() -> dict[str, Any]:
    """The values as they were written."""
    values: dict[str, Any] = json.loads(FROZEN.read_text("utf-8"))
    return values


@cache
def frozen_points() -> dict[str, np.ndarray[Any, np.dtype[np.float64]]]:
    """What the kept pictures showed."""
    table = pd.read_parquet(FIGURES)
    return {
        str(name): rows[["x", "y", "value"]].to_numpy(np.float64)
        for name, rows in table.groupby("picture")
    }
