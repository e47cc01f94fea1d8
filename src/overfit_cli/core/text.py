"""Texts for users: numbers, times and sizes in words, escaped names, commands, and the console."""

from __future__ import annotations

import csv
import difflib
import functools
import math
import os
import re
import shlex
import sys
import textwrap
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from jinja2 import Environment

VERSION = "0.1.0"
"""The version of this package."""

LONGEST_QUOTED = 60


MINUS = "\N{MINUS SIGN}"


def is_number(value: object) -> bool:
    """Return whether Python takes a value for a number: it is one, or a text of one."""
    try:
        float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def shorten(text: str) -> str:
    """Return a user's text, cut to a length that fits a sentence."""
    return text if len(text) <= LONGEST_QUOTED else f"{text[:LONGEST_QUOTED]}..."


def suggestion(word: str, candidates: Iterable[str]) -> str:
    """Return the end of a sentence about an unknown `word`: the nearest name, or all names."""
    names = sorted(candidates)
    if closest := most_alike(word, names):
        return f"did you mean {closest!r}?"
    return f"known: {', '.join(names)}." if names else "none is known."


def most_alike(word: str, candidates: Iterable[str], *, cutoff: float = 0.5) -> str:
    """Return the name most similar to `word`, without regard to case; empty for none."""
    names = {name.casefold(): name for name in sorted(candidates)}
    closest = difflib.get_close_matches(word.casefold(), names, n=1, cutoff=cutoff)
    return names[closest[0]] if closest else ""


def duration(seconds: float) -> str:
    """Return a time in words: `0.4 s`, `37 s`, `4 min 05 s`, `2 h 10 min`."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def duration_estimate(seconds: float) -> str:
    """Return an estimated time in words: `a few seconds`, `about 37 s`, `about 2 h 10 min`."""
    return f"about {duration(seconds)}" if seconds >= 10 else "a few seconds"


def ago(seconds: float) -> str:
    """Return how long ago something was: `12 min ago`, `3 h ago`, `5 days ago`."""
    hours = seconds / 3600
    if hours < 1:
        return f"{round(60 * hours)} min ago"
    return f"{round(hours)} h ago" if hours < 48 else f"{plural(round(hours / 24), 'day')} ago"


def natural_key(name: str) -> list[tuple[int, str]]:
    """Return a sort key for names with numbers: `fig2` before `fig10`, and both before `table1`."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]


def brief(value: object, digits: int = 4) -> str:
    """Write a value: a real number in so many significant digits, anything else as Python does."""
    return f"{value:.{digits}g}" if isinstance(value, float) else str(value)


def list_values(values: Iterable[Any], digits: int = 4) -> str:
    """Return values of a parameter in order: `1, 2, 5`, or `19 values from 2 to 20`."""
    ordered = [brief(value, digits) for value in sorted(values)]
    if len(ordered) > MOST_LISTED:
        return f"{len(ordered)} values from {ordered[0]} to {ordered[-1]}"
    return ", ".join(ordered)


MOST_LISTED = 6


def list_numbers(numbers: Sequence[int], write: Callable[[int], str] = str) -> str:
    """Return whole numbers in order as a list: `0 to 9`, or `0, 4, 9 to 12`."""
    runs: list[list[str]] = []
    for before, number in zip([None, *numbers], numbers, strict=False):
        if before is None or number != before + 1:
            runs.append([])
        runs[-1].append(write(number))
    return ", ".join(f"{run[0]} to {run[-1]}" if len(run) > 2 else ", ".join(run) for run in runs)


def percent(share: float, digits: int = 0) -> str:
    """Return a share in percent, with so many digits after the point: `95 %`."""
    return f"{100 * share:.{digits}f} %"


def round_digits(number: float, digits: int) -> float:
    """Return a number with so many significant digits."""
    return float(f"{number:.{digits}g}")


RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
"""Digits and the sign of a power, as superscripts."""


def listed(words: str) -> list[str]:
    """Return the values between commas; one with a comma in it stands in double quotes."""
    if '"' not in words:
        return words.split(",")
    return next(csv.reader([words], skipinitialspace=True), [])


def in_list(value: object) -> str:
    """Return a value as `listed` reads it in a list."""
    words = str(value)
    return '"{}"'.format(words.replace('"', '""')) if {*words} & {",", '"'} else words


LATEX = str.maketrans(
    {sign: rf"\{sign}" for sign in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
)
"""The escapes of a plain text in LaTeX."""


def _greek(letter: str) -> str:
    name = unicodedata.name(letter, "").rpartition(" ")[2].lower().replace("lamda", "lambda")
    return "\\" + (name.capitalize() if letter.isupper() else name)


_IN_LATEX = {
    **{letter: _greek(letter) for letter in map(chr, range(0x391, 0x3CA))},
    **{chr(power): f"{{}}^{{{chr(sign)}}}" for sign, power in RAISED.items()},
    **{"−": "-", "·": r"\cdot", "×": r"\times", "≤": r"\leq", "≥": r"\geq", "≠": r"\neq"},
    **{"∞": r"\infty", "∝": r"\propto", "√": r"\surd", "∇": r"\nabla", "ℓ": r"\ell"},
    **{"‖": r"\Vert", "⟨": r"\langle", "⟩": r"\rangle", "±": r"\pm", "→": r"\to", "ᵀ": r"{}^\top"},
    **{"\u0303": r"\tilde", "\u0304": r"\bar", "\u0302": r"\hat", "\u0332": r"\underline"},
}
"""Formulas of signs; the last line has accents, which follow their letter."""


def in_latex(words: str) -> str:
    r"""Return a text of Unicode for pdfLaTeX: `5 % of δ²` becomes `5 \% of $\delta$${}^{2}$`."""

    def formula(found: re.Match[str]) -> str:
        letter, accent = found.groups()
        sign, plain = _IN_LATEX.get(letter, ""), letter.translate(LATEX)
        if accent:
            sign = f"{_IN_LATEX[accent]}{{{sign or plain}}}"
        return f"${sign}$" if sign else plain

    shown = re.sub(r"(.)([\u0302-\u0304\u0332])?", formula, visible(words))
    return shown.replace("\N{NO-BREAK SPACE}", "~")


def power_of_ten(factor: str, exponent: int) -> str:
    """Return a number's digits times a power of ten: `3·10⁻⁹`, and `10⁻⁹` for a factor of 1."""
    times = factor.removesuffix("1") if factor in ("1", "-1") else f"{factor}·"
    return f"{times}10{str(exponent).translate(RAISED)}"


def three_digits(number: float) -> str:
    """Return a number in three digits: `1010`, `−0.00125`, and else `7.2·10⁻⁶`."""
    if math.isnan(number):
        return "not known"
    if abs(number) < 1e-300:
        return "0"
    if math.isinf(number):
        return "∞" if number > 0 else f"{MINUS}∞"
    rounded = round_digits(number, 3)
    if 1e-4 <= abs(rounded) < 1e6:
        return f"{rounded:.7g}".replace("-", MINUS)
    digits, _, exponent = f"{rounded:.3g}".partition("e")
    return power_of_ten(digits, int(exponent or 0)).replace("-", MINUS)


def size(count: float) -> str:
    """Return a number of bytes in words: `12 kB`, `3.4 MB`."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"


def plural(count: int, noun: str) -> str:
    """Return a count with its noun: `1 cell`, `2 cells`, `3 batches`, `4 directories`."""
    if count == 1:
        return f"{count} {noun}"
    if noun.endswith("ory"):
        return f"{count} {noun[:-1]}ies"
    ending = "es" if noun.endswith(("ch", "s", "x")) else "s"
    return f"{count} {noun}{ending}"


_UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f"  # control characters: escape sequences and line breaks
    "\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069"  # marks that reorder or break a line
    "\ud800-\udfff]"  # bytes of a name that are not text
)
_EMPHASIS = re.compile(r"(?<!\w)_|_(?!\w)")
_MARKDOWN = {"&": "&amp;", "<": "&lt;", ">": "&gt;"} | {mark: f"\\{mark}" for mark in "\\`*|~$"}


def spaced(name: str) -> str:
    """Return a name as words: `test loss`; `n_` stays."""
    return re.sub(r"(?<=[^_])_+(?=[^_])", " ", name)


def visible(text: str) -> str:
    r"""Return `text` in one line, with control characters written as escapes: `\\x1b`."""
    return _UNSEEN.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def slug(name: str) -> str:
    """Return a name as a part of an address within a page: letters, digits, `.`, `-` and `_`."""
    return re.sub(r"[^\w.-]+", "-", name).strip("-")


def is_text(name: str) -> bool:
    """Whether a name is valid text: a file's name may contain other bytes."""
    return not any("\ud800" <= letter <= "\udfff" for letter in name)


def escape_markdown(text: str) -> str:
    """Return `text` in one line, escaped for Markdown: no markup, no HTML, no links."""
    escaped = "".join(_MARKDOWN.get(character, character) for character in visible(text))
    return _EMPHASIS.sub(r"\\_", escaped).replace("](", "]\\(")


def _as_code(command: str) -> str:
    """A command in Markdown, as code where nothing in it is markup."""
    return escape_markdown(command) if set(command) & set("`<&[") else f"`{visible(command)}`"


@functools.cache
def templates(folder: Path, *, autoescape: bool = False) -> Environment:
    """Return the templates of a folder, which know how numbers and counts are written.

    Texts are shown without control characters; markup stays as it is.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(folder),
        autoescape=autoescape,
        finalize=lambda value: value if hasattr(value, "__html__") else visible(str(value)),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"about": duration_estimate, "duration": duration, "percent": percent}
    environment.filters |= {"brief": brief, "code": _as_code, "number": three_digits, "slug": slug}
    environment.filters |= {"plural": plural, "size": size}
    environment.filters["md"] = lambda text: escape_markdown(str(text))
    environment.tests["finite"] = math.isfinite
    return environment


WIDEST = 10_000
"""The columns that a table may have where it isn't shown on a terminal."""


class _PlainConsole(Console):
    def print(self, *objects: Any, **options: Any) -> None:
        printed = [visible(item) if isinstance(item, str) else item for item in objects]
        if not self.is_terminal:
            printed = [self._unwrapped(item) for item in printed]
        super().print(*printed, **options)

    def on_broken_pipe(self) -> None:
        """Let what runs go on when its reader has left, as `head` does."""
        self.quiet = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

    def _unwrapped(self, item: Any) -> Any:
        if not isinstance(item, Table):
            return item
        lines = self.render_lines(item, self.options.update(width=WIDEST), pad=False)
        texts = ["".join(part.text for part in line).rstrip() for line in lines]
        return "\n".join(text for text in texts if text)


def console(*, quiet: bool = False) -> Console:
    """Return the console that all output goes through; it honours NO_COLOR and the width.

    On a terminal sentences are wrapped between words; elsewhere a sentence is a line, and so is a
    row of a table. Nothing in a text is markup.
    """
    ipython = sys.modules.get("IPython")  # used only where it runs already
    in_notebook = ipython is not None and hasattr(ipython.get_ipython(), "kernel")
    # A notebook's lines are one text in this way; its kernel sets FORCE_COLOR.
    on_terminal = False if in_notebook else None
    plain: Any = {"highlight": False, "markup": False, "emoji": False, "force_jupyter": False}
    result = _PlainConsole(quiet=quiet, force_terminal=on_terminal, **plain)
    result.soft_wrap = not result.is_terminal
    return result


def text_table(
    rows: Sequence[Mapping[str, Any]],
    *,
    ruled: bool = False,
    whole: Collection[str] = (),
    right: Collection[str] = (),
    styles: Mapping[str, str] | None = None,
) -> Table:
    """Return rows of texts as a table for the console, each text under its heading.

    Args:
        ruled: whether a rule stands below its headings.
        whole: the columns whose texts are not folded.
        right: the columns at whose right their texts stand.
    """
    table = Table(box=SIMPLE_HEAD if ruled else None, header_style="")
    for heading in rows[0] if rows else ():
        side: Any = "right" if heading in right else "left"
        shown: Any = {"style": (styles or {}).get(heading), "no_wrap": heading in whole}
        table.add_column(heading, justify=side, overflow="fold", **shown)
    for row in rows:
        table.add_row(*(visible(text) if isinstance(text, str) else text for text in row.values()))
    return table


def print_folded(
    output: Console, text: str, first: str = "", further: str = "  ", width: int | None = None
) -> None:
    """Print a text in lines that fit a terminal, or this width, each after what it begins with."""
    shown = visible(text)
    if not output.is_terminal and width is None:
        output.print(f"{first}{shown}")
        return
    most = min(output.width, width or output.width)
    lines = textwrap.wrap(
        shown, most, initial_indent=first, subsequent_indent=further, break_on_hyphens=False
    )
    for line in lines or [first]:
        output.print(line)


def spelled(name: str) -> str:
    """Return the option of an argument: `--retry-failed` of `retry_failed`, `--from` of `from_`."""
    return f"--{name.rstrip('_').replace('_', '-')}"


def command_words(command: str, *arguments: object, **options: Any) -> list[str]:
    """Return the words of a command of overfit; its options are arguments by name.

    An option that is True has no value, a list or a tuple one for each time; None and False are
    left out.
    """
    words = [command, *map(str, arguments)]
    for name, given in options.items():
        for value in given if isinstance(given, list | tuple) else [given]:
            if value is not None and value is not False:
                words += [spelled(name)] if value is True else [spelled(name), str(value)]
    return words


def shell_line(words: Sequence[str]) -> str:
    """Return the words of a command of overfit as a shell takes them."""
    return shlex.join(["overfit", *words])


_command: ContextVar[tuple[str, ...]] = ContextVar("command", default=())


_Value = TypeVar("_Value")


@contextmanager
def set_inside(variable: ContextVar[_Value], value: _Value) -> Iterator[None]:
    """Give a variable a value inside, and that of before again at the end."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def as_command(words: Sequence[str]) -> AbstractContextManager[None]:
    """Let these words stand inside for those that were typed: what they run is recorded as run."""
    return set_inside(_command, ("overfit", *words))


def typed_command() -> tuple[str, ...]:
    """Return the words of the command that was typed; none in a script or a notebook.

    What of a word is no text is written as an escape.
    """
    program = Path(sys.argv[0])
    if _command.get() or (program.stem != "overfit" and program.parent.name != "overfit_cli"):
        return _command.get()
    return ("overfit", *(word.encode(errors="backslashreplace").decode() for word in sys.argv[1:]))


def typed(name: str) -> str:
    """Return the name of an argument as its reader gives it: in a command as an option."""
    return spelled(name) if typed_command() else name


def proposed_command(command: Sequence[str]) -> list[str]:
    """Return the line that proposes a command; none where its words cannot be printed."""
    if not command:
        return []
    line = shell_line(command)
    return [f"Next: {line}"] if visible(line) == line else []
