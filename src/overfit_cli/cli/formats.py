"""Formats of what is exported: chosen, made, and printed or written."""

from __future__ import annotations

import io
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

import typer

from overfit_cli.cli.common import console
from overfit_cli.cli.options import read_one_of
from overfit_cli.errors import UserError
from overfit_cli.plain_text import visible

if TYPE_CHECKING:
    import pandas as pd

    from overfit_cli.study import AnyStudy

Format = Literal["csv", "latex", "parquet"]
ENDINGS: Mapping[str, Format] = {".csv": "csv", ".tex": "latex", ".parquet": "parquet"}


def read_format(to: str | None, out: Path | None) -> Format:
    """Return the format that is asked for, in words or by the file's ending.

    Raises:
        UserError: if neither says it, the two differ, or a format needs a file and none is given.
    """
    suffix = "" if out is None else out.suffix.lower()
    ending = ENDINGS.get(suffix)
    if to is None and out is not None and ending is None:
        raise UserError(
            f"--out {out}: add --to csv, latex or parquet, or end the name in "
            f"{' or '.join(ENDINGS)}."
        )
    form: Format = ending or "csv" if to is None else read_one_of("--to", to, get_args(Format))
    if ending not in (None, form):
        raise UserError(
            f"--to {form} --out {out}: a name in {suffix} is for {ending}; change one of the two."
        )
    if form == "parquet" and out is None:
        raise UserError("--to parquet: it needs a file; add --out FILE.parquet.")
    return form


def in_csv(rows: pd.DataFrame) -> bytes:
    """Return rows as CSV, below their names; every number has all its digits."""
    text: str = rows.to_csv(index=False, lineterminator="\n")
    return text.encode()


def in_parquet(study: AnyStudy, rows: pd.DataFrame) -> bytes:
    """Return rows as a parquet file, whose metadata say of which study they are."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from overfit_cli.sweeps.schema import STUDY_MARK

    table = pa.Table.from_pandas(rows, preserve_index=False)
    said = {STUDY_MARK: study.name, b"overfit.version": str(study.version)}
    file = io.BytesIO()
    pq.write_table(table.replace_schema_metadata({**table.schema.metadata, **said}), file)
    return file.getvalue()


def print_content(content: bytes) -> None:
    """Put a file's content on standard output; on a terminal, where nothing in it is obeyed."""
    text = content.decode()
    if sys.stdout.isatty():
        text = "\n".join(visible(line) for line in text.split("\n"))
    elif hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(encoding="utf-8")
    typer.echo(text, nl=False)


def write_content(content: bytes, out: Path) -> None:
    """Write a file whole, or not at all, and say so.

    Raises:
        UserError: if it can't be written.
    """
    from overfit_cli.files import write_named

    write_named(out, content, "--out")
    console().print(f"Written: {out}")
