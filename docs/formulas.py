"""Formulas as HTML: the documents write them in plain Unicode, and the site typesets them.

`σ_p² d ≥ N^(1/2)` gets the indices and powers that it has on the report's page, and its letters are
set in italics. That takes no script and no fonts, and the documents stay readable as they are.
"""

from __future__ import annotations

import html
import re
from textwrap import dedent

from overfit_cli.report.words import set_indices

_FENCED = re.compile(r"(^```.*?^```$|<pre\b.*?</pre>)", re.DOTALL | re.MULTILINE)
_INDENTED = re.compile(r"(?<=\n\n)(?: {4,}\S.*\n)+(?=\n|\Z)")
_ALONE = re.compile(r'(?<=<p class="formula">)(.*?)(?=</p>)', re.DOTALL)

_LEFT_AS_IT_IS = re.compile(r"(<(pre|code|figure|style|svg|i)\b.*?</\2>|<[^>]*>)", re.DOTALL)
_WORD = re.compile(r"\b[aAI] (?==|≤|≥|∈|&[lg]t;)|(?:<[^>]*>|[^\s<])+")
_SIGN = re.compile(
    "[=^·√‖⟨⟩∈∇∂Σ∏∞≤≥≠≈∝→⋆ᵀ⁰¹²³⁴-⁹⁺⁻₀-₉₊₋α-ωΓΔΘΛΞΠΦΨΩ\u0300-\u036f+−]"
    r"|&[lg]t;|<su[bp]>|(?<![A-Za-z])[A-Za-z]\(|\d[A-Z]"
)
"""What makes a formula of a word."""

_SYMBOL = re.compile(r"[(|]?[B-HJ-Zb-z][).,;:]*|[aAI] ")
"""A letter by itself that isn't a word."""

_LETTERS = re.compile(
    r"<[^>]*>|&#?\w+;|\d+e[+-]?\d+|[A-Za-z]{3,}|ln|(?:[A-Za-z]{1,2}|[α-ω])[\u0300-\u036f]?"
)
"""What stays upright, such as tags and names of functions; else one letter or a product of two."""


def mark_formulas(markdown: str) -> str:
    """Return Markdown with the formulas that stand alone marked: they are indented by four."""
    parts = _FENCED.split(markdown)
    parts[::2] = (_INDENTED.sub(_marked, part) for part in parts[::2])
    return "".join(parts)


def _marked(lines: re.Match[str]) -> str:
    return f'<p class="formula">{html.escape(dedent(lines[0]).rstrip(), quote=False)}</p>\n'


def typeset(page: str) -> str:
    """Return the HTML of a page with its formulas typeset; code stays as it is."""
    page = _ALONE.sub(lambda formula: _italics(_indices(formula[1])), page)
    parts = _LEFT_AS_IT_IS.split(page)
    texts = (_sentence(part) for part in parts[::3])
    tags = (*parts[1::3], "")
    return "".join(text + tag for text, tag in zip(texts, tags, strict=True))


def _sentence(text: str) -> str:
    """A text with the formulas in it typeset, which are words with mathematical signs."""
    return _WORD.sub(
        lambda word: _italics(word[0]) if _is_formula(word[0]) else word[0], _indices(text)
    )


def _indices(text: str) -> str:
    """A text with indices and powers; the braces around an index are not seen."""
    return re.sub(r"<sub>\{(.*?)\}</sub>", r"<sub>\1</sub>", set_indices(text))


def _is_formula(word: str) -> bool:
    return _SYMBOL.fullmatch(word) is not None or _SIGN.search(word) is not None


def _italics(formula: str) -> str:
    return _LETTERS.sub(
        lambda letters: f"<i>{letters[0]}</i>" if _is_symbol(letters[0]) else letters[0], formula
    )


def _is_symbol(letters: str) -> bool:
    return letters != "ln" and re.fullmatch(r"[^\W\d_]{1,2}[\u0300-\u036f]?", letters) is not None
