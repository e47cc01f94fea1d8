"""Cells of a run as figures and claims read them: loaded, chosen, averaged over seeds.

Conditions such as `n=5:20` or `kernel=softmax` choose cells by their parameters or seeds.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa

from overfit_cli.core.errors import BadValue, UserError
from overfit_cli.core.parameters import (
    SEED,
    ParameterInfo,
    Value,
    describe,
    parameter_named,
    parse_value,
)
from overfit_cli.core.registry import find_study, study_names
from overfit_cli.core.study import AnyStudy, FigureData
from overfit_cli.core.text import shorten, suggestion
from overfit_cli.functions.function_study import FunctionStudy
from overfit_cli.stats.intervals import t_half_width
from overfit_cli.sweeps.manifest import planned_cells, read_manifest
from overfit_cli.sweeps.part_file import CELLS, TRAJECTORIES, Refusal
from overfit_cli.sweeps.store import RunDirectory

if TYPE_CHECKING:
    import pandas as pd


def load_study_and_cells(
    directory: RunDirectory, *, any_version: bool = False
) -> tuple[AnyStudy, pd.DataFrame]:
    """Return the study of a run directory, and its cells.

    A function's study is what the directory remembers of it, with the columns that the cells have.

    Args:
        directory: a run directory.
        any_version: whether to take cells of another version than the study's, if there are no
            others.

    Raises:
        UserError: if it holds none, or only such as another version of the study gave: those may
            lack a column, and what is said of them isn't what this version would give.
    """
    cells = directory.load_cells()
    study = study_in(directory, cells)
    if study.identity.function is not None:
        return study, cells
    version = int(cells["version"].iloc[0])
    if version != study.version and not any_version:
        raise directory.error(
            f"its cells are of version {version} of {study.name}, and this overfit has version "
            f"{study.version}; `overfit sweep` with the same axes makes them anew."
        )
    return study, cells


def load_headlines(directory: RunDirectory, study: AnyStudy) -> dict[str, float]:
    """Return the headline measurement of each cell by its key; nan where it failed.

    It reads only the columns that it needs, because a sweep that goes on waits for it.

    Raises:
        UserError: if the directory can't be read.
    """
    wanted = ["key", "status", study.headline] if study.headline else None
    headlines: dict[str, float] = {}
    for part in directory.cells.read(wanted).values():
        if isinstance(part, Refusal):
            continue
        for key, status, number in _headlines(part, study.headline):
            has_number = status == "done" and number is not None
            if has_number or key not in headlines:  # a cell that failed at first may be there twice
                headlines[key] = number if has_number else math.nan
    return headlines


def _headlines(part: pa.Table, name: str) -> Iterator[tuple[str, str, Any]]:
    """The key, the status and the headline of each row: without a name, the first measurement."""
    names = part.column_names
    name = name or next(iter(names[names.index("seconds") + 1 :]), "")
    numbers = part.column(name).to_pylist() if name in names else [None] * part.num_rows
    return zip(
        part.column("key").to_pylist(), part.column("status").to_pylist(), numbers, strict=True
    )


def study_in(
    directory: RunDirectory,
    cells: pd.DataFrame | None = None,
    trajectories: pd.DataFrame | None = None,
) -> AnyStudy:
    """Return the study of a run directory: an installed one, or the record of a function.

    Args:
        directory: a run directory.
        cells, trajectories: its cells and logged steps, where they are read: a function's study has
            their columns.

    Raises:
        UserError: if the study isn't installed.
    """
    manifest = read_manifest(directory.path)
    if manifest is None or manifest.function is None:
        name = directory.study_name() if cells is None else str(cells["study"].iloc[0])
        if name and ":" in name and name not in study_names():
            raise directory.error(
                f"its cells are of the function {name}, which only its manifest describes, and "
                f"that can't be read; `overfit sweep FILE.py` into {directory.path} with one cell "
                "more writes it again."
            )
        return find_study(name or "")
    if cells is None:
        return FunctionStudy(manifest.function)
    parameters = [parameter.name for parameter in manifest.function.parameters]
    shared = {*CELLS.columns, *parameters}
    measured = [str(name) for name in cells.columns if name not in shared]
    # The column with the fewest missing values comes first, whatever the order of the files.
    missing = cells.loc[cells["status"] == "done", measured].isna().sum()
    measured.sort(key=lambda name: int(missing[name]))
    steps = [] if trajectories is None else [str(name) for name in trajectories.columns]
    logged = [name for name in steps if name not in TRAJECTORIES.columns]
    return FunctionStudy(manifest.function, measured=measured, logged=logged)


NO_STEPS = (
    "it holds no logged steps of these cells; `overfit train` writes them, and a sweep with "
    "trajectories does."
)


def load_logged_steps(directory: RunDirectory, cells: pd.DataFrame) -> pd.DataFrame:
    """Return one row per cell and logged step, with its cell's parameters, seed, status and steps.

    Args:
        directory: a run directory.
        cells: its cells.
    """
    settings = cells[["key", "study", "seed", "status", "reason", "steps", *parameters_in(cells)]]
    return directory.load_trajectories().merge(settings, on="key", suffixes=("", "_parameter"))


def parameters_in(cells: pd.DataFrame) -> list[str]:
    """Return the names of the parameters that cells have a column of, whatever their version."""
    names = [str(name) for name in cells.columns]
    return names[names.index("seed") + 1 : names.index("status")]


def load_figure_data(directory: RunDirectory) -> FigureData:
    """Return everything that a figure may be drawn from.

    Raises:
        UserError: see `load_study_and_cells`.
    """
    _, cells = load_study_and_cells(directory)
    trajectories = directory.load_trajectories()
    study = study_in(directory, cells, trajectories)
    manifest = read_manifest(directory.path)
    return FigureData(
        study,
        cells,
        planned_cells(directory.path, study),
        trajectories,
        refined=manifest is not None and manifest.refined,
        boundary=None if manifest is None else manifest.boundary,
        collections={} if manifest is None else manifest.data,
    )


def usable_directories(root: Path) -> list[RunDirectory]:
    """Return the directories in `root` whose cells can be shown, the one written last first.

    Directories with cells of another version, or of a study that can't be told, are left out with a
    warning.
    """
    written = [(folder.stat().st_mtime, folder.parent) for folder in root.glob("*/cells")]
    directories = [RunDirectory(path) for _, path in sorted(written, reverse=True)]
    return [directory for directory in directories if _is_usable(directory)]


def _is_usable(directory: RunDirectory) -> bool:
    """Whether the study is installed with the cells' version, or a function; warn where not."""
    try:
        name, manifest = directory.study_name(), read_manifest(directory.path)
        if name not in study_names() and (manifest is None or manifest.function is None):
            return False
        study = study_in(directory)
    except UserError as error:
        _leave_out(directory, str(error))
        return False
    newest = directory.newest_version()
    if newest is None:
        _leave_out(directory, "it holds no cells yet.")
        return False
    if study.identity.function is not None or newest == study.version:
        return True
    _leave_out(
        directory,
        f"its cells are of version {newest} of {name}, and this overfit has version "
        f"{study.version}.",
    )
    return False


def _leave_out(directory: RunDirectory, reason: str) -> None:
    warnings.warn(f"{directory.path} is left out: {reason}", UserWarning, stacklevel=4)


_CLOSE = 1e-9
"""Real numbers that differ by less, relative to themselves, are one value."""


@dataclass(frozen=True)
class Selection:
    """A condition on one parameter, or on the seed.

    Attributes:
        name: the parameter's, or `seed`.
        text: what the user wrote, for messages.
        values: those that are chosen; with `between`, the two ends of a range.
        between: whether everything between the two ends is chosen.
        option: the option that gave it, for messages.
    """

    name: str
    text: str
    values: tuple[Value, ...]
    between: bool
    option: str = "where"

    def holds(self, column: pd.Series[Any]) -> pd.Series[bool]:
        """Return which rows are chosen."""
        if self.between:
            low, high = (cast("float", value) for value in self.values)
            slack = _CLOSE * max(abs(low), abs(high))
            return column.between(low - slack, high + slack)
        if column.dtype.kind != "f":
            return column.isin(self.values)
        wanted = np.array(self.values, dtype=np.float64)
        near = np.isclose(column.to_numpy()[:, None], wanted, rtol=_CLOSE, atol=0).any(1)
        chosen: pd.Series[bool] = column.notna() & near
        return chosen


def read_selections(
    texts: Sequence[str], study: AnyStudy, option: str = "where"
) -> list[Selection]:
    """Read conditions such as `n=5:20`, `snr=0.1:16`, `kernel=softmax,gaussian` or `seed=0:9`.

    A parameter may be called by its symbol: `SNR=0.1:16`.

    Raises:
        UserError: for a name that is no parameter of the study, or a value that it doesn't take.
    """
    infos = {**describe(study.parameters), "seed": SEED}
    return [_read(text, infos, study, option) for text in texts]


def _read(text: str, known: Mapping[str, ParameterInfo], study: AnyStudy, option: str) -> Selection:
    written, equals, values = (part.strip() for part in text.partition("="))
    name = parameter_named(study.parameters, written)
    shown = shorten(text)
    if not equals or not name or not values:
        raise BadValue(option, shown, "write NAME=VALUE, NAME=LOW:HIGH or a list NAME=A,B.")
    if name not in known:
        hint = suggestion(name, known)
        raise BadValue(option, shown, f"{study.name} has no parameter {name!r}; {hint}")
    info = known[name]
    between = values.count(":") == 1 and info.kind in ("int", "float")
    parts = values.split(":" if between else ",")
    try:
        read = tuple(parse_value(info, part) for part in parts)
    except BadValue as error:
        raise BadValue(option, f"{written}={error.value}", error.accepts) from None
    if between and cast("float", read[0]) > cast("float", read[1]):
        raise BadValue(option, shown, "the range runs backwards.")
    return Selection(name, text, read, between, option)


def chosen_cells(cells: pd.DataFrame, selections: Sequence[Selection]) -> pd.DataFrame:
    """Return the rows that all conditions choose.

    Raises:
        UserError: if none is left, naming the condition that leaves none.
    """
    for selection in selections:
        if (
            selection.name not in cells
        ):  # those of an older version of the study may lack a parameter
            raise BadValue(
                selection.option, selection.text, f"these cells don't hold {selection.name}."
            )
        left = cells[selection.holds(cells[selection.name])]
        if left.empty and not cells.empty:
            present = sorted(cells[selection.name].dropna().unique().tolist())
            some = ", ".join(str(value) for value in present[:6])
            more = " and more" if len(present) > 6 else ""
            raise BadValue(
                selection.option, selection.text, f"no cell has that; there is {some}{more}."
            )
        cells = left
    return cells


def chosen_data(data: FigureData, texts: Sequence[str]) -> FigureData:
    """Return what a figure is drawn from, of the chosen cells alone.

    Raises:
        UserError: see `read_selections` and `chosen_cells`.
    """
    if not texts:
        return data
    selections = read_selections(texts, data.study)
    cells = chosen_cells(data.cells, selections)
    planned, steps = data.planned, data.trajectories
    for selection in selections:
        planned = (
            planned[selection.holds(planned[selection.name])]
            if selection.name in planned
            else planned
        )
    steps = steps[steps["key"].isin(cells["key"])] if "key" in steps else steps
    return replace(data, cells=cells, planned=planned, trajectories=steps)


def varying_parameters(study: AnyStudy, cells: pd.DataFrame) -> list[str]:
    """Return the parameters that take several values in the cells, in the order of the study."""
    return [name for name in describe(study.parameters) if cells[name].nunique() > 1]


def measured_columns(cells: pd.DataFrame) -> list[str]:
    """Return the columns of numbers that training gave, with `steps` and `seconds` before them."""
    names = [str(name) for name in cells.columns]
    return names[names.index("reason") + 1 :]


def in_order(study: AnyStudy, cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells sorted by the parameters that vary, and then by seed.

    Words that are chosen from stand in the order in which the study names them.
    """
    described = describe(study.parameters)

    def places(column: pd.Series[Any]) -> pd.Series[Any]:
        info = described.get(str(column.name))
        if info is None or info.kind != "literal":
            return column
        return column.map({choice: rank for rank, choice in enumerate(info.choices)})

    names = [*varying_parameters(study, cells), "seed"]
    return cells.sort_values(names, key=places, ignore_index=True)


def means_over_seeds(
    study: AnyStudy,
    cells: pd.DataFrame,
    parameters: Sequence[str] = (),
    measured: Sequence[str] = (),
) -> pd.DataFrame:
    """Return a row for each combination of the parameters that vary, in their order.

    Args:
        study: the study.
        cells: its cells, failed ones too.
        parameters: which of them stand in the row, and in which order; those that vary and aren't
            named stand before them.
        measured: the columns to take means of; by default all that were measured.

    Returns:
        The parameters; `seeds`, how many cells are done, and `failed`, how many failed. Then for
        each measured column, such as `loss`, its mean over the cells that are done and have it,
        the ends `loss_low` and `loss_high` of its 95 % t interval, and the standard deviation
        `loss_sd`. These three are nan for a single seed.

    Raises:
        UserError: if no cell is done, or two columns would have the same name.
    """
    import pandas as pd

    varying = varying_parameters(study, cells)
    names = [*(name for name in varying if name not in parameters), *parameters]
    cells = in_order(study, cells)
    done = cells["status"] == "done"
    if not done.any():
        raise UserError(_without_means(cells))
    setting = cells.groupby(varying, sort=False).ngroup() if varying else 0 * cells["seed"]
    columns = [cells.groupby(setting)[names].first()] if names else []
    columns.append(pd.DataFrame({"seeds": done, "failed": ~done}).groupby(setting).sum())
    for name in measured or measured_columns(cells):
        columns.append(_summary(cells[name].where(done), setting))
    means = pd.concat(columns, axis=1).reset_index(drop=True)
    for name, times in Counter(means.columns).items():
        if times > 1:
            raise UserError(f"The means have two columns {name!r}; choose others with --columns.")
    return means


def _summary(values: pd.Series[Any], setting: pd.Series[int]) -> pd.DataFrame:
    """The mean of a column at each place, the ends of its interval, and its deviation."""
    import pandas as pd

    groups = values.astype(np.float64).groupby(setting)
    mean, deviation, count = groups.mean(), groups.std(), groups.count()
    half = t_half_width(deviation, count.where(count > 1))
    name = values.name
    return pd.DataFrame(
        {
            name: mean,
            f"{name}_low": mean - half,
            f"{name}_high": mean + half,
            f"{name}_sd": deviation,
        }
    )


def _without_means(cells: pd.DataFrame) -> str:
    """Why there are no means: every cell failed."""
    reasons = cells["reason"].value_counts()
    first = reasons.index[0]
    others = f", and {len(reasons) - 1} other reasons" if len(reasons) > 1 else ""
    return f"All {len(cells)} cells failed ({first}{others}), so there are no means over seeds."
