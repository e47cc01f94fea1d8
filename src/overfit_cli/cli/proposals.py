"""Commands that overfit proposes: a training again, a sweep goes on, sweeps that decide claims."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from overfit_cli.core.text import command_words, proposed_command

if TYPE_CHECKING:
    from overfit_cli.core.study import AnyStudy
    from overfit_cli.report.judge import Judged
    from overfit_cli.report.runs import JudgedRun
    from overfit_cli.sweeps.manifest import Run


def train_words(study: AnyStudy, values: Mapping[Any, Any], seed: int) -> list[str]:
    """Return the words of a command that trains one cell; none where its function has no file."""
    from overfit_cli.core.parameters import describe

    chosen = [
        f"{name}={values[name]}"
        for name, info in describe(study.parameters).items()
        if values.get(name, info.default) != info.default
    ]
    subject = _subject(study)
    how: Any = {"set": chosen, "seed": seed or None, "read": _reads(study)}
    return command_words("train", subject, **how) if subject else []


def plot_words(
    study: AnyStudy,
    path: Path,
    wanted: Iterable[str],
    axes: Collection[str],
    count: int,
    *,
    logged: bool,
) -> list[str]:
    """Return the words of a command that draws a run: a wanted figure, or one of so many axes.

    Args:
        axes: the parameters that vary; `count` of them by themselves.
        logged: whether its steps are there.
    """
    from overfit_cli.core.registry import figures_of

    figures, names = figures_of(study), list[str]()
    for name, figure in ((name, figures[name]) for name in wanted if name in figures):
        has_axes = {figure.options.x, figure.options.y} <= {None, *axes}
        names += [name] if (logged if figure.reads == "trajectories" else has_axes) else []
    names += [name for name, figure in figures.items() if figure.axes == count > 0]
    return command_words("plot", names[0], from_=path) if names else []


def _subject(study: AnyStudy) -> str:
    """The name of a study, or the place of a function; empty where its file is gone."""
    function = study.identity.function
    if function is None:
        return study.name
    if function.command:
        return str(function.command).replace(f"{Path.cwd()}{os.sep}", "")
    file = Path(re.sub(r"\.py:\w+$", ".py", function.reference))
    is_gone = file.suffix == ".py" and not file.exists()
    return "" if is_gone else function.reference.removeprefix(f"{Path.cwd()}{os.sep}")


def _reads(study: AnyStudy) -> str | None:
    """The file with the numbers of a command line; None where they are printed."""
    return getattr(study.identity.function, "reads", None) or None


def sweep_words(
    run: Run,
    study: AnyStudy,
    seeds: Sequence[int] = (),
    others: Mapping[str, str] | None = None,
    *,
    refined: bool = True,
    **how: Any,
) -> list[str]:
    """Return the words of a run's sweep, with its own seeds or with others; none without a file.

    Args:
        others: other values of some parameters. Nothing ties or leaves out one that has such.
        how: further options.
    """
    from overfit_cli.sweeps.grid import seeds_text

    def kept(rules: Iterable[str]) -> list[str]:
        return [text for text in rules if not {*re.findall(r"\w+", text)} & {*(others or {})}]

    grid, subject = run.grid(study), _subject(study)
    names = ["refine", "threshold", "trajectories"] if refined else ["trajectories"]
    options = {
        "set": [f"{name}={text}" for name, text in {**grid.texts(), **(others or {})}.items()],
        "together": kept(",".join(tied) for tied in grid.together),
        "only": kept(grid.only),
        "seeds": seeds_text(tuple(seeds) or grid.seeds) if study.seeded else None,
        "read": _reads(study),
        **{name: run.settings.get(name) for name in names},
    }
    return command_words("sweep", subject, **options, **how) if subject else []


# What decides claims


def commands_that_decide(run: JudgedRun, judged: Sequence[Judged]) -> Iterator[str]:
    """Yield lines with the sweeps that decide what is inconclusive, into the same directory.

    Cells that a refined sweep leaves out are run by one of its whole grid, in a directory of its
    own.
    """
    manifest, still_open = run.manifest, [each for each in judged if each.is_open]
    if not manifest.runs or not still_open:
        return
    path, designs = run.directory.path, [each.design for each in judged]
    lacking = [each.design for each in still_open if each.design and each.lacks_cells]
    present = _seeds_of(run).union(*(design.seeds for design in designs if design))
    needed = max(each.needed for each in still_open)
    seeds, whole = _more_seeds(present, needed), manifest.refined and bool(lacking)
    commands = list[list[str]]()
    if lacking or needed > len(present):
        again = any(len(design.failed) for design in lacking)
        commands += _sweeps(run, seeds, refined=not whole, retry_failed=again)
    others = [each.lacking for each in still_open if each.lacking]
    last = manifest.runs[-1]
    commands += [sweep_words(last, run.study, seeds, each, refined=False) for each in others]
    if whole:
        yield "Refining leaves out cells far from the boundary; a sweep of the whole grid has them:"
        path = path.with_name(f"{path.name}-grid")
    yield from _proposals(commands, path)


def lines_on_seeds(judged: Sequence[Judged]) -> Iterator[str]:
    """Yield lines on claims of which more seeds are needed, and the sweeps that add these."""
    lacking = [each for each in judged if each.lacks_seeds]
    for path in dict.fromkeys(each.directory for each in lacking):
        here = [each for each in lacking if each.directory == path]
        needed = max(each.measurement.needed_seeds for each in here)
        names = ", ".join(each.claim.name for each in here)
        yield f"More seeds are needed in {path}: {needed} for {names}."
        run = here[0].run
        if path and run is not None and (present := _seeds_of(run)):
            yield from _proposals(_sweeps(run, _more_seeds(present, needed)), path)


def _proposals(commands: Iterable[list[str]], path: Path) -> Iterator[str]:
    """Yield the lines that propose commands, each once; and say where values are to be put in."""
    from overfit_cli.claims.stated import RANGE

    for words in {tuple(words): words for words in commands if words}.values():
        if any(word.endswith(f"={RANGE}") for word in words):
            yield f"Put values in place of {RANGE}:"
        yield from proposed_command([*words, "--out", str(path)])


def _sweeps(of: JudgedRun, seeds: Sequence[int], **how: Any) -> list[list[str]]:
    """The sweeps of a directory with other seeds; its single trainings are left out."""
    runs = [run for run in of.manifest.runs if run.command[1:2] != ("train",)]
    return [sweep_words(run, of.study, seeds, **how) for run in runs]


def _seeds_of(of: JudgedRun) -> set[int]:
    return {seed for run in of.manifest.runs for seed in run.seeds}  # refining adds seeds itself


def _more_seeds(present: set[int], count: int) -> tuple[int, ...]:
    """So many seeds, or those that there are: new ones follow the last."""
    following = max(present) + 1
    return (*sorted(present), *range(following, following + count - len(present)))
