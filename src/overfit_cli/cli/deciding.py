"""The commands that decide claims: sweeps into a run's directory, with more seeds or values."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from overfit_cli.core.console import proposed_command

if TYPE_CHECKING:
    from overfit_cli.core.study import AnyStudy
    from overfit_cli.report.decision import Decision
    from overfit_cli.report.judge import Judged
    from overfit_cli.sweeps.manifest import Manifest, Run


def commands_that_decide(path: Path, decisions: Sequence[Decision]) -> Iterator[str]:
    """Yield lines with the sweeps that decide what is inconclusive, into the same directory.

    Cells that a refined sweep leaves out are run by one of its whole grid, in a directory of its
    own.
    """
    from overfit_cli.sweeps.load import study_in
    from overfit_cli.sweeps.manifest import read_manifest
    from overfit_cli.sweeps.store import RunDirectory

    manifest, still_open = read_manifest(path), [each for each in decisions if each.is_open]
    if manifest is None or not manifest.runs or not still_open:
        return
    study = study_in(RunDirectory(path))
    sweeps = [words for words in (_words(run, manifest) for run in manifest.runs) if words]
    lacking = [each.design for each in still_open if each.design and each.lacks_cells]
    needed = max(max(each.needed or 0, each.at_least) for each in still_open)
    designs = [each.design for each in decisions if each.design]  # refining adds seeds by itself
    present = sorted(
        {seed for run in manifest.runs for seed in run.seeds}.union(
            *(each.seeds for each in designs)
        )
    )
    seeds = ["--seeds", _seeds_text(present, needed)] if study.seeded else []
    commands = list[list[str]]()
    if lacking or needed > len(present):
        again = ["--retry-failed"] if any(len(design.failed) for design in lacking) else []
        commands = [[*words, *seeds, *again] for words in sweeps]
    for values in (each.lacking for each in still_open if each.lacking):
        commands += [
            [*_without(words, values, study), *options_of(values), *seeds] for words in sweeps[-1:]
        ]
    if manifest.refined and lacking:
        yield "Refining leaves out cells far from the boundary; a sweep of the whole grid has them:"
        commands = [_dropped(words, _OF_REFINING) for words in commands]
        path = path.with_name(f"{path.name}-grid")
    yield from proposals([*words, "--out", str(path)] for words in _unique(commands))


def lines_on_seeds(judged: Sequence[Judged]) -> Iterator[str]:
    """Yield lines on claims of which more seeds are needed, and the sweeps that add these."""
    directories = dict.fromkeys(each.directory for each in judged if each.directory)
    for path in directories:
        names = dict[int, list[str]]()
        for each in judged:
            if each.directory == path and each.lacks_seeds:
                names.setdefault(each.measurement.needed_seeds, []).append(each.claim.name)
        if names:
            needs = "; ".join(f"{count} for {', '.join(names[count])}" for count in sorted(names))
            yield f"More seeds are needed in {path}: {needs}."
            yield from _commands_with_seeds(path, max(names))


def _commands_with_seeds(path: Path, count: int) -> Iterator[str]:
    from overfit_cli.sweeps.manifest import read_manifest

    manifest = read_manifest(path)
    present = sorted({seed for run in manifest.runs for seed in run.seeds}) if manifest else []
    if manifest is None or not present:
        return
    sweeps = [words for words in (_words(run, manifest) for run in manifest.runs) if words]
    seeds = ["--seeds", _seeds_text(present, count), "--out", str(path)]
    yield from proposals([*words, *seeds] for words in _unique(sweeps))


def _unique(commands: Sequence[list[str]]) -> list[list[str]]:
    return [words for index, words in enumerate(commands) if words not in commands[:index]]


def continuing_command(path: Path, manifest: Manifest | None, *switches: str) -> list[str]:
    """Return the words of a command that trains what is missing of a directory's last run.

    Without any where that isn't known.
    """
    if manifest is None or not manifest.runs:
        return []
    run = manifest.runs[-1]
    if run.command:
        words = _dropped(run.command[1:], ("--out", "--shard"), _SWITCHES)
        words = [_file_that_is_there(word, manifest) for word in words]
    else:
        words = _words(run, manifest)
        words += ["--seeds", _seeds_text(run.seeds, 0)] if words and run.seeds else []
    return [*words, *switches, "--out", str(path)] if words else []


def proposals(commands: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the lines that propose commands, and say where values are to be put in."""
    from overfit_cli.claims.designs import RANGE

    for words in commands:
        if any(word == RANGE or word.endswith(f"={RANGE}") for word in words):
            yield f"Put values in place of {RANGE}:"
        yield from proposed_command(words)


def options_of(values: Mapping[str, str]) -> list[str]:
    """Return the options of a sweep that set parameters: `--set` for a name that it has itself."""
    taken, words = _options_of_sweep(), list[str]()
    for name, text in values.items():
        words += ["--set", f"{name}={text}"] if name in taken else [f"--{name}", text]
    return words


def _options_of_sweep() -> set[str]:
    from overfit_cli.cli.sweep import sweep

    return set(inspect.signature(sweep).parameters)


def _seeds_text(present: Sequence[int], count: int) -> str:
    """So many seeds, or as many as there are, as `--seeds` takes them."""
    first, last = present[0], present[-1]
    new = range(last + 1, last + 1 + max(0, count - len(present)))
    if len(present) < last + 1 - first:
        return ",".join(map(str, [*present, *new]))
    last = new[-1] if new else last
    return str(last + 1) if first == 0 else f"{first}:{last}"


_VALUED = ("--seeds", "--out", "--shard")
_SWITCHES = ("--fresh", "--retry-failed", "--dry-run")
_OF_REFINING = ("--refine", "--threshold", "--tolerance")


def _words(run: Run, manifest: Manifest) -> list[str]:
    """The words of a sweep without those that say where, with which seeds, and what to repeat.

    The sweep of a script or a notebook is written as a command, if that finds its study.
    """
    if run.command[1:2] == ("sweep",):
        words = _dropped(run.command[1:], _VALUED, _SWITCHES)
        return [_file_that_is_there(word, manifest) for word in words]
    subject = manifest.study if manifest.function is None else manifest.function.reference
    if run.command or not _is_there(subject):
        return []
    words = ["sweep", subject]
    for name, values in run.values.items():
        words += ["--set", f"{name}={','.join(map(str, values))}"]
    for group in run.together:
        words += ["--together", ",".join(group)]
    for condition in run.only:
        words += ["--only", condition]
    return words


def _is_there(subject: str) -> bool:
    from overfit_cli.core.registry import study_names
    from overfit_cli.functions.references import is_reference

    if not is_reference(subject):
        return subject in study_names()
    return _file_of(subject).suffix != ".py" or _file_of(subject).exists()


def _file_that_is_there(word: str, manifest: Manifest) -> str:
    """A word of a command; of a file elsewhere, the run's own function or preset of its name."""
    reference = "" if manifest.function is None else manifest.function.reference
    file = _file_of(word)
    if file.suffix not in (".py", ".toml") or file.exists():
        return word
    known = [text for text in (reference, *manifest.presets) if _file_of(text).name == file.name]
    return next((text for text in known if _file_of(text).exists()), word)


def _file_of(reference: str) -> Path:
    return Path(re.sub(r"\.py:\w+$", ".py", reference))


def _dropped(
    words: Sequence[str], valued: Sequence[str], switches: Sequence[str] = ()
) -> list[str]:
    """Words of a command without some options; the valued ones take the next word with them."""
    kept, left = list[str](), list(words)
    while left:
        word = left.pop(0)
        option, equals, _ = word.partition("=")
        if option in valued:
            left = left if equals else left[1:]
        elif word not in switches:
            kept.append(word)
    return kept


def _without(words: Sequence[str], values: Mapping[str, str], study: AnyStudy) -> list[str]:
    from overfit_cli.core.parameters import parameter_named

    taken = _options_of_sweep()

    def is_given(written: str) -> bool:
        return parameter_named(study.parameters, written.strip().replace("-", "_")) in values

    options = [word.partition("=")[0] for word in words if word.startswith("--")]
    gone = [option for option in options if option[2:] not in taken and is_given(option[2:])]
    kept, left = list[str](), _dropped(words, gone)
    while left:
        word = left.pop(0)
        option, equals, text = word.partition("=")
        about_parameters = option in ("--set", "--together", "--only")
        whole = [word, left.pop(0)] if about_parameters and not equals else [word]
        text = whole[-1] if len(whole) > 1 else text
        named = [text.partition("=")[0]] if option == "--set" else re.findall(r"\w+", text)
        if not (about_parameters and any(map(is_given, named))):
            kept += whole
    return kept
