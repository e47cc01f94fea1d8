"""Cells of a run as figures and claims read them: loaded, chosen, averaged over seeds.

Conditions such as `n=5:20`, `kernel=softmax` or `test_loss<0.1` choose cells by their parameters,
seeds and measurements.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from overfit_cli.core.arrays import varying
from overfit_cli.core.cell import ROW_COLUMNS, TRACEBACK
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
from overfit_cli.core.text import plural, shorten, suggestion
from overfit_cli.core.values import list_of_texts
from overfit_cli.functions.function_study import FunctionStudy
from overfit_cli.stats.equations import compare
from overfit_cli.stats.intervals import t_half_width
from overfit_cli.sweeps.manifest import planned_cells, read_manifest
from overfit_cli.sweeps.part_file import TRAJECTORIES
from overfit_cli.sweeps.store import RunDirectory

if TYPE_CHECKING:
    import pandas as pd


def load_study_and_cells(
    directory: RunDirectory, *, any_version: bool = False
) -> tuple[AnyStudy, pd.DataFrame]:
    """Return the study of a run directory, and its cells.

    A function's study is what the directory remembers of it, with the columns that the cells have.

    Args:
        any_version: whether to take cells of another version than the study's, if there are no
            others.
    """
    cells = directory.load_cells()
    study = study_in(directory, cells)
    if study.identity.function is not None:
        return study, cells
    version = int(cells["version"].iloc[0])
    if version != study.version and not any_version:
        raise directory.error(
            f"its cells are of version {version} of {study.name}, and this overfit has version "
            f"{study.version}; `overfit sweep` with the same axes trains them again."
        )
    return study, cells


def study_in(
    directory: RunDirectory,
    cells: pd.DataFrame | None = None,
    trajectories: pd.DataFrame | None = None,
) -> AnyStudy:
    """Return the study of a run directory: an installed one, or the record of a function.

    Args:
        cells, trajectories: its cells and logged steps, where they are read: a function's study has
            their columns.
    """
    manifest = read_manifest(directory.path)
    if manifest is None or manifest.function is None:
        name = directory.study_name() if cells is None else str(cells["study"].iloc[0])
        if name and ":" in name and name not in study_names():
            raise directory.error(
                f"its cells are of the function {name}, and its manifest, which describes that "
                f"function, can't be read; `overfit sweep FILE.py` into {directory.path} with one "
                "more cell writes it again."
            )
        return find_study(name or "")
    if cells is None:
        return FunctionStudy(manifest.function)
    parameters = [parameter.name for parameter in manifest.function.parameters]
    shared = {*ROW_COLUMNS, *parameters}
    measured = [str(name) for name in cells.columns if name not in shared]
    steps = [] if trajectories is None else [str(name) for name in trajectories.columns]
    logged = [name for name in steps if name not in TRAJECTORIES.columns]
    return FunctionStudy(manifest.function, measured=measured, logged=logged)


NO_STEPS = (
    "it holds no logged steps of these cells; `overfit train` and a sweep with trajectories "
    "write them."
)


def load_logged_steps(directory: RunDirectory, cells: pd.DataFrame) -> pd.DataFrame:
    """One row per cell and logged step, with its cell's parameters, seed, status and steps."""
    settings = cells[["key", "study", "seed", "status", "reason", "steps", *parameters_in(cells)]]
    return directory.load_trajectories().merge(settings, on="key", suffixes=("", "_parameter"))


def parameters_in(cells: pd.DataFrame) -> list[str]:
    """Return the names of the parameters that cells have a column of, whatever their version."""
    names = [str(name) for name in cells.columns]
    return names[names.index("seed") + 1 : names.index("status")]


def load_figure_data(directory: RunDirectory, cells: pd.DataFrame | None = None) -> FigureData:
    """Return everything that a figure may be drawn from."""
    data, trajectories = load_grid_data(directory, cells), directory.load_trajectories()
    study = study_in(directory, data.cells, trajectories)
    return replace(data, study=study, trajectories=trajectories)


def load_grid_data(directory: RunDirectory, cells: pd.DataFrame | None = None) -> FigureData:
    """Return the cells of a run and the points that were planned, without logged steps."""
    import pandas as pd

    if cells is None:
        study, cells = load_study_and_cells(directory)
    else:
        study = study_in(directory, cells)
    manifest = read_manifest(directory.path)
    return FigureData(
        study,
        cells,
        planned_cells(directory.path, study),
        pd.DataFrame(columns=[*TRAJECTORIES.columns]),
        refined=manifest is not None and manifest.refined,
        sparse=manifest is not None and manifest.sparse,
        boundary=None if manifest is None else manifest.boundary,
        collections={} if manifest is None else manifest.data,
        sources=directory.sources(cells),
    )


def usable_directories(root: Path) -> list[RunDirectory]:
    """Return the directories in `root` whose cells can be shown, the one written last first.

    Those with cells of another version, or of an unknown study, are left out with a warning.
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


@dataclass(frozen=True)
class Selection:
    """A condition on one parameter, the seed, or a measured column.

    Attributes:
        values: those that are chosen; empty where there are bounds.
        bounds: comparisons that chosen numbers meet, such as `>=` with 5.
        excludes: whether the values are those that aren't chosen.
    """

    name: str
    text: str
    values: tuple[Value, ...] = ()
    bounds: tuple[tuple[str, float], ...] = ()
    is_measured: bool = False
    option: str = "where"
    excludes: bool = False

    def holds(self, column: pd.Series[Any]) -> pd.Series[bool]:
        """Return which rows are chosen."""
        if self.values and column.dtype.kind != "f":
            return column.isin(self.values) ^ self.excludes
        numbers = column.to_numpy(np.float64)
        if self.values:
            wanted = np.array(self.values, dtype=np.float64)
            chosen = compare(numbers[:, None], "=", wanted).any(1) ^ self.excludes
        else:
            each = [compare(numbers, sign, np.asarray(bound)) for sign, bound in self.bounds]
            chosen = np.stack(each).all(0)
        rows: pd.Series[bool] = column.notna() & np.asarray(chosen, np.bool_)
        return rows


def read_selections(
    texts: Sequence[str], study: AnyStudy, option: str = "where"
) -> list[Selection]:
    """Read conditions such as `n=5:20`, `kernel=softmax,gaussian`, `seed=0:9` or `test_loss<0.1`.

    They are on parameters, which may be called by their symbols (`SNR=0.1:16`), on the seed, and on
    measured columns.
    """
    infos = {**describe(study.parameters), "seed": SEED}
    measured = [column.name for column in study.columns if column.name not in infos]
    others = {name: replace(_NUMBER, name=name) for name in ("steps", "seconds", *measured)}
    return [_read(text, infos, others, study, option) for text in texts]


_NUMBER = ParameterInfo("", "float", None, "", "", "", (), "a number")
_FORMS = "write NAME=VALUE, NAME=LOW:HIGH, NAME=A,B or NAME<VALUE (<, <=, >, >= or !=, in quotes)."


def _read(
    text: str,
    parameters: Mapping[str, ParameterInfo],
    measured: Mapping[str, ParameterInfo],
    study: AnyStudy,
    option: str,
) -> Selection:
    parts = re.fullmatch(r"([^<>=!]+)(<=|>=|!=|<|>|==?)(.+)", text, re.DOTALL)
    shown = shorten(text)
    if parts is None or not all(part.strip() for part in parts.groups()):
        raise BadValue(option, shown, _FORMS)
    written, sign, values = (part.strip() for part in parts.groups())
    name = parameter_named(study.parameters, written)
    known = {**measured, **parameters}
    if name not in known:
        hint = suggestion(name, known)
        raise BadValue(option, shown, f"{study.name} has no parameter or column {name!r}; {hint}")
    info, is_measured = known[name], name not in parameters
    is_number = info.kind in ("int", "float")
    if sign == "!=" or (sign in ("=", "==") and not (is_number and values.count(":") == 1)):
        chosen = tuple(_value(info, part, shown, option) for part in values.split(","))
        return Selection(name, text, chosen, (), is_measured, option, sign == "!=")
    if not is_number:
        accepts = f"{name} is no number; write {name}=VALUE or a list {name}=A,B."
        raise BadValue(option, shown, accepts)
    low, colon, high = values.partition(":")
    ends = [(">=", low), ("<=", high)] if colon and sign.startswith("=") else [(sign, values)]
    bounds = tuple(
        (sign, float(_value(replace(info, kind="float"), end, shown, option)))
        for sign, end in ends
        if end.strip()
    )
    if not bounds:
        raise BadValue(option, shown, _FORMS)
    if len(bounds) == 2 and bounds[0][1] > bounds[1][1]:
        raise BadValue(option, shown, "the range runs backwards.")
    return Selection(name, text, (), bounds, is_measured, option)


def _value(info: ParameterInfo, text: str, shown: str, option: str) -> Value:
    try:
        return parse_value(info, text)
    except BadValue as error:
        raise BadValue(option, shown, error.accepts) from None


def conditions(name: str, given: Any) -> list[str]:
    """Return conditions as texts: what is given is one, several, or values by name."""
    if not isinstance(given, Mapping):
        return list_of_texts(name, given)
    return [_condition(name, column, taken) for column, taken in given.items()]


def _condition(argument: str, name: Any, taken: Any) -> str:
    """The condition of a name with a value, several, or a text such as `5:20` or `<0.1`."""
    if isinstance(taken, str):
        return f"{name}{taken}" if taken.lstrip()[:1] in ("<", ">", "!") else f"{name}={taken}"
    several = isinstance(taken, Iterable) and getattr(taken, "ndim", None) != 0
    items = list(taken) if several else [taken]
    values = [item.item() if isinstance(item, np.generic) else item for item in items]
    if not values or not all(isinstance(value, bool | int | float | str) for value in values):
        raise BadValue(argument, {name: taken}, "it takes one value or several by name.")
    return f"{name}={','.join(map(str, values))}"


def chosen_cells(cells: pd.DataFrame, selections: Sequence[Selection]) -> pd.DataFrame:
    """Return the rows that all conditions choose."""
    for selection in selections:
        if (
            selection.name not in cells
        ):  # those of an older version of the study may lack a parameter
            raise BadValue(
                selection.option, selection.text, f"these cells don't hold {selection.name}."
            )
        column = cells[selection.name]
        left = cells[selection.holds(column)]
        if left.empty and not cells.empty:
            raise BadValue(
                selection.option, selection.text, f"no cell has that; {_present(selection, column)}"
            )
        cells = left
    return cells


def _present(selection: Selection, column: pd.Series[Any]) -> str:
    present = sorted(column.dropna().unique().tolist())
    if selection.is_measured:
        ends = f"{present[0]:.6g} to {present[-1]:.6g}" if present else "no number"
        return f"{selection.name} is {ends} here."
    some = ", ".join(str(value) for value in present[:6])
    return f"there is {some}{' and more' if len(present) > 6 else ''}."


def chosen_data(data: FigureData, texts: Sequence[str]) -> FigureData:
    """Return what a figure is drawn from, of the chosen cells alone."""
    if not texts:
        return data
    selections = read_selections(texts, data.study)
    measured = [selection for selection in selections if selection.is_measured]
    others = [selection for selection in selections if not selection.is_measured]
    of_parameters = chosen_cells(data.cells, others)
    cells = chosen_cells(of_parameters, measured)
    planned, steps, chosen = data.planned, data.trajectories, ""
    if measured:  # what is left out isn't missing
        conditions = ", ".join(selection.text for selection in measured)
        chosen = f"{conditions}, {len(cells)} of {plural(len(of_parameters), 'cell')}"
        planned = cells[[name for name in planned if name in cells]]
    for selection in selections:
        planned = (
            planned[selection.holds(planned[selection.name])]
            if selection.name in planned and len(planned)
            else planned
        )
    steps = steps[steps["key"].isin(cells["key"])] if "key" in steps else steps
    return replace(data, cells=cells, planned=planned, trajectories=steps, chosen=chosen)


def varying_parameters(study: AnyStudy, cells: pd.DataFrame) -> list[str]:
    """Return the parameters that take several values in the cells, in the order of the study."""
    return varying(cells, describe(study.parameters))


def measured_columns(cells: pd.DataFrame) -> list[str]:
    """Return the columns of numbers that training gave, with `steps` and `seconds` before them."""
    names = [str(name) for name in cells.columns]
    return [name for name in names[names.index("reason") + 1 :] if name != TRACEBACK]


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
        parameters: which of them stand in the row, and in which order; those that vary and aren't
            named stand before them.
        measured: the columns to take means of; by default all that were measured.

    Returns:
        The parameters; `seeds`, how many cells are done, and `failed`, how many failed. Then for
        each measured column, such as `loss`, its mean over the cells that are done and have it,
        the ends `loss_low` and `loss_high` of its 95 % t interval, and the standard deviation
        `loss_sd`. These three are nan for a single seed.
    """
    import pandas as pd

    axes = varying_parameters(study, cells)
    names = [*(name for name in axes if name not in parameters), *parameters]
    cells = in_order(study, cells)
    done = cells["status"] == "done"
    if not done.any():
        raise UserError(_without_means(cells))
    setting = cells.groupby(axes, sort=False).ngroup() if axes else 0 * cells["seed"]
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
    reasons = cells["reason"].value_counts()
    first = reasons.index[0]
    others = f", and {len(reasons) - 1} other reasons" if len(reasons) > 1 else ""
    return f"All {len(cells)} cells failed ({first}{others}), so there are no means over seeds."
