"""Tables in HTML, as notebooks show them: every text is escaped, and no script or colour is used.

Text keeps the notebook's own colours, so that it is readable in light and in dark ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from markupsafe import Markup

from overfit_cli.core.text import visible

_LEFT = "text-align: left; vertical-align: top"


def html_table(caption: str, headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of texts; `Markup` is put in as it is."""
    head = _row("th", headings)
    body = Markup().join(_row("td", row) for row in rows)
    return Markup(
        '<table><caption style="caption-side: top; text-align: left">{}</caption>'
        "<thead>{}</thead><tbody>{}</tbody></table>"
    ).format(_shown(caption), head, body)


def folded(summary: str, sentences: Iterable[str]) -> Markup:
    """Return a text under which further ones are unfolded; the text alone where there are none."""
    below = Markup().join(Markup("<div>{}</div>").format(_shown(text)) for text in sentences)
    if not below:
        return Markup("{}").format(_shown(summary))
    return Markup("<details><summary>{}</summary>{}</details>").format(_shown(summary), below)


def strong(text: str) -> Markup:
    """Return a text in bold."""
    return Markup("<strong>{}</strong>").format(_shown(text))


def paragraphs(sentences: Iterable[str]) -> Markup:
    """Return a paragraph for each sentence."""
    return Markup().join(Markup("<p>{}</p>").format(_shown(text)) for text in sentences)


def _row(tag: str, texts: Sequence[str]) -> Markup:
    cell = Markup(f'<{tag} style="{_LEFT}">{{}}</{tag}>')
    return Markup("<tr>{}</tr>").format(Markup().join(cell.format(_shown(text)) for text in texts))


def _shown(text: str) -> str:
    return text if isinstance(text, Markup) else visible(text)
