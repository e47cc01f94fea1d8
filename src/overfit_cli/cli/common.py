"""What commands share: finding what is meant, reading `--set`, and talking to the user."""

from __future__ import annotations

import enum
import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from overfit_cli.errors import UserError, is_plain_number, nearest, shortened
from overfit_cli.plain_text import is_text, visible

if TYPE_CHECKING:
    from rich.console import Console

    from overfit_cli.study import Study
    from overfit_cli.sweep.presets import Preset

DEFAULT_STUDY = "benign-vit"
RESULTS = Path("results")

DataFolder = Annotated[
    str | None,
    typer.Option(
        "--data", metavar="DIR", help="Where a study's data lies.  [default: $OVERFIT_DATA]"
    ),
]


@dataclass(frozen=True)
class Subject:
    """What a command is about: a study, and the preset that named it, if one did."""

    study: Study
    preset: Preset | None

    @property
    def name(self) -> str:
        """The preset's name, or the study's."""
        return self.study.name if self.preset is None else self.preset.name


def find_subject(name: str) -> Subject:
    """Return the study or preset called `name`.

    Raises:
        UserError: if there is neither.
    """
    from overfit_cli.study import find_study, study_names
    from overfit_cli.sweep.presets import find_preset, preset_names

    if not is_text(name):
        raise UserError(f"{name}: the name isn't text; it takes a path in UTF-8.")
    if name in study_names():
        return Subject(find_study(name), None)
    preset = find_preset(name)
    if preset is None:
        known = [*study_names(), *preset_names()]
        raise UserError(f"{name!r} is neither a study nor a preset; {nearest(name, known)}")
    if preset.content.study not in study_names():
        hint = nearest(preset.content.study, study_names())
        raise UserError(f"{preset.path.name}: {preset.content.study!r} is no study; {hint}")
    study = find_study(preset.content.study)
    known_figures = study.figures() if preset.content.figures else {}
    for figure in preset.content.figures:
        if figure not in known_figures:
            hint = nearest(figure, known_figures)
            raise UserError(f"{preset.path.name}: {study.name} has no figure {figure!r}; {hint}")
    return Subject(study, preset)


class DeviceName(enum.StrEnum):
    """Where cells are trained."""

    AUTO = "auto"
    CPU = "cpu"
    CUDA = "cuda"


def read_settings(
    settings: Sequence[str], short: Mapping[str, str | None]
) -> tuple[dict[str, str], dict[str, str]]:
    """Read `--set NAME=TEXT` and the short flags.

    Args:
        settings: the texts after `--set`.
        short: the short flags' texts by name; None where not given.

    Returns:
        The text of each parameter, and the flag that the user wrote it with.

    Raises:
        UserError: if a text has no `=`, or a name is given twice.
    """
    texts = {name: text for name, text in short.items() if text is not None}
    flags = {name: f"--{name}" for name in texts}
    for setting in settings:
        name, equals, text = setting.partition("=")
        name = name.strip()
        if not equals or not name:
            raise UserError(f"--set {setting}: write NAME=VALUE or NAME=RANGE, such as d=1024.")
        if name in texts:
            raise UserError(f"--set {setting}: {name} is given twice; give it once.")
        texts[name] = text
        flags[name] = f"--set {name}"
    return texts, flags


def read_whole(flag: str, text: str, at_least: int) -> int:
    """Read a whole number.

    Raises:
        UserError: if the text is none, or is below `at_least`.
    """
    accepts = f"a whole number of at least {at_least}"
    number = read_number(flag, text, accepts, whole=True)
    if not at_least <= number < 2**63:
        raise UserError(f"{flag} {shortened(text)}: it takes {accepts}.")
    return int(Decimal(text))


def read_number(flag: str, text: str, accepts: str = "a number", *, whole: bool = False) -> float:
    """Read a finite number.

    Raises:
        UserError: if the text is none, saying that the flag takes `accepts`.
    """
    try:
        number = float(text) if is_plain_number(text) else math.nan
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or (whole and number != int(number)):
        raise UserError(f"{flag} {shortened(text)}: it takes {accepts}.")
    return number


def read_path(flag: str, text: str | None) -> Path | None:
    """Return the path that `text` names; None where none is given.

    Raises:
        UserError: if it is empty, isn't text, or no path can be so.
    """
    from overfit_cli.files import reason_of

    if text is None:
        return None
    if not text.strip():
        raise UserError(f"{flag} '': it takes a path, not nothing.")
    if not is_text(text):
        raise UserError(f"{flag} {text}: the name isn't text; it takes a path in UTF-8.")
    try:
        Path(text).exists()
    except OSError as error:
        raise UserError(f"{flag} {text}: it can't be used: {reason_of(error)}.") from error
    return Path(text)


def use_data(text: str | None) -> None:
    """Take the folder that `--data` names, if it names one.

    Raises:
        UserError: if there is nothing there.
    """
    from overfit_cli.data_folder import set_data_folder

    path = read_path("--data", text)
    if path is not None:
        set_data_folder(path)


def console() -> Console:
    """Return the console that all output goes through; it honours NO_COLOR and the width.

    On a terminal sentences are wrapped between words; elsewhere a sentence is a line. Names are
    shown as they are: nothing in a text is markup, and a text is one line.
    """
    from rich.console import Console

    class Plain(Console):
        def print(self, *objects: Any, **options: Any) -> None:
            shown = [visible(one) if isinstance(one, str) else one for one in objects]
            super().print(*shown, **options)

    plain = Plain(highlight=False, markup=False, emoji=False)
    plain.soft_wrap = not plain.is_terminal
    return plain


def next_lines(command: Sequence[str]) -> list[str]:
    """Return the line that proposes a command; none where its words can't be shown as they are."""
    line = shlex.join(["overfit", *command])
    return [f"Next: {line}"] if visible(line) == line else []


def duration(seconds: float) -> str:
    """Return a time in words: `0.4 s`, `37 s`, `4 min 05 s`, `2 h 10 min`."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def size(count: float) -> str:
    """Return a number of bytes in words: `12 kB`, `3.4 MB`."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if count < 1000 or unit == "TB":
            return f"{count:.3g} {unit}"
        count /= 1000
    raise AssertionError("the loop returns at TB")


def plural(count: int, noun: str) -> str:
    """Return a count with its noun: `1 cell`, `2 cells`, `3 batches`."""
    ending = "es" if noun.endswith(("ch", "s", "x")) else "s"
    return f"{count} {noun}" if count == 1 else f"{count} {noun}{ending}"
