"""Figures held to their records, and what may happen to them and to their data."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from overfit_cli.figures.record import RunRecord
from overfit_cli.sweeps.part_file import write_part
from tests.command import call
from tests.toy_runs import parts_in


def verify(*words: str, cwd: Path, expect: int = 0) -> str:
    """What `overfit verify --redraw` says, held to an exit code."""
    return call("verify", "--redraw", *words, cwd=cwd, expect=expect).stdout


def rewritten(folder: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    """Write the parts of a folder anew, as a whole sweep would, with other content."""
    for part in parts_in(folder):
        table = pq.read_table(part)
        part.unlink()
        write_part(folder, change(table).replace_schema_metadata(table.schema.metadata))


def with_column(name: str, values: Callable[[np.ndarray], np.ndarray]) -> Callable[..., pa.Table]:
    """What changes the numbers of a column."""

    def change(table: pa.Table) -> pa.Table:
        place = table.schema.get_field_index(name)
        numbers = values(table.column(name).to_numpy().copy())
        return table.set_column(place, table.schema.field(place), pa.array(numbers))

    return change


def edit(file: Path, *, to: Path | None = None, pixels: bool = False, **values: Any) -> None:
    """Change a PNG file's pixels, or values of its record, and leave the rest as it is."""
    image = Image.open(io.BytesIO(file.read_bytes()))
    texts = {str(name): text for name, text in image.info.items() if isinstance(text, str)}
    record = json.loads(texts["overfit"])
    for name, value in values.items():
        (record["runs"][0] if name in RunRecord.model_fields else record)[name] = value
    held = PngInfo()
    for name, text in {**texts, "overfit": json.dumps(record)}.items():
        held.add_text(name, text)
    if pixels:
        image.paste((255, 0, 0), (40, 40, 64, 60))  # 24 × 20 pixels
    image.save(to or file, pnginfo=held)
