"""Presets: TOML files that name a study, axes and figures, one for each figure of a paper."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from overfit_cli.errors import UserError, nearest, shortened
from overfit_cli.files import read_toml

MOST_BYTES = 1 << 20
PROFILES = ("quick", "paper")
EXPECTED_VERDICTS = "expected-verdicts.toml"
"""What lies among the presets and is none: the verdicts of their quick profiles."""


_Whole = Annotated[int, Field(ge=-(2**63), lt=2**63)]
_Value = str | bool | _Whole | float


class Profile(BaseModel):
    """How much of the preset is run.

    Attributes:
        seeds: how many, or which.
        minutes: how long it takes on two cores, as measured; None where that isn't known.
        needs: what must be there before it can run, in words; empty where that is nothing.
        set: values that differ from the preset's own.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    seeds: str | _Whole = 3
    minutes: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    needs: str = ""
    set: Mapping[str, _Value] = Field(default_factory=dict)


class PresetFile(BaseModel):
    """What a preset's TOML file holds.

    Attributes:
        title, study: what it shows, and what is run for it.
        reproduces: the paper's figure or table that it stands for, such as `fig1`; several presets
            may stand for one. Where there is none, it is called by the preset's own name.
        figures: what to draw of it.
        trajectories: whether its figures need logged steps.
        directory: the name of its run directory, where several presets share one because their
            cells belong in one picture; else it is the preset's own name.
        set: values of parameters, for both profiles.
        quick, paper: how much is run.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: str
    study: str
    reproduces: str = Field(default="", pattern=r"^[\w.-]*$")
    figures: tuple[str, ...] = ()
    trajectories: bool = False
    directory: str = Field(default="", pattern=r"^[\w.-]*$")
    set: Mapping[str, _Value] = Field(default_factory=dict)
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
        """Return the profile `quick` or `paper`, with the preset's own values below its own.

        Raises:
            UserError: if there is no such profile.
        """
        if name not in PROFILES:
            raise UserError(f"--profile {name}: it is one of {', '.join(PROFILES)}.")
        chosen: Profile = getattr(self.content, name)
        return chosen.model_copy(update={"set": {**self.content.set, **chosen.set}})

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
    found = preset_folder().glob("*.toml")
    return sorted(path.stem for path in found if path.name != EXPECTED_VERDICTS)


def all_presets() -> list[Preset]:
    """Return the shipped presets."""
    return [_read(preset_folder() / f"{name}.toml") for name in preset_names()]


def preset_texts(preset: Preset, profile: str) -> tuple[dict[str, str], dict[str, str]]:
    """Return the text of each parameter that a profile sets, and where it is set, for messages."""
    values = preset.profile(profile).set
    texts = {name: str(value) for name, value in values.items()}
    return texts, {name: f"{preset.path.name}: {name}" for name in values}


def presets_run_into(run_name: str) -> list[Preset]:
    """Return the presets of which some profile is run into a directory of this name."""
    return [one for one in all_presets() if run_name in map(one.run_name, PROFILES)]


def find_preset(name: str) -> Preset | None:
    """Return the shipped preset `name`, or the one in the TOML file of that path; else None.

    Raises:
        UserError: if the file can't be read as a preset.
    """
    if name in preset_names():
        return _read(preset_folder() / f"{name}.toml")
    if not name.endswith(".toml"):
        return None
    if not os.path.isfile(name):  # noqa: PTH113 - a name too long is none, not an error
        raise UserError(f"{name}: there is no such preset file.")
    return _read(Path(name))


def _read(path: Path) -> Preset:
    content = read_toml(path, MOST_BYTES)
    try:
        return Preset(path.stem, PresetFile.model_validate(content), path)
    except ValidationError as error:
        raise UserError(f"{path}: {_sentence(error)}") from error


def _sentence(error: ValidationError) -> str:
    first = error.errors()[0]
    kinds = ("str", "int", "float", "bool", "constrained-int")
    parts = [str(part) for part in first["loc"] if part not in kinds]
    place = ".".join(parts)
    if first["type"] == "extra_forbidden":
        inside = len(first["loc"]) > 1
        known = (Profile if inside else PresetFile).model_fields
        return f"it has no {place!r}; {nearest(str(first['loc'][-1]), known)}"
    if first["type"] == "missing":
        return f"it lacks {place!r}, which every preset has."
    given = _quoted(first["input"])
    if "set" in parts[:-1]:
        return f"{place} is {given}: it takes one value, or a range in quotes."
    return f"{place} is {given}: {first['msg'].lower()}."


def _quoted(value: object) -> str:
    """What a file holds somewhere, as far as a sentence can carry it."""
    try:
        return shortened(repr(value))
    except ValueError:  # a number of thousands of digits
        return "a number too long to show"
