"""A command line as a study: its placeholders are its parameters, its numbers the columns.

Each cell runs the program in a folder of its own, without a shell. A command line runs only where a
user typed it, or named it in a preset or in Python: nothing is run because a record has it.
"""

from __future__ import annotations

import ast
import contextlib
import csv
import hashlib
import itertools
import json
import math
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import IO, Any, cast

from overfit_cli.core import errors, text
from overfit_cli.core.cell import ROW_COLUMNS, Identity, SourceFile
from overfit_cli.core.errors import Told, UserError
from overfit_cli.core.parameters import TRAINING_STEPS
from overfit_cli.core.training import Training
from overfit_cli.functions import experiment, references, source

_PLACEHOLDER = re.compile(r"\{(--)?([A-Za-z][\w-]*)(?::(int|float|bool|text))?\}")
"""`{lr}`, `{lr:float}`, and `{--nesterov}`, an option without a value."""

_CODE = (".py", ".sh", ".R", ".jl", ".m", ".js", ".lua", ".pl", ".rb")

Row = dict[str, Any]


def is_command(typed: str) -> bool:
    """Whether a text is a command line: it has a placeholder, or several words and is no file."""
    is_file = os.path.isfile(re.sub(r":\w+$", "", typed))  # noqa: PTH113 - a name may be too long
    return bool(_PLACEHOLDER.search(typed)) or (len(typed.split()) > 1 and not is_file)


# A cell


@dataclass(frozen=True)
class Program:
    """A command line, ready to run.

    Attributes:
        words: with placeholders, and the user's files by whole paths.
        reads: the file that has the numbers, in a cell's folder; empty for standard output.
        files: those of its code: a sweep ends where one changes.
        folder: where it was typed, and imports of a module (`python -m`) find it.
    """

    words: tuple[str, ...]
    reads: str
    files: tuple[SourceFile, ...]
    folder: str

    def __call__(self, training: Training, /, **values: Any) -> Row | Iterator[Row]:
        """Run it with values of its parameters; return its numbers, or the rows of its file."""
        for file in self.files:
            path = cast("Path", file.path)
            if not path.is_file() or path.read_bytes() != file.content:
                changed = f"{path} has changed since the sweep began, or isn't here."
                raise errors.MissingError(changed)
        words, environment = [_filled(word, values) for word in self.words], dict(os.environ)
        if "-m" in words:
            paths = filter(None, [self.folder, environment.get("PYTHONPATH")])
            environment["PYTHONPATH"] = os.pathsep.join(paths)
        with tempfile.TemporaryDirectory("", "overfit-", ignore_cleanup_errors=True) as name:
            printed = _printed([*filter(None, words)], name, environment, training)
            found = _filled(self.reads, values)
            given = _rows_in(Path(name), found) if found else [_last_dict(printed)]
        rows = _without_settings([_numbers(row, values) for row in given], values)
        return (row for row in rows) if self.reads else rows[0]


def _filled(word: str, values: Mapping[str, Any]) -> str:
    """A word with values; empty for an option without a value that isn't given."""

    def filled(found: re.Match[str]) -> str:
        value = values[_name(found)]
        if found[1]:
            return f"--{found[2]}" if value else ""
        return str(value).removesuffix(".0") if isinstance(value, float) else str(value)

    return _PLACEHOLDER.sub(filled, word)


def _name(found: re.Match[str]) -> str:
    return found[2].replace("-", "_")


def _printed(
    words: Sequence[str], folder: str, environment: Mapping[str, str], training: Training
) -> str:
    """What a program prints; all that it has started ends with it, or when its time is over."""
    how: Any = {"cwd": folder, "env": environment, "stdin": subprocess.DEVNULL}
    with tempfile.TemporaryFile() as printed, tempfile.TemporaryFile() as failed:
        # Files, not pipes: a daemon that it leaves behind would hold those open.
        how |= {"stdout": printed, "stderr": failed, "start_new_session": True}
        with subprocess.Popen(words, **how) as process:
            try:
                while process.returncode is None:
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        process.wait(timeout=0.2)
                    training.check_time()  # in a thread no signal comes
            finally:
                process.kill()
                if hasattr(os, "killpg"):
                    with contextlib.suppress(OSError):
                        os.killpg(process.pid, signal.SIGKILL)
        written, problem = (_text_in(file) for file in (printed, failed))
    if process.returncode:
        last = _last_lines(problem)
        reason = last.rpartition("\n")[2][: errors.LONGEST_REASON]
        raise Told(f"{reason} (exit code {process.returncode})".strip(), last)
    return written


def _text_in(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8", "replace")


def _last_lines(written: str) -> str:
    """The last lines that a program wrote; files have no folder, as in other tracebacks."""
    lines = re.sub(r'(?m)(?<=^  File ").*[/\\](?=[^/\\]+", line )', "", written).splitlines()
    return "\n".join([text.visible(line) for line in lines if line.strip()][-20:])


# What it gives


def _last_dict(printed: str) -> Row:
    """The last line that is a printed dict or a JSON object, which may go on over several lines."""
    lines = printed.splitlines()
    for first in reversed(range(len(lines))):
        if lines[first].startswith("{"):
            with contextlib.suppress(ValueError):
                return cast("Row", json.JSONDecoder().raw_decode("\n".join(lines[first:]))[0])
            line = lines[first].strip()
            for tried in (line, re.sub(r"<[^<>]*>", "None", line)):  # such as grad_fn=<...>
                with contextlib.suppress(ValueError, SyntaxError):
                    return dict(_printed_value(ast.parse(tried, mode="eval").body))
    what = "it printed no line with a dict or a JSON object; `read` names a file with numbers"
    raise Told(what, _last_lines(printed))


def _printed_value(node: ast.expr) -> Any:
    """What is printed: of an object its one number, `np.float64(0.5)` or `tensor(0.5)`."""
    match node:
        case ast.Constant(value):
            return value
        case ast.UnaryOp(ast.USub(), inner):
            value = _printed_value(inner)
            return -value if isinstance(value, int | float) else None
        case ast.Name(name) | ast.Attribute(_, name):
            return {"nan": math.nan, "inf": math.inf, "True_": True, "False_": False}.get(name)
        case ast.Dict(keys, values):
            names = [_printed_value(key) for key in keys if key is not None]
            return dict(zip(names, map(_printed_value, values), strict=True))
        case ast.Call(_, [only]) | ast.List([only]):
            value = _printed_value(only)
            return value if isinstance(value, int | float) else None
    return None


def _rows_in(folder: Path, pattern: str) -> list[Row]:
    """The rows of the one file of a pattern in a cell's folder."""
    paths = [path for path in folder.glob(pattern) if path.is_file()]
    if len(paths) != 1:
        there = ", ".join(str(path.relative_to(folder)) for path in sorted(folder.rglob("*")))
        raise Told(f"it wrote {len(paths)} files {pattern}", f"It wrote: {there}")
    content = paths[0].read_bytes().decode("utf-8-sig", "replace")
    try:
        is_table = paths[0].suffix == ".csv"
        rows = [*csv.DictReader(content.splitlines())] if is_table else json.loads(content)
    except (ValueError, csv.Error) as error:
        raise Told(f"{pattern} can't be read: {error}") from error
    rows = rows if isinstance(rows, list) else [rows]
    are_rows = all(isinstance(row, dict) and not all(map(text.is_number, row)) for row in rows)
    if not rows or not are_rows:
        raise Told(f"{pattern} has no rows, or no names of columns")
    return rows


def _numbers(row: Mapping[Any, Any], settings: Mapping[str, Any], before: str = "") -> Row:
    """The numbers of a row by name; those inside of `test` are called `test_loss`.

    Such a part may have the cell's settings, as `vars(args)` does: they are left out.
    """
    found = Row()
    for key, value in row.items():
        if isinstance(value, Mapping):
            found |= _numbers(value, settings, f"{before}{key}_")
        elif before and settings.get(key) == value:
            continue
        elif value in (None, "") or text.is_number(value):
            is_whole = re.fullmatch(r"\s*[+-]?\d{1,18}\s*", str(value))
            number = None if value in (None, "") else int(value) if is_whole else float(value)
            found[f"{before}{key}".strip()] = number
    return found


def _without_settings(rows: list[Row], values: Mapping[str, Any]) -> list[Row]:
    """Rows without what repeats the cell's settings, and with other names for names that are taken.

    The first column is the step, where it rises in whole numbers.
    """
    names = dict.fromkeys(name for row in rows for name in row)
    same = {key for key in values if all(row.get(key) == values[key] for row in rows)}
    taken = {*ROW_COLUMNS, *values, "step"}
    renamed = {key: f"my_{key}" if key in taken else key for key in names if key not in same}
    first = next(iter(renamed), "")
    steps = [-1.0, *(row.get(first) or 0.0 for row in rows)]
    if len(rows) > 1 and all(a < b == b // 1 for a, b in itertools.pairwise(steps)):
        renamed[first] = "step"
    return [{renamed[key]: row[key] for key in row if key in renamed} for row in rows]


# From a command line to a study


def read_command(
    command: str, reads: str, given: Mapping[str, Any], folder: Path
) -> tuple[experiment.FunctionRecord, references.Function, Identity]:
    """Return the record of a command line, the function that runs it, and its code.

    Args:
        reads: the file with the numbers; empty for standard output.
        given: values by name, as a user gives them, which tell the types of the parameters.
        folder: the one from which the command line is seen.
    """
    if reads and (not reads.endswith((".json", ".csv")) or {"/", ".."} & {*PurePath(reads).parts}):
        takes = "it takes a .json or .csv file in the folder of a cell, such as log.csv."
        raise errors.BadValue("read", reads, takes)
    folder = Path(os.path.abspath(folder))  # noqa: PTH100 - links stay
    try:
        typed = shlex.split(command)
        first = str(folder / typed[0]) if "/" in typed[0] else typed[0]
    except ValueError as error:
        raise UserError(f"{command}: it is no command line: {error}.") from None
    if shutil.which(first) is None:
        raise UserError(f"{typed[0]}: there is no such program to run.")
    words = [first, *(_whole(word, folder) for word in typed[1:])]
    for word in words[1:2]:
        if word.endswith(_CODE) and not Path(word).is_file() and "{" not in word:
            raise UserError(f"{word}: there is no such file.")
    main, places, data = _files(words, folder)
    code, base = source.code_of_program(places), places[0][0].parent if places else Path("/")
    shown = [_PLACEHOLDER.sub(r"{\1\2}", word) for word in typed]
    name = " ".join(shown) + (f", read {reads}" if reads else "")
    if len(name) > experiment.LONGEST_NAME:
        name = f"{name[:180]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
    seen = {_name(each): each for word in (*typed, reads) for each in _PLACEHOLDER.finditer(word)}
    try:
        parameters = [
            experiment.ParameterRecord(
                name=TRAINING_STEPS if each == "steps" else each,
                argument="steps" if each == "steps" else "",
                kind=cast("Any", mark[3]) or ("bool" if mark[1] else _kind(given.get(each), seen)),
                default=False if mark[1] else None,
            )
            for each, mark in seen.items()
            if each != experiment.SEED
        ]
        record = experiment.FunctionRecord(
            name=name,
            label=_label(shown, main),
            title=name,
            command=re.sub(r"'([\w@%+=:,./{}-]+)'", r"\1", shlex.join(words)),
            reads=reads,
            seeded=experiment.SEED in seen,
            parameters=tuple(parameters),
            data=tuple(os.path.relpath(path, base) for path in data),
        )
    except ValueError as error:
        raise UserError(f"{command}: {experiment.why_refused(error)}.") from error
    return record, Program(tuple(words), reads, code.files, str(folder)), code


def _whole(word: str, folder: Path) -> str:
    """A word, or `--option=word`, by its whole path where it is written as one of a file's."""
    option, sign, name = word.rpartition("=")
    path = Path(os.path.abspath(folder / name))  # noqa: PTH100 - links stay
    is_path = ("/" in name and path.exists()) or ("." in name and path.is_file())
    return f"{option}{sign}{path}" if is_path else word


def _files(
    words: Sequence[str], folder: Path
) -> tuple[int, Sequence[tuple[Path, str]], Sequence[Path]]:
    """Return which word names the program, its code with the packages, and its other files.

    The code is that of all scripts among the words, else of the module, else the program itself.
    """
    references.import_from(folder)
    named = {place: Path(word.rpartition("=")[2]) for place, word in enumerate(words) if place}
    files = {place: path for place, path in named.items() if path.is_absolute() and path.is_file()}
    scripts = {place: path for place, path in files.items() if path.suffix in _CODE}
    data = [path for place, path in files.items() if place not in scripts]
    if scripts:
        return min(scripts), [(path, "") for path in scripts.values()], data
    if "-m" in words[:-1]:
        main = words.index("-m") + 1
        places = source.files_of_import(f"{words[main]}.__main__", [str(folder), *sys.path])
        return main, [each for each in [*places][-1:] if not errors.is_installed(each[0])], data
    is_own = "/" in words[0] and not PurePath(words[0]).name.startswith("python")
    return 0, [(Path(words[0]), "")] if is_own else [], data


def _label(words: Sequence[str], main: int) -> str:
    """The program's name with the words that stay the same: `train-epochs-60`."""
    name = PurePath(words[main]).name
    stem = PurePath(name).stem if name.endswith(_CODE) else name
    fixed = re.sub(r"(?<!\S)(-\S+ )?\S*\{\S*", "", " ".join(words[main + 1 :]))
    return re.sub(r"[^\w.=+]+", "-", f"{stem} {fixed}").strip("-")[: experiment.LONGEST_NAME]


def _kind(given: Any, names: Iterable[str]) -> experiment.Kind:
    """The type of all values that are given, as texts or from Python; an expression's is float."""
    items: Iterable[Any] = [given]
    if isinstance(given, str):
        items = re.split(r"[,:]", re.sub(r":\s*(log|linear)\s*$", "", given))
    elif isinstance(given, Iterable) and getattr(given, "ndim", True):
        items = [*given]
    kinds = set[experiment.Kind]()
    for item in (str(each).strip() for each in items):
        is_real = text.is_number(item) or {*re.findall(r"\w+", item)} & {*names}
        is_bool = item.lower() in ("true", "false")
        is_whole = re.fullmatch(r"[+-]?\d+", item)
        kinds.add("int" if is_whole else "bool" if is_bool else "float" if is_real else "text")
    return kinds.pop() if len(kinds) == 1 else "float" if kinds <= {"int", "float"} else "text"


# Scripts that are named as if they had a training function

_ARGUMENTS = re.compile(
    r"\b(parse_\w*args\w*|docopt|getopt|Fire|from_cli|tyro\.cli|app\.run|wandb\.init)\(|\bargv\b"
)
"""What reads the arguments of a command line, or begins a training."""

_OPTION = re.compile(r"""(?:add_argument|option)\([^)]*?["']--([\w-]+)["']([^)]*)""")
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)


def is_a_script(tree: ast.Module) -> bool:
    """Whether a file has code for when it is run, or reads the arguments of a command line."""
    return any(map(source.is_guard, tree.body)) or bool(_ARGUMENTS.search(ast.unparse(tree)))


def trains_by_import(tree: ast.Module, name: str) -> bool:
    """Whether the import of a file would train, or can't give a training function.

    Args:
        name: the function that the user names; empty for the one that the file implies.
    """
    body = [each for each in tree.body if not source.is_guard(each)]
    run = "\n".join(ast.unparse(each) for each in body if not isinstance(each, _DEFINITIONS))
    nodes = [node for each in body if not isinstance(each, ast.ClassDef) for node in ast.walk(each)]
    named = [each for each in nodes if isinstance(each, ast.FunctionDef)]
    functions = {each.name: ast.unparse(each) for each in named}
    if {*functions}.intersection(re.findall(r"(?m)^(\w+)\(", run)):
        run = "\n".join([run, *functions.values()])
    if _ARGUMENTS.search(run):
        return True
    is_made = re.search(r"(?m)^train\b.* = |^\w+ = lambda\b", run)
    if name or not body or is_made or "overfit_cli" in ast.unparse(tree):
        return False
    gives = r"(?m)^ +(return|yield) " if is_a_script(tree) else ""  # the numbers of a cell
    public = [each for each in named if each.name[0] != "_" and re.search(gives, ast.unparse(each))]
    return all(_ARGUMENTS.search(ast.unparse(each)) and not _takes_values(each) for each in public)


def _takes_values(function: ast.FunctionDef) -> bool:
    """Whether it is a training function, even if it sets the arguments of a program."""
    arguments = function.args.args
    return function.name == "train" and any(arguments) and all(a.annotation for a in arguments)


def how_to_sweep(typed: str, file: SourceFile, given: Mapping[str, Any]) -> str:
    """Return a sentence that names the command which sweeps a script, with what the user gives."""
    whole = file.content.decode("utf-8", "replace")
    usual = "{0}={{{0}}}" if re.search(r"\bhydra\b", whole) else "--{0} {{{0}}}"
    declared = {
        word.replace("-", "_"): f"{{--{word}}}" if "store_" in more else f"--{word} {{{word}}}"
        for word, more in _OPTION.findall(whole)
    }
    seed = experiment.SEED
    names = [name for name in given or [*declared][:2] or ["NAME"] if name != seed]
    seeded = [seed] * (seed in declared)
    words = [declared.get(name, usual.format(name)) for name in [*names, *seeded]]
    line = " ".join(["python", shlex.quote(typed), *words])
    settings = [[text.spelled(name), str(given.get(name) or "RANGE")] for name in names]
    command = text.shell_line(["sweep", line, *itertools.chain(*settings)])
    return f"a script is swept as a command line, such as: {command}"
