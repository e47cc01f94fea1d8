"""Symbols and equations for terminals and documents, from the mathtext that figures use."""

from __future__ import annotations

import re
import unicodedata

_SIGNS = {
    "cdot": "·",
    "ell": "ℓ",
    "infty": "∞",
    "langle": "⟨",
    "nabla": "∇",
    "propto": "∝ ",
    "rangle": "⟩",
    "sum": "Σ ",
    "top": "ᵀ",
    "Vert": "‖",
}
_RAISED = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_ACCENTS = {
    "hat": "\N{COMBINING CIRCUMFLEX ACCENT}",
    "tilde": "\N{COMBINING TILDE}",
    "underline": "\N{COMBINING LOW LINE}",
}


def plain(symbol: str) -> str:
    r"""Return a mathtext symbol in plain Unicode: `\tilde{\sigma}_p` becomes `σ̃_p`.

    Equations too: `{N} \cdot \left(M + 1\right)^{2} = 10^{-3}` becomes `N·(M + 1)² = 10⁻³`.
    """
    text = re.sub(r"\\(left|right)(?![A-Za-z])", "", symbol.replace(r"\|", "‖"))
    text = text.replace(r"\,", " ")
    text = re.sub(r"\\mathrm\{(.*?)\}", r"\1", text.replace(r" \cdot ", r"\cdot "))
    text = re.sub(r"\\frac\{(.*?)\}\{(.*?)\}", r"\1/\2 ", text)
    accents = "|".join(_ACCENTS)
    text = re.sub(rf"\\(?!(?:{accents})\b)([A-Za-z]+)( ?)", _sign, text)
    text = re.sub(rf"\\({accents})(?:\{{(.)\}}| (.))", _accented, text)
    text = re.sub(r"\^(?:\{(-?\d+)\}|(\d))", _raised, text)
    while (inner := _BRACES.sub(_without_braces, text)) != text:
        text = inner
    return text.replace("^ᵀ", "ᵀ").replace(r"\_", "_").replace(r"\,", " ")


_BRACES = re.compile(r"(\^|sqrt)?\{([^{}]*)\}")
"""The innermost braces, with what they are of."""


def _without_braces(found: re.Match[str]) -> str:
    """A root, and an exponent longer than a letter, in parentheses; else what is there."""
    of, inside = found.groups()
    if of == "sqrt":
        return f"√({inside})"
    return f"^({inside})" if of and len(inside) > 1 else f"{of or ''}{inside}"


def _raised(found: re.Match[str]) -> str:
    """A whole exponent in raised digits."""
    return (found[1] or found[2]).translate(_RAISED)


def _sign(found: re.Match[str]) -> str:
    """A sign or a Greek letter by its name; the name of a function as it stands."""
    name, space = found.groups()
    if name in _SIGNS:
        return _SIGNS[name]
    size = "CAPITAL" if name[0].isupper() else "SMALL"
    letter = "LAMDA" if name.lower() == "lambda" else name.upper()
    try:
        return unicodedata.lookup(f"GREEK {size} LETTER {letter}")
    except KeyError:
        return f"{name}{space}"


def _accented(found: re.Match[str]) -> str:
    return f"{found[2] or found[3]}{_ACCENTS[found[1]]}"
