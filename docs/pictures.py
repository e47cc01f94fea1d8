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
from overfit_cli.core.registry import figures_of, find_study, study_names
from overfit_cli.core.study import AnyStudy
from overfit_cli.core.text import natural_key
from overfit_cli.sweeps.presets import PROFILES, Preset, all_presets
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

_PLACES = {"fig": "Figure", "theorem": "Theorem", "table": "Table"}


def figures_of_paper(key: str) -> str:
    """Return the kept figures on a paper: its own in their order, then what else studies draw.

    Of several runs that show the same figure of a study beside those, the one with the shortest
    name stands for all.
    """
    kept = kept_figures()
    studies = [study for study in map(find_study, study_names()) if _key(study) == key]
    shown = set[tuple[str, str]]()
    lines = []
    by_pictures = dict[tuple[tuple[str, str, str], ...], list[str]]()
    for place, presets in _places_of(studies).items():
        if pictures := _pictures_of(presets, kept):
            by_pictures.setdefault(pictures, []).append(place)
    for pictures, alike in by_pictures.items():
        lines += [f"### {' and '.join(map(_in_words, alike))}", "", *_grid(pictures)]
        shown |= {(study, figure) for study, figure, _ in pictures}
    by_length = sorted(kept, key=lambda entry: (len(entry[2]), entry[2]))
    for study in studies:
        others = dict[str, tuple[str, str, str]]()
        for entry in (entry for entry in by_length if entry[0] == study.name):
            if entry[:2] not in shown:
                others.setdefault(entry[1], entry)
        if others:
            lines += [f"### {study.name}", "", *_grid([others[name] for name in sorted(others)])]
    return "\n".join(lines)


def _key(study: AnyStudy) -> str | None:
    """The key of a study's paper."""
    return study.paper.key if study.paper else None


def _places_of(studies: Sequence[AnyStudy]) -> dict[str, list[Preset]]:
    """The presets of studies that reproduce each figure, table or theorem, by place, in order."""
    names = {study.name for study in studies}
    places = dict[str, list[Preset]]()
    for preset in all_presets():
        if preset.study in names and preset.reproduces:
            places.setdefault(preset.reproduces, []).append(preset)
    return dict(sorted(places.items(), key=lambda entry: natural_key(entry[0])))


def _pictures_of(
    presets: Sequence[Preset], kept: Sequence[tuple[str, str, str]]
) -> tuple[tuple[str, str, str], ...]:
    """The kept pictures of presets' runs, in the order in which the presets name them."""
    runs = {preset.run_name(profile) for preset in presets for profile in PROFILES}
    named = list(dict.fromkeys(name for preset in presets for name in preset.figures))
    pictures = [entry for entry in kept if Path(entry[2]).name in runs and entry[1] in named]
    return tuple(sorted(pictures, key=lambda entry: (entry[2], named.index(entry[1]))))


def _in_words(place: str) -> str:
    """A place of a paper in words: `Figure 1`."""
    name, number = re.fullmatch(r"([a-z]+)([\d.]+)", place).groups()  # type: ignore[union-attr]
    return f"{_PLACES[name]} {number}"


def _grid(pictures: Sequence[tuple[str, str, str]]) -> list[str]:
    """The lines of a table of pictures, each with its command."""
    cells = []
    for study, figure, source in pictures:
        described = figures_of(find_study(study))[figure]
        path = f"../{source}/figures/{figure}.png"
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
