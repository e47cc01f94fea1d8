"""Hooks with which MkDocs builds the site, for `mkdocs.yml`.

The site has the layout of the repository, so that each link and picture works in both. Its pages
are `README.md` and what lies in `docs/`, and what these link to.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from posixpath import normpath
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from docs.formulas import mark_formulas, typeset
from docs.generate import regenerated
from docs.notebook_page import NotebookFile, notebook_page

FOLDER = Path(__file__).parent
ROOT = FOLDER.parent
LINK = re.compile(r"""\]\(([^)\s#]+)|\b(?:href|src)="([^"#]+)""")
DOCUMENTED = re.compile(
    r"^- \[`(?P<name>overfit_cli\.[\w.]+)`\]\([^)]*\)(?:: (?P<members>.*))?$", re.MULTILINE
)
"""A Python name in a list, and those of its members that users need, where not all are shown."""

INDENTED = re.compile(r"^```.*?^```$|<pre\b.*?</pre>|^( {2,6})(?=\S)", re.DOTALL | re.MULTILINE)
DOWNLOADED = {"", ".cff", ".py", ".sbatch", ".toml", ".yml"}
"""Files that browsers download unless they are called texts."""

REPORT = "results/report/index.html"
HEADER = '<header id="top" tabindex="-1">'
"""Where the report's page begins, after the link that skips to its claims."""

SEARCHED = {
    "CHANGELOG.md": {"exclude": True},
    "docs/reference.md": {"boost": 20},
    "docs/verdicts.md": {"boost": 10},
    "docs/your-own-experiment.md": {"boost": 2},
}
"""Pages that the search leaves out or ranks higher, as the front matter of Material has it."""

COMMAND = re.compile(r"^## overfit (\w+)$", re.MULTILINE)
"""A heading of the reference; below it the site has the command's help."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Add the pages that the navigation doesn't name to its first section."""
    nav: list[Any] = list(config.nav or [])
    named = set(_paths(nav))
    pages = [path for path in _sources() if re.fullmatch(r"docs/.*\.(md|ipynb)", path)]
    next(iter(nav[0].values())).extend(sorted({*pages} - named))
    config.nav = nav
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Replace the files of `docs/` by those of the site, at their paths in the repository."""
    theme = [file for file in files if file.src_dir != config.docs_dir]
    return Files([*theme, *(_file(config, path) for path in sorted(_sources()))])


def _file(config: MkDocsConfig, path: str) -> File:
    """A file of the site, by its path in the repository."""
    if path.endswith(".ipynb"):
        content = notebook_page((ROOT / path).read_text(encoding="utf-8"))
        return NotebookFile.generated(config, path, content=content)
    if path == REPORT:
        page = (ROOT / path).read_text(encoding="utf-8")
        back = f'{HEADER}\n<p><a href="../../index.html">Documentation</a></p>'
        return File.generated(config, path, content=page.replace(HEADER, back, 1))
    file = File.generated(config, path, abs_src_path=str(ROOT / path))
    if Path(path).suffix in DOWNLOADED:
        file.dest_uri += ".txt"
    return file


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Write tables of claims, mark formulas, and put documentation in the place of Python names.

    It also sets the page's rank in the search, as front matter would show on the code's host.
    """
    heading = re.match(r"(?:<!--.*?-->\s*)?# (.+)", markdown)
    if heading:  # the navigation may have a shorter title
        page.meta.setdefault("title", heading[1].replace("`", ""))
    page.meta["search"] = SEARCHED.get(page.file.src_uri, {})
    is_reference = page.file.src_uri == "docs/reference.md"
    if is_reference:
        markdown = COMMAND.sub(lambda heading: heading[0] + _help(heading[1]), markdown)
    shown = nest_lists(mark_formulas(regenerated(markdown, on_site=True)))
    return DOCUMENTED.sub(_documentation, shown) if is_reference else shown


def _documentation(listed: re.Match[str]) -> str:
    """What mkdocstrings replaces by the documentation of a name."""
    members = re.findall(r"`(\w+)`", listed["members"] or "")
    shown = f"\n    options:\n      members: [{', '.join(members)}]" if members else ""
    return f"::: {listed['name']}{shown}"


def _help(command: str) -> str:
    """The help of a command as a block, as a user without settings sees it, without colours."""
    others = {name: text for name, text in os.environ.items() if not name.startswith("OVERFIT_")}
    done = subprocess.run(
        [sys.executable, "-m", "overfit_cli", command, "--help"],
        env={**others, "COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb"},
        capture_output=True,
        text=True,
        check=True,
    )
    text = done.stdout.split("Parameters of")[0]
    lines = (line.rstrip() for line in text.strip().splitlines())
    return "\n\n```\n" + "\n".join(lines) + "\n```\n"


def on_page_content(html: str, **_: Any) -> str:
    """Set the formulas, and load pictures when they come into view."""
    return typeset(html).replace("<img ", '<img loading="lazy" ')


def nest_lists(markdown: str) -> str:
    """Return Markdown with four spaces where what belongs to an item of a list has two or three.

    Code and preformatted text stay as they are.
    """
    return INDENTED.sub(
        lambda part: part[0] if part[1] is None else "    " * (len(part[1]) // 4 + 1), markdown
    )


def _sources() -> set[str]:
    """The files of the site: the documents, and what they link to, by path in the repository."""
    written = [*FOLDER.rglob("*.md"), *FOLDER.rglob("*.ipynb")]
    queue = ["README.md", *(str(path.relative_to(ROOT)) for path in written)]
    sources = {"docs/site.css"}
    while queue:
        path = queue.pop()
        if path in sources or path.startswith("..") or not (ROOT / path).is_file():
            continue  # MkDocs warns of links that lead nowhere
        sources.add(path)
        if path.endswith(".md"):
            text = regenerated((ROOT / path).read_text(encoding="utf-8"), on_site=True)
            text = DOCUMENTED.sub("", text)
            folder = Path(path).parent
            queue += [normpath(folder / (link[1] or link[2])) for link in LINK.finditer(text)]
    return sources


def _paths(nav: Any) -> Iterator[str]:
    """The paths that a navigation names."""
    if isinstance(nav, str):
        yield nav
    for item in nav.values() if isinstance(nav, dict) else nav if isinstance(nav, list) else ():
        yield from _paths(item)
