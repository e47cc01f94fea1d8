"""Cells as labelled arrays over the grid of a run, for xarray, and as a netCDF file.

Each measured column is an array over the parameters that vary and the seed, nan where there is no
cell. The extra `netcdf` installs what it needs.
"""

from __future__ import annotations

import json
import math
import re
import tempfile
from collections.abc import Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from overfit_cli.core.arrays import varying
from overfit_cli.core.cell import Column
from overfit_cli.core.errors import BadValue
from overfit_cli.core.files import require_extra
from overfit_cli.core.parameters import ParameterInfo, describe
from overfit_cli.core.study import AnyStudy, FigureData, stand_ins_of
from overfit_cli.core.text import VERSION
from overfit_cli.figures.draw import commands_behind
from overfit_cli.sweeps.load import measured_columns
from overfit_cli.sweeps.manifest import read_manifest

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

MOST_NUMBERS = 100_000_000
"""Numbers of all arrays together: 0.8 GB."""

MOST_RECORD = 60_000
"""Bytes of the run's record: an attribute of a netCDF file has up to 64 kB."""

STATUSES = ("missing", "done", "failed")
"""What the numbers of the array `status` mean, from 0."""


def labelled_arrays(path: Path, data: FigureData, columns: Sequence[str] = ()) -> xr.Dataset:
    """Return cells as one array for each measured column, with the parameters as coordinates.

    The dimensions are the parameters that vary, and `seed`. A parameter that depends on another
    one, such as d = 2 n, is a coordinate along the other's dimension. `status` tells points without
    a cell from cells that failed; a failed cell has the numbers that it was measured with.

    Args:
        path: the run directory, for its record.
        data: the cells, and the points that were planned: those without a cell are nan.
        columns: the measured columns to take; by default all.
    """
    require_extra("xarray", "netcdf", "A netCDF file")
    import pandas as pd
    import xarray as xr

    study, cells = data.study, data.cells
    parameters = list(study.parameters.model_fields)
    points = pd.concat([frame[[*parameters, "seed"]] for frame in (cells, data.planned)])
    along = _dimensions(points, parameters)
    names = [*dict.fromkeys(along.values()), "seed"]
    infos = describe(study.parameters)
    labels = {name: _labels(points[name], infos.get(name)) for name in names}
    measured = list(columns) or measured_columns(cells)
    _check(measured, math.prod(map(len, labels.values())))
    where = tuple(pd.Index(labels[name]).get_indexer(cells[name]) for name in names)
    shape = tuple(map(len, labels.values()))
    coordinates: dict[str, Any] = {}
    for name in parameters:
        coordinates[name] = _coordinate(points, name, along.get(name), labels, infos[name])
    coordinates["seed"] = ("seed", labels["seed"], {"long_name": "seed", "units": "1"})
    arrays: dict[str, Any] = {}
    for name in measured:
        numbers = np.full(shape, np.nan)
        numbers[where] = cells[name].to_numpy(np.float64, na_value=np.nan)
        column = column_of(study, name)
        arrays[name] = (names, numbers, _facts(column.meaning, column.unit, column.symbol))
    status = np.zeros(shape, np.int8)
    status[where] = cells["status"].map(STATUSES.index).to_numpy(np.int8)
    facts = {"flag_values": np.arange(3, dtype=np.int8), "flag_meanings": " ".join(STATUSES)}
    arrays["status"] = (names, status, {"long_name": "state of the cell", **facts})
    return xr.Dataset(arrays, coordinates, _record(path, study, cells))


def netcdf_file(dataset: xr.Dataset) -> bytes:
    """Return a data set as the content of a netCDF-4 file, compressed.

    Raises:
        MissingError: without the package netCDF4.
    """
    require_extra("netCDF4", "netcdf", "A netCDF file")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cells.nc"
        compressed = {str(name): {"zlib": True} for name in dataset.data_vars if dataset.sizes}
        dataset.to_netcdf(path, format="NETCDF4", engine="netcdf4", encoding=compressed)
        return path.read_bytes()


def _dimensions(points: pd.DataFrame, parameters: Sequence[str]) -> dict[str, str]:
    """The dimension along which each parameter varies: its own, or that of one that decides it."""
    varied = varying(points, parameters)
    pairs = points[varied].drop_duplicates()

    def decides(name: str, other: str) -> bool:
        return len(pairs[[name, other]].drop_duplicates()) == pairs[name].nunique()

    def is_led(name: str, other: str) -> bool:
        """Whether `other` decides it; of two that decide each other the first one leads."""
        if name == other or not decides(other, name):
            return False
        return not decides(name, other) or varied.index(other) < varied.index(name)

    free = [name for name in varied if not any(is_led(name, other) for other in varied)]
    return {
        name: name if name in free else next(lead for lead in free if is_led(name, lead))
        for name in varied
    }


def _labels(column: pd.Series[Any], info: ParameterInfo | None) -> list[Any]:
    """The values of a dimension: numbers in order, words as the study names them."""
    values = column.unique().tolist()
    if info is not None and info.kind == "literal":
        return sorted(values, key=lambda value: info.choices.index(str(value)))
    return sorted(values)


def _coordinate(
    points: pd.DataFrame,
    name: str,
    dimension: str | None,
    labels: Mapping[str, Sequence[Any]],
    info: ParameterInfo,
) -> tuple[Any, ...]:
    facts = _facts(info.meaning, info.unit, info.symbol)
    if dimension is None:
        return ((), points[name].iloc[0], facts)
    if dimension == name:
        return (name, _plain(labels[name]), facts)
    values = points.drop_duplicates(dimension).set_index(dimension)[name]
    return (dimension, _plain([values[label] for label in labels[dimension]]), facts)


def _plain(values: Sequence[Any]) -> Any:
    """Labels as an array: words as Python's strings, whatever their length."""
    return np.array(values, dtype=object if isinstance(values[0], str) else None)


def _check(measured: Sequence[str], size: int) -> None:
    for name in measured:
        if re.search(r"[/\x00-\x1f\x7f]|^[^\w]|\s$", name):
            accepts = "a netCDF file has no such name; leave the column out."
            raise BadValue("columns", name, accepts)
    if size * len(measured) > MOST_NUMBERS:
        accepts = (
            f"the grid has {size:.3g} points for each of {len(measured)} columns, and up to "
            f"{MOST_NUMBERS:.0e} numbers fit; choose fewer cells or fewer columns."
        )
        raise BadValue("columns", None, accepts)


def _facts(meaning: str, unit: str, symbol: str) -> dict[str, str]:
    facts = {"long_name": meaning, "units": unit or "1", "symbol": symbol}
    return {name: text for name, text in facts.items() if text}


def column_of(study: AnyStudy, name: str) -> Column:
    """Return what is known of a measured column: declared by the study, or one that all have."""
    every = [
        *study.columns,
        Column("steps", study.step, "int"),
        Column("seconds", "wall time of the cell", unit="s"),
    ]
    return next((column for column in every if column.name == name), Column(name, ""))


def _record(path: Path, study: AnyStudy, cells: pd.DataFrame) -> dict[str, Any]:
    paper = study.paper
    facts = {
        "title": study.title or study.name,
        "study": study.name,
        "study_version": int(cells["version"].iloc[0]),
        "source": f"overfit {VERSION}",
        "history": "\n".join(commands_behind([path], "")),
        "references": ", ".join(filter(None, [str(paper), paper.title, paper.url]))
        if paper
        else "",
        "comment": " ".join(stand_ins_of(study, cells)),
        "record": _manifest_text(path),
    }
    return {name: fact for name, fact in facts.items() if fact != ""}


def _manifest_text(path: Path) -> str:
    """The run's manifest as JSON, without its first runs where it is too long; else empty."""
    manifest = read_manifest(path)
    if manifest is None:
        return ""
    fields = manifest.model_dump(mode="json", by_alias=True)
    sizes = [len(json.dumps(run)) + 2 for run in fields["runs"]]
    others = len(json.dumps({**fields, "runs": [], "runs_left_out": len(sizes)}))
    kept = sum(others + total <= MOST_RECORD for total in accumulate(reversed(sizes)))
    if left_out := len(sizes) - kept:
        fields |= {"runs": fields["runs"][left_out:], "runs_left_out": left_out}
    return json.dumps(fields) if others <= MOST_RECORD else ""
