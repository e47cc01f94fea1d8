"""Presets, and the subject of a command: the study, preset or function that the user names.

A preset is a TOML file that names a study, axes and figures, one for each figure of a paper. Papers
and their figures are names of presets too.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, cast, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PrivateAttr, ValidationError

from overfit_cli.core.errors import BadValue, UserError
from overfit_cli.core.files import preset_folder, read_toml, set_data_folder, variable_folder
from overfit_cli.core.options import ProfileName
from overfit_cli.core.parameters import Value, describe
from overfit_cli.core.registry import figures_of, find_study, study_names
from overfit_cli.core.study import AnyStudy
from overfit_cli.core.text import brief, is_text, most_alike, natural_key, shorten, suggestion
from overfit_cli.functions import function_study, program, references
from overfit_cli.sweeps.grid import Given, Grid

PROFILES = get_args(ProfileName)
NO_PAPER = "own"
"""Stands for the paper of a preset whose study is of none."""

ERROR_RATES = "error-rates.csv"
"""The file among the presets with how often each claim's verdict errs in simulated worlds."""

MEASURED_ON = 2
"""The jobs on which the minutes of presets were measured."""

Whole = Annotated[int, Field(ge=-(2**63), lt=2**63)]
"""A whole number that a file may hold."""

_Value = str | bool | Whole | float
_Texts = Annotated[tuple[str, ...], BeforeValidator(lambda v: (v,) if isinstance(v, str) else v)]


class _Axes(BaseModel):
    """What a preset says of both profiles, and a profile besides that."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    set: Mapping[str, _Value] = Field(default_factory=dict)
    together: _Texts = ()
    only: _Texts = ()


class Profile(_Axes):
    """One size of a preset: its values, seeds and time.

    Attributes:
        minutes: how long it takes on two cores, as measured; None where that isn't known.
        needs: what must be there before it can run, in words; empty where that is nothing.
        stand_in: what stands in for the paper's data, as the study says of such cells; required
            where something does.
        together, only: what ties lists and leaves out points, besides the preset's own.
    """

    seeds: str | Whole = 3
    minutes: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    needs: str = ""
    stand_in: str = ""

    @property
    def texts(self) -> dict[str, str]:
        """The text of each parameter that it sets."""
        return {name: str(value) for name, value in self.set.items()}


class Preset(_Axes):
    """A preset: the content of its TOML file, and where that lies.

    Attributes:
        title, study: what it shows, and what is run for it: a study, a function such as `ridge.py`
            or `ridge.py:train`, in a file beside it, or a command line as seen from its folder.
        reproduces: the paper's figure or table that it stands for, such as `fig1`; several presets
            may stand for one. It is empty where there is none.
        trajectories: whether its figures need logged steps.
        read: the file with the numbers of a command line.
        directory: the name of its run directory, where several presets share one because their
            cells belong in one picture; else it is the preset's own name.
        set: values of parameters, for both profiles.
        claims: sentences by name that its cells are to decide, such as
            `learned = "test_error < 0.05 where snr > 2"`.
    """

    title: str
    study: str
    reproduces: str = Field(default="", pattern=r"^[\w.-]*$")
    figures: tuple[str, ...] = ()
    trajectories: bool = False
    read: str = ""
    directory: str = Field(default="", pattern=r"^[\w.-]*$")
    claims: Mapping[str, str] = Field(default_factory=dict)
    quick: Profile = Profile()
    paper: Profile = Profile()
    _path: Path = PrivateAttr(Path())

    @property
    def path(self) -> Path:
        """Its file."""
        return self._path

    @property
    def name(self) -> str:
        """Its file's name."""
        return self.path.stem

    @property
    def key(self) -> str:
        """The name of its study's paper, such as `jiang2024`."""
        paper = find_study(self.study).paper
        return paper.key if paper else NO_PAPER

    @property
    def address(self) -> str:
        """The figure of the paper that it stands for, `jiang2024/fig1`, or its own name there."""
        return f"{self.key}/{self.reproduces or self.name}"

    @property
    def names(self) -> tuple[str, ...]:
        """What it is called alone, or with the presets of the same figure."""
        return self.name, self.address, f"{self.key}/{self.name}"

    def run_name(self, profile: str) -> str:
        """Return the name of the run directory that a profile is run into."""
        return f"{self.directory or self.name}-{profile}"

    def profile(self, name: str) -> Profile:
        """Return the profile `quick` or `paper`, with the preset's own values below its own."""
        chosen: Profile = getattr(self, name)
        together, only = (*self.together, *chosen.together), (*self.only, *chosen.only)
        shared = {**self.set, **chosen.set}
        return chosen.model_copy(update={"set": shared, "together": together, "only": only})


def preset_names() -> list[str]:
    """Return the names of the shipped presets."""
    folder = preset_folder()
    return list(_names_in(folder, folder.stat().st_mtime_ns))


@functools.lru_cache(maxsize=8)
def _names_in(folder: Path, state: int) -> tuple[str, ...]:
    """The presets' names in a folder; listed again when it has changed since `state`."""
    return tuple(sorted(path.stem for path in folder.glob("*.toml")))


def all_presets() -> list[Preset]:
    """Return the shipped presets."""
    return [_read(preset_folder() / f"{name}.toml") for name in preset_names()]


def presets_run_into(run_name: str) -> list[Preset]:
    """Return the presets of which some profile is run into a directory of this name."""
    return [preset for preset in all_presets() if run_name in map(preset.run_name, PROFILES)]


def find_preset(name: str) -> Preset | None:
    """Return the shipped preset `name`, or the one in the TOML file of that path; else None."""
    if name in preset_names():
        return _read(preset_folder() / f"{name}.toml")
    if not name.endswith(".toml"):
        return None
    if not os.path.isfile(name):  # noqa: PTH113 - a name too long is none, not an error
        raise UserError(f"{name}: there is no such preset file.")
    return _read(Path(name))


def _read(path: Path) -> Preset:
    facts = path.stat()
    return _parse(path, facts.st_mtime_ns, facts.st_size)


@functools.lru_cache(maxsize=256)
def _parse(path: Path, *state: int) -> Preset:
    """The preset in a file; read again when the file's state, its time and size, has changed."""
    try:
        preset = Preset.model_validate(read_toml(path))
    except ValidationError as error:
        raise UserError(f"{path}: {_sentence(error)}") from error
    preset._path = path
    for name, text in preset.claims.items():
        from overfit_cli.claims.sentences import read

        try:
            read(text)
        except BadValue as error:
            raise UserError(f"{path}: claims.{name}: {error.accepts}") from error
    return preset


_KINDS = ("str", "int", "float", "bool", "constrained-int")
"""What pydantic adds to the place of a value that may be of several kinds."""


def _sentence(error: ValidationError) -> str:
    first = error.errors()[0]
    parts = [str(part) for part in first["loc"] if part not in _KINDS]
    fields = (Profile if len(parts) > 1 else Preset).model_fields
    is_value = "set" in parts[:-1]
    takes = "it takes one value, or a range in quotes." if is_value else f"{first['msg']}."
    problems = {
        "extra_forbidden": f"there is no such field; {suggestion(parts[-1], fields)}",
        "missing": "it is missing, and every preset has it.",
    }
    return f"{'.'.join(parts)}: {problems.get(first['type'], takes)}"


def reproducible(names: Sequence[str] = ()) -> list[Preset]:
    """Return the presets that some names stand for, each once, by paper and figure.

    Args:
        names: papers (`jiang2024`), figures (`jiang2024/fig1`) and presets (`fig1`); none for all.
    """
    every = sorted(all_presets(), key=lambda one: (natural_key(one.address), one.name))
    papers = {preset.key for preset in every} - {NO_PAPER}
    known = {*papers, *itertools.chain(*(preset.names for preset in every))}
    for name in names:
        if name not in known:
            takes = f"it takes a paper ({', '.join(sorted(papers))}), a figure of one or a preset"
            close = most_alike(name, known)
            hint = f"did you mean {close!r}?" if close else f"{takes}."
            raise UserError(f"{shorten(name)!r} is neither a paper nor one of its figures; {hint}")
    return [one for one in every if not names or {*one.names, one.key} & {*names}]


# The subject of a command

LONGEST = 120
"""The most letters of a run directory's name."""


@dataclass(frozen=True)
class Subject:
    """The subject of a command: a study or a function, with the profile of a preset.

    Attributes:
        typed: what the user wrote.
        profile: the values and seeds that are used unless the user gives others.
        size: the name of the profile.
    """

    study: AnyStudy
    typed: str
    profile: Profile = field(default_factory=Profile)
    preset: Preset | None = None
    size: str = PROFILES[0]

    @property
    def name(self) -> str:
        """Its name in the names of run directories."""
        if self.preset is not None:
            return self.preset.name
        function = self.study.identity.function
        return self.study.name if function is None else function.label

    @property
    def seeds(self) -> str:
        """Its profile's seeds; a study that draws nothing has one, unless a profile says it."""
        draws = self.study.seeded or "seeds" in self.profile.model_fields_set
        return str(self.profile.seeds) if draws else "1"

    @property
    def sentences(self) -> Mapping[str, str]:
        """The claims that its preset states, by name."""
        return {} if self.preset is None else self.preset.claims

    @property
    def trajectories(self) -> bool:
        """Whether its preset logs every step."""
        return self.preset is not None and self.preset.trajectories

    def sweep_name(self, grid: Grid) -> str:
        """Return the name of a sweep's run directory: its study or preset, and what differs."""
        usual: dict[str, Sequence[Given | None]] = {
            name: [info.default] for name, info in describe(self.study.parameters).items()
        }
        usual.update(Grid.read(self.study, self.profile.texts, (0,)).given)
        differing = {
            name: grid.values[name] if name in grid.derived else cast("tuple[Value, ...]", taken)
            for name, taken in grid.given.items()
            if set(taken) != set(usual[name])
        }
        base = self.name if self.preset is None else self.preset.run_name(self.size)
        return named_after(base, differing)

    def training_name(self, grid: Grid, told: Collection[str]) -> str:
        """Return the name of one cell's run directory, with the parameters that a user tells."""
        if self.preset is not None and self.preset.directory and not told:
            return self.preset.run_name(self.size)
        values: dict[str, Sequence[Value]] = {name: grid.values[name] for name in told}
        return named_after(self.name, values | ({"seed": grid.seeds} if any(grid.seeds) else {}))

    def take_data_folder(self, folder: Path | None) -> None:
        """Let the study read its data in a folder; None for that of the variable."""
        if self.study.identity.function is None:
            set_data_folder(folder)
        elif folder not in (None, variable_folder()):
            accepts = f"{self.study.name} opens its files by itself, and needs no folder."
            raise BadValue("data", str(folder), accepts)


def named_after(base: str, values: Mapping[str, Sequence[Value]]) -> str:
    """Return `base` with what sets a run apart: `benign-vit-n20-snr`.

    Of an axis the name alone is told: it may grow, and its cells are then reused. What no file's
    name may have on some system is an underscore.
    """
    told = [name if len(v) > 1 else f"{name}{brief(v[0], 12)}" for name, v in values.items()]
    name = re.sub(r'[/\\:<>"|?*]', "_", "-".join([base, *told]))
    if len(name) <= LONGEST:
        return name
    mark = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{name[: LONGEST - len(mark) - 1]}-{mark}"


def find_subject(
    typed: str, profile: str | None = None, given: Mapping[str, Any] = {}, read: str | None = None
) -> Subject:
    """Return what the user named: a study, a preset or its file, a function or a command line.

    Args:
        typed: `benign-vit`, `fig1`, `mine.toml`, `FILE.py`, `FILE.py:NAME`, `module:NAME` or
            `python train.py --lr {lr}`.
        given: the values of parameters that the user gives: they tell the types of a command line.
        read: the file with the numbers of a command line.
    """
    if not is_text(typed):  # a manifest couldn't name it
        raise UserError(f"{typed}: the name isn't text; it takes a path in UTF-8.")
    is_command = typed not in study_names() and program.is_command(typed)
    preset = None if is_command or typed in study_names() else find_preset(typed)
    if read and not (is_command or (preset and program.is_command(preset.study))):
        raise BadValue("read", read, f"{typed} is no command line; only a program's file is read.")
    if preset is not None:
        return _of_preset(preset, typed, profile or PROFILES[0], given, read)
    study = _study_named(typed, given, read)
    if study is None:
        near = most_alike(typed, [*study_names(), *preset_names()])
        near = f"{typed}.py" if Path(f"{typed}.py").is_file() else near
        listed = "`overfit list` names those that are installed."
        hint = f"did you mean {near!r}?" if near else listed
        raise UserError(f"{typed!r} is neither a study nor a preset nor a file FILE.py; {hint}")
    if typed != study.name in study_names():
        raise UserError(f"{typed}: a study {study.name!r} is installed; give it another name.")
    if profile is not None:
        raise BadValue("profile", profile, f"{typed} is not a preset; only presets have profiles.")
    return Subject(study, typed)


def _study_named(
    name: str, given: Mapping[str, Any], read: str | None, folder: Path = Path()
) -> AnyStudy | None:
    """The study of a name, a function in a file of a folder, or a command line; else None."""
    if name in study_names():
        return find_study(name)
    if program.is_command(name):
        return function_study.study_of_command(name, read or "", given, folder)
    if not references.is_reference(name):
        return None
    is_file = references.split_reference(name)[0].endswith(".py")
    return function_study.study_of_reference(str(folder / name) if is_file else name, given)


def _of_preset(
    preset: Preset, typed: str, size: str, given: Mapping[str, Any], read: str | None
) -> Subject:
    profile = preset.profile(size)
    values, read = {**profile.texts, **given}, read or preset.read
    try:
        study = _study_named(preset.study, values, read, preset.path.parent)
        if study is None:
            hint = suggestion(preset.study, study_names())
            raise UserError(f"{preset.study!r} is neither a study nor a file FILE.py; {hint}")
        for figure in preset.figures:
            if figure not in (figures := figures_of(study)):
                hint = suggestion(figure, figures)
                raise UserError(f"{study.name} has no figure {figure!r}; {hint}")
        assert Grid.read(study, profile.texts, (0,), profile.together, profile.only).size
    except UserError as error:  # of the preset: the user has given no value yet
        raise UserError(f"{preset.path.name}: {error}") from error
    return Subject(study, typed, profile, preset, size)
