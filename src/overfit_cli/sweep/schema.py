"""The columns of a study's cell rows and trajectories, and rows made of results."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from overfit_cli.parameters import describe
from overfit_cli.study import CellResult, Study

SCHEMA_VERSION = "1"
VERSION_MARK = b"overfit.schema"
STUDY_MARK = b"overfit.study"

_TYPES = {"int": pa.int64(), "float": pa.float64(), "bool": pa.bool_(), "choice": pa.string()}


def cell_schema(study: Study) -> pa.Schema:
    """Return the schema of the study's cell rows."""
    parameters = describe(study.parameters).values()
    columns = [
        *(("key", pa.string()), ("study", pa.string()), ("version", pa.int64())),
        ("seed", pa.int64()),
        *((info.name, _TYPES[info.kind]) for info in parameters),
        *(("status", pa.string()), ("reason", pa.string())),
        *(("steps", pa.int64()), ("seconds", pa.float64())),
        *((column.name, _TYPES[column.kind]) for column in study.columns),
    ]
    return pa.schema(columns, metadata=_marks(study))


def trajectory_schema(study: Study) -> pa.Schema:
    """Return the schema of the study's trajectories: one row a cell and logged step."""
    columns = [
        *(("key", pa.string()), ("step", pa.int64())),
        *((column.name, _TYPES[column.kind]) for column in study.trajectory_columns),
    ]
    return pa.schema(columns, metadata=_marks(study))


def cell_table(study: Study, results: Sequence[CellResult]) -> pa.Table:
    """Return the cell rows of `results`."""
    return pa.Table.from_pylist([cell_row(result) for result in results], cell_schema(study))


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


def trajectory_table(study: Study, results: Sequence[CellResult]) -> pa.Table:
    """Return the logged steps of `results`; no rows where none was logged."""
    schema = trajectory_schema(study)
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


def _marks(study: Study) -> dict[bytes, bytes]:
    return {VERSION_MARK: SCHEMA_VERSION.encode(), STUDY_MARK: study.name.encode()}
