"""CSV in which spreadsheets execute nothing: a text that is a formula begins with an apostrophe."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from overfit_cli.core.text import is_number

if TYPE_CHECKING:
    import pandas as pd

_FORMULA = re.compile("[=+\\-@\t\r\n]")


def csv_text(rows: pd.DataFrame) -> str:
    """Return rows as CSV below their names; numbers have all their digits, formulas are quoted."""
    words = [name for name in rows if rows[name].dtype.kind not in "iufb"]
    safe = rows.assign(**{str(name): rows[name].map(_quoted) for name in words})
    text: str = safe.rename(columns=_quoted).to_csv(index=False, lineterminator="\n")
    return text


def unquoted(field: str) -> str:
    """Return the text that a field of such CSV stands for."""
    return field[1:] if field[:1] == "'" and _FORMULA.match(field, 1) else field


def _is_formula(text: str) -> bool:
    return _FORMULA.match(text) is not None and not is_number(text)


def _quoted(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and _is_formula(value) else value
