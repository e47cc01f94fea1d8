"""The pictures of the documents: a list of all figures, and the commands that draw them.

`make pictures` draws them anew; a test draws each, and holds the kept picture to it.
"""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

from overfit_cli.cli.app import main
from overfit_cli.core.registry import figures_of, find_study, study_names
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


def gallery() -> str:
    """Return the gallery: every figure of every study once, from the run with the shortest name."""
    lines = []
    # The run with the shortest name is the plain one: it comes last, and stays.
    by_length = sorted(kept_figures(), key=lambda one: (-len(one[2]), one[2]))
    for study in study_names():
        own = {figure: source for name, figure, source in by_length if name == study}
        if own:
            lines += [f"## {study}", ""]
        for figure, source in sorted(own.items()):
            described = figures_of(find_study(study))[figure]
            after = f" ({described.source})" if described.source else ""
            lines += [
                f"**{figure}**: {described.title}{after}.",
                "",
                "```",
                f"$ overfit plot {figure} --from {source}",
                "```",
                "",
                f"![{described.title}](../{source}/figures/{figure}.png)",
                "",
            ]
    return "\n".join(lines)


def commands() -> dict[Path, list[str]]:
    """Return the commands behind all pictures, of kept runs and in pages, by the picture."""
    found = {
        ROOT / source / "figures" / f"{figure}.png": ["plot", figure, "--from", source]
        for _, figure, source in kept_figures()
    }
    for page in sorted(ROOT.glob("docs/**/*.md")):
        for words in map(shlex.split, COMMAND.findall(page.read_text())):
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
