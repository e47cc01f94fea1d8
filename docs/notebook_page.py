"""A notebook as a page of the site: its cells as Markdown, and its kept outputs below them."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator
from typing import Any

from mkdocs.structure.files import File


class NotebookFile(File):
    """A notebook of the site: links to the notebook lead to its page."""

    def is_documentation_page(self) -> bool:
        """Say that it becomes a page."""
        return True


def notebook_page(notebook: str) -> str:
    """Return the Markdown of a notebook's file; of each output it shows the richest form."""
    content = json.loads(notebook)
    return "\n\n".join(part for cell in content["cells"] for part in _cell(cell)) + "\n"


def _cell(cell: dict[str, Any]) -> Iterator[str]:
    source = _text(cell["source"]).strip()
    if cell["cell_type"] == "code" and source:
        yield f"```python\n{source}\n```"
        for output in cell["outputs"]:
            yield _output(output)
    elif source:
        yield source


def _output(output: dict[str, Any]) -> str:
    """An output in the richest form that needs no script; a text without it is preformatted."""
    forms = output.get("data", {"text/plain": output.get("text", "")})
    if "image/png" in forms:
        picture = _text(forms["image/png"]).replace("\n", "")
        return f'<p><img alt="" src="data:image/png;base64,{picture}"></p>'
    if "text/html" in forms:
        lines = _text(forms["text/html"]).splitlines()
        return "\n".join(['<figure class="output">', *filter(str.strip, lines), "</figure>"])
    return f'<pre class="output">{html.escape(_text(forms.get("text/plain", "")).rstrip())}</pre>'


def _text(lines: str | list[str]) -> str:
    """A text of a notebook, which may be kept in lines."""
    return lines if isinstance(lines, str) else "".join(lines)
