"""Tables in LaTeX, with the rules of booktabs and the symbols of the papers."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from overfit_cli.core.parameters import describe
from overfit_cli.core.study import AnyStudy
from overfit_cli.core.text import visible

if TYPE_CHECKING:
    import pandas as pd

ABSENT = "--"
"""The sign of a missing number."""


def means_table(
    study: AnyStudy, means: pd.DataFrame, measured: Sequence[str], notes: Sequence[str]
) -> str:
    r"""Return means over seeds as a table, each as `$0.693 \pm 0.012$`.

    The numbers of seeds and of failed cells have columns where they tell something.

    Args:
        means: one row per setting, as `sweeps.load.means_over_seeds` gives them.
    """
    names = list(means.columns)
    columns = {name: means[name] for name in names[: names.index("seeds")]}
    columns |= {"seeds": means["seeds"]} if means["seeds"].nunique() > 1 else {}
    columns |= {"failed": means["failed"]} if means["failed"].any() else {}
    words = {name for name, column in columns.items() if column.dtype.kind not in "iuf"}
    written = {name: [value(one) for one in column.tolist()] for name, column in columns.items()}
    for name in measured:
        halves = (means[f"{name}_high"] - means[name]).tolist()
        written[name] = [
            estimate(mean, half) for mean, half in zip(means[name].tolist(), halves, strict=True)
        ]
    sides = "".join("l" if name in words else "r" for name in written)
    rows = [" & ".join(row) for row in zip(*written.values(), strict=True)]
    return "\n".join(
        [
            *(f"% {visible(note)}" for note in (r"\usepackage{booktabs}", *notes)),
            rf"\begin{{tabular}}{{{sides}}}",
            r"\toprule",
            " & ".join(head(study, name) for name in written) + r" \\",
            r"\midrule",
            *(rf"{row} \\" for row in rows),
            r"\bottomrule",
            r"\end{tabular}",
            "",
        ]
    )


def head(study: AnyStudy, name: str) -> str:
    """Return the head of a column: the symbol of a number that is set, else words and symbol."""
    settings, columns = (
        describe(study.parameters),
        {column.name: column for column in study.columns},
    )
    described = settings.get(name) or columns.get(name)
    if described is None:
        return text({"steps": study.step, "seconds": "time (s)"}.get(name, name))
    symbol = f"${described.symbol}$" if described.symbol else ""
    shown = [text(described.label or described.meaning or name.replace("_", " "))]
    if name in settings and settings[name].kind in ("int", "float") and symbol:
        shown = []
    elif name in settings:
        symbol = ""  # of words, which say themselves what they are
    unit = f"({text(described.unit)})" if described.unit else ""
    return " ".join(filter(None, [*shown, symbol, unit]))


def value(given: Any, digits: int = 6) -> str:
    """Return a value as a table writes it: numbers as formulas, real ones in so many digits."""
    if isinstance(given, bool):
        return str(given).lower()
    if isinstance(given, int):
        is_round = abs(given) >= 1e5 and given == float(f"{given:.3g}")
        return _formula(f"{given:.2e}") if is_round else f"${given}$"
    if not isinstance(given, float):
        return ABSENT if given is None else text(str(given))
    if math.isnan(given):
        return ABSENT
    if math.isinf(given):
        return r"$\infty$" if given > 0 else r"$-\infty$"
    return _formula(f"{given + 0.0:.{digits}g}")  # -0.0 becomes 0


def _formula(number: str) -> str:
    mantissa, _, exponent = number.partition("e")
    if not exponent:
        return f"${mantissa}$"
    factor = {1.0: "", -1.0: "-"}.get(float(mantissa), rf"{float(mantissa):g} \cdot ")
    return f"${factor}10^{{{int(exponent)}}}$"


_NEGLIGIBLE = 1e-6
"""Beside a mean this much larger, an interval is rounding."""


def estimate(mean: float, half: float) -> str:
    r"""Return a mean with half its interval, `$0.693 \pm 0.012$`: the half in two digits.

    Where there is no interval, or nothing but rounding in it, the mean stands alone.
    """
    if not math.isfinite(mean + half) or half <= _NEGLIGIBLE * abs(mean):
        return value(float(mean), 4)
    power = math.floor(math.log10(max(abs(mean), half)))
    power = 0 if -4 < power < 5 else power
    of_mean, of_half = (Decimal(number).scaleb(-power) for number in (mean, half))
    last = Decimal(1).scaleb(Decimal(f"{of_half:.1e}").adjusted() - 1)
    interval = rf"{of_mean.quantize(last) + 0:f} \pm {of_half.quantize(last):f}"
    return rf"$({interval}) \cdot 10^{{{power}}}$" if power else f"${interval}$"


_ESCAPED = {
    **{letter: f"\\{letter}" for letter in "&%$#_{}"},
    **{letter: f"{{{letter}}}" for letter in "[]*"},  # else the end of a row may take them
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
}
_SIGNS = {"−": "-", "×": r"\times", "·": r"\cdot", "⋆": r"\star", "≤": r"\leq", "≥": r"\geq"}
_RAISED, _LOWERED = "⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "₀₁₂₃₄₅₆₇₈₉₋"
_GREEK = "αβγδεζηθικλμνξπρστυφχψωΓΔΘΛΞΠΣΦΨΩ"
_IN_FORMULAS = re.compile(f"[{_RAISED}]+|[{_LOWERED}]+|[{_GREEK}]|[{''.join(_SIGNS)}]")
"""Characters that LaTeX takes in formulas alone."""


def text(words: str) -> str:
    """Return words so that LaTeX shows them as they are."""
    escaped = "".join(_ESCAPED.get(letter, letter) for letter in visible(words))
    return _IN_FORMULAS.sub(lambda match: f"${_as_formula(match[0])}$", escaped)


def _as_formula(letters: str) -> str:
    if letters in _SIGNS:
        return _SIGNS[letters]
    if letters in _GREEK:
        name = unicodedata.name(letters).rpartition(" ")[2].replace("LAMDA", "LAMBDA")
        return f"\\{name.lower() if letters.islower() else name.capitalize()}"
    plain = unicodedata.normalize("NFKC", letters).replace("−", "-")
    return f"{'^' if letters[0] in _RAISED else '_'}{{{plain}}}"
