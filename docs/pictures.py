"""The pictures of the documents: a list of all figures, and the commands that draw them.

`make pictures` draws them anew; a test draws each, and holds the kept picture to it.
"""

from __future__ import annotations

import html
import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from overfit_cli.cli.app import main
from overfit_cli.core.registry import figures_of, find_study
from overfit_cli.sweeps.store import RunDirectory

ROOT = Path(__file__).parents[1]
COMMAND = re.compile(r"^\$ overfit ((?:plot|compare) .*)$", re.MULTILINE)


def kept_figures() -> list[tuple[str, str, str]]:
    """Return study, figure and run directory of each picture in `results/`, in this order."""
    found = []
    for path in sorted(ROOT.glob("results/*/figures/*.png")):
        directory = path.parents[1]
        name = RunDirectory(directory).study_name()
        assert name is not None, directory
        found.append((name, path.stem, str(directory.relative_to(ROOT))))
    return sorted(found)


ACROSS, WIDE = 3, 270
"""The pictures in a row of a paper's figures, and their width in pixels."""


def further_figures(key: str) -> str:
    """Return the kept figures on a paper that its page doesn't show, each with its command."""
    page = (ROOT / "docs" / f"{key}.md").read_text(encoding="utf-8")
    further = [
        (name, figure, source)
        for name, figure, source in kept_figures()
        if f"({_address(figure, source)})" not in page
        and (paper := find_study(name).paper) is not None
        and paper.key == key
    ]
    return "\n".join(_grid(further))


def _address(figure: str, source: str) -> str:
    """Where a kept figure is, as seen from the pages in `docs/`."""
    return f"../{source}/figures/{figure}.png"


def _grid(pictures: Sequence[tuple[str, str, str]]) -> list[str]:
    """The lines of a table of pictures, each with its command."""
    cells = []
    for study, figure, source in pictures:
        described = figures_of(find_study(study))[figure]
        path = _address(figure, source)
        cells.append(
            f'<td width="{100 // ACROSS}%"><a href="{path}"><img src="{path}" width="{WIDE}" '
            f'alt="{html.escape(described.title)}"></a><br>'
            f"<code>overfit plot {figure} --from {source}</code></td>"
        )
    rows = [cells[start : start + ACROSS] for start in range(0, len(cells), ACROSS)]
    return ["<table>", *("<tr>" + "\n".join(row) + "</tr>" for row in rows), "</table>", ""]


def commands() -> dict[Path, list[str]]:
    """Return the commands behind all pictures, of kept runs and in pages, by the picture."""
    found = {
        ROOT / source / "figures" / f"{figure}.png": ["plot", figure, "--from", source]
        for _, figure, source in kept_figures()
    }
    for page in sorted(ROOT.glob("docs/**/*.md")):
        for words in map(shlex.split, COMMAND.findall(page.read_text(encoding="utf-8"))):
            out = words[words.index("--out") + 1] if "--out" in words else ""
            if out.startswith("docs/"):  # what a reader draws elsewhere isn't kept
                found[ROOT / out] = words
    return found


if __name__ == "__main__":
    for words in commands().values():
        sys.argv = ["overfit", *words]
        try:
            main()
        except SystemExit as ended:
            if ended.code:
                raise
