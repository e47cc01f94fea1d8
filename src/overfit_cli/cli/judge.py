"""The command `overfit judge`: claims of one's own, as sentences, on a run."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from overfit_cli.cli import completion
from overfit_cli.cli.options import Where
from overfit_cli.core.console import console, proposed_command
from overfit_cli.core.errors import BadValue, UserError
from overfit_cli.core.text import visible

if TYPE_CHECKING:
    from overfit_cli.core.study import AnyStudy
    from overfit_cli.report.decision import Decision
    from overfit_cli.sweeps.manifest import Manifest, Run


def judge(
    run: Annotated[
        str,
        typer.Argument(
            metavar="RUN",
            help="Run directory, or FILE.py: its newest run in results/.",
            autocompletion=completion.run_directories,
        ),
    ],
    claims: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="CLAIM",
            help="Claims in quotes, such as 'test_error < 0.05 where snr > 2', or names of the "
            "run's own.  [default: the run's own]",
        ),
    ] = None,
    where: Where = None,
    plan: Annotated[
        bool,
        typer.Option(
            "--plan",
            help="Say how many seeds decide each claim, and how often it would then be wrong; "
            "without a run, what to run first.",
        ),
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with code 1 unless every claim holds.")
    ] = False,
) -> int:
    """Judge claims of your own: a verdict, an interval, and how often it would be wrong.

    Forms of claims: 'test_error < 0.05 where snr > 2'; 'test_error is 0.5 within 0.02';
    'test_error falls along snr'; 'test_error[method=ridge] < test_error[method=none]';
    'power of n in steps is 1 within 0.1'; 'power of n in snr at test_error = 0.1 is -0.5 within
    0.1'; 'share of seeds with test_error < 0.1 > 0.8'.

    Where a claim is open, the command that would decide it is printed.
    """
    from overfit_cli.cli.list import verdict_table
    from overfit_cli.report.contents import family_sentences
    from overfit_cli.report.decision import decide_sentences

    output, path = console(), run_directory(run)
    if path is None:
        if not plan:
            raise _without_run(run)
        for line in _pilot(run, claims or ()):
            output.print(visible(line))
        return int(strict)
    decisions = decide_sentences(path, claims or (), where or (), plan=plan)
    if not decisions:
        raise UserError(f"{run}: it has no claims; state one: 'test_error < 0.05'.")
    judged = [decision.judged for decision in decisions]
    output.print(verdict_table(judged))
    for sentence in (
        *(_in_words(each, plan=plan) for each in decisions),
        *family_sentences(judged),
    ):
        output.print(visible(sentence))
    for line in _next_lines(path, decisions, plan=plan):
        output.print(line)
    every = all(decision.judged.headline == "holds" for decision in decisions)
    return int(strict and not every)


def _in_words(decision: Decision, *, plan: bool) -> str:
    """What there is to say of a claim: its design, its rates, what would decide it."""
    from overfit_cli.report.contents import claim_sentences

    (sentence,) = claim_sentences([decision.judged])
    return " ".join([sentence, *decision.sentences(plan=plan)])


# The commands that decide


def _next_lines(path: Path, decisions: Sequence[Decision], *, plan: bool) -> Iterator[str]:
    """Propose the sweeps that decide what is open, into the same directory."""
    from overfit_cli.claims.designs import RANGE
    from overfit_cli.sweeps.load import study_in
    from overfit_cli.sweeps.manifest import read_manifest
    from overfit_cli.sweeps.store import RunDirectory

    manifest = read_manifest(path)
    if manifest is None:
        return
    wanted = [decision for decision in decisions if decision.is_open or plan]
    needed = max((max(each.needed or 0, each.at_least) for each in wanted), default=0)
    lacking = [each for each in wanted if each.lacks_cells]
    failed = any(each.design is not None and len(each.design.failed) for each in lacking)
    present = sorted({seed for run in manifest.runs for seed in run.seeds})
    lacks = needed > len(present) or lacking
    further = ["--seeds", _seeds_text(present, needed)] if lacks else []
    further += ["--retry-failed"] if failed else []
    commands = _commands(path, manifest, further) if further else []
    study = study_in(RunDirectory(path))
    for values in (decision.lacking for decision in wanted if decision.lacking):
        options = [*_as_options(values), "--seeds", _seeds_text(present, 0)]
        commands += _commands(path, manifest, options, study, values)[-1:]
    for command in [words for index, words in enumerate(commands) if words not in commands[:index]]:
        for line in proposed_command(command):
            template = any(RANGE in word for word in command)
            yield f"{line}, with values in place of {RANGE}" if template else line


def _as_options(values: Mapping[str, str]) -> list[str]:
    """The options of a sweep that set parameters; `--set` where its own options have their name."""
    from overfit_cli.cli.sweep import sweep

    taken, words = inspect.signature(sweep).parameters, list[str]()
    for name, text in values.items():
        words += ["--set", f"{name}={text}"] if name in taken else [f"--{name}", text]
    return words


def _seeds_text(present: Sequence[int], count: int) -> str:
    """So many seeds, or as many as there are, as `--seeds` takes them."""
    first, last = present[0], present[-1]
    new = range(last + 1, last + 1 + max(0, count - len(present)))
    if len(present) < last + 1 - first:
        return ",".join(map(str, [*present, *new]))
    last = new[-1] if new else last
    return str(last + 1) if first == 0 else f"{first}:{last}"


def _commands(
    path: Path,
    manifest: Manifest,
    further: Sequence[str],
    study: AnyStudy | None = None,
    without: Mapping[str, str] | None = None,
) -> list[list[str]]:
    """The sweeps into a directory, each once, with further options.

    Args:
        path: the directory.
        manifest: its manifest.
        further: options, in place of those that the sweeps had.
        study: the study of its cells; needed with `without`.
        without: parameters whose options are left out.
    """
    commands = list[list[str]]()
    for run in manifest.runs:
        words = _words(run, manifest)
        if study is not None:
            words = _without(words, without or {}, study)
        command = [*words, *further, "--out", str(path)] if words else []
        if command and command not in commands:
            commands.append(command)
    return commands


_VALUED = ("--seeds", "--out", "--shard")
_SWITCHES = ("--fresh", "--retry-failed", "--dry-run")


def _words(run: Run, manifest: Manifest) -> list[str]:
    """The words of a sweep without those that say where, with which seeds, and what to repeat.

    The sweep of a script or a notebook is written as a command, if its function has a file.
    """
    from overfit_cli.functions.references import is_reference, split_reference

    reference = "" if manifest.function is None else manifest.function.reference
    if run.command[1:2] == ("sweep",):
        words = _dropped(run.command[1:], _VALUED, _SWITCHES)
        missing = [
            index
            for index, word in enumerate(words)
            if is_reference(word) and word.endswith(".py") and not Path(word).exists()
        ]
        if missing and reference and Path(split_reference(reference)[0]).exists():
            words[missing[0]] = reference
        return words
    if run.command or (manifest.function is not None and not reference):
        return []
    words = ["sweep", reference or manifest.study]
    for name, values in run.values.items():
        words += ["--set", f"{name}={','.join(map(str, values))}"]
    for group in run.together:
        words += ["--together", ",".join(group)]
    for condition in run.only:
        words += ["--only", condition]
    return words


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


def _without(words: Sequence[str], parameters: Mapping[str, str], study: AnyStudy) -> list[str]:
    """Words of a sweep without the options of some parameters, however they are spelled."""
    from overfit_cli.core.parameters import parameter_named

    def is_gone(written: str) -> bool:
        return parameter_named(study.parameters, written.replace("-", "_")) in parameters

    gone = [word for word in words if word.startswith("--") and is_gone(word[2:].partition("=")[0])]
    kept = _dropped(words, [word.partition("=")[0] for word in gone])
    settings = [index for index, word in enumerate(kept) if word == "--set"]
    for index in reversed(settings):
        if is_gone(kept[index + 1].partition("=")[0]):
            del kept[index : index + 2]
    return kept


# The run


def run_directory(named: str) -> Path | None:
    """Return the run directory that is named: itself, or the newest one of a function's file.

    None where the file has no run.
    """
    from overfit_cli.core.files import RESULTS
    from overfit_cli.core.values import usable_path
    from overfit_cli.functions.function_study import study_of_reference
    from overfit_cli.functions.references import is_reference
    from overfit_cli.sweeps.load import usable_directories

    path = usable_path("run", named)
    if path.is_dir() or not is_reference(named):
        return path
    study = study_of_reference(named)
    for directory in usable_directories(RESULTS):
        if directory.study_name() == study.name:
            return directory.path
    return None


def _without_run(named: str) -> BadValue:
    from overfit_cli.core.files import RESULTS

    return BadValue(
        "run", named, f"there is no run of it in {RESULTS}/; `overfit sweep {named}` makes one."
    )


def _pilot(named: str, texts: Sequence[str]) -> Iterator[str]:
    """Say what each claim of a function needs, and the pilot to run first.

    Raises:
        UserError: if it has no claims, or a text is none.
    """
    import pandas as pd

    from overfit_cli.claims.designs import RANGE, needs_in_words, parameters_named
    from overfit_cli.claims.measured import Table
    from overfit_cli.claims.rates import FEWEST_PILOT
    from overfit_cli.claims.sentences import Measure, claim
    from overfit_cli.core.parameters import describe
    from overfit_cli.core.registry import claims_of
    from overfit_cli.functions.function_study import study_of_reference

    study = study_of_reference(named)
    known = {each.name: each for each in claims_of(study)}
    stated = [known.get(text) or claim(text, study) for text in texts] or [*known.values()]
    if not stated:
        raise UserError(f"{named}: it has no claims; state one: 'test_error < 0.05'.")
    table = Table(pd.DataFrame(columns=["seed", *describe(study.parameters)]), study.parameters)
    measures = [each.measure for each in stated]
    sentences = [measure.sentence for measure in measures if isinstance(measure, Measure)]
    for sentence in sentences:
        yield f"{sentence.name}: {needs_in_words(sentence, table)}"
    yield f"First a pilot of {FEWEST_PILOT} seeds, with values in place of {RANGE}:"
    options = _as_options(parameters_named(sentences, table))
    yield from proposed_command(["sweep", named, *options, "--seeds", str(FEWEST_PILOT)])
    yield f"Then: overfit judge {named} --plan"
