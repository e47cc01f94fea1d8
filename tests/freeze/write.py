"""Writes the values that `test_freeze.py` compares with: `python -m tests.freeze.write`."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pandas as pd

from tests.freeze import values


def main() -> None:
    """Write both files."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        content = {
            "runs": {run: values.loaded(run) for run in values.kept_runs()},
            "claims": values.judged(),
            "compared": {" ".join(pair): values.compared(*pair, folder) for pair in values.PAIRS},
            "refined": {str(seed): values.refined(seed, folder) for seed in range(3)},
            "keys": [
                [cell.study, cell.parameters.model_dump(), cell.seed, cell.key]
                for cell in values.some_cells()
            ],
            "planned": values.planned(),
        }
    values.FROZEN.write_text(json.dumps(content, indent=0, ensure_ascii=False) + "\n", "utf-8")
    tables = [
        pd.DataFrame(values.points(picture), columns=["x", "y", "value"]).assign(picture=picture)
        for picture in values.pictures()
    ]
    pd.concat(tables).to_parquet(
        values.FIGURES,
        compression="zstd",
        index=False,
        use_dictionary=["picture"],
        column_encoding=dict.fromkeys(("x", "y", "value"), "BYTE_STREAM_SPLIT"),
    )


if __name__ == "__main__":
    main()
