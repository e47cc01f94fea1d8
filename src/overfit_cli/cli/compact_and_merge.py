"""The commands `compact` and `merge`: part files joined into a few, run directories into one."""

from __future__ import annotations

from pathlib import Path

from overfit_cli.cli import completion
from overfit_cli.cli.options import argument, option
from overfit_cli.core.text import console, plural, print_next


def compact(
    directory: Path = argument(
        "DIR", "Run directory; a sweep may still write to it.", completion.run_directories
    ),
) -> int:
    """Join the many part files of a run directory into a few."""
    from overfit_cli.sweeps.part import CELLS, STEPS
    from overfit_cli.sweeps.store import RunDirectory

    opened, output = RunDirectory(directory, "directory"), console()
    before = {kind: opened.names(kind) for kind in (CELLS, STEPS)}
    if not before[CELLS]:
        raise opened.error(opened.why_empty())
    opened.compact()
    for kind, names in before.items():
        now = opened.names(kind)
        done = "nothing to join" if now == names else f"joined into {len(now)}"
        if now:
            output.print(f"{directory / kind}: {plural(len(names), 'part')}, {done}.")
        for sentence in opened.notes(kind):
            output.print(sentence)
    return 0


def merge(
    directories: list[Path] = argument(
        "DIR...", "Run directories of one study; they stay as they are.", completion.run_directories
    ),
    out: Path = option("DIR", "Output directory; cells already in it are merged too.", default=...),
) -> int:
    """Join run directories of one study, such as those of a sweep's shards.

    The command refuses directories of different studies, versions, code or data, damaged files, and
    two directories with different numbers for one cell.
    """
    from overfit_cli.sweeps.load import study_in
    from overfit_cli.sweeps.store import RunDirectory, merge_directories

    sources = [RunDirectory(directory, "directories") for directory in directories]
    merged = RunDirectory(out, "out")
    output = console()
    for note in merge_directories(sources, merged):
        output.print(note)
    cells = plural(len(merged.contents()), "cell")
    output.print(f"{plural(len(sources), 'directory')} merged into {out}: {cells}.")
    if study_in(merged).claims():
        print_next(output, ["report", str(out)])
    return 0
