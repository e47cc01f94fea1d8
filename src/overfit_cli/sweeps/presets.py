"""Presets: TOML files that name a study, axes and figures, one for each figure of a paper.

Papers and their figures are names of presets too.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from overfit_cli.core.cell import Paper
from overfit_cli.core.errors import UserError
from overfit_cli.core.files import read_toml
from overfit_cli.core.registry import find_study
from overfit_cli.core.text import most_alike, natural_key, shorten, suggestion
from overfit_cli.core.values import ProfileName, valid_choice

MOST_BYTES = 1 << 20
PROFILES = get_args(ProfileName)
EXPECTED_VERDICTS = "expected-verdicts.toml"
"""The file among the presets with the verdicts of their quick profiles."""

ERROR_RATES = "error-rates.csv"
"""The file among the presets with how often each claim's verdict errs in simulated worlds."""


_Whole = Annotated[int, Field(ge=-(2**63), lt=2**63)]
_Value = str | bool | _Whole | float
_Texts = Annotated[
    tuple[str, ...], BeforeValidator(lambda given: (given,) if isinstance(given, str) else given)
]


class Profile(BaseModel):
    """One size of a preset: its values, seeds and time.

    Attributes:
        minutes: how long it takes on two cores, as measured; None where that isn't known.
        needs: what must be there before it can run, in words; empty where that is nothing.
        stand_in: what stands in for the paper's data, as the study says of such cells; required
            where something does.
        together, only: what ties lists and leaves out points, besides the preset's own.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    seeds: str | _Whole = 3
    minutes: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    needs: str = ""
    stand_in: str = ""
    set: Mapping[str, _Value] = Field(default_factory=dict)
    together: _Texts = ()
    only: _Texts = ()


MEASURED_ON = 2
"""The jobs on which the minutes of presets were measured."""


class PresetFile(BaseModel):
    """The content of a preset's TOML file.

    Attributes:
        title, study: what it shows, and what is run for it: a study, or a function such as
            `ridge.py` or `ridge.py:train`, in a file beside it.
        reproduces: the paper's figure or table that it stands for, such as `fig1`; several presets
            may stand for one. Where there is none, it is called by the preset's own name.
        trajectories: whether its figures need logged steps.
        directory: the name of its run directory, where several presets share one because their
            cells belong in one picture; else it is the preset's own name.
        set: values of parameters, for both profiles.
        claims: sentences by name that its cells are to decide, such as
            `learned = "test_error < 0.05 where snr > 2"`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: str
    study: str
    reproduces: str = Field(default="", pattern=r"^[\w.-]*$")
    figures: tuple[str, ...] = ()
    trajectories: bool = False
    directory: str = Field(default="", pattern=r"^[\w.-]*$")
    set: Mapping[str, _Value] = Field(default_factory=dict)
    together: _Texts = ()
    only: _Texts = ()
    claims: Mapping[str, str] = Field(default_factory=dict)
    quick: Profile = Profile()
    paper: Profile = Profile()


@dataclass(frozen=True)
class Preset:
    """A preset, read: its name, its file's content, and where it lies."""

    name: str
    content: PresetFile
    path: Path

    def run_name(self, profile: str) -> str:
        """Return the name of the run directory that a profile is run into."""
        return f"{self.content.directory or self.name}-{profile}"

    def profile(self, name: str) -> Profile:
        """Return the profile `quick` or `paper`, with the preset's own values below its own."""
        chosen: Profile = getattr(self.content, valid_choice("profile", name, PROFILES))
        together = (*self.content.together, *chosen.together)
        only = (*self.content.only, *chosen.only)
        shared = {**self.content.set, **chosen.set}
        return chosen.model_copy(update={"set": shared, "together": together, "only": only})

    @property
    def reproduces(self) -> str:
        """The figure of the paper that it stands for, or its own name."""
        return self.content.reproduces or self.name


def preset_folder() -> Path:
    """Return where the shipped presets lie: in the installed package, or in the checkout."""
    package = Path(__file__).resolve().parents[1]
    installed = package / "experiments"
    return installed if installed.is_dir() else package.parents[1] / "experiments"


def preset_names() -> list[str]:
    """Return the names of the shipped presets."""
    paths = preset_folder().glob("*.toml")
    return sorted(path.stem for path in paths if path.name != EXPECTED_VERDICTS)


def all_presets() -> list[Preset]:
    """Return the shipped presets."""
    return [_read(preset_folder() / f"{name}.toml") for name in preset_names()]


def preset_texts(preset: Preset, profile: str) -> dict[str, str]:
    """Return the text of each parameter that a profile sets."""
    return {name: str(value) for name, value in preset.profile(profile).set.items()}


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
    facts = path.stat() if path.is_file() else None
    return _parse(path, (facts.st_mtime_ns, facts.st_size) if facts else None)


@functools.lru_cache(maxsize=256)
def _parse(path: Path, state: object) -> Preset:
    """The preset in a file; read again when the file's state, its time and size, has changed."""
    content = read_toml(path, MOST_BYTES)
    try:
        return Preset(path.stem, PresetFile.model_validate(content), path)
    except ValidationError as error:
        raise UserError(f"{path}: {_sentence(error)}") from error


def _sentence(error: ValidationError) -> str:
    first = error.errors()[0]
    kinds = ("str", "int", "float", "bool", "constrained-int")
    parts = [str(part) for part in first["loc"] if part not in kinds]
    field = ".".join(parts)
    if first["type"] == "extra_forbidden":
        inside = len(first["loc"]) > 1
        fields = (Profile if inside else PresetFile).model_fields
        return f"it has no {field!r}; {suggestion(str(first['loc'][-1]), fields)}"
    if first["type"] == "missing":
        return f"it lacks {field!r}, which every preset has."
    given = _quoted(first["input"])
    if "set" in parts[:-1]:
        return f"{field} is {given}: it takes one value, or a range in quotes."
    return f"{field} is {given}: {first['msg'].lower()}."


def _quoted(value: object) -> str:
    try:
        return shorten(repr(value))
    except ValueError:  # a number of thousands of digits
        return "a number too long to show"


@dataclass(frozen=True)
class Reproducible:
    """A preset with its paper.

    Attributes:
        asked: whether the user named it, or its figure.
    """

    preset: Preset
    paper: Paper | None
    asked: bool = False

    @property
    def address(self) -> str:
        """The figure of the paper that it stands for: `jiang2024/fig1`."""
        return f"{self.paper.key if self.paper else 'own'}/{self.preset.reproduces}"


def all_reproducibles() -> list[Reproducible]:
    """Return every preset, by paper and figure."""
    items = [
        Reproducible(preset, find_study(preset.content.study).paper) for preset in all_presets()
    ]
    return sorted(items, key=lambda preset: (natural_key(preset.address), preset.preset.name))


def reproducible(names: Sequence[str]) -> list[Reproducible]:
    """Return the presets that some names stand for, each once, by paper and figure.

    Args:
        names: papers (`jiang2024`), figures (`jiang2024/fig1`) and presets (`fig1`); none for all.
    """
    every = all_reproducibles()
    if not names:
        return every
    of_name: dict[str, list[Reproducible]] = {}
    for item in every:
        exact = Reproducible(item.preset, item.paper, asked=True)
        if item.paper:
            of_name.setdefault(item.paper.key, []).append(item)
            of_name.setdefault(item.address, []).append(exact)
            of_name.setdefault(f"{item.paper.key}/{item.preset.name}", [exact])
        of_name[item.preset.name] = [exact]
    for name in names:
        if name not in of_name:
            raise UserError(
                _unknown(name, of_name, [item.paper.key for item in every if item.paper])
            )
    wanted = {item.preset.name: item for name in names for item in of_name[name]}
    wanted |= {item.preset.name: item for name in names for item in of_name[name] if item.asked}
    return [wanted[item.preset.name] for item in every if item.preset.name in wanted]


def _unknown(name: str, known: Collection[str], papers: Sequence[str]) -> str:
    close = most_alike(name, known)
    takes = f"it takes a paper ({', '.join(sorted(set(papers)))}), a figure of one or a preset"
    hint = f"did you mean {close!r}?" if close else f"{takes}: `reproduce --dry-run` lists all."
    return f"{shorten(name)!r} is neither a paper nor one of its figures; {hint}"
