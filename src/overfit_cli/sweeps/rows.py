"""Rows made of results: one per cell, and one per logged step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa

from overfit_cli.study import AnyStudy, CellResult
from overfit_cli.sweeps.schema import cell_schema, trajectory_schema


def cell_table(study: AnyStudy, results: Sequence[CellResult]) -> pa.Table:
    """Return the cell rows of `results`."""
    measured = _names(study, (result.measurements for result in results))
    schema = cell_schema(study, measured)
    return pa.Table.from_pylist([cell_row(result) for result in results], schema)


def cell_row(result: CellResult) -> dict[str, object]:
    """Return a result as a row, by column."""
    cell = result.cell
    return {
        "key": cell.key,
        "study": cell.study,
        "version": cell.version,
        "seed": cell.seed,
        **cell.parameters.model_dump(),
        "status": result.status,
        "reason": result.reason,
        "steps": result.steps,
        "seconds": result.seconds,
        **result.measurements,
    }


def trajectory_table(study: AnyStudy, results: Sequence[CellResult]) -> pa.Table:
    """Return the logged steps of `results`; no rows where none was logged."""
    logged = _names(study, (result.trajectory for result in results))
    schema = trajectory_schema(study, [name for name in logged if name != "step"])
    tables = []
    for result in results:
        if result.trajectory:
            steps = len(result.trajectory["step"])
            content = {"key": [result.cell.key] * steps, **result.trajectory}
            columns = [
                pa.array(content.get(name, [None] * steps)).cast(schema.field(name).type)
                for name in schema.names
            ]
            tables.append(pa.Table.from_arrays(columns, schema=schema))
    return pa.concat_tables(tables) if tables else schema.empty_table()


def _names(study: AnyStudy, rows: Iterable[Mapping[str, object]]) -> list[str]:
    """The names that occur in rows, in their order, of a study that may have any."""
    return list(dict.fromkeys(name for row in rows for name in row)) if study.open_columns else []
