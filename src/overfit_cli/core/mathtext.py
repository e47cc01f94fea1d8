"""Texts of declarations that figures typeset: symbols, and words with formulas between dollars.

Matplotlib's own parser decides what can be typeset. It takes a third of a second to import, so a
formula of letters, Greek names, indices, powers and common commands is accepted without it.
"""

from __future__ import annotations

import re
from typing import Any

from overfit_cli.core.text import shorten, visible

_NAMES = (
    "alpha|beta|gamma|delta|epsilon|varepsilon|zeta|eta|theta|iota|kappa|lambda|mu|nu|xi|pi|rho|"
    "sigma|tau|upsilon|phi|varphi|chi|psi|omega|Gamma|Delta|Theta|Lambda|Xi|Pi|Sigma|Phi|Psi|Omega|"
    "cos|ell|exp|infty|langle|log|max|min|nabla|rangle|sin|sum|top|Vert"
)
_SIGN = re.compile(rf"\\(?:(?:{_NAMES})(?![A-Za-z])|\||(?:hat|bar|tilde) ?[A-Za-z])")
_LETTER = r"[A-Za-z0-9,()+*/|-]"
_LINE = rf" *(?:{_LETTER}(?:_{_LETTER}(?:\^{_LETTER})?|\^{_LETTER}(?:_{_LETTER})?|')? *)+"
_GROUP = re.compile(
    rf"\\frac\{{{_LINE}\}}\{{{_LINE}\}}"
    rf"|(?:\\(?:hat|bar|tilde|underline|mathrm|sqrt))?\{{{_LINE}\}}"
)
_DOLLAR = re.compile(r"(?<!\\)\$")


def symbol_problem(symbol: str) -> str:
    """Return why a symbol, in mathtext without dollar signs, can't be typeset; empty if it can."""
    if visible(symbol) != symbol:
        return "it has a character that can't be drawn"
    if _DOLLAR.search(symbol):
        return "it has a dollar sign"
    if not symbol or is_plain(symbol) or _parses(symbol):
        return ""
    return "matplotlib can't typeset it"


def words_problem(words: str) -> str:
    r"""Return why words with formulas between dollar signs can't be typeset; empty if they can.

    An odd number of dollar signs are signs of money. One in words with a formula is written `\$`.
    """
    if visible(words) != words:
        return "it has a character that can't be drawn"
    _, *pieces = _DOLLAR.split(words)
    if len(pieces) % 2:
        return ""
    wrong = next((part for part in pieces[::2] if not part or symbol_problem(part)), None)
    return "" if wrong is None else f"matplotlib can't typeset its formula ${shorten(wrong)}$"


def with_money(words: str) -> str:
    r"""Return words for a figure: signs of money, an odd number of dollar signs, become `\$`."""
    odd = len(_DOLLAR.findall(words)) % 2
    return _DOLLAR.sub(r"\\$", words) if odd else words


def is_plain(symbol: str) -> bool:
    """Return whether a symbol is one that is known to be typeset without asking matplotlib."""
    text = _SIGN.sub("x", symbol.replace(r"\,", " "))
    # Each pass turns innermost groups into letters.
    while (inner := _GROUP.sub("x", text)) != text:
        text = inner
    return re.fullmatch(_LINE, text) is not None


def check_texts(declared: object) -> None:
    """Refuse a `Parameter` or a `Column` with texts that figures can't typeset."""
    for name, (problem_of, accepted) in _TEXTS.items():
        text, takes = getattr(declared, name), "it takes a text"
        if isinstance(text, str):
            problem = problem_of(text)
            takes = f"{problem}; {accepted}" if problem else ""
        if takes:
            where = f"{type(declared).__name__}({name}={shorten(repr(text))})"
            raise TypeError(f"{where}: {takes}")


_WORDS = words_problem, "it takes words in one line, with whole formulas between dollar signs"
_SYMBOL = (
    symbol_problem,
    (r"it takes matplotlib's mathtext without dollar signs, such as r'\sigma_p'"),
)
_TEXTS = {"meaning": _WORDS, "symbol": _SYMBOL, "unit": _WORDS, "label": _WORDS}
"""The texts of a declaration that figures show: why one can't be typeset, and what it takes."""


def without_bad_texts(kept: Any) -> Any:
    """Return a declaration that a manifest has, without the texts that figures can't typeset."""
    texts = {name: kept.get(name) for name in _TEXTS} if isinstance(kept, dict) else {}
    bad = [name for name, of in texts.items() if isinstance(of, str) and _TEXTS[name][0](of)]
    return {**kept, **dict.fromkeys(bad, "")} if bad else kept


def _parses(symbol: str) -> bool:
    from matplotlib.mathtext import MathTextParser

    try:
        MathTextParser("path").parse(f"${symbol}$")
    except Exception:  # of many kinds, of the parser and of its fonts
        return False
    return True
