"""CSV in which spreadsheets execute nothing, and which is read back unchanged.

A spreadsheet takes a field that begins with `=`, `+`, `-`, `@` or a control character for a
formula. An apostrophe before such a text makes it a text. A text of apostrophes and then one of
these characters gets one more, so that taking one away gives the text that was written. Numbers
have none.
"""

from __future__ import annotations

import csv
import io
import re
from typing import TYPE_CHECKING, Any, Literal

from overfit_cli.core.errors import UserError
from overfit_cli.core.text import is_number

if TYPE_CHECKING:
    import pandas as pd

# The wide forms of the signs are formulas in East Asian spreadsheets.
_STARTS = "=+\\-@\t\r\n＝＋－＠"
_FORMULA = re.compile(f"[{_STARTS}]")
_QUOTED_FORMULA = re.compile(f"'+[{_STARTS}]")


def csv_text(rows: pd.DataFrame) -> str:
    """Return rows as CSV below their names; numbers have all their digits, texts are escaped."""
    words = [name for name in rows if rows[name].dtype.kind not in "iufb"]
    safe = rows.assign(**{str(name): rows[name].map(escape_formula) for name in words})
    safe = safe.rename(columns=escape_formula)
    text: str = safe.to_csv(index=False, lineterminator="\n")
    if "\r" in text:  # which spreadsheets take for a row's end, and Python 3.12 doesn't quote
        text = safe.to_csv(index=False, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    return text


def escape_formula(value: Any) -> Any:
    """Return a value for a field of CSV: a text that is a formula begins with an apostrophe."""
    if isinstance(value, str) and (_is_formula(value) or _QUOTED_FORMULA.match(value)):
        return f"'{value}"
    return value


def unescape_formula(field: str) -> str:
    """Return the text that `escape_formula` made a field of."""
    return field[1:] if _QUOTED_FORMULA.match(field) else field


def without_formulas(content: bytes) -> bytes:
    """Return CSV that somebody else may have written, with an apostrophe before each formula.

    Content without a formula is returned unchanged, with what is escaped in it already.
    """
    try:
        rows = list(csv.reader(io.StringIO(content.decode("utf-8-sig"), newline="")))
    except (UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"its numbers are no CSV ({error}).") from None
    if not any(_is_formula(field) for row in rows for field in row):
        return content
    text = io.StringIO(newline="")
    safe = ([f"'{field}" if _is_formula(field) else field for field in row] for row in rows)
    quoting: Literal[0, 1] = csv.QUOTE_ALL if b"\r" in content else csv.QUOTE_MINIMAL
    csv.writer(text, lineterminator="\n", quoting=quoting).writerows(safe)
    return text.getvalue().encode()


def _is_formula(text: str) -> bool:
    return _FORMULA.match(text) is not None and not is_number(text)
